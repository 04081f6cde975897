"""Circuits as C99: the posterior of one variable given evidence on the others, in integers or in 32-bit floats."""

import heapq
from dataclasses import dataclass

import numpy as np

from tinybayes.cost import model_cost
from tinybayes.deploy.programs._c import text
from tinybayes.deploy.programs._names import Names
from tinybayes.deploy.programs._plan import plain, upwards
from tinybayes.errors import error
from tinybayes.infer.integer_circuit import UNIT, Analysis, analyse, encode
from tinybayes.model import Circuit
from tinybayes.model.circuit import INDICATOR, PRODUCT

ARITHMETIC = ("integer", "float")
INTEGERS = """typedef struct {
    uint32_t m;
    int16_t e;
} NUMBER;

/* m * 2**e with the highest bit of m set, or m = 0; what falls below the last bit is cut off. */
static NUMBER multiply(NUMBER a, NUMBER b)
{
    const uint64_t product = (uint64_t)a.m * b.m;
    NUMBER r;
    if (product >> 63) {
        r.m = (uint32_t)(product >> 32);
        r.e = (int16_t)(a.e + b.e + 32);
    } else {
        r.m = (uint32_t)(product >> 31);
        r.e = (int16_t)(r.m ? a.e + b.e + 31 : 0);
    }
    return r;
}

static NUMBER add(NUMBER a, NUMBER b)
{
    NUMBER t;
    uint32_t sum;
    int down;
    if (b.m == 0) {
        return a;
    }
    if (a.m == 0) {
        return b;
    }
    if (b.e > a.e) {
        t = a;
        a = b;
        b = t;
    }
    down = a.e - b.e;
    sum = a.m + (down > 31 ? 0U : b.m >> down);
    if (sum < a.m) {
        sum = (sum >> 1) | 0x80000000U;
        a.e = (int16_t)(a.e + 1);
    }
    a.m = sum;
    return a;
}

static int above(NUMBER a, NUMBER b)
{
    if (a.m == 0 || b.m == 0) {
        return a.m > b.m;
    }
    return a.e == b.e ? a.m > b.m : a.e > b.e;
}

static uint32_t share(NUMBER a, NUMBER total)
{
    const int down = total.e - a.e;
    return a.m == 0 || down > 63 ? 0U : (uint32_t)((((uint64_t)a.m << UNIT) / total.m) >> down);
}
"""
FLOATS = """typedef float NUMBER;

static NUMBER multiply(NUMBER a, NUMBER b)
{
    return a * b;
}

static NUMBER add(NUMBER a, NUMBER b)
{
    return a + b;
}

static int above(NUMBER a, NUMBER b)
{
    return a > b;
}

static float share(NUMBER a, NUMBER total)
{
    return a / total;
}
"""


@dataclass(frozen=True, eq=False)
class _Program:
    """A circuit as steps: each multiplies or adds operands and writes a slot that is free by then.

    An operand is a number of a parameter, then of an indicator, then of a slot.
    """

    begin: np.ndarray
    operand: np.ndarray
    product: np.ndarray
    slot: np.ndarray
    slots: int
    root: int


def circuit_files(circuit: Circuit, *, name: str, query: str | None, arithmetic: str, note: str) -> dict[str, str]:
    """Write a circuit as a header and a source file; see `tinybayes.deploy.programs.c.to_c`."""
    if arithmetic not in ARITHMETIC:
        raise error(f"one of {', '.join(ARITHMETIC)}", repr(arithmetic), where="arithmetic")
    number = _query(circuit, query)
    facts = analyse(circuit)
    states = circuit.nodes[number].cardinality
    bound = _check(facts, arithmetic, states)
    lines = [
        f"A circuit of {circuit.n_edges:,} edges over {len(circuit.nodes)} variables, by tinybayes.",
        f"Price: {model_cost(circuit)}; it answers for {plain(circuit.nodes[number].name)}.",
        f"Posteriors are within {upwards(bound)} of the exact ones of the stored parameters.",
        *([plain(note)] if note else []),
    ]
    top = text.comment(*lines, "Reentrant: no allocation, no writable statics, nothing but <stdint.h>.")
    program = _program(circuit)
    declared = _declarations(circuit, name, states, arithmetic)
    return {
        f"{name}.h": top + _header(circuit, name, number, program.slots, arithmetic, declared),
        f"{name}.c": top + _source(circuit, name, number, program, arithmetic, declared),
    }


def _query(circuit: Circuit, query: str | None) -> int:
    names = [node.name for node in circuit.nodes]
    if query is None and circuit.target is not None:
        return len(names) - 1
    if query not in names:
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise error(f"one of the variables {shown}", repr(query), where="query", remedy="name what the board asks for")
    return names.index(query)


def _check(facts: Analysis, arithmetic: str, states: int) -> float:
    """Return the bound of the error of a posterior; raise where values might leave the range of the arithmetic."""
    low, high, last = (-126, 127, 2.0**-24) if arithmetic == "float" else (-30_000, 30_000, 2.0**-30)
    if facts.low < low or facts.high > high:
        got = f"2**{facts.low:.0f} to 2**{facts.high:.0f}"
        remedy = "use arithmetic 'integer'" if arithmetic == "float" else "learn a smaller circuit"
        raise error(f"values from 2**{low} to 2**{high}", got, where=f"arithmetic {arithmetic!r}", remedy=remedy)
    # A quotient of two values, each with these relative errors; the total adds up the states once more.
    relative = 2 * np.expm1((facts.roundings + states) * np.log1p(last))
    return float(relative + (2.0**-UNIT if arithmetic == "integer" else last))


def _program(circuit: Circuit) -> _Program:
    """Give every operand a number; values share slots, since a slot is free after the last step that reads it."""
    parameters, indicators = len(circuit.table), int(circuit.first_state[-1])
    inner = circuit.kind >= 2
    last = np.zeros(circuit.n_nodes, dtype=np.int64)
    np.maximum.at(last, circuit.children, np.repeat(np.arange(circuit.n_nodes), np.diff(circuit.offsets)))
    place = np.where(circuit.kind == INDICATOR, parameters + circuit.leaf, circuit.leaf).astype(np.int64)
    free: list[int] = []
    slots, begin, operand, slot = 0, [0], [], []
    for n in np.flatnonzero(inner).tolist():
        below = circuit.children[circuit.offsets[n] : circuit.offsets[n + 1]].tolist()
        operand += place[below].tolist()
        begin.append(len(operand))
        for child in sorted({c for c in below if inner[c] and last[c] == n}):
            heapq.heappush(free, int(place[child]) - parameters - indicators)
        if not free:
            heapq.heappush(free, slots)
            slots += 1
        slot.append(heapq.heappop(free))
        place[n] = parameters + indicators + slot[-1]
    product = circuit.kind[inner] == PRODUCT
    if not slot:  # a leaf alone: one step, a product of nothing else
        begin, operand, product, slot, slots = [0, 1], [int(place[-1])], np.array([True]), [0], 1
        place[-1] = parameters + indicators
    return _Program(np.array(begin), np.array(operand), product, np.array(slot), slots, int(place[-1]))


def _declarations(circuit: Circuit, name: str, states: int, arithmetic: str) -> dict[str, str]:
    kind = text.unsigned(max(v.cardinality for v in circuit.nodes))
    inputs = f"const {kind} x[{len(circuit.nodes)}], struct {name}_memory *memory"
    score = "uint32_t" if arithmetic == "integer" else "float"
    return {
        "predict": f"{text.unsigned(states - 1)} {name}_predict({inputs})",
        "posterior": f"int {name}_posterior({inputs}, {score} posterior[{states}])",
    }


def _header(circuit: Circuit, name: str, query: int, slots: int, arithmetic: str, declared: dict[str, str]) -> str:
    upper = name.upper()
    names = Names({f"{upper}_{word}" for word in ("H", "VARIABLES", "STATES", "UNKNOWN", "ONE")})
    unknown = 2 ** (8 * (1 if max(v.cardinality for v in circuit.nodes) < 2**8 else 2)) - 1
    out = f"#ifndef {upper}_H\n#define {upper}_H\n\n#include <stdint.h>\n\n"
    out += '#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
    out += f"#define {upper}_VARIABLES {len(circuit.nodes)}\n"
    out += f"#define {upper}_STATES {circuit.nodes[query].cardinality}\n\n"
    out += text.comment("The code of a variable that was not observed.") + f"#define {upper}_UNKNOWN {unknown}\n\n"
    if arithmetic == "integer":
        out += text.comment("A posterior of one.") + f"#define {upper}_ONE {1 << UNIT}\n\n"
    out += text.comment("Variables, in the order of x.")
    out += f"enum {name}_variable {{\n"
    out += ",\n".join(f"    {names.make(upper, v.name)} = {i}" for i, v in enumerate(circuit.nodes)) + "\n};\n\n"
    asked = circuit.nodes[query]
    out += text.comment(f"States of what is asked for: {plain(asked.name)}.") + f"enum {name}_state {{\n"
    out += ",\n".join(f"    {names.make(upper, asked.name, s)} = {i}" for i, s in enumerate(asked.states)) + "\n};\n\n"
    members = "    uint32_t m[{0}];\n    int16_t e[{0}];\n" if arithmetic == "integer" else "    float value[{0}];\n"
    out += text.comment("What a call needs to work with; it need not be set.")
    out += f"struct {name}_memory {{\n{members.format(slots)}}};\n\n"
    out += text.comment("The most probable state; of equally probable ones the first.") + f"{declared['predict']};\n\n"
    out += text.comment("The posterior of all states; returns 0, and zeros, when the evidence is impossible.")
    return out + f"{declared['posterior']};\n\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n"


def _source(
    circuit: Circuit, name: str, query: int, program: _Program, arithmetic: str, declared: dict[str, str]
) -> str:
    states, count = circuit.nodes[query].cardinality, len(circuit.table)
    indicators = int(circuit.first_state[-1])
    kind = text.unsigned(max(v.cardinality for v in circuit.nodes))
    code = f"{kind} state"
    data = _parameters(circuit, arithmetic)
    owner = np.repeat(np.arange(len(circuit.nodes)), np.diff(circuit.first_state))
    data += text.array("variable", text.unsigned(len(circuit.nodes)), owner)
    data += text.array("value", kind, np.arange(indicators) - circuit.first_state[owner])
    data += text.array("begin", text.unsigned(int(program.begin[-1])), program.begin)
    data += text.array("operand", text.unsigned(int(program.operand.max())), program.operand)
    data += text.array("is_product", "uint8_t", program.product.astype(np.uint8))
    data += text.array("slot", text.unsigned(program.slots), program.slot)
    integer = arithmetic == "integer"
    read = "r.m = memory->m[k];\n    r.e = memory->e[k];" if integer else "r = memory->value[k];"
    write = "memory->m[k] = r.m;\n        memory->e[k] = r.e;" if integer else "memory->value[k] = r;"
    fixed = "r.m = parameter_m[k];\n        r.e = parameter_e[k];" if integer else "r = parameter[k];"
    truth = (
        "r.m = holds ? 0x80000000U : 0U;\n        r.e = (int16_t)(holds ? -31 : 0);"
        if integer
        else "r = holds ? 1.0F : 0.0F;"
    )
    zero = "total.m == 0" if integer else "!(total > 0.0F)"
    nothing = "0U" if integer else "0.0F"
    arithmetic_text = (INTEGERS if integer else FLOATS).replace("NUMBER", "number").replace("UNIT", str(UNIT))
    parameters = (
        f"    if (k < {count}U) {{\n        {fixed}\n        return r;\n    }}\n    k -= {count}U;\n" if count else ""
    )
    body = f"""{arithmetic_text}
{data}
/* The value of an operand: a parameter, an indicator, or what an earlier step has left. */
static number operand_value(uint32_t k, const {kind} *x, {code}, const struct {name}_memory *memory)
{{
    number r;
{parameters}    if (k < {indicators}U) {{
        const {kind} seen = variable[k] == {query}U ? state : x[variable[k]];
        const int holds = seen == {name.upper()}_UNKNOWN || seen == value[k];
        {truth}
        return r;
    }}
    k -= {indicators}U;
    {read}
    return r;
}}

/* The probability of the evidence together with a state of the query. */
static number evaluate(const {kind} *x, {code}, struct {name}_memory *memory)
{{
    uint32_t n, i, k;
    for (n = 0; n < {len(program.slot)}U; ++n) {{
        number r = operand_value(operand[begin[n]], x, state, memory);
        for (i = begin[n] + 1U; i < begin[n + 1]; ++i) {{
            const number s = operand_value(operand[i], x, state, memory);
            r = is_product[n] ? multiply(r, s) : add(r, s);
        }}
        k = slot[n];
        {write}
    }}
    return operand_value({program.root}U, x, state, memory);
}}

{declared["predict"]}
{{
    unsigned best = 0, s;
    number top = evaluate(x, 0, memory);
    for (s = 1; s < {states}U; ++s) {{
        const number next = evaluate(x, ({kind})s, memory);
        if (above(next, top)) {{
            top = next;
            best = s;
        }}
    }}
    return ({text.unsigned(states - 1)})best;
}}

{declared["posterior"]}
{{
    number found[{states}], total = evaluate(x, 0, memory);
    unsigned s;
    found[0] = total;
    for (s = 1; s < {states}U; ++s) {{
        found[s] = evaluate(x, ({kind})s, memory);
        total = add(total, found[s]);
    }}
    for (s = 0; s < {states}U; ++s) {{
        posterior[s] = {zero} ? {nothing} : share(found[s], total);
    }}
    return !({zero});
}}
"""
    return f'#include "{name}.h"\n\n{body}'


def _parameters(circuit: Circuit, arithmetic: str) -> str:
    if not len(circuit.table):
        return ""
    if arithmetic == "float":
        return text.array("parameter", "float", np.exp(circuit.log_parameters).astype(np.float32))
    pairs = np.array([encode(float(v)) for v in circuit.log_parameters], dtype=np.int64).reshape(-1, 2)
    mantissas = text.array("parameter_m", "uint32_t", pairs[:, 0].astype(np.uint32))
    return mantissas + text.array("parameter_e", "int16_t", pairs[:, 1])
