import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_compile_circuit import some_net

import oracle
import zoo
from cases import whole
from tinybayes._kernels.circuits_log import rows_log
from tinybayes.errors import TinybayesError
from tinybayes.infer import (
    compile_circuit,
    conditional,
    expected_counts,
    is_decomposable,
    is_deterministic,
    is_smooth,
    log_evidence,
    most_probable,
    posteriors,
    sample,
)
from tinybayes.infer.circuit_passes import plan_of
from tinybayes.model import BayesNet, Circuit, Float, Variable
from tinybayes.model.circuit import INDICATOR, PRODUCT, SUM


def some_rows(rng, rows, logs, count):
    """Evidence that is possible: parts of possible assignments."""
    possible = rows[logs > -math.inf]
    chosen = possible[rng.integers(len(possible), size=count)]
    return np.where(rng.random(chosen.shape) < 0.5, chosen, -1)


def enumerated(net, rows, logs, evidence):
    """Log-probability of evidence and the posterior of every state, by enumeration."""
    agree = oracle.agreeing(rows, evidence)
    log = oracle.log_sum(logs[agree])
    weights = np.exp(logs[agree] - log)
    states = [(v, s) for v, node in enumerate(net.nodes) for s in range(node.cardinality)]
    return log, [weights[rows[agree][:, v] == s].sum() for v, s in states]


@given(st.integers(0, 10**6), st.sampled_from([1, 3, 5, 17, 40]))
def test_evidence_marginals_and_explanations_are_those_of_enumeration(seed, count):
    net = some_net(seed, zeros=0.2)
    rng = np.random.default_rng(seed)
    rows, logs = oracle.joint(net)
    if logs.max() == -math.inf:
        return
    circuit = compile_circuit(net)
    X = some_rows(rng, rows, logs, count)
    found, posterior = log_evidence(circuit, X), posteriors(circuit, X)
    best, log_best = most_probable(circuit, X)
    for r in range(count):
        log, want = enumerated(net, rows, logs, X[r])
        assert found[r] == pytest.approx(log, abs=1e-11)
        np.testing.assert_allclose(posterior[r], want, atol=1e-12)
        assert log_best[r] == pytest.approx(logs[oracle.agreeing(rows, X[r])].max(), abs=1e-11)
        assert oracle.agreeing(best[r : r + 1], X[r]).all()
        assert oracle.log_joint(net, best[r].tolist()) == pytest.approx(log_best[r], abs=1e-11)


@given(st.integers(0, 10**6))
def test_conditional_probabilities_are_those_of_enumeration(seed):
    net = some_net(seed, zeros=0.1)
    rng = np.random.default_rng(seed)
    rows, logs = oracle.joint(net)
    if logs.max() == -math.inf:
        return
    circuit = compile_circuit(net)
    evidence = some_rows(rng, rows, logs, 6)
    query = np.where(rng.random(evidence.shape) < 0.5, rows[rng.integers(len(rows), size=6)], -1)
    found, found_log = conditional(circuit, query, evidence), conditional(circuit, query, evidence, log=True)
    for r in range(6):
        both = oracle.agreeing(rows, evidence[r]) & oracle.agreeing(rows, query[r])
        want = math.exp(oracle.log_sum(logs[both]) - oracle.log_sum(logs[oracle.agreeing(rows, evidence[r])]))
        assert found[r] == pytest.approx(want, abs=1e-12)
        assert math.exp(found_log[r]) == pytest.approx(want, abs=1e-12)


@given(st.integers(0, 10**6))
def test_expected_counts_are_those_of_enumeration(seed):
    net = some_net(seed, zeros=0.1)
    rng = np.random.default_rng(seed)
    rows, logs = oracle.joint(net)
    if logs.max() == -math.inf:
        return
    X, weight = some_rows(rng, rows, logs, 20), rng.random(20)
    found = expected_counts(compile_circuit(net, share_equal=False), X, weight)
    want = [np.zeros(cpd.table.shape) for cpd in net.cpds]
    for r in range(20):
        agree = oracle.agreeing(rows, X[r])
        for row, part in zip(rows[agree].tolist(), np.exp(logs[agree] - oracle.log_sum(logs[agree])), strict=True):
            for node, cpd in enumerate(net.cpds):
                values = {p: row[p] for p in cpd.parents}
                line = 0
                for p in cpd.parents:
                    line = line * net.nodes[p].cardinality + row[p]
                want[node][cpd.tree.find(values) if cpd.tree else line, row[node]] += weight[r] * part
    np.testing.assert_allclose(found, np.concatenate([table.reshape(-1) for table in want]), atol=1e-11)


def test_a_shared_parameter_has_the_counts_of_all_it_stands_for():
    net = zoo.sprinkler()
    X = np.array([[-1, -1, 1], [0, 1, -1], [1, -1, -1]])
    shared, own = expected_counts(compile_circuit(net), X), expected_counts(compile_circuit(net, share_equal=False), X)
    assert shared[2] == pytest.approx(own[2] + own[3])  # both are 1/2
    assert shared[10] == pytest.approx(own[10] + own[11])


def test_the_hand_worked_circuit_node_by_node():
    circuit = zoo.hand_circuit()
    assert oracle.circuit_value(circuit, [-1, -1])[7:] == [1 / 2, 1 / 2, 1, 1, 1 / 2, 1 / 4, 3 / 4, 1]
    assert oracle.circuit_value(circuit, [1, -1])[7:] == [0, 1 / 2, 1, 1 / 2, 1 / 2, 1 / 4, 3 / 8, 5 / 8]
    assert oracle.circuit_value(circuit, [0, -1])[7:] == [1 / 2, 0, 0, 1 / 2, 0, 0, 3 / 8, 3 / 8]
    X = np.array([[-1, -1], [1, -1], [0, -1], [-1, 0], [0, 0]])
    assert np.exp(log_evidence(circuit, X)).tolist() == pytest.approx([1, 5 / 8, 3 / 8, 1 / 4, 0])
    assert posteriors(circuit, X[:2]).tolist() == [
        pytest.approx([3 / 8, 5 / 8, 1 / 4, 3 / 4]),
        pytest.approx([0, 1, 2 / 5, 3 / 5]),
    ]
    assert most_probable(circuit, X[1:2])[0].tolist() == [[1, 1]]
    assert expected_counts(circuit, X[:1]).tolist() == pytest.approx([1 / 4, 3 / 4, 3 / 4])
    assert log_evidence(circuit, X[:, :1])[1] == pytest.approx(math.log(5 / 8))  # without a column of the class


def test_impossible_evidence_is_minus_infinity_or_an_error_and_never_nan():
    circuit = compile_circuit(zoo.sprinkler())
    wet_without_water = np.array([[0, 0, 1]])
    for rows in (
        wet_without_water,
        np.repeat(wet_without_water, 20, axis=0),
        np.repeat(wet_without_water, 200, axis=0),
    ):
        assert (log_evidence(circuit, rows) == -math.inf).all()
        for query in (posteriors, most_probable, expected_counts):
            with pytest.raises(TinybayesError, match="row 0: expected evidence with a probability above zero"):
                query(circuit, rows)
        with pytest.raises(TinybayesError, match="probability above zero"):
            conditional(circuit, rows, rows)
    with pytest.raises(TinybayesError, match="probability above zero"):
        sample(circuit, 1, 0, wet_without_water[0])
    assert conditional(circuit, np.array([[1, -1, -1]]), np.array([[0, -1, -1]])).tolist() == [0.0]


def test_samples_have_the_frequencies_of_the_distribution():
    net = zoo.random_net(np.random.default_rng(8), 3, formats=(Float(64),))
    circuit = compile_circuit(net)
    rows, logs = oracle.joint(net)
    evidence = np.full(4, -1)
    for known in (evidence, np.where(np.arange(4) == 1, rows[int(np.argmax(logs))], -1)):
        drawn = sample(circuit, 20_000, 3, known)
        agree = oracle.agreeing(rows, known)
        p = np.where(agree, np.exp(logs - oracle.log_sum(logs[agree])), 0)
        counts = np.array([(drawn == row).all(axis=1).sum() for row in rows])
        assert counts.sum() == 20_000
        assert (counts[p == 0] == 0).all()
        assert (np.abs(counts - 20_000 * p) < 5 * np.sqrt(20_000 * p * (1 - p)) + 1).all()
    np.testing.assert_array_equal(sample(circuit, 50, 7), sample(circuit, 50, 7))
    assert (sample(circuit, 50, 7) != sample(circuit, 50, 8)).any()
    assert sample(circuit, 0, 1).shape == (0, 4)


@given(st.integers(0, 10**6))
def test_log_space_and_linear_space_agree(seed):
    net = some_net(seed, zeros=0.1)
    rows, logs = oracle.joint(net)
    if logs.max() == -math.inf:
        return
    circuit = compile_circuit(net)
    X = some_rows(np.random.default_rng(seed), rows, logs, 9).astype(np.int32)
    plan = plan_of(circuit)
    log, posterior, flow = np.empty(9), np.empty((9, int(circuit.first_state[-1]))), np.zeros(len(plan.coefficient))
    rows_log(plan, X, log, posterior, np.ones(9), flow)
    np.testing.assert_allclose(log_evidence(circuit, X), log, atol=1e-11)
    np.testing.assert_allclose(posteriors(circuit, X), posterior, atol=1e-12)


def test_rows_beyond_the_range_of_doubles_fall_back_to_log_space():
    """A chain of 4,000 variables that all copy the first: far from what independent variables would have."""
    n, rng = 3000, np.random.default_rng(0)
    flip = [[1 - 1e-3, 1e-3], [1e-3, 1 - 1e-3]]
    variables = tuple(Variable(f"v{i}", (0, 1)) for i in range(n))
    net = BayesNet(variables, None, (zoo.cpd([0.5, 0.5]), *(zoo.cpd(flip, [i]) for i in range(n - 1))))
    circuit = compile_circuit(net)
    rows = np.array([np.zeros(n), np.arange(n) % 2, rng.integers(0, 2, n)], dtype=int)
    want = [oracle.log_joint(net, row) for row in rows.tolist()]
    assert min(want) < -10_000
    np.testing.assert_allclose(log_evidence(circuit, rows), want, rtol=1e-12)
    np.testing.assert_allclose(log_evidence(circuit, np.tile(rows, (6, 1))), np.tile(want, 6), rtol=1e-12)
    hidden = rows.copy()
    hidden[:, 1] = -1  # between its neighbours, which agree, or differ
    for found in (posteriors(circuit, hidden), posteriors(circuit, np.tile(hidden, (6, 1)))[6:9]):
        for r, row in enumerate(rows):
            both = [flip[row[0]][s] * flip[s][row[2]] for s in (0, 1)]
            np.testing.assert_allclose(found[r, 2:4], np.array(both) / sum(both), rtol=1e-9)


def entries_of(plan, flow, circuit):
    """What flows through the terms, by entry of the circuit's table."""
    terms = np.repeat(np.arange(len(flow)), np.diff(plan.first_entry))
    return np.bincount(plan.entry, flow[terms], len(circuit.table))


@cache
def long_chain(n, flip):
    variables = tuple(Variable(f"v{i}", (0, 1)) for i in range(n))
    table = [[1 - flip, flip], [flip, 1 - flip]]
    return compile_circuit(
        BayesNet(variables, None, (zoo.cpd([0.5, 0.5]), *(zoo.cpd(table, [i]) for i in range(n - 1))))
    )


@pytest.mark.parametrize("case", [(200, 2), *whole((20, 1), (200, 1), (600, 2))])
def test_long_rows_that_drift_alike_need_log_space_only_for_some_of_them(monkeypatch, case):
    count, kinds = case
    n, flip, rng = 3000, 0.1, np.random.default_rng(0)
    circuit = long_chain(n, flip)
    rows = (rng.integers(0, 2, (count, 1)) + (rng.random((count, n)) < flip).cumsum(axis=1)) % 2
    rows[1::kinds] = (rows[1::kinds] + np.arange(n)) % 2 if kinds > 1 else rows[1::kinds]  # as unlikely as those likely
    rows = np.where(rng.random(rows.shape) < 0.02, -1, rows).astype(np.int32)
    plan = plan_of(circuit)
    log, posterior, flow = np.empty(count), np.empty((count, 2 * n)), np.zeros(len(plan.coefficient))
    rows_log(plan, rows, log, posterior, np.ones(count), flow)
    assert np.abs(log + n * math.log(2)).min() > 600  # what the scales of the plan do not make up for
    asked = []

    def counted(plan, X, *rest):
        asked.append(len(X))
        rows_log(plan, X, *rest)

    monkeypatch.setattr("tinybayes.infer.circuit_passes.rows_log", counted)
    np.testing.assert_allclose(log_evidence(circuit, rows), log, rtol=1e-12)
    assert 0 < sum(asked) <= (16 * kinds if count > 64 else count)
    np.testing.assert_allclose(posteriors(circuit, rows), posterior, atol=1e-10)
    np.testing.assert_allclose(expected_counts(circuit, rows), entries_of(plan, flow, circuit), rtol=1e-9)
    assert sum(asked) <= (48 * kinds if count > 64 else 3 * count)


def dipping(n, unlikely, likely, begin):
    """Evidence whose first part is too unlikely for a double, which the rest makes up for."""
    row = np.full(n, -1)
    change = np.arange(unlikely) % 2
    row[begin : begin + unlikely] = change
    row[begin + unlikely : begin + unlikely + likely] = change[-1]
    return row


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("count", [1, 70])  # few rows, and enough to look for other scales
def test_values_that_are_too_small_on_the_way_are_not_lost(mirrored, count):
    n = 3000
    circuit = long_chain(n, 0.1)
    X = np.array([dipping(n, u, int(2.74 * u), 50) for u in range(420, 490)], dtype=np.int32)
    X = np.ascontiguousarray(X[:, ::-1] if mirrored else X)
    plan = plan_of(circuit)
    log, posterior, flow = np.empty(len(X)), np.empty((len(X), 2 * n)), np.zeros(len(plan.coefficient))
    rows_log(plan, X, log, posterior, np.ones(len(X)), flow)
    parts = [X] if count > 1 else X[:, None]  # together, or one by one
    found = np.concatenate([log_evidence(circuit, part) for part in parts])
    np.testing.assert_allclose(found, log, rtol=1e-12)
    found = np.concatenate([posteriors(circuit, part) for part in parts])
    np.testing.assert_allclose(found, posterior, atol=1e-9)
    np.testing.assert_allclose(expected_counts(circuit, X), entries_of(plan, flow, circuit), rtol=1e-7, atol=1e-9)


@pytest.mark.exhaustive
def test_a_class_whose_value_was_lost_is_not_taken_for_impossible():
    """Under one class neighbours agree, under the other they are independent: the evidence is as likely in both."""
    n, flip = 3200, 0.1
    agree = [[1 - flip, flip], [flip, 1 - flip]]
    both = np.array([[agree[a] if c == 0 else [0.5, 0.5] for c in (0, 1)] for a in (0, 1)])  # by parent, then class
    variables = tuple(Variable(f"v{i}", (0, 1)) for i in range(n))
    cpds = [zoo.cpd([[0.5, 0.5]] * 2, [n]), *(zoo.cpd(both.reshape(4, 2), [i, n]) for i in range(n - 1))]
    net = BayesNet(variables, Variable("c", (0, 1)), (*cpds, zoo.cpd([0.5, 0.5])))
    circuit = compile_circuit(net)
    row = dipping(n, 800, 2180, 0)
    log_odds = 799 * math.log(flip / 0.5) + 2180 * math.log((1 - flip) / 0.5)
    want = 1 / (1 + math.exp(-log_odds))
    assert 1e-20 < want < 1 - 1e-9
    for features, rows in itertools.product((row, row[::-1]), (1, 100)):
        evidence = np.tile(np.append(features, -1), (rows, 1))
        assert posteriors(circuit, evidence)[-1, -2] == pytest.approx(want, rel=1e-6)


def circuit_of(kind, below, leaf, states=(2, 2), parameters=(0.5,)):
    variables = tuple(Variable(f"v{i}", tuple(range(k))) for i, k in enumerate(states))
    offsets, children = np.cumsum([0, *map(len, below)]), np.array([c for some in below for c in some], dtype=int)
    return Circuit(variables, None, np.array(kind), offsets, children, np.array(leaf), np.log(parameters), Float(64))


def test_circuits_without_a_property_are_told_where_and_refused():
    # Indicators of two binary variables are nodes 0 to 3.
    leaves = {"kind": [1, 1, 1, 1], "below": [[], [], [], []], "leaf": [0, 1, 2, 3]}

    def with_nodes(*nodes):
        kinds, below = [kind for kind, _ in nodes], [children for _, children in nodes]
        return circuit_of(leaves["kind"] + kinds, leaves["below"] + below, leaves["leaf"] + [-1] * len(nodes))

    rough = with_nodes((3, [0, 2]), (2, [4, 1]))
    assert is_decomposable(rough)
    assert is_deterministic(rough)
    assert not is_smooth(rough)
    assert is_smooth(rough).node == 5
    tangled = with_nodes((2, [0, 1]), (3, [4, 0]))
    assert is_smooth(tangled)
    assert not is_decomposable(tangled)
    assert is_decomposable(tangled).node == 5
    vague = with_nodes((2, [0, 1]), (3, [0, 2]), (3, [4, 3]), (3, [4, 2]), (2, [5, 6, 7]))
    assert is_smooth(vague)
    assert is_decomposable(vague)
    assert not is_deterministic(vague)  # nodes 5 and 7 both allow v0=0, v1=0
    assert is_deterministic(vague).node == 8
    for circuit, word in ((rough, "smooth"), (tangled, "decomposable")):
        with pytest.raises(TinybayesError, match=f"expected a {word} circuit, got node 5"):
            log_evidence(circuit, np.array([[0, 0]]))
    with pytest.raises(TinybayesError, match="expected a deterministic circuit, got node 8"):
        most_probable(vague, np.array([[0, 0]]))
    assert log_evidence(vague, np.array([[0, 0]]))[0] == pytest.approx(math.log(2))


def test_variables_with_more_states_than_a_word_has_bits():
    states = 150
    rng = np.random.default_rng(0)
    net = BayesNet(
        (Variable("a", tuple(range(states))), Variable("b", (0, 1))),
        None,
        (zoo.cpd(rng.dirichlet(np.ones(states))), zoo.cpd(rng.dirichlet([1, 1], states), [0])),
    )
    circuit = compile_circuit(net)
    assert is_deterministic(circuit)
    p = np.exp(net.cpds[0].log_parameters[0]) * np.exp(net.cpds[1].log_parameters[:, 1])
    np.testing.assert_allclose(posteriors(circuit, np.array([[-1, 1]]))[0, :states], p / p.sum(), rtol=1e-12)


@pytest.mark.parametrize("X", [[0, 1, 1], [[0, 1]], [[0, 1, 2]], [[0, 1, -2]], [[0.0, 1.0, 1.0]]])
def test_wrong_evidence_is_refused(X):
    with pytest.raises(TinybayesError, match=r"evidence.*: expected"):
        log_evidence(compile_circuit(zoo.sprinkler()), np.array(X))


def test_no_rows_give_no_answers():
    circuit = compile_circuit(zoo.sprinkler())
    nothing = np.empty((0, 3), dtype=int)
    assert log_evidence(circuit, nothing).shape == (0,)
    assert posteriors(circuit, nothing).shape == (0, 6)
    assert expected_counts(circuit, nothing).tolist() == [0.0] * 14


TRUTH = ["fs-04", "students_03_02-0000", *whole("mastermind1", "90-20-1")]


@pytest.mark.parametrize("name", TRUTH)
def test_real_networks_agree_with_the_exact_results(data_dir, name):
    from tinybayes.deploy import load
    from tinybayes.deploy.files.uai import read_evidence

    net = load(data_dir / "networks" / f"{name}.uai")
    circuit = compile_circuit(net)
    cases = sorted((data_dir / "networks" / "truth").glob(f"{name}.*.evid"))
    assert cases
    for case in cases:
        row = np.full((1, len(net.nodes)), -1)
        for variable, state in read_evidence(case)[0].items():
            row[0, variable] = state
        log10 = float(case.with_suffix(".PR").read_text().split()[1])
        assert log_evidence(circuit, row)[0] / math.log(10) == pytest.approx(log10, abs=1e-9)
        words = case.with_suffix(".MAR").read_text().split()[2:]
        want = []
        while words:
            states = int(words[0])
            want += [float(word) for word in words[1 : 1 + states]]
            words = words[1 + states :]
        np.testing.assert_allclose(posteriors(circuit, row)[0], want, atol=1e-9)


def test_the_queries_are_found_on_the_circuit():
    circuit = compile_circuit(zoo.sprinkler())
    X, query = np.array([[-1, -1, 1], [1, -1, -1]]), np.array([[1, -1, -1], [-1, 1, -1]])
    np.testing.assert_array_equal(circuit.log_likelihood(X), log_evidence(circuit, X))
    np.testing.assert_array_equal(np.concatenate(circuit.marginals(X).probabilities, axis=1), posteriors(circuit, X))
    np.testing.assert_array_equal(circuit.conditional(query, X, log=True), conditional(circuit, query, X, log=True))
    for found, want in zip(circuit.most_probable(X), most_probable(circuit, X), strict=True):
        np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(circuit.sample(5, 3, X[0]), sample(circuit, 5, 3, X[0]))


def test_pairs_are_compared_where_no_variable_tells_all_children_apart(monkeypatch):
    """Children x0 y0, x0 y1, x1: each pair differs in x or in y. Without the first y it does not."""
    kind = np.array([INDICATOR] * 4 + [PRODUCT, PRODUCT, SUM])

    def made(first):
        children = np.array([0, first, 0, 3, 4, 5, 1])
        offsets = np.array([0, 0, 0, 0, 0, 2, 4, 7])
        two, leaf = (Variable("x", "ab"), Variable("y", "ab")), np.array([0, 1, 2, 3, -1, -1, -1])
        return Circuit(two, None, kind, offsets, children, leaf, np.zeros(0, np.float32), Float(32))

    monkeypatch.setattr("tinybayes.infer.circuit_properties.MAX_PAIRS", 3)
    assert is_deterministic(made(2))
    assert not is_deterministic(made(3))
    monkeypatch.setattr("tinybayes.infer.circuit_properties.MAX_PAIRS", 2)
    with pytest.raises(TinybayesError, match="at most 2 pairs of children, got 3"):
        is_deterministic(made(2))
