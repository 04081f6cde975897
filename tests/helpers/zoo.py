"""Networks worked by hand, and random ones, for all tests.

The probabilities of the hand-worked ones are dyadic, so that the numbers beside them are exact.
"""

from collections.abc import Sequence

import numpy as np

from tinybayes.model import CPD, BayesNet, Circuit, Cuts, DecisionTree, Float, NumberFormat, Variable


def cpd(
    probabilities: object,
    parents: Sequence[int] = (),
    tree: DecisionTree | None = None,
    number_format: NumberFormat | None = None,
) -> CPD:
    """Make a distribution from its probabilities, one row for each assignment of the parents or each leaf."""
    number_format = Float(64) if number_format is None else number_format
    with np.errstate(divide="ignore"):
        logs = np.log(np.atleast_2d(np.asarray(probabilities, dtype=np.float64)))
    return CPD(tuple(parents), number_format.encode(logs), number_format, tree)


def sprinkler() -> BayesNet:
    """Rain, sprinkler and wet grass; one probability is zero.

    P(wet) = 27/64, P(rain | wet) = 1/3, P(sprinkler on | wet) = 20/27.
    """
    rain = Variable("rain", ("no", "yes"))
    sprinkler = Variable("sprinkler", ("off", "on"))
    wet = Variable("wet", (False, True))
    return BayesNet(
        (rain, sprinkler, wet),
        None,
        (
            cpd([3 / 4, 1 / 4]),
            cpd([[1 / 2, 1 / 2], [7 / 8, 1 / 8]], [0]),
            cpd([[1, 0], [1 / 4, 3 / 4], [1 / 2, 1 / 2], [0, 1]], [0, 1]),
        ),
    )


_CLASS = Variable("class", ("ham", "spam"))
_FEATURES = (Variable("a", (0, 1)), Variable.from_encoding("b", Cuts([0.5, 2.0])))
_PRIOR = [3 / 4, 1 / 4]
_P_A = [[3 / 4, 1 / 4], [1 / 4, 3 / 4]]


def naive_bayes() -> BayesNet:
    """Two features that depend on the class only.

    P(ham | a=0, b=0) = 36/37, P(spam | a=1, b=2) = 3/4; P(a=1, b=2) = 12/64.
    """
    p_b = [[1 / 2, 1 / 4, 1 / 4], [1 / 8, 1 / 8, 3 / 4]]
    return BayesNet(_FEATURES, _CLASS, (cpd(_P_A, [2]), cpd(p_b, [2]), cpd(_PRIOR)))


def tan() -> BayesNet:
    """The same with an edge from a to b.

    P(ham | a=1, b=1) = 4/5, P(a=1, b=1) = 15/128; P(ham | a=0, b=2) = 9/11, P(a=0, b=2) = 11/64.
    """
    p_b = [  # rows: (a, class) = (0, ham), (0, spam), (1, ham), (1, spam)
        [1 / 2, 1 / 4, 1 / 4],
        [1 / 4, 1 / 4, 1 / 2],
        [1 / 4, 1 / 2, 1 / 4],
        [1 / 8, 1 / 8, 3 / 4],
    ]
    return BayesNet(_FEATURES, _CLASS, (cpd(_P_A, [2]), cpd(p_b, [0, 2]), cpd(_PRIOR)))


def tree_tan() -> BayesNet:
    """The same with a decision tree: b asks for the class first, and for a only in spam.

    P(spam | a=1, b=2) = 3/4, P(a=1, b=2) = 12/64; P(spam | a=0, b=2) = 2/11.
    """
    tree = DecisionTree(split=[2, -1, 0, -1, -1], first=[0, 0, 2, 0, 0], children=[1, 2, 3, 4], row=[0, 0, 0, 1, 2])
    p_b = [[1 / 2, 1 / 4, 1 / 4], [1 / 4, 1 / 4, 1 / 2], [1 / 8, 1 / 8, 3 / 4]]
    return BayesNet(_FEATURES, _CLASS, (cpd(_P_A, [2]), cpd(p_b, [0, 2], tree), cpd(_PRIOR)))


def random_net(
    rng: np.random.Generator,
    n: int,
    max_parents: int = 2,
    target: bool = True,
    formats: Sequence[NumberFormat] = (Float(),),
    trees: bool = False,
    variables: Sequence[Variable] | None = None,
) -> BayesNet:
    """Make a network with random edges, tables and, where asked for, decision trees.

    Parameters
    ----------
    rng
        The source of randomness.
    n
        The number of variables without the class.
    max_parents
        The most parents a variable has, the class apart.
    target
        Whether there is a class; it has no parents and is the last parent of every variable.
    formats
        Each distribution takes one of these.
    trees
        Whether about half of the distributions with parents get a decision tree.
    variables
        The variables, the class last; random ones with 1 to 4 states when None.
    """
    if variables is None:
        sizes = rng.integers(1, 5, n + target)
        variables = [Variable(f"v{i}", tuple(f"s{k}" for k in range(size))) for i, size in enumerate(sizes)]
    order = rng.permutation(n)
    families: list[tuple[int, ...]] = [()] * (n + target)
    for place, node in enumerate(order):
        count = min(place, int(rng.integers(0, max_parents + 1)))
        before = rng.choice(order[:place], count, replace=False).tolist()
        families[node] = (*before, n) if target else tuple(before)
    cpds = []
    for node, family in enumerate(families):
        sizes = {parent: variables[parent].cardinality for parent in family}
        tree = random_tree(rng, sizes) if trees and family and rng.random() < 0.5 else None
        rows = int(np.prod(list(sizes.values()))) if tree is None else int(tree.row.max()) + 1
        table = rng.dirichlet(np.full(variables[node].cardinality, 0.7), rows)
        cpds.append(cpd(table, family, tree, formats[int(rng.integers(len(formats)))]))
    return BayesNet(tuple(variables[:n]), variables[n] if target else None, tuple(cpds))


def random_tree(rng: np.random.Generator, sizes: dict[int, int]) -> DecisionTree:
    """Make a random decision graph over parents with these cardinalities; every leaf has its own row."""
    split, first, children, row = [], [], [], []
    waiting = [sorted(sizes)]  # for each node still to be made, the parents that it may test
    rows = 0
    while len(split) < len(waiting):
        unused = waiting[len(split)]
        if unused and rng.random() < 0.8:
            parent = int(rng.choice(unused))
            split.append(parent)
            first.append(len(children))
            row.append(0)
            branches = int(rng.integers(1, sizes[parent] + 1))  # fewer than values: some share a child
            ways = rng.permutation([*range(branches), *rng.integers(0, branches, sizes[parent] - branches)])
            children += [len(waiting) + int(way) for way in ways]
            waiting += [[other for other in unused if other != parent]] * branches
        else:
            split.append(-1)
            first.append(0)
            row.append(rows)
            rows += 1
    return DecisionTree(split, first, children, row)


def hand_circuit() -> Circuit:
    """A mixture over the class of two independent features, with a zero and a shared product, node by node.

    Nodes 7 to 14 with nothing observed: 1/2, 1/2, 1, 1, 1/2, 1/4, 3/4, 1; with a=1: 0, 1/2, 1, 1/2, 1/2, 1/4, 3/8,
    5/8; with a=0: 1/2, 0, 0, 1/2, 0, 0, 3/8, 3/8. So P(a=1) = 5/8 and P(c=x | a=1) = 2/5.
    """
    a, c = Variable("a", (0, 1)), Variable("c", ("x", "y"))
    kind, leaf, below = [], [], []

    def node(what: int, which: int = -1, children: Sequence[int] = ()) -> int:
        kind.append(what)
        leaf.append(which)
        below.append(list(children))
        return len(kind) - 1

    lambdas = [node(1, i) for i in range(4)]  # a=0, a=1, c=x, c=y: nodes 0 to 3
    quarter, three, half = (node(0, i) for i in range(3))  # nodes 4 to 6
    left, right = node(3, children=[lambdas[0], half]), node(3, children=[lambdas[1], half])  # nodes 7 and 8
    one = node(3, children=[lambdas[1]])  # node 9, a product of one: given c=x, a is 1
    both = node(2, children=[left, right])  # node 10
    kept = node(3, children=[right])  # node 11, used by nothing
    x = node(3, children=[lambdas[2], quarter, one])  # node 12
    y = node(3, children=[lambdas[3], three, both])  # node 13
    node(2, children=[x, y])  # node 14
    assert kept == 11
    offsets = np.cumsum([0, *map(len, below)])
    children = np.array([n for some in below for n in some])
    logs = np.log([1 / 4, 3 / 4, 1 / 2])
    arrays = (np.array(kind), offsets, children, np.array(leaf), Float(64).encode(logs))
    return Circuit((a,), c, *arrays, Float(64))
