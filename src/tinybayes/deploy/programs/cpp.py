"""Classifiers as C++11: one header in a namespace, with std::array, that needs no other file.

The tables are constants inside of inline functions, so that all translation units of a program share one copy.
"""

from tinybayes.deploy.programs._c import text
from tinybayes.deploy.programs._c.cut_points import cut_points, raw_kind
from tinybayes.deploy.programs._c.header import ENCODE, PREDICT, SCORES, Interface, constants, state_type
from tinybayes.deploy.programs._c.header import RAW as PREDICT_RAW
from tinybayes.deploy.programs._c.net import APART, net_code
from tinybayes.deploy.programs._c.rows import Finder, finder
from tinybayes.deploy.programs._c.sums import class_sums
from tinybayes.deploy.programs._names import check_name
from tinybayes.deploy.programs._net_plan import NetPlan, net_plan
from tinybayes.deploy.programs._plan import Plan, plan
from tinybayes.model import BayesNet, NeuralNet

CLOSING = "Reentrant: no allocation, no writable statics."


def to_cpp(net: BayesNet | NeuralNet, *, name: str = "model", raw: str = "float", note: str = "") -> dict[str, str]:
    """Write a classifier as a C++11 header.

    It adds up what `to_c` adds up, in the same order and the same types, so that both give the same bits.

    Parameters
    ----------
    net
        The classifier, or the neural net.
    name
        The namespace, and the name of the file.
    raw
        What ``predict_raw`` takes: ``"float"``, ``"int"`` (32 bits), or ``"none"`` for no such function.
    note
        A line for the comment at the top, such as the measured error.

    Returns
    -------
    dict of str
        The text by file name.
    """
    check_name(name)
    raw = raw_kind(net.variables, raw)
    found: Plan | NetPlan = net_plan(net) if isinstance(net, NeuralNet) else plan(net)
    shared = isinstance(found, Plan) and _has_shared(found)
    body = _sums(found) if isinstance(found, Plan) else _layers(found, name)
    body += _predict() + _scores(shared) + (_from_raw(found, raw) if raw != "none" else "")
    guard = f"{name.upper()}_HPP"
    out = text.comment(*found.facts(note), CLOSING) + f"#ifndef {guard}\n#define {guard}\n\n"
    out += "#include <array>\n" + ("#include <cmath>\n" if "-INFINITY" in body else "")
    out += "#include <cstddef>\n#include <cstdint>\n\n" + f"namespace {name} {{\n\n"
    return {f"{name}.hpp": out + _types(found, raw) + constants(found, name) + body + "}\n\n#endif\n"}


def _types(found: Interface, raw: str) -> str:
    score = "float" if found.score == "float" else "std::int32_t"
    features, classes = len(found.variables), found.target.cardinality
    out = "// The types of the interface, and the fixed-width ones that the code uses.\n"
    out += "".join(f"using std::{kind}_t;\n" for kind in ("uint8", "uint16", "uint32", "int32"))
    out += f"using State = {state_type(found)};\nusing Label = {text.unsigned(classes - 1)};\n"
    out += f"using Score = {score};\n"
    if raw != "none":
        out += f"using Value = {'float' if raw == 'float' else 'int32_t'};\n"
    return f"{out}\nconstexpr std::size_t features = {features};\nconstexpr std::size_t classes = {classes};\n\n"


def _layers(found: NetPlan, name: str) -> str:
    """Write ``detail::add_up`` of a neural net, and the layers that it needs."""
    apart = f"{name.upper()}_APART"
    code = net_code(found, apart)
    out = f"namespace detail {{\n\nusing Sum = Score;\n\n{APART.format(apart=apart)}"
    out += code.kernels.replace("static ", "inline ") + f"#undef {apart}\n\n"
    for layer in code.layers:
        out += f"// {layer.said}\ninline {layer.head}\n{{\n{_indent(layer.data)}{layer.body}}}\n\n"
    out += f"inline void add_up(const State *x, Sum *score)\n{{\n{code.body}}}\n\n"
    out += "inline bool better(Sum a, Sum b)\n{\n    return a > b;\n}\n\n"
    return f"{out}inline Score as_score(Sum sum)\n{{\n    return sum;\n}}\n\n}}\n\n"


def _sums(found: Plan) -> str:
    """Write ``detail::add_up``, and what it needs."""
    terms = found.terms
    find = finder(terms.terms, len(terms.rows), found.features, state_type(found))
    sums = class_sums(found, find)
    data = sums.data if find.function else find.data + sums.data
    winner, value = ("smallest", "-static_cast<Score>(sum)") if sums.better == "<" else ("largest", "sum")
    return (
        f"namespace detail {{\n\nusing Sum = {sums.kind};\n\n{_finder(find)}"
        f"// Adds up the tables; the {winner} sum wins.\n"
        f"inline void add_up(const State *x, Sum *sum)\n{{\n{_indent(data)}{sums.body}}}\n\n"
        f"inline bool better(Sum a, Sum b)\n{{\n    return a {sums.better} b;\n}}\n\n"
        f"inline Score as_score(Sum sum)\n{{\n    return {value};\n}}\n\n"
        f"{_shared(found) if _has_shared(found) else ''}}}\n\n"
    )


def _has_shared(found: Plan) -> bool:
    return bool(found.terms.common or len(found.terms.common_constant))


def _finder(find: Finder) -> str:
    """Write the function that finds all rows, with its tables inside; there may be none."""
    if not find.function:
        return ""
    head, body = find.function.split("\n{\n", 1)
    return f"{head.replace('static', 'inline', 1)}\n{{\n{_indent(find.data)}{body}\n"


def _shared(found: Plan) -> str:
    """Write what the tables without the class add to the scores of all classes."""
    terms = found.terms
    find = finder(terms.common, len(terms.entries), found.features, state_type(found), "common_")
    total = found.worth(terms.common_constant).sum()
    start = text.number(float(total)) if found.values is None else str(int(total))
    body, x, data = f"    Score sum = {start};\n", "const State *", ""
    if terms.common:
        x, data = "const State *x", text.array("common", "Score", found.worth(terms.entries))
        data = data if find.function else find.data + data
        body = f"{find.before}{body}    unsigned i;\n{find.call}    for (i = 0; i < {len(terms.common)}U; ++i) {{\n"
        body += f"        sum += common[{find.row}];\n    }}\n"
    out = f"{_finder(find)}// What the tables without the class add to all scores.\n"
    return out + f"inline Score shared({x})\n{{\n{_indent(data)}{body}    return sum;\n}}\n\n"


def _predict() -> str:
    return (
        f"// {PREDICT}\ninline Label predict(const std::array<State, features> &x)\n{{\n"
        "    detail::Sum sum[classes];\n    unsigned best = 0;\n    detail::add_up(x.data(), sum);\n"
        "    for (unsigned c = 1; c < classes; ++c) {\n        if (detail::better(sum[c], sum[best])) {\n"
        "            best = c;\n        }\n    }\n    return static_cast<Label>(best);\n}\n\n"
    )


def _scores(shared: bool) -> str:
    first, more = "", ""
    if shared:
        first, more = "    const Score shared = detail::shared(x.data());\n", " + shared"
    return (
        f"// {SCORES}\ninline std::array<Score, classes> scores(const std::array<State, features> &x)\n{{\n"
        f"    detail::Sum sum[classes];\n    std::array<Score, classes> found;\n{first}"
        "    detail::add_up(x.data(), sum);\n    for (std::size_t c = 0; c < classes; ++c) {\n"
        f"        found[c] = detail::as_score(sum[c]){more};\n    }}\n    return found;\n}}\n\n"
    )


def _from_raw(found: Interface, raw: str) -> str:
    data, body = cut_points(found.variables, raw)
    given = "const std::array<Value, features> &"
    return (
        f"// {ENCODE}\ninline std::array<State, features> encode({given}raw)\n{{\n{_indent(data)}"
        "    const Value *value = raw.data();\n    std::array<State, features> x;\n    unsigned k = 0;\n"
        f"    for (unsigned i = 0; i < features; ++i) {{\n{body}    }}\n    return x;\n}}\n\n"
        f"// {PREDICT_RAW}\ninline Label predict_raw({given}raw)\n{{\n    return predict(encode(raw));\n}}\n\n"
    )


def _indent(lines: str) -> str:
    return "".join(f"    {line}\n" for line in lines.splitlines())
