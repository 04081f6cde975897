"""The inputs of a program: features, their codes, and how raw values become codes, in integers.

A float32 is compared with a cut point through its *key*: the bits of its magnitude, negated for negative numbers. Keys
are integers in the order of the numbers, so that no target needs floating-point comparisons; a cut point of few
significant bits needs the upper half of its key only. The steps of a grid are powers of two: bits are shifted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinybayes.deploy.programs.program import narrowest, unsigned
from tinybayes.errors import error
from tinybayes.model import Cuts, Grid, Integers, Variable
from tinybayes.model.encoding import EXACT, LOWEST, Intervals

RAW = ("float", "int", "none")
KEYS = ("uint8", "int8", "uint16", "int16", "int32")  # all can be compared with 32-bit integers


@dataclass(frozen=True, eq=False)
class Features:
    """The inputs of a program: the features, and how a row of raw values becomes their codes."""

    variables: tuple[Variable, ...]
    raw: str = "none"  # the type of raw values: "float" (32 bits) or "int"; "none" where the program takes codes only
    gaps: bool = False  # whether values may be missing
    ignored: int | None = None  # a feature whose value does not matter: the variable that a circuit answers for
    unseen: bool = False  # whether a value that is no state has a code of its own, instead of that of a missing one

    @property
    def state(self) -> str:
        """The C type of a code, the missing one included."""
        others = self.gaps + self.unseen
        return unsigned(max((v.cardinality for v in self.variables), default=1) - 1 + others)

    @property
    def missing(self) -> int:
        """The code of a missing value."""
        return int(np.iinfo(self.state.removesuffix("_t")).max)

    @property
    def unseen_code(self) -> int:
        """The code of a value that is no state, where it has one of its own."""
        return self.missing - 1

    @property
    def value(self) -> str:
        """The C type of a raw value; empty where the program takes none."""
        return {"float": "float", "int": "int32_t", "none": ""}[self.raw]

    @property
    def has_keys(self) -> bool:
        """Whether the bits of floats are compared: with cut points, or with those of a missing value."""
        return self.raw == "float" and any(self.gaps or self.variables[i].cardinality > 1 for i in self.of_kind(Cuts))

    @cached_property
    def cuts(self) -> tuple[np.ndarray | None, ...]:
        """The cut points of features that are compared with them, as integers: keys of floats, or integers."""
        compared = set(self.of_kind(Cuts))
        return tuple(self._keys(v) if i in compared else None for i, v in enumerate(self.variables))

    @property
    def short(self) -> bool:
        """Whether the upper 16 bits of all keys are enough."""
        return self.has_keys and all(cuts is None or not (cuts & 0xFFFF).any() for cuts in self.cuts)

    @cached_property
    def lists(self) -> tuple[np.ndarray, dict[int, tuple[int, int]]]:
        """All cut points, equal lists once, and for each feature that has some its first one and their number."""
        flat: list[int] = []
        known: dict[tuple[int, ...], int] = {}
        place: dict[int, tuple[int, int]] = {}
        for i, cuts in enumerate(self.cuts):
            if cuts is not None:
                points = tuple(cuts.tolist())
                if points not in known:
                    known[points] = len(flat)
                    flat += points
                place[i] = known[points], len(points)
        keys = np.array(flat, dtype=np.int64) // (2**16 if self.short else 1)
        return keys.astype(narrowest(int(keys.min(initial=0)), int(keys.max(initial=0)), KEYS)), place

    def of_kind(self, *kinds: type) -> list[int]:
        """Return the features with an encoding of these kinds, without the ignored one."""
        return [i for i, v in enumerate(self.variables) if isinstance(v.encoding, kinds) and i != self.ignored]

    def grids(self) -> Iterator[tuple[int, Grid]]:
        """Yield the features on a grid."""
        for i in self.of_kind(Grid):
            if isinstance(grid := self.variables[i].encoding, Grid):
                yield i, grid

    def lowest(self, feature: int) -> int:
        """Return the raw value whose code is 0, of a feature whose raw values are integers or codes."""
        encoding = self.variables[feature].encoding
        return encoding.low if isinstance(encoding, Integers) else 0

    def values(self, codes: np.ndarray) -> np.ndarray:
        """Return raw values that have these codes."""
        columns = [self._value(v, codes[:, i]) for i, v in enumerate(self.variables)]
        return np.array(columns, dtype=np.float64).reshape(codes.shape[::-1]).T

    def _value(self, variable: Variable, codes: np.ndarray) -> np.ndarray:
        encoding = variable.encoding
        known = np.maximum(codes, 0)
        if isinstance(encoding, Cuts):
            cuts = np.ceil(encoding.cuts) if self.raw == "int" else encoding.cuts
            lowest = cuts[:1] - 1 if self.raw == "int" else np.nextafter(cuts[:1], -np.inf, dtype=np.float32)
            values = np.concatenate([lowest if len(cuts) else [0.0], cuts])[known]
        elif isinstance(encoding, Grid):
            values = encoding.start + encoding.step * known
        else:
            values = known + (encoding.low if isinstance(encoding, Integers) else 0.0)
        if self.raw == "int":  # the lowest integer stands for a missing value
            return np.where(codes < 0, LOWEST, np.maximum(values, LOWEST + 1))
        return np.where(codes < 0, np.nan, values)

    def _keys(self, variable: Variable) -> np.ndarray:
        assert isinstance(variable.encoding, Cuts)
        cuts = variable.encoding.cuts
        if self.raw == "int":
            return np.ceil(cuts).astype(np.int64)
        return float_keys(cuts)


def make_features(
    variables: tuple[Variable, ...],
    raw: str | None,
    *,
    gaps: bool = False,
    ignored: int | None = None,
    unseen: bool = False,
) -> Features:
    """Describe the inputs of a program; without `raw` integers where all raw values are integers, else floats."""
    read = [v for i, v in enumerate(variables) if i != ignored]
    intervals = [v.encoding for v in read if isinstance(v.encoding, Intervals)]
    if raw is None:
        raw = "int" if all(encoding.integer for encoding in intervals) else "float"
    if raw not in RAW:
        raise error(f"one of {', '.join(RAW)}", repr(raw), where="raw")
    for variable in read:
        _check(variable, raw)
    return Features(variables, raw, gaps, ignored, unseen)


def _check(variable: Variable, raw: str) -> None:
    """Refuse raw values of a type that does not hold those of a feature."""
    encoding, where = variable.encoding, f"variable {variable.name!r}"
    if isinstance(encoding, Integers):
        _check_integers(encoding, raw, where)
    if raw == "int" and isinstance(encoding, Grid) and encoding.step < 1:
        raise error("steps of integers", f"a step of {encoding.step:g}", where=where, remedy="use --raw float")
    if not isinstance(encoding, Intervals) or raw == "none":
        return
    # Beyond 2**24 an integer and its float32 may lie on different sides of a cut point.
    largest = float(np.abs(encoding.cuts).max(initial=0.0))
    if encoding.integer and raw == "float" and largest > EXACT:
        raise error("integers up to 2**24 for floats", f"{largest:,.0f}", where=where, remedy="use --raw int")
    if raw == "int" and (encoding.cuts <= LOWEST + 1).any():
        remedy = "shift the column"
        raise error(
            "values below the first cut point besides -2**31, a missing value", "none", where=where, remedy=remedy
        )
    if not encoding.integer and raw == "int" and largest > EXACT:
        expected, remedy = "cut points of floats within 2**24 for integers", "use --raw float, or scale the column"
        raise error(expected, f"{largest:g}", where=where, remedy=remedy)


def _check_integers(encoding: Integers, raw: str, where: str) -> None:
    """Refuse integers that a float32 does not hold, or that stand for a missing value."""
    got = f"{encoding.low} to {encoding.high}"
    if raw == "float" and not encoding.is_single:
        raise error("integers within 2**24 for floats", got, where=where, remedy="use --raw int, or shift the column")
    if raw == "int" and encoding.low == LOWEST:
        raise error("integers above -2**31, a missing value", got, where=where, remedy="shift the column")


def float_keys(numbers: np.ndarray) -> np.ndarray:
    """Return integers in the order of float32 numbers: the bits of the magnitude, with the sign."""
    bits = np.asarray(numbers, dtype=np.float32).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def describe(variable: Variable, raw: str) -> str:
    """Say what a raw value of a feature is; without raw values, what its code is."""
    encoding = variable.encoding
    if isinstance(encoding, Intervals) and raw != "none":
        return "a number" if raw == "float" else "an integer"
    if isinstance(encoding, Integers) and raw != "none":
        return f"an integer from {encoding.low} to {encoding.high}"
    return f"the code of its state, 0 to {variable.cardinality - 1}"


def bisects(counts: list[int]) -> bool:
    """Tell whether lists of cut points are so long that they are searched by bisection."""
    return max(counts, default=0) > 12
