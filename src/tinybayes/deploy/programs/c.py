"""Classifiers as C99: one header and one source file that need nothing but <stdint.h>."""

from tinybayes.deploy.programs._c import text
from tinybayes.deploy.programs._c.circuit import circuit_files
from tinybayes.deploy.programs._c.cut_points import cut_points, raw_kind
from tinybayes.deploy.programs._c.header import functions, header, state_type
from tinybayes.deploy.programs._c.net_files import net_files
from tinybayes.deploy.programs._c.rows import finder
from tinybayes.deploy.programs._c.sums import Sums, class_sums
from tinybayes.deploy.programs._names import check_name
from tinybayes.deploy.programs._plan import Plan, plan
from tinybayes.errors import error
from tinybayes.model import BayesNet, Circuit, NeuralNet

CLOSING = "Reentrant: no allocation, no writable statics, nothing but <stdint.h>."


def to_c(
    model: BayesNet | Circuit | NeuralNet,
    *,
    name: str = "model",
    raw: str | None = None,
    note: str = "",
    query: str | None = None,
    arithmetic: str | None = None,
) -> dict[str, str]:
    """Write a classifier, a circuit or a neural net as C99.

    The code of a network in one `Fixed` format or one `Codebook` uses integers only, and its scores are those of
    `tinybayes.infer.integer_log_joint`, bit for bit. Networks of floats are added up in 32-bit floats; the comment
    at the top bounds the difference.

    The code of a circuit answers for one variable, given any evidence on the others: in integers, as
    `tinybayes.infer.integer_posterior` does bit for bit, or in 32-bit floats. The comment bounds the error.

    The code of a neural net uses integers only, and its scores are those of `tinybayes.infer.neural_net.net_scores`,
    bit for bit.

    Parameters
    ----------
    model
        The classifier, the circuit or the neural net.
    name
        Begins every public name, and names the files.
    raw
        Of a classifier, what ``predict_raw`` takes: ``"float"`` (by default), ``"int"`` (32 bits), or ``"none"`` for
        no such function.
    note
        A line for the comment at the top, such as the measured error.
    query
        Of a circuit: the variable that is asked for; by default the class.
    arithmetic
        Of a circuit: ``"integer"`` (by default) or ``"float"``.

    Returns
    -------
    dict of str
        The texts by file name.
    """
    check_name(name)
    if isinstance(model, Circuit):
        _refuse("a classifier", raw=raw)
        return circuit_files(model, name=name, query=query, arithmetic=arithmetic or "integer", note=note)
    _refuse("a circuit", query=query, arithmetic=arithmetic)
    raw = raw_kind(model.variables, raw or "float")
    if isinstance(model, NeuralNet):
        return net_files(model, name=name, raw=raw, note=note, closing=CLOSING)
    found = plan(model)
    top = text.comment(*found.facts(note), CLOSING)
    return {f"{name}.h": top + header(found, name, raw), f"{name}.c": top + _source(found, name, raw)}


def _refuse(owner: str, **options: str | None) -> None:
    """Raise when an option was given that belongs to models of another kind."""
    for option, value in options.items():
        if value is not None:
            raise error(f"{owner} with this option", repr(value), where=option, remedy="leave it out")


def _source(found: Plan, name: str, raw: str) -> str:
    state, declared = state_type(found), functions(found, name, raw)
    find = finder(found.terms.terms, len(found.terms.rows), found.features, state)
    sums = class_sums(found, find)
    scores = _scores(found, declared["scores"], state, sums)
    out = f'#include "{name}.h"\n\n'
    if "-INFINITY" in sums.data + scores:
        out += "#ifndef INFINITY\n#define INFINITY (1e30F * 1e30F)\n#endif\n\n"
    out += find.data + sums.data + "\n" + (f"{find.function}\n" if find.function else "")
    out += text.comment(f"Adds up the tables; the {'smallest' if sums.better == '<' else 'largest'} sum wins.")
    out += f"static void add_up(const {state} *x, {sums.kind} *sum)\n{{\n{sums.body}}}\n\n"
    out += (
        f"{declared['predict']}\n{{\n    {sums.kind} sum[{found.classes}];\n"
        f"    {sums.kind} top;\n    unsigned c, best = 0;\n    add_up(x, sum);\n    top = sum[0];\n"
        f"    for (c = 1; c < {found.classes}U; ++c) {{\n        if (sum[c] {sums.better} top) {{\n"
        "            top = sum[c];\n            best = c;\n        }\n    }\n"
        f"    return ({text.unsigned(found.classes - 1)})best;\n}}\n\n"
    )
    return out + scores + (_from_raw(found, name, raw, declared) if raw != "none" else "")


def _scores(found: Plan, declaration: str, state: str, sums: Sums) -> str:
    """Write the function that also adds the tables without the class, so that scores are log-probabilities."""
    terms, out, before, shared = found.terms, "", "", ""
    score = "float" if found.values is None else "int32_t"
    if terms.common or len(terms.common_constant):
        find = finder(terms.common, len(terms.entries), found.features, state, "common_")
        start = found.worth(terms.common_constant).sum()
        first = text.number(float(start)) if found.values is None else str(int(start))
        before = f"{find.before}    {score} shared = {first};\n"
        if terms.common:
            out += find.data + text.array("common", score, found.worth(terms.entries)) + find.function + "\n"
            before += f"    unsigned i;\n{find.call}    for (i = 0; i < {len(terms.common)}U; ++i) {{\n"
            before += f"        shared += common[{find.row}];\n    }}\n"
        shared = " + shared"
    value = {"<": "-(int32_t)sum[c]", ">": "sum[c]"}[sums.better]
    return out + (
        f"{declaration}\n{{\n    {sums.kind} sum[{found.classes}];\n    unsigned c;\n{before}    add_up(x, sum);\n"
        f"    for (c = 0; c < {found.classes}U; ++c) {{\n        scores[c] = {value}{shared};\n    }}\n}}\n"
    )


def _from_raw(found: Plan, name: str, raw: str, declared: dict[str, str]) -> str:
    data, body = cut_points(found.net.variables, raw)
    return (
        f"\n{data}\n{declared['encode']}\n{{\n    unsigned i, k = 0;\n"
        f"    for (i = 0; i < {found.features}U; ++i) {{\n{body}    }}\n}}\n\n"
        f"{declared['predict_raw']}\n{{\n    {state_type(found)} x[{found.features}];\n"
        f"    {name}_encode(value, x);\n    return {name}_predict(x);\n}}\n"
    )
