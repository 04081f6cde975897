"""How code finds the rows of the tables of a classifier: directly, or in a function before all sums."""

from dataclasses import dataclass

import numpy as np

from tinybayes.deploy.programs.encoding import Features
from tinybayes.deploy.programs.plan import Term
from tinybayes.deploy.programs.program import Array, Function, block, loop, narrow, type_name, unsigned


@dataclass(frozen=True)
class Finder:
    """How code finds the rows of all terms."""

    row: str  # the row of term ``i``, as an expression
    arrays: tuple[Array, ...] = ()  # the tables that the expression reads
    # One that finds all rows at once, if an expression would be long; `declare` and `call` are the lines around it.
    functions: tuple[Function, ...] = ()
    declare: tuple[str, ...] = ()
    call: tuple[str, ...] = ()
    fill: tuple[str, ...] = ()  # lines that set the row of term ``i``, where an expression does not
    complete: str = ""  # an expression that tells whether no value is missing, where some may be
    order: tuple[int, ...] = ()  # the terms in the order of the rows, if it is another


def make_finder(terms: tuple[Term, ...], rows: int, features: Features, prefix: str = "") -> Finder:
    """Choose the shortest way: directly for naive Bayes, two steps for trees, lists of steps otherwise.

    `rows` is the number of rows of all terms. `prefix` begins all names, for a second set of terms in the same file.
    """
    if not terms:
        return Finder("")
    first = Array(f"{prefix}first", narrow([t.first for t in terms], limit=rows))
    own = [t.steps[-1][0] for t in terms]
    if all(t.steps[-1][1] == 1 and len(t.steps) <= 2 for t in terms):
        in_order = own == list(range(len(terms)))
        if any(len(t.steps) > 1 for t in terms):
            return _two_steps(terms, rows, features, prefix, in_order)
        if in_order:
            return Finder(f"{prefix}first[i] + x[i]", (first,))
        features_of = Array(f"{prefix}own", narrow(own, limit=len(features.variables)))
        return Finder(f"{prefix}first[i] + x[{prefix}own[i]]", (first, features_of))
    pairs = [pair for t in terms for pair in t.steps]
    arrays = (
        first,
        Array(f"{prefix}begin", narrow(np.cumsum([0, *(len(t.steps) for t in terms)]))),
        Array(f"{prefix}feature", narrow([f for f, _ in pairs], limit=len(features.variables))),
        Array(f"{prefix}stride", narrow([s for _, s in pairs], limit=rows)),
    )
    kind = unsigned(rows)
    step = [f"r = ({kind})(r + {prefix}stride[k] * x[{prefix}feature[k]]);"]
    lines = [
        f"{kind} r = {prefix}first[i];",
        *block(f"for (k = {prefix}begin[i]; k < {prefix}begin[i + 1]; ++k)", step),
        "row[i] = r;",
    ]
    body = ("unsigned i, k;", *loop("i", len(terms), lines))
    return _finder_function(body, len(terms), kind, features.state, prefix, arrays)


def _two_steps(terms: tuple[Term, ...], rows: int, features: Features, prefix: str, in_order: bool) -> Finder:
    """Write two steps for each term; its numbers are next to each other, which saves registers."""
    row_type, index = narrow([rows]).dtype, narrow([len(features.variables)]).dtype
    fields = [("first", row_type), ("step", row_type), ("up", index), *([] if in_order else [("own", index)])]
    entries = []
    for t in terms:
        up, step = t.steps[0] if len(t.steps) == 2 else (0, 0)
        entries.append((t.first, step, up, t.steps[-1][0])[: len(fields)])
    table = Array(f"{prefix}term", np.array(entries, dtype=np.dtype(fields)))
    kind, term = type_name(row_type), f"{prefix}term[i]"
    row = f"{term}.first + {'x[i]' if in_order else f'x[{term}.own]'} + {term}.step * x[{term}.up]"
    body = ("unsigned i;", *loop("i", len(terms), [f"row[i] = ({kind})({row});"]))
    return _finder_function(body, len(terms), kind, features.state, prefix, (table,))


def _finder_function(
    body: tuple[str, ...], count: int, kind: str, state: str, prefix: str, arrays: tuple[Array, ...]
) -> Finder:
    find = Function(f"{prefix}find_rows", "void", (f"const {state} *x", f"{kind} *row"), body, arrays=arrays)
    declare, call = f"{kind} {prefix}row[{count}];", f"{prefix}find_rows(x, {prefix}row);"
    return Finder(f"{prefix}row[i]", (), (find,), (declare,), (call,))
