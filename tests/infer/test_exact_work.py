"""How exact inference goes about its work: estimates worked out by hand, limits, and what parts and kernels get.

Most of these choices change how long an answer takes, and not the answer: comparing answers does not test them.
"""

import math

import numpy as np
import pytest

from tinybayes import CPD, BayesNet, Float, LogLinear, Variable
from tinybayes.errors import TinybayesError
from tinybayes.infer import circuit_passes, compile_circuit, inference_costs
from tinybayes.infer.circuit import log_partition
from tinybayes.infer.circuit_passes import ExpectedCounts, plan_of, share_of
from tinybayes.infer.elimination import _depths, estimate_width
from tinybayes.infer.join import limits, messages, rows
from tinybayes.infer.join import solve as solving
from tinybayes.infer.join.limits import AT_ONCE, Size, size_of
from tinybayes.infer.join.plan import make_plan
from tinybayes.infer.join.reduce import reduce
from tinybayes.infer.orders import MOST_STEPS, QUICK_STEPS, steps_worth
from tinybayes.infer.sampling.problem import restrict
from tinybayes.model import Circuit, DecisionTree, Factor
from tinybayes.model.circuit import INDICATOR, PARAMETER, PRODUCT, SUM

FLOAT = Float(64)


def binary(count):
    return tuple(Variable(f"x{v}", (0, 1)) for v in range(count))


def log_linear(cards, scopes, tables):
    """Return a model with these tables of logarithms."""
    variables = tuple(Variable(f"x{v}", tuple(range(card))) for v, card in enumerate(cards))
    starts = np.cumsum([0, *(np.size(table) for table in tables)])
    factors = tuple(Factor(s, np.arange(a, b)) for s, a, b in zip(scopes, starts, starts[1:], strict=False))
    return LogLinear(variables, factors, np.concatenate([np.reshape(table, -1) for table in tables]))


def dense_network(count, seed, cards=2):
    """Return a network in which every variable has all earlier ones as parents, without zeros or equal entries."""
    rng = np.random.default_rng(seed)
    variables = tuple(Variable(f"x{v}", tuple(range(cards))) for v in range(count))
    cpds = []
    for v in range(count):
        table = rng.dirichlet(np.ones(cards), cards**v)
        cpds.append(CPD(tuple(range(v)), np.log(table), FLOAT))
    return BayesNet(variables, None, tuple(cpds))


def test_the_price_of_a_circuit_is_that_of_its_edges():
    circuit = compile_circuit(dense_network(3, 0))
    (cost,) = inference_costs(circuit)
    assert (cost.bytes, cost.seconds) == (40 * circuit.n_edges, pytest.approx(5e-9 * circuit.n_edges))


def test_small_join_trees_are_priced_at_once():
    assert Size(3, AT_ONCE, 0, 10, 2.0).seconds == pytest.approx(5e-9 * 2**21 + 10 * 1.1e-6 + 1.6e-5)


def test_larger_join_trees_are_priced_by_entries_states_and_cliques(monkeypatch):
    monkeypatch.setattr(limits, "thread_count", lambda: 8)
    one_core = 1e-9 * (3 + 28 / 4) * 3e6 + 3e-5 * 10 + 3e-4
    assert Size(3, 3e6, 0, 10, 4.0).seconds == pytest.approx(one_core)
    assert Size(3, 3e6, 0, 10, 4.0, cases=6).seconds == pytest.approx(6 * one_core)
    assert Size(3, 6e6, 0, 10, 4.0).seconds == pytest.approx(1e-9 * (3 + 28 / 4) * 6e6 / 2 + 3e-5 * 10 + 3e-4)


def test_the_size_of_an_order_by_hand():
    """Cliques of 20 * 30 * 40 and 30 * 40 * 2 assignments, and their rests; only these two are worth a product."""
    scopes, cards, order = [(0, 1, 2), (1, 2, 3)], (20, 30, 40, 2), (0, 3, 1, 2)
    size = size_of(scopes, cards, order)
    cliques = [24_000, 2_400, 1_200, 40]
    assert (size.width, size.entries, size.cliques) == (2, sum(cliques), 4)
    assert size.states == pytest.approx(24_000 ** (1 / 3))
    separators = [1200, 1200, 40, 1]
    # Into the clique of the third variable come both messages; all but the last clique are worth multiplying first.
    entries = sum(separators) + 26_400 + (24_000 + 2_400 + 1_200) / 8 + 2_400 + messages.COPIES
    assert size.bytes == 8 * entries
    assert size_of([], (), ()).bytes == 8 * messages.COPIES


def test_variables_without_edges_have_width_zero():
    net = BayesNet(binary(2), None, tuple(CPD((), np.log([[0.4, 0.6]]), FLOAT) for _ in range(2)))
    assert estimate_width(net).treewidth == 0


def test_how_deep_trees_test_variables():
    """A tree tests x0, below it x1, and below that x2; x3 has no tree."""
    tree = DecisionTree([0, 1, -1, 2, -1, -1, -1], [0, 2, 0, 4, 0, 0, 0], [1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 1, 2, 3])
    half = np.log([[0.5, 0.5]])
    cpds = [CPD((), half, FLOAT) for _ in range(3)]
    table = np.log([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6]])
    net = BayesNet(binary(4), None, (*cpds, CPD((0, 1, 2), table, FLOAT, tree)))
    assert _depths(net).tolist() == [1, 2, 3, 0]


def test_a_search_for_orders_is_short_where_there_is_no_hope():
    assert steps_worth([tuple(range(60))], [2] * 60) == QUICK_STEPS
    assert steps_worth([(0, 1)], [2, 2]) == MOST_STEPS


def test_a_circuit_may_have_just_as_many_edges_as_the_limit():
    """Without zeros and equal entries it is known beforehand how many there will be, before products are merged."""
    net = dense_network(4, 0)
    assert estimate_width(net, "min-fill").edges > 146
    assert compile_circuit(net, order="min-fill", max_edges=146).n_edges == 118
    with pytest.raises(TinybayesError, match="at least 146"):
        compile_circuit(net, order="min-fill", max_edges=145)


def test_what_is_near_zero_is_not_taken_for_rounding():
    model = log_linear((2,), [(0,)], [np.log([0.6, 0.7])])
    assert log_partition(compile_circuit(model)) == pytest.approx(math.log(1.3), rel=1e-12)


def test_threads_take_whole_blocks_of_rows(monkeypatch):
    monkeypatch.setattr(circuit_passes, "thread_count", lambda: 4)
    share = share_of(100_000)
    assert share % circuit_passes.ROWS == 0
    assert 12 < -(-100_000 // share) <= 16
    monkeypatch.setattr(circuit_passes, "thread_count", lambda: 1)
    assert share_of(100_000) >= 100_000


def skewed_chain(length):
    """Return a network whose variables are mostly in their rare states together: 1 of even ones, 0 of odd ones."""
    tables = [np.log([[0.9, 0.1]])]
    for v in range(1, length):
        table = np.array([[0.99, 0.01], [0.09, 0.91]])
        table = table[:, ::-1] if v % 2 else table[::-1]  # the states of an odd variable change their places
        tables.append(np.log(table))
    return BayesNet(binary(length), None, tuple(CPD((v - 1,) if v else (), t, FLOAT) for v, t in enumerate(tables)))


@pytest.mark.parametrize(("every", "within"), [(0, 1), (5, 70)])
def test_other_scales_bring_rows_near_one(every, within):
    """Rows of rare states are far more probable than the scales of single variables make up for."""
    circuit = compile_circuit(skewed_chain(300))
    plan = plan_of(circuit)
    X = np.zeros((64, 300), dtype=np.int32)
    X[:, ::2] = 1
    if every:
        X[:, ::every] = -1  # rounding then adds up
    logs = circuit_passes.pass_rows(circuit, X)[0]
    own, near, low = circuit_passes._scales(plan, X)
    assert own is plan.scale
    seen = X[0] >= 0
    states = (plan.first_state[:-1] + X[0])[seen]
    assert logs[0] / math.log(2) + np.log2(own[states]).sum() > 600
    for scale, aim in ((near, 0.0), (low, -580.0)):
        assert logs[0] / math.log(2) + np.log2(scale[states]).sum() == pytest.approx(aim, abs=within)


def test_circuits_too_large_for_blocks_of_rows_leave_nothing_to_log_space(monkeypatch):
    monkeypatch.setattr(circuit_passes, "_LARGE", 0)
    plan = plan_of(compile_circuit(skewed_chain(9)))
    X = np.tile(np.arange(9, dtype=np.int32) % 2, (40, 1))  # the usual states
    logs, posterior, empty = np.full(40, np.nan), np.empty((40, 18)), np.empty(0)
    circuit_passes._linear(plan, plan.scale)(X, logs, posterior, empty, empty)
    np.testing.assert_allclose(logs, math.log(0.9) + 8 * math.log(0.99), rtol=1e-12)
    np.testing.assert_allclose(posterior, np.tile([1.0, 0.0, 0.0, 1.0], (40, 5))[:, :18])


def test_rows_and_what_belongs_to_them_have_one_length_in_log_space(monkeypatch):
    """Kernels do not check bounds."""
    seen = []

    def checked(plan, X, logs, posterior, weight, flow):
        seen.append((len(X), len(logs), len(weight)))
        kernel(plan, X, logs, posterior, weight, flow)

    counts = ExpectedCounts(compile_circuit(log_linear((2, 3), [(0, 1)], [np.zeros(6)]), by="feature"))
    kernel = circuit_passes.rows_log
    monkeypatch.setattr(circuit_passes, "rows_log", checked)
    weights = np.log(np.arange(1.0, 7.0))
    total, found = counts(weights - 800)
    assert total == pytest.approx(math.log(21) - 800)
    np.testing.assert_allclose(found, np.exp(weights) / 21)
    assert seen == [(1, 1, 1)]


@pytest.mark.parametrize(("share", "watched"), [(0.7, False), (1.4, True)])
def test_parameters_beyond_the_integers_of_doubles_are_not_scaled(share, watched):
    """Two sums of 2**k and 2**-k: four numbers of k bits are added up, which doubles do exactly up to 2**53."""
    bits = share * 2.0**53 / 4
    log = bits * math.log(2)
    kind = [PARAMETER] * 4 + [INDICATOR] * 4 + [PRODUCT] * 4 + [SUM, SUM, PRODUCT]
    children = [0, 4, 1, 5, 2, 6, 3, 7, 8, 9, 10, 11, 12, 13]
    offsets = [0] * 9 + [2, 4, 6, 8, 10, 12, 14]
    payload = [0, 1, 2, 3, 0, 1, 2, 3] + [-1] * 7
    circuit = Circuit(binary(2), None, kind, offsets, children, payload, np.array([log, log, -log, -log]), FLOAT)
    plan = plan_of(circuit)
    assert plan.watched is watched
    assert np.isfinite(plan.coefficient).all() == (not watched)


def test_rows_that_observe_other_variables_have_orders_of_their_own(monkeypatch):
    monkeypatch.setattr(rows, "_PLENTY", 0)
    monkeypatch.setattr(rows, "_PLENTY_VARIABLE", 0)
    rng = np.random.default_rng(0)
    model = log_linear((2, 3, 2), [(0, 1), (1, 2)], [rng.normal(size=6), rng.normal(size=6)])
    X = np.array([[0, -1, -1], [-1, -1, 1], [1, -1, -1]])
    found = rows.answer(model, X)
    kept = rows._kept(model)
    assert set(kept.orders) == {(row >= 0).tobytes() for row in X}
    for row, posterior, log in zip(X, found.posterior, found.logs, strict=True):
        alone = rows.answer(model, row[None])
        np.testing.assert_allclose(posterior, alone.posterior[0], rtol=1e-13)
        assert log == pytest.approx(alone.logs[0], rel=1e-13)


def test_zeros_spread_what_a_row_observes():
    """Thirty variables that are all equal, in one clique: x0 alone decides all of them."""
    count = 30
    equal = np.log([[1.0, 0.0], [0.0, 1.0]], where=np.eye(2) > 0, out=np.full((2, 2), -np.inf))
    scopes = [(v, v + 1) for v in range(count - 1)] + [(u, v) for v in range(count) for u in range(v - 1)]
    rng = np.random.default_rng(0)
    tables = [equal] * (count - 1) + [rng.normal(size=(2, 2)) for _ in scopes[count - 1 :]]
    model = log_linear([2] * count, scopes, tables)
    X = np.full((1, count), -1)
    X[0, 0] = 1
    found = rows.answer(model, X)
    assert found.status.tolist() == [rows.DONE]
    assert found.logs[0] == pytest.approx(sum(table[1, 1] for table in tables))


def test_variables_that_are_not_barren_keep_no_other_from_going():
    """The distribution of x0 given x1: summing x1 out of it is no constant, summing x0 out of it is."""
    model = log_linear((2, 2), [(0, 1)], [np.log([[0.3, 0.8], [0.7, 0.2]])])
    found = reduce(restrict(model, {}), ())
    assert found.kept == (1,)
    assert found.constant == pytest.approx(0.0, abs=1e-12)


def test_conditioning_keeps_each_tree_small(monkeypatch):
    """Where memory does not suffice for one tree, none of those that take its place needs as much."""
    rng = np.random.default_rng(1)
    scopes = [(u, v) for v in range(8) for u in range(v)]
    model = log_linear([4] * 8, scopes, [rng.normal(size=(4, 4)) for _ in scopes])
    whole = solving.prepare(model, {}, "sum")
    limit = 8 * (messages.COPIES + 4**6)
    question = solving.prepare(model, {}, "sum", max_bytes=limit)
    assert question.cut
    plans = []

    def noted(*arguments):
        plans.append(make_plan(*arguments))
        return plans[-1]

    wanted = solving.solve(whole).log_z
    monkeypatch.setattr(solving, "make_plan", noted)
    assert solving.solve(question).log_z == pytest.approx(wanted, rel=1e-12)
    assert len(plans) == 4 ** len(question.cut)
    assert max(plan.bytes for plan in plans) + 8 * messages.COPIES <= limit
