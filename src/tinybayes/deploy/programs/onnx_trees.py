"""Decision trees in ONNX: the standard's operator for trees, on codes or on raw values, with exact sums.

The operator adds 32-bit floats, which are exact for integers up to 2**24. Larger values are split into digits, each one
with sums of its own. A missing value is NaN, for which a node tells the side. A test of a set of codes has a column of
its own: 0 goes left, 1 right.
"""

from typing import Any

import numpy as np

from tinybayes.cost.tree_ensemble import Tests, find_tests
from tinybayes.deploy.programs.onnx_graph import Graph, known_codes
from tinybayes.deploy.programs.tree_parts import TreeParts, inner_nodes, split_trees
from tinybayes.deploy.programs.tree_plan import TreePlan
from tinybayes.model import TreeEnsemble
from tinybayes.model.encoding import EXACT, LOWEST, Intervals

DOMAIN, VERSION = "ai.onnx.ml", 1  # old enough for every runtime
_Rows = list[dict[str, Any]]  # the attributes of nodes or leaves


def takes_raw(plan: TreePlan) -> bool:
    """Tell whether trees compare raw values as they are: those of intervals, with cuts that floats tell apart."""
    trees = plan.net.trees
    inner = ~trees.is_leaf
    if trees.is_set.any() or any(plan.is_state(f) for f in np.unique(trees.feature[inner]).tolist()):
        return False
    cuts = [_cut(plan, f, t) for f, t in zip(trees.feature[inner], trees.threshold[inner], strict=True)]
    return plan.features.raw == "float" or all(-EXACT < cut < EXACT or np.isinf(cut) for cut in cuts)


def add_trees(graph: Graph, plan: TreePlan, x: str, *, raw: bool) -> None:
    """Add everything from codes, or from raw values, `x` to ``scores``."""
    model, parts = plan.net, split_trees(plan.net)
    start = graph.constant("start", parts.start.reshape(1, -1))
    if not parts.trees:  # the result must have the number of rows of x
        zero = graph.total(graph.add("Mul", graph.cast(x, np.int64), graph.constant("zero", 0)), 1, keep=True)
        _finish(graph, start, zero)
        return
    tests = find_tests(model.trees)
    columns = _raw_columns(graph, plan, x) if raw else _code_columns(graph, plan, tests, x)
    digits, base = _digits(model, parts)
    nodes = _node_rows(plan, parts, tests, raw=raw)
    attributes: dict[str, Any] = {f"nodes_{key}": [node[key] for node in nodes] for key in nodes[0]}
    leaves = _leaf_rows(model, parts, digits)
    attributes |= {f"target_{key}": [leaf[key] for leaf in leaves] for key in leaves[0]}
    count = len(digits) * plan.classes
    sums = graph.add("TreeEnsembleRegressor", columns, domain=DOMAIN, n_targets=count, **attributes)
    sums = graph.cast(sums, np.int64)
    if len(digits) > 1:
        shape = graph.constant("by_digit", [0, len(digits), plan.classes])
        worth = graph.constant("worth", base ** np.arange(len(digits)).reshape(-1, 1))
        sums = graph.total(graph.add("Mul", graph.add("Reshape", sums, shape), worth), 1)
    _finish(graph, start, sums)


def _finish(graph: Graph, start: str, sums: str) -> None:
    graph.add("Cast", graph.add("Add", sums, start), named="scores", to=graph.type_of(np.int32))


def _raw_columns(graph: Graph, plan: TreePlan, value: str) -> str:
    """Give raw values as floats, NaN where they are missing; where rows are complete, NaN is the lowest number."""
    if plan.features.raw == "float":
        if plan.features.gaps:
            return value
        lowest = graph.constant("lowest_number", -np.inf, np.float32)
        return graph.add("Where", graph.add("IsNaN", value), lowest, value)
    numbers = graph.cast(value, np.float32)
    if not plan.features.gaps:
        return numbers
    missing = graph.add("Equal", value, graph.constant("missing_value", LOWEST, np.int32))
    return graph.add("Where", missing, graph.constant("nan", np.nan, np.float32), numbers)


def _code_columns(graph: Graph, plan: TreePlan, tests: Tests, x: str) -> str:
    """Give codes as floats, NaN where they are missing, then a column for each test of a set."""
    trees, gaps = plan.net.trees, plan.features.gaps
    columns = graph.cast(x, np.float32)
    known = known_codes(graph, plan.features, x) if gaps else ""
    if gaps:
        columns = graph.add("Where", known, columns, graph.constant("nan", np.nan, np.float32))
    chosen = tests.node[trees.is_set[tests.node]]
    if not len(chosen):
        return columns
    rows = trees.members[np.cumsum(trees.is_set)[chosen] - 1]
    right = ~np.column_stack([trees.missing[chosen], rows])  # a missing value has the first entry
    codes = graph.add("Where", known, x, graph.constant("missing", -1)) if gaps else x
    own = graph.add("Gather", codes, graph.constant("of_set", trees.feature[chosen]), axis=1)
    first = graph.constant("first_of_set", np.arange(len(chosen)) * right.shape[1] + 1)
    sides = graph.constant("right", right.reshape(-1), np.float32)
    return graph.add("Concat", columns, graph.add("Gather", sides, graph.add("Add", own, first)), axis=1)


def _cut(plan: TreePlan, feature: int, threshold: int) -> float:
    """Return the lowest raw value that goes right; infinity where only missing values may go right."""
    encoding = plan.variables[feature].encoding
    assert isinstance(encoding, Intervals)
    cut = float(np.append(encoding.cuts, np.inf)[threshold])
    return float(np.ceil(cut)) if plan.features.raw == "int" else cut


def _node_rows(plan: TreePlan, parts: TreeParts, tests: Tests, *, raw: bool) -> _Rows:
    """Return the attributes of all nodes; a node that is true goes left."""
    trees = plan.net.trees
    rows: _Rows = []
    is_set = trees.is_set[tests.node]
    column = len(plan.variables) + np.cumsum(is_set) - 1  # of tests of sets
    for number, tree in enumerate(parts.trees):
        root = int(trees.root[tree])
        inner = inner_nodes(plan.net, tree)
        for node in sorted({root, *(int(trees.child[n]) + side for n in inner for side in (0, 1))}):
            feature, threshold, child = (int(a[node]) for a in (trees.feature, trees.threshold, trees.child))
            row = {"treeids": number, "nodeids": node - root, "featureids": 0, "modes": "LEAF", "values": 0.0}
            row |= {"truenodeids": 0, "falsenodeids": 0, "missing_value_tracks_true": 0}
            if feature >= 0:
                row |= {"featureids": feature, "modes": "BRANCH_LEQ", "values": float(threshold)}
                row |= {"truenodeids": child - root, "falsenodeids": child + 1 - root}
                row["missing_value_tracks_true"] = int(trees.missing[node])
                if threshold < 0:
                    row |= {"featureids": int(column[tests.number[node]]), "values": 0.0}
                elif raw:
                    cut = _cut(plan, feature, threshold)
                    row |= {"modes": "BRANCH_LEQ" if np.isinf(cut) else "BRANCH_LT", "values": cut}
            rows.append(row)
    return rows


def _digits(model: TreeEnsemble, parts: TreeParts) -> tuple[list[np.ndarray], int]:
    """Split values into digits whose sums floats hold exactly; the last digits have the signs."""
    base = 2 ** int(np.log2(EXACT // len(parts.trees)))
    digits, rest = [], model.values.astype(np.int64)
    while len(parts.trees) * int(np.abs(rest).max()) > EXACT:
        digits.append(rest % base)
        rest = rest // base
    return [*digits, rest], base


def _leaf_rows(model: TreeEnsemble, parts: TreeParts, digits: list[np.ndarray]) -> _Rows:
    """Return the attributes of what leaves add: zeros are left out, but not all of a leaf."""
    trees, classes = model.trees, model.target.cardinality
    rows: _Rows = []
    for number, (tree, output) in enumerate(zip(parts.trees, parts.output.tolist(), strict=True)):
        root = int(trees.root[tree])
        for node in inner_nodes(model, tree):
            for leaf in (n for n in (int(trees.child[node]), int(trees.child[node]) + 1) if trees.is_leaf[n]):
                values = np.array([digit[trees.threshold[leaf]] for digit in digits])
                kept = np.argwhere(values) if values.any() else np.zeros((1, 2), dtype=np.int64)
                for digit, c in kept.tolist():
                    target = digit * classes + max(output, c)
                    row = {"treeids": number, "nodeids": leaf - root, "ids": target}
                    rows.append(row | {"weights": float(values[digit, c])})
    return rows
