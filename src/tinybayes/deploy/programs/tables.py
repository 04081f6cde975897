"""Functions that add up table rows for all classes: packed codes in lanes, levels of a codebook, or floats."""

from dataclasses import dataclass

import numpy as np

from tinybayes.deploy.programs.finder import Finder, make_finder
from tinybayes.deploy.programs.gaps import gap_finder, gap_functions, index_type, make_forest
from tinybayes.deploy.programs.packing import Bank, table_banks
from tinybayes.deploy.programs.plan import TablePlan
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
    unsigned,
)
from tinybayes.model import Fixed


def table_sums(plan: TablePlan, dialect: Dialect) -> Sums:
    """Make the sums over all terms.

    Fixed-point codes are minus log-probabilities, so that their smallest sum wins. They are added up in lanes.
    """
    terms, fixed, gaps = plan.terms, isinstance(plan.form, Fixed), plan.features.gaps and len(plan.terms.terms) > 0
    forest = make_forest(plan) if gaps else None
    finder = gap_finder(plan, forest) if gaps else make_finder(terms.terms, len(terms.rows), plan.features)
    banks: list[Bank] = []
    if plan.values is None:
        kind = "float"
        arrays, body = _naive_floats(plan, finder) if gaps and not forest else _float_sums(plan, finder, dialect)
    else:
        start = plan.worth(terms.constant).sum(axis=0)
        kind = "int32_t" if not fixed or gaps else "uint16_t" if plan.reach < 2**16 else "uint32_t"
        how = _Arithmetic(kind, not fixed, -start if fixed else start)
        banks = _banks(plan, finder, how) if terms.terms else []
        arrays, body = _packed(plan, finder, dialect, how, banks)
    body += [f"return {finder.complete};"] if finder.complete else []
    doc = f"Adds up the tables; the {'smallest' if fixed else 'largest'} sum wins."
    doc += " Returns zero where a value is missing." if finder.complete else ""
    parameters = (f"const {plan.features.state} *x", f"{kind} *sum")
    returns = "unsigned" if finder.complete else "void"
    arrays = [*finder.arrays, *arrays]
    if not gaps:
        add_up = Function("add_up", returns, parameters, tuple(body), doc, tuple(arrays))
        functions, shared = _shared(plan)
        return Sums((*finder.functions, add_up, *functions), kind, fixed, shared, shift=plan.shift)
    add_up = Function("add_up", returns, parameters, tuple(body), doc)
    more, before, after = gap_functions(plan, dialect, forest, banks)
    known = {array.name for array in arrays}
    tables = (*arrays, *(array for array in more if array.name not in known))
    functions = (*finder.functions, *before, add_up, *after)
    return Sums(functions, kind, fixed, tables=tables, gaps=bool(finder.complete), shift=plan.shift)


def _shared(plan: TablePlan) -> tuple[tuple[Function, ...], str]:
    """Make the sum of the tables without the class: functions, and an expression that uses them."""
    terms = plan.terms
    if not terms.has_common:
        return (), ""
    total = plan.worth(terms.common_constant).sum()
    start = number(float(total)) if plan.values is None else str(int(total))
    if not terms.common:
        return (), start
    finder = make_finder(terms.common, len(terms.entries), plan.features, "common_")
    entries = plan.worth(terms.entries).astype(np.float32 if plan.values is None else np.int32)
    body = (
        *finder.declare,
        f"{plan.score} sum = {start};",
        "unsigned i;",
        *finder.call,
        *loop("i", len(terms.common), [f"sum += common[{finder.row}];"]),
        "return sum;",
    )
    doc = "What the tables without the class add to all scores."
    arrays = (*finder.arrays, Array("common", entries))
    add = Function("add_shared", plan.score, (f"const {plan.features.state} *x",), body, doc, arrays)
    return (*finder.functions, add), "add_shared(x)"


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


def _naive_floats(plan: TablePlan, finder: Finder) -> tuple[list[Array], list[str]]:
    """Write the sums of naive Bayes with gaps: the entry of a value, or of all values of a missing one."""
    terms, classes, index = plan.terms, plan.classes, index_type(len(plan.terms.rows))
    arrays = [Array("start", terms.constant.astype(np.float64).sum(axis=0).astype(np.float32))]
    arrays.append(Array("table", terms.rows.astype(np.float32).reshape(-1)))
    lines = [
        f"{index} k = r;",
        f"float all = table[(uint32_t)k * {classes}U + c];",
        *block("while (++k < end)", [f"all = log_add(all, table[(uint32_t)k * {classes}U + c]);"]),
        "sum[c] += all;",
    ]
    body = ["unsigned i, c;", *loop("c", classes, ["sum[c] = start[c];"])]
    return arrays, body + loop("i", len(terms.terms), [*finder.fill, *loop("c", classes, lines)])


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
class _Adder:
    """The lines that add up the words of a bank, in one loop."""

    number: int
    bank: Bank
    terms: int
    how: _Arithmetic
    pointer: str  # the type of a pointer into the words

    @property
    def several(self) -> bool:
        return self.bank.planes > 1

    @property
    def chunked(self) -> bool:
        return self.bank.shape.chunk < self.terms

    @property
    def used(self) -> int:
        """The number of accumulators."""
        return min(self.bank.codes, self.bank.shape.each)

    @property
    def first(self) -> str:
        """The first class of a plane, as an expression."""
        return f"{self.bank.first}U" + (f" + {self.bank.codes}U * g" if self.several else "")

    def text(self, lines: list[str]) -> list[str]:
        """Write lines for all planes."""
        head = f"/* classes {self.bank.first} to {self.bank.first + self.bank.count - 1} */"
        if not self.several:
            return [head, *block("", lines)]
        return [head, *loop("g", self.bank.planes, [f"{self.pointer}plane = plane{self.number}[g];", *lines])]


def _banks(plan: TablePlan, finder: Finder, how: _Arithmetic) -> list[Bank]:
    terms = plan.terms
    largest = np.maximum.reduceat(terms.rows.max(axis=1), [t.first for t in terms.terms]).tolist()
    largest = [largest[i] for i in finder.order] if finder.order else largest
    return table_banks(plan.classes, plan.bits, largest, start=int(how.start.max()), lanes=not how.levels)


def _packed(
    plan: TablePlan, finder: Finder, dialect: Dialect, how: _Arithmetic, banks: list[Bank]
) -> tuple[list[Array], list[str]]:
    """Write one loop over the terms for each bank."""
    terms, count = plan.terms, len(plan.terms.terms)
    if not count:
        return [], [*(f"sum[{c}] = {v};" for c, v in enumerate(how.start.tolist())), "(void)x;"]
    pointers = [dialect.pointer(f"uint{bank.shape.width}_t") for bank in banks]
    adders = [_Adder(i, bank, count, how, p) for i, (bank, p) in enumerate(zip(banks, pointers, strict=True))]
    arrays, fill = [], list(finder.call)
    if how.levels:
        assert plan.values is not None
        arrays.append(Array("level", plan.values.astype(np.int32)))
    kind, declare = unsigned(len(terms.rows)), list(finder.declare)
    if not finder.functions:
        declare += [f"{kind} row[{count}];"]
        fill = loop("i", count, finder.fill or [f"row[i] = ({kind})({finder.row});"])
    chunked = any(adder.chunked for adder in adders)
    if chunked:
        arrays.append(Array("start", narrow(how.start)))
        fill += loop("i", plan.classes, [f"sum[i] = {'(int32_t)' if how.kind == 'int32_t' else ''}start[i];"])
    counters = ["g"] if any(adder.several for adder in adders) else []
    counters += ["i"] if chunked or not finder.functions else []
    body = [*declare, f"const {kind} *r{', *end' if chunked else ''};"]
    body += ([f"unsigned {', '.join(counters)};"] if counters else []) + fill
    for adder in adders:
        words, name = adder.bank.words(terms.rows).T, f"plane{adder.number}"
        arrays.append(Array(name, words if adder.several else words[0]))
        first = _first(adder.bank, how)
        if adder.several and not adder.chunked:
            arrays.append(Array(f"start{adder.number}", first.astype(np.int32 if how.levels else np.uint32)))
        body += _chunks(adder) if adder.chunked else _at_once(adder, first[0].tolist())
    return arrays, body


def _at_once(adder: _Adder, first: list[int]) -> list[str]:
    """Write the loop over all terms for words of one shape, whose accumulators begin with the start."""
    bank, shape, how, lines = adder.bank, adder.bank.shape, adder.how, []
    for j, begin in enumerate(first):
        value = f"start{adder.number}[g][{j}]" if adder.several else how.number(begin)
        lines.append(f"{how.accumulator} a{j} = {value};")
    lines += block(f"for (r = row; r < row + {adder.terms}; ++r)", _adds(adder))
    lines += [] if how.levels else _untangle(adder)
    for i in range(bank.codes):
        lane, j = divmod(i, shape.each)
        value = f"a{j} >> {lane * shape.lane}" if lane else f"a{j}"
        if bank.codes > (lane + 1) * shape.each + j:  # the next lane is in use
            value = f"{f'({value})' if lane else value} & 0x{(1 << shape.lane) - 1:X}U"
        index = f"{adder.first} + {i}U" if adder.several else f"{bank.first + i}"
        lines.append(f"sum[{index}] = {value if how.kind == how.accumulator else f'({how.kind})({value})'};")
    return adder.text(lines)


def _chunks(adder: _Adder) -> list[str]:
    """Write the loops over chunks of terms, after each of which the lanes are emptied."""
    shape, how, used, end = adder.bank.shape, adder.how, adder.used, f"row + {adder.terms}"
    lines = [f"{how.accumulator} {', '.join(f'a{j} = 0' for j in range(used))};", f"end = r + {shape.chunk};"]
    if adder.terms % shape.chunk:
        lines += block(f"if (end > {end})", [f"end = {end};"])
    lines += ["do {", *indent(_adds(adder)), "} while (++r < end);", *_untangle(adder)]
    empty = []
    for j in range(used):
        target, value = f"sum[i + {j}U]" if j else "sum[i]", f"(a{j} & 0x{(1 << shape.lane) - 1:X}U)"
        before = f"(uint32_t){target}" if how.kind == "int32_t" else target
        empty += [f"{target} = ({how.kind})({before} + {value});", f"a{j} >>= {shape.lane};"]
    classes = f"i = {adder.first}; i < {adder.first} + {adder.bank.codes}U; i += {used}U"
    lines += block(f"for ({classes})", empty)
    return adder.text(["r = row;", "do {", *indent(lines), f"}} while (r < {end});"])


def _adds(adder: _Adder) -> list[str]:
    """Write the lines that add a word to the accumulators.

    Codes are cut out with as few operations as possible: the first accumulator takes whole words, and of a single lane
    the others take all that lies above them. `_untangle` subtracts the surplus once, at the end.
    """
    bits, shape, used = adder.bank.bits, adder.bank.shape, adder.used
    mask = (1 << bits) - 1
    lines = [f"const uint32_t w = {'plane' if adder.several else f'plane{adder.number}'}[*r];"]
    for j in range(used):
        code = f"w >> {j * bits}" if j else "w"
        if adder.how.levels:
            whole = j == used - 1 and adder.bank.codes * bits == shape.width
            code = f"level[{code if whole else f'({code}) & 0x{mask:X}U' if j else f'w & 0x{mask:X}U'}]"
        elif j and shape.lanes > 1:
            code = f"({code}) & 0x{sum(mask << lane * shape.lane for lane in range(shape.lanes)):X}U"
        lines.append(f"a{j} += {code};")
    return lines


def _untangle(adder: _Adder) -> list[str]:
    """Write the lines that subtract from the accumulators the codes that lay above theirs."""
    bits, used = adder.bank.bits, adder.used
    if adder.bank.shape.lanes == 1:
        lines = [f"a{j} -= a{j + 1} << {bits};" for j in range(used - 1)]
    else:
        lines = [f"a0 -= a{j} << {j * bits};" for j in range(1, used)]
    return ["/* subtract the codes that lie above */", *lines] if lines else []


def _first(bank: Bank, how: _Arithmetic) -> np.ndarray:
    """Return the first values of the accumulators of each plane, so that the start comes out of them in the end."""
    values = how.start[bank.first : bank.first + bank.count].reshape(bank.planes, -1).astype(np.int64)
    if how.levels:
        return values
    shape = bank.shape
    first = np.zeros((bank.planes, min(bank.codes, shape.each)), np.int64)
    for i in range(bank.codes):
        lane, j = divmod(i, shape.each)
        for k in range(j + 1) if shape.lanes == 1 else {0, j}:
            first[:, k] += values[:, i] << lane * shape.lane + (j - k) * bank.bits
    return first % 2**32  # sums that wrapped around are right in their last 32 bits
