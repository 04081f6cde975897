"""How a raw value becomes the code of a variable, in arithmetic that every target reproduces to the last bit.

Numbers are float32: a value is rounded to the nearest float32 and compared with cut points that are float32, so that a
row of doubles gets the same code in Python as the rounded row on a device. Rounding keeps the order of numbers: a value
that equals a cut point stays on its side. Encodings marked `integer` compare integers instead, exact beyond 2**24, too.
The step of a `Grid` is a power of two, so that scaling is exact and a device needs shifts only.

NaN is missing. A value that is none of an encoding's values (`Integers`, `Categories`) is unknown, which is the same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from tinybayes.errors import error

MISSING = -1
LOWEST, HIGHEST = -(2**31), 2**31 - 1  # of integers
EXACT = 2**24  # integers up to this are float32


class Intervals:
    """Intervals of numbers; a subclass has the cut points between them as `cuts`, and `integer`."""

    cuts: np.ndarray  # float64, which holds every float32 and every integer of 32 bits
    integer: bool

    @cached_property
    def thresholds(self) -> np.ndarray:
        """For each cut point the smallest double that is rounded to it or above."""
        return self.cuts if self.integer else rounding_up_to(self.cuts)

    def codes(self, numbers: np.ndarray) -> np.ndarray:
        """Return the codes of numbers: the count of cut points that are not above them; -1 for NaN."""
        codes = np.searchsorted(self.thresholds, numbers, side="right")
        return np.where(np.isnan(numbers), MISSING, codes)

    def states(self) -> tuple[str, ...]:
        """Name the intervals."""
        cuts = self.cuts.tolist()
        texts = [f"{cut:g}" for cut in cuts]
        if len(set(texts)) != len(texts):
            texts = [repr(cut) for cut in cuts]
        if not texts:
            return ("any",)
        return (f"< {texts[0]}", *(f"{low} to {high}" for low, high in pairwise(texts)), f">= {texts[-1]}")


@dataclass(frozen=True)
class Cuts(Intervals):
    """Intervals between cut points: the code of a number is the count of the cut points that are not above it.

    Parameters
    ----------
    points
        Increasing; they are rounded to float32.
    integer
        Whether raw values are integers; then cut points are rounded up to integers.
    """

    points: Sequence[float]
    integer: bool = False

    def __post_init__(self) -> None:
        points = [float(point) for point in self.points]
        if any(not math.isfinite(p) for p in points) or any(a >= b for a, b in pairwise(points)):
            raise error("finite, increasing cut points", points[:10], where="cut points")
        rounded = [float(math.ceil(p)) for p in points] if self.integer else single(np.array(points)).tolist()
        low, high = (LOWEST, HIGHEST) if self.integer else (-math.inf, math.inf)
        if any(not low < point < high for point in rounded):
            kind = "32-bit integers" if self.integer else "float32"
            raise error(f"cut points within {kind}", points[:10], where="cut points", remedy="scale the column")
        if any(a >= b for a, b in pairwise(rounded)):
            kind = "as integers" if self.integer else "in single precision"
            raise error(f"cut points that differ {kind}", points[:10], where="cut points", remedy="scale the column")
        object.__setattr__(self, "points", tuple(rounded))

    @property
    def count(self) -> int:
        """The number of intervals."""
        return len(self.points) + 1

    @cached_property
    def cuts(self) -> np.ndarray:  # type: ignore[override]
        """The cut points."""
        return np.array(self.points, dtype=np.float64)


@dataclass(frozen=True)
class Grid(Intervals):
    """Intervals of equal width: the code of a number is ``floor((number - start) / step)``, clipped to 0..count-1.

    Parameters
    ----------
    start
        Where the first interval begins; a multiple of the step.
    step
        A power of two.
    count
        The number of intervals.
    integer
        Whether raw values are integers.
    """

    start: float
    step: float
    count: int
    integer: bool = False

    def __post_init__(self) -> None:
        start, step = float(self.start), float(self.step)
        if not (2.0**-126 <= step <= 2.0**127 and math.frexp(step)[0] == 0.5):
            raise error("a step that is a power of two, from 2**-126 to 2**127", self.step, where="grid")
        first = start / step
        if not (math.isfinite(first) and first.is_integer() and abs(first) <= 2**30):
            raise error("a start that is a multiple of the step, at most 2**30 steps from zero", start, where="grid")
        if not (isinstance(self.count, int | np.integer) and 1 <= self.count <= 2**16):
            raise error("1 to 65,536 intervals", self.count, where="grid")
        if self.integer and step < 1:
            raise error("a step of at least 1 for integers", self.step, where="grid")
        last = first + self.count - 1
        cut = max(abs(first + 1), abs(last)) * step if self.count > 1 else 0.0
        if not self.integer and (max(abs(first), abs(last)) > EXACT or cut >= 2.0**128):
            expected = "cut points that are float32, at most 2**24 steps from zero"
            raise error(expected, f"{self.count} intervals from {start:g}", where="grid", remedy="use larger steps")
        for name, value in (("start", start), ("step", step), ("count", int(self.count))):
            object.__setattr__(self, name, value)

    @property
    def shift(self) -> int:
        """The logarithm of the step, base two."""
        return math.frexp(self.step)[1] - 1

    @property
    def first(self) -> int:
        """The start in steps."""
        return int(self.start / self.step)

    @cached_property
    def cuts(self) -> np.ndarray:  # type: ignore[override]
        """The cut points that give the same codes."""
        return (self.first + np.arange(1, self.count)) * self.step


@dataclass(frozen=True)
class Integers:
    """Consecutive integers, each one a state: the code of a value is ``value - low``; any other value is unknown.

    A value is rounded to the nearest float32 before, as for intervals, unless there are integers from 2**24 on.
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        if not (LOWEST <= self.low <= self.high <= HIGHEST):
            raise error("low <= high, within 32-bit integers", f"{self.low} to {self.high}", where="integers")

    @property
    def count(self) -> int:
        """The number of integers."""
        return self.high - self.low + 1

    @property
    def is_single(self) -> bool:
        """Whether values are float32: all integers are below 2**24, where float32 tells neighbours apart."""
        return self.low > -EXACT and self.high < EXACT

    def states(self) -> tuple[int, ...]:
        """Return the integers."""
        return tuple(range(self.low, self.high + 1))


@dataclass(frozen=True)
class Categories:
    """The states themselves. Raw rows on a device, which hold numbers only, have the code of the state."""


Encoding = Cuts | Grid | Integers | Categories


def single(numbers: np.ndarray) -> np.ndarray:
    """Round numbers to float32, as float64; numbers beyond its range become infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(numbers, dtype=np.float64).astype(np.float32).astype(np.float64)


def rounding_up_to(cuts: np.ndarray) -> np.ndarray:
    """Return for each float32 the smallest double that is rounded to it or above, in double precision.

    That is the middle between it and the float32 below, which is rounded to the even one of the two.
    """
    cut = np.asarray(cuts, dtype=np.float32)
    with np.errstate(over="ignore"):
        below = np.nextafter(cut, np.float32(-np.inf)).astype(np.float64)
        below = np.where(np.isinf(below), -(2.0**128), below)  # the next one if there were more exponents
        middle = (cut.astype(np.float64) + below) / 2
        return np.where(middle.astype(np.float32) >= cut, middle, np.nextafter(middle, np.inf))


def uniform_grid(low: float, high: float, most: int, *, integer: bool = False) -> Grid:
    """Return the finest grid of at most `most` intervals over the numbers from `low` to `high`."""
    low, high = (float(low), float(high)) if integer else single(np.array([low, high])).tolist()
    shift = 0 if integer else -126
    shift = max(shift, math.frexp(max(abs(low), abs(high), 2.0**-126))[1] - 24)  # no finer than float32
    while math.floor(high / 2.0**shift) - math.floor(low / 2.0**shift) >= most:
        shift += 1
    step = 2.0**shift
    first = math.floor(low / step)
    return Grid(first * step, step, math.floor(high / step) - first + 1, integer)
