"""Codes of 1 to 32 bits in arrays of 8-, 16- and 32-bit words, a row for each context, the classes side by side.

The classes of a row are cut into *planes*: arrays with one word for each row. In a paired plane a word is seen as two
lanes of 16 bits, so that one mask and one addition serve two classes; the sums must then stay below 2**16.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np


@dataclass(frozen=True)
class Plane:
    """Words of `width` bits that hold the classes from `first` on.

    Class ``first + i`` lies at bit ``shifts[i]``; of a paired plane the second half of the classes lies 16 bits
    above the first half.
    """

    first: int
    width: int
    bits: int
    shifts: tuple[int, ...]
    paired: bool

    @property
    def classes(self) -> range:
        """The classes in the words of this plane."""
        return range(self.first, self.first + len(self.shifts))

    def words(self, codes: np.ndarray) -> np.ndarray:
        """Pack rows of codes, shape (rows, all classes), into one word each."""
        packed = np.zeros(len(codes), dtype=np.uint64)
        for shift, c in zip(self.shifts, self.classes, strict=True):
            packed |= codes[:, c].astype(np.uint64) << np.uint64(shift)
        return packed.astype({8: np.uint8, 16: np.uint16, 32: np.uint32}[self.width])


def planes(classes: int, bits: int, *, paired: bool) -> tuple[Plane, ...]:
    """Cut the classes into planes with the fewest bytes in all, and of those the fewest operations.

    Parameters
    ----------
    classes, bits
        How many codes a row has, and their size.
    paired
        Whether sums fit into lanes of 16 bits.
    """
    found, first = [], 0
    for width, count, two in _cut(classes, bits, paired):
        half = count // 2
        shifts = [bits * i for i in range(half if two else count)]
        shifts += [16 + shift for shift in shifts] if two else []
        found.append(Plane(first, width, bits, tuple(shifts), two))
        first += count
    return tuple(found)


def _cut(classes: int, bits: int, paired: bool) -> list[tuple[int, int, bool]]:
    """Return (width, classes, paired) of each plane: whole 32-bit words while there are many, then the best rest."""
    choices = [(width, width // bits, False) for width in (32, 16, 8) if width >= bits]
    if paired and bits <= 8:
        choices.append((32, 2 * (16 // bits), True))

    @cache
    def best(left: int) -> tuple[int, int, tuple[tuple[int, int, bool], ...]]:
        if left <= 0:
            return 0, 0, ()
        options = []
        for width, room, two in choices:
            count = min(room, left)
            if two and count < room:
                continue  # a half-filled pair of lanes saves nothing
            size, work, rest = best(left - count)
            steps = 2 + (count // 2 if two else count)
            options.append((size + width, work + steps, ((width, count, two), *rest)))
        return min(options, key=lambda option: option[:2])

    widest = max(choices, key=lambda choice: (choice[1] / choice[0], choice[2]))
    whole = max(0, classes // widest[1] - 4)  # the last few words are left to the search
    return [widest] * whole + list(best(classes - whole * widest[1])[2])
