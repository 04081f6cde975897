"""The whole program of a classifier for the C family: the prediction, the functions around it, and what it states."""

import math
from dataclasses import replace

from tinybayes.deploy._price.counts import count_program
from tinybayes.deploy.price import price
from tinybayes.deploy.programs.answers import answer_functions
from tinybayes.deploy.programs.classifier import classifier_program
from tinybayes.deploy.programs.names import upwards
from tinybayes.deploy.programs.plan import NetPlan, Plan
from tinybayes.deploy.programs.program import Constant, Dialect, Function, Program, number
from tinybayes.deploy.programs.selftest import selftest_function
from tinybayes.deploy.programs.tree_plan import TreePlan
from tinybayes.errors import error
from tinybayes.infer.calibration import Calibration
from tinybayes.infer.fixed_probabilities import LARGEST, ONE, probability_error

ONE_DOC = "The probability of 1."
MARGIN_DOC = (
    "Rows with a smaller margin are rejected: {rejected} of {rows:,} validation rows; {error} of the others wrong."
)


def whole_program(
    plan: Plan, dialect: Dialect, note: str, calibration: Calibration | None, *, extras: bool = True
) -> Program:
    """Make the program with all its functions; without `extras` with those that a prediction needs."""
    calibration = calibration or Calibration()
    program = classifier_program(plan, dialect, note)
    *facts, last = program.facts
    if not extras:
        return replace(program, facts=(*facts, _price_fact(plan), last))
    constants = (*program.constants, Constant("one", ONE, ONE_DOC, "uint16_t"), *_margin(plan, calibration))
    return replace(
        program,
        functions=tuple(_apart(f) if isinstance(plan, NetPlan) else f for f in program.functions),
        facts=(*facts, _price_fact(plan), _calibration_fact(plan, calibration), last),
        constants=constants,
        optional=(*answer_functions(plan, dialect, calibration.temperature), selftest_function(plan, dialect)),
    )


def _apart(function: Function) -> Function:
    """Keep the scores of a net out of other functions: with more calls of its layers the prediction would change."""
    return replace(function, noinline=True) if function.name == "scores" else function


def refuse_classifier_options(**options: object) -> None:
    """Raise when an option of classifiers was given for a circuit."""
    for option, value in options.items():
        if value is not None:
            raise error("a classifier of tables or a neural net with this option", "a circuit", where=option)


def margin_units(plan: Plan, nats: float) -> int | float:
    """Return a margin in the unit of scores, rounded up; a row that has exactly this margin keeps it."""
    if plan.nats is None:
        return nats
    return min(math.ceil(nats / plan.nats - 1e-6), LARGEST)


def _margin(plan: Plan, calibration: Calibration) -> tuple[Constant, ...]:
    chosen = calibration.chosen
    if chosen is None:
        return ()
    units = margin_units(plan, chosen.nats)
    value = str(units) if plan.nats is not None else number(float(units))
    shares = {"rejected": _percent(chosen.rejected), "error": _percent(chosen.error)}
    return (Constant("margin", value, MARGIN_DOC.format(**shares, rows=calibration.rows), plan.score),)


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _price_fact(plan: Plan) -> str:
    # Cached on the model, which is immutable: it is often written in several languages.
    kept = plan.model.__dict__.setdefault("_prices", {})
    key = plan.features.raw, plan.features.gaps, plan.form if isinstance(plan, TreePlan | NetPlan) else None
    if key not in kept:
        cost = price(count_program(plan, most=0), "cortex-m0+")
        kept[key] = f"{cost.flash:,} B of flash, {cost.ram:,} B of static RAM, {cost.stack:,} B of stack"
    return f"{'predict_raw' if plan.features.value else 'predict'} on a Cortex-M0+, estimated: {kept[key]}."


def _calibration_fact(plan: Plan, calibration: Calibration) -> str:
    fitted = f"fitted on {calibration.rows:,} validation rows" if calibration.rows else "not calibrated"
    bound = upwards(probability_error(plan.classes))
    heat = f"temperature {calibration.temperature:.4g} ({fitted})"
    return f"Probabilities are a softmax of scores at {heat}, within {bound}."
