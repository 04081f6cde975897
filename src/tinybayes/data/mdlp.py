"""The Fayyad-Irani (1993) discretiser: cut a numeric column where the cut tells most about the class.

The range of a column is cut in two where the class entropy becomes least, each part again in the same way,
and so on; a cut is kept only when it saves more bits of class information than its own description takes
(minimum description length), so the number of bins comes from the data. The cut points follow the rule of
`Variable`: a number ``v`` has the code ``count(cut_points <= v)``.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tinybayes._kernels.mdlp import cut_points
from tinybayes._kernels.threads import for_blocks
from tinybayes.data.checks import repetitions
from tinybayes.errors import error
from tinybayes.model.encoding import MISSING


def mdlp_all(
    columns: Sequence[np.ndarray] | np.ndarray,
    y: np.ndarray,
    n_classes: int,
    weight: np.ndarray | None = None,
    *,
    fallback: bool = False,
) -> list[np.ndarray]:
    """Find the increasing cut points of several columns, on all cores.

    Parameters
    ----------
    columns
        Columns of finite numbers; NaN is a missing value and ignored. For a table ``X`` pass ``X.T``.
    y
        Class codes 0 .. n_classes - 1; rows with a negative code (class unknown) are ignored.
    n_classes
        The number of classes.
    weight
        A weight for each row. Weights count as repetitions: 3 is the same as three equal rows, and 0 as none.
        Their scale matters, as the number of rows does.
    fallback
        Fayyad and Irani test only the cut of least entropy and stop where it fails. True goes on to the cut
        of least entropy among those that pass the test, where there is one.

    Returns
    -------
    list of ndarray
        For each column its cut points: the midpoints between neighbouring values; empty when no cut pays.

    Examples
    --------
    >>> mdlp_all([np.arange(8)], np.array([0, 0, 0, 0, 1, 1, 1, 1]), 2)
    [array([3.5])]
    """
    codes, weights, keep = _rows(y, n_classes, weight)
    every = bool(keep.all())
    cuts_of_columns: list[np.ndarray] = [np.empty(0)] * len(columns)

    def work(start: int, stop: int) -> None:
        for j in range(start, stop):
            values = _numbers(columns[j], len(keep), f"column {j}")
            entries = _sorted_entries(values if every else values[keep], codes, weights, n_classes)
            cuts_of_columns[j] = cut_points(*entries, n_classes, fallback)

    for_blocks(work, len(columns), 1)
    return cuts_of_columns


def _rows(y: np.ndarray, n_classes: int, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Return class codes and weights of the rows that are used, and the mask of these rows."""
    codes = np.asarray(y)
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise error("class codes, a vector of integers", f"{codes.dtype} with {codes.ndim} axes", where="y")
    if codes.size and codes.max() >= n_classes:
        raise error(f"class codes below {n_classes}", codes.max(), where="y")
    keep = codes >= 0
    if weight is None:
        return codes[keep].astype(np.int32), None, keep
    weights = np.asarray(weight, dtype=np.float64)
    if weights.shape != codes.shape:
        raise error(f"one entry for each of {codes.size} rows", f"shape {weights.shape}", where="weight")
    if weights.size and not (weights.min() >= 0 and np.isfinite(weights.sum())):
        raise error("finite weights that are not negative", "others", where="weight")
    keep &= weights > 0
    return codes[keep].astype(np.int32), weights[keep], keep


def _numbers(column: np.ndarray, rows: int, where: str) -> np.ndarray:
    values = np.asarray(column)
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise error("a vector of numbers", f"{values.dtype} with {values.ndim} axes", where=where)
    if len(values) != rows:
        raise error(f"one number for each of {rows} rows", len(values), where=where)
    values = values.astype(np.float64)
    if np.isinf(values).any():
        raise error("finite numbers, or NaN where missing", "infinity", where=where)
    return values


def _sorted_entries(
    values: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, n_classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values, classes and weights sorted by value, without the missing ones."""
    known = ~np.isnan(values)
    if not known.all():
        values, codes = values[known], codes[known]
        weights = None if weights is None else weights[known]
    if values.size == 0:
        return values, codes, values
    low = float(values.min())
    cells = (float(values.max()) - low + 1.0) * n_classes
    if cells <= 4 * values.size + 4096 and np.array_equal(values, np.rint(values)):
        # Integers in a small range: counting them is faster than sorting, and leaves little to scan.
        cell = (values - low).astype(np.int64) * n_classes + codes
        count = np.bincount(cell, weights)
        used = np.flatnonzero(count)
        return low + used // n_classes, (used % n_classes).astype(np.int32), count[used].astype(np.float64)
    order = np.argsort(values)
    return values[order], codes[order], np.ones(values.size) if weights is None else weights[order]


class MDLPDiscretizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Discretise numeric features by class entropy and description length (Fayyad and Irani, 1993).

    Supervised: `fit` needs the classes. Each feature gets as many bins as its data pays for; a feature that
    says nothing about the class on its own gets a single one.

    Parameters
    ----------
    fallback : bool, default=False
        Fayyad and Irani test only the cut of least entropy and stop where it fails. True goes on to the cut
        of least entropy among those that pass the test.
    dtype : data type, default=numpy.float64
        The type of the codes. Floating point keeps a missing value (NaN) as NaN; in a signed integer type it
        becomes -1, the code of missing values throughout the package.

    Attributes
    ----------
    cut_points_ : list of ndarray
        The increasing cut points of each feature. Code ``k`` is the interval
        ``[cut_points[k-1], cut_points[k])``; the first and the last one are open to either side.
    n_bins_ : ndarray of int
        The number of bins of each feature.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        Their names, when `fit` saw a table with names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> MDLPDiscretizer().fit(X, y).n_bins_
    array([3, 3, 3, 3])
    """

    def __init__(self, *, fallback: bool = False, dtype: Any = np.float64) -> None:
        self.fallback = fallback
        self.dtype = dtype

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the cut points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; NaN where missing.
        y : array-like of shape (n_samples,)
            The classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; integers count as repetitions, others are scaled to a mean of 1.
        """
        X, y = validate_data(self, X, y, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        if sample_weight is not None:
            sample_weight = repetitions(_check_sample_weight(sample_weight, X, ensure_non_negative=True))
        classes, codes = np.unique(y, return_inverse=True)
        self.cut_points_ = mdlp_all(X.T, codes, len(classes), sample_weight, fallback=bool(self.fallback))
        self.n_bins_ = np.array([len(cuts) + 1 for cuts in self.cut_points_])
        self._code_type(int(self.n_bins_.max()))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Replace numbers by the codes of their bins.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; NaN where missing.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Codes 0, 1, ...; missing values stay missing (see `dtype`).
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, ensure_all_finite="allow-nan")
        kind = self._code_type(int(self.n_bins_.max()))
        missing = np.nan if kind.kind == "f" else MISSING
        codes = np.empty(X.shape, dtype=kind)
        for j, cuts in enumerate(self.cut_points_):
            column = X[:, j].astype(np.float64)
            codes[:, j] = np.searchsorted(cuts, column, side="right")
            codes[np.isnan(column), j] = missing
        return codes

    def _code_type(self, bins: int) -> np.dtype:
        kind = np.dtype(self.dtype)
        if kind.kind not in "if":
            raise error("a floating-point or signed integer type", kind, where="dtype")
        largest = np.iinfo(kind).max if kind.kind == "i" else 2 ** (np.finfo(kind).nmant + 1)
        if bins - 1 > largest:
            raise error(f"a type that holds codes up to {bins - 1}", kind, where="dtype", remedy="use a wider one")
        return kind

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags
