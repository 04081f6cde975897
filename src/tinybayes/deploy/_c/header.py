"""The header of an exported classifier: sizes, names of features, classes and states, and the functions."""

from collections.abc import Iterable

from tinybayes.deploy._c import text
from tinybayes.deploy._names import Names
from tinybayes.deploy._plan import Plan, plain

PREDICT = "The most probable class; of equally probable ones the first."
SCORES = "Scores of all classes; the largest wins."
ENCODE = "The states of raw measurements; a feature without cut points takes the number of its state."
RAW = "The most probable class of raw measurements."


def functions(plan: Plan, name: str, raw: str) -> dict[str, str]:
    """Return the declarations of the public functions, without semicolon, by what they do."""
    state, label = state_type(plan), text.unsigned(plan.classes - 1)
    x = f"{state} x[{max(1, plan.features)}]"  # no array of C is empty
    score = "float" if plan.values is None else "int32_t"
    found = {
        "predict": f"{label} {name}_predict(const {x})",
        "scores": f"void {name}_scores(const {x}, {score} scores[{plan.classes}])",
    }
    if raw != "none":
        value = f"const {'float' if raw == 'float' else 'int32_t'} value[{plan.features}]"
        found["encode"] = f"void {name}_encode({value}, {x})"
        found["predict_raw"] = f"{label} {name}_predict_raw({value})"
    return found


def state_type(plan: Plan) -> str:
    """Return the C type of a code."""
    return text.unsigned(max(plan.terms.states, default=1) - 1)


def header(plan: Plan, name: str, raw: str) -> str:
    """Write the header."""
    upper = name.upper()
    out = f"#ifndef {upper}_H\n#define {upper}_H\n\n#include <stdint.h>\n\n"
    out += '#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
    out += f"#define {upper}_FEATURES {plan.features}\n#define {upper}_CLASSES {plan.classes}\n\n"
    out += constants(plan, name)
    said = {"predict": PREDICT, "scores": SCORES, "encode": ENCODE, "predict_raw": RAW}
    for what, declaration in functions(plan, name, raw).items():
        out += f"{text.comment(said[what])}{declaration};\n\n"
    return out + "#ifdef __cplusplus\n}\n#endif\n\n#endif\n"


def constants(plan: Plan, name: str) -> str:
    """Write the enumerations: features, classes, and the states of features that have names for them."""
    upper, variables = name.upper(), plan.net.variables
    names, out = Names({f"{upper}_{word}" for word in ("H", "HPP", "FEATURES", "CLASSES")}), ""
    if variables:
        out += text.comment("Features, in the order of x.")
        out += _enum(f"{name}_feature", (names.make(upper, v.name) for v in variables))
    out += text.comment(f"Classes: {plain(plan.target.name)}.")
    out += _enum(f"{name}_class", (names.make(upper, plan.target.name, s) for s in plan.target.states))
    for i, variable in enumerate(variables):
        if variable.edges is None:
            out += text.comment(f"States of feature {i}: {plain(variable.name)}.")
            out += _enum(f"{name}_states_{i}", (names.make(upper, variable.name, s) for s in variable.states))
    return out


def _enum(name: str, members: Iterable[str]) -> str:
    lines = ",\n".join(f"    {member} = {i}" for i, member in enumerate(members))
    return f"enum {name} {{\n{lines}\n}};\n\n"
