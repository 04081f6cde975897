"""Circuits as programs: the posterior of one variable given evidence on the others, in integers or in 32-bit floats."""

import numpy as np

from tinybayes.deploy.programs.circuit_plan import CircuitPlan
from tinybayes.deploy.programs.encoder import encode_functions
from tinybayes.deploy.programs.encoding import describe
from tinybayes.deploy.programs.names import Names, plain
from tinybayes.deploy.programs.program import (
    Array,
    Constant,
    Dialect,
    Enumeration,
    Function,
    Program,
    block,
    comment,
    indent,
    loop,
    narrow,
)
from tinybayes.infer.integer_circuit import UNIT, encode

PREDICT = "The most probable state; the first one if several are equally probable."
POSTERIOR = "The posterior of all states; returns 0, and zeros, when the evidence is impossible."
PREDICT_RAW = "The most probable state given raw values; that of the variable that is asked for is ignored."
POSTERIOR_RAW = "The posterior of all states given raw values; returns 0, and zeros, when the evidence is impossible."
MEMORY = "The memory that a call needs to work with; it need not be set."
UNKNOWN = "The code of a variable that was not observed."
UNKNOWN_VALUE = "The raw value of a variable that was not observed."


def circuit_program(plan: CircuitPlan, dialect: Dialect, note: str) -> Program:
    """Make the program of a circuit: ``predict``, ``posterior`` and, for raw values, ``encode`` and more."""
    functions = [_evaluate(plan, dialect), _predict(plan, dialect), _posterior(plan, dialect)]
    if plan.features.value:
        functions += [*encode_functions(plan.features, dialect), *_from_raw(plan, dialect)]
    constants = _constants(plan)
    members = plan.numbers.members.format(plan.steps.slots)
    return Program(
        facts=plan.facts(dialect, note),
        functions=(*plan.numbers.functions(), *functions),
        enumerations=_enumerations(plan, dialect, constants),
        constants=constants,
        public_types=f"{comment(MEMORY)}{memory_type(dialect)} {{\n{members}}};\n",
        types=plan.numbers.types,
    )


def memory_type(dialect: Dialect) -> str:
    """Return the type of the memory that a call works with."""
    return f"struct {dialect.name}_memory" if dialect.prefix else "struct Memory"


def _inputs(plan: CircuitPlan, dialect: Dialect) -> tuple[str, str]:
    """Return the first parameters of functions that take codes."""
    return f"const {plan.features.state} x[{len(plan.variables)}]", f"{memory_type(dialect)} *memory"


def _constants(plan: CircuitPlan) -> tuple[Constant, ...]:
    constants = [Constant("variables", len(plan.variables)), Constant("states", plan.states)]
    if plan.features.gaps:
        constants.append(Constant("unknown", plan.features.missing, UNKNOWN, "State"))
        if plan.features.raw == "int":
            constants.append(Constant("unknown_value", "(-2147483647 - 1)", UNKNOWN_VALUE, "Value"))
    if plan.arithmetic == "integer":
        constants.append(Constant("one", 1 << UNIT, "A posterior of one.", "Posterior"))
    return tuple(constants)


def _enumerations(plan: CircuitPlan, dialect: Dialect, constants: tuple[Constant, ...]) -> tuple[Enumeration, ...]:
    """Name the variables, the states of the query, and those of other variables that have names for them."""
    name, variables = dialect.name, plan.variables
    names = Names({dialect.macro(word) for word in ("h", "hpp", *(constant.name for constant in constants))})
    members = tuple(names.make(name, v.name) for v in variables)
    notes = tuple(
        "ignored: it is asked for" if i == plan.query else describe(v, plan.features.raw)
        for i, v in enumerate(variables)
    )
    asked = tuple(names.make(name, plan.target.name, s) for s in plan.target.states)
    doc = f"States of {plain(plan.target.name)}, the variable that is asked for."
    enumerations = [
        Enumeration(f"{name}_variable", members, "Variables, in the order of a row.", notes),
        Enumeration(f"{name}_state", asked, doc),
    ]
    for i, variable in enumerate(variables):
        if i != plan.query and not variable.has_intervals:
            members = tuple(names.make(name, variable.name, s) for s in variable.states)
            doc = f"States of variable {i}: {plain(variable.name)}."
            enumerations.append(Enumeration(f"{name}_states_{i}", members, doc))
    return tuple(enumerations)


def _parameters(plan: CircuitPlan) -> tuple[Array, ...]:
    values = plan.steps.parameters
    if not len(values):
        return ()
    if plan.arithmetic == "float":
        return (Array("parameter", np.exp(values).astype(np.float32)),)
    pairs = np.array([encode(float(v)) for v in values], dtype=np.int64).reshape(-1, 2)
    return Array("parameter_m", pairs[:, 0].astype(np.uint32)), Array("parameter_e", pairs[:, 1].astype(np.int16))


def _evaluate(plan: CircuitPlan, dialect: Dialect) -> Function:
    """Make the function that runs all steps: a product starts from one, a sum from zero.

    An indicator that changes nothing is passed over, and a product ends when it is zero: no bit changes by that.
    """
    steps, numbers, kind = plan.steps, plan.numbers, plan.features.state
    product = ["r = multiply(r, s);", *block(f"if ({numbers.zero.format(r='r')})", ["break;"])]
    join = [*_operand(plan, dialect), "if (product) {", *indent(product), "} else {", "    r = add(r, s);", "}"]
    step = [
        "const int product = is_product[n];",
        *numbers.start,
        *block("for (i = begin[n]; i < begin[n + 1]; ++i)", join),
        "k = slot[n];",
        *numbers.write,
    ]
    body = ("number r;", "uint32_t n, i, k;", *loop("n", len(steps.slot), step), "return r;")
    inputs = (f"const {kind} *x", f"{kind} state", f"{memory_type(dialect)} *memory")
    doc = "The probability of the evidence together with a state of the query."
    return Function("evaluate", "number", inputs, body, doc, _tables(plan))


def _operand(plan: CircuitPlan, dialect: Dialect) -> list[str]:
    """Write the lines that set ``s`` to an operand: a parameter, an indicator, or the result of an earlier step."""
    count, indicators, numbers = len(plan.steps.parameters), plan.steps.indicators, plan.numbers
    missing = dialect.macro("unknown") if dialect.prefix else "unknown"
    unknown = f"seen == {missing} || " if plan.features.gaps else ""
    less = f" - {count}U" if count else ""
    indicator = [
        f"const unsigned v = variable[k{less}];",
        f"const {plan.features.state} seen = v == {plan.query}U ? state : x[v];",
        f"const int holds = {unknown}seen == code[k{less}];",
        *block("if (holds == product)", ["continue; /* times one, or plus zero */"]),
        *block("if (product)", [*numbers.nought, "break;"]),
        *numbers.one,
    ]
    parameter = [f"if (k < {count}U) {{", *indent(numbers.fixed)] if count else []
    return [
        "number s;",
        "k = operand[i];",
        *parameter,
        f"{'} else ' if count else ''}if (k < {count + indicators}U) {{",
        *indent(indicator),
        "} else {",
        f"    k -= {count + indicators}U;",
        *indent(numbers.read),
        "}",
    ]


def _tables(plan: CircuitPlan) -> tuple[Array, ...]:
    """Make the tables of the parameters, the indicators and the steps."""
    first, steps = plan.circuit.first_state, plan.steps
    owner = np.repeat(np.arange(len(plan.variables)), np.diff(first))
    codes = (np.arange(steps.indicators) - first[owner]).astype(plan.features.state.removesuffix("_t"))
    return (
        *_parameters(plan),
        Array("variable", narrow(owner, limit=len(plan.variables))),
        Array("code", codes),
        Array("begin", narrow(steps.begin)),
        Array("operand", narrow(steps.operand)),
        Array("is_product", steps.product.astype(np.uint8)),
        Array("slot", narrow(steps.slot, limit=steps.slots)),
    )


def _predict(plan: CircuitPlan, dialect: Dialect) -> Function:
    each = [
        f"const number next = evaluate(x, ({plan.features.state})s, memory);",
        *block("if (above(next, top))", ["top = next;", "best = s;"]),
    ]
    body = (
        "unsigned best = 0, s;",
        "number top = evaluate(x, 0, memory);",
        *loop("s", plan.states, each, start=1),
        f"return ({plan.label})best;",
    )
    return Function("predict", plan.label, _inputs(plan, dialect), body, PREDICT, public=True)


def _posterior(plan: CircuitPlan, dialect: Dialect) -> Function:
    states, numbers = plan.states, plan.numbers
    zero = numbers.zero.format(r="total")
    each = [f"joint[s] = evaluate(x, ({plan.features.state})s, memory);", "total = add(total, joint[s]);"]
    body = (
        f"number joint[{states}], total = evaluate(x, 0, memory);",
        "unsigned s;",
        "joint[0] = total;",
        *loop("s", states, each, start=1),
        *loop("s", states, [f"result[s] = {zero} ? {numbers.nothing} : share(joint[s], total);"]),
        f"return !({zero});",
    )
    parameters = (*_inputs(plan, dialect), f"{numbers.score} result[{states}]")
    return Function("posterior", "int", parameters, body, POSTERIOR, public=True)


def _from_raw(plan: CircuitPlan, dialect: Dialect) -> tuple[Function, Function]:
    """Make ``predict_raw`` and ``posterior_raw``."""
    count, prefix = len(plan.variables), dialect.prefix
    encoded = (f"{plan.features.state} x[{count}];", f"{prefix}encode(value, x);")
    inputs = (f"const {plan.features.value} value[{count}]", f"{memory_type(dialect)} *memory")
    result = f"{plan.numbers.score} result[{plan.states}]"
    return (
        Function(
            "predict_raw",
            plan.label,
            inputs,
            (*encoded, f"return {prefix}predict(x, memory);"),
            PREDICT_RAW,
            public=True,
        ),
        Function(
            "posterior_raw",
            "int",
            (*inputs, result),
            (*encoded, f"return {prefix}posterior(x, memory, result);"),
            POSTERIOR_RAW,
            public=True,
        ),
    )
