"""Log-linear models against enumeration: log Z, posteriors, expected counts, and the two views of a network."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
import zoo
from tinybayes.compress import quantize
from tinybayes.deploy.files.clauses import parse_clauses
from tinybayes.errors import TinybayesError
from tinybayes.infer import (
    compile_circuit,
    expected_counts,
    is_decomposable,
    is_deterministic,
    is_smooth,
    log_partition,
    most_probable,
    posteriors,
    with_weights,
)
from tinybayes.model import Codebook, Factor, LogLinear, Variable

SEEDS = st.integers(0, 10**6)


def random_model(seed):
    """Factors over random scopes, some of them trees or without features; ties, zeros, cycles."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 4, rng.integers(1, 6)).tolist()
    variables = [Variable(f"v{i}", tuple(range(card))) for i, card in enumerate(cards)]
    classes = int(rng.integers(1, 6))
    weights = np.where(rng.random(classes) < 0.1, -np.inf, rng.normal(0, 2, classes))
    factors, features = [], 0
    for _ in range(rng.integers(0, 7)):
        scope = rng.permutation(len(cards))[: rng.integers(0, 4)]
        entries = int(np.prod([cards[v] for v in scope], initial=1))
        feature = features + rng.integers(0, entries, entries)
        feature[rng.random(entries) < 0.3] = -1
        factors.append(Factor(scope.tolist(), feature))
        features += entries
    return LogLinear(variables, factors, weights, rng.integers(0, classes, features))


def by_hand(model, row):
    total = 0.0
    for factor in model.factors:
        place = 0
        for v in factor.scope:
            place = place * model.variables[v].cardinality + row[v]
        if (feature := factor.feature[place]) >= 0:
            total += model.weights[model.ties[feature]]
    return total


def enumerated(model, weight=by_hand):
    rows = np.array(list(itertools.product(*(range(card) for card in model.cardinalities))))
    return rows, np.array([weight(model, row) for row in rows.tolist()])


def check_against_enumeration(model, rows, logs):
    total = oracle.log_sum(logs)
    p = np.exp(logs - total)
    nothing = np.full((1, len(model.variables)), -1)
    counts = np.array([((model.features(rows) == f).sum(axis=1) * p).sum() for f in range(model.n_features)])
    for by, expected in (("class", np.bincount(model.ties, counts, len(model.weights))), ("feature", counts)):
        circuit = compile_circuit(model, by=by)
        assert circuit.variables == model.variables
        assert all([is_smooth(circuit), is_decomposable(circuit), is_deterministic(circuit)])
        assert log_partition(circuit) == pytest.approx(total, abs=1e-9)
        assert expected_counts(circuit, nothing) == pytest.approx(expected, abs=1e-9)
        states = np.concatenate(
            [[p[rows[:, v] == s].sum() for s in range(c)] for v, c in enumerate(model.cardinalities)]
        )
        assert posteriors(circuit, nothing)[0] == pytest.approx(states, abs=1e-9)
        assert most_probable(circuit, nothing)[1][0] == pytest.approx(logs.max(), abs=1e-9)


@given(seed=SEEDS)
def test_random_models_agree_with_enumeration(seed):
    model = random_model(seed)
    rows, logs = enumerated(model)
    assert model.log_weights(rows) == pytest.approx(logs)
    if np.isneginf(logs).all():
        with pytest.raises(TinybayesError, match="zero for everything"):
            compile_circuit(model)
        return
    check_against_enumeration(model, rows, logs)


@given(seed=SEEDS, trees=st.booleans())
def test_a_network_is_a_log_linear_model(seed, trees):
    rng = np.random.default_rng(seed)
    net = zoo.random_net(rng, 4, trees=trees)
    model = LogLinear.from_bayes_net(net)
    assert model.n_features == len(model.weights) == sum(cpd.table.size for cpd in net.cpds)
    rows, logs = oracle.joint(net)
    assert model.log_weights(rows) == pytest.approx(logs, abs=1e-9)
    assert (model.features(rows) >= 0).all()
    check_against_enumeration(model, rows, logs)
    tied = LogLinear.from_bayes_net(quantize(net, Codebook((-3.0, -1.0, -0.25))))
    assert len(tied.weights) <= 3
    check_against_enumeration(tied, *enumerated(tied, lambda m, row: float(m.log_weights(np.array([row]))[0])))


def test_entries_of_different_codebooks_are_not_tied():
    net = zoo.sprinkler()
    books = [Codebook((-2.0, -1.0)), Codebook((-2.0, -1.0)), Codebook((-2.0, -0.5))]
    parts = [quantize(net, book).cpds[node] for node, book in enumerate(books)]
    model = LogLinear.from_bayes_net(type(net)(net.variables, None, tuple(parts)))
    assert sorted(model.weights.tolist()) == [-2.0, -2.0, -1.0, -0.5]
    assert model.untied().weights.tolist() == model.feature_weights.tolist()
    assert model.untied() != model


def test_the_example_of_the_paper():
    """Three clauses over a, b, c, two of them tied: slices with equal counts have equal probability."""
    model = parse_clauses("u = 0.5\nu: a | b\nu: b | c\nv = 1.25\nv: a | c\n")
    rows = np.array(list(itertools.product((0, 1), repeat=3)))
    truths = np.array([[a | b, b | c, a | c] for a, b, c in rows])
    logs = truths @ [0.5, 0.5, 1.25]
    assert model.log_weights(rows) == pytest.approx(logs)
    check_against_enumeration(model, rows, logs)


def test_a_circuit_stays_right_when_weights_change():
    model = parse_clauses("u = 0\nu: a | b\n1: !a | c=1\nhard: b | c\n")
    circuit = compile_circuit(model)
    other = LogLinear(model.variables, model.factors, [2.0, -1.0, -np.inf], model.ties)
    assert log_partition(with_weights(circuit, other.weights)) == pytest.approx(log_partition(other), abs=1e-12)
    with pytest.raises(TinybayesError, match="minus infinity where it was"):
        with_weights(circuit, [0.0, 0.0, 0.0])
    with pytest.raises(TinybayesError, match="3 weights"):
        with_weights(circuit, [0.0])


def test_orders_and_limits_are_passed_on():
    model = LogLinear.from_bayes_net(zoo.sprinkler())
    order = list(range(len(model.variables)))
    assert log_partition(compile_circuit(model, order=order)) == pytest.approx(log_partition(model))
    clauses = "\n".join(f"1: {' | '.join(f'v{i}' for i in range(j, j + 5))}" for j in range(8))
    with pytest.raises(TinybayesError, match="at most 10 edges"):
        compile_circuit(parse_clauses(clauses), max_edges=10)
    with pytest.raises(TinybayesError, match="by: expected 'class' or 'feature'"):
        compile_circuit(model, by="entry")


def test_contradictory_clauses_are_refused():
    with pytest.raises(TinybayesError, match="zero for everything"):
        compile_circuit(parse_clauses("hard: a\nhard: !a | b\nhard: !b"))
