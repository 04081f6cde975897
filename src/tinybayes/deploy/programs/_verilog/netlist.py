"""Values of a circuit: each is written once and becomes a wire, or a register where the circuit has a clock."""

from dataclasses import dataclass, field


@dataclass
class Netlist:
    """Named values, in the order in which they are computed.

    Parameters
    ----------
    pipelined
        Whether values are registers, so that each level of a tree takes one clock.
    """

    pipelined: bool
    levels: int = 0
    declared: list[str] = field(default_factory=list)
    clocked: list[str] = field(default_factory=list)

    def value(self, name: str, width: int, expression: str) -> str:
        """Name a value, and return the name."""
        if self.pipelined:
            self.declared.append(f"    reg [{width - 1}:0] {name};\n")
            self.clocked.append(f"        {name} <= {expression};\n")
            return name
        return self.alias(name, width, expression)

    def alias(self, name: str, width: int, expression: str) -> str:
        """Name a value that takes no clock of its own, and return the name."""
        self.declared.append(f"    wire [{width - 1}:0] {name} = {expression};\n")
        return name

    def level(self, name: str, width: int, expressions: list[str]) -> list[str]:
        """Name values that are ready at the same time."""
        self.levels += 1
        return [self.value(f"{name}{self.levels}_{i}", width, text) for i, text in enumerate(expressions)]

    def tree(self, name: str, width: int, values: list[str], join: str) -> str:
        """Join neighbours level by level, ``join`` with two gaps for them, until one value is left."""
        while len(values) > 1:
            pairs = [join.format(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
            values = self.level(name, width, pairs + values[len(values) & ~1 :])
        return values[0]

    def delay(self, name: str, width: int, value: str, levels: int) -> str:
        """Hold a value back by a number of levels, so that it meets others of its row."""
        for i in range(levels if self.pipelined else 0):
            value = self.value(f"{name}{i + 1}", width, value)
        return value

    def text(self) -> str:
        """Write all values."""
        clock = "".join(("    always @(posedge clk) begin\n", *self.clocked, "    end\n"))
        return "".join(self.declared) + (clock if self.clocked else "")
