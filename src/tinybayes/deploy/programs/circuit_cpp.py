"""Circuits as C++11: one header in a namespace, with std::array and a type for the memory of a call."""

from collections.abc import Mapping

from tinybayes.deploy.programs.circuit_plan import CircuitPlan
from tinybayes.deploy.programs.program import Dialect, Program, comment

CLOSING = "Reentrant: no allocation, no writable statics; calls at the same time need a Memory each."
FUNCTIONS = """// {predict}
inline Label predict(const std::array<State, variables> &x, Memory &memory)
{{
    return detail::predict(x.data(), &memory);
}}

// {posterior}
inline bool posterior(const std::array<State, variables> &x, Memory &memory, std::array<Posterior, states> &result)
{{
    return detail::posterior(x.data(), &memory, result.data()) != 0;
}}

"""
FROM_RAW = """// {encode}
inline std::array<State, variables> encode(const std::array<Value, variables> &value)
{{
    std::array<State, variables> x;
    detail::encode(value.data(), x.data());
    return x;
}}

// {predict_raw}
inline Label predict_raw(const std::array<Value, variables> &value, Memory &memory)
{{
    return detail::predict_raw(value.data(), &memory);
}}

// {posterior_raw}
inline bool posterior_raw(const std::array<Value, variables> &value, Memory &memory,
                          std::array<Posterior, states> &result)
{{
    return detail::posterior_raw(value.data(), &memory, result.data()) != 0;
}}

"""
TEST = """// {selftest}
inline int selftest(Memory &memory)
{{
    return detail::selftest(&memory);
}}

"""


def circuit_header(program: Program, plan: CircuitPlan, dialect: Dialect) -> str:
    """Write the header; its functions are those of C, so that both give the same bits."""
    docs = {function.name: function.doc for function in program.public}
    texts = FUNCTIONS + (FROM_RAW if plan.features.value else "") + (TEST if program.optional else "")
    types = {"State": plan.features.state, "Label": plan.label, "Posterior": plan.numbers.score}
    return framed(program, dialect, {**types, "Value": plan.features.value}, texts.format(**docs))


def framed(program: Program, dialect: Dialect, types: Mapping[str, str | None], public: str) -> str:
    """Return a header of the code of a program, with the types that it has, and public functions."""
    guard = dialect.macro("hpp")
    out = comment(*program.facts, CLOSING) + f"#ifndef {guard}\n#define {guard}\n\n#include <array>\n"
    out += "#include <cmath>\n" if program.infinities else ""
    out += f"#include <cstddef>\n#include <cstdint>\n#include <cstring>\n\nnamespace {dialect.name} {{\n\n"
    out += _types(program, types) + "".join(enumeration.text() for enumeration in program.enumerations)
    out += f"{program.public_types}\nnamespace detail {{\n\n{program.types}\n"
    functions = (*program.functions, *program.optional)
    out += "".join(f"{function.text(dialect)}\n" for function in functions) + f"}}\n\n{public}"
    return f"{out}}}\n\n#endif\n"


def _types(program: Program, types: Mapping[str, str | None]) -> str:
    widths = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32")
    out = "// The types of the interface, and the fixed-width ones that the code uses.\n"
    out += "".join(f"using std::{kind}_t;\n" for kind in widths)
    out += "".join(f"using {name} = {kind};\n" for name, kind in types.items() if kind) + "\n"
    for constant in program.constants:
        doc = f"// {constant.doc}\n" if constant.doc else ""
        out += f"{doc}constexpr {constant.kind} {constant.name} = {constant.value};\n"
    return f"{out}\n"
