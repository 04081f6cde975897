"""The program of a classifier: its functions, and what a user of it must know."""

from tinybayes.deploy.programs.encoding import Encoding, encode_function, make_encoding
from tinybayes.deploy.programs.names import Names, plain
from tinybayes.deploy.programs.net import net_sums
from tinybayes.deploy.programs.plan import NetPlan, Plan, make_plan
from tinybayes.deploy.programs.program import (
    Constant,
    Dialect,
    Enumeration,
    Function,
    Interface,
    Program,
    Sums,
    block,
    loop,
    unsigned,
)
from tinybayes.deploy.programs.tables import table_sums
from tinybayes.model import BayesNet, NeuralNet

PREDICT = "The most probable class; the first one if several are equally probable."
SCORES = "Scores of all classes; the largest wins."
PREDICT_RAW = "The most probable class of raw measurements."


def classifier_program(model: BayesNet | NeuralNet, dialect: Dialect, raw: str, note: str) -> Program:
    """Make the program of a classifier: ``predict``, ``scores`` and, for raw measurements, ``encode`` and more."""
    encoding = make_encoding(model.variables, raw)
    plan = make_plan(model)
    face = _interface(plan, encoding)
    sums = net_sums(plan, dialect, face.state) if isinstance(plan, NetPlan) else table_sums(plan, dialect, face.state)
    functions = [*sums.functions, _predict(face, sums), _scores(face, sums)]
    if encoding is not None:
        functions += [encode_function(encoding, face.state), _predict_raw(face, dialect)]
    return Program(
        facts=tuple(plan.facts(note)),
        functions=tuple(functions),
        enumerations=_enumerations(plan, dialect),
        constants=(Constant("features", face.features), Constant("classes", face.classes)),
        interface=face,
    )


def _interface(plan: Plan, encoding: Encoding | None) -> Interface:
    classes = plan.target.cardinality
    return Interface(
        features=len(plan.variables),
        classes=classes,
        state=unsigned(max((v.cardinality for v in plan.variables), default=1) - 1),
        label=unsigned(classes - 1),
        score=plan.score,
        value="" if encoding is None else encoding.value_type,
    )


def _row(face: Interface) -> str:
    return f"const {face.state} x[{max(1, face.features)}]"  # no array of C is empty


def _predict(face: Interface, sums: Sums) -> Function:
    better = block(f"if (sum[c] {'<' if sums.smallest else '>'} top)", ["top = sum[c];", "best = c;"])
    body = (
        f"{sums.type} sum[{face.classes}];",
        f"{sums.type} top;",
        "unsigned c, best = 0;",
        "add_up(x, sum);",
        "top = sum[0];",
        *loop("c", face.classes, better, start=1),
        f"return ({face.label})best;",
    )
    return Function("predict", face.label, (_row(face),), body, PREDICT, public=True)


def _scores(face: Interface, sums: Sums) -> Function:
    """Make the function that also adds the tables without the class, so that scores are log-probabilities."""
    parameters = (_row(face), f"{face.score} scores[{face.classes}]")
    body: tuple[str, ...] = ("add_up(x, scores);",)
    if sums.type != face.score or sums.shared:
        value = f"{'-(int32_t)' if sums.smallest else ''}sum[c]{' + shared' if sums.shared else ''}"
        body = (
            f"{sums.type} sum[{face.classes}];",
            *([f"const {face.score} shared = {sums.shared};"] if sums.shared else []),
            "unsigned c;",
            "add_up(x, sum);",
            *loop("c", face.classes, [f"scores[c] = {value};"]),
        )
    return Function("scores", "void", parameters, body, SCORES, public=True)


def _predict_raw(face: Interface, dialect: Dialect) -> Function:
    body = (
        f"{face.state} x[{face.features}];",
        f"{dialect.prefix}encode(value, x);",
        f"return {dialect.prefix}predict(x);",
    )
    return Function(
        "predict_raw", face.label, (f"const {face.value} value[{face.features}]",), body, PREDICT_RAW, public=True
    )


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
        if variable.edges is None:
            members = tuple(names.make(name, variable.name, s) for s in variable.states)
            doc = f"States of feature {i}: {plain(variable.name)}."
            enumerations.append(Enumeration(f"{name}_states_{i}", members, doc))
    return tuple(enumerations)
