"""The base of the estimators: tables are checked as scikit-learn does and turned into codes, and classes predicted."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from tinybayes.data.checks import as_frame, check_classes, check_features, check_rows, repetitions
from tinybayes.data.encode import encode_frame, encode_matrix
from tinybayes.data.readers import read_frame
from tinybayes.data.variables import Discretization, learn_variables, matrix_variables
from tinybayes.errors import error, warn
from tinybayes.infer.scores import class_scores, normalize_scores, predict_codes
from tinybayes.model import BayesNet, Circuit, Dataset, NeuralNet, TreeEnsemble, Variable
from tinybayes.model.variable import state_array
from tinybayes.options import options_of

Options = TypeVar("Options")
NO_CLASS = "no_validation"  # what scikit-learn's validation takes for a y that is not there


class TableEstimator(BaseEstimator):
    """An estimator that takes raw tables: numbers, text and categories, with gaps."""

    n_features_in_: int
    classes_: np.ndarray
    model_: BayesNet | Circuit | NeuralNet | TreeEnsemble

    def _learning_set(self, X: Any, y: Any, sample_weight: Any, discretization: Discretization) -> Dataset:
        """Check and encode a table with classes, whose labels are stored."""
        return self._learning_sets(X, y, sample_weight, lambda rows: [discretization])[0]

    def _learning_sets(
        self, X: Any, y: Any, sample_weight: Any, discretizations: Callable[[int], Sequence[Discretization]]
    ) -> list[Dataset]:
        """Check a table with classes, whose labels are stored; encode it in each way for its number of rows."""
        table, y = validated(self, X, y, reset=True)
        self.classes_, codes = class_codes(y)
        return [dataset(table, sample_weight, one, self.classes_, codes) for one in discretizations(len(table))]

    def _codes(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return encode(validated(self, X, reset=False), self.model_.variables)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


class ScoredClassifier(ClassifierMixin, TableEstimator):
    """A classifier that predicts by the scores of its model."""

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


def validated(estimator: BaseEstimator, X: Any, y: Any = NO_CLASS, *, reset: bool) -> Any:
    """Check X (and y) as scikit-learn does; frames keep their column types.

    With `reset` the number and names of the features are noted, otherwise compared.
    """
    if not isinstance(X, pd.DataFrame) and hasattr(X, "__arrow_c_stream__"):
        X = read_frame(X)  # a frame of polars, or an Arrow table: with its names and types, not as a matrix
    if not isinstance(X, pd.DataFrame):
        return validate_data(estimator, X, y, reset=reset, dtype=None, ensure_all_finite="allow-nan")
    validate_data(estimator, X, y, reset=reset, skip_check_array=True)
    if not len(X) or not len(X.columns):
        raise error("at least one row and one column", f"shape {X.shape}", where="X")
    frame = X.set_axis([str(name) for name in X.columns], axis=1)
    if not frame.columns.is_unique:
        repeated = frame.columns[frame.columns.duplicated()].tolist()
        raise error("distinct column names", f"{repeated[:5]} more than once", where="X")
    if isinstance(y, str) and y == NO_CLASS:
        return frame
    check_consistent_length(X, y)
    return frame, _check_y(y, estimator=estimator)


def store_parameters(estimator: BaseEstimator, values: dict[str, Any]) -> None:
    """Store the arguments of ``__init__``, given as its `locals()`, unchanged as scikit-learn demands."""
    for name, value in values.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


def options_of_estimator(estimator: BaseEstimator, learner: type[Options], **others: Any) -> Options:
    """Build the dataclass of a learner from the parameters of an estimator, which have the same names."""
    named = {name: getattr(estimator, name) for name in options_of(learner) if hasattr(estimator, name)}
    return learner(**named | others)


def class_codes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the class labels, and the code of each row's."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes")  # `check_classes` refuses them, or warns
        check_classification_targets(y)
    low, high = (int(y.min()), int(y.max())) if np.can_cast(y.dtype, np.int64) and y.dtype.kind != "b" else (0, len(y))
    if high - low < len(y):  # small integers need no sorting
        codes = y.astype(np.int64) - low
        seen = np.bincount(codes) > 0
        classes, codes = (np.flatnonzero(seen) + low).astype(y.dtype), (np.cumsum(seen) - 1)[codes]
    else:
        classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise error("at least 2 classes", "one class", where="y", remedy="add rows of another class")
    return classes, codes


def dataset(
    table: Any,
    sample_weight: Any,
    discretization: Discretization,
    classes: np.ndarray | None = None,
    codes: np.ndarray | None = None,
) -> Dataset:
    """Find the variables of a validated table and encode it; without classes there is no target."""
    weight = None
    if sample_weight is not None:
        weight = repetitions(_check_sample_weight(sample_weight, table, ensure_non_negative=True))
    is_frame = isinstance(table, pd.DataFrame)
    _check(table, classes, weight)
    variables = None if is_frame else matrix_variables(table, weight, discretization)
    target = None if classes is None else Variable("class", tuple(classes.tolist()))
    if variables is None:
        frame, of_class = table if is_frame else as_frame(table), None
        if target is not None:
            target = Variable(_class_name(frame), target.states)
            of_class = pd.Series(codes, index=frame.index, name=target.name)
        variables, _ = learn_variables([(frame, of_class, weight)], discretization)
    return Dataset(variables, target, encode(table, variables), codes, weight)


def _check(table: pd.DataFrame | np.ndarray, classes: np.ndarray | None, weight: np.ndarray | None) -> None:
    """Refuse a table that does not mean what it says, or warn."""
    check_features(table)
    rows = len(table) if weight is None else max(len(table), int(weight.sum()))  # a table of counts has many rows
    if classes is None:
        check_rows(rows)
    else:
        check_classes(classes.tolist(), rows, "y")


def complete_rows(data: Dataset) -> Dataset:
    """Leave out the rows with missing values, with a warning; for learners that need all values."""
    gaps = data.X < 0
    if data.weight is not None:
        gaps &= data.weight[:, None] > 0  # rows of weight zero may hold anything
    out = np.asarray(gaps.any(axis=1))
    if not out.any():
        return data
    worst = data.variables[int(gaps.sum(axis=0).argmax())].name
    if out.all():
        remedy = f"fill them in, or drop columns with many gaps such as {worst!r}"
        raise error("rows without missing values", "none", where="X", remedy=remedy)
    text = f"{out.sum():,} of {len(data):,} rows have missing values (most in {worst!r}): left out of learning"
    warn(text)
    return data.rows(np.flatnonzero(~out))


def encode(table: Any, variables: tuple[Variable, ...]) -> np.ndarray:
    """Encode a validated table."""
    return encode_frame(table, variables) if isinstance(table, pd.DataFrame) else encode_matrix(table, variables)


def states_table(codes: np.ndarray, variables: Sequence[Variable], *, as_frame: bool) -> Any:
    """Write codes as states, in a frame or an array; the array holds numbers if all states are numbers."""
    columns = {v.name: state_array(v.states)[codes[:, i]] for i, v in enumerate(variables)}
    if as_frame:
        return pd.DataFrame(columns)
    numbers = all(column.dtype.kind in "if" for column in columns.values())
    return np.stack(list(columns.values()) if numbers else [c.astype(object) for c in columns.values()], axis=1)


def _class_name(frame: pd.DataFrame) -> str:
    name = "class"
    while name in frame.columns:
        name += "_"
    return name
