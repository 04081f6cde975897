"""Functions of the C family beside the prediction: probabilities, margins, a label or none, the names of classes.

`tinybayes.infer.fixed_probabilities` has their arithmetic in Python.
"""

from tinybayes.deploy.programs.plan import Plan, TablePlan
from tinybayes.deploy.programs.program import Array, Dialect, Function, block, loop, number
from tinybayes.infer.fixed_probabilities import (
    FRACTION,
    LARGEST_FLOAT,
    LOW,
    ONE,
    POWERS,
    STEPS,
    IntegerScale,
    headroom,
    last_exponent,
    make_scale,
    reduction,
)

PROBABILITIES = "Probabilities of all classes, in units of 2**-15; they add up to about {one}."
POWER = "Two to the power of -z, for z in units of 2**-16."
DECIDE = "The class with the largest score, and by how much it is ahead."
SCORE_MARGIN = "The margin: the difference between the largest and the second-largest score."
PREDICT_OR = "The most probable class of {row}; otherwise, if the margin is smaller than least."
CLASS_NAME = "The name of a class in UTF-8; an empty text for other numbers."


def answer_functions(plan: Plan, dialect: Dialect, temperature: float) -> tuple[Function, ...]:
    """Make the functions; each one comes after those that it calls."""
    return (
        *_probabilities(plan, dialect, temperature),
        _decide(plan),
        _score_margin(plan, dialect),
        _predict_or(plan, dialect),
        _class_name(plan),
    )


def _probabilities(plan: Plan, dialect: Dialect, temperature: float) -> tuple[Function, Function]:
    classes, scale = plan.classes, make_scale(plan.nats, temperature)
    last = last_exponent(classes)
    down = f"((z >> {FRACTION}) + {headroom(classes)}U)" if headroom(classes) else f"(z >> {FRACTION})"
    power = (
        f"const unsigned i = (unsigned)(z >> {LOW}) & {STEPS - 1}U;",
        "const uint32_t high = two_powers[i];",
        f"const uint32_t drop = (high - two_powers[i + 1U]) * (z & {2**LOW - 1}U);",
        f"return ((high << {LOW}) - drop) >> {down};",
    )
    if isinstance(scale, IntegerScale):
        find = ["const uint32_t d = (uint32_t)s[best] - (uint32_t)s[c];", exponent(scale, last)]
    else:
        ahead = "s[best] > s[c] ? s[best] - s[c] : 0.0F"
        find = [
            f"const float d = ({ahead}) * {number(float(scale))};",
            f"const uint32_t z = d < {last}.0F ? (uint32_t)d : {last}U;",
        ]
    down = f" >> {reduction(classes)}" if reduction(classes) else ""
    body = (
        f"{plan.score} s[{classes}];",
        f"uint32_t weight[{classes}];",
        "uint32_t total = 0;",
        "unsigned c, best = 0;",
        f"{dialect.prefix}scores({plan.row_name}, s);",
        *_find_best(classes),
        *loop(
            "c",
            classes,
            [*find, "weight[c] = two_to_minus(z);", "total += weight[c];"],
        ),
        *([f"total = total{down};"] if down else []),
        *loop("c", classes, [f"p[c] = (uint16_t)((({f'weight[c]{down}'}) * {ONE}U + total / 2U) / total);"]),
    )
    parameters = (plan.parameter, f"uint16_t p[{classes}]")
    doc = PROBABILITIES.format(one=dialect.macro("one") if dialect.prefix else f"{dialect.name}::one")
    return (
        Function("two_to_minus", "uint32_t", ("uint32_t z",), power, POWER, (Array("two_powers", POWERS),)),
        Function("probabilities", "void", parameters, body, doc, public=True),
    )


def exponent(scale: IntegerScale, last: int) -> str:
    """Write ``d * multiplier >> shift``, at most `last`, in 32 bits: large multiples in two halves."""
    by, shift = f"{scale.multiplier}U", scale.shift
    low = f"(d & 0xFFFFU) * {by}"
    if shift <= 31 - last.bit_length():
        z = f"d * {by}" + (f" >> {shift}" if shift else "")
    elif shift <= 16:
        z = f"((d >> 16) * {by} << {16 - shift}) + ({low} >> {shift})"
    else:
        z = f"((d >> 16) * {by} + ({low} >> 16)) >> {shift - 16}"
    least = (
        -(-(last << shift) // scale.multiplier) if scale.multiplier else 2**32
    )  # the smallest difference with the last exponent
    return f"const uint32_t z = d < {least}U ? {z} : {last}U;" if least < 2**32 else f"const uint32_t z = {z};"


def _find_best(classes: int) -> list[str]:
    return loop("c", classes, block("if (s[c] > s[best])", ["best = c;"]), start=1) if classes > 1 else []


def _decide(plan: Plan) -> Function:
    if plan.score == "float":
        kind, most = "float", f"{LARGEST_FLOAT:.9g}F"
        ahead = "s[best] > s[c] ? s[best] - s[c] : 0.0F"
    else:
        kind, most, ahead = "uint32_t", "0x7FFFFFFFU", "(uint32_t)s[best] - (uint32_t)s[c]"
    closer = block("if (c != best && behind < least)", ["least = behind;"])
    body = (
        f"{kind} least = {most};",
        "unsigned c, best = 0;",
        *_find_best(plan.classes),
        *loop("c", plan.classes, [f"const {kind} behind = {ahead};", *closer]),
        f"*ahead = {'' if kind == 'float' else '(int32_t)'}least;",
        "return best;",
    )
    return Function("decide", "unsigned", (f"const {plan.score} *s", f"{plan.score} *ahead"), body, DECIDE)


def _score_margin(plan: Plan, dialect: Dialect) -> Function:
    body = (
        f"{plan.score} s[{plan.classes}], ahead;",
        f"{dialect.prefix}scores({plan.row_name}, s);",
        "(void)decide(s, &ahead);",
        "return ahead;",
    )
    return Function("score_margin", plan.score, (plan.parameter,), body, SCORE_MARGIN, public=True)


def _predict_or(plan: Plan, dialect: Dialect) -> Function:
    raw, prefix, width = plan.features.value, dialect.prefix, max(1, len(plan.variables))
    encodes = plan.encodes
    # Rounded to floats, scores may be equal that were not before the tables without the class were added.
    rounds = isinstance(plan, TablePlan) and plan.values is None and plan.terms.has_common
    body = (
        *([f"{plan.features.state} x[{width}];"] if encodes else []),
        f"{plan.score} s[{plan.classes}], ahead;",
        "unsigned label;",
        *([f"{prefix}encode(value, x);"] if encodes else []),
        f"{prefix}scores({plan.row_name}, s);",
        *(["(void)decide(s, &ahead);", f"label = {prefix}predict(x);"] if rounds else ["label = decide(s, &ahead);"]),
        *block("if (ahead < least)", ["return otherwise;"]),
        f"return ({plan.label})label;",
    )
    row = f"const {raw} value[{width}]" if raw else plan.parameter
    doc = PREDICT_OR.format(row="raw measurements" if raw else "a row")
    parameters = (row, f"{plan.score} least", f"{plan.label} otherwise")
    return Function("predict_or", plan.label, parameters, body, doc, public=True)


def _class_name(plan: Plan) -> Function:
    names = [
        f"{c_string(str(state))}{',' if i < plan.classes - 1 else ''}" for i, state in enumerate(plan.target.states)
    ]
    lines = block(f"static const char *const names[{plan.classes}] =", names)
    known = 'label < {0}U ? names[label] : ""' if plan.classes < 2 ** (8 * _bytes(plan.label)) else "names[label]"
    body = (*lines[:-1], "};", f"return {known.format(plan.classes)};")
    return Function("class_name", "const char *", (f"{plan.label} label",), body, CLASS_NAME, public=True)


def _bytes(kind: str) -> int:
    return int(kind.removeprefix("uint").removesuffix("_t")) // 8


def c_string(text: str) -> str:
    """Write a text as a C string; all but plain letters become octal bytes of UTF-8."""
    letters = [
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode(errors="replace")
    ]
    return f'"{"".join(letters)}"'
