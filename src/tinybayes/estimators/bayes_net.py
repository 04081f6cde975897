"""Bayesian-network classifiers for scikit-learn."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from tinybayes.data.variables import Discretization, Discretizer
from tinybayes.estimators._base import ScoredClassifier, options_of_estimator, store_parameters
from tinybayes.learn.classifier import learn_classifier
from tinybayes.learn.hybrid import HybridOptions, encodings_tried
from tinybayes.model import BayesNet
from tinybayes.report.progress import training_progress


class BayesNetClassifier(ScoredClassifier):
    """Bayesian-network classifier over discrete features.

    Numeric columns are discretised, text, categorical and boolean columns are taken as they are; missing values
    (NaN, None) are skipped in learning and summed out exactly in prediction, and so are states that were never seen
    in training.

    Parameters
    ----------
    structure : {"chow-liu", "naive", "random", "subset", "order-free", "heuristic"}, default="chow-liu"
        Which features depend on which: the tree-augmented network of Friedman et al., naive Bayes, or a random tree.
        The last three are learned together with the parameters and need ``training="hybrid"``.
    training : {"ml", "hybrid"}, default="ml"
        How the parameters are found: smoothed maximum likelihood in closed form, or by gradient.
    smoothing : float, default=1.0
        Of "ml": added to every joint cell.
    discretizer : {"auto", "mdlp", "uniform", "quantile"}, scikit-learn discretiser or None, default="auto"
        What cuts numeric columns; with None every distinct number is a state. "auto" is "mdlp"; with
        ``training="hybrid"`` held-out rows choose between it and 8 or, of at least 2,000 rows, 16 bins of equal counts.
    n_bins : int, default=8
        Bins of the equal-width and quantile discretisers.
    max_states : int, default=1000
        A column with more distinct states is refused.
    random_state : int, RandomState or None, default=None
        For everything drawn at random.
    n_candidates, bits, size_penalty, structure_noise, input_noise, noise_reach, noise_end, sharing, structure_rate, \
lam, gamma, eta, conditional, epochs, learning_rate, batch_size, n_configs, early_stopping, validation_fraction, \
image_shape, ordering, device, deterministic
        Of "hybrid"; see `HybridOptions`.
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

    def __init__(
        self,
        structure: str = "chow-liu",
        *,
        training: str = "ml",
        smoothing: float = 1.0,
        discretizer: Discretizer = "auto",
        n_bins: int = 8,
        max_states: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        n_candidates: int | None = None,
        bits: int | tuple[int, int] | None = None,
        size_penalty: float = 0.0,
        structure_noise: float = 0.0,
        input_noise: float | None = None,
        noise_reach: float = 0.0,
        noise_end: float = 1.0,
        sharing: float = 0.0,
        structure_rate: float = 1e-3,
        lam: float = 30.0,
        gamma: float | None = None,
        eta: float = 10.0,
        conditional: float = 0.0,
        epochs: int | None = None,
        learning_rate: float = 3e-2,
        batch_size: int = 100,
        n_configs: int = 1,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        image_shape: tuple[int, int] | None = None,
        ordering: str = "C",
        device: str | None = None,
        deterministic: bool = False,
        verbose: bool = False,
    ) -> None:
        store_parameters(self, locals())

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
        by_gradient, asked = self.training == "hybrid", options_of_estimator(self, Discretization)
        data, *encodings = self._learning_sets(
            X, y, sample_weight, lambda rows: encodings_tried(asked, rows) if by_gradient else [asked]
        )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        # As in scikit-learn, parameters of the other way of training may be set and wait for their turn.
        options = options_of_estimator(self, HybridOptions) if by_gradient else None
        with training_progress(self.verbose and by_gradient) as report:
            self.model_ = learn_classifier(
                data,
                structure=self.structure,
                training=self.training,
                smoothing=self.smoothing,
                seed=seed,
                options=options,
                encodings=encodings,
                report=report,
            )
        return self
