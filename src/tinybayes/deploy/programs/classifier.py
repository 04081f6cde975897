"""The program of a classifier: its functions, and the names of features, classes and states."""

from dataclasses import replace

from tinybayes.deploy.programs.encoder import encode_functions
from tinybayes.deploy.programs.encoding import describe
from tinybayes.deploy.programs.names import Names, plain
from tinybayes.deploy.programs.net import net_sums
from tinybayes.deploy.programs.plan import NetPlan, Plan, TablePlan
from tinybayes.deploy.programs.program import (
    Constant,
    Dialect,
    Enumeration,
    Function,
    Program,
    Sums,
    block,
    loop,
)
from tinybayes.deploy.programs.tables import table_sums
from tinybayes.deploy.programs.tree_plan import TreePlan
from tinybayes.deploy.programs.trees import tree_sums

PREDICT = "The most probable class; the first one if several are equally probable."
SCORES = "Scores of all classes; the largest wins."
MISSING = "The code of a missing value; any other code that is not a state is taken for one, too."
MISSING_VALUE = "The raw value of a missing one."
FRACTION = "A score is in units of two to the power of minus this, in nats."
RESERVED = ("h", "hpp", "noinline", "one", "margin")  # macros that only some programs have
PREDICT_RAW = "The most probable class of raw measurements."


def classifier_program(plan: Plan, dialect: Dialect, note: str) -> Program:
    """Make the program of a classifier: ``predict``, ``scores`` and, for raw measurements, ``encode`` and more.

    Where raw values are not encoded, ``predict_raw`` and ``scores`` take them as they are.
    """
    sums = _sums(plan, dialect)
    functions = [*sums.functions, _predict(plan, sums), _scores(plan, sums)]
    if plan.encodes:
        functions += [*encode_functions(plan.features, dialect, sums.tables), _predict_raw(plan, dialect)]
    constants = _constants(plan)
    return Program(
        facts=_facts(plan, dialect, note),
        functions=tuple(functions),
        enumerations=_enumerations(plan, dialect, constants),
        constants=constants,
        tables=sums.tables,
    )


def _sums(plan: Plan, dialect: Dialect) -> Sums:
    if isinstance(plan, NetPlan):
        return net_sums(plan, dialect)
    return tree_sums(plan, dialect) if isinstance(plan, TreePlan) else table_sums(plan, dialect)


def _facts(plan: Plan, dialect: Dialect, note: str) -> tuple[str, ...]:
    """Return what the plan says of the model and, where values may be missing, how a row says so."""
    *facts, last = plan.facts(note)
    if plan.features.gaps:
        missing, value = (
            dialect.macro(word) if dialect.prefix else f"{dialect.name}::{word}"
            for word in ("missing", "missing_value")
        )
        raw = {"float": "a raw value that is not a number", "int": f"the raw value {value}"}.get(plan.features.raw)
        if plan.takes_raw:
            facts.append(f"Missing: {raw}.")
        else:
            also = f"; so is {raw}" if raw else ""
            facts.append(f"A code that is not a state is missing, {missing} for instance{also}.")
    return (*facts, last)


def _constants(plan: Plan) -> tuple[Constant, ...]:
    """Name the sizes and, where values may be missing, what stands for them and the unit of scores."""
    constants = [Constant("features", len(plan.variables)), Constant("classes", plan.classes)]
    features = plan.features
    if features.gaps:
        if not plan.takes_raw:
            constants.append(Constant("missing", features.missing, MISSING, "State"))
        if features.raw == "int":
            constants.append(Constant("missing_value", "(-2147483647 - 1)", MISSING_VALUE, "Value"))
        if isinstance(plan, TablePlan) and plan.values is not None:
            value = str(plan.fraction) if plan.fraction >= 0 else f"({plan.fraction})"
            constants.append(Constant("fraction", value, FRACTION, "int"))
    return tuple(constants)


def _add_up(plan: Plan, sums: Sums, to: str, complete: str = "") -> list[str]:
    """Write the call that sets sums; in rows without missing values `complete` comes after it."""
    if not sums.gaps:
        return [f"add_up({plan.row_name}, {to});", *([complete] if complete else [])]
    if not complete:
        return block(f"if (!add_up(x, {to}))", [f"add_up_gaps(x, {to});"])
    return [f"if (add_up(x, {to})) {{", f"    {complete}", "} else {", f"    add_up_gaps(x, {to});", "}"]


def _predict(plan: Plan, sums: Sums) -> Function:
    doc = PREDICT_RAW if plan.takes_raw else PREDICT
    better = block(f"if (sum[c] {'<' if sums.smallest else '>'} top)", ["top = sum[c];", "best = c;"])
    body = (
        f"{sums.type} sum[{plan.classes}];",
        f"{sums.type} top;",
        "unsigned c, best = 0;",
        *_add_up(plan, sums, "sum"),
        "top = sum[0];",
        *loop("c", plan.classes, better, start=1),
        f"return ({plan.label})best;",
    )
    function = Function(plan.predict_name, plan.label, (plan.parameter,), body, doc, public=True)
    if sums.predict:
        return replace(function, body=sums.predict.body, arrays=sums.predict.arrays, prices=sums.predict.prices)
    return function


def _scores(plan: Plan, sums: Sums) -> Function:
    """Make the function that also adds the tables without the class, so that scores are log-probabilities."""
    parameters = (plan.parameter, f"{plan.score} scores[{plan.classes}]")
    if sums.scores:
        return replace(sums.scores, parameters=parameters, doc=SCORES, public=True)
    body = tuple(_add_up(plan, sums, "scores"))
    if plan.features.gaps and sums.smallest:
        value = (
            "-(int32_t)((uint32_t)sum[c] << shift)" if sums.gaps else f"-(int32_t)((uint32_t)sum[c] << {sums.shift})"
        )
        body = (
            f"{sums.type} sum[{plan.classes}];",
            *(["unsigned shift = 0;"] if sums.gaps else []),
            "unsigned c;",
            *_add_up(plan, sums, "sum", f"shift = {sums.shift};" if sums.gaps else ""),
            *loop("c", plan.classes, [f"scores[c] = {value};"]),
        )
    elif sums.type != plan.score or sums.shared:
        value = f"{'-(int32_t)' if sums.smallest else ''}sum[c]{' + shared' if sums.shared else ''}"
        body = (
            f"{sums.type} sum[{plan.classes}];",
            *([f"const {plan.score} shared = {sums.shared};"] if sums.shared else []),
            "unsigned c;",
            "add_up(x, sum);",
            *loop("c", plan.classes, [f"scores[c] = {value};"]),
        )
    return Function("scores", "void", parameters, body, SCORES, public=True)


def _predict_raw(plan: Plan, dialect: Dialect) -> Function:
    count, prefix = max(1, len(plan.variables)), dialect.prefix
    body = (f"{plan.features.state} x[{count}];", f"{prefix}encode(value, x);", f"return {prefix}predict(x);")
    parameters = (f"const {plan.features.value} value[{count}]",)
    return Function("predict_raw", plan.label, parameters, body, PREDICT_RAW, public=True)


def _enumerations(plan: Plan, dialect: Dialect, constants: tuple[Constant, ...]) -> tuple[Enumeration, ...]:
    """Name the features, the classes, and the states of features that have names for them."""
    name, target = dialect.name, plan.target
    names = Names({dialect.macro(word) for word in (*RESERVED, *(constant.name for constant in constants))})
    enumerations = []
    if plan.variables:
        members = tuple(names.make(name, v.name) for v in plan.variables)
        notes = tuple(describe(v, plan.features.raw) for v in plan.variables)
        enumerations.append(Enumeration(f"{name}_feature", members, "Features, in the order of a row.", notes))
    members = tuple(names.make(name, target.name, s) for s in target.states)
    enumerations.append(Enumeration(f"{name}_class", members, f"Classes: {plain(target.name)}."))
    for i, variable in enumerate(plan.variables):
        if not variable.has_intervals:
            members = tuple(names.make(name, variable.name, s) for s in variable.states)
            doc = f"States of feature {i}: {plain(variable.name)}."
            enumerations.append(Enumeration(f"{name}_states_{i}", members, doc))
    return tuple(enumerations)
