"""Functions that multiply rows of packed codes by values: one multiplication serves all lanes of a word.

A word holds the codes of several units, as `packing` describes. One code is cut out of every lane and multiplied by the
value, or added where values are zero or one. Nothing is cut out of a single lane: sums are taken modulo 2**32, and the
bits above a code are subtracted at the end. The first sum takes whole words in either case. Sums are in memory and
everything else is in registers, of which a Cortex-M0 has eight; a value of zero skips its whole row. The chunk of a
shape is the number of rows that are added before lanes are emptied, 0 for all of them.
"""

from dataclasses import dataclass

import numpy as np

from tinybayes.deploy.programs.packing import Shape
from tinybayes.deploy.programs.program import Dialect, Function, block, indent, loop

KERNEL, SLICE = 130, 12  # bytes of code, about: of two functions, and of each code of a lane
ROW = 22  # instructions for each row, about


@dataclass(frozen=True)
class Bank:
    """Units whose codes are in `planes` words of one shape; the last word need not be full."""

    first: int
    units: int
    bits: int
    shape: Shape

    @property
    def planes(self) -> int:
        """Words of a row."""
        return -(-self.units // self.shape.room)

    def words(self, codes: np.ndarray) -> np.ndarray:
        """Pack rows of codes, shape (rows, all units), into words, shape (rows, planes)."""
        room, shape = self.shape.room, self.shape
        own = np.zeros((len(codes), self.planes * room), dtype=np.uint64)
        own[:, : self.units] = codes[:, self.first : self.first + self.units]
        lane, position = np.divmod(np.arange(room), shape.each)
        shifted = own.reshape(len(codes), self.planes, room) << (lane * shape.lane + position * self.bits).astype("u8")
        return shifted.sum(axis=2).astype(f"u{shape.width // 8}")


@dataclass(frozen=True)
class Kernel:
    """Makes functions that add a row to sums in lanes, and take the sums out of the lanes."""

    shape: Shape
    bits: int  # of a code
    times: bool  # whether rows are multiplied by a value

    @property
    def word(self) -> str:
        """The C type of a word."""
        return f"uint{self.shape.width}_t"

    def add(self, dialect: Dialect) -> Function:
        """Make the function that adds a row; it is not inlined, since loops around it would take its registers."""
        shape = self.shape
        mask = sum((2**self.bits - 1) << lane * shape.lane for lane in range(shape.lanes))
        lines = ["const uint32_t w = *words++;"]
        for j in reversed(range(shape.each)):
            code = f"(w >> {j * self.bits})" if j and self.times else f"w >> {j * self.bits}" if j else "w"
            if j and shape.lanes > 1:
                code = f"(w >> {j * self.bits}) & 0x{mask:X}U"
                code = f"({code})" if self.times else code
            lines.append(f"a[{j}] += {code}{' * x' if self.times else ''};")
        lines.append(f"a += {shape.each};")
        words = dialect.pointer(self.word)
        parameters = (f"{words}words", "unsigned count", *(("uint32_t x",) if self.times else ()), "uint32_t *a")
        body = (f"{words}end = words + count;", "do {", *indent(lines), "} while (words < end);")
        return Function("add", "void", parameters, body, noinline=True)

    def take(self, *, more: bool) -> Function:
        """Make the function that empties the lanes: into sums, or with `more`, on top of them."""
        shape, each, how = self.shape, self.shape.each, "+=" if more else "="
        before: list[str] = []
        lines: list[str] = []
        if each > 1 and shape.lanes > 1:
            before = loop("j", each, [f"*a -= a[j] << {self.bits}U * j;"], start=1)
        elif each > 1:
            lines = block(f"if (j < {each - 1}U)", [f"*a -= a[1] << {self.bits};"])
        for lane in range(shape.lanes):
            value, last = f"*a >> {lane * shape.lane}" if lane else "*a", lane == shape.lanes - 1
            if not last:
                value = f"{f'({value})' if lane else value} & 0x{(1 << shape.lane) - 1:X}U"
            lines.append(f"sum[{lane * each}] {how} {value};")
        zeroed = "*(volatile uint32_t *)a++" if each == 1 else "*a++"  # a loop of only this would become memset
        lines = [*before, *loop("j", each, [*lines, f"{zeroed} = 0;", "++sum;"])]
        lines += [f"sum += {shape.room - each};"] if shape.lanes > 1 else []
        body = ("unsigned j;", "do {", *indent(lines), "} while (--count);")
        return Function("take", "void", ("uint32_t *a", "unsigned count", "uint32_t *sum"), body)


def net_banks(units: int, bits: int, largest: np.ndarray, *, times: bool) -> list[Bank]:
    """Cut units into at most two banks that minimise bytes times the square of the instructions.

    `largest` is the largest product of each term, and `times` tells whether codes are multiplied by a value.
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
    banks, first = [], 0
    for shape, count in best[1]:
        banks.append(Bank(first, count, bits, shape))
        first += count
    return banks


def _bytes(split: list[tuple[Shape, int]], terms: int) -> float:
    """Estimate the bytes of words and code."""
    return sum(terms * -(-count // s.room) * s.width / 8 + KERNEL + SLICE * s.each for s, count in split)


def _work(shape: Shape, units: int, terms: int, times: bool) -> float:
    """Estimate the instructions of all terms on a Cortex-M0, half of them zero."""
    planes, rounds = -(-units // shape.room), -(-terms // (2 * shape.chunk)) if shape.chunk else 1
    word = 4 + shape.each * (4 + times + (shape.lanes > 1)) - (2 if shape.lanes > 1 else 1) + (shape.width < 32)
    row = ROW + planes * word
    return terms / 2 * (row + 5) + rounds * planes * (12 + 9 * shape.room)
