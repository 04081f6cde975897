"""A table as integer codes, together with the variables that give the codes their meaning."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tinybayes.errors import error
from tinybayes.model.encoding import MISSING
from tinybayes.model.record import Nodes
from tinybayes.model.variable import Variable


def code_dtype(cardinality: int) -> type[np.signedinteger]:
    """Return the smallest signed integer type that holds the codes of this many states and `MISSING`."""
    return np.int8 if cardinality <= 128 else np.int16 if cardinality <= 2**15 else np.int32


@dataclass(frozen=True, eq=False)
class Dataset(Nodes):
    """Rows of integer codes.

    Arrays of a fitting type are used without a copy: do not change them afterwards.

    Parameters
    ----------
    variables
        The features, one for each column of `X`.
    target
        The class variable, or None for a table without a class (density estimation).
    X
        Codes, shape (rows, features); ``MISSING`` (-1) where the value is unknown.
    y
        Codes of the class, shape (rows,); None when there is no target or the class is not known.
    weight
        A non-negative weight for each row, or None when every row counts once.
    soft
        Probabilities of the classes, shape (rows, classes), as a teacher gives them, or None. Training by gradient
        takes them instead of `y`.
    """

    variables: tuple[Variable, ...]
    target: Variable | None
    X: np.ndarray
    y: np.ndarray | None = None
    weight: np.ndarray | None = None
    soft: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        cardinalities = np.array([v.cardinality for v in self.variables], dtype=np.int64)
        X = _codes(self.X, "X", cardinalities, 2)
        if X.shape[1] != len(self.variables):
            raise error(f"{len(self.variables)} columns, one for each variable", X.shape[1], where="X")
        object.__setattr__(self, "X", X)
        if self.y is not None:
            if self.target is None:
                raise error("no y where there is no target variable", "y", where="Dataset")
            y = _codes(self.y, "y", np.array([self.target.cardinality]), 1)
            _same_length(y, X, "y")
            object.__setattr__(self, "y", y)
        if self.weight is not None:
            weight = np.ascontiguousarray(self.weight, dtype=np.float64)
            _same_length(weight, X, "weight")
            if weight.size and not (np.isfinite(weight).all() and weight.min() >= 0):
                raise error("finite weights that are not negative", "others", where="weight")
            object.__setattr__(self, "weight", weight)
        if self.soft is not None and (self.target is None or self.soft.shape != (len(X), self.target.cardinality)):
            raise error("a probability of each class for each row", f"shape {self.soft.shape}", where="soft")

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def rows(self, index: np.ndarray | slice) -> "Dataset":
        """Return the data set of some of the rows, given as for a NumPy index."""
        y = None if self.y is None else self.y[index]
        weight = None if self.weight is None else self.weight[index]
        soft = None if self.soft is None else self.soft[index]
        return Dataset(self.variables, self.target, self.X[index], y, weight, soft)


class Columns(NamedTuple):
    """Some rows of codes as counting reads them: column after column, not checked again.

    `X` has the shape (features, rows), `y` and `weight` are as in `Dataset`.
    """

    X: np.ndarray
    y: np.ndarray | None
    weight: np.ndarray | None


def concatenate(parts: Sequence[Dataset]) -> Dataset:
    """Join data sets over the same variables, one below the other."""
    first = parts[0]
    if len(parts) == 1:
        return first
    y = None if first.y is None else np.concatenate([p.y for p in parts if p.y is not None])
    weight = None if first.weight is None else np.concatenate([p.weight for p in parts if p.weight is not None])
    return Dataset(first.variables, first.target, np.concatenate([p.X for p in parts]), y, weight)


def _same_length(array: np.ndarray, X: np.ndarray, name: str) -> None:
    if array.shape != (X.shape[0],):
        raise error(f"one entry for each of {X.shape[0]} rows", f"shape {array.shape}", where=name)


def _codes(values: np.ndarray, name: str, cardinalities: np.ndarray, ndim: int) -> np.ndarray:
    """Check that the codes lie in -1 .. cardinality-1 and store them compactly, row by row."""
    array = np.asarray(values)
    if array.ndim != ndim or array.dtype.kind not in "iu":
        raise error(f"an integer array with {ndim} axes", f"{array.dtype} with {array.ndim} axes", where=name)
    if array.size:
        low, high = np.atleast_1d(array.min(axis=0)), np.atleast_1d(array.max(axis=0))
        limit = cardinalities if cardinalities.size == high.size else np.full(high.size, 2**31)
        wrong = np.flatnonzero((low < MISSING) | (high >= limit))
        if wrong.size:
            column = int(wrong[0])
            where = f"{name}, column {column}" if ndim == 2 else name
            raise error(f"codes from -1 to {limit[column] - 1}", f"{low[column]} to {high[column]}", where=where)
    largest = int(cardinalities.max()) if cardinalities.size else 1
    return np.ascontiguousarray(array, dtype=code_dtype(largest))
