"""Random classifiers of every shape that exporters must handle."""

import numpy as np

from tinybayes.model import CPD, BayesNet, Codebook, DecisionTree, Fixed, Float, Variable

STRUCTURES = ("naive", "tree", "general", "trees")


def classifier(structure, form, *, seed=0, features=5, classes=3, states=None, zeros=False):
    """Draw a classifier; uneven cardinalities, one of them 1, and imbalanced classes.

    The structure is one of `STRUCTURES`, or "forest" for several trees of features.
    """
    rng = np.random.default_rng(seed)
    cards = states or [1, *(int(k) for k in rng.integers(2, 6, features - 1))]
    rng.shuffle(cards)
    target = Variable("the class", tuple(f"c{i}" for i in range(classes)))
    variables = tuple(Variable(f"f {i}", tuple(range(k))) for i, k in enumerate(cards))
    nodes, above = (*variables, target), len(cards)
    cpds = []
    rank = rng.permutation(above).tolist() if structure == "forest" else []
    for i in range(above):
        parents: tuple[int, ...] = (above,)
        if structure == "forest":  # several roots, parents anywhere, the class before or after them
            earlier = [j for j in range(above) if rank[j] < rank[i]]
            up = [int(rng.choice(earlier))] if earlier and rng.random() < 0.75 else []
            parents = (*up, above) if i % 2 else (above, *up)
        if structure == "tree" and i:
            parents = (int(rng.integers(i)), above)
        if structure == "general":
            others = rng.permutation(i)[: int(rng.integers(0, 3))]
            parents = tuple(int(p) for p in rng.permutation([*others, *([above] if i % 3 else [])]))
        tree = _tree(nodes, above) if structure == "trees" and i and cards[0] > 1 else None
        parents = (0, above) if tree is not None else parents
        rows = 3 if tree is not None else int(np.prod([nodes[p].cardinality for p in parents]))
        cpds.append(_cpd(rng, parents, rows, cards[i], form, tree, zeros))
    # In a general network the class may have parents too, if none of them depends on it.
    below = tuple(i for i in range(above) if above not in cpds[i].parents and structure == "general")[:1]
    if below and any(below[0] in cpd.parents or above in cpds[below[0]].parents for cpd in cpds):
        below = ()
    rows = int(np.prod([cards[p] for p in below]))
    cpds.append(_cpd(rng, below, rows, classes, form, None, False, concentration=0.3))
    return BayesNet(variables, target, tuple(cpds))


def every_state(net, rows=200, seed=1):
    """Draw rows of codes in which every state of every feature occurs."""
    rng = np.random.default_rng(seed)
    count = max(rows, *(v.cardinality for v in net.variables), 1)
    columns = []
    for v in net.variables:
        codes = rng.permutation(np.arange(count) % v.cardinality)
        columns.append(codes)
    return np.array(columns, dtype=np.int32).T.reshape(count, len(net.variables))


def codebook(levels, *, zeros=False):
    """Draw levels between 0 and about -8, where the logarithms of probabilities are."""
    values = -np.random.default_rng(levels).exponential(8 / levels, levels).cumsum()
    return Codebook((*([-np.inf] if zeros else []), *np.unique(np.round(values, 6)).tolist()))


def formats():
    """Every kind of number format: all small fixed points, wide ones, codebooks, floats."""
    fixed = [Fixed(min(b, 3), b - min(b, 3)) for b in range(1, 9)]
    return [
        *fixed,
        Fixed(5, -2),
        Fixed(6, 6),
        Fixed(8, 8),
        Fixed(8, 16),
        codebook(2),
        codebook(13),
        codebook(300),
        Float(32),
    ]


def _tree(nodes, above):
    """Split on the first feature, and in its first branch on the class; three rows."""
    k, c = nodes[0].cardinality, nodes[above].cardinality
    first = [1] + [2] * (k - 1)
    second = [3] + [4] * (c - 1)
    return DecisionTree(
        np.array([0, above, -1, -1, -1]),
        np.array([0, k, 0, 0, 0]),
        np.array([*first, *second]),
        np.array([-1, -1, 0, 1, 2]),
    )


def _cpd(rng, parents, rows, columns, form, tree, zeros, concentration=1.0):
    table = rng.dirichlet(np.full(columns, concentration), rows)
    if zeros and columns > 1:
        table[rng.random(table.shape) < 0.1] = 0.0
    with np.errstate(divide="ignore"):
        return CPD(parents, form.encode(np.log(table)), form, tree)
