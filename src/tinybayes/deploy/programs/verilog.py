"""Classifiers as Verilog-2001: a ROM for each table, a tree of adders for all classes, a tree of comparisons."""

import numpy as np

from tinybayes.deploy.programs.names import check_name, plain
from tinybayes.deploy.programs.plan import TablePlan, Term, make_table_plan, rows_with_every_state
from tinybayes.deploy.programs.verilog_net import net_to_verilog
from tinybayes.deploy.programs.verilog_netlist import Netlist, answer, best_function, clock_ports, test_bench
from tinybayes.deploy.programs.verilog_ports import Ports, side_by_side
from tinybayes.deploy.programs.verilog_trees import trees_to_verilog
from tinybayes.errors import error
from tinybayes.infer.integers import integer_log_joint
from tinybayes.model import BayesNet, Fixed, NeuralNet, TreeEnsemble

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
"""

MINUS = """
    function [{lanes}:0] minus;
        input [{lanes}:0] a;
        integer c;
        for (c = 0; c < {classes}; c = c + 1)
            minus[c * {size} +: {size}] = -a[c * {size} +: {size}];
    endfunction
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
    if isinstance(net, TreeEnsemble):
        return trees_to_verilog(net, name=name, note=note, pipelined=pipelined, checks=checks)
    plan = make_table_plan(net)
    if plan.values is None:
        remedy = "quantise the model: fit --training hybrid --bits 4, or tie --levels 16"
        raise error("a model in fixed point or with a codebook", str(plan.form), where="verilog", remedy=remedy)
    module = _Module(plan, pipelined)
    files = {f"{name}.v": module.text(name, note)}
    if checks:
        rows = rows_with_every_state(plan.terms.states, checks)
        scores = integer_log_joint(net, rows)[0].tolist()
        files[f"{name}_tb.v"] = test_bench(module.netlist, module.ports, name, rows.tolist(), scores)
    return files


class _Module:
    """A module: the names and widths of its parts, and their text."""

    def __init__(self, plan: TablePlan, pipelined: bool) -> None:
        self.plan, self.netlist = plan, Netlist(pipelined)
        terms = plan.terms
        _check_sizes(plan)
        self.classes, self.fixed = terms.classes, isinstance(plan.form, Fixed)
        self.codes = np.unique(np.concatenate([terms.rows.reshape(-1), terms.entries]))
        self.bits = max(1, int(self.codes.max(initial=0)).bit_length())
        self.size = plan.reach.bit_length() + 1  # of a sum, with its sign
        self.ports = Ports(plan.variables, plan.target, self.size)

    def text(self, name: str, note: str) -> str:
        """Write the module."""
        net, lanes, terms = self.netlist, self.classes * self.size, self.plan.terms
        leaves = [f"widen(rom{i}({self._address(t)}))" for i, t in enumerate(terms.terms)]
        leaves += [f"widen({{{self.classes}{{common{i}({self._address(t)})}}}})" for i, t in enumerate(terms.common)]
        tables = net.level("t", lanes, leaves)
        net.alias("total", lanes, net.tree("s", lanes, [*tables, f"{lanes}'h{self._start():x}"], "add({}, {})"))
        end = answer(net, self.ports, "minus(total)" if self.fixed else "total")
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
        return self.ports.head(name, self.plan.facts(note), *clock_ports(self.netlist))

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
        out = FUNCTIONS.format(
            lanes=self.classes * size - 1,
            row=self.classes * self.bits - 1,
            classes=self.classes,
            size=size,
            number=f"{{{size - self.bits}'b0, {code}}}" if self.fixed else f"level({code})",
        ) + best_function(self.ports, lowest=self.fixed)
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
