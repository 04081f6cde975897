"""Rows of evidence through one join tree against enumeration, single questions and the general way."""

from dataclasses import replace

import numpy as np
import pytest

import zoo
from cases import exhaustive
from random_models import enumerate_all, random_factors, random_net
from tinybayes import CPD, BayesNet, Float, TinybayesError, Variable, marginals
from tinybayes._kernels.join_layout import lay_out
from tinybayes.infer.choose import worth_compiling
from tinybayes.infer.join import rows as small
from tinybayes.infer.join.solve import prepare, solve
from tinybayes.infer.orders import clique_entries
from tinybayes.infer.sampling.problem import as_log_linear
from tinybayes.model.layout import starts

KINDS = ("plain", "zeros", "ties", "extreme")


def draw_rows(rng, cards, count):
    """Return rows of evidence in which one of three sets of variables is observed."""
    seen = rng.random((3, len(cards))) < 0.4
    rows = np.stack([rng.integers(0, cards) for _ in range(count)])
    return np.where(seen[rng.integers(0, 3, count)], rows, -1)


def possible_rows(model, rows):
    """Return the rows that can occur, with log Z and the posteriors of all states, by enumeration."""
    cards = as_log_linear(model).cardinalities
    kept, logs, posterior = [], [], []
    for row in rows:
        assignments, weights = enumerate_all(model, {v: int(code) for v, code in enumerate(row) if code >= 0})
        if weights.max() == -np.inf:
            continue
        total = np.logaddexp.reduce(weights)
        share = np.exp(weights - total)
        kept.append(row)
        logs.append(total)
        posterior.append(np.concatenate([np.bincount(assignments[:, v], share, k) for v, k in enumerate(cards)]))
    return np.array(kept), np.array(logs), np.array(posterior)


def check(seed, count):
    """Compare rows of several models with enumeration; return how many could occur."""
    rng, answered = np.random.default_rng(seed), 0
    for number in range(count):
        model = (random_net, random_factors)[number // 4 % 2](rng, KINDS[number % 4])
        rows = draw_rows(rng, np.array(as_log_linear(model).cardinalities), 12)
        rows, logs, posterior = possible_rows(model, rows)
        if len(rows) < 2:
            continue
        answered += len(rows)
        found = marginals(model, rows, method="join-tree")
        assert found.exact
        np.testing.assert_allclose(found.log_z, logs, rtol=1e-11, atol=1e-9)
        np.testing.assert_allclose(np.concatenate(found.probabilities, axis=1), posterior, atol=1e-9)
        # The general way, which large tables, joint posteriors and cutsets take, gives the same.
        known = {v: int(code) for v, code in enumerate(rows[0]) if code >= 0}
        general = solve(prepare(as_log_linear(model), known, "posterior"))
        np.testing.assert_allclose(np.concatenate(general.states), posterior[0], atol=1e-9)
        assert general.log_z == pytest.approx(logs[0], rel=1e-11, abs=1e-9)
    return answered


@pytest.mark.parametrize("seed", [0, 1, *exhaustive(*range(2, 13))])
def test_rows_against_enumeration(seed):
    assert check(seed, 40) > 150


@pytest.mark.parametrize("most", [small.MOST, 12])
def test_orders_of_their_own_and_tables_that_are_large(monkeypatch, most):
    """Every row is worth an order of its own; with a small limit, rows go the general way."""
    monkeypatch.setattr(small, "_PLENTY", 0)
    monkeypatch.setattr(small, "_PLENTY_VARIABLE", 0)
    monkeypatch.setattr(small, "MOST", most)
    assert check(100, 16) > 60


def test_orders_are_kept_for_rows_alike(monkeypatch):
    monkeypatch.setattr(small, "_PLENTY", 0)
    monkeypatch.setattr(small, "_PLENTY_VARIABLE", 0)
    monkeypatch.setattr(small, "_KEPT", 3)
    net = random_net(np.random.default_rng(4), "plain")
    linear = as_log_linear(net)
    first = marginals(net, method="join-tree")
    for v in range(len(net.nodes)):
        marginals(net, {v: 0}, method="join-tree")
        assert len(linear.__dict__["_rows"].orders) <= 3
    again = marginals(net, method="join-tree")
    for p, q in zip(first.probabilities, again.probabilities, strict=True):
        np.testing.assert_allclose(p, q, atol=1e-15)


def test_a_changed_network_answers_for_itself():
    """What is kept belongs to one model: a copy with another table does not see it."""
    net = zoo.sprinkler()
    before = marginals(net, {2: 1}, method="join-tree")
    cpd = net.cpds[0]
    turned = replace(net, cpds=(replace(cpd, table=cpd.table[:, ::-1].copy()), *net.cpds[1:]))
    changed = marginals(turned, {2: 1}, method="join-tree")
    _, logs, posterior = possible_rows(turned, np.array([[-1, -1, 1]]))
    np.testing.assert_allclose(np.concatenate(changed.probabilities), posterior[0], atol=1e-12)
    assert changed.log_z == pytest.approx(logs[0])
    assert changed.log_z != pytest.approx(before.log_z)
    assert marginals(net, {2: 1}, method="join-tree").log_z == before.log_z


def test_the_number_of_threads_changes_nothing(monkeypatch):
    rng = np.random.default_rng(5)
    net = random_net(rng, "plain")
    rows = draw_rows(rng, np.array(as_log_linear(net).cardinalities), 100)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("TINYBAYES_THREADS", threads)
        found.append(marginals(net, rows, method="join-tree"))
    np.testing.assert_array_equal(found[0].log_z, found[1].log_z)
    for p, q in zip(found[0].probabilities, found[1].probabilities, strict=True):
        np.testing.assert_array_equal(p, q)


def rare():
    """Return a network in which `c` needs two causes of 1e-300 each."""
    variables = tuple(Variable(name, (0, 1)) for name in "abc")
    cause = CPD((), np.log([[1.0, 1e-290]]), Float(64))
    with np.errstate(divide="ignore"):
        effect = CPD((0, 1), np.log([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.5, 0.5]]), Float(64))
    return BayesNet(variables, None, (cause, cause, effect))


def test_a_row_with_tiny_products_is_answered_in_logarithms():
    found = marginals(rare(), np.array([[-1, -1, -1], [-1, -1, 1], [-1, -1, 0]]), method="join-tree")
    np.testing.assert_allclose(found.log_z, [0.0, 2 * np.log(1e-290) + np.log(0.5), 0.0], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found["a"][1], [0.0, 1.0])


def test_impossible_rows_are_named():
    net = rare()
    rows = np.array([[-1, -1, -1], [0, -1, -1], [0, -1, 1]])
    with pytest.raises(TinybayesError, match="evidence, row 2"):
        marginals(net, rows, method="join-tree")
    with pytest.raises(TinybayesError, match="can occur"):
        marginals(net, rows[2], method="join-tree")


def test_progress_and_no_rows():
    net, seen = zoo.sprinkler(), []
    marginals(net, method="join-tree", progress=seen.append)
    assert seen == [1.0]
    marginals(net, np.full((600, 3), -1), method="join-tree", progress=seen.append)
    assert seen == [1.0, 512 / 600, 1.0]
    empty = marginals(net, np.empty((0, 3), dtype=np.int64), method="join-tree")
    assert empty.probabilities[0].shape == (0, 2)


def test_many_rows_are_compiled_few_are_not():
    """Compiling is chosen by estimates: these are far apart, and a circuit that is there is taken."""
    net = zoo.sprinkler()
    rows = np.full((3, 3), -1)
    assert marginals(net, rows).method == "join-tree"
    assert worth_compiling(as_log_linear(net), 100_000)
    assert marginals(net, rows, method="circuit").method == "circuit"
    assert marginals(net, rows).method == "circuit"


def test_the_layout_counts_what_orders_count():
    rng = np.random.default_rng(6)
    for _ in range(20):
        linear = as_log_linear(random_net(rng, "plain"))
        n = len(linear.cardinalities)
        order = rng.permutation(n)
        place = np.empty(n, dtype=np.int64)
        place[order[::-1]] = np.arange(n)
        scopes = [sorted(place[list(factor.scope)].tolist()) for factor in linear.factors]
        cards = np.array(linear.cardinalities)[order[::-1]]
        flat = starts(map(len, scopes)), np.array([p for scope in scopes for p in scope], dtype=np.int64)
        wanted = clique_entries([factor.scope for factor in linear.factors], linear.cardinalities, order.tolist())
        nothing = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64)
        assert lay_out(*flat, cards, *nothing, np.inf).entries == wanted
        assert lay_out(*flat, cards, *nothing, wanted - 1).entries == np.inf
