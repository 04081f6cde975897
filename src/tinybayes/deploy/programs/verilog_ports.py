"""What all Verilog modules of classifiers share: their ports, the comment that describes them, and numbers as text."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from tinybayes.deploy.programs.names import plain
from tinybayes.model import Variable


@dataclass(frozen=True)
class Ports:
    """The ports of a module: ``x`` holds the states of a row, side by side; ``label`` and ``scores`` are the answer."""

    variables: tuple[Variable, ...]
    target: Variable
    size: int  # bits of a score, with its sign

    @property
    def classes(self) -> int:
        """The number of classes."""
        return self.target.cardinality

    @property
    def label(self) -> int:
        """The bits of a label."""
        return bits(self.classes)

    @cached_property
    def width(self) -> list[int]:
        """The bits of each feature."""
        return [bits(v.cardinality) for v in self.variables]

    @cached_property
    def low(self) -> list[int]:
        """The first bit of each feature in ``x``."""
        return list(accumulate(self.width, initial=0))[:-1]

    @property
    def inputs(self) -> int:
        """The bits of ``x``."""
        return max(1, sum(self.width))

    @property
    def outputs(self) -> int:
        """The bits of ``scores``."""
        return self.classes * self.size

    def head(self, name: str, facts: Sequence[str], more: Sequence[str], ports: Sequence[str]) -> str:
        """Write the comment, with `more` lines about time at its end, and the ports, after those of the clock."""
        lines = [*facts, "x holds the states side by side:"]
        for v, low, width in zip(self.variables, self.low, self.width, strict=True):
            lines.append(f"  x[{low + width - 1}:{low}]  {plain(v.name)}, {v.cardinality} states")
        lanes = f"class c is scores[{self.size} * c +: {self.size}]"
        lines.append(f"scores holds signed numbers of {self.size} bits; {lanes}.")
        lines += [f"{c}: {plain(s)}" for c, s in enumerate(self.target.states)]
        listed = [
            *ports,
            f"input wire [{self.inputs - 1}:0] x",
            f"output wire [{self.label - 1}:0] label",
            f"output wire [{self.outputs - 1}:0] scores",
        ]
        comment = "".join(f"// {line}\n" for line in [*lines, *more])
        return comment + f"module {name} (\n" + ",\n".join(f"    {port}" for port in listed) + "\n);\n"

    def right(self, rows: Sequence[Sequence[int]], scores: Sequence[Sequence[int]]) -> str:
        """Write the lines of a test bench that hold the rows and what is right for them."""
        lines = ""
        for i, (x, right) in enumerate(zip(rows, scores, strict=True)):
            packed = sum(code << low for code, low in zip(x, self.low, strict=True))
            lines += f"        row[{i}] = {self.inputs}'h{packed:x};\n"
            lines += f"        right_label[{i}] = {self.label}'d{right.index(max(right))};\n"
            lines += f"        right_scores[{i}] = {self.outputs}'h{side_by_side(right, self.size):x};\n"
        return lines


def bits(states: int) -> int:
    """Return the bits that tell so many states apart, at least one."""
    return max(1, (states - 1).bit_length())


def number(value: int, width: int) -> str:
    """Write an integer of `width` bits, a negative one as its two's complement."""
    return f"{width}'h{value % 2**width:x}"


def side_by_side(values: Sequence[int], width: int) -> int:
    """Put integers of `width` bits into one; the first takes the lowest bits."""
    return sum((value % 2**width) << width * i for i, value in enumerate(values))


def signed_bits(values: np.ndarray | int) -> int:
    """Return the bits of integers up to the magnitude of these, with their sign; at least two."""
    return max(1, int(np.abs(np.asarray(values, dtype=np.int64)).max()).bit_length()) + 1
