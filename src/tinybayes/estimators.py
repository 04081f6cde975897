"""scikit-learn faces: thin wrappers around the functions of the package."""

from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from tinybayes.data.encode import encode_frame, encode_matrix
from tinybayes.data.variables import Discretizer, Rules, learn_variables, matrix_variables
from tinybayes.errors import error
from tinybayes.infer.scores import class_scores, normalize_scores, predict_codes
from tinybayes.learn.classifier import GradientOptions, learn_classifier
from tinybayes.model import BayesNet, Dataset, Variable
from tinybayes.report.progress import training_progress

GRADIENT_OPTIONS = tuple(field.name for field in fields(GradientOptions))


class BayesNetClassifier(ClassifierMixin, BaseEstimator):
    """Bayesian-network classifier over discrete features.

    Numeric columns are discretised, text, categorical and boolean columns are taken as they are; missing values
    (NaN, None) are skipped in learning and summed out exactly in prediction, and so are states that were never seen
    in training.

    Parameters
    ----------
    structure : {"chow-liu", "naive", "random", "differentiable", "order-free", "heuristic"}, default="chow-liu"
        Which features depend on which: the tree-augmented network of Friedman et al., naive Bayes, or a random tree.
        The last three are learned together with the parameters and need ``training="hybrid"``.
    training : {"ml", "hybrid"}, default="ml"
        How the parameters are found: smoothed maximum likelihood in closed form, or by gradient.
    smoothing : float, default=1.0
        Of "ml": added to every joint cell.
    discretizer : {"mdlp", "uniform", "quantile"}, scikit-learn discretiser or None, default="mdlp"
        What cuts numeric columns; with None every distinct number is a state.
    n_bins : int, default=8
        Bins of the equal-width and quantile discretisers.
    max_states : int, default=1000
        A column with more distinct states is refused.
    random_state : int, RandomState or None, default=None
        For everything drawn at random.
    n_candidates, bits, size_penalty, structure_noise, lam, gamma, eta, epochs, learning_rate, batch_size, n_configs, \
early_stopping, validation_fraction, image_shape, ordering, device
        Of "hybrid"; see `GradientOptions`.
    verbose : bool, default=False
        Show a progress bar while training by gradient.

    Attributes
    ----------
    model_ : BayesNet
        The fitted network, which takes raw rows through its variables.
    classes_ : ndarray
        The class labels.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray
        Names of the features, when `X` had string names for all of them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> float(BayesNetClassifier().fit(X, y).score(X, y)) > 0.9
    True
    """

    model_: BayesNet
    classes_: np.ndarray

    def __init__(
        self,
        structure: str = "chow-liu",
        *,
        training: str = "ml",
        smoothing: float = 1.0,
        discretizer: Discretizer = "mdlp",
        n_bins: int = 8,
        max_states: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        n_candidates: int = 8,
        bits: int | tuple[int, int] | None = None,
        size_penalty: float = 0.0,
        structure_noise: float = 0.0,
        lam: float = 30.0,
        gamma: float = 10.0,
        eta: float = 10.0,
        epochs: int | None = None,
        learning_rate: float = 3e-2,
        batch_size: int = 100,
        n_configs: int = 1,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        image_shape: tuple[int, int] | None = None,
        ordering: str = "C",
        device: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.structure = structure
        self.training = training
        self.smoothing = smoothing
        self.discretizer = discretizer
        self.n_bins = n_bins
        self.max_states = max_states
        self.random_state = random_state
        self.n_candidates = n_candidates
        self.bits = bits
        self.size_penalty = size_penalty
        self.structure_noise = structure_noise
        self.lam = lam
        self.gamma = gamma
        self.eta = eta
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_configs = n_configs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.image_shape = image_shape
        self.ordering = ordering
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "BayesNetClassifier":
        """Learn from a table.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_samples, n_features)
            The features.
        y : array-like, shape (n_samples,)
            The classes.
        sample_weight : array-like, shape (n_samples,), optional
            Row weights; an integer weight counts as that many rows.
        """
        table, y = self._validated(X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise error("at least 2 classes", "one class", where="y", remedy="add rows of another class")
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, table, ensure_non_negative=True)
        rules = Rules(discretizer=self.discretizer, n_bins=self.n_bins, max_states=self.max_states)
        variables = None if isinstance(table, pd.DataFrame) else matrix_variables(table, weight, rules)
        target = Variable("class", tuple(self.classes_.tolist()))
        if variables is None:
            frame = table if isinstance(table, pd.DataFrame) else _as_frame(table)
            target = Variable(_class_name(frame), tuple(self.classes_.tolist()))
            class_column = pd.Series(codes, index=frame.index, name=target.name)
            variables, _ = learn_variables([(frame, class_column, weight)], rules)
        data = Dataset(variables, target, _encode(table, variables), codes, weight)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        # As in scikit-learn, parameters of the other way of training may be set and wait for their turn.
        by_gradient = self.training == "hybrid"
        options = GradientOptions(**{name: getattr(self, name) for name in GRADIENT_OPTIONS}) if by_gradient else None
        with training_progress(self.verbose and by_gradient) as report:
            self.model_ = learn_classifier(
                data,
                structure=self.structure,
                training=self.training,
                smoothing=self.smoothing,
                seed=seed,
                options=options,
                report=report,
            )
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        codes = self._codes(X)
        return np.asarray(self.classes_[predict_codes(self.model_, codes)])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the class posteriors, shape (n_samples, n_classes)."""
        codes = self._codes(X)
        return normalize_scores(class_scores(self.model_, codes))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class posteriors, shape (n_samples, n_classes)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def _codes(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return _encode(self._validated(X), self.model_.variables)

    def _validated(self, X: Any, y: Any = "no_validation") -> Any:
        """Check X (and y) as scikit-learn does; frames keep their column types."""
        reset = not (isinstance(y, str) and y == "no_validation")
        if not isinstance(X, pd.DataFrame):
            return validate_data(self, X, y, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        validate_data(self, X, y, reset=reset, skip_check_array=True)
        if not len(X) or not len(X.columns):
            raise error("at least one row and one column", f"shape {X.shape}", where="X")
        frame = X.set_axis([str(name) for name in X.columns], axis=1)
        if not frame.columns.is_unique:
            repeated = frame.columns[frame.columns.duplicated()].tolist()
            raise error("distinct column names", f"{repeated[:5]} more than once", where="X")
        if not reset:
            return frame
        check_consistent_length(X, y)
        return frame, _check_y(y, estimator=self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _as_frame(table: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(table, columns=[f"x{i}" for i in range(table.shape[1])]).infer_objects()


def _class_name(frame: pd.DataFrame) -> str:
    name = "class"
    while name in frame.columns:
        name += "_"
    return name


def _encode(table: Any, variables: tuple[Variable, ...]) -> np.ndarray:
    return encode_frame(table, variables) if isinstance(table, pd.DataFrame) else encode_matrix(table, variables)
