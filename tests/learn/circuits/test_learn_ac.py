import itertools
import math
import os
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from strategies import random_data
from tinybayes import TinybayesError
from tinybayes._kernels.grow import N_PARTS, N_SPLITS, SCORE, leaf_score
from tinybayes._kernels.growing_circuit import LIVE, NO_LIMIT, SIDE_D
from tinybayes._kernels.split_cost import edge_cost
from tinybayes.infer.circuit import log_evidence
from tinybayes.infer.circuit_properties import is_decomposable, is_deterministic, is_smooth
from tinybayes.infer.compile_circuit import compile_circuit
from tinybayes.learn.circuits import pools
from tinybayes.learn.circuits.learn_ac import State, learn_circuit, learn_tree_cpds
from tinybayes.learn.circuits.options import CircuitOptions
from tinybayes.model import Dataset, Variable


def dependent(seed, rows=200, features=5, binary=False, classes=None):
    """Data in which variables depend on earlier ones, with 2 to 4 states."""
    generator = np.random.default_rng(seed)
    states = np.full(features, 2) if binary else generator.integers(2, 5, size=features)
    X = np.zeros((rows, features), dtype=int)
    for i, k in enumerate(states):
        base = generator.integers(0, k, size=rows)
        if i:
            parent = X[:, generator.integers(i)]
            copied = generator.random(rows) < 0.7
            base[copied] = parent[copied] % k
        X[:, i] = base
    variables = tuple(Variable(f"v{i}", tuple(range(int(k)))) for i, k in enumerate(states))
    return Dataset(variables, None, X)


def evaluate(circuit, row):
    """Evaluate a circuit node by node; row holds a value or -1 for every variable."""
    values = []
    for n in range(circuit.n_nodes):
        below = [values[c] for c in circuit.children[circuit.offsets[n] : circuit.offsets[n + 1]]]
        match circuit.kind[n]:
            case 0:
                values.append(math.exp(circuit.log_parameters[circuit.leaf[n]]))
            case 1:
                variable = int(np.searchsorted(circuit.first_state, circuit.leaf[n], side="right")) - 1
                state = circuit.leaf[n] - circuit.first_state[variable]
                values.append(float(row[variable] in (-1, state)))
            case 2:
                values.append(sum(below))
            case 3:
                values.append(math.prod(below))
    return values[-1]


def assignments(net):
    return itertools.product(*(range(node.cardinality) for node in net.nodes))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["quick", "greedy"]), st.sampled_from([0.0, 0.05, 0.5]))
def test_the_circuit_is_the_network_polynomial(seed, method, edge_price):
    """Theorem 1: for every assignment, and for partial ones, the circuit has the value of the network."""
    data = dependent(seed, rows=120, features=4)
    found = learn_circuit(data, edge_price=edge_price, parameter_price=0.2, method=method)
    circuit, net = found.circuit, found.net
    total = 0.0
    for row in assignments(net):
        wanted = math.exp(oracle.log_joint(net, list(row)))
        assert evaluate(circuit, row) == pytest.approx(wanted, rel=1e-10)
        total += wanted
    assert total == pytest.approx(1.0)
    assert evaluate(circuit, [-1] * 4) == pytest.approx(1.0)
    generator = np.random.default_rng(seed)
    for _ in range(3):
        partial = np.where(generator.random(4) < 0.5, -1, data.X[generator.integers(len(data))])
        matching = [r for r in assignments(net) if all(p in (-1, x) for p, x in zip(partial, r, strict=True))]
        wanted = sum(math.exp(oracle.log_joint(net, list(r))) for r in matching)
        assert evaluate(circuit, partial) == pytest.approx(wanted, rel=1e-10)
    assert is_smooth(circuit)
    assert is_decomposable(circuit)
    assert is_deterministic(circuit)
    assert circuit.n_edges == found.growth.edges


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_every_single_split_keeps_the_polynomial_and_costs_what_was_said(seed, binary):
    """Random valid splits, not only good ones: the cost said beforehand is the number of edges added."""
    data = dependent(seed, rows=60, features=5, binary=binary)
    table = pools.distinct_rows(data)
    state = State(table, CircuitOptions(edge_price=0.1))
    generator = np.random.default_rng(seed)
    for _ in range(8):
        count = int(state.numbers[N_PARTS])
        leaves = np.flatnonzero(state.parts.tested[:count] < 0)
        variable = state.parts.variable[leaves]
        valid = np.isfinite(state.parts.gain[leaves]) & ~state.descendant[variable]
        a, v = np.nonzero(valid)
        if not len(a):
            break
        pick = generator.integers(len(a))
        part = int(leaves[a[pick]])
        before = int(state.graph.numbers[LIVE])
        states = state.cardinality[state.parts.variable[part]]
        tested = int(v[pick])
        place = state.parts.parameter[part], states, tested, table.first_state[tested], state.cardinality[tested]
        cost, _, _ = edge_cost(state.graph, state.scratch, *place, NO_LIMIT)
        # Counting that ends early gives a lower bound above the limit, or the number itself.
        for limit in (cost - 30, cost - 1, cost, cost + 5):
            early, _, _ = edge_cost(state.graph, state.scratch, *place, limit)
            assert early == cost or limit < early < cost
        edge_cost(state.graph, state.scratch, *place, NO_LIMIT)
        state.repeat(np.array([[part, v[pick]]]))
        assert state.graph.numbers[LIVE] - before == cost
        net, offsets = pools.network(data, table, state.parts, state.order, 1.0)
        circuit = pools.circuit(net, offsets, state.graph, state.scratch, state.parts)
        assert circuit.n_edges == state.graph.numbers[LIVE]
        assert is_smooth(circuit)
        assert is_decomposable(circuit)
        assert is_deterministic(circuit)
        X = np.array(list(assignments(net)))
        chosen = X[generator.integers(len(X), size=12)]
        wanted = [oracle.log_joint(net, row) for row in chosen.tolist()]
        np.testing.assert_allclose([math.log(evaluate(circuit, row)) for row in chosen], wanted, atol=1e-9)
        assert evaluate(circuit, [-1] * 5) == pytest.approx(1.0)


def test_counting_ends_before_the_side_of_the_distribution_was_walked():
    """Nearly all candidates cost too much; this must show before all nodes above the distribution were listed."""
    table = pools.distinct_rows(dependent(5, rows=400, features=8, binary=True))
    state = State(table, CircuitOptions(edge_price=0.05))
    state.run_all(None)
    parts, listed, all_nodes = state.parts, 0, 0
    for part in np.flatnonzero(parts.tested[: int(state.numbers[N_PARTS])] < 0).tolist():
        i = parts.variable[part]
        for v in np.flatnonzero(np.isfinite(parts.gain[part]) & ~state.descendant[i]).tolist():
            of_split = parts.parameter[part], 2, v, table.first_state[v], 2
            cost, _, _ = edge_cost(state.graph, state.scratch, *of_split, NO_LIMIT)
            all_nodes += int(state.scratch.numbers[SIDE_D])
            early, _, _ = edge_cost(state.graph, state.scratch, *of_split, 2)
            listed += int(state.scratch.numbers[SIDE_D])
            assert early == cost or 2 < early < cost
    assert 2 * listed < all_nodes


def best_score(data, prices, splits):
    """Score of the network after given splits, by growing it anew; the parts of the greedy oracle."""
    table = pools.distinct_rows(data)
    state = State(table, CircuitOptions(edge_price=prices[0], parameter_price=prices[1], method="greedy"))
    state.repeat(np.array(splits, dtype=int).reshape(-1, 2))
    return state


@pytest.mark.parametrize("seed", range(6))
def test_greedy_takes_the_best_split_every_time(seed):
    """An oracle that counts the edges of every valid split anew in every step finds the same splits."""
    data = dependent(seed, rows=150, features=5)
    prices = 0.3, 0.5
    found = learn_circuit(data, edge_price=prices[0], parameter_price=prices[1], method="greedy")
    splits = []
    while True:
        state = best_score(data, prices, splits)
        best, chosen = 1e-9, None
        for part in range(int(state.numbers[N_PARTS])):
            if state.parts.tested[part] >= 0:
                continue
            i = state.parts.variable[part]
            for v in range(5):
                if not np.isfinite(state.parts.gain[part, v]) or state.descendant[i, v]:
                    continue
                place = state.parts.parameter[part], state.cardinality[i], v
                place += state.table.first_state[v], state.cardinality[v]
                cost, _, _ = edge_cost(state.graph, state.scratch, *place, NO_LIMIT)
                more = (state.cardinality[i] - 1) * (state.cardinality[v] - 1)
                score = state.parts.gain[part, v] - prices[0] * cost - prices[1] * more
                if score > best + 1e-9:
                    best, chosen = score, (part, v)
        if chosen is None:
            break
        splits.append(chosen)
    assert len(splits) > 2
    assert found.splits.tolist() == [list(s) for s in splits]
    assert found.complete


@pytest.mark.parametrize("seed", range(4))
def test_greedy_knows_the_cost_of_every_split_at_all_times(seed):
    """The costs that are kept up to date equal those of a fresh count, in a resumed run, too."""
    table = pools.distinct_rows(dependent(seed, rows=400, features=8, binary=seed % 2 == 0))
    options = CircuitOptions(edge_price=0.02, method="greedy")
    state = State(table, options)
    checked, ended = 0, False
    while not ended and state.numbers[N_SPLITS] < 100:
        if state.numbers[N_SPLITS] == 30:
            resumed = State(table, options)
            resumed.repeat(state.steps[:30])
            state = resumed
        ended = state.run(10)
        parts = state.parts
        for part in np.flatnonzero(parts.tested[: int(state.numbers[N_PARTS])] < 0).tolist():
            i = parts.variable[part]
            for v in np.flatnonzero(np.isfinite(parts.gain[part]) & ~state.descendant[i]).tolist():
                place = parts.parameter[part], state.cardinality[i], v, table.first_state[v], state.cardinality[v]
                cost, _, _ = edge_cost(state.graph, state.scratch, *place, NO_LIMIT)
                assert parts.cost[part, v] == cost
                checked += 1
    assert checked > 300


def test_greedy_takes_a_split_that_gains_nothing_but_saves_edges():
    """Given the value of y, none of the ten sums over y, one for each value of w, is needed."""
    w, noise, x = (part.ravel() for part in np.meshgrid(range(10), range(20), range(2)))
    rows = np.stack([w, noise < 2 * w + 1, x], axis=1)
    variables = Variable("w", tuple(range(10))), Variable("y", (0, 1)), Variable("x", (0, 1))
    state = State(pools.distinct_rows(Dataset(variables, None, rows)), CircuitOptions(method="greedy"))
    state.repeat(np.array([[1, 0]]))  # the part of y, split on w
    gain, cost = float(state.parts.gain[2, 1]), int(state.parts.cost[2, 1])
    assert (gain, cost) == (pytest.approx(0.0, abs=1e-9), -8)
    score = state.progress[SCORE]
    state.run(1)
    assert state.steps[1].tolist() == [2, 1]
    assert state.progress[SCORE] == pytest.approx(score + 8 * CircuitOptions.edge_price)


def test_the_score_is_what_it_says():
    data = dependent(3, rows=300, features=6)
    found = learn_circuit(data, edge_price=0.2, parameter_price=1.5)
    net = found.net
    likelihood = sum(oracle.log_joint(net, row) for row in data.X.tolist())
    free = sum(cpd.table.shape[0] * (cpd.table.shape[1] - 1) for cpd in net.cpds)
    score = likelihood - 0.2 * found.circuit.n_edges - 1.5 * free
    assert found.growth.score == pytest.approx(score, rel=1e-9)
    assert found.growth.log_likelihood == pytest.approx(likelihood / len(data), rel=1e-9)


def test_gains_are_differences_of_likelihood():
    """The gain of a split equals the difference in log-likelihood of the networks before and after it."""
    data = dependent(1, rows=90, features=4)
    found = learn_tree_cpds(data, parameter_price=0.3)
    before = learn_tree_cpds(data, parameter_price=1e9)
    assert len(before.splits) == 0
    assert before.circuit is None
    gained = len(data) * (found.growth.log_likelihood - before.growth.log_likelihood)
    direct = sum(oracle.log_joint(found.net, r) - oracle.log_joint(before.net, r) for r in data.X.tolist())
    assert gained == pytest.approx(direct)
    assert len(found.splits) > 3


def test_the_bayesian_score_is_the_marginal_likelihood():
    counts = np.array([3.0, 1.0, 0.0])
    # The probability of the sequence a a a b, drawn one after another with prior 2 spread over three states.
    sequence, seen, p = [0, 0, 0, 1], np.zeros(3), 1.0
    for x in sequence:
        p *= (seen[x] + 2 / 3) / (seen.sum() + 2)
        seen[x] += 1
    assert leaf_score(counts, 2.0, True) == pytest.approx(math.log(p))
    data = dependent(5, rows=200, features=4)
    found = learn_circuit(data, edge_price=0.1, bayesian=True)
    assert len(found.splits) > 0
    # What is reported is the sum over the leaves, whose counts are made here row by row.
    total = 0.0
    for i, cpd in enumerate(found.net.cpds):
        leaves = {}
        for row in data.X.tolist():
            place = 0
            while cpd.tree is not None and cpd.tree.split[place] >= 0:
                place = int(cpd.tree.children[cpd.tree.first[place] + row[cpd.tree.split[place]]])
            leaves.setdefault(place, np.zeros(cpd.table.shape[1]))[row[i]] += 1
        total += sum(leaf_score(counts, 1.0, True) for counts in leaves.values())
    assert found.growth.log_likelihood * len(data) == pytest.approx(total)


def test_equal_rows_count_as_weights():
    data = dependent(2, rows=150, features=4)
    twice = Dataset(data.variables, None, np.vstack([data.X, data.X]))
    weighted = Dataset(data.variables, None, data.X, weight=np.full(len(data), 2.0))
    one, other = (learn_circuit(d, edge_price=0.4) for d in (twice, weighted))
    assert one.splits.tolist() == other.splits.tolist()
    assert one.net == other.net


def test_a_class_is_one_more_variable():
    data = random_data(4, rows=300, features=4, classes=3)
    generator = np.random.default_rng(0)
    X = data.X.copy()
    X[:, 0] = np.where(generator.random(300) < 0.9, data.y % data.variables[0].cardinality, X[:, 0])
    found = learn_circuit(Dataset(data.variables, data.target, X, data.y), edge_price=0.1)
    assert found.circuit.target == data.target
    rows = np.column_stack([X, data.y])[:20]
    wanted = [oracle.log_joint(found.net, row) for row in rows.tolist()]
    np.testing.assert_allclose(log_evidence(found.circuit, rows), wanted, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_network_compiled_from_scratch_answers_alike(seed):
    data = dependent(seed, rows=200, features=6)
    found = learn_circuit(data, edge_price=0.1)
    compiled = compile_circuit(found.net)
    generator = np.random.default_rng(seed)
    rows = np.where(generator.random((40, 6)) < 0.5, -1, data.X[:40])
    np.testing.assert_allclose(log_evidence(found.circuit, rows), log_evidence(compiled, rows), atol=1e-10)


def test_limits_and_resuming():
    data = dependent(7, rows=400, features=8, binary=True)
    whole = learn_circuit(data, edge_price=0.05)
    small = learn_circuit(data, edge_price=0.05, max_edges=whole.circuit.n_edges // 2)
    assert small.circuit.n_edges <= whole.circuit.n_edges // 2
    assert whole.complete
    assert not small.complete
    assert len(small.splits) < len(whole.splits)
    # Greedy depends on the circuit alone, so that it goes on as if nothing had happened; quick also remembers costs.
    greedy = learn_circuit(data, edge_price=0.05, method="greedy")
    resumed = learn_circuit(data, edge_price=0.05, method="greedy", splits=greedy.splits[:5])
    assert resumed.splits.tolist() == greedy.splits.tolist()
    assert resumed.net == greedy.net
    assert resumed.circuit.n_edges == greedy.circuit.n_edges
    assert resumed.growth.score == pytest.approx(greedy.growth.score)
    again = learn_circuit(data, edge_price=0.05, splits=whole.splits)
    assert again.splits[: len(whole.splits)].tolist() == whole.splits.tolist()
    assert again.growth.score >= whole.growth.score


def test_pools_grow_and_are_cleaned():
    """Many splits from tiny pools: what is dead is thrown away, and nothing changes."""
    data = dependent(11, rows=2000, features=9, binary=True)
    found = learn_circuit(data, edge_price=0.0, parameter_price=0.5)
    rows = data.X[:40]
    assert found.circuit.n_edges > 2000
    wanted = [oracle.log_joint(found.net, row) for row in rows.tolist()]
    np.testing.assert_allclose(log_evidence(found.circuit, rows), wanted, atol=1e-9)


def test_an_interrupt_returns_the_circuit_so_far():
    data = dependent(12, rows=3000, features=12, binary=True)
    seen = []

    def report(growth):
        seen.append(growth)
        os.kill(os.getpid(), signal.SIGINT)

    found = learn_circuit(data, edge_price=0.001, method="greedy", report=report)
    assert len(seen) == 1
    assert not found.complete
    assert found.circuit.n_edges == seen[0].edges


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"edge_price": -0.1}, "edge_price"),
        ({"parameter_price": float("nan")}, "parameter_price"),
        ({"smoothing": 0.0}, "smoothing"),
        ({"method": "fast"}, "quick"),
        ({"max_edges": 0}, "max_edges"),
        ({"seconds": 0}, "seconds"),
        ({"splits": [[0, 0]]}, "splits"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(TinybayesError, match=words):
        learn_circuit(dependent(0), **options)


def test_bad_data():
    data = dependent(0)
    with pytest.raises(TinybayesError, match="at least one row"):
        learn_circuit(data.rows(slice(0, 0)))
    X = data.X.copy()
    X[3, 1] = -1
    with pytest.raises(TinybayesError, match="missing"):
        learn_circuit(Dataset(data.variables, None, X))
    wide = Dataset((Variable("w", tuple(range(80))),), None, np.arange(80)[:, None])
    with pytest.raises(TinybayesError, match="states"):
        learn_circuit(wide)


def test_constant_and_single_variables():
    data = Dataset((Variable("c", (0,)), Variable("b", (0, 1))), None, np.array([[0, 0], [0, 1], [0, 1]]))
    found = learn_circuit(data, edge_price=0.1)
    assert evaluate(found.circuit, [-1, -1]) == pytest.approx(1.0)
    alone = Dataset((Variable("b", (0, 1)),), None, np.array([[0], [1], [1]]))
    assert evaluate(learn_circuit(alone).circuit, [1]) == pytest.approx(2.5 / 4)


@pytest.mark.parametrize(
    ("method", "edges", "splits", "likelihood"), [("quick", 8032, 471, -6.0320), ("greedy", 8611, 512, -6.0321)]
)
def test_nltcs_is_learned_as_the_reference_does(data_dir, method, edges, splits, likelihood):
    """The figures of the authors' own toolkit (it counts the start as one more split)."""
    from tinybayes import datasets

    split = datasets.load("nltcs")
    found = learn_circuit(split.train, edge_price=0.1, method=method)
    assert (found.circuit.n_edges, len(found.splits)) == (edges, splits)
    assert log_evidence(found.circuit, split.test.X).mean() == pytest.approx(likelihood, abs=1e-4)
