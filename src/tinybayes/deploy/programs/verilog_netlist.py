"""Values of Verilog modules without control: wires, or registers that a clock moves on; the answer, the test bench."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tinybayes.deploy.programs.verilog_ports import Ports

TEST_BENCH = """// Checks {name} on {count} rows: iverilog -g2001 -o {name}_tb {name}.v {name}_tb.v && vvp {name}_tb
module {name}_tb;
{clock}    reg [{x}:0] x;
    wire [{label}:0] label;
    wire [{scores}:0] scores;
    reg [{x}:0] row [0:{last}];
    reg [{label}:0] right_label [0:{last}];
    reg [{scores}:0] right_scores [0:{last}];
    integer i, wrong;

    {name} device ({port}.x(x), .label(label), .scores(scores));

    initial begin
{rows}        wrong = 0;
        for (i = 0; i < {count}{more}; i = i + 1) begin
{step}        end
        if (wrong == 0) $display("{name}: PASS, {count} rows");
        else $display("{name}: FAIL, %0d of {count} rows", wrong);
    end
endmodule
"""

CHECK = """            if ({guard}(label !== right_label[{i}] || scores !== right_scores[{i}])) begin
                wrong = wrong + 1;
                $display("{name}: row %0d: label %0d, should be %0d; scores %h, should be %h",
                         {i}, label, right_label[{i}], scores, right_scores[{i}]);
            end
"""

BEST = """
    // Of two {{class, sum}} the one with the {best} sum; the first if they are equal.
    function [{player}:0] best;
        input [{player}:0] a, b;
        best = {compare} ? b : a;
    endfunction
"""


@dataclass
class Netlist:
    """Named values, in the order in which they are computed: wires, or registers where the module has a clock."""

    pipelined: bool  # whether values are registers, so that each level of a tree takes one clock
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


def best_function(ports: Ports, *, lowest: bool = False) -> str:
    """Write the function that compares two classes; `lowest` is for sums that are not negative."""
    a, b = (f"{v}[{ports.size - 1}:0]" if lowest else f"$signed({v}[{ports.size - 1}:0])" for v in "ab")
    return BEST.format(
        player=ports.label + ports.size - 1,
        best="smallest" if lowest else "largest",
        compare=f"{b} {'<' if lowest else '>'} {a}",
    )


def answer(net: Netlist, ports: Ports, scores: str = "total") -> str:
    """Add the tree of comparisons of ``total``, and write the end of the module."""
    size, label, ready = ports.size, ports.label, net.levels
    players = [f"{{{label}'d{c}, total[{c * size} +: {size}]}}" for c in range(ports.classes)]
    net.alias("winner", label + size, net.tree("w", label + size, players, "best({}, {})"))
    scores = net.delay("late", ports.outputs, scores, net.levels - ready)
    return f"    assign label = winner[{size} +: {label}];\n    assign scores = {scores};\nendmodule\n"


def clock_ports(net: Netlist) -> tuple[list[str], list[str]]:
    """Return the lines about time, and the port of the clock, of a module whose values were all named."""
    if not net.pipelined:
        return [], []
    return [f"A row with every clock; its answer is there after {net.levels} clocks."], ["input wire clk"]


def test_bench(
    net: Netlist, ports: Ports, name: str, rows: Sequence[Sequence[int]], scores: Sequence[Sequence[int]]
) -> str:
    """Write the test bench, which compares a module, whose text was written, with the scores of Python."""
    count = len(rows)
    clock, port, more, wait, guard, row = "", "", "", "            x = row[i];\n", "", "i"
    if net.pipelined:
        late = net.levels - 1
        clock, port, more = "    reg clk;\n", ".clk(clk), ", f" + {late}" if late else ""
        wait = f"            x = row[i < {count} ? i : 0];\n            clk = 0;\n            #1 clk = 1;\n"
        guard, row = f"i >= {late} && ", f"i - {late}" if late else "i"
    return TEST_BENCH.format(
        name=name,
        count=count,
        last=count - 1,
        x=ports.inputs - 1,
        label=ports.label - 1,
        scores=ports.outputs - 1,
        clock=clock,
        port=port,
        rows=ports.right(rows, scores),
        more=more,
        step=f"{wait}            #1;\n" + CHECK.format(name=name, guard=guard, i=row),
    )
