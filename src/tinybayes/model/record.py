"""Common to many types: equality of records that hold arrays, and the nodes of a model."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

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
