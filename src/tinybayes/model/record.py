"""Common to many types: equality of records that hold arrays, and the nodes of a model."""

import operator
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from tinybayes.errors import error
from tinybayes.model.variable import Variable


class Record:
    """A frozen dataclass with arrays: equal when all fields are, and not hashable."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and all(
            np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
            for mine, theirs in ((getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__)
        )

    __hash__ = None  # type: ignore[assignment]


class Nodes:
    """Features and a class or none, seen as the nodes of a graph."""

    variables: tuple[Variable, ...]
    target: Variable | None

    @cached_property
    def nodes(self) -> tuple[Variable, ...]:
        """All variables; the class, if there is one, is the last."""
        return self.variables if self.target is None else (*self.variables, self.target)


def indices(values: Any, where: str) -> tuple[int, ...]:
    """Return numbers of variables; raise where they are no integers."""
    try:
        return tuple(operator.index(v) for v in values)
    except TypeError as problem:
        raise error("numbers of variables", repr(values)[:60], where=where) from problem


def integers(values: Any, dtype: type[np.integer], where: str) -> np.ndarray:
    """Return an array of integers on one axis in a narrow type; raise where they do not fit."""
    array = _array(values, where)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise error("integers with one axis", f"{array.dtype} of shape {array.shape}", where=where)
    info = np.iinfo(dtype)
    if array.size and not info.min <= int(array.min()) <= int(array.max()) <= info.max:
        raise error(f"integers within {info.dtype}", f"{array.min()} to {array.max()}", where=where)
    return np.ascontiguousarray(array, dtype=dtype)


def whole_numbers(values: Any, dtype: type[np.integer], where: str) -> np.ndarray:
    """Do what `integers` does, for floats that are whole numbers, too."""
    array = _array(values, where)
    if array.dtype.kind == "f" and (np.abs(array) < 2**53).all() and (array == np.trunc(array)).all():
        array = array.astype(np.int64)
    return integers(array, dtype, where)


def _array(values: Any, where: str) -> np.ndarray:
    try:
        return np.asarray(values)
    except (ValueError, OverflowError, TypeError) as problem:  # lists of unequal lengths
        raise error("integers with one axis", type(values).__name__, where=where) from problem
