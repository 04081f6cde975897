"""The functions of programs that sum out missing values, one class at a time.

A code that is not a state of its feature is missing. In naive Bayes every missing feature adds the logarithm of the sum
of its entries. In a forest features send messages to their parents, children first: a message for each value that the
parent may have. What the children of a feature sent is added up in a *slot*, one entry for each value of the feature.
Features go depth first, so that all features at one depth share one slot, which is cleared after use.

The arithmetic of integers is that of `tinybayes.infer.integers.gap_arithmetic`. Sums of fixed-point codes are minus
logarithms: the smaller one of two is the more probable one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinybayes.deploy.programs.finder import Finder
from tinybayes.deploy.programs.forest import Branch, branches
from tinybayes.deploy.programs.packing import Bank
from tinybayes.deploy.programs.plan import TablePlan
from tinybayes.deploy.programs.program import (
    Array,
    Dialect,
    Function,
    block,
    indent,
    loop,
    narrow,
    number,
    type_name,
    unsigned,
)
from tinybayes.infer.integers import PRECISE
from tinybayes.model import Fixed

FAR = 17.0  # nats: exp(-17) is less than half a unit in the last place of 1
# Polynomials of degree 5 and 8 from the highest power down: 2**-x, and log(1 + x), for x from 0 to 1. Fitted in the
# Chebyshev nodes; together they are within 3e-7 of log(1 + exp(-d)).
POWER = (-9.4755366e-4, 9.210875e-3, -5.5299606e-2, 2.401795e-1, -6.931432e-1, 9.9999994e-1)
LOGARITHM = (
    *(-8.574676e-3, 4.4214193e-2, -1.0785368e-1, 1.7757024e-1, -2.4499612e-1),
    *(3.3276176e-1, -4.999745e-1, 9.999998e-1, 0.0),
)

LOG_ADD = "The logarithm of a sum of probabilities, from their logarithms{how}."
ENTRY = "The entry of a row of the tables for a class."
CLEAR = "Volatile, so that no compiler calls memset here, which takes more code than the loop."
MESSAGE = "The sum over consecutive values of a feature, together with what lies below each of them."
ADD_UP = "The sums of a row with missing values, in the unit of scores; {which} wins."


@dataclass(frozen=True)
class Forest:
    """The terms of a network with edges between features, depth first, children before parents."""

    terms: tuple[Branch, ...]
    slots: dict[int, int]  # where the slot of each feature begins; the sum of the class comes before all
    size: int  # entries of all slots, and that sum


def make_forest(plan: TablePlan) -> Forest | None:
    """Return the forest of a plan with gaps; None where no feature has another one as its parent."""
    listed = {branch.feature: branch for branch in branches(plan)}
    if all(branch.parent < 0 for branch in listed.values()):
        return None
    children: dict[int, list[int]] = {}
    for branch in listed.values():
        children.setdefault(branch.parent, []).append(branch.feature)
    order, depth, pending = [], {-1: -1}, list(children[-1])
    while pending:  # parents before children; reversed it is the other way around
        feature = pending.pop()
        order.append(feature)
        depth[feature] = depth[listed[feature].parent] + 1
        pending += children.get(feature, [])
    widest = [0] * (max(depth.values()) + 1)
    for feature in order:
        widest[depth[feature]] = max(widest[depth[feature]], listed[feature].states)
    begin = np.cumsum([1, *widest]).tolist()
    slots = {feature: begin[depth[feature]] for feature in order}
    return Forest(tuple(listed[feature] for feature in reversed(order)), slots, begin[-1])


def index_type(rows: int) -> str:
    """Return the C type of the number of a row in expressions."""
    return "unsigned" if rows < 2**16 else "uint32_t"


def integer_log_add(plan: TablePlan) -> Function:
    """Make the function that interpolates in a table of 33 entries."""
    rule = plan.arithmetic
    assert rule is not None
    smallest, parameters = isinstance(plan.form, Fixed), ("int32_t a", "int32_t b")
    doc = LOG_ADD.format(how=f", in units of 2**{-rule.fraction} nats")
    if rule.fraction < 0:  # the whole table is zero
        return Function("log_add", "int32_t", parameters, (f"return a {'<' if smallest else '>'} b ? a : b;",), doc)
    finer = rule.fraction - PRECISE
    more = "log_table[d >> 8] - ((log_table[d >> 8] - log_table[(d >> 8) + 1]) * (d & 255) >> 8)"
    lines = (
        f"int32_t d = {'b - a' if smallest else 'a - b'};",
        *block("if (d < 0)", ["a = b;", "d = -d;"]),
        *block(f"if (d >> {rule.fraction + 3})", ["return a; /* the other one is too small */"]),
        *([f"d {'>>' if finer > 0 else '<<'}= {abs(finer)};"] if finer else []),
        f"return a {'-' if smallest else '+'} (int32_t)({more});",
    )
    # Entries of 16 bits become int or, where that has 16 bits, do not fall below zero; those of 32 bits are signed.
    table = rule.table.astype(np.uint16 if rule.table.max() < 2**16 else np.int32)
    return Function("log_add", "int32_t", parameters, lines, doc, (Array("log_table", table),))


def float_log_add(dialect: Dialect) -> tuple[Function, Function]:
    """Make the function that computes with polynomials, and the one that it calls."""
    body = ("float sum = 0.0F;", "do {", "    sum = sum * x + *p++;", "} while (--count);", "return sum;")
    parameters = (f"{dialect.pointer('float')}p", "unsigned count", "float x")
    polynomial = Function("polynomial", "float", parameters, body)
    lines = (
        "float d = a - b;",
        "unsigned n;",
        *block("if (d < 0.0F)", ["a = b;", "d = -d;"]),
        *block(f"if (!(d < {number(FAR)}))", ["return a; /* the other one is too small, or both are impossible */"]),
        "d *= 1.44269504F;",
        "n = (unsigned)d;",
        f"d = polynomial(power, {len(POWER)}U, d - (float)n);",
        *block("while (n--)", ["d *= 0.5F;"]),
        f"return a + polynomial(logarithm, {len(LOGARITHM)}U, d);",
    )
    arrays = (Array("power", np.array(POWER, np.float32)), Array("logarithm", np.array(LOGARITHM, np.float32)))
    doc = LOG_ADD.format(how="")
    return polynomial, Function("log_add", "float", ("float a", "float b"), lines, doc, arrays)


def packed_entry(plan: TablePlan, banks: Sequence[Bank]) -> Function:
    """Make the function that cuts one code out of the words of the banks."""
    slack = any(bank.shape.lane > bank.shape.each * bank.bits and bank.codes > bank.shape.each for bank in banks)
    alone = max(bank.codes for bank in banks) == 1  # no word has several codes
    lines = ["uint32_t w;"]
    for i, bank in enumerate(banks):
        own = [*_word(i, bank, alone), *(_shift(bank) if slack else [])]
        if len(banks) == 1:
            lines += own
        elif i == len(banks) - 1:
            lines += ["} else {", *indent(own), "}"]
        else:
            head = f"if (c < {bank.first + bank.count}U) {{"
            lines += [f"}} else {head}" if i else head, *indent(own)]
    if plan.classes == 1:
        lines.append("(void)c;")
    bits = plan.bits
    code = "w" if alone else f"w >> {'c' if slack else f'{bits}U * c'} & 0x{(1 << bits) - 1:X}U"
    if not isinstance(plan.form, Fixed):
        value = f"level[{code}]"
    else:
        value = f"(int32_t)(({code}) << {plan.shift})" if plan.shift else f"(int32_t)({code})"
    parameters = (f"{index_type(len(plan.terms.rows))} r", "unsigned c")
    return Function("entry_of", "int32_t", parameters, (*lines, f"return {value};"), ENTRY, noinline=True)


def _word(number: int, bank: Bank, alone: bool) -> list[str]:
    """Write lines that set ``w`` to the word of class ``c``, and then ``c`` to the position of its code in the word."""
    room, local = bank.shape.room, f"c - {bank.first}U" if bank.first else "c"
    if alone:
        return [f"w = plane{number}[{local}][r];" if bank.planes > 1 else f"w = plane{number}[r];"]
    lines = [f"c -= {bank.first}U;"] if bank.first else []
    if bank.planes == 1:
        return [*lines, f"w = plane{number}[r];"]
    plane = f"const unsigned g = {_quotient('c', room, bank.count)};"
    return [*lines, plane, f"w = plane{number}[g][r];", f"c -= {room}U * g;"]


def _shift(bank: Bank) -> list[str]:
    """Write the line that turns ``c`` from the position of a code into the bits below it."""
    shape = bank.shape
    gap = shape.lane - shape.each * bank.bits
    more = f" + {gap}U * {_quotient('c', shape.each, shape.room)}" if gap and bank.codes > shape.each else ""
    return [f"c = {bank.bits}U * c{more};"]


def _quotient(value: str, divisor: int, limit: int) -> str:
    """Write a division of numbers below `limit`: small cores have no instruction for it, but one to multiply."""
    if divisor & (divisor - 1) == 0:
        return f"({value} / {divisor}U)"
    by = 2**16 // divisor + 1
    if any(n * by >> 16 != n // divisor for n in range(limit)):
        return f"({value} / {divisor}U)"
    return f"(unsigned)((uint32_t){value} * {by}U >> 16)"


def gap_finder(plan: TablePlan, forest: Forest | None) -> Finder:
    """Write how rows are found, and whether a value is missing."""
    features, rows, index = len(plan.variables), len(plan.terms.rows), index_type(len(plan.terms.rows))
    if forest is None:
        first = Array("first", narrow([*(t.first for t in plan.terms.terms), rows]))
        own = [t.steps[-1][0] for t in plan.terms.terms]
        in_order = own == list(range(len(own)))
        code = "x[i]" if in_order else "x[own[i]]"
        arrays = (first,) if in_order else (first, Array("own", narrow(own, limit=features)))
        if plan.values is None:
            bounds = (f"{index} r = first[i], end = first[i + 1U];",)
            one = block(f"if ({code} < end - r)", [f"r += {code};", "end = r + 1U;"])
            return Finder("", arrays, fill=(*bounds, *one))
        fill = (
            f"{index} at = first[i];",
            f"if ({code} < ({index})first[i + 1U] - at) {{",
            f"    at += {code};",
            "} else {",
            "    complete = 0;",
            "}",
            f"row[i] = ({unsigned(rows)})at;",
        )
        return Finder("", arrays, (), ("unsigned complete = 1;",), fill=fill, complete="complete")
    row_type, feature_type = narrow([rows]).dtype, narrow([features]).dtype
    fields = [("first", row_type), ("own", feature_type), ("up", feature_type)]
    # The parent of a root is itself.
    terms = [(b.first, b.feature, b.parent if b.parent >= 0 else b.feature) for b in forest.terms]
    arrays = (Array("term", np.array(terms, dtype=np.dtype(fields))), Array("states", narrow(plan.terms.states)))
    kind = type_name(row_type)
    lines = (
        "const unsigned own = term[i].own, up = term[i].up, k = states[own];",
        f"{index} r = ({index})term[i].first + x[own];",
        *block("if (x[own] >= k)", ["return 0;"]),
        *block("if (up != own)", [f"r += {_cast(index)}k * x[up];"]),
        f"row[i] = ({kind})r;",
    )
    doc = "The rows of all terms; returns zero where a value is missing."
    body = ("unsigned i;", *loop("i", len(terms), lines), "return 1;")
    find = Function("find_rows", "unsigned", (f"const {plan.features.state} *x", f"{kind} *row"), body, doc)
    firsts = [t.first for t in plan.terms.terms]
    declare, call = (f"{kind} row[{len(terms)}];",), tuple(block("if (!find_rows(x, row))", ["return 0;"]))
    order = tuple(firsts.index(branch.first) for branch in forest.terms)
    return Finder("row[i]", arrays, (find,), declare, call, complete="1", order=order)


def gap_functions(
    plan: TablePlan, dialect: Dialect, forest: Forest | None, banks: Sequence[Bank]
) -> tuple[tuple[Array, ...], tuple[Function, ...], tuple[Function, ...]]:
    """Return tables, functions that come before ``add_up``, and ``add_up_gaps`` with those that only it calls."""
    if plan.values is None:
        log_add = float_log_add(dialect)
        if forest is None:
            return (), log_add, ()
        slots, messages = forest_gaps(plan, forest)
        return slots, (), (*log_add, *messages)
    functions = (integer_log_add(plan), packed_entry(plan, banks))
    if forest is None:
        return (), (), (*functions, naive_gaps(plan))
    slots, messages = forest_gaps(plan, forest)
    return (*slots, *_start(plan)), (), (*functions, *messages)


def _start(plan: TablePlan) -> tuple[Array, ...]:
    """Return what the sums of all classes begin with, if it is not zero."""
    start = plan.worth(plan.terms.constant).sum(axis=0)
    fixed = isinstance(plan.form, Fixed)
    return (Array("start", narrow(-start if fixed else start, signed=not fixed)),) if start.any() else ()


def _cast(index: str) -> str:
    """Write a cast of ``unsigned``, which may have 16 bits, to the type of a row's number."""
    return "" if index == "unsigned" else f"({index})"


def naive_gaps(plan: TablePlan) -> Function:
    """Make the function that corrects sums in which missing values had their first state."""
    terms, index = plan.terms.terms, index_type(len(plan.terms.rows))
    own = "x[i]" if [t.steps[-1][0] for t in terms] == list(range(len(terms))) else "x[own[i]]"
    shift = loop("c", plan.classes, [f"sum[c] <<= {plan.shift};"]) if plan.shift else []
    correct = [
        "const int32_t counted = entry_of(r, c);",
        "int32_t all = counted;",
        f"{index} k = r;",
        *block("while (++k < end)", ["all = log_add(all, entry_of(k, c));"]),
        "sum[c] += all - counted;",
    ]
    bounds = f"const {index} r = first[i], end = first[i + 1U];"
    lines = [bounds, *block(f"if ({own} >= end - r)", loop("c", plan.classes, correct))]
    body = ("unsigned i, c;", *shift, *loop("i", len(terms), lines))
    doc = "Sums over all states of missing features, instead of their first states; in the unit of scores."
    return Function("add_up_gaps", "void", (f"const {plan.features.state} *x", "int32_t *sum"), body, doc)


def forest_gaps(plan: TablePlan, forest: Forest) -> tuple[tuple[Array, ...], tuple[Function, ...]]:
    """Make the function that passes messages up, those that it calls, and their tables but `start`."""
    kind, classes, index = plan.score, plan.classes, index_type(len(plan.terms.rows))
    begin = f"(int32_t)((uint32_t)start[c] << {plan.shift})" if plan.shift else f"({kind})start[c]"
    if kind == "int32_t" and not _start(plan):
        begin = "0"
    term = [
        "const unsigned own = term[i].own, up = term[i].up, k = states[own];",
        f"{kind} *under = below + slot[own], *over = below;",
        "unsigned count = k, ups = 1;",
        f"{index} r = term[i].first;",
        *block("if (x[own] < k)", ["r += x[own];", "under += x[own];", "count = 1;"]),
        *block(
            "if (up != own)",
            [
                "over += slot[up];",
                "ups = states[up];",
                *block("if (x[up] < ups)", ["over += x[up];", f"r += {_cast(index)}k * x[up];", "ups = 1;"]),
            ],
        ),
        "do {",
        "    *over++ += message(r, c, under, count);",
        "    r += k;",
        "} while (--ups);",
        "clear(under, count);",
    ]
    body = (
        f"{kind} below[{forest.size}];",
        "unsigned i, c;",
        f"clear(below, {forest.size}U);",
        *loop("c", classes, [f"below[0] = {begin};", *loop("i", len(forest.terms), term), "sum[c] = below[0];"]),
    )
    doc = ADD_UP.format(which="the smallest" if isinstance(plan.form, Fixed) else "the largest")
    add_up = Function("add_up_gaps", "void", (f"const {plan.features.state} *x", f"{kind} *sum"), body, doc)
    slots = [forest.slots.get(feature, 0) for feature in range(len(plan.variables))]
    return (Array("slot", narrow(slots)),), (*_messages(kind, classes, index), add_up)


def _messages(kind: str, classes: int, index: str) -> tuple[Function, Function]:
    """Make the functions that clear slots and add up a message; they have all registers for themselves."""
    lines = (f"volatile {kind} *p = a;", "do {", "    *p++ = 0;", "} while (--count);")
    clear = Function("clear", "void", (f"{kind} *a", "unsigned count"), lines, CLEAR, noinline=True)
    entry = "entry_of(r, c)" if kind == "int32_t" else f"table[(uint32_t)r * {classes}U + c]"
    body = (
        f"const {kind} *first = under;",
        f"{kind} all = 0;",
        "do {",
        f"    const {kind} one = {entry} + *under;",
        "    all = under == first ? one : log_add(all, one);",
        "    ++under;",
        "    ++r;",
        "} while (--count);",
        "return all;",
    )
    parameters = (f"{index} r", "unsigned c", f"const {kind} *under", "unsigned count")
    return clear, Function("message", kind, parameters, body, MESSAGE, noinline=True)
