"""Cut points for numeric columns: Fayyad-Irani, equal width, quantiles, or as an object of scikit-learn says."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybayes._kernels.encode import find_neighbours
from tinybayes._kernels.threads import for_blocks
from tinybayes.data.mdlp import mdlp_all
from tinybayes.errors import error
from tinybayes.model.encoding import EXACT, HIGHEST, LOWEST, Cuts, Grid, single, uniform_grid

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

METHODS = ("mdlp", "uniform", "quantile", "grid", "histogram")
MOST_BINS = 65_536  # as many states as any program can tell apart
SMALL = 256  # integers of a smaller range are the codes of a grid
CLOSE = 1e-8  # quantiles that are no further apart are merged
LONG = 16_384  # rows of columns that threads share
SHORT = 8  # significant bits of a short cut point: a device stores 16 bits of it


Edges = Callable[[np.ndarray, np.ndarray | None], np.ndarray]  # of values and weights


def learn_encodings(
    columns: Sequence[np.ndarray],
    discretizer: "str | BaseEstimator",
    y: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    *,
    n_bins: int = 8,
) -> list[Cuts | Grid]:
    """Find how numeric columns are encoded: grids, or cut points as in `cut_points`.

    Where all columns hold integers, so do the encodings. Other cut points of MDLP, quantiles and histograms are moved
    to a short number nearby, which has the same rows of the column on each side.
    """
    integer = all(_holds_integers(column) for column in columns)
    if isinstance(discretizer, str) and discretizer == "grid":
        return [_grid(column, n_bins, integer) for column in columns]
    cuts = cut_points(columns, discretizer, y, weight, n_bins=n_bins)
    if integer:
        return [Cuts(np.unique(np.ceil(points)).tolist(), integer=True) for points in cuts]
    if discretizer in ("mdlp", "quantile", "histogram") or _is("MDLPDiscretizer", discretizer):
        cuts = _for_columns(lambda i: shorten(columns[i], cuts[i]), columns)
    return [Cuts(np.unique(single(points)).tolist()) for points in cuts]


def _holds_integers(column: np.ndarray) -> bool:
    if not column.size:
        return True
    if column.dtype.kind in "iu":
        return bool(column.min() > LOWEST and column.max() < HIGHEST)
    known = column[~np.isnan(column)]
    return bool((np.abs(known) < HIGHEST).all() and (known == np.rint(known)).all())


def _grid(column: np.ndarray, n_bins: int, integer: bool) -> Grid:
    known = column if column.dtype.kind in "iu" else column[~np.isnan(column)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    small = high - low < SMALL and _holds_integers(column)
    return uniform_grid(low, high, SMALL if small else n_bins, integer=integer)


def common_grid(grids: Sequence[Grid]) -> Grid | None:
    """Return one grid for columns whose ranges are alike: it has their finest step and is at most twice as wide.

    A device then needs no table of starts and ends. None where ranges differ more, or more than 255 intervals result.
    """
    if len({grid.integer for grid in grids}) != 1:
        return None
    step = min(grid.step for grid in grids)
    first = min(round(grid.start / step) for grid in grids)
    count = max(round((grid.start + grid.count * grid.step) / step) for grid in grids) - first
    narrowest = min(grid.count * grid.step for grid in grids) / step
    if count >= SMALL or 2 * narrowest < count or max(-first, first + count) > EXACT:
        return None
    return Grid(first * step, step, count, grids[0].integer)


def shorten(column: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Move cut points to numbers of few significant bits; no value of the column changes its side.

    A cut point stays in the middle half of the gap between the values around it.
    """
    cuts = single(cuts)
    below, above = np.full(len(cuts), -np.inf), np.full(len(cuts), np.inf)
    find_neighbours(single(column), cuts, below, above)
    apart = np.diff(cuts, prepend=-np.inf, append=np.inf)  # neighbouring cut points must not meet
    room = np.minimum((above - below) / 4, np.minimum(apart[:-1], apart[1:]) / 4)
    short, done = cuts.copy(), ~(np.isfinite(below) & np.isfinite(above))
    mantissa, exponent = np.frexp(cuts)
    for bits in range(1, SHORT + 1):
        candidate = np.ldexp(np.rint(mantissa * 2**bits) / 2**bits, exponent)
        fits = ~done & (below < candidate) & (candidate <= above) & (np.abs(candidate - cuts) <= room)
        short[fits], done = candidate[fits], done | fits
    return short


def cut_points(
    columns: Sequence[np.ndarray],
    discretizer: "str | BaseEstimator",
    y: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    *,
    n_bins: int = 8,
) -> list[np.ndarray]:
    """Find the increasing cut points of numeric columns; NaN is a missing number, and -1 a missing class.

    The discretizer is ``"mdlp"`` (needs `y`), ``"uniform"`` (equal width), ``"quantile"``, ``"histogram"`` (between all
    values where they are few, else equal counts), or an `MDLPDiscretizer` or scikit-learn `KBinsDiscretizer`, whose
    settings are used. Weights count as repetitions.
    """
    if discretizer == "mdlp" or _is("MDLPDiscretizer", discretizer):
        if y is None:
            remedy = "use 'quantile' or 'uniform'"
            raise error("a class to discretise by", "none", where="discretizer 'mdlp'", remedy=remedy)
        fallback = not isinstance(discretizer, str) and bool(discretizer.fallback)
        return mdlp_all(columns, y, int(y.max(initial=0)) + 1, weight, fallback=fallback)
    if _is("KBinsDiscretizer", discretizer):
        return [_binned(column, weight, partial(_fitted_edges, discretizer)) for column in columns]
    if not (isinstance(discretizer, str) and discretizer in ("uniform", "quantile", "histogram")):
        known = ", ".join(repr(m) for m in METHODS)
        raise error(f"{known}, None, an MDLPDiscretizer or a KBinsDiscretizer", repr(discretizer), where="discretizer")
    if not (isinstance(n_bins, int | np.integer) and 2 <= n_bins <= MOST_BINS):
        raise error(f"2 to {MOST_BINS:,} bins", n_bins, where="n_bins")
    if discretizer == "histogram":
        return _for_columns(lambda i: histogram_cuts(columns[i], weight, int(n_bins)), columns)
    edges_of = _equal_widths if discretizer == "uniform" else _quantiles
    return [_binned(column, weight, partial(edges_of, int(n_bins))) for column in columns]


def _is(name: str, discretizer: object) -> bool:
    """Tell whether this is an object of that class, or of one made from it, without loading scikit-learn."""
    return any(kind.__name__ == name for kind in type(discretizer).__mro__)


def _for_columns(cuts_of: Callable[[int], np.ndarray], columns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the cut points of all columns by their numbers, of long columns found on all cores."""
    cuts = [np.empty(0)] * len(columns)

    def find(first: int, last: int) -> None:
        for i in range(first, last):
            cuts[i] = cuts_of(i)

    if cuts:
        for_blocks(find, len(cuts), 1 if len(columns[0]) > LONG else len(cuts))
    return cuts


def _binned(column: np.ndarray, weight: np.ndarray | None, edges_of: Edges) -> np.ndarray:
    known = ~np.isnan(column) if column.dtype.kind == "f" else np.ones(len(column), dtype=bool)
    values = column[known].astype(float)
    if values.size == 0 or values.min() == values.max():
        return np.empty(0)
    edges = edges_of(values, None if weight is None else weight[known])[1:-1]
    # A cut at the smallest value would make an empty bin.
    return np.unique(edges[(edges > values.min()) & np.isfinite(edges)])


def _equal_widths(n_bins: int, values: np.ndarray, _: np.ndarray | None) -> np.ndarray:
    return np.linspace(values.min(), values.max(), n_bins + 1)


def _quantiles(n_bins: int, values: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return quantiles; between two values, where the rows below are exactly that share, their mean.

    A weight of 2 counts as two rows. Quantiles that (nearly) repeat are merged.
    """
    levels = np.linspace(0, 100, n_bins + 1)
    if weight is None:
        edges = np.percentile(values, levels, method="averaged_inverted_cdf")
    else:
        order = np.argsort(values, kind="stable")
        ordered, below = values[order], np.cumsum(weight[order])
        wanted = np.maximum(levels / 100 * below[-1], np.nextafter(0, 1))
        first = np.minimum(np.searchsorted(below, wanted), len(values) - 1)
        after = np.searchsorted(below, below[first], side="right")  # the next one that counts
        after = np.where(after < len(values), after, first)
        exact = below[first] - wanted <= np.finfo(float).eps
        edges = np.where(exact, (ordered[first] + ordered[after]) / 2, ordered[first])
    return edges[np.ediff1d(edges, to_begin=np.inf) > CLOSE]


def _fitted_edges(discretizer: Any, values: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the edges that a KBinsDiscretizer with these settings finds."""
    from sklearn.base import clone

    # Equal width looks at the range only, and refuses weights.
    weighted = weight is not None and discretizer.strategy != "uniform"
    fitted = clone(discretizer).set_params(encode="ordinal")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Bins whose width are too small")  # repeated quantiles are merged, as wanted
        fitted.fit(values[:, None], sample_weight=weight if weighted else None)
    return np.asarray(fitted.bin_edges_[0], dtype=float)


SAMPLE = 200_000  # rows that bins of equal counts are fitted to, as in scikit-learn's boosting


def histogram_cuts(column: np.ndarray, weight: np.ndarray | None, n_bins: int) -> np.ndarray:
    """Cut in the middle between neighbouring values: between all of them, or into bins of about equal counts.

    Trees learn from such bins. Unlike with quantiles, a rare value of a column with few values has a bin of its own.
    Of many rows a sample is looked at, always the same one.
    """
    if len(column) > SAMPLE:
        drawn = np.random.default_rng(0).choice(len(column), SAMPLE, replace=False)
        column, weight = column[drawn], None if weight is None else weight[drawn]
    known = ~np.isnan(column) if column.dtype.kind == "f" else np.ones(len(column), dtype=bool)
    numbers = single(column[known]) if column.dtype.kind == "f" else column[known].astype(np.float64)
    values, number = np.unique(numbers, return_inverse=True)
    last = np.arange(max(len(values) - 1, 0))  # the values below each cut point end with these
    if len(values) > n_bins:
        count = np.bincount(number, weights=None if weight is None else weight[known])
        wanted = np.arange(1, n_bins) * (count.sum() / n_bins)
        last = np.unique(np.searchsorted(np.cumsum(count), wanted - 1e-9))
        last = last[last < len(values) - 1]
    middle = (values[last] + values[last + 1]) / 2
    return np.where(single(middle) > values[last], middle, values[last + 1])
