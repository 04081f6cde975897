"""Codes of 1 to 32 bits in arrays of 8-, 16- and 32-bit words, a row for each context, the classes side by side.

The classes of a row are cut into *planes*: arrays with one word for each row. A word is seen as *lanes* of equal width,
each with several codes one above the other. One mask cuts out one code of every lane, and one addition serves all
lanes, as long as the sums stay within them; so the terms are added in *chunks* that are short enough.

The generator knows the largest code of every table, so it can prove how many terms fit before the lanes must be
emptied.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

import numpy as np

STORE = 6  # instructions that take a sum out of a lane, roughly
KERNEL, SLICE = 130, 12  # bytes of code, about: of the two functions of a neural net, and of each code of a lane
ROW = 22  # instructions for each row of a neural net, about


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
class Bank:
    """`count` classes from `first` on whose codes are in words of one shape; the last word need not be full."""

    first: int
    count: int
    bits: int  # of a code
    shape: Shape

    @property
    def planes(self) -> int:
        """Words of a row."""
        return -(-self.count // self.shape.room)

    @property
    def codes(self) -> int:
        """Codes in the first word."""
        return min(self.count, self.shape.room)

    def words(self, codes: np.ndarray) -> np.ndarray:
        """Pack rows of codes, shape (rows, all classes), into words, shape (rows, planes)."""
        packed = np.zeros((len(codes), self.planes), dtype=np.uint64)
        for i in range(self.codes):
            lane, position = divmod(i, self.shape.each)
            column = codes[:, self.first + i : self.first + self.count : self.shape.room].astype(np.uint64)
            packed[:, : column.shape[1]] |= column << np.uint64(lane * self.shape.lane + position * self.bits)
        return packed.astype(f"u{self.shape.width // 8}")


def make_banks(cut: Iterable[tuple[Shape, int]], bits: int) -> list[Bank]:
    """Return banks of these shapes and numbers of classes, one after another."""
    banks, first = [], 0
    for shape, count in cut:
        banks.append(Bank(first, count, bits, shape))
        first += count
    return banks


def table_banks(classes: int, bits: int, largest: Sequence[int], *, start: int, lanes: bool) -> list[Bank]:
    """Cut the classes of tables into words with the fewest bytes in total; among equals, with the fewest operations.

    `largest` is the largest code of each term, and `start` the largest number that the sums begin with. `lanes` tells
    whether codes are added up as they are, so that lanes can serve several classes.
    """
    terms = len(largest)
    choices = [Shape(width, width, width // bits, terms) for width in (32, 16, 8) if width >= bits]
    if lanes:
        for width in (32, 16):
            sizes = {lane: _chunk(largest, start, lane) for lane in range(2 * bits, width // 2 + 1)}
            cut = [Shape(width, lane, lane // bits, size) for lane, size in sizes.items() if size]
            rooms = {shape.room for shape in cut}
            choices += [min((s for s in cut if s.room == room), key=lambda s: s.work(terms)) for room in rooms]
    groups = groupby(_cut(classes, tuple(choices), terms))
    return make_banks(((shape, count * len(list(group))) for (shape, count), group in groups), bits)


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
    """Return the shape and the number of classes of each word: the best words while there are many, then a search."""

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


def net_banks(units: int, bits: int, largest: np.ndarray, *, times: bool) -> list[Bank]:
    """Cut units into at most two banks that minimise bytes times the square of the instructions.

    `largest` is the largest product of each term, and `times` tells whether codes are multiplied by a value. The chunk
    of a shape is the number of rows that are added before lanes are emptied, 0 for all of them.
    """
    terms = len(largest)
    shapes = [Shape(width, width, width // bits, 0) for width in (32, 16, 8) if width >= bits]
    descending = np.cumsum(np.sort(largest)[::-1])
    for width in (32, 16):
        for lane in range(bits, width // 2 + 1):
            fit = int(np.searchsorted(descending, 2**lane))  # this many terms stay in their lanes, in any order
            if fit == terms or fit >= 2:
                shapes.append(Shape(width, lane, lane // bits, 0 if fit == terms else fit))
    best: tuple[float, list[tuple[Shape, int]]] = (np.inf, [])
    for main in shapes:
        rest = units % main.room
        splits = [[(main, units)]]
        if rest and units > main.room:
            splits += [[(main, units - rest), (other, rest)] for other in shapes if other.room >= rest]
        for split in splits:
            price = _bytes(split, terms) * sum(_work(shape, count, terms, times) for shape, count in split) ** 2
            best = min(best, (price, split), key=lambda option: option[0])
    return make_banks(best[1], bits)


def _bytes(split: list[tuple[Shape, int]], terms: int) -> float:
    """Estimate the bytes of words and code."""
    return sum(terms * -(-count // s.room) * s.width / 8 + KERNEL + SLICE * s.each for s, count in split)


def _work(shape: Shape, units: int, terms: int, times: bool) -> float:
    """Estimate the instructions of all terms on a Cortex-M0, half of them zero."""
    planes, rounds = -(-units // shape.room), -(-terms // (2 * shape.chunk)) if shape.chunk else 1
    word = 4 + shape.each * (4 + times + (shape.lanes > 1)) - (2 if shape.lanes > 1 else 1) + (shape.width < 32)
    row = ROW + planes * word
    return terms / 2 * (row + 5) + rounds * planes * (12 + 9 * shape.room)
