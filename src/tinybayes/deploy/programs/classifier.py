"""The program of a classifier: its functions, and the names of features, classes and states."""

from tinybayes.deploy.programs.encoder import encode_functions
from tinybayes.deploy.programs.names import Names, plain
from tinybayes.deploy.programs.net import net_sums
from tinybayes.deploy.programs.plan import NetPlan, Plan
from tinybayes.deploy.programs.program import Constant, Dialect, Enumeration, Function, Program, Sums, block, loop
from tinybayes.deploy.programs.tables import table_sums

PREDICT = "The most probable class; the first one if several are equally probable."
SCORES = "Scores of all classes; the largest wins."
PREDICT_RAW = "The most probable class of raw measurements."


def classifier_program(plan: Plan, dialect: Dialect, note: str) -> Program:
    """Make the program of a classifier: ``predict``, ``scores`` and, for raw measurements, ``encode`` and more."""
    sums = net_sums(plan, dialect) if isinstance(plan, NetPlan) else table_sums(plan, dialect)
    functions = [*sums.functions, _predict(plan, sums), _scores(plan, sums)]
    if plan.features.value:
        functions += [*encode_functions(plan.features, dialect), _predict_raw(plan, dialect)]
    return Program(
        facts=tuple(plan.facts(note)),
        functions=tuple(functions),
        enumerations=_enumerations(plan, dialect),
        constants=(Constant("features", len(plan.variables)), Constant("classes", plan.classes)),
    )


def _row(plan: Plan) -> str:
    return f"const {plan.features.state} x[{max(1, len(plan.variables))}]"  # no array of C is empty


def _predict(plan: Plan, sums: Sums) -> Function:
    better = block(f"if (sum[c] {'<' if sums.smallest else '>'} top)", ["top = sum[c];", "best = c;"])
    body = (
        f"{sums.type} sum[{plan.classes}];",
        f"{sums.type} top;",
        "unsigned c, best = 0;",
        "add_up(x, sum);",
        "top = sum[0];",
        *loop("c", plan.classes, better, start=1),
        f"return ({plan.label})best;",
    )
    return Function("predict", plan.label, (_row(plan),), body, PREDICT, public=True)


def _scores(plan: Plan, sums: Sums) -> Function:
    """Make the function that also adds the tables without the class, so that scores are log-probabilities."""
    parameters = (_row(plan), f"{plan.score} scores[{plan.classes}]")
    body: tuple[str, ...] = ("add_up(x, scores);",)
    if sums.type != plan.score or sums.shared:
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


def _enumerations(plan: Plan, dialect: Dialect) -> tuple[Enumeration, ...]:
    """Name the features, the classes, and the states of features that have names for them."""
    name, target = dialect.name, plan.target
    names = Names({dialect.macro(word) for word in ("h", "hpp", "features", "classes", "noinline")})
    enumerations = []
    if plan.variables:
        members = tuple(names.make(name, v.name) for v in plan.variables)
        enumerations.append(Enumeration(f"{name}_feature", members, "Features, in the order of x."))
    members = tuple(names.make(name, target.name, s) for s in target.states)
    enumerations.append(Enumeration(f"{name}_class", members, f"Classes: {plain(target.name)}."))
    for i, variable in enumerate(plan.variables):
        if not variable.has_intervals:
            members = tuple(names.make(name, variable.name, s) for s in variable.states)
            doc = f"States of feature {i}: {plain(variable.name)}."
            enumerations.append(Enumeration(f"{name}_states_{i}", members, doc))
    return tuple(enumerations)
