"""Random forests of features below a class, and their integer scores with missing values in plain Python integers."""

from decimal import Decimal, localcontext
from functools import cache

import numpy as np

from tinybayes.infer.integers import integer_levels
from tinybayes.model import CPD, BayesNet, Codebook, Fixed, NumberFormat, Variable

SHAPES = ("naive", "tree", "chain", "star", "roots")


def parents_of(shape: str, features: int, generator: np.random.Generator) -> list[int]:
    """The feature that is the parent of each feature, -1 for none; numbered in no particular order."""
    if shape == "naive":
        return [-1] * features
    above = {
        "tree": lambda k: int(generator.integers(0, k)),
        "chain": lambda k: k - 1,
        "star": lambda _: 0,
        "roots": lambda k: int(generator.integers(-1, k)),
    }[shape]
    name = generator.permutation(features).tolist()
    parent = [-1] * features
    for k in range(1, features):
        up = above(k)
        parent[name[k]] = -1 if up < 0 else name[up]
    return parent


def random_forest(
    seed: int, shape: str, form: NumberFormat, *, features: int = 4, states: tuple[int, int] = (1, 5), classes: int = 3
) -> BayesNet:
    """A network of random codes, which need not be normalised."""
    generator = np.random.default_rng(seed)
    cards = generator.integers(states[0], states[1] + 1, size=features).tolist()
    variables = tuple(Variable(f"f{i}", tuple(range(k))) for i, k in enumerate(cards))
    target = Variable("class", tuple(range(classes)))
    codes = len(form.values) if isinstance(form, Codebook) else 2**form.bits
    cpds = []
    for i, up in enumerate(parents_of(shape, features, generator)):
        parents = [features] if up < 0 else generator.permutation([up, features]).tolist()
        rows = classes * (1 if up < 0 else cards[up])
        cpds.append(CPD(tuple(parents), generator.integers(0, codes, size=(rows, cards[i])), form))
    cpds.append(CPD((), generator.integers(0, codes, size=(1, classes)), form))
    return BayesNet(variables, target, tuple(cpds))


def rows_with_gaps(net: BayesNet, seed: int, count: int = 12) -> np.ndarray:
    """Rows with gaps in about a third of the entries; the first has nothing but gaps, the second none."""
    generator = np.random.default_rng(seed)
    X = np.stack([generator.integers(0, v.cardinality, size=count) for v in net.variables], axis=1)
    X[generator.random(X.shape) < 0.35] = -1
    X[0] = -1
    X[1] = [v.cardinality - 1 for v in net.variables]
    return X.astype(np.int32)


def additions(net: BayesNet, row: np.ndarray) -> int:
    """The number of additions of probabilities on the way to the score of a row, counted along the longest path."""
    return sum(v.cardinality - 1 for v, code in zip(net.variables, row.tolist(), strict=True) if code < 0)


def table_of(fraction: int) -> list[int]:
    """The table of `log_add` from decimal arithmetic of 60 digits."""
    with localcontext() as context:
        context.prec = 60
        exact = [Decimal(2) ** fraction * (1 + (-Decimal(i) / 4).exp()).ln() for i in range(32)]
        return [*(int(value.to_integral_value()) for value in exact), 0]


def narrow(value: int) -> int:
    """An intermediate result, which must fit in 32 bits."""
    assert -(2**31) <= value < 2**31, f"{value} does not fit in 32 bits"
    return value


def log_add(a: int, b: int, fraction: int, table: list[int]) -> int:
    """As the definition says, in integers of any size."""
    high, low = max(a, b), min(a, b)
    distance = narrow(high - low)
    distance = distance >> (fraction - 10) if fraction >= 10 else distance << (10 - fraction)
    i = distance >> 8
    if i >= 32:
        return high
    return narrow(high + table[i] - (narrow((table[i] - table[i + 1]) * (distance & 255)) >> 8))


def unit_of(net: BayesNet) -> tuple[int, list[list[list[int]]]]:
    """The fraction of scores with gaps, and the entries of all tables as nested lists."""
    form = net.cpds[0].format
    if isinstance(form, Codebook):
        levels, fraction = integer_levels(net)
        return fraction, [levels[cpd.table].tolist() for cpd in net.cpds]
    assert isinstance(form, Fixed)
    reach = sum(int(cpd.table.max()) for cpd in net.cpds)
    shift = 0
    while form.fraction + shift + 1 <= max(form.fraction, 10) and reach << (shift + 1) <= 2**30:
        shift += 1
    return form.fraction + shift, [[[-(code << shift) for code in r] for r in cpd.table.tolist()] for cpd in net.cpds]


def integer_scores(net: BayesNet, X: np.ndarray) -> tuple[np.ndarray, int]:
    """Scores by a recursion from the roots down: what a feature sends to its parent is asked for, and remembered."""
    fraction, tables = unit_of(net)
    table, features = table_of(fraction), len(net.variables)
    up_of = [next((p for p in cpd.parents if p != features), -1) for cpd in net.cpds[:features]]
    out = np.empty((len(X), net.target.cardinality), dtype=np.int64)
    for r, row in enumerate(X.tolist()):
        for c in range(net.target.cardinality):

            def entry(node: int, up: int, value: int, label: int = c) -> int:
                line = 0
                for p in net.cpds[node].parents:
                    line = line * net.nodes[p].cardinality + (label if p == features else up)
                return tables[node][line][value]

            @cache
            def message(node: int, up: int, row: tuple[int, ...] = tuple(row), entry=entry) -> int:
                total = None
                for value in [row[node]] if row[node] >= 0 else range(net.nodes[node].cardinality):
                    term = entry(node, up, value)
                    for child in (i for i in range(features) if up_of[i] == node):
                        term = narrow(term + message(child, value))
                    total = term if total is None else log_add(total, term, fraction, table)
                return total

            score = tables[features][0][c]
            for root in (i for i in range(features) if up_of[i] < 0):
                score = narrow(score + message(root, 0))
            out[r, c] = score
    return out, fraction


def with_gaps(X: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    """Rows in which a share of all entries is missing."""
    return np.where(np.random.default_rng(seed).random(X.shape) < share, -1, X)


def with_more_and_more_gaps(X: np.ndarray, seed: int = 0) -> np.ndarray:
    """Complete rows, and the same with a twentieth, half and all of the entries missing."""
    return np.vstack([X, *(with_gaps(X, share, seed) for share in (0.05, 0.5, 1.0))])


def codes_of(X: np.ndarray, states: list[int], largest: int, seed: int = 0) -> np.ndarray:
    """The rows with any code that is not a state where a value is missing."""
    generator = np.random.default_rng(seed)
    other = generator.integers(np.array(states), largest + 1, X.shape)
    return np.where(X < 0, np.where(generator.random(X.shape) < 0.5, largest, other), X)
