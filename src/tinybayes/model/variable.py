"""A discrete variable: its name, its states, and how raw values are encoded."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinybayes.errors import error
from tinybayes.model.encoding import HIGHEST, LOWEST, Categories, Cuts, Encoding, Grid, Integers

State = str | int | float | bool
LONGEST = 10**300  # of an integer: it is compared with doubles
PLAIN = {str, int, bool}  # types whose values are all states


@dataclass(frozen=True)
class Variable:
    """A discrete variable.

    Parameters
    ----------
    name
        The column's name.
    states
        The values it can take, in the order of their codes 0, 1, ...; plain strings, numbers or booleans.
    encoding
        How a raw value becomes a code. None for states that are the values themselves: `Integers` where they are
        consecutive integers, else `Categories`.
    """

    name: str
    states: tuple[State, ...]
    encoding: Encoding = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        where = f"variable {self.name!r}"
        if not isinstance(self.name, str):
            raise error("a name that is a string", repr(self.name), where="variable")
        object.__setattr__(self, "states", tuple(self.states))
        if not self.states:
            raise error("at least one state", "none", where=where)
        kinds = set(map(type, self.states))
        for state in () if kinds <= PLAIN else self.states:
            if not isinstance(state, str | int | float | bool) or state != state:
                raise error("states that are strings, numbers or booleans", repr(state), where=where)
        _check_states(self.states, kinds, where)
        if len(set(self.states)) != len(self.states):
            raise error("distinct states", f"duplicates in {list(self.states)[:10]}", where=where)
        if self.encoding is None:
            object.__setattr__(self, "encoding", _natural(self.states) if kinds == {int} else Categories())
            return
        encoding = self.encoding
        if not isinstance(encoding, Encoding):
            raise error("Cuts, Grid, Integers or Categories", repr(encoding), where=where)
        if not isinstance(encoding, Categories) and encoding.count != len(self.states):
            raise error(f"{encoding.count} states for {encoding}", len(self.states), where=where)
        if isinstance(encoding, Integers) and self.states != encoding.states():
            raise error(f"the states {encoding.low} to {encoding.high}", list(self.states)[:10], where=where)

    @property
    def cardinality(self) -> int:
        """The number of states."""
        return len(self.states)

    @property
    def has_intervals(self) -> bool:
        """Whether the states are intervals of numbers."""
        return isinstance(self.encoding, Cuts | Grid)

    @classmethod
    def from_encoding(cls, name: str, encoding: Cuts | Grid | Integers) -> "Variable":
        """Make the variable whose states are the intervals or integers of an encoding.

        Examples
        --------
        >>> Variable.from_encoding("height", Cuts([150, 180])).states
        ('< 150', '150 to 180', '>= 180')
        """
        return cls(name, encoding.states(), encoding)


def _check_states(states: tuple[State, ...], kinds: set[type], where: str) -> None:
    """Refuse integers that no comparison with a double takes."""
    for state in states if int in kinds else ():
        if isinstance(state, int) and abs(state) > LONGEST:
            raise error("integers of up to 300 digits", f"one of {state.bit_length():,} bits", where=where)


def _natural(states: tuple[Any, ...]) -> Encoding:
    """Return the encoding of integers that are states."""
    low, high = states[0], states[-1]
    consecutive = high - low == len(states) - 1 and states == tuple(range(low, high + 1))
    return Integers(low, high) if consecutive and low >= LOWEST and high <= HIGHEST else Categories()


def state_array(states: Sequence[State]) -> np.ndarray:
    """Return states in an array: of numbers where all have one type that holds them, else of the states themselves.

    NumPy on its own makes texts of numbers beside texts, doubles of integers beyond its own, and gives each text the
    space of the longest one.
    """
    kinds = set(map(type, states))
    dtype = {bool: np.bool_, int: np.int64, float: np.float64}.get(next(iter(kinds)), np.object_)
    small = kinds != {int} or all(-(2**63) <= int(state) < 2**63 for state in states)
    array: np.ndarray = np.empty(len(states), dtype=dtype if len(kinds) == 1 and small else np.object_)
    array[:] = states
    return array


def distinct_texts(states: Sequence[State]) -> list[str]:
    """Return the states as text, those in quotes that would read like another one: 1 and '1'."""
    texts = list(map(str, states))
    counts = Counter(texts)
    return [repr(state) if counts[text] > 1 else text for state, text in zip(states, texts, strict=True)]
