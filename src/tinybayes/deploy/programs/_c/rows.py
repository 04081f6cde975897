"""C code that finds the row of every term from the codes of the features."""

from dataclasses import dataclass

import numpy as np

from tinybayes.deploy.programs._c import text
from tinybayes.deploy.programs._terms import Term


@dataclass(frozen=True)
class Finder:
    """How generated code finds rows: constant data, a function (or none), the lines that use it, the row in a loop."""

    data: str
    function: str
    before: str
    call: str
    row: str


def finder(terms: tuple[Term, ...], rows: int, features: int, state: str, names: str = "") -> Finder:
    """Choose the shortest way: directly for naive Bayes, two steps for trees, lists of steps otherwise.

    Parameters
    ----------
    terms
        The terms; none has an empty list of steps. Without terms there is nothing to find.
    rows
        Number of all their rows.
    features
        Number of features.
    state
        The C type of a code.
    names
        Put before all names, for a second set of terms in the same file.
    """
    if not terms:
        return Finder("", "", "", "", "")
    kind, index = text.unsigned(rows), text.unsigned(features)
    first = text.array(f"{names}first", kind, np.array([t.first for t in terms], dtype=np.int64))
    own = [t.steps[-1][0] for t in terms]
    if all(t.steps[-1][1] == 1 and len(t.steps) <= 2 for t in terms):
        data, here = first, "x[i]"
        if own != list(range(len(terms))):
            data += text.array(f"{names}own", index, np.array(own))
            here = f"x[{names}own[i]]"
        if all(len(t.steps) == 1 for t in terms):
            return Finder(data, "", "", "", f"{names}first[i] + {here}")
        return _tree(terms, kind, index, state, names)
    pairs = [pair for t in terms for pair in t.steps]
    ends = np.cumsum([0, *(len(t.steps) for t in terms)])
    data = first + text.array(f"{names}begin", text.unsigned(int(ends[-1])), ends)
    data += text.array(f"{names}feature", index, np.array([f for f, _ in pairs]))
    data += text.array(f"{names}stride", kind, np.array([s for _, s in pairs]))
    body = (
        f"        {kind} r = {names}first[i];\n"
        f"        for (k = {names}begin[i]; k < {names}begin[i + 1]; ++k) {{\n"
        f"            r = ({kind})(r + {names}stride[k] * x[{names}feature[k]]);\n"
        "        }\n        row[i] = r;\n"
    )
    return _found(terms, kind, state, names, data, body)


def _tree(terms: tuple[Term, ...], kind: str, index: str, state: str, names: str) -> Finder:
    """Write two steps for each term, its numbers side by side, which saves registers."""
    own = [t.steps[-1][0] for t in terms]
    in_order = own == list(range(len(terms)))
    lines = []
    for t in terms:
        up, step = t.steps[0] if len(t.steps) == 2 else (0, 0)
        lines.append(f"{{{', '.join(map(str, [t.first, step, up, *([] if in_order else [t.steps[-1][0]])]))}}}")
    each = max(1, (text.WIDTH - 4) // (max(map(len, lines)) + 2))
    rows = ",\n".join("    " + ", ".join(lines[i : i + each]) for i in range(0, len(lines), each))
    fields = f"{kind} first, step; {index} up{'' if in_order else ', own'};"
    data = f"static const struct {{ {fields} }} {names}term[{len(terms)}] = {{\n{rows}\n}};\n"
    here = "x[i]" if in_order else f"x[{names}term[i].own]"
    found = f"{names}term[i].first + {here} + {names}term[i].step * x[{names}term[i].up]"
    return _found(terms, kind, state, names, data, f"        row[i] = ({kind})({found});\n")


def _found(terms: tuple[Term, ...], kind: str, state: str, names: str, data: str, body: str) -> Finder:
    counters = "    unsigned i, k;\n" if "k <" in body else "    unsigned i;\n"
    function = (
        f"static void {names}find_rows(const {state} *x, {kind} *row)\n{{\n{counters}"
        f"    for (i = 0; i < {len(terms)}U; ++i) {{\n{body}    }}\n}}\n"
    )
    before = f"    {kind} {names}row[{len(terms)}];\n"
    call = f"    {names}find_rows(x, {names}row);\n"
    return Finder(data, function, before, call, f"{names}row[i]")
