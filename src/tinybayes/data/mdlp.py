"""The Fayyad-Irani (1993) discretiser: cut a numeric column where the cut tells most about the class.

The range of a column is cut in two where the class entropy becomes least, each part again in the same way,
and so on; a cut is kept only when it saves more bits of class information than its own description takes
(minimum description length), so the number of bins comes from the data. The cut points follow the rule of
`Variable`: a number ``v`` has the code ``count(cut_points <= v)``.
"""

from collections.abc import Sequence

import numpy as np

from tinybayes._kernels.mdlp import cut_points
from tinybayes._kernels.threads import for_blocks
from tinybayes.errors import error


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
