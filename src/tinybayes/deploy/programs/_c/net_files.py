"""Neural networks as C99: a header and a source file."""

from tinybayes.deploy.programs._c import text
from tinybayes.deploy.programs._c.cut_points import cut_points
from tinybayes.deploy.programs._c.header import functions, header, state_type
from tinybayes.deploy.programs._c.net import APART, net_code
from tinybayes.deploy.programs._net_plan import NetPlan, net_plan
from tinybayes.model import NeuralNet


def net_files(net: NeuralNet, *, name: str, raw: str, note: str, closing: str) -> dict[str, str]:
    """Write a network; see `tinybayes.deploy.programs.c.to_c`."""
    found = net_plan(net)
    top = text.comment(*found.facts(note), closing)
    return {f"{name}.h": top + header(found, name, raw), f"{name}.c": top + _source(found, name, raw)}


def _source(found: NetPlan, name: str, raw: str) -> str:
    declared, classes = functions(found, name, raw), found.target.cardinality
    apart = f"{name.upper()}_APART"
    code, state = net_code(found, apart), state_type(found)
    out = f'#include "{name}.h"\n\n' + APART.format(apart=apart) + code.kernels
    for layer in code.layers:
        out += f"{text.comment(layer.said)}{layer.data}\nstatic {layer.head}\n{{\n{layer.body}}}\n\n"
    out += f"static void add_up(const {state} *x, int32_t *score)\n{{\n{code.body}}}\n\n"
    out += (
        f"{declared['predict']}\n{{\n    int32_t score[{classes}];\n    unsigned c, best = 0;\n"
        f"    add_up(x, score);\n    for (c = 1; c < {classes}U; ++c) {{\n"
        "        if (score[c] > score[best]) {\n            best = c;\n        }\n    }\n"
        f"    return ({text.unsigned(classes - 1)})best;\n}}\n\n"
        f"{declared['scores']}\n{{\n    add_up(x, scores);\n}}\n"
    )
    if raw == "none":
        return out
    data, body = cut_points(found.variables, raw)
    features = len(found.variables)
    return out + (
        f"\n{data}\n{declared['encode']}\n{{\n    unsigned i, k = 0;\n"
        f"    for (i = 0; i < {features}U; ++i) {{\n{body}    }}\n}}\n\n"
        f"{declared['predict_raw']}\n{{\n    {state} x[{features}];\n"
        f"    {name}_encode(value, x);\n    return {name}_predict(x);\n}}\n"
    )
