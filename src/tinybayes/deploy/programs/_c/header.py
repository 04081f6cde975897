"""The header of an exported classifier: sizes, names of features, classes and states, and the functions."""

from collections.abc import Iterable
from typing import Protocol

from tinybayes.deploy.programs._c import text
from tinybayes.deploy.programs._names import Names
from tinybayes.deploy.programs._plan import plain
from tinybayes.model import Variable

PREDICT = "The most probable class; of equally probable ones the first."
SCORES = "Scores of all classes; the largest wins."
ENCODE = "The states of raw measurements; a feature without cut points takes the number of its state."
RAW = "The most probable class of raw measurements."


class Interface(Protocol):
    """What a header says of a classifier of any kind."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The features."""

    @property
    def target(self) -> Variable:
        """The class variable."""

    @property
    def score(self) -> str:
        """The C type of a score."""


def functions(plan: Interface, name: str, raw: str) -> dict[str, str]:
    """Return the declarations of the public functions, without semicolon, by what they do."""
    features, classes = len(plan.variables), plan.target.cardinality
    state, label = state_type(plan), text.unsigned(classes - 1)
    x = f"{state} x[{max(1, features)}]"  # no array of C is empty
    found = {
        "predict": f"{label} {name}_predict(const {x})",
        "scores": f"void {name}_scores(const {x}, {plan.score} scores[{classes}])",
    }
    if raw != "none":
        value = f"const {'float' if raw == 'float' else 'int32_t'} value[{features}]"
        found["encode"] = f"void {name}_encode({value}, {x})"
        found["predict_raw"] = f"{label} {name}_predict_raw({value})"
    return found


def state_type(plan: Interface) -> str:
    """Return the C type of a code."""
    return text.unsigned(max((v.cardinality for v in plan.variables), default=1) - 1)


def header(plan: Interface, name: str, raw: str) -> str:
    """Write the header."""
    upper = name.upper()
    out = f"#ifndef {upper}_H\n#define {upper}_H\n\n#include <stdint.h>\n\n"
    out += '#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
    out += f"#define {upper}_FEATURES {len(plan.variables)}\n#define {upper}_CLASSES {plan.target.cardinality}\n\n"
    out += constants(plan, name)
    said = {"predict": PREDICT, "scores": SCORES, "encode": ENCODE, "predict_raw": RAW}
    for what, declaration in functions(plan, name, raw).items():
        out += f"{text.comment(said[what])}{declaration};\n\n"
    return out + "#ifdef __cplusplus\n}\n#endif\n\n#endif\n"


def constants(plan: Interface, name: str) -> str:
    """Write the enumerations: features, classes, and the states of features that have names for them."""
    upper, variables = name.upper(), plan.variables
    names, out = Names({f"{upper}_{word}" for word in ("H", "HPP", "FEATURES", "CLASSES", "APART")}), ""
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
