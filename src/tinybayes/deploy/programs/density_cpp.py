"""Densities as C++11: one header in a namespace, with std::array and a type for the memory of a call."""

from tinybayes.deploy.programs.circuit_cpp import CLOSING, TEST
from tinybayes.deploy.programs.density_plan import DensityPlan
from tinybayes.deploy.programs.program import Dialect, Program, comment

ENCODE = """// {encode}
inline std::array<State, variables> encode(const std::array<Value, variables> &value)
{{
    std::array<State, variables> x;
    detail::encode(value.data(), x.data());
    return x;
}}

"""
FUNCTION = """// {doc}
inline {kind} {name}(const std::array<{element}, variables> &{row}, Memory &memory)
{{
    return detail::{name}({row}.data(), &memory){truth};
}}

"""


def density_header(program: Program, plan: DensityPlan, dialect: Dialect) -> str:
    """Write the header; its functions are those of C, so that both give the same bits."""
    guard = dialect.macro("hpp")
    out = comment(*program.facts, CLOSING) + f"#ifndef {guard}\n#define {guard}\n\n#include <array>\n"
    out += "#include <cmath>\n" if program.infinities else ""
    out += f"#include <cstddef>\n#include <cstdint>\n#include <cstring>\n\nnamespace {dialect.name} {{\n\n"
    out += _types(program, plan) + "".join(enumeration.text() for enumeration in program.enumerations)
    out += f"{program.public_types}\nnamespace detail {{\n\n"
    functions = (*program.functions, *program.optional)
    out += "".join(f"{function.text(dialect)}\n" for function in functions) + "}\n\n"
    docs = {function.name: function.doc for function in program.public}
    out += ENCODE.format(**docs) if plan.features.value else ""
    for name in ("log_likelihood", "log_likelihood_raw", "alarm", "alarm_raw"):
        if name in docs:
            element, row = ("Value", "value") if name.endswith("_raw") else ("State", "x")
            kind, truth = ("bool", " != 0") if name.startswith("alarm") else ("int32_t", "")
            out += FUNCTION.format(doc=docs[name], kind=kind, name=name, element=element, row=row, truth=truth)
    out += TEST.format(**docs) if program.optional else ""
    return f"{out}}}\n\n#endif\n"


def _types(program: Program, plan: DensityPlan) -> str:
    widths = ("uint8", "uint16", "uint32", "int8", "int16", "int32")
    out = "// The types of the interface, and the fixed-width ones that the code uses.\n"
    out += "".join(f"using std::{kind}_t;\n" for kind in widths)
    out += f"using State = {plan.features.state};\n"
    out += f"using Value = {plan.features.value};\n\n" if plan.features.value else "\n"
    for constant in program.constants:
        doc = f"// {constant.doc}\n" if constant.doc else ""
        out += f"{doc}constexpr {constant.kind} {constant.name} = {constant.value};\n"
    return f"{out}\n"
