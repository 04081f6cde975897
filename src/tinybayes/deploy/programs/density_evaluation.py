"""The functions that evaluate a density in the C family: the integers of `tinybayes.infer.integer_density`."""

import numpy as np

from tinybayes.deploy.programs.circuit import memory_type
from tinybayes.deploy.programs.density_plan import DensityPlan
from tinybayes.deploy.programs.gaps import index_type
from tinybayes.deploy.programs.program import Array, Dialect, Function, block, indent, loop, narrow, records
from tinybayes.infer.density_layout import LEAF, PLUS, TIMES
from tinybayes.infer.integer_density import REACH, STEP, ZERO, level_bits

LOG_ADD = "The logarithm of a sum of probabilities, from their logarithms."
PRODUCT = "The logarithm of a product; that of zero stays what it is."
PARAMETER = "The logarithm of a parameter."
EVALUATE = "The logarithm of the value of the circuit, group by group."


def evaluation(plan: DensityPlan, dialect: Dialect) -> list[Function]:
    """Make the function ``evaluate(x, memory)``, after those that it calls."""
    if not plan.density.layout.groups:
        return [_evaluate(plan, dialect)]
    sums = any(codes.shape[1] > 1 for codes in _summed(plan))
    return [
        *([_parameter(plan)] if any(codes.size for codes in plan.density.codes) else []),
        *([_log_add(plan)] if sums else []),
        *([_product()] if plan.density.zeros else []),
        _evaluate(plan, dialect),
    ]


def _summed(plan: DensityPlan) -> list[np.ndarray]:
    """Return the codes of groups that may add probabilities."""
    kinds = (PLUS,) if plan.density.sums_to_one else (PLUS, LEAF)
    return [c for g, c in zip(plan.density.layout.groups, plan.density.codes, strict=True) if g.kind in kinds]


def _parameter(plan: DensityPlan) -> Function:
    """Make the function of a parameter by its number: a level, packed to 1, 2, 4 or 8 bits, or 16 bits of its own."""
    density = plan.density
    codes = np.concatenate([*(codes.ravel() for codes in density.codes), np.empty(0, dtype=np.int64)])
    head = ("parameter", "int32_t", (f"{index_type(len(codes))} p",))
    if density.levels is None:
        zero = block("if (code[p] == 65535U)", [f"return {ZERO};"]) if density.zeros else []
        worth = f"{density.high} - " if density.high else "-"
        shifted = f"((int32_t)code[p] << {density.shift})" if density.shift else "(int32_t)code[p]"
        table = Array("code", codes.astype(np.uint16))
        return Function(*head, (*zero, f"return {worth}{shifted};"), PARAMETER, (table,))
    bits = level_bits(len(density.levels))
    each = 8 // bits
    padded = np.append(codes, np.zeros(-len(codes) % each, dtype=np.int64)).reshape(-1, each)
    packed = (padded << bits * np.arange(each)).sum(axis=1).astype(np.uint8)
    code = "code[p]"
    if each > 1:
        code = f"code[p >> {each.bit_length() - 1}] >> {bits} * (p & {each - 1}U) & {(1 << bits) - 1}"
    tables = (Array("code", packed), Array("level", density.levels.astype(np.int32)))
    return Function(*head, (f"return level[{code}];",), PARAMETER, tables)


def _log_add(plan: DensityPlan) -> Function:
    fraction = plan.density.fraction
    bits = fraction - STEP
    table = Array("log_table", plan.density.table.astype(np.uint16))
    below = f"(uint32_t)(log_table[i] - log_table[i + 1U]) * ((uint32_t)d & {(1 << bits) - 1}U)"
    body = (
        "int32_t d = a - b;",
        "unsigned i;",
        *block("if (d < 0)", ["a = b;", "d = -d;"]),
        *block(f"if (d >= {REACH << fraction})", ["return a; /* the other one is too small */"]),
        f"i = (unsigned)(d >> {bits});",
        f"return a + (int32_t)log_table[i] - (int32_t)(({below} + {1 << bits - 1}U) >> {bits});",
    )
    return Function("log_add", "int32_t", ("int32_t a", "int32_t b"), body, LOG_ADD, (table,))


def _product() -> Function:
    body = ("a += b;", f"return a < {ZERO} ? {ZERO} : a;")
    return Function("product", "int32_t", ("int32_t a", "int32_t b"), body, PRODUCT)


def _evaluate(plan: DensityPlan, dialect: Dialect) -> Function:
    """Make the function that fills all slots, group by group."""
    layout, kind = plan.density.layout, plan.features.state
    inputs = (f"const {kind} *x", f"{memory_type(dialect)} *memory")
    if not layout.groups:
        nothing = ("(void)x;", "(void)memory;", f"return {plan.density.constant};")
        return Function("evaluate", "int32_t", inputs, nothing, EVALUATE)
    fields, arrays, body_of = _groups(plan)
    index = index_type(sum(codes.size for codes in plan.density.codes))
    steps = [
        f"const unsigned count = {fields['count']}, from = {fields['begin']};",
        f"int32_t *out = memory->slot + {fields['slot']};",
        f"unsigned i{', j' if any('++j' in line for line in body_of) else ''};",
        *block(f"for (i = 0; i < {fields['repeat']}; ++i)", ["int32_t r;", *body_of, "out[i] = r;"]),
    ]
    root = f"memory->slot[{layout.root}]"
    body = [f"{index} p = 0;", "unsigned g;", *loop("g", len(layout.groups), steps)]
    if constant := plan.density.constant:
        root = f"product({root}, {constant})" if plan.density.zeros else f"{root} + {constant}"
    if plan.density.zeros:
        body += [f"const int32_t all = {root};", f"return all < {ZERO // 2} ? {ZERO} : all;"]
    else:
        body.append(f"return {root};")
    return Function("evaluate", "int32_t", inputs, tuple(body), EVALUATE, tuple(arrays))


def _groups(plan: DensityPlan) -> tuple[dict[str, str], list[Array], list[str]]:
    """Return the numbers of a group as expressions, their tables, and the lines that set ``r`` for each kind."""
    layout, zeros = plan.density.layout, plan.density.zeros
    pool: list[int] = []
    known: dict[tuple[int, ...], int] = {}
    numbers: dict[str, list[int]] = {name: [] for name in ("begin", "kind", "count", "repeat", "slot")}
    for group in layout.groups:
        begin = group.operands[0]
        if group.kind != LEAF:
            begin = known.setdefault(group.operands, len(pool))
            pool += group.operands if begin == len(pool) else ()
        count = group.parameters.shape[1] if group.kind != TIMES else len(group.operands)
        for name, number in zip(numbers, (begin, group.kind, count, group.repeat, group.slot), strict=True):
            numbers[name].append(number)
    fields, arrays = records("group", "g", numbers)
    arrays += [Array("operand", narrow(pool))] if pool else []

    def times(a: str, b: str) -> str:
        return f"product({a}, {b})" if zeros else f"{a} + {b}"

    term = times("parameter(p + j)", "memory->slot[operand[from + j]]")
    rest = "for (j = 1; j < count; ++j)"
    gap = ["r = 0;"]
    if not plan.density.sums_to_one:
        gap = ["r = parameter(p);", *block(rest, ["r = log_add(r, parameter(p + j));"])]
    own = "memory->slot[operand[from + j] + i]"
    bodies = {
        LEAF: [
            "if (x[from] < count) {",
            "    r = parameter(p + x[from]);",
            "} else { /* summed out */",
            *indent(gap),
            "}",
            "p += count;",
        ],
        TIMES: ["r = 0;", *block("for (j = 0; j < count; ++j)", [f"r = {times('r', own)};"])],
        PLUS: [
            f"r = {times('parameter(p)', 'memory->slot[operand[from]]')};",
            *block(rest, [f"r = log_add(r, {term});"]),
            "p += count;",
        ],
    }
    kinds = sorted(set(numbers["kind"]))
    lines = list(bodies[kinds[-1]])
    for kind in reversed(kinds[:-1]):
        lines = [f"if ({fields['kind']} == {kind}) {{", *indent(bodies[kind]), "} else {", *indent(lines), "}"]
    return fields, arrays, lines
