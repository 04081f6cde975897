"""Models as C++11: one header in a namespace, with std::array, that needs no other file.

The tables are constants inside inline functions, so that all translation units of a program share one copy.
"""

from tinybayes.deploy.programs.c import NOINLINE
from tinybayes.deploy.programs.circuit_cpp import circuit_header
from tinybayes.deploy.programs.circuit_interface import whole_circuit
from tinybayes.deploy.programs.circuit_plan import make_circuit_plan, refuse_circuit_options
from tinybayes.deploy.programs.density import density_program
from tinybayes.deploy.programs.density_cpp import density_header
from tinybayes.deploy.programs.density_plan import is_density, make_density_plan, refuse_alarm
from tinybayes.deploy.programs.interface import refuse_classifier_options, whole_program
from tinybayes.deploy.programs.names import check_name
from tinybayes.deploy.programs.plan import Plan, make_plan
from tinybayes.deploy.programs.program import Dialect, Program, comment
from tinybayes.infer.alarm import Alarm
from tinybayes.infer.calibration import Calibration
from tinybayes.model import Circuit, Classifier

KINDS = ("uint8", "uint16", "uint32", "int8", "int16", "int32")
BITS = ("uint32_t bits;", "std::memcpy(&bits, &value, sizeof bits);")
CLOSING = "Reentrant: no allocation, no writable statics."
FUNCTIONS = """// {label}
inline Label {function}(const std::array<{element}, features> &{given})
{{
    return detail::{function}({given}.data());
}}

// {scores}
inline std::array<Score, classes> scores(const std::array<{element}, features> &{given})
{{
    std::array<Score, classes> result;
    detail::scores({given}.data(), result.data());
    return result;
}}

"""
FROM_RAW = """// {encode}
inline std::array<State, features> encode(const std::array<Value, features> &value)
{{
    std::array<State, features> x;
    detail::encode(value.data(), x.data());
    return x;
}}

// {predict_raw}
inline Label predict_raw(const std::array<Value, features> &value)
{{
    return detail::predict_raw(value.data());
}}

"""
ANSWERS = """// {probabilities}
inline std::array<uint16_t, classes> probabilities(const std::array<{element}, features> &{given})
{{
    std::array<uint16_t, classes> result;
    detail::probabilities({given}.data(), result.data());
    return result;
}}

// {score_margin}
inline Score score_margin(const std::array<{element}, features> &{given})
{{
    return detail::score_margin({given}.data());
}}

// {predict_or}
inline Label predict_or(const std::array<{kind}, features> &{row}, Score least, Label otherwise)
{{
    return detail::predict_or({row}.data(), least, otherwise);
}}

// {class_name}
inline const char *class_name(Label label)
{{
    return detail::class_name(label);
}}

// {selftest}
inline int selftest()
{{
    return detail::selftest();
}}

"""


def to_cpp(
    net: Classifier,
    *,
    name: str = "model",
    raw: str | None = None,
    note: str = "",
    gaps: bool = True,
    query: str | None = None,
    arithmetic: str | None = None,
    calibration: Calibration | None = None,
    alarm: Alarm | None = None,
    extras: bool = True,
    form: str | None = None,
) -> dict[str, str]:
    """Write a model as a C++11 header; its functions are those of `to_c`, so that both give the same bits."""
    dialect = Dialect(check_name(name), "", helper="inline", float_bits=BITS, local_tables=True)
    if isinstance(net, Circuit):
        refuse_classifier_options(calibration=calibration, form=form)
        if is_density(net, query):
            density = make_density_plan(net, raw, gaps=gaps, arithmetic=arithmetic, alarm=alarm)
            written = density_program(density, dialect, note, extras=extras)
            return {f"{name}.hpp": density_header(written, density, dialect)}
        refuse_alarm(alarm)
        asked = make_circuit_plan(net, raw, gaps=gaps, query=query, arithmetic=arithmetic)
        return {f"{name}.hpp": circuit_header(whole_circuit(asked, dialect, note, extras=extras), asked, dialect)}
    refuse_circuit_options(query=query, arithmetic=arithmetic)
    refuse_alarm(alarm)
    plan = make_plan(net, raw, gaps=gaps, form=form)
    program, guard = whole_program(plan, dialect, note, calibration, extras=extras), dialect.macro("hpp")
    noinline = dialect.macro("noinline")
    out = comment(*program.facts, CLOSING) + f"#ifndef {guard}\n#define {guard}\n\n"
    out += "#include <array>\n" + ("#include <cmath>\n" if program.infinities else "")
    out += (
        f"#include <cstddef>\n#include <cstdint>\n#include <cstring>\n\nnamespace {name} {{\n\n{_types(program, plan)}"
    )
    out += "".join(enumeration.text() for enumeration in program.enumerations) + "namespace detail {\n\n"
    out += NOINLINE.format(noinline=noinline) if program.noinline else ""
    out += "".join(f"{array.shared(dialect)}\n" for array in program.tables)
    functions = (*program.functions, *program.optional)
    out += "".join(f"{function.text(dialect, program.tables)}\n" for function in functions)
    out += (f"#undef {noinline}\n\n" if program.noinline else "") + "}\n\n"
    docs = {function.name: function.doc for function in program.public}
    row = {"kind": "Value", "row": "value"} if plan.features.value else {"kind": "State", "row": "x"}
    row |= {"element": "Value" if plan.takes_raw else "State", "given": plan.row_name}
    row |= {"function": plan.predict_name, "label": docs[plan.predict_name]}
    out += (FUNCTIONS + (FROM_RAW if plan.encodes else "") + (ANSWERS if extras else "")).format(**docs, **row)
    return {f"{name}.hpp": f"{out}}}\n\n#endif\n"}


def _types(program: Program, plan: Plan) -> str:
    out = "// The types of the interface, and the fixed-width ones that the code uses.\n"
    out += "".join(f"using std::{kind}_t;\n" for kind in KINDS)
    out += f"using State = {plan.features.state};\nusing Label = {plan.label};\nusing Score = {plan.score};\n"
    out += f"using Value = {plan.features.value};\n" if plan.features.value else ""
    out += "\n"
    for constant in program.constants:
        doc = f"// {constant.doc}\n" if constant.doc else ""
        out += f"{doc}constexpr {constant.kind} {constant.name} = {constant.value};\n"
    return f"{out}\n"
