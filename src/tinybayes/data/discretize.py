"""Cut points for numeric columns: Fayyad-Irani by our own kernel, equal width and quantiles by scikit-learn."""

import inspect
import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.preprocessing import KBinsDiscretizer

from tinybayes.data.mdlp import MDLPDiscretizer, mdlp_all
from tinybayes.errors import error

METHODS = ("mdlp", "uniform", "quantile")


def cut_points(
    columns: Sequence[np.ndarray],
    discretizer: str | BaseEstimator,
    y: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    *,
    n_bins: int = 8,
) -> list[np.ndarray]:
    """Find the increasing cut points of numeric columns; NaN is a missing number, and -1 a missing class.

    The discretizer is ``"mdlp"`` (needs `y`), ``"uniform"`` (equal width), ``"quantile"``, or an `MDLPDiscretizer` or
    scikit-learn `KBinsDiscretizer`, whose settings are used. Weights count as repetitions.
    """
    if isinstance(discretizer, MDLPDiscretizer) or (isinstance(discretizer, str) and discretizer == "mdlp"):
        if y is None:
            remedy = "use 'quantile' or 'uniform'"
            raise error("a class to discretise by", "none", where="discretizer 'mdlp'", remedy=remedy)
        fallback = isinstance(discretizer, MDLPDiscretizer) and bool(discretizer.fallback)
        return mdlp_all(columns, y, int(y.max(initial=0)) + 1, weight, fallback=fallback)
    if isinstance(discretizer, KBinsDiscretizer):
        binner = clone(discretizer)
    elif isinstance(discretizer, str) and discretizer in METHODS:
        if not (isinstance(n_bins, int | np.integer) and n_bins >= 2):
            raise error("at least 2 bins", n_bins, where="n_bins")
        options = {"n_bins": n_bins, "strategy": discretizer, "subsample": None}
        if "quantile_method" in inspect.signature(KBinsDiscretizer).parameters:
            options["quantile_method"] = "averaged_inverted_cdf"  # the one that counts a weight of 2 as two rows
        binner = KBinsDiscretizer(**options)
    else:
        known = ", ".join(repr(m) for m in METHODS)
        raise error(f"{known}, None, an MDLPDiscretizer or a KBinsDiscretizer", repr(discretizer), where="discretizer")
    return [_binned(column, binner, weight) for column in columns]


def _binned(column: np.ndarray, binner: KBinsDiscretizer, weight: np.ndarray | None) -> np.ndarray:
    known = ~np.isnan(column) if column.dtype.kind == "f" else np.ones(len(column), dtype=bool)
    values = column[known].astype(float)
    if values.size == 0 or values.min() == values.max():
        return np.empty(0)
    # Equal width looks at the range only, and refuses weights.
    weighted = weight is not None and binner.strategy != "uniform"
    fitted = clone(binner).set_params(encode="ordinal")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Bins whose width are too small")  # repeated quantiles are merged, as wanted
        fitted.fit(values[:, None], sample_weight=weight[known] if weighted and weight is not None else None)
    edges = np.asarray(fitted.bin_edges_[0][1:-1], dtype=float)
    # A cut at the smallest value would make an empty bin.
    return np.unique(edges[(edges > values.min()) & np.isfinite(edges)])
