"""The quick ways are taken where they can be: slower ones give the same answers, so that no answer tells."""

import math

import numpy as np
import pytest

import zoo
from density_host import random_latent
from tinybayes import BayesNet, LogLinear, Variable, compile_circuit
from tinybayes.infer import (
    circuit_passes,
    estimate_width,
    expected_counts,
    inference_costs,
    log_evidence,
    log_z,
    marginals,
    most_probable,
)
from tinybayes.infer.circuit import evidence_and_posteriors
from tinybayes.infer.circuit_passes import ExpectedCounts, plan_of
from tinybayes.infer.join import limits, messages
from tinybayes.infer.join import solve as join_solve
from tinybayes.infer.join.plan import make_plan
from tinybayes.infer.join.reduce import reduce
from tinybayes.infer.join.solve import prepare, solve
from tinybayes.infer.sampling.problem import as_log_linear, restrict
from tinybayes.model import Factor


def unlikely():
    """A network whose parameters are products of e^-800: coefficients are scaled."""
    variables = tuple(Variable(name, (0, 1)) for name in "xyz")
    factors = (Factor((0,), np.array([0, 1])), Factor((0, 1), np.arange(2, 6)), Factor((1, 2), np.arange(6, 10)))
    weights = np.array([-800.0, -801.0, -0.1, -2.0, -1.0, -0.4, -900.0, -901.0, -902.0, -900.5])
    return LogLinear(variables, factors, weights)


MODELS = {
    "network": lambda: compile_circuit(zoo.random_net(np.random.default_rng(3), 6, trees=True)),
    "latent": lambda: random_latent(tuple(Variable(f"v{i}", (0, 1, 2)) for i in range(12)), 4),
    "scaled": lambda: compile_circuit(unlikely()),
}


def refuse(*_):
    raise AssertionError("a pass in log space")


@pytest.mark.parametrize("rows", [1, 4, 5, 100, 700])
@pytest.mark.parametrize("name", MODELS)
def test_no_row_is_passed_in_log_space_without_need(name, rows, monkeypatch):
    circuit = MODELS[name]()
    rng = np.random.default_rng(rows)
    X = rng.integers(0, circuit.cardinalities, (rows, len(circuit.nodes)))
    X = np.where(rng.random(X.shape) < 0.5, -1, X).astype(np.int32)
    with monkeypatch.context() as patched:
        patched.setattr(circuit_passes, "one_row", lambda *_: np.nan)
        patched.setattr(circuit_passes, "_scale_for", lambda *_: None)
        patched.setattr(circuit_passes, "many_rows", lambda *_: None)
        logs, posterior = evidence_and_posteriors(circuit, X)  # in log space, all of them
    plan_of(circuit)
    monkeypatch.setattr(circuit_passes, "rows_log", refuse)
    found, states = evidence_and_posteriors(circuit, X)
    possible = logs > -np.inf
    np.testing.assert_allclose(found[possible], logs[possible], rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(states[possible], posterior[possible], atol=1e-12)
    if rows > 4 and name != "network":
        assert expected_counts(circuit, X).sum() > 0


def test_counts_under_ordinary_weights_are_not_taken_in_log_space(monkeypatch):
    model = LogLinear.from_bayes_net(zoo.sprinkler())
    counts = ExpectedCounts(compile_circuit(model, share_equal=False))
    in_logs = counts._in_logs(model.weights)
    monkeypatch.setattr(ExpectedCounts, "_in_logs", None)
    log, found = counts(model.weights)
    assert log == pytest.approx(in_logs[0], abs=1e-12)
    np.testing.assert_allclose(found, in_logs[1], atol=1e-12)


def chain(length):
    """Bits, each the parent of the next."""
    rng = np.random.default_rng(length)
    cpds = [zoo.cpd([0.3, 0.7])]
    cpds += [zoo.cpd(rng.dirichlet([1, 1], 2), [v]) for v in range(length - 1)]
    return BayesNet(tuple(Variable(f"v{v}", (0, 1)) for v in range(length)), None, tuple(cpds))


def test_what_is_below_the_wanted_variables_is_removed_and_they_are_not():
    problem = restrict(as_log_linear(chain(6)), {})
    for wanted, left in (((), ()), ((0,), (0,)), ((2,), (0, 1, 2)), ((5,), tuple(range(6))), ((0, 2), (0, 1, 2))):
        found = reduce(problem, wanted)
        assert found.kept == left
        assert len(found.tables.scopes) == len(left)
        assert found.constant == pytest.approx(problem.constant, abs=1e-6)
    assert reduce(problem, (), [(1, 3)]).kept == (0, 1, 2, 3)
    assert reduce(problem, None).kept == tuple(range(6))
    # What no factor says anything about is in a table of its own.
    alone = LogLinear((Variable("a", (0, 1)), Variable("b", (0, 1, 2))), (Factor((0,), np.arange(2)),), np.zeros(2))
    assert {v for scope in reduce(restrict(alone, {}), None).tables.scopes for v in scope} == {0, 1}
    assert log_z(alone) == pytest.approx(math.log(6))


def test_observed_below_a_variable_keeps_it_and_a_branch_that_nobody_asks_about_goes():
    """Of v0 -> v1 and v0 -> v2 -> v3 with v3 observed, v1 alone is barren, whichever comes first."""
    rng = np.random.default_rng(1)
    for first, second in ((1, 2), (2, 1)):
        tables = {first: (0,), second: (0,), 3: (2,)}
        cpds = [zoo.cpd([0.4, 0.6]), *(zoo.cpd(rng.dirichlet([1, 1], 2), list(tables[v])) for v in (1, 2, 3))]
        net = BayesNet(tuple(Variable(f"v{v}", (0, 1)) for v in range(4)), None, tuple(cpds))
        problem = restrict(as_log_linear(net), {3: 1})
        assert [problem.free[v] for v in reduce(problem, ()).kept] == [0, 2]


def wide(count, tables, seed=0):
    """A clique of `count` variables of eight states, with several tables over all of them."""
    states, rng = 8**count, np.random.default_rng(seed)
    variables = tuple(Variable(f"v{v}", tuple(range(8))) for v in range(count))
    factors = tuple(Factor(tuple(range(count)), np.arange(k * states, (k + 1) * states)) for k in range(tables))
    weights = rng.normal(size=(tables, states))
    weights[:, : states // 8] -= 300.0  # v0 = 0: a product of 1e-390
    return variables, factors, weights


def test_an_underflow_in_one_part_of_a_large_table_is_noticed(monkeypatch):
    """States of v0 but the first are ruled out by a table that comes last, where products were too small."""
    variables, factors, weights = wide(4, 3)
    only = np.array([0.0, *[-np.inf] * 7])
    place = weights.size
    # The last table has a variable of its own beside v0, so that evidence alone does not reduce the others.
    last = np.concatenate([only, only])
    rule = Factor((0, 4), place + np.arange(16).reshape(2, 8).T.ravel())
    model = LogLinear((*variables, Variable("w", (0, 1))), (*factors, rule), np.concatenate([weights.ravel(), last]))
    exact = np.logaddexp.reduce(weights.sum(axis=0)[: 8**3]) + math.log(2)
    assert log_z(model) == pytest.approx(exact, rel=1e-12)
    monkeypatch.setattr(messages, "LARGE", 1)
    assert log_z(model) == pytest.approx(exact, rel=1e-12)
    found = marginals(model, method="join-tree")
    assert found["v0"].tolist() == [1.0] + [0.0] * 7


def test_estimates_of_memory_are_those_of_the_bound():
    net = zoo.random_net(np.random.default_rng(5), 6)
    circuit, tree, sampling = inference_costs(net)
    bound = estimate_width(net)
    assert circuit.bytes == 48 * bound.edges
    assert circuit.seconds == pytest.approx(1e-3 * len(bound.order) + 1.5e-7 * bound.edges)
    assert tree.seconds < 0.01 < 100 < tree.bytes
    compiled = compile_circuit(net)
    (passes,) = inference_costs(compiled)
    assert passes.bytes == 40 * compiled.n_edges
    assert sampling.bytes > 1000


def test_the_log_probability_of_an_approximate_completion_is_exact():
    circuit = MODELS["latent"]()
    X = np.full((3, len(circuit.nodes)), -1, np.int32)
    X[1, 0], X[2, 3] = 1, 2
    rows, logs = most_probable(circuit, X, approximate=True)
    assert (rows[X >= 0] == X[X >= 0]).all()
    assert (rows >= 0).all()
    np.testing.assert_allclose(logs, log_evidence(circuit, rows), rtol=1e-12)


def test_each_case_of_a_cutset_is_a_tree_of_its_own(monkeypatch):
    """What does not fit is not laid out all the same, and what fits is laid out once."""
    linear = as_log_linear(zoo.random_net(np.random.default_rng(8), 6))
    monkeypatch.setattr(limits, "COPIES", 0)
    whole = prepare(linear, {}, "posterior")
    few = prepare(linear, {}, "posterior", max_bytes=0.7 * whole.size.bytes, max_seconds=1e9)
    made = []
    monkeypatch.setattr(join_solve, "make_plan", lambda *given: made.append(make_plan(*given)) or made[-1])
    solve(whole)
    assert len(made) == 1
    solve(few)
    assert few.cut
    assert len(made) - 1 == few.size.cases
    assert max(plan.bytes for plan in made[1:]) < made[0].bytes
