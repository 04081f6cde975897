"""How tables lie in memory, and the check of codes that index them.

A table over several variables is one flat array in row-major order: the last variable runs fastest, and the entry of an
assignment is ``offset + sum(stride * code)``. All tables of a model follow one another, each at its own offset.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from tinybayes.errors import error


def strides(cardinalities: Sequence[int], unit: int = 1) -> list[int]:
    """Return the stride of each axis of a row-major table, whose last axis has the stride `unit`.

    Examples
    --------
    >>> strides([2, 3, 4])
    [12, 4, 1]
    """
    steps = []
    for cardinality in reversed(cardinalities):
        steps.append(unit)
        unit *= int(cardinality)
    return steps[::-1]


def cells(X: np.ndarray, scope: Sequence[int], cardinalities: Sequence[int]) -> np.ndarray:
    """Return the entry of each complete row in the table over the variables of `scope`."""
    cell = np.zeros(len(X), dtype=np.int64)
    for variable in scope:
        cell = cell * cardinalities[variable] + X[:, variable]
    return cell


def starts(lengths: Iterable[int]) -> np.ndarray:
    """Return where each of several runs begins in one array, and where the last one ends.

    Examples
    --------
    >>> starts([2, 0, 3])
    array([0, 2, 2, 5])
    """
    return np.concatenate([[0], np.cumsum([*lengths])]).astype(np.int64)


def check_codes(
    X: np.ndarray,
    cardinalities: Sequence[int] | np.ndarray,
    *,
    where: str = "X",
    complete: bool = False,
    remedy: str = "",
) -> np.ndarray:
    """Return rows of codes, -1 where a value is missing, checked so that no kernel reads beyond a table.

    Missing values are refused where the rows must be complete; `where` and `remedy` are parts of the error.
    """
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != len(cardinalities) or X.dtype.kind not in "iu":
        expected, got = f"integer codes with {len(cardinalities)} columns", f"{X.dtype} of shape {X.shape}"
        single = "pass X[None] for a single row" if X.ndim == 1 else ""
        raise error(expected, got, where=where, remedy=remedy or single)
    least, limit = 0 if complete else -1, np.asarray(cardinalities, dtype=np.int64)
    if X.size and (int(X.min()) < least or (X.max(axis=0) >= limit).any()):
        column = int(np.flatnonzero((X.min(axis=0) < least) | (X.max(axis=0) >= limit))[0])
        expected, got = f"codes from {least} to {limit[column] - 1}", f"{X[:, column].min()} to {X[:, column].max()}"
        raise error(expected, got, where=f"{where}, column {column}", remedy=remedy)
    return X
