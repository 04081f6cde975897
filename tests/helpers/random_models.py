"""Small random models with zeros, ties and extreme parameters, and their assignments by enumeration."""

import itertools
import math

import numpy as np

from tinybayes import CPD, BayesNet, Float, LogLinear, Variable
from tinybayes.infer.sampling.problem import as_log_linear
from tinybayes.model import Factor


def random_net(rng, kind):
    """Return a network of up to eight variables; its kind says what is special about its parameters."""
    n = int(rng.integers(1, 9))
    cards = rng.integers(2, 4, n)
    variables = tuple(Variable(f"x{v}", tuple(range(cards[v]))) for v in range(n))
    cpds = []
    for v in range(n):
        parents = tuple(sorted(rng.choice(v, int(rng.integers(0, min(v, 3) + 1)), replace=False).tolist()))
        rows = math.prod(int(cards[p]) for p in parents)
        table = rng.dirichlet(np.ones(cards[v]), rows)
        if kind == "zeros":
            table[rng.random(table.shape) < 0.4] = 0
            table[table.sum(axis=1) == 0, 0] = 1
        elif kind == "ties":
            table = rng.choice([0.25, 0.5], table.shape)
        elif kind == "extreme":
            table[rng.random(table.shape) < 0.4] = 1e-300
        table /= table.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            cpds.append(CPD(parents, np.log(table), Float(64)))
    return BayesNet(variables, None, tuple(cpds))


def random_factors(rng, kind):
    """Return a log-linear model, with factors of any shape, some of them tied."""
    n = int(rng.integers(1, 8))
    cards = rng.integers(1, 4, n)
    variables = tuple(Variable(f"x{v}", tuple(range(cards[v]))) for v in range(n))
    factors, count = [], 0
    for _ in range(int(rng.integers(1, 2 * n + 1))):
        scope = tuple(rng.choice(n, int(rng.integers(1, min(n, 4) + 1)), replace=False).tolist())
        entries = math.prod(int(cards[v]) for v in scope)
        factors.append(Factor(scope, np.arange(count, count + entries)))
        count += entries
    weights = rng.normal(0, 400 if kind == "extreme" else 1.5, count)
    if kind == "zeros":
        weights[rng.random(count) < 0.3] = -np.inf
    ties = rng.integers(0, max(count // 3, 1), count) if kind == "ties" else None
    return LogLinear(variables, tuple(factors), weights, ties)


def enumerate_all(model, known):
    """Return the assignments that agree with evidence, and their log-weights."""
    linear = as_log_linear(model)
    states = [[known[v]] if v in known else range(card) for v, card in enumerate(linear.cardinalities)]
    rows = np.array(list(itertools.product(*states)))
    return rows, linear.log_weights(rows)
