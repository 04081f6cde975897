"""Densities as programs: the log-likelihood of a row in integers, and an alarm, from codes or raw values."""

from dataclasses import replace

from tinybayes.deploy.programs.circuit import UNKNOWN, UNKNOWN_VALUE, memory_type
from tinybayes.deploy.programs.density_evaluation import evaluation
from tinybayes.deploy.programs.density_plan import DensityPlan
from tinybayes.deploy.programs.density_selftest import selftest_function
from tinybayes.deploy.programs.encoder import encode_functions
from tinybayes.deploy.programs.encoding import describe
from tinybayes.deploy.programs.names import Names, plain
from tinybayes.deploy.programs.program import (
    Constant,
    Dialect,
    Enumeration,
    Function,
    Program,
    block,
    comment,
    loop,
    records,
)
from tinybayes.infer.integer_density import ZERO

LOG_LIKELIHOOD = "The log-likelihood of {}, in units of 2**-{} nats{}."
OF_UNSEEN = "; of a row with unseen states, less than the threshold"
IMPOSSIBLE = "The log-likelihood of a row that is impossible."
ALARM = "Returns 1 for an anomaly, otherwise 0."
MEMORY = "The memory that a call needs to work with; it need not be set."
UNSEEN = "The code of a value that is no state of its variable; so is every other code that is not a state."
THRESHOLD = "A log-likelihood below it is an alarm."


def density_program(plan: DensityPlan, dialect: Dialect, note: str, *, extras: bool = True) -> Program:
    """Make the program of a density; without `extras` without its test of itself."""
    functions = [*evaluation(plan, dialect), _log_likelihood(plan, dialect)]
    functions += [_alarm(plan, dialect)] if plan.alarm is not None else []
    if plan.features.value:
        functions += [*encode_functions(plan.features, dialect), *_from_raw(plan, dialect)]
    constants = _constants(plan)
    slots = max(1, plan.density.layout.slots)
    program = Program(
        facts=(),
        functions=tuple(functions),
        enumerations=_enumerations(plan, dialect, constants),
        constants=constants,
        public_types=f"{comment(MEMORY)}{memory_type(dialect)} {{\n    int32_t slot[{slots}];\n}};\n",
        optional=(selftest_function(plan, dialect),) if extras else (),
    )
    *facts, last = plan.facts(dialect, note)
    tables = f"Tables take {sum(array.values.nbytes for array in program.arrays):,} bytes of flash."
    return replace(program, facts=(*facts, tables, last))


def _inputs(plan: DensityPlan, dialect: Dialect) -> tuple[str, str]:
    return f"const {plan.features.state} x[{len(plan.variables)}]", f"{memory_type(dialect)} *memory"


def _constants(plan: DensityPlan) -> tuple[Constant, ...]:
    constants = [
        Constant("variables", len(plan.variables)),
        Constant("fraction", plan.density.fraction, "Bits of log-likelihoods after the point.", "int"),
        Constant("unknown", plan.features.missing, UNKNOWN, "State"),
    ]
    if plan.features.raw == "int":
        constants.append(Constant("unknown_value", "(-2147483647 - 1)", UNKNOWN_VALUE, "Value"))
    if plan.density.zeros:
        constants.append(Constant("impossible", f"({ZERO})", IMPOSSIBLE, "int32_t"))
    if plan.alarm is not None:
        constants.append(Constant("unseen", plan.features.unseen_code, UNSEEN, "State"))
        constants.append(Constant("threshold", f"({plan.units[0]})", THRESHOLD, "int32_t"))
    return tuple(constants)


def _enumerations(plan: DensityPlan, dialect: Dialect, constants: tuple[Constant, ...]) -> tuple[Enumeration, ...]:
    """Name the variables, and the states of those that have names for them."""
    name, variables = dialect.name, plan.variables
    names = Names({dialect.macro(word) for word in ("h", "hpp", *(constant.name for constant in constants))})
    members = tuple(names.make(name, v.name) for v in variables)
    notes = tuple(describe(v, plan.features.raw) for v in variables)
    enumerations = [Enumeration(f"{name}_variable", members, "Variables, in the order of a row.", notes)]
    for i, variable in enumerate(variables):
        if not variable.has_intervals:
            members = tuple(names.make(name, variable.name, s) for s in variable.states)
            doc = f"States of variable {i}: {plain(variable.name)}."
            enumerations.append(Enumeration(f"{name}_states_{i}", members, doc))
    return tuple(enumerations)


def _log_likelihood(plan: DensityPlan, dialect: Dialect) -> Function:
    doc = LOG_LIKELIHOOD.format("a row", plan.density.fraction, "" if plan.alarm is None else OF_UNSEEN)
    inputs = _inputs(plan, dialect)
    if plan.alarm is None:
        return Function("log_likelihood", "int32_t", inputs, ("return evaluate(x, memory);",), doc, public=True)
    threshold, cost = plan.units
    states, arrays = records("variable", "i", {"states": [v.cardinality for v in plan.variables]})
    unseen = f"x[i] >= {states['states']} && x[i] != {plan.features.missing}U"
    body = (
        "int32_t r = evaluate(x, memory);",
        "unsigned i, odd = 0;",
        *loop("i", len(plan.variables), block(f"if ({unseen})", ["++odd;"])),
        *block(f"if (odd && r > {threshold})", [f"r = {threshold};"]),
        f"return r - {cost} * (int32_t)odd;",
    )
    return Function("log_likelihood", "int32_t", inputs, body, doc, tuple(arrays), public=True)


def _alarm(plan: DensityPlan, dialect: Dialect) -> Function:
    body = (f"return {dialect.prefix}log_likelihood(x, memory) < {plan.units[0]};",)
    return Function("alarm", "int", _inputs(plan, dialect), body, ALARM, public=True)


def _from_raw(plan: DensityPlan, dialect: Dialect) -> list[Function]:
    """Make the functions of raw values."""
    count, prefix = len(plan.variables), dialect.prefix
    encoded = (f"{plan.features.state} x[{count}];", f"{prefix}encode(value, x);")
    inputs = (f"const {plan.features.value} value[{count}]", f"{memory_type(dialect)} *memory")
    said = LOG_LIKELIHOOD.format("raw values", plan.density.fraction, "")
    found = [("log_likelihood", "int32_t", said)] + ([("alarm", "int", ALARM)] if plan.alarm is not None else [])
    return [
        Function(f"{name}_raw", kind, inputs, (*encoded, f"return {prefix}{name}(x, memory);"), doc, public=True)
        for name, kind, doc in found
    ]
