"""Densities as C++11: one header in a namespace, with std::array and a type for the memory of a call."""

from tinybayes.deploy.programs.circuit_cpp import TEST, framed
from tinybayes.deploy.programs.density_plan import DensityPlan
from tinybayes.deploy.programs.program import Dialect, Program

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
    docs = {function.name: function.doc for function in program.public}
    out = ENCODE.format(**docs) if plan.features.value else ""
    for name in ("log_likelihood", "log_likelihood_raw", "alarm", "alarm_raw"):
        if name in docs:
            element, row = ("Value", "value") if name.endswith("_raw") else ("State", "x")
            kind, truth = ("bool", " != 0") if name.startswith("alarm") else ("int32_t", "")
            out += FUNCTION.format(doc=docs[name], kind=kind, name=name, element=element, row=row, truth=truth)
    out += TEST.format(**docs) if program.optional else ""
    return framed(program, dialect, {"State": plan.features.state, "Value": plan.features.value}, out)
