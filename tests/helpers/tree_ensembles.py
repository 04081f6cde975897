"""Random tree ensembles of every kind that files and exporters must handle."""

import numpy as np

from tinybayes.model import TreeEnsemble, Trees, Variable


def tree_ensemble(
    trees=4,
    *,
    leaves=6,
    kind="class",
    sets=0.3,
    states=None,
    classes=3,
    values=None,
    largest=100,
    symmetric=False,
    start=True,
    seed=0,
):
    """Draw trees with up to so many leaves, some of them single leaves.

    The values of a leaf are for one "class", for "all" classes, or "votes". A share of the tests asks for `sets` of
    codes. The largest threshold is the last code, which separates missing values from all others. `values` is the size
    of a codebook. With `symmetric` all nodes of a level ask the same question.
    """
    rng = np.random.default_rng(seed)
    cards = states or [1, *(int(k) for k in rng.integers(2, 9, 5))]
    variables = tuple(Variable(f"f {i}", tuple(range(k))) for i, k in enumerate(cards))
    target = Variable("the class", tuple(f"c{i}" for i in range(classes)))
    nodes, roots = [], []
    for t in range(trees):
        roots.append(len(nodes))
        if symmetric:
            _grow_levels(nodes, rng, cards, sets, int(np.log2(leaves)))
        else:
            _grow(nodes, rng, cards, sets, 1 if t % 5 == 4 else int(rng.integers(min(2, leaves), leaves + 1)))
    feature, threshold, child, missing, members = zip(*nodes, strict=True)
    feature = np.array(feature)
    leaf, wide = feature < 0, max(cards)
    width = 1 if kind == "class" else classes
    table = _values(rng, kind, values or int(leaf.sum()), width, largest)
    number = np.array(threshold)
    number[leaf] = rng.integers(0, len(table), leaf.sum()) if values or kind == "votes" else np.arange(leaf.sum())
    chosen = [members[i] for i in np.flatnonzero(~leaf & (number < 0))]
    sets_of = np.array([np.pad(m, (0, wide - len(m))) for m in chosen], dtype=bool).reshape(len(chosen), wide)
    output = rng.integers(0, classes, trees) if kind == "class" else np.full(trees, -1)
    nodes = Trees(feature, number, np.array(child), np.array(missing), sets_of, np.array(roots), output)
    first = rng.integers(-largest, largest + 1, classes) if start else np.zeros(classes, dtype=int)
    return TreeEnsemble(variables, target, nodes, table, first, 0.01)


def _values(rng, kind, count, width, largest):
    if kind == "votes":
        return largest * np.eye(width, dtype=int)[np.append(np.arange(width), rng.integers(0, width, count))]
    return rng.integers(-largest, largest + 1, (count, width))


def _question(rng, cards, sets):
    """Draw a test: feature, threshold (-1 for a set), the side of missing values and the set."""
    f = int(rng.integers(len(cards)))
    members = rng.random(cards[f]) < 0.5
    is_set = rng.random() < sets
    return f, -1 if is_set else int(rng.integers(cards[f])), bool(rng.integers(2)), members


def _grow(nodes, rng, cards, sets, leaves):
    """Split a leaf that is drawn until there are enough."""
    open_leaves = [len(nodes)]
    nodes.append((-1, 0, -1, False, None))
    for _ in range(leaves - 1):
        node = open_leaves.pop(int(rng.integers(len(open_leaves))))
        f, threshold, missing, members = _question(rng, cards, sets)
        nodes[node] = (f, threshold, len(nodes), missing, members)
        open_leaves += [len(nodes), len(nodes) + 1]
        nodes += [(-1, 0, -1, False, None)] * 2


def _grow_levels(nodes, rng, cards, sets, depth):
    """Grow a complete tree whose levels have one question each."""
    level = [len(nodes)]
    nodes.append((-1, 0, -1, False, None))
    for _ in range(depth):
        f, threshold, missing, members = _question(rng, cards, sets)
        below = []
        for node in level:
            nodes[node] = (f, threshold, len(nodes), missing, members)
            below += [len(nodes), len(nodes) + 1]
            nodes += [(-1, 0, -1, False, None)] * 2
        level = below


def kinds():
    """Ensembles of every kind, with a name for each."""
    found = {
        f"{kind} {trees} trees": tree_ensemble(trees, kind=kind, classes=classes, seed=classes + trees)
        for trees in (1, 7)
        for kind, classes in (("class", 2), ("all", 3), ("votes", 5))
    }
    return found | {
        "single leaf": tree_ensemble(1, leaves=1, kind="all"),
        "single leaves": tree_ensemble(3, leaves=1),
        "one class": tree_ensemble(3, classes=1, seed=2),
        "no sets": tree_ensemble(6, sets=0, seed=3),
        "sets": tree_ensemble(6, sets=1, seed=4),
        "codebook": tree_ensemble(9, values=5, start=False, seed=5),
        "codebook for all classes": tree_ensemble(9, values=5, kind="all", seed=6),
        "symmetric": tree_ensemble(6, leaves=8, symmetric=True, values=7, seed=7),
        "symmetric tree": tree_ensemble(1, leaves=16, symmetric=True, kind="all", seed=8),
        "deep": tree_ensemble(2, leaves=300, seed=9, kind="votes"),
        "many tests": tree_ensemble(40, leaves=20, states=[40, 3, 60, 2, 9], seed=10),
        "many states": tree_ensemble(5, leaves=20, states=[300, 4, 2], seed=11),
        "many features": tree_ensemble(9, leaves=30, states=[3] * 300, seed=12),
        "many classes": tree_ensemble(30, leaves=4, classes=300, seed=13),
        "many classes, all": tree_ensemble(3, leaves=4, classes=300, kind="all", seed=14),
        "wide values": tree_ensemble(9, largest=2**27, seed=15),
        "wide values for all classes": tree_ensemble(9, kind="all", largest=2**27, seed=16),
        "wide votes": tree_ensemble(9, kind="votes", largest=2**26 + 1, seed=17),
        "constant features": tree_ensemble(4, states=[1, 1], seed=18),
    }


def plain_scores(model, X):
    """Scores by walking down every tree, a row at a time."""
    trees, out = model.trees, []
    sets = dict(zip(np.flatnonzero(trees.is_set).tolist(), trees.members.tolist(), strict=True))
    for row in X.tolist():
        scores = [int(v) for v in model.start]
        for root, output in zip(trees.root.tolist(), trees.output.tolist(), strict=True):
            node = root
            while trees.feature[node] >= 0:
                code = row[trees.feature[node]]
                if code < 0:
                    left = trees.missing[node]
                else:
                    left = sets[node][code] if node in sets else code <= trees.threshold[node]
                node = int(trees.child[node]) + (0 if left else 1)
            value = model.values[trees.threshold[node]].tolist()
            for c, v in enumerate(value) if output < 0 else [(output, value[0])]:
                scores[c] += v
        out.append(scores)
    return np.array(out, dtype=np.int64).reshape(len(X), len(model.start))
