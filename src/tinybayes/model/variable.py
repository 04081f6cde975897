"""A discrete variable: its name, its states, and the cut points when it came from numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tinybayes.errors import error

State = str | int | float | bool


def interval_codes(edges: Sequence[float] | np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return the code of each number: the count of cut points that are not above it; -1 for NaN, a missing value."""
    codes = np.searchsorted(np.asarray(edges, dtype=np.float64), numbers, side="right")
    return np.where(np.isnan(numbers), -1, codes)


@dataclass(frozen=True)
class Variable:
    """A discrete variable.

    Parameters
    ----------
    name
        The column's name.
    states
        The values it can take, in the order of their codes 0, 1, ...; plain strings, numbers or booleans.
    edges
        Cut points, increasing, when the variable was discretised from numbers: a number ``v`` has the code
        ``count(edges <= v)``, so state ``k`` is the interval ``[edges[k-1], edges[k])``. None when the states
        are the values themselves.
    """

    name: str
    states: tuple[State, ...]
    edges: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        where = f"variable {self.name!r}"
        if not isinstance(self.name, str):
            raise error("a name that is a string", repr(self.name), where="variable")
        object.__setattr__(self, "states", tuple(self.states))
        if not self.states:
            raise error("at least one state", "none", where=where)
        for state in self.states:
            if not isinstance(state, str | int | float | bool) or state != state:
                raise error("states that are strings, numbers or booleans", repr(state), where=where)
        if len(set(self.states)) != len(self.states):
            raise error("distinct states", f"duplicates in {list(self.states)[:10]}", where=where)
        if self.edges is None:
            return
        edges = tuple(float(edge) for edge in self.edges)
        object.__setattr__(self, "edges", edges)
        if any(not math.isfinite(e) for e in edges) or any(a >= b for a, b in pairwise(edges)):
            raise error("finite, increasing cut points", list(edges)[:10], where=where)
        if len(self.states) != len(edges) + 1:
            raise error(f"{len(edges) + 1} states for {len(edges)} cut points", len(self.states), where=where)

    @property
    def cardinality(self) -> int:
        """The number of states."""
        return len(self.states)

    @classmethod
    def from_edges(cls, name: str, edges: Sequence[float]) -> "Variable":
        """Make the variable whose states are the intervals between the cut points.

        Examples
        --------
        >>> Variable.from_edges("height", [150, 180]).states
        ('< 150', '150 to 180', '>= 180')
        """
        cuts = [float(edge) for edge in edges]
        text = [f"{cut:g}" for cut in cuts]
        if len(set(text)) != len(text):
            text = [repr(cut) for cut in cuts]
        if not cuts:
            return cls(name, ("any",), ())
        middle = [f"{low} to {high}" for low, high in pairwise(text)]
        return cls(name, (f"< {text[0]}", *middle, f">= {text[-1]}"), tuple(cuts))
