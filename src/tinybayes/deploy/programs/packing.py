"""Codes of 1 to 32 bits in arrays of 8-, 16- and 32-bit words, a row for each context, the classes side by side.

The classes of a row are cut into *planes*: arrays with one word for each row. A word is seen as *lanes* of equal width,
each with several codes one above the other. One mask cuts out one code of every lane, and one addition serves all
lanes, as long as the sums stay within them; so the terms are added in *chunks* that are short enough.

The generator knows the largest code of every table, so it can prove how many terms fit before the lanes must be
emptied.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

STORE = 6  # instructions that take a sum out of a lane, roughly


@dataclass(frozen=True)
class Shape:
    """How a word is divided."""

    width: int  # bits of a word
    lane: int  # bits of a lane; a single lane is as wide as the word and never overflows
    each: int  # codes in a lane
    chunk: int  # number of terms that can be added before lanes must be emptied

    @property
    def lanes(self) -> int:
        """Lanes of a word."""
        return self.width // self.lane

    @property
    def room(self) -> int:
        """Codes of a word."""
        return self.lanes * self.each

    def work(self, terms: int) -> float:
        """Estimate the instructions for a word, on average over the terms."""
        extract = 3 if self.lanes > 1 else 2
        return 6 + extract * (self.each - 1) + STORE * self.room * -(-terms // self.chunk) / max(1, terms)


@dataclass(frozen=True)
class Plane:
    """Words that hold `count` classes from `first` on, as codes of `bits` bits."""

    first: int
    count: int
    bits: int
    shape: Shape

    @property
    def classes(self) -> range:
        """The classes in the words of this plane."""
        return range(self.first, self.first + self.count)

    def position(self, i: int) -> tuple[int, int]:
        """Return the lane of class ``first + i``, and its number in the lane."""
        return divmod(i, self.shape.each)

    def words(self, codes: np.ndarray) -> np.ndarray:
        """Pack rows of codes, shape (rows, all classes), into one word each."""
        packed = np.zeros(len(codes), dtype=np.uint64)
        for i, c in enumerate(self.classes):
            lane, position = self.position(i)
            packed |= codes[:, c].astype(np.uint64) << np.uint64(lane * self.shape.lane + position * self.bits)
        return packed.astype({8: np.uint8, 16: np.uint16, 32: np.uint32}[self.shape.width])


def planes(classes: int, bits: int, largest: Sequence[int], *, start: int, lanes: bool) -> tuple[Plane, ...]:
    """Cut the classes into planes with the fewest bytes in total; among equals, with the fewest operations.

    Parameters
    ----------
    classes, bits
        How many codes a row has, and their size.
    largest
        The largest code of each term.
    start
        The largest number that the sums begin with.
    lanes
        Whether codes are added up as they are, so that lanes can serve several classes.
    """
    terms = len(largest)
    choices = [Shape(width, width, width // bits, terms) for width in (32, 16, 8) if width >= bits]
    if lanes:
        for width in (32, 16):
            sizes = {lane: _chunk(largest, start, lane) for lane in range(2 * bits, width // 2 + 1)}
            cut = [Shape(width, lane, lane // bits, size) for lane, size in sizes.items() if size]
            rooms = {shape.room for shape in cut}
            choices += [min((s for s in cut if s.room == room), key=lambda s: s.work(terms)) for room in rooms]
    cut_planes, first = [], 0
    for shape, count in _cut(classes, tuple(choices), terms):
        cut_planes.append(Plane(first, count, bits, shape))
        first += count
    return tuple(cut_planes)


def _chunk(largest: Sequence[int], start: int, lane: int) -> int:
    """Return how many terms at a time keep their sums below ``2**lane``, 0 if none.

    All terms at once begin with the start, which must then fit in as well.
    """
    terms = len(largest)
    if sum(largest) + start < 2**lane:
        return terms
    for chunks in range(2, terms):
        size = -(-terms // chunks)
        if max(np.add.reduceat(largest, np.arange(0, terms, size))) < 2**lane:
            return size
    return 1 if terms > 1 else 0


def _cut(classes: int, choices: tuple[Shape, ...], terms: int) -> list[tuple[Shape, int]]:
    """Return the shape and the number of classes of each plane: the best words while there are many, then a search."""

    @cache
    def best(left: int) -> tuple[int, float, tuple[tuple[Shape, int], ...]]:
        if left <= 0:
            return 0, 0.0, ()
        options = []
        for shape in choices:
            count = min(shape.room, left)
            if shape.chunk < terms and count % shape.each:
                continue  # lanes are emptied in a loop, all alike
            size, work, rest = best(left - count)
            options.append((size + shape.width, work + shape.work(terms), ((shape, count), *rest)))
        return min(options, key=lambda option: option[:2])

    widest = max(choices, key=lambda shape: (shape.room / shape.width, -shape.work(terms) / shape.room))
    whole = max(0, classes // widest.room - 4)  # the last few words are left to the search
    return [(widest, widest.room)] * whole + list(best(classes - whole * widest.room)[2])
