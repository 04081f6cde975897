"""Random models of eight variables with ties, zeros and evidence, enumerated, and tests of estimates against them."""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tinybayes import LogLinear, Variable
from tinybayes.infer.sampling.result import Marginals
from tinybayes.model import Factor

MODELS = 50
LEVEL = 1e-3  # that some of all the tests of one method fails by chance


def random_model(seed):
    """Make a network with tied entries and zeros, or factors over any variables; states of probability zero as well."""
    rng = np.random.default_rng(seed)
    n = 8
    cards = rng.choice([2, 2, 2, 3], n).tolist()
    classes = int(rng.integers(2, 6))
    weights = np.append(rng.normal(0, 1.2, classes), -np.inf)
    factors, features, ties = [], 0, []
    zeros = 0.15 if seed % 2 else 0.0
    for v in range(n):
        before = rng.choice(v, min(v, int(rng.integers(0, 3))), replace=False).tolist() if v else []
        scope = [*before, v] if seed % 3 else rng.permutation([*before, v]).tolist()
        size = math.prod(cards[u] for u in scope)
        ties += np.where(rng.random(size) < zeros, classes, rng.integers(0, classes, size)).tolist()
        factors.append(Factor(tuple(scope), np.arange(features, features + size)))
        features += size
    variables = tuple(Variable(f"v{k}", tuple(range(card))) for k, card in enumerate(cards))
    return LogLinear(variables, tuple(factors), weights, np.array(ties))


def clause_model(seed):
    """Make weighted clauses, as factors with one feature each, over eight binary variables."""
    rng = np.random.default_rng(seed)
    factors, ties = [], []
    weights = np.append(rng.normal(0.3, 0.8, 3), -np.inf)
    for feature in range(10):
        scope = tuple(rng.choice(8, 3, replace=False).tolist())
        false = int(rng.integers(8))
        hard = seed % 2 == 1 and feature < 2
        table = np.where(np.arange(8) == false, feature if hard else -1, -1 if hard else feature)
        factors.append(Factor(scope, table))
        ties.append(3 if hard else int(rng.integers(3)))
    return LogLinear(tuple(Variable(f"v{k}", (0, 1)) for k in range(8)), tuple(factors), weights, np.array(ties))


@functools.cache
def case(seed, kind=random_model):
    """Return a model, evidence that can occur, and by enumeration: assignments, their weights, which agree."""
    model = kind(seed)
    while True:
        rows = np.array(list(itertools.product(*(range(len(v.states)) for v in model.variables))))
        weight = np.array([math.exp(sum(entry_weight(model, factor, row) for factor in model.factors)) for row in rows])
        if weight.any():
            break
        seed += 1000
        model = kind(seed)
    rng = np.random.default_rng(seed + 1)
    likely = rows[int(rng.choice(len(rows), p=weight / weight.sum()))]
    chosen = rng.choice(8, int(rng.integers(0, 4)), replace=False).tolist()
    evidence = {v: int(likely[v]) for v in chosen}
    fits = np.array([all(row[v] == state for v, state in evidence.items()) for row in rows])
    return model, evidence, rows[fits], weight[fits]


def entry_weight(model, factor, row):
    place = 0
    for v in factor.scope:
        place = place * len(model.variables[v].states) + row[v]
    feature = factor.feature[place]
    return 0.0 if feature < 0 else model.weights[model.ties[feature]]


def truth(model, rows, weight):
    p = weight / weight.sum()
    return [
        np.array([p[rows[:, v] == state].sum() for state in range(len(variable.states))])
        for v, variable in enumerate(model.variables)
    ]


def scores(found: Marginals, exact):
    """Return the standard scores of all states with enough samples, and check the others for being small."""
    z = []
    for p, error, q in zip(found.probabilities, found.errors, exact, strict=True):
        assert p.sum() == pytest.approx(1)
        np.testing.assert_array_equal(p[q == 0], 0)
        for a, e, b in zip(p, error, q, strict=True):
            if min(b, 1 - b) * found.effective < 30:
                assert abs(a - b) <= 100 / found.effective + 1e-12
            else:
                z.append((a - b) / max(e, 1e-12))
    return z


def check(z, df=math.inf):
    """Compare the largest score with what so many normal (or Student) numbers may show."""
    assert len(z) > 50
    limit = stats.t.isf(LEVEL / len(z) / 2, df) if math.isfinite(df) else stats.norm.isf(LEVEL / len(z) / 2)
    assert np.abs(z).max() < limit
    # The errors are honest in the other direction, too: squares of scores are one on average.
    assert 0.5 < np.mean(np.square(z)) < 1.6
