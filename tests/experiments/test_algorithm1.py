"""Algorithm 1 as printed, against enumeration."""

import itertools
import math

import numpy as np
import pytest

import zoo
from experiments.parameter_tying.algorithm1 import algorithm1
from sampling_cases import MODELS, case, check, clause_model, entry_weight, scores, truth
from tinybayes import LogLinear, TinybayesError, Variable
from tinybayes.infer import hellinger, marginals
from tinybayes.model import Factor


def test_the_printed_algorithm_is_unbiased_on_clauses():
    z, log_z = [], []
    for seed in range(MODELS):
        model, evidence, rows, weight = case(seed, clause_model)
        found = algorithm1(model, evidence, samples=8192, seed=seed)
        z += scores(found, truth(model, rows, weight))
        log_z.append(math.expm1(found.log_z - math.log(weight.sum())) / max(found.log_z_error, 1e-12))
    check(z)
    assert np.abs(log_z).max() < 4.5


def test_the_printed_algorithm_rejects_on_tables():
    """Acceptance is the sum over all assignments divided by the product of 1 + exp(mu)."""
    rng = np.random.default_rng(0)
    shapes = [(0,), (0, 1), (1, 2)]
    ends = np.cumsum([2 ** len(scope) for scope in shapes])
    factors = [Factor(scope, np.arange(end - 2 ** len(scope), end)) for scope, end in zip(shapes, ends, strict=True)]
    weights = rng.normal(-1, 0.5, 10)
    model = LogLinear(tuple(Variable(name, (0, 1)) for name in "abc"), tuple(factors), weights)
    total = sum(
        math.exp(sum(entry_weight(model, factor, row) for factor in factors))
        for row in itertools.product((0, 1), repeat=3)
    )
    expected = total / np.prod(1 + np.exp(weights))
    found = algorithm1(model, samples=100_000)
    assert abs((1 - found.zero) - expected) < 4 * math.sqrt(expected * (1 - expected) / found.samples)
    assert found.log_z == pytest.approx(math.log(total), abs=4.5 * found.log_z_error)


def test_networks_get_their_marginals():
    found = algorithm1(zoo.sprinkler(), {2: 1}, samples=4000, seed=3)
    exact = marginals(zoo.sprinkler(), {2: 1})
    assert hellinger(found.probabilities, exact.probabilities) < 0.2  # few of its samples count
    assert found[2].tolist() == [0.0, 1.0]


def test_impossible_evidence_is_an_error():
    model = LogLinear(
        tuple(Variable(name, (0, 1)) for name in "ab"),
        (Factor((0, 1), np.array([0, -1, -1, 0])),),
        np.array([-np.inf]),
    )
    with pytest.raises(TinybayesError, match=r"occur|zero"):
        algorithm1(model, {"a": 0, "b": 0}, samples=500)
    assert algorithm1(model, {"a": 0}, samples=500)["b"][1] == pytest.approx(1)


def test_models_that_are_too_large_are_refused():
    cells = [(a, a + 1) for a in range(399) if a % 20 < 19] + [(a, a + 20) for a in range(380)]
    factors = tuple(Factor(pair, np.arange(4 * k, 4 * k + 4)) for k, pair in enumerate(cells))
    grid = LogLinear(tuple(Variable(f"v{k}", (0, 1)) for k in range(400)), factors, np.zeros(4 * len(cells)))
    with pytest.raises(TinybayesError, match="algorithm1"):
        algorithm1(grid)
