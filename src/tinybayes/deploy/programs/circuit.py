"""Circuits as programs: the posterior of one variable given evidence on the others, in integers or in 32-bit floats."""

import heapq
from dataclasses import dataclass

import numpy as np

from tinybayes.cost import model_cost
from tinybayes.deploy.programs.names import Names, plain, upwards
from tinybayes.deploy.programs.program import (
    Array,
    Constant,
    Dialect,
    Enumeration,
    Function,
    Program,
    block,
    comment,
    loop,
    narrow,
    unsigned,
)
from tinybayes.errors import error
from tinybayes.infer.integer_circuit import UNIT, Analysis, analyse, encode
from tinybayes.model import Circuit
from tinybayes.model.circuit import INDICATOR, PRODUCT

PREDICT = "The most probable state; the first one if several are equally probable."
POSTERIOR = "The posterior of all states; returns 0, and zeros, when the evidence is impossible."
MULTIPLY = """const uint64_t product = (uint64_t)a.m * b.m;
number r;
if (product >> 63) {
    r.m = (uint32_t)(product >> 32);
    r.e = (int16_t)(a.e + b.e + 32);
} else {
    r.m = (uint32_t)(product >> 31);
    r.e = (int16_t)(r.m ? a.e + b.e + 31 : 0);
}
return r;"""
ADD = """number t;
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
return a;"""
ABOVE = """if (a.m == 0 || b.m == 0) {
    return a.m > b.m;
}
return a.e == b.e ? a.m > b.m : a.e > b.e;"""
SHARE = f"""const int down = total.e - a.e;
return a.m == 0 || down > 63 ? 0U : (uint32_t)((((uint64_t)a.m << {UNIT}) / total.m) >> down);"""


@dataclass(frozen=True)
class _Arithmetic:
    """Numbers of a circuit in C: their type, what can be done with them, and how they are read and written."""

    low: int  # exponent of the smallest number
    high: int  # exponent of the largest number
    last: float  # relative error of one rounding
    score: str  # the type of a posterior
    types: str  # the definition of ``number``
    members: str  # of the memory, with a gap for the number of slots
    bodies: tuple[str, str, str, str]  # of the functions multiply, add, above and share
    fixed: tuple[str, ...]  # lines that set ``r`` from a parameter
    truth: tuple[str, ...]  # lines that set ``r`` from an indicator that ``holds``
    read: tuple[str, ...]  # lines that read ``r`` from the memory
    write: tuple[str, ...]  # lines that write it there
    zero: str  # the condition that ``total`` is zero
    nothing: str  # a posterior of zero

    def functions(self) -> tuple[Function, ...]:
        """Make the functions that compute with numbers."""
        two = ("number a", "number b")
        heads = [("multiply", "number", two), ("add", "number", two), ("above", "int", two)]
        heads += [("share", self.score, ("number a", "number total"))]
        return tuple(Function(*head, tuple(body.splitlines())) for head, body in zip(heads, self.bodies, strict=True))


ARITHMETIC = {
    "integer": _Arithmetic(
        low=-30_000,
        high=30_000,
        last=2.0**-30,
        score="uint32_t",
        types=comment("m * 2**e with the highest bit of m set, or m = 0; bits below the last one are cut off.")
        + "typedef struct {\n    uint32_t m;\n    int16_t e;\n} number;\n",
        members="    uint32_t m[{0}];\n    int16_t e[{0}];\n",
        bodies=(MULTIPLY, ADD, ABOVE, SHARE),
        fixed=("r.m = parameter_m[k];", "r.e = parameter_e[k];"),
        truth=("r.m = holds ? 0x80000000U : 0U;", "r.e = (int16_t)(holds ? -31 : 0);"),
        read=("r.m = memory->m[k];", "r.e = memory->e[k];"),
        write=("memory->m[k] = r.m;", "memory->e[k] = r.e;"),
        zero="total.m == 0",
        nothing="0U",
    ),
    "float": _Arithmetic(
        low=-126,
        high=127,
        last=2.0**-24,
        score="float",
        types="typedef float number;\n",
        members="    float value[{0}];\n",
        bodies=("return a * b;", "return a + b;", "return a > b;", "return a / total;"),
        fixed=("r = parameter[k];",),
        truth=("r = holds ? 1.0F : 0.0F;",),
        read=("r = memory->value[k];",),
        write=("memory->value[k] = r;",),
        zero="!(total > 0.0F)",
        nothing="0.0F",
    ),
}


@dataclass(frozen=True, eq=False)
class _Steps:
    """A circuit as steps: each multiplies or adds operands and writes a slot that is free by then.

    An operand is the number of a parameter, then of an indicator, then of a slot.
    """

    begin: np.ndarray
    operand: np.ndarray
    product: np.ndarray
    slot: np.ndarray
    slots: int
    root: int


@dataclass(frozen=True, eq=False)
class _Question:
    """A query of a circuit, with the words that all functions need."""

    circuit: Circuit
    query: int
    dialect: Dialect
    arithmetic: _Arithmetic

    @property
    def states(self) -> int:
        """The number of states of the variable that is asked for."""
        return self.circuit.nodes[self.query].cardinality

    @property
    def code(self) -> str:
        """The C type of a state; its largest value says that a variable was not observed."""
        return unsigned(max(v.cardinality for v in self.circuit.nodes))

    @property
    def memory(self) -> str:
        """The type of the memory that a call works with."""
        return f"struct {self.dialect.name}_memory"

    @property
    def inputs(self) -> tuple[str, str]:
        """The first parameters of public functions."""
        return f"const {self.code} x[{len(self.circuit.nodes)}]", f"{self.memory} *memory"


def circuit_program(circuit: Circuit, dialect: Dialect, *, query: str | None, arithmetic: str, note: str) -> Program:
    """Make the program of a circuit: ``predict`` and ``posterior`` of one variable."""
    if arithmetic not in ARITHMETIC:
        raise error(f"one of {', '.join(ARITHMETIC)}", repr(arithmetic), where="arithmetic")
    question = _Question(circuit, _query(circuit, query), dialect, ARITHMETIC[arithmetic])
    bound = _check(analyse(circuit), arithmetic, question.states)
    facts = [
        f"A circuit of {circuit.n_edges:,} edges over {len(circuit.nodes)} variables, by tinybayes.",
        f"Price: {model_cost(circuit)}; it answers for {plain(circuit.nodes[question.query].name)}.",
        f"Posteriors are within {upwards(bound)} of the exact ones of the stored parameters.",
        *([plain(note)] if note else []),
    ]
    steps = _steps(circuit)
    functions = (_operand_value(question), _evaluate(question, steps), _predict(question), _posterior(question))
    doc = comment("The memory that a call needs to work with; it need not be set.")
    members = question.arithmetic.members.format(steps.slots)
    return Program(
        facts=tuple(facts),
        functions=(*question.arithmetic.functions(), *functions),
        enumerations=_enumerations(question),
        constants=_constants(question, arithmetic),
        public_types=f"{doc}{question.memory} {{\n{members}}};\n",
        types=question.arithmetic.types,
    )


def _query(circuit: Circuit, query: str | None) -> int:
    names = [node.name for node in circuit.nodes]
    if query is None and circuit.target is not None:
        return len(names) - 1
    if query not in names:
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        remedy = "name the variable that the board asks for"
        raise error(f"one of the variables {shown}", repr(query), where="query", remedy=remedy)
    return names.index(query)


def _check(facts: Analysis, arithmetic: str, states: int) -> float:
    """Return the bound of the error of a posterior; raise where values might leave the range of the arithmetic."""
    numbers = ARITHMETIC[arithmetic]
    if facts.low < numbers.low or facts.high > numbers.high:
        got = f"2**{facts.low:.0f} to 2**{facts.high:.0f}"
        remedy = "use arithmetic 'integer'" if arithmetic == "float" else "learn a smaller circuit"
        expected = f"values from 2**{numbers.low} to 2**{numbers.high}"
        raise error(expected, got, where=f"arithmetic {arithmetic!r}", remedy=remedy)
    # A quotient of two values, each with these relative errors; the total is one more sum over the states.
    relative = 2 * np.expm1((facts.roundings + states) * np.log1p(numbers.last))
    return float(relative + (2.0**-UNIT if arithmetic == "integer" else numbers.last))


def _steps(circuit: Circuit) -> _Steps:
    """Give numbers to all operands; values share slots, since a slot is free after the last step that reads it."""
    parameters, indicators = len(circuit.table), int(circuit.first_state[-1])
    inner = circuit.kind >= 2
    last = np.zeros(circuit.n_nodes, dtype=np.int64)
    np.maximum.at(last, circuit.children, np.repeat(np.arange(circuit.n_nodes), np.diff(circuit.offsets)))
    position = np.where(circuit.kind == INDICATOR, parameters + circuit.leaf, circuit.leaf).astype(np.int64)
    free: list[int] = []
    slots, begin, operand, slot = 0, [0], [], []
    for n in np.flatnonzero(inner).tolist():
        below = circuit.children[circuit.offsets[n] : circuit.offsets[n + 1]].tolist()
        operand += position[below].tolist()
        begin.append(len(operand))
        for child in sorted({c for c in below if inner[c] and last[c] == n}):
            heapq.heappush(free, int(position[child]) - parameters - indicators)
        if not free:
            heapq.heappush(free, slots)
            slots += 1
        slot.append(heapq.heappop(free))
        position[n] = parameters + indicators + slot[-1]
    product = circuit.kind[inner] == PRODUCT
    if not slot:  # a single leaf: one step, a product of one operand
        begin, operand, product, slot, slots = [0, 1], [int(position[-1])], np.array([True]), [0], 1
        position[-1] = parameters + indicators
    return _Steps(np.array(begin), np.array(operand), product, np.array(slot), slots, int(position[-1]))


def _constants(question: _Question, arithmetic: str) -> tuple[Constant, ...]:
    sizes = (Constant("variables", len(question.circuit.nodes)), Constant("states", question.states))
    last = 2 ** (8 if question.code == "uint8_t" else 16) - 1
    unknown = Constant("unknown", last, "The code of a variable that was not observed.")
    one = (Constant("one", 1 << UNIT, "A posterior of one."),) if arithmetic == "integer" else ()
    return (*sizes, unknown, *one)


def _enumerations(question: _Question) -> tuple[Enumeration, Enumeration]:
    name, nodes = question.dialect.name, question.circuit.nodes
    names = Names({question.dialect.macro(word) for word in ("h", "variables", "states", "unknown", "one")})
    asked = nodes[question.query]
    variables = tuple(names.make(name, v.name) for v in nodes)
    states = tuple(names.make(name, asked.name, s) for s in asked.states)
    return (
        Enumeration(f"{name}_variable", variables, "Variables, in the order of x."),
        Enumeration(f"{name}_state", states, f"States of {plain(asked.name)}, the variable that is asked for."),
    )


def _parameters(circuit: Circuit, arithmetic: _Arithmetic) -> tuple[Array, ...]:
    if not len(circuit.table):
        return ()
    if arithmetic.score == "float":
        return (Array("parameter", np.exp(circuit.log_parameters).astype(np.float32)),)
    pairs = np.array([encode(float(v)) for v in circuit.log_parameters], dtype=np.int64).reshape(-1, 2)
    return Array("parameter_m", pairs[:, 0].astype(np.uint32)), Array("parameter_e", pairs[:, 1].astype(np.int16))


def _operand_value(question: _Question) -> Function:
    circuit, how, code = question.circuit, question.arithmetic, question.code
    count, indicators = len(circuit.table), int(circuit.first_state[-1])
    owner = np.repeat(np.arange(len(circuit.nodes)), np.diff(circuit.first_state))
    values = (np.arange(indicators) - circuit.first_state[owner]).astype(code.removesuffix("_t"))
    variable = Array("variable", narrow(owner, limit=len(circuit.nodes)))
    indicator = [
        f"const {code} seen = variable[k] == {question.query}U ? state : x[variable[k]];",
        f"const int holds = seen == {question.dialect.macro('unknown')} || seen == value[k];",
        *how.truth,
        "return r;",
    ]
    parameter = [*block(f"if (k < {count}U)", [*how.fixed, "return r;"]), f"k -= {count}U;"] if count else []
    body = ("number r;", *parameter, *block(f"if (k < {indicators}U)", indicator), f"k -= {indicators}U;", *how.read)
    doc = "The value of an operand: a parameter, an indicator, or the result of an earlier step."
    inputs = ("uint32_t k", f"const {code} *x", f"{code} state", f"const {question.memory} *memory")
    arrays = (*_parameters(circuit, how), variable, Array("value", values))
    return Function("operand_value", "number", inputs, (*body, "return r;"), doc, arrays)


def _evaluate(question: _Question, steps: _Steps) -> Function:
    arrays = (
        Array("begin", narrow(steps.begin)),
        Array("operand", narrow(steps.operand)),
        Array("is_product", steps.product.astype(np.uint8)),
        Array("slot", narrow(steps.slot, limit=steps.slots)),
    )
    operand = "const number s = operand_value(operand[i], x, state, memory);"
    join = [operand, "r = is_product[n] ? multiply(r, s) : add(r, s);"]
    step = [
        "number r = operand_value(operand[begin[n]], x, state, memory);",
        *block("for (i = begin[n] + 1U; i < begin[n + 1]; ++i)", join),
        "k = slot[n];",
        *question.arithmetic.write,
    ]
    result = f"return operand_value({steps.root}U, x, state, memory);"
    body = ("uint32_t n, i, k;", *loop("n", len(steps.slot), step), result)
    inputs = (f"const {question.code} *x", f"{question.code} state", f"{question.memory} *memory")
    doc = "The probability of the evidence together with a state of the query."
    return Function("evaluate", "number", inputs, body, doc, arrays)


def _predict(question: _Question) -> Function:
    label = unsigned(question.states - 1)
    each = [
        f"const number next = evaluate(x, ({question.code})s, memory);",
        *block("if (above(next, top))", ["top = next;", "best = s;"]),
    ]
    body = (
        "unsigned best = 0, s;",
        "number top = evaluate(x, 0, memory);",
        *loop("s", question.states, each, start=1),
        f"return ({label})best;",
    )
    return Function("predict", label, question.inputs, body, PREDICT, public=True)


def _posterior(question: _Question) -> Function:
    states, how = question.states, question.arithmetic
    each = [f"joint[s] = evaluate(x, ({question.code})s, memory);", "total = add(total, joint[s]);"]
    body = (
        f"number joint[{states}], total = evaluate(x, 0, memory);",
        "unsigned s;",
        "joint[0] = total;",
        *loop("s", states, each, start=1),
        *loop("s", states, [f"posterior[s] = {how.zero} ? {how.nothing} : share(joint[s], total);"]),
        f"return !({how.zero});",
    )
    parameters = (*question.inputs, f"{how.score} posterior[{states}]")
    return Function("posterior", "int", parameters, body, POSTERIOR, public=True)
