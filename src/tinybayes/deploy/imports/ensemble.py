"""Trees of other libraries as a `TreeEnsemble`.

The thresholds of a feature become the cut points of its variable. A cut point is the lowest float32 that goes right, so
that every float32 gets the side that it has in the other library. Values are rounded to integers of a few bits.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from tinybayes.deploy.imports.foreign import ForeignTree
from tinybayes.errors import error
from tinybayes.model import Categories, Cuts, State, TreeEnsemble, Trees, Variable

BITS = 16
MOST_STATES = 2**22  # of all features with categories
MOST_MEMBERS = 2**28  # bytes of all sets of categories
Features = Sequence[tuple[str, Sequence[State] | None]]  # names, with the states of those that have categories


def make_ensemble(
    trees: Sequence[ForeignTree],
    features: Features,
    target: Variable,
    start: np.ndarray,
    *,
    factor: float = 1.0,
    bits: int = BITS,
) -> TreeEnsemble:
    """Return trees in integers.

    Parameters
    ----------
    trees
        The trees.
    features
        The name of each feature, and its states if it has categories.
    target
        The class.
    start
        Scores of all classes before any tree.
    factor
        Scores times this are the logarithms of unnormalised probabilities.
    bits
        Of the largest value of a leaf, with its sign.
    """
    if not (isinstance(bits, int | np.integer) and 2 <= bits <= 24):
        raise error("2 to 24 bits", bits, where="bits")
    if any(int(tree.feature.max()) >= len(features) for tree in trees):
        raise error(f"features below {len(features)}", "others", where="tree")
    _check_sizes(trees, features)
    start = np.array(start, dtype=np.float64)
    for tree in trees:
        if tree.feature[0] < 0:  # no test: it is part of the scores to start with
            start[slice(tree.output, tree.output + 1) if tree.output >= 0 else slice(None)] += tree.value[0]
    if not np.isfinite(start).all():
        raise error("finite scores", start.tolist(), where="scores before any tree")
    tested = [tree for tree in trees if tree.feature[0] >= 0] or [_nothing(trees, len(start))]
    variables = _variables(tested, features)
    nodes = _joined(tested, variables)
    leaf = nodes["feature"] < 0
    value = nodes.pop("value")[leaf]
    largest = max(float(np.abs(value).max()), float(np.abs(start).max()) * 2.0**-8, 2.0**-16)
    unit = largest / (2 ** (bits - 1) - 1)
    values, row = np.unique(_rounded(value, unit), axis=0, return_inverse=True)
    nodes["threshold"][leaf] = row.reshape(-1)
    made = Trees(**nodes, output=np.array([tree.output for tree in tested]))
    return TreeEnsemble(variables, target, made, values, np.rint(start / unit).astype(np.int64), unit * factor)


def check_states(sizes: Iterable[int]) -> None:
    """Refuse categories that would fill the memory, before their states are listed: a small file can name many."""
    if (total := sum(sizes)) > MOST_STATES:
        raise error(f"at most {MOST_STATES:,} categories in all", f"{total:,}", where="features")


def _check_sizes(trees: Sequence[ForeignTree], features: Features) -> None:
    sizes = [len(states) for _, states in features if states is not None]
    check_states(sizes)
    if (members := max(sizes, default=0) * sum(len(tree.sets) for tree in trees)) > MOST_MEMBERS:
        raise error(f"sets of categories with {MOST_MEMBERS:,} members at most", f"{members:,}", where="features")


def _rounded(value: np.ndarray, unit: float) -> np.ndarray:
    """Round the values of leaves; the class that wins in a leaf, the first of the largest values, still wins."""
    numbers = np.rint(value / unit).astype(np.int64)
    before = np.arange(value.shape[1]) < value.argmax(axis=1)[:, None]
    return numbers - (before & (numbers == numbers.max(axis=1, keepdims=True)))


def _nothing(trees: Sequence[ForeignTree], classes: int) -> ForeignTree:
    """Return a tree that adds nothing."""
    leaf, output = np.array([-1]), trees[0].output if trees else -1
    value = np.zeros((1, classes if output < 0 else 1))
    return ForeignTree(leaf, np.zeros(1), leaf, leaf, np.array([False]), value, output)


def _variables(trees: Sequence[ForeignTree], features: Features) -> tuple[Variable, ...]:
    """Return the features; numbers are cut where some tree compares them."""
    tested, cut = (np.concatenate([getattr(tree, name) for tree in trees]) for name in ("feature", "cut"))
    order = np.argsort(tested, kind="stable")
    ends = np.searchsorted(tested[order], np.arange(len(features) + 1))
    variables = []
    for f, (name, states) in enumerate(features):
        if states is not None:
            variables.append(Variable(name, tuple(states), Categories()))
            continue
        cuts = np.unique(cut[order[ends[f] : ends[f + 1]]])
        variables.append(Variable.from_encoding(name, Cuts(cuts[np.isfinite(cuts)].tolist())))
    return tuple(variables)


def _joined(trees: Sequence[ForeignTree], variables: Sequence[Variable]) -> dict[str, np.ndarray]:
    """Return the nodes of all trees, in the order and with the names of `Trees`, and their values."""
    parts = [_nodes(tree, variables) for tree in trees]
    sizes = [len(part["feature"]) for part in parts]
    root = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    nodes = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    nodes["child"] = np.where(nodes["feature"] < 0, -1, nodes["child"] + np.repeat(root, sizes))
    return nodes | {"root": root}


def _nodes(tree: ForeignTree, variables: Sequence[Variable]) -> dict[str, np.ndarray]:
    """Return the nodes of a tree, with codes for thresholds; its children count from the root."""
    order = tree.order()
    feature, cut = tree.feature[order], tree.cut[order]
    inner = feature >= 0
    threshold = np.full(len(order), -1, dtype=np.int64)
    for f in np.unique(feature[inner]).tolist():
        encoding = variables[f].encoding
        if isinstance(encoding, Cuts):
            threshold[feature == f] = np.searchsorted(encoding.cuts, cut[feature == f])
    categories = [v.cardinality for v in variables if isinstance(v.encoding, Categories)]
    asked = np.flatnonzero(inner & (threshold < 0))
    members = np.zeros((len(asked), max(categories, default=0)), dtype=np.bool_)
    for row, node in enumerate(asked.tolist()):
        variable, codes = variables[feature[node]], tree.sets.get(int(order[node]))
        if codes is None or (len(codes) and int(codes.max()) >= variable.cardinality):
            expected = f"sets of the {variable.cardinality} states of {variable.name!r}"
            raise error(expected, "a threshold" if codes is None else int(codes.max()), where="tree")
        members[row, codes] = True
    return {
        "feature": np.where(inner, feature, -1),
        "threshold": threshold,
        "child": 2 * np.cumsum(inner) - 1,
        "missing": tree.missing[order].astype(np.bool_) & inner,
        "members": members,
        "value": tree.value[order],
    }
