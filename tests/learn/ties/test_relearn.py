"""Relearned weights against enumeration, the gradient against differences, Proposition 1 and Theorem 1."""

import itertools
import os
import signal
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp

import oracle
import zoo
from cases import whole
from tinybayes.compress import tie
from tinybayes.deploy.files.clauses import parse_clauses
from tinybayes.errors import TinybayesError
from tinybayes.infer import compile_circuit
from tinybayes.infer.circuit_passes import ExpectedCounts
from tinybayes.learn.ties.chains import Chains
from tinybayes.learn.ties.relearn import relearn
from tinybayes.model import BayesNet, Codebook, Dataset, Factor, Float, LogLinear, Variable

SEEDS = st.integers(0, 10**6)


def all_rows(model):
    return np.array(list(itertools.product(*map(range, model.cardinalities))))


def statistics(model):
    """Counts of the classes in every assignment, by walking over the factors."""
    rows = all_rows(model)
    table = np.zeros((len(rows), len(model.weights)))
    for r, row in enumerate(rows):
        for feature in model.features(row[None])[0]:
            if feature >= 0:
                table[r, model.classes[feature]] += 1
    return rows, table


def score(table, weights):
    """The logarithm of each assignment's weight; a class of weight minus infinity that is not used adds nothing."""
    return np.where(table > 0, table * np.where(np.isneginf(weights), -1e300, weights), 0.0).sum(axis=1)


def mean_log(model, table, weights, counts):
    used = counts > 0
    return counts[used] @ weights[used] - logsumexp(score(table, weights))


def random_model(rng, *, forbid=False):
    """Factors over random scopes whose features share few weights, some assignments without a feature."""
    cards = rng.integers(1, 4, 4)
    variables = [Variable(f"v{i}", tuple(range(c))) for i, c in enumerate(cards)]
    factors, features = [], 0
    for _ in range(4):
        scope = rng.choice(4, rng.integers(1, 4), replace=False)
        size = int(np.prod(cards[scope]))
        factors.append(Factor(tuple(scope), np.where(rng.random(size) < 0.2, -1, features + np.arange(size))))
        features += size
    weights = rng.normal(size=5)
    if forbid:
        weights[0] = -np.inf
    return LogLinear(variables, tuple(factors), weights, rng.integers(0, 5, features))


def drawn(rng, model, table, n=40):
    logs = score(table, model.weights)
    p = np.exp(logs - logsumexp(logs))
    rows = all_rows(model)[rng.choice(len(p), n, p=p / p.sum())]
    return Dataset(model.variables, None, rows, None, rng.integers(0, 3, n) + 0.5)


@given(seed=SEEDS, forbid=st.booleans(), scale=st.sampled_from([1.0, 300.0]))
def test_expectations_are_those_of_enumeration_and_the_gradient_that_of_differences(seed, forbid, scale):
    rng = np.random.default_rng(seed)
    model = random_model(rng, forbid=forbid)
    _, table = statistics(model)
    if np.isneginf(logsumexp(score(table, model.weights))) or logsumexp(score(table, model.weights)) < -1e200:
        return
    exact = ExpectedCounts(compile_circuit(model))
    weights = np.where(np.isneginf(model.weights), -np.inf, rng.normal(size=5) * scale)  # 300 leaves the range
    logs = score(table, weights)
    log_z, counts = exact(weights)
    assert log_z == pytest.approx(logsumexp(logs), abs=1e-9 * scale)
    assert counts == pytest.approx(np.exp(logs - logsumexp(logs)) @ table, abs=1e-9)
    again = exact(weights)
    assert again[0] == log_z
    assert np.array_equal(again[1], counts)
    if scale == 1.0:
        for c in np.flatnonzero(np.isfinite(weights)):
            step = np.zeros(5)
            step[c] = 1e-5
            slope = (exact(weights + step)[0] - exact(weights - step)[0]) / 2e-5
            assert counts[c] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("low", [500, *whole(480, 510, 520, 600)])
def test_sums_that_are_too_small_on_the_way_are_not_lost(low, mirrored):
    """A chain whose first factors make the sum smaller than any double, and whose others make up for it."""
    weights, high = np.array([-2.3, -2.0, 2.1, 2.2]), 256
    agree = np.arange(low + high) >= low
    agree = 2 * (agree[::-1] if mirrored else agree).astype(int)
    variables = tuple(Variable(f"v{i}", (0, 1)) for i in range(low + high + 1))
    factors = tuple(Factor((i, i + 1), 4 * i + np.arange(4)) for i in range(low + high))
    classes = (agree[:, None] + [0, 1, 1, 0]).reshape(-1)
    log_z, counts = ExpectedCounts(compile_circuit(LogLinear(variables, factors, weights, classes)))(weights)
    below, above = logsumexp(weights[:2]), logsumexp(weights[2:])
    assert log_z == pytest.approx(np.log(2) + low * below + high * above, rel=1e-12)
    shares = np.exp(weights - [below, below, above, above])
    assert counts == pytest.approx(shares * [low, low, high, high], rel=1e-9)


@settings(max_examples=25)
@given(seed=SEEDS)
def test_the_optimum_is_that_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    _, table = statistics(model)
    data = drawn(rng, model, table)
    counts = np.average([table[find(model, row)] for row in data.X], axis=0, weights=data.weight)
    found = relearn(model, data, prior=3.0, tolerance=1e-7)
    logs, total = score(table, model.weights), data.weight.sum()
    first = np.exp(logs - logsumexp(logs)) @ table  # the model itself counts for three rows
    aims = (total * counts + 3.0 * first) / (total + 3.0)
    best = minimize(lambda w: -mean_log(model, table, w, aims), model.weights, method="BFGS", options={"gtol": 1e-8}).x
    p, q = (np.exp(score(table, w) - logsumexp(score(table, w))) for w in (found.model.weights, best))
    assert p == pytest.approx(q, abs=1e-5)  # weights may differ: some directions change nothing
    assert found.prior == 3.0
    assert found.method == "exact"
    assert found.converged
    assert found.after == pytest.approx(mean_log(model, table, found.model.weights, counts), abs=1e-9)
    assert found.log_partition == pytest.approx(logsumexp(score(table, found.model.weights)), abs=1e-9)


def find(model, row):
    place = 0
    for card, code in zip(model.cardinalities, row, strict=True):
        place = place * card + int(code)
    return place


def random_case(seed, *, trees=False, zeros=0.2):
    """A normalised network with some zeros, and rows that it allows."""
    rng = np.random.default_rng(seed)
    net = zoo.random_net(rng, 3, target=bool(seed % 2), trees=trees, formats=(Float(64),))
    cpds = []
    for cpd in net.cpds:
        p = np.exp(cpd.log_parameters) * (rng.random(cpd.table.shape) >= zeros)
        p[p.sum(axis=1) == 0] = 1
        cpds.append(zoo.cpd(p / p.sum(axis=1, keepdims=True), cpd.parents, cpd.tree))
    net = BayesNet(net.variables, net.target, tuple(cpds))
    rows, logs = oracle.joint(net)
    rows = rows[rng.choice(len(rows), 50, p=np.exp(logs) / np.exp(logs).sum())]
    columns = len(net.variables)
    y = rows[:, -1] if net.target is not None else None
    return net, Dataset(net.variables, net.target, rows[:, :columns], y, rng.random(50)), rows


def likelihood(net, rows, weight):
    """The exact mean log-likelihood, by enumeration."""
    logs = [oracle.log_joint(net, row) for row in rows.tolist()]
    return np.average(logs, weights=weight) - oracle.log_sum(oracle.joint(net)[1])


def tied(net, k):
    most = len(np.unique(np.concatenate([c.log_parameters.ravel() for c in net.cpds])))
    return tie(net, min(k, most))


@given(seed=SEEDS, k=st.integers(2, 8), trees=st.booleans())
def test_proposition_1_and_theorem_1(seed, k, trees):
    net, data, rows = random_case(seed, trees=trees)
    quantised = tied(net, k)
    found = relearn(quantised.model, data)
    before, after = (likelihood(one, rows, data.weight) for one in (quantised.model, found.model))
    assert found.before == pytest.approx(before, abs=1e-9)
    assert found.after == pytest.approx(after, abs=1e-9)
    assert found.after >= found.before
    assert likelihood(net, rows, data.weight) - after <= quantised.bound + 1e-9
    # The ties stay: entries that shared a level still do, and zeros are zeros.
    for old, new in zip(quantised.model.cpds, found.model.cpds, strict=True):
        assert isinstance(new.format, Codebook)
        assert len(new.format.values) <= len(old.format.values)
        assert np.array_equal(np.isneginf(old.log_parameters), np.isneginf(new.log_parameters))
        for level in np.unique(old.table):
            assert len(np.unique(new.table[old.table == level])) == 1


@given(seed=SEEDS, k=st.integers(2, 8), trees=st.booleans())
def test_rows_stay_normalised_and_are_never_worse(seed, k, trees):
    net, data, rows = random_case(seed, trees=trees)
    quantised = tied(net, k)
    found = relearn(quantised.model, data, normalized=True)
    assert found.method == "rows"
    assert found.model.is_normalized()
    assert found.after >= found.before
    assert found.after == pytest.approx(likelihood(found.model, rows, data.weight), abs=1e-5)
    plain = tie(net, quantised.levels, renormalize=True).model
    assert found.before == pytest.approx(likelihood(plain, rows, data.weight), abs=1e-5)
    # At the maximum no class can be moved to any good.
    ties, start = LogLinear.from_bayes_net(quantised.model).classes, 0
    chosen = int(np.random.default_rng(seed).integers(ties.max() + 1))
    for shift in (-0.01, 0.01):
        cpds = []
        start = 0
        for cpd in found.model.cpds:
            own = ties[start : start + cpd.table.size].reshape(cpd.table.shape)
            start += cpd.table.size
            p = np.exp(cpd.log_parameters + shift * (own == chosen))
            cpds.append(zoo.cpd(p / p.sum(axis=1, keepdims=True), cpd.parents, cpd.tree))
        other = likelihood(BayesNet(net.variables, net.target, tuple(cpds)), rows, data.weight)
        if found.unused == 0:
            assert other <= found.after + 1e-7


def test_without_ties_the_rows_are_relative_frequencies():
    net, data, rows = random_case(3, zeros=0)
    found = relearn(net, data, normalized=True, tolerance=1e-9, prior=0.0)
    for node, cpd in enumerate(found.model.cpds):
        for values in {tuple(row[list(cpd.parents)]) for row in rows}:
            here = (rows[:, list(cpd.parents)] == values).all(axis=1)
            line = 0
            for parent, value in zip(cpd.parents, values, strict=True):
                line = line * net.nodes[parent].cardinality + value
            shares = np.bincount(rows[here, node], data.weight[here], net.nodes[node].cardinality)
            if shares.min() > 0:  # others are on their way to infinity
                assert np.exp(cpd.log_parameters[line]) == pytest.approx(shares / shares.sum(), abs=1e-5)


def test_weighted_clauses_are_learned_to_the_counts_of_the_data():
    model = parse_clauses("u = 0\nu: a | b\nu: b | !c\n-1: a | c\nhard: !a | !b")
    X = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1], [0, 0, 1], [0, 1, 0]])
    data = Dataset(model.variables, None, X[[0, 1, 1, 2, 3, 3, 4, 5]])
    found = relearn(model, data, tolerance=1e-10)
    _, table = statistics(model)
    logs = score(table, found.model.weights)
    expected = np.exp(logs - logsumexp(logs)) @ table
    assert expected == pytest.approx(model.class_counts(data.X) / len(data), abs=2e-8)
    assert (found.unused, found.limited) == (0, 0)


def test_a_class_that_no_row_uses_stays_finite_and_this_is_told():
    variable = Variable("x", (0, 1, 2))
    model = LogLinear((variable,), (Factor((0,), np.arange(3)),), np.log([0.5, 0.3, 0.2]))
    data = Dataset((variable,), None, np.array([[0], [0], [1]]))
    found = relearn(model, data, tolerance=1e-10)
    p = np.exp(found.model.weights - logsumexp(found.model.weights))
    assert p == pytest.approx([2.5 / 4, 1.3 / 4, 0.2 / 4], abs=1e-9)  # one row of the model itself
    assert (found.prior, found.unused, found.limited) == (1.0, 1, 0)
    free = relearn(model, data, prior=0.0, tolerance=0.0)
    assert (free.prior, free.unused) == (0.0, 1)
    assert free.limited == 1  # minus infinity is out of reach
    assert np.isfinite(free.model.weights).all()
    assert free.after > found.after
    all_used = relearn(model, Dataset((variable,), None, np.array([[0], [1], [2]])))
    assert (all_used.prior, all_used.unused) == (0.0, 0)


@pytest.mark.exhaustive
@given(seed=SEEDS, prior=st.sampled_from([0.5, 20.0]))
def test_a_prior_leaves_proposition_1_true(seed, prior):
    net, data, _ = random_case(seed)
    quantised = tied(net, 4).model
    for learn in (relearn, partial(relearn, normalized=True)):
        found = learn(quantised, data, prior=prior)
        assert found.after >= found.before
        assert found.after <= learn(quantised, data, prior=0.0).after + 1e-6


def test_one_circuit_serves_all_ties():
    net, data, _ = random_case(12)
    circuit = compile_circuit(LogLinear.from_bayes_net(net), by="feature")
    for k in (3, 5):
        quantised = tied(net, k).model
        one, other = relearn(quantised, data), relearn(quantised, data, circuit=circuit)
        assert other.after == pytest.approx(one.after, abs=1e-9)
        assert other.log_partition == pytest.approx(one.log_partition, abs=1e-4)
    with pytest.raises(TinybayesError, match="circuit: expected a circuit of the model"):
        relearn(quantised, data, circuit=compile_circuit(LogLinear.from_bayes_net(quantised)))
    free = random_case(12, zeros=0)[0]
    with pytest.raises(TinybayesError, match="circuit: expected nothing forbidden but"):
        relearn(tied(free, 3).model, data, circuit=circuit)


def test_an_interrupt_keeps_what_was_found():
    net, data, _ = random_case(8)
    seen = []

    def report(state):
        seen.append(state)
        if len(seen) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    quantised = tied(net, 4).model
    found = relearn(quantised, data, tolerance=0.0, report=report)
    assert len(seen) == 2
    assert found.steps == 2
    assert found.after >= found.before
    assert [state.step for state in seen] == [1, 2]
    assert seen[-1].log_likelihood >= found.before
    assert not found.converged
    assert not found.complete
    seen.clear()
    sampled = relearn(quantised, data, max_edges=1, report=report)
    assert (sampled.steps, sampled.complete) == (2, False)
    assert relearn(quantised, data).complete


@pytest.mark.parametrize("trees", [False, True])
def test_samples_come_near_the_exact_optimum_and_are_named_approximate(trees):
    net, data, rows = random_case(22, zeros=0.0, trees=trees)
    quantised = tied(net, 4).model
    exact = relearn(quantised, data)
    found = relearn(quantised, data, max_edges=3, steps=300, seed=5)
    assert found.method == "approximate"
    assert (found.before, found.after, found.log_partition) == (None, None, None)
    assert found.converged
    assert likelihood(found.model, rows, data.weight) == pytest.approx(exact.after, abs=2e-3)
    assert likelihood(found.model, rows, data.weight) > exact.before
    again = relearn(quantised, data, max_edges=3, steps=300, seed=5)
    assert again.model == found.model


def test_chains_have_the_distribution_of_the_model():
    rng = np.random.default_rng(4)
    model = random_model(rng)
    _, table = statistics(model)
    logs = score(table, model.weights)
    expected = np.exp(logs - logsumexp(logs)) @ table
    chains = Chains(model, np.zeros((4000, 4), dtype=int), 1)
    seen = chains(model.weights, 50)
    errors = seen.std(axis=0) / np.sqrt(len(seen))
    assert (np.abs(seen.mean(axis=0) - expected) <= 4 * errors + 1e-12).all()
    assert np.array_equal(seen, np.array([table[find(model, row)] for row in chains.X]))


def test_bad_requests_are_refused():
    net, data, _ = random_case(31)
    quantised = tied(net, 4).model
    X = data.X.copy()
    X[0, 0] = -1
    unknown = Dataset(data.variables, data.target, X, data.y)
    other = Dataset((*data.variables[:-1], Variable("z", (0, 1))), data.target, data.X * 0, data.y)
    for learn in (relearn, partial(relearn, normalized=True)):
        with pytest.raises(TinybayesError, match="data: expected rows without unknown values, got 1 with some"):
            learn(quantised, unknown)
        with pytest.raises(TinybayesError, match="the variables of the model"):
            learn(quantised, other)
        with pytest.raises(TinybayesError, match="rows with a weight above zero"):
            learn(quantised, data.rows(slice(0)))
        for name, value in [("prior", -1.0), ("prior", "some"), ("tolerance", float("nan")), ("steps", 0)]:
            with pytest.raises(TinybayesError, match=f"{name}: expected"):
                learn(quantised, data, **{name: value})
    with pytest.raises(TinybayesError, match="chains: expected at least 1"):
        relearn(quantised, data, chains=0)
    with pytest.raises(TinybayesError, match="normalized: expected a Bayesian network"):
        relearn(LogLinear.from_bayes_net(quantised), data, normalized=True)
    wet = zoo.sprinkler()
    impossible = Dataset(wet.variables, None, np.array([[0, 0, 1]]))
    with pytest.raises(TinybayesError, match="rows of probability zero; smooth the model"):
        relearn(tie(wet, 4).model, impossible)
