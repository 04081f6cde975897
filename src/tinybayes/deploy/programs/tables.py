"""Functions that add up table rows for all classes: packed codes in lanes, levels of a codebook, or floats."""

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from tinybayes.deploy.programs.packing import Plane, planes
from tinybayes.deploy.programs.plan import TablePlan, Term
from tinybayes.deploy.programs.program import (
    Array,
    Dialect,
    Function,
    Sums,
    block,
    indent,
    loop,
    narrow,
    number,
    type_name,
    unsigned,
)
from tinybayes.model import Fixed


@dataclass(frozen=True)
class Finder:
    """How code finds the rows of all terms."""

    row: str  # the row of term ``i``, as an expression
    arrays: tuple[Array, ...] = ()  # the tables that the expression reads
    # Finds all rows at once, if an expression would be long; `declare` and `call` are the lines around it.
    function: Function | None = None
    declare: tuple[str, ...] = ()
    call: tuple[str, ...] = ()

    @property
    def functions(self) -> tuple[Function, ...]:
        """The function, if there is one."""
        return () if self.function is None else (self.function,)


def table_sums(plan: TablePlan, dialect: Dialect, state: str) -> Sums:
    """Make the sums over all terms.

    Fixed-point codes are minus log-probabilities, so that their smallest sum wins. They are added up in lanes.
    """
    terms = plan.terms
    finder = make_finder(terms.terms, len(terms.rows), plan.features, state)
    fixed = isinstance(plan.form, Fixed)
    if plan.values is None:
        kind, arrays, body = "float", *_float_sums(plan, finder, dialect)
    else:
        start = plan.worth(terms.constant).sum(axis=0)
        kind = "int32_t" if not fixed else "uint16_t" if plan.reach < 2**16 else "uint32_t"
        arrays, body = _packed(plan, finder, dialect, _Arithmetic(kind, not fixed, -start if fixed else start))
    own = () if finder.function else finder.arrays
    doc = f"Adds up the tables; the {'smallest' if fixed else 'largest'} sum wins."
    add_up = Function("add_up", "void", (f"const {state} *x", f"{kind} *sum"), tuple(body), doc, (*own, *arrays))
    functions, shared = _shared(plan, state)
    return Sums((*finder.functions, add_up, *functions), kind, fixed, shared)


def _shared(plan: TablePlan, state: str) -> tuple[tuple[Function, ...], str]:
    """Make what the tables without the class add to all scores: functions, and an expression that uses them."""
    terms = plan.terms
    if not terms.has_common:
        return (), ""
    total = plan.worth(terms.common_constant).sum()
    start = number(float(total)) if plan.values is None else str(int(total))
    if not terms.common:
        return (), start
    finder = make_finder(terms.common, len(terms.entries), plan.features, state, "common_")
    entries = plan.worth(terms.entries).astype(np.float32 if plan.values is None else np.int32)
    own = () if finder.function else finder.arrays
    body = (
        *finder.declare,
        f"{plan.score} sum = {start};",
        "unsigned i;",
        *finder.call,
        *loop("i", len(terms.common), [f"sum += common[{finder.row}];"]),
        "return sum;",
    )
    doc = "What the tables without the class add to all scores."
    arrays = (*own, Array("common", entries))
    add = Function("add_shared", plan.score, (f"const {state} *x",), body, doc, arrays)
    return (*finder.functions, add), "add_shared(x)"


def make_finder(terms: tuple[Term, ...], rows: int, features: int, state: str, prefix: str = "") -> Finder:
    """Choose the shortest way: directly for naive Bayes, two steps for trees, lists of steps otherwise.

    Parameters
    ----------
    terms
        The terms; none has an empty list of steps. Without terms there is nothing to find.
    rows
        Number of all their rows.
    features
        Number of features.
    state
        The C type of a code.
    prefix
        Begins all names, for a second set of terms in the same file.
    """
    if not terms:
        return Finder("")
    first = Array(f"{prefix}first", narrow([t.first for t in terms], limit=rows))
    own = [t.steps[-1][0] for t in terms]
    if all(t.steps[-1][1] == 1 and len(t.steps) <= 2 for t in terms):
        in_order = own == list(range(len(terms)))
        if any(len(t.steps) > 1 for t in terms):
            return _two_steps(terms, rows, features, state, prefix, in_order)
        if in_order:
            return Finder(f"{prefix}first[i] + x[i]", (first,))
        features_of = Array(f"{prefix}own", narrow(own, limit=features))
        return Finder(f"{prefix}first[i] + x[{prefix}own[i]]", (first, features_of))
    pairs = [pair for t in terms for pair in t.steps]
    arrays = (
        first,
        Array(f"{prefix}begin", narrow(np.cumsum([0, *(len(t.steps) for t in terms)]))),
        Array(f"{prefix}feature", narrow([f for f, _ in pairs], limit=features)),
        Array(f"{prefix}stride", narrow([s for _, s in pairs], limit=rows)),
    )
    kind = unsigned(rows)
    lines = [
        f"{kind} r = {prefix}first[i];",
        f"for (k = {prefix}begin[i]; k < {prefix}begin[i + 1]; ++k) {{",
        f"    r = ({kind})(r + {prefix}stride[k] * x[{prefix}feature[k]]);",
        "}",
        "row[i] = r;",
    ]
    return _finder_function(len(terms), kind, state, prefix, arrays, "unsigned i, k;", lines)


def _two_steps(terms: tuple[Term, ...], rows: int, features: int, state: str, prefix: str, in_order: bool) -> Finder:
    """Write two steps for each term; its numbers are next to each other, which saves registers."""
    kind, index = narrow([rows]).dtype, narrow([features]).dtype
    fields = [("first", kind), ("step", kind), ("up", index), *([] if in_order else [("own", index)])]
    entries = []
    for t in terms:
        up, step = t.steps[0] if len(t.steps) == 2 else (0, 0)
        entries.append((t.first, step, up, t.steps[-1][0])[: len(fields)])
    table = Array(f"{prefix}term", np.array(entries, dtype=np.dtype(fields)))
    term = f"{prefix}term[i]"
    row = f"{term}.first + {'x[i]' if in_order else f'x[{term}.own]'} + {term}.step * x[{term}.up]"
    lines = [f"row[i] = ({type_name(kind)})({row});"]
    return _finder_function(len(terms), type_name(kind), state, prefix, (table,), "unsigned i;", lines)


def _finder_function(
    count: int, kind: str, state: str, prefix: str, arrays: tuple[Array, ...], counters: str, lines: list[str]
) -> Finder:
    parameters = (f"const {state} *x", f"{kind} *row")
    body = (counters, *loop("i", count, lines))
    function = Function(f"{prefix}find_rows", "void", parameters, body, arrays=arrays)
    return Finder(
        f"{prefix}row[i]",
        function=function,
        declare=(f"{kind} {prefix}row[{count}];",),
        call=(f"{prefix}find_rows(x, {prefix}row);",),
    )


def _float_sums(plan: TablePlan, finder: Finder, dialect: Dialect) -> tuple[list[Array], list[str]]:
    terms, classes = plan.terms, plan.classes
    arrays = [Array("start", terms.constant.astype(np.float64).sum(axis=0).astype(np.float32))]
    copy = loop("c", classes, ["sum[c] = start[c];"])
    if not terms.terms:
        return arrays, ["unsigned c;", *copy, "(void)x;"]
    lines = [
        f"{dialect.pointer('float')}entry = table + (uint32_t)({finder.row}) * {classes}U;",
        *loop("c", classes, ["sum[c] += entry[c];"]),
    ]
    body = [*finder.declare, "unsigned i, c;", *finder.call, *copy, *loop("i", len(terms.terms), lines)]
    return [*arrays, Array("table", terms.rows.astype(np.float32).reshape(-1))], body


@dataclass(frozen=True)
class _Arithmetic:
    """How packed codes are added up."""

    kind: str  # of a sum
    levels: bool  # whether a code is the number of a level, instead of a value
    start: np.ndarray

    @property
    def accumulator(self) -> str:
        return "int32_t" if self.levels else "uint32_t"

    def number(self, value: int) -> str:
        return str(value) if self.levels else f"{value}U"


@dataclass(frozen=True)
class _Bank:
    """Planes of one shape that follow each other, read in one loop."""

    number: int
    planes: list[Plane]
    terms: int
    how: _Arithmetic
    pointer: str  # the type of a pointer into them

    @property
    def plane(self) -> Plane:
        return self.planes[0]

    @property
    def several(self) -> bool:
        return len(self.planes) > 1

    @property
    def chunked(self) -> bool:
        return self.plane.shape.chunk < self.terms

    @property
    def used(self) -> int:
        """The number of accumulators."""
        return min(self.plane.count, self.plane.shape.each)

    def text(self, lines: list[str]) -> list[str]:
        """Write lines for all planes."""
        head = f"/* classes {self.plane.first} to {self.planes[-1].classes[-1]} */"
        if not self.several:
            return [head, *block("", lines)]
        return [head, *loop("g", len(self.planes), [f"{self.pointer}plane = plane{self.number}[g];", *lines])]


def _packed(plan: TablePlan, finder: Finder, dialect: Dialect, how: _Arithmetic) -> tuple[list[Array], list[str]]:
    """Write one loop over the terms for each bank."""
    terms, count = plan.terms, len(plan.terms.terms)
    if not count:
        return [], [*(f"sum[{c}] = {v};" for c, v in enumerate(how.start.tolist())), "(void)x;"]
    largest = np.maximum.reduceat(terms.rows.max(axis=1), [t.first for t in terms.terms]).tolist()
    cut = planes(plan.classes, plan.bits, largest, start=int(how.start.max()), lanes=not how.levels)
    groups = [list(group) for _, group in groupby(cut, key=lambda plane: (plane.shape, plane.count))]
    pointers = [dialect.pointer(f"uint{group[0].shape.width}_t") for group in groups]
    banks = [_Bank(i, group, count, how, p) for i, (group, p) in enumerate(zip(groups, pointers, strict=True))]
    arrays, fill = [], list(finder.call)
    if how.levels:
        assert plan.values is not None
        arrays.append(Array("level", plan.values.astype(np.int32)))
    kind, declare = unsigned(len(terms.rows)), list(finder.declare)
    if not finder.function:
        declare += [f"{kind} row[{count}];"]
        fill = loop("i", count, [f"row[i] = ({kind})({finder.row});"])
    chunked = any(bank.chunked for bank in banks)
    if chunked:
        arrays.append(Array("start", narrow(how.start)))
        fill += loop("i", plan.classes, ["sum[i] = start[i];"])
    counters = ["g"] if any(bank.several for bank in banks) else []
    counters += ["i"] if chunked or not finder.function else []
    body = [*declare, f"const {kind} *r{', *end' if chunked else ''};"]
    body += ([f"unsigned {', '.join(counters)};"] if counters else []) + fill
    for bank in banks:
        words = np.stack([plane.words(terms.rows) for plane in bank.planes])
        arrays.append(Array(f"plane{bank.number}", words if bank.several else words[0]))
        first = np.array([_first(plane, how) for plane in bank.planes])
        if bank.several and not bank.chunked:
            arrays.append(Array(f"start{bank.number}", first.astype(np.int32 if how.levels else np.uint32)))
        body += _chunks(bank) if bank.chunked else _at_once(bank, first[0].tolist())
    return arrays, body


def _at_once(bank: _Bank, first: list[int]) -> list[str]:
    """Write the loop over all terms for planes of one shape, whose accumulators begin with the start."""
    plane, shape, how, lines = bank.plane, bank.plane.shape, bank.how, []
    for j, begin in enumerate(first):
        value = f"start{bank.number}[g][{j}]" if bank.several else how.number(begin)
        lines.append(f"{how.accumulator} a{j} = {value};")
    lines += block(f"for (r = row; r < row + {bank.terms}; ++r)", _adds(bank))
    lines += [] if how.levels else _untangle(bank)
    for i in range(plane.count):
        lane, j = plane.position(i)
        value = f"a{j} >> {lane * shape.lane}" if lane else f"a{j}"
        if plane.count > (lane + 1) * shape.each + j:  # the next lane is in use
            value = f"{f'({value})' if lane else value} & 0x{(1 << shape.lane) - 1:X}U"
        index = f"{plane.first}U + {plane.count}U * g + {i}U" if bank.several else f"{plane.first + i}"
        lines.append(f"sum[{index}] = {value if how.kind == how.accumulator else f'({how.kind})({value})'};")
    return bank.text(lines)


def _chunks(bank: _Bank) -> list[str]:
    """Write the loops over chunks of terms, after each of which the lanes are emptied."""
    plane, how, used, end = bank.plane, bank.how, bank.used, f"row + {bank.terms}"
    lines = [f"{how.accumulator} {', '.join(f'a{j} = 0' for j in range(used))};", f"end = r + {plane.shape.chunk};"]
    if bank.terms % plane.shape.chunk:
        lines += block(f"if (end > {end})", [f"end = {end};"])
    lines += ["do {", *indent(_adds(bank)), "} while (++r < end);", *_untangle(bank)]
    first = f"{plane.first}U" + (f" + {plane.count}U * g" if bank.several else "")
    empty = []
    for j in range(used):
        target, value = f"sum[i + {j}U]" if j else "sum[i]", f"(a{j} & 0x{(1 << plane.shape.lane) - 1:X}U)"
        empty += [f"{target} = ({how.kind})({target} + {value});", f"a{j} >>= {plane.shape.lane};"]
    lines += block(f"for (i = {first}; i < {first} + {plane.count}U; i += {used}U)", empty)
    return bank.text(["r = row;", "do {", *indent(lines), f"}} while (r < {end});"])


def _adds(bank: _Bank) -> list[str]:
    """Write what a word adds to the accumulators.

    Codes are cut out with as few operations as possible: the first accumulator takes whole words, and of a single lane
    the others take all that lies above them. `_untangle` subtracts the surplus once, at the end.
    """
    plane, used = bank.plane, bank.used
    mask = (1 << plane.bits) - 1
    lines = [f"const uint32_t w = {'plane' if bank.several else f'plane{bank.number}'}[*r];"]
    for j in range(used):
        code = f"w >> {j * plane.bits}" if j else "w"
        if bank.how.levels:
            whole = j == used - 1 and plane.count * plane.bits == plane.shape.width
            code = f"level[{code if whole else f'({code}) & 0x{mask:X}U' if j else f'w & 0x{mask:X}U'}]"
        elif j and plane.shape.lanes > 1:
            code = f"({code}) & 0x{sum(mask << lane * plane.shape.lane for lane in range(plane.shape.lanes)):X}U"
        lines.append(f"a{j} += {code};")
    return lines


def _untangle(bank: _Bank) -> list[str]:
    """Write what takes from the accumulators the codes that lay above theirs."""
    plane, used = bank.plane, bank.used
    if plane.shape.lanes == 1:
        lines = [f"a{j} -= a{j + 1} << {plane.bits};" for j in range(used - 1)]
    else:
        lines = [f"a0 -= a{j} << {j * plane.bits};" for j in range(1, used)]
    return ["/* subtract the codes that lie above */", *lines] if lines else []


def _first(plane: Plane, how: _Arithmetic) -> list[int]:
    """Return what the accumulators begin with so that the start comes out of them in the end."""
    values = [int(v) for v in how.start[list(plane.classes)]]
    if how.levels:
        return values
    first = [0] * min(plane.count, plane.shape.each)
    for i, value in enumerate(values):
        lane, j = plane.position(i)
        for k in range(j + 1) if plane.shape.lanes == 1 else {0, j}:
            first[k] += value << lane * plane.shape.lane + (j - k) * plane.bits
    return [value % 2**32 for value in first]
