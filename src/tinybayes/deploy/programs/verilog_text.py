"""Text of Verilog modules with a clock: registers, then sections of wires and clocked lines that belong together."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tinybayes.deploy.programs.verilog_ports import number

LONGEST = 110  # characters of a line that fills a memory


@dataclass
class Section:
    """What belongs together."""

    comment: str
    wires: list[str] = field(default_factory=list)
    clocked: list[str] = field(default_factory=list)
    cleared: list[str] = field(default_factory=list)  # registers that are zero after a reset

    def lines(self) -> list[str]:
        """Return the lines of the section."""
        clear = [f"{name} <= 0;" for name in self.cleared]
        clear = ["if (rst) begin", *indent(clear), "end"] if clear else []
        clocked = ["always @(posedge clk) begin", *indent([*self.clocked, *clear]), "end"]
        return ["", f"// {self.comment}", *self.wires, *(clocked if self.clocked else [])]


@dataclass
class Text:
    """The parts of a module after its ports."""

    first: list[str] = field(default_factory=list)  # memories, functions and registers
    filled: list[str] = field(default_factory=list)  # lines that fill memories that are never written
    sections: list[Section] = field(default_factory=list)

    def section(self, comment: str) -> None:
        """Begin a section."""
        self.sections.append(Section(comment))

    def rom(self, name: str, values: Sequence[int], width: int) -> None:
        """Declare a memory that is never written."""
        self.first.append(f"reg {span(width)}{name} [0:{len(values) - 1}];")
        entries = [f"{name}[{i}] = {number(value, width)};" for i, value in enumerate(values)]
        across = max(1, LONGEST // (1 + max(map(len, entries))))
        self.filled += [" ".join(entries[start : start + across]) for start in range(0, len(entries), across)]

    def wire(self, name: str, width: int, value: str, *, signed: bool = False) -> None:
        """Name a value."""
        self.sections[-1].wires.append(f"wire {'signed ' if signed else ''}{span(width)}{name} = {value};")

    def register(self, name: str, width: int, value: str = "", *, clear: bool = False, signed: bool = False) -> str:
        """Declare a register, which takes the value with every clock unless it is set otherwise; return its name."""
        self.first.append(f"reg {'signed ' if signed else ''}{span(width)}{name};")
        self.clock(*([f"{name} <= {value};"] if value else []))
        self.sections[-1].cleared += [name] if clear else []
        return name

    def delay(self, name: str, width: int, value: str, stages: range, *, clear: bool = False) -> None:
        """Pass a value on from stage to stage."""
        names = [f"{name}_{stage}" for stage in stages]
        self.first += [f"reg {span(width)}{', '.join(names)};"] if names else []
        self.clock(*(f"{late} <= {early};" for late, early in zip(names, [value, *names], strict=False)))
        self.sections[-1].cleared += names if clear else []

    def clock(self, *lines: str) -> None:
        """Add clocked lines."""
        self.sections[-1].clocked += lines

    def __str__(self) -> str:
        filled = ["", "initial begin", *indent(self.filled), "end"] if self.filled else []
        lines = [*self.first, *filled, *(line for section in self.sections for line in section.lines())]
        return "".join(f"{line}\n" if line else "\n" for line in indent(lines)) + "endmodule\n"


def indent(lines: Sequence[str]) -> list[str]:
    """Move lines to the right."""
    return [f"    {line}" if line else "" for line in lines]


def block(head: str, lines: Sequence[str]) -> list[str]:
    """Return a head with lines between ``begin`` and ``end``."""
    return [f"{head} begin", *indent(lines), "end"]


def span(width: int) -> str:
    """Write the range of so many bits."""
    return f"[{width - 1}:0] " if width > 1 else ""
