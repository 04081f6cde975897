"""The Fayyad-Irani discretiser as a transformer of scikit-learn; `mdlp` has the method."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tinybayes.data.checks import repetitions
from tinybayes.data.mdlp import mdlp_all
from tinybayes.errors import error
from tinybayes.model.encoding import MISSING


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
