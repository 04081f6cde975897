"""Classifiers as Verilog-2001: a ROM for each table, a tree of adders for all classes, a tree of comparisons."""

from dataclasses import dataclass, field

import numpy as np

from tinybayes.deploy.programs.names import check_name, plain
from tinybayes.deploy.programs.plan import TablePlan, Term, make_table_plan, rows_with_every_state
from tinybayes.deploy.programs.verilog_net import net_to_verilog
from tinybayes.deploy.programs.verilog_ports import Ports, side_by_side
from tinybayes.errors import error
from tinybayes.infer.integers import integer_log_joint
from tinybayes.model import BayesNet, Fixed, NeuralNet

MAX_ROWS = 2**16  # of one table, and
MAX_ENTRIES = 2**22  # of all of them: more belongs into a memory, not into logic

_WORDS = """
automatic buf bufif0 bufif1 casex casez cell cmos config deassign defparam design disable edge endcase endconfig
endfunction endgenerate endmodule endprimitive endspecify endtable endtask event force forever fork function generate
genvar highz0 highz1 ifnone incdir include inout instance join large liblist library localparam macromodule medium nand
negedge nmos nor noshowcancelled notif0 notif1 pmos posedge primitive pull0 pull1 pulldown pullup
pulsestyle_ondetect pulsestyle_onevent rcmos realtime release repeat rnmos rpmos rtran rtranif0 rtranif1 scalared
showcancelled small specify specparam strong0 strong1 supply0 supply1 table task tran tranif0 tranif1 tri tri0 tri1
triand trior trireg use vectored wait wand weak0 weak1 wor xnor
"""
WORDS = frozenset(_WORDS.split())

FUNCTIONS = """
    // The codes of all classes as numbers of {size} bits.
    function [{lanes}:0] widen;
        input [{row}:0] codes;
        integer c;
        for (c = 0; c < {classes}; c = c + 1)
            widen[c * {size} +: {size}] = {number};
    endfunction

    // Sums of all classes.
    function [{lanes}:0] add;
        input [{lanes}:0] a, b;
        integer c;
        for (c = 0; c < {classes}; c = c + 1)
            add[c * {size} +: {size}] = a[c * {size} +: {size}] + b[c * {size} +: {size}];
    endfunction

    // Of two {{class, sum}} the one with the {best} sum; the first if they are equal.
    function [{player}:0] best;
        input [{player}:0] a, b;
        best = {compare} ? b : a;
    endfunction
"""

MINUS = """
    function [{lanes}:0] minus;
        input [{lanes}:0] a;
        integer c;
        for (c = 0; c < {classes}; c = c + 1)
            minus[c * {size} +: {size}] = -a[c * {size} +: {size}];
    endfunction
"""


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


def to_verilog(
    net: BayesNet, *, name: str = "model", raw: str = "none", note: str = "", pipelined: bool = False, checks: int = 64
) -> dict[str, str]:
    """Write a quantised classifier as a Verilog-2001 module, with a test bench that checks itself.

    The scores are those of `tinybayes.infer.integers.integer_log_joint`, bit for bit.

    Parameters
    ----------
    net, name, note
        As in `tinybayes.export`; the classifier is in one `Fixed` format or one `Codebook`.
    raw
        Only ``"none"``: the module takes states.
    pipelined
        Give the module a clock. It then takes a row with every clock; the comment tells the latency.
    checks
        How many rows the test bench runs through, at least; every state occurs in them. 0 for no test bench.
    """
    check_name(name, WORDS)
    if raw != "none":
        remedy = "leave --raw out, and give the module states"
        raise error("no raw measurements in Verilog", repr(raw), where="raw", remedy=remedy)
    if isinstance(net, NeuralNet):
        return net_to_verilog(net, name=name, note=note, pipelined=pipelined, checks=checks)
    plan = make_table_plan(net)
    if plan.values is None:
        remedy = "quantise the model: fit --training hybrid --bits 4, or tie --levels 16"
        raise error("a model in fixed point or with a codebook", str(plan.form), where="verilog", remedy=remedy)
    module = _Module(plan, pipelined)
    files = {f"{name}.v": module.text(name, note)}
    if checks:
        rows = rows_with_every_state(plan.terms.states, checks)
        files[f"{name}_tb.v"] = module.test_bench(name, rows, integer_log_joint(net, rows)[0])
    return files


@dataclass
class _Netlist:
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


class _Module:
    """A module: the names and widths of its parts, and their text."""

    def __init__(self, plan: TablePlan, pipelined: bool) -> None:
        self.plan, self.netlist = plan, _Netlist(pipelined)
        terms = plan.terms
        _check_sizes(plan)
        self.classes, self.fixed = terms.classes, isinstance(plan.form, Fixed)
        self.codes = np.unique(np.concatenate([terms.rows.reshape(-1), terms.entries]))
        self.bits = max(1, int(self.codes.max(initial=0)).bit_length())
        self.size = plan.reach.bit_length() + 1  # of a sum, with its sign
        self.ports = Ports(plan.variables, plan.target, self.size)
        self.label = self.ports.label

    def text(self, name: str, note: str) -> str:
        """Write the module."""
        net, lanes, size, terms = self.netlist, self.classes * self.size, self.size, self.plan.terms
        leaves = [f"widen(rom{i}({self._address(t)}))" for i, t in enumerate(terms.terms)]
        leaves += [f"widen({{{self.classes}{{common{i}({self._address(t)})}}}})" for i, t in enumerate(terms.common)]
        tables = net.level("t", lanes, leaves)
        net.alias("total", lanes, net.tree("s", lanes, [*tables, f"{lanes}'h{self._start():x}"], "add({}, {})"))
        ready = net.levels
        players = [f"{{{self.label}'d{c}, total[{c * size} +: {size}]}}" for c in range(self.classes)]
        net.alias("winner", self.label + size, net.tree("w", self.label + size, players, "best({}, {})"))
        scores = net.delay("late", lanes, "minus(total)" if self.fixed else "total", net.levels - ready)
        end = f"    assign label = winner[{size} +: {self.label}];\n    assign scores = {scores};\nendmodule\n"
        return self._head(name, note) + self._roms() + self._functions() + "\n" + net.text() + end

    def _start(self) -> int:
        """Return the rows that are always added, the classes side by side."""
        terms, worth = self.plan.terms, self.plan.worth
        start = worth(terms.constant).sum(axis=0) + worth(terms.common_constant).sum()
        return side_by_side((-start if self.fixed else start).tolist(), self.size)

    def _address(self, term: Term) -> str:
        """Write the features of a table side by side, which is an address without any multiplication."""
        parts = [f"x[{self.ports.low[f]} +: {self.ports.width[f]}]" for f, _ in term.steps]
        return parts[0] if len(parts) == 1 else f"{{{', '.join(parts)}}}"

    def _head(self, name: str, note: str) -> str:
        clock, more = [], []
        if self.netlist.pipelined:
            clock = ["input wire clk"]
            more = [f"A row with every clock; its answer is there after {self.netlist.levels} clocks."]
        return self.ports.head(name, self.plan.facts(note), more, clock)

    def _roms(self) -> str:
        terms = self.plan.terms
        names = [f"rom{i}" for i in range(len(terms.terms))] + [f"common{i}" for i in range(len(terms.common))]
        tables = zip(names, terms.tables(), strict=True)
        return "".join(self._rom(name, term, rows.reshape(len(rows), -1)) for name, (term, rows) in tables)

    def _rom(self, name: str, term: Term, rows: np.ndarray) -> str:
        """Write a function from an address to a row; addresses that no row of states has give zeros."""
        width, at, shift = self.bits * rows.shape[1], np.zeros(len(rows), dtype=np.int64), 0
        for f, stride in reversed(term.steps):
            at += np.arange(len(rows)) // stride % self.plan.terms.states[f] << shift
            shift += self.ports.width[f]
        of = ", ".join(plain(self.plan.net.variables[f].name) for f, _ in term.steps)
        out = f"\n    // {of}\n    function [{width - 1}:0] {name};\n"
        out += f"        input [{shift - 1}:0] at;\n        case (at)\n"
        for address, row in zip(at.tolist(), rows.tolist(), strict=True):
            word = sum(code << self.bits * c for c, code in enumerate(row))
            out += f"            {shift}'d{address}: {name} = {width}'h{word:x};\n"
        return out + f"            default: {name} = {width}'h0;\n        endcase\n    endfunction\n"

    def _functions(self) -> str:
        size, code = self.size, f"codes[c * {self.bits} +: {self.bits}]"
        a, b = (f"{v}[{size - 1}:0]" if self.fixed else f"$signed({v}[{size - 1}:0])" for v in "ab")
        out = FUNCTIONS.format(
            lanes=self.classes * size - 1,
            row=self.classes * self.bits - 1,
            classes=self.classes,
            size=size,
            number=f"{{{size - self.bits}'b0, {code}}}" if self.fixed else f"level({code})",
            player=self.label + size - 1,
            best="smallest" if self.fixed else "largest",
            compare=f"{b} {'<' if self.fixed else '>'} {a}",
        )
        if self.fixed:
            return out + MINUS.format(lanes=self.classes * size - 1, classes=self.classes, size=size)
        levels = "".join(
            f"            {self.bits}'d{c}: level = {size}'h{int(self.plan.worth(c)) % 2**size:x};\n"
            for c in self.codes
        )
        return (
            f"\n    // What a code adds to a score.\n    function [{size - 1}:0] level;\n"
            f"        input [{self.bits - 1}:0] code;\n        case (code)\n{levels}"
            f"            default: level = {size}'h0;\n        endcase\n    endfunction\n{out}"
        )

    def test_bench(self, name: str, rows: np.ndarray, scores: np.ndarray) -> str:
        """Write the test bench, which compares the module, whose text was written, with the scores of Python."""
        ports, count = self.ports, len(rows)
        clock, port, more, wait, guard, row = "", "", "", "            x = row[i];\n", "", "i"
        if self.netlist.pipelined:
            late = self.netlist.levels - 1
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
            rows=ports.right(rows.tolist(), scores.tolist()),
            more=more,
            step=f"{wait}            #1;\n" + CHECK.format(name=name, guard=guard, i=row),
        )


def _check_sizes(plan: TablePlan) -> None:
    """Raise when there are too many rows to be logic."""
    terms, remedy = plan.terms, "export to C, which keeps tables in memory"
    for term, rows in terms.tables():
        if len(rows) > MAX_ROWS:
            of = ", ".join(repr(plan.net.variables[f].name) for f, _ in term.steps)
            got = f"{len(rows):,} of {of}"
            raise error(f"tables of at most {MAX_ROWS:,} rows", got, where="verilog", remedy=remedy)
    entries = terms.rows.size + terms.entries.size
    if entries > MAX_ENTRIES:
        raise error(f"at most {MAX_ENTRIES:,} entries", f"{entries:,}", where="verilog", remedy=remedy)
