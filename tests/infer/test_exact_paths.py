"""Paths of exact inference that few models take: rows outside the range of doubles, tables worked off in parts."""

import itertools
import math

import numpy as np
import pytest

import oracle
from tinybayes import CPD, BayesNet, Float, LogLinear, Variable
from tinybayes.errors import TinybayesError
from tinybayes.infer import (
    circuit_passes,
    circuit_properties,
    compile_circuit,
    is_deterministic,
    log_evidence,
    marginals,
    most_probable,
)
from tinybayes.infer.circuit import log_joint_with_class
from tinybayes.infer.circuit_passes import entry_counts, pass_rows, plan_of
from tinybayes.infer.join import messages
from tinybayes.infer.join.limits import Size, too_large
from tinybayes.infer.join.plan import make_plan
from tinybayes.infer.join.reduce import reduce
from tinybayes.infer.join.solve import prepare, solve
from tinybayes.infer.sampling.problem import as_log_linear, restrict
from tinybayes.model import Circuit, Factor
from tinybayes.model.circuit import INDICATOR, PRODUCT, SUM

FLOAT = Float(64)


def chain(length, change):
    """Return a network of binary variables, each like the one before it but for a probability."""
    variables = tuple(Variable(f"x{v}", (0, 1)) for v in range(length))
    table = np.log([[1 - change, change], [change, 1 - change]])
    first = CPD((), np.log([[0.5, 0.5]]), FLOAT)
    return BayesNet(variables, None, (first, *(CPD((v,), table, FLOAT) for v in range(length - 1))))


def used_entries(net, rows, weight):
    """Count, weighted, which entries of the tables complete rows use."""
    counts = []
    for v, cpd in enumerate(net.cpds):
        own = np.zeros(cpd.table.shape)
        above = np.zeros(len(rows), dtype=int)
        for parent in cpd.parents:
            above = above * net.nodes[parent].cardinality + rows[:, parent]
        np.add.at(own, (above, rows[:, v]), weight)
        counts.append(own.reshape(-1))
    return np.concatenate(counts)


@pytest.mark.parametrize(
    "apart", [30, 90]
)  # rows outside the range: few go to log space at once, many try other scales
def test_flows_of_all_rows_are_added_up(apart):
    """Half of the rows jump at every variable: their probabilities are 1e-400 times those of the others."""
    net = chain(100, 1e-4)
    rows = np.zeros((140, 100), dtype=np.int32)
    rows[70 : 70 + apart, ::2] = 1
    weight = np.random.default_rng(0).random(len(rows)) + 0.5
    circuit = compile_circuit(net, share_equal=False)
    logs, flow = pass_rows(circuit, rows, weight=weight)
    wanted = [oracle.log_joint(net, row.tolist()) for row in rows]
    np.testing.assert_allclose(logs, wanted, rtol=1e-12)
    counts = entry_counts(plan_of(circuit), flow, len(circuit.table))
    np.testing.assert_allclose(counts, used_entries(net, rows, weight), rtol=1e-9, atol=1e-9)


def test_circuits_too_large_for_blocks_of_rows_are_passed_row_by_row(monkeypatch):
    net = chain(9, 0.2)
    circuit = compile_circuit(net)
    rng = np.random.default_rng(1)
    rows = rng.integers(-1, 2, (40, 9)).astype(np.int32)
    weight = rng.random(40)
    wanted, posterior = np.empty((40, 18)), np.empty((40, 18))
    logs = pass_rows(circuit, rows, wanted)[0]
    flow = pass_rows(circuit, rows, weight=weight)[1]
    monkeypatch.setattr(circuit_passes, "_LARGE", 0)
    np.testing.assert_allclose(pass_rows(circuit, rows, posterior)[0], logs, rtol=1e-13)
    np.testing.assert_allclose(posterior, wanted, atol=1e-13)
    assert flow.any()
    np.testing.assert_allclose(pass_rows(circuit, rows, weight=weight)[1], flow, rtol=1e-13)


def test_classes_that_doubles_lose_are_scored_one_by_one():
    """Sixty features, each 1e-20 times as likely under the second class: its posterior is 1e-1200."""
    features = tuple(Variable(f"x{v}", (0, 1)) for v in range(60))
    likely = np.log([[1e-9, 1 - 1e-9], [1 - 1e-29, 1e-29]])
    cpds = tuple(CPD((60,), likely, FLOAT) for _ in features)
    net = BayesNet(features, Variable("y", (0, 1)), (*cpds, CPD((), np.log([[0.5, 0.5]]), FLOAT)))
    rows = np.ones((3, 60), dtype=np.int32)
    rows[1, :30] = 0
    scores = log_joint_with_class(compile_circuit(net), rows)
    for row, found in zip(rows, scores, strict=True):
        wanted = [oracle.log_joint(net, [*row.tolist(), c]) for c in (0, 1)]
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert scores[0, 1] < -3000


def test_the_lower_bound_of_an_approximate_completion_is_the_probability_of_its_row():
    """A hidden variable is summed out: the maximum over it is less than the sum."""
    net = BayesNet(
        (Variable("a", (0, 1)), Variable("b", (0, 1))),
        None,
        (CPD((), np.log([[0.4, 0.6]]), FLOAT), CPD((0,), np.log([[0.5, 0.5], [0.3, 0.7]]), FLOAT)),
    )
    circuit = compile_circuit(net)
    rows, bound = most_probable(circuit, np.full((6, 2), -1), approximate=True)
    np.testing.assert_allclose(bound, log_evidence(circuit, rows), atol=1e-12)
    np.testing.assert_allclose(bound, math.log(0.42), atol=1e-12)


def told_apart_by_pairs(clash):
    """Return a sum of three products, every two of which another variable tells apart, unless two of them clash."""
    variables = tuple(Variable(name, (0, 1)) for name in "abc")
    kind, children, offsets, payload = [], [], [0], []

    def node(what, which=-1, below=()):
        kind.append(what)
        payload.append(which)
        children.extend(below)
        offsets.append(len(children))
        return len(kind) - 1

    state = [node(INDICATOR, k) for k in range(6)]
    free = [node(SUM, below=(state[2 * v], state[2 * v + 1])) for v in range(3)]
    first = node(PRODUCT, below=(state[0], state[2], free[2]))  # a = 0, b = 0
    second = node(PRODUCT, below=(state[0 if clash else 1], free[1], state[4]))  # a = 1, c = 0
    third = node(PRODUCT, below=(free[0], state[3], state[5]))  # b = 1, c = 1
    node(SUM, below=(first, second, third))
    return Circuit(variables, None, kind, offsets, children, payload, np.empty(0), FLOAT)


def test_children_that_only_pairs_of_variables_tell_apart_are_exclusive():
    assert is_deterministic(told_apart_by_pairs(clash=False))
    found = is_deterministic(told_apart_by_pairs(clash=True))
    assert not found
    assert found.reason.startswith("node 12:")


def test_pairs_of_children_are_counted_for_the_limit(monkeypatch):
    monkeypatch.setattr(circuit_properties, "MAX_PAIRS", 3)
    assert is_deterministic(told_apart_by_pairs(clash=False))
    monkeypatch.setattr(circuit_properties, "MAX_PAIRS", 2)
    with pytest.raises(TinybayesError, match=r"at most 2 pairs of children, got 3$"):
        is_deterministic(told_apart_by_pairs(clash=False))


def grid_of(cards, seed, spread=1.0):
    """Return a model whose variables are all in one clique, by factors of pairs."""
    variables = tuple(Variable(f"x{v}", tuple(range(card))) for v, card in enumerate(cards))
    factors, count = [], 0
    for u, v in itertools.combinations(range(len(cards)), 2):
        factors.append(Factor((u, v), np.arange(count, count + cards[u] * cards[v])))
        count += cards[u] * cards[v]
    return LogLinear(variables, tuple(factors), np.random.default_rng(seed).normal(0, spread, count))


@pytest.mark.parametrize("copies", [0, messages.COPIES])
@pytest.mark.parametrize("cards", [(8, 7, 6, 5, 9), (2, 3, 2, 4, 3, 5, 4, 6), (40, 30, 20)])
def test_tables_that_all_cores_share_give_the_posteriors_of_enumeration(cards, copies, monkeypatch):
    monkeypatch.setattr(messages, "LARGE", 1)
    monkeypatch.setattr(messages, "COPIES", copies)
    model = grid_of(cards, seed=len(cards))
    rows = np.array(list(itertools.product(*map(range, cards))))
    logs = model.log_weights(rows)
    total = np.logaddexp.reduce(logs)
    weight = np.exp(logs - total)
    seen = []
    question = prepare(model, {}, "posterior", [(0, 1), (0, len(cards) - 1)])
    found = solve(question, seen.append)
    assert found.log_z == pytest.approx(total, rel=1e-12)
    for v, part in enumerate(found.states):
        np.testing.assert_allclose(part, np.bincount(rows[:, v], weight, cards[v]), atol=1e-12)
    for (u, v), table in zip(question.joints, found.joints, strict=True):
        wanted = np.zeros((cards[u], cards[v]))
        np.add.at(wanted, (rows[:, u], rows[:, v]), weight)
        np.testing.assert_allclose(table, wanted, atol=1e-12)
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1.0)
    assert sum(share <= 0.4 for share in seen) == len(seen) / 2  # an operation up, an operation down


def test_a_part_of_a_large_table_that_underflows_is_enough_to_start_again(monkeypatch):
    """For x0 > 0 two large tables give 1e-400; x0 = 0 has all the rest, until x3 and x4 rule it out.

    Each of the three tables of x0, x3 and x4 leaves x0 = 0 possible, so that it is not removed beforehand.
    """
    monkeypatch.setattr(messages, "LARGE", 1)
    cards = (8, 30, 20, 2, 2)
    variables = tuple(Variable(f"x{v}", tuple(range(card))) for v, card in enumerate(cards))
    low = np.where(np.arange(8) > 0, math.log(1e-200), 0.0)[:, None, None]
    rng = np.random.default_rng(3)
    first, second = (rng.normal(0, 0.1, (8, 30, 20)) for _ in range(2))
    one_way = np.zeros((8, 2))
    one_way[0, 1] = -np.inf  # x0 = 0 needs the state 0 of the other
    never_both = np.array([[-np.inf, 0.0], [0.0, 0.0]])
    scopes = [(0, 1, 2), (0, 1, 2), (0, 3), (0, 4), (3, 4)]
    tables = [low + first, low + second, one_way, one_way, never_both]
    starts = np.cumsum([0, *(table.size for table in tables)])
    factors = tuple(Factor(s, np.arange(a, b)) for s, a, b in zip(scopes, starts, starts[1:], strict=False))
    model = LogLinear(variables, factors, np.concatenate([table.reshape(-1) for table in tables]))
    assert restrict(model, {}).states[0] == 8
    found = solve(prepare(model, {}, "posterior"))
    rest = np.logaddexp.reduce((first + second)[1:].reshape(-1)) + math.log(3)
    assert found.log_z == pytest.approx(2 * math.log(1e-200) + rest, rel=1e-12)
    assert found.states[0][0] == 0


def test_the_memory_of_a_plan_is_that_of_its_arrays():
    model = grid_of((8, 7, 6, 5, 9), seed=0)
    problem = restrict(model, {})
    tables = reduce(problem, None).tables
    join = make_plan(tables.scopes, tables.cards, range(5))
    pool, _ = messages._pool(join, tables, 0)
    assert join.bytes == pool.nbytes + 8 * join.scratch
    assert join.scratch >= 7 * 6 * 5 * 9  # the posterior of the largest separator


def test_barren_variables_go_wherever_they_stand():
    """Two pairs whose second variables sum to one, and a chain of three distributions: only x0 and x2 have no table."""
    pair, single = np.log([0.3, 0.7, 0.6, 0.4]), np.log([0.2, 0.8])
    variables = tuple(Variable(f"x{v}", (0, 1)) for v in range(7))
    scopes = [(0, 1), (2, 3), (4,), (4, 5), (5, 6)]
    weights = [pair, pair, single, pair, pair]
    starts = np.cumsum([0, *map(len, weights)])
    factors = tuple(Factor(s, np.arange(a, b)) for s, a, b in zip(scopes, starts, starts[1:], strict=False))
    problem = restrict(LogLinear(variables, factors, np.concatenate(weights)), {})
    found = reduce(problem, ())
    assert found.kept == (0, 2)
    assert found.constant == pytest.approx(0.0, abs=1e-12)


def test_a_model_without_factors_is_uniform():
    variables = (Variable("a", (0, 1)), Variable("b", (0, 1, 2)))
    model = LogLinear(variables, (), np.empty(0))
    np.testing.assert_allclose(marginals(model)["b"], 1 / 3)
    np.testing.assert_allclose(marginals(model, {"a": 1})["a"], [0, 1])
    assert as_log_linear(model) is model


def test_what_is_too_large_says_the_limit_and_the_need():
    text = str(too_large(Size(12, 1e9, 3 * 2**30, 5, 2.0), 2**30, 5.0))
    assert "within 1 GiB and 5 s" in text
    assert "width 12 that needs 3 GiB" in text


@pytest.mark.parametrize("cards", [(8, 7, 6, 5, 9), (2, 3, 2, 4, 3, 5, 4, 6), (40, 30, 20)])
@pytest.mark.parametrize("copies", [0, 100, messages.COPIES])
def test_no_two_parts_of_a_large_table_write_to_one_place(cards, copies, monkeypatch):
    """Threads work on parts at the same time: what several parts add to needs a copy for each."""
    monkeypatch.setattr(messages, "LARGE", 1)
    monkeypatch.setattr(messages, "COPIES", copies)
    writers = {}
    large = []

    def watched(plan, op, start, stop, pool, margin, scratch, *rest):
        before = scratch.copy()
        kernel(plan, op, start, stop, pool, margin, scratch, *rest)
        for place in np.flatnonzero(scratch != before):
            writers.setdefault((op, int(place)), []).append(start)

    def counted(join, op, *rest):
        large.append(op)
        whole(join, op, *rest)

    def in_turn(work, size, share):
        for start in range(0, size, share):
            work(start, min(start + share, size))

    kernel, whole = messages.down_part, messages._down_large
    monkeypatch.setattr(messages, "down_part", watched)
    monkeypatch.setattr(messages, "_down_large", counted)
    monkeypatch.setattr(messages, "for_blocks", in_turn)
    found = solve(prepare(grid_of(cards, seed=1), {}, "posterior", [(0, 1)]))
    assert len(found.states) == len(cards)
    assert len(large) == len(cards)  # those of two states as well
    assert writers
    assert all(len(parts) == 1 for parts in writers.values())


def test_joint_posteriors_outlast_the_copies_of_later_tables(monkeypatch):
    """Two cliques that share a variable of few states, and a joint posterior in each."""
    monkeypatch.setattr(messages, "LARGE", 1)
    cards, rng = (40, 30, 3, 40, 30), np.random.default_rng(5)
    variables = tuple(Variable(f"x{v}", tuple(range(card))) for v, card in enumerate(cards))
    first, second = rng.normal(size=(40, 30, 3)), rng.normal(size=(3, 40, 30))
    factors = Factor((0, 1, 2), np.arange(first.size)), Factor((2, 3, 4), first.size + np.arange(second.size))
    model = LogLinear(variables, factors, np.concatenate([first.reshape(-1), second.reshape(-1)]))
    question = prepare(model, {}, "posterior", [(0, 1), (3, 4), (0, 2)])
    found = solve(question)
    into_first, into_second = np.exp(second).sum(axis=(1, 2)), np.exp(first).sum(axis=(0, 1))
    own = np.exp(first) * into_first
    wanted = own.sum(axis=2), np.tensordot(into_second, np.exp(second), 1), own.sum(axis=1)
    for table, sums in zip(found.joints, wanted, strict=True):
        np.testing.assert_allclose(table, sums / sums.sum(), atol=1e-14)


@pytest.mark.parametrize("rare", range(4))
def test_one_part_that_underflows_is_enough(rare, monkeypatch):
    """Of a large table, only assignments with one state of one variable are too small for doubles."""
    monkeypatch.setattr(messages, "LARGE", 1)
    cards = (16, 16, 16, 16)
    flags = []
    kernel = messages.up_part_watched

    def noted(*arguments):
        top, left = kernel(*arguments)
        flags.append((arguments[-1], left))
        return top, left

    monkeypatch.setattr(messages, "up_part_watched", noted)
    variables = tuple(Variable(f"x{v}", tuple(range(card))) for v, card in enumerate(cards))
    low = np.zeros(cards)
    np.moveaxis(low, rare, 0)[5] = math.log(1e-200)
    model = LogLinear(
        variables,
        tuple(Factor((0, 1, 2, 3), np.arange(k * low.size, (k + 1) * low.size)) for k in range(2)),
        np.concatenate([low.reshape(-1), low.reshape(-1)]),
    )
    found = solve(prepare(model, {}, "posterior"))
    assert found.log_z == pytest.approx(math.log(15 * 16**3), rel=1e-12)
    assert (messages.SUM, True) in flags
    assert flags[-1][0] == messages.LOG_SUM  # all began again: later tables might have ruled out what is larger
