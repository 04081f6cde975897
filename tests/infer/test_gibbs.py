"""Gibbs sampling against enumeration."""

import itertools
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import zoo
from tinybayes._kernels.gibbs import burn, enter
from tinybayes.errors import TinybayesError
from tinybayes.infer import Queries, gibbs
from tinybayes.infer.gibbs import layout, new_chain
from tinybayes.model import CPD, BayesNet, Fixed, Float, Variable

NOTHING = -1
MODULE = sys.modules["tinybayes.infer.gibbs"]  # the package shows the function of the same name


def joint(net):
    """The normalised distribution over all states, one axis a variable."""
    sizes = [node.cardinality for node in net.nodes]
    p = np.array([np.exp(oracle.log_joint(net, list(x))) for x in itertools.product(*map(range, sizes))])
    return (p / p.sum()).reshape(sizes)


def given_evidence(p, evidence):
    keep = np.ones(p.shape, dtype=bool)
    for axis, value in enumerate(evidence):
        if value >= 0:
            keep &= (np.arange(p.shape[axis]) == value).reshape([-1 if a == axis else 1 for a in range(p.ndim)])
    return p * keep / (p * keep).sum()


def marginal(p, axis):
    return p.sum(axis=tuple(a for a in range(p.ndim) if a != axis))


def probability(p, asked):
    return p[tuple(slice(None) if value < 0 else value for value in asked)].sum()


def random_case(seed, rows=3, **options):
    """A network, its joint distribution, and rows in which some variables are observed and others asked for."""
    rng = np.random.default_rng(seed)
    net = zoo.random_net(rng, 5, max_parents=3, formats=(Float(64),), trees=True, **options)
    p = joint(net)
    drawn = np.stack(np.unravel_index(rng.choice(p.size, rows, p=p.ravel()), p.shape), axis=1)
    role = rng.integers(0, 3, drawn.shape)
    return net, p, np.where(role == 0, drawn, NOTHING), np.where(role == 1, drawn, NOTHING)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_marginals_are_within_their_errors(seed, blackwell, target):
    net, p, evidence, _ = random_case(seed, target=target)
    answers = gibbs(net, evidence, chains=4, samples=4000, rao_blackwell=blackwell, seed=seed)
    for r, row in enumerate(evidence.tolist()):
        posterior = given_evidence(p, row)
        for v, found in enumerate(answers.marginals):
            exact = marginal(posterior, v)
            np.testing.assert_allclose(found.value[r].sum(), 1, rtol=1e-12)
            # The errors are estimates themselves; the smoothing moves a value by at most 1 / samples.
            assert (abs(found.value[r] - exact) <= 6 * found.error[r] + 2e-4).all()
            assert (found.error[r] < 0.1).all()
            if row[v] >= 0:
                np.testing.assert_allclose(found.value[r], exact, rtol=1e-12)
                np.testing.assert_array_equal(found.error[r], 0)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.booleans())
def test_joint_queries_are_within_their_errors(seed, blackwell):
    net, p, evidence, asked = random_case(seed, target=False)
    answers = gibbs(net, Queries(evidence, asked), chains=4, samples=4000, rao_blackwell=blackwell, seed=seed)
    assert answers.marginals is None
    log = answers.log_probability
    for r in range(len(evidence)):
        exact = np.log(probability(given_evidence(p, evidence[r]), asked[r]))
        assert abs(log.value[r] - exact) <= 6 * log.error[r] + 1e-3
        if (asked[r] < 0).all():
            assert log.value[r] == pytest.approx(0, abs=1e-12)


def test_errors_are_neither_too_small_nor_too_large():
    """Over many seeds the deviations, measured in their errors, have about the spread of a standard normal."""
    net, p, evidence, asked = random_case(11, rows=1, target=False)
    evidence, asked = np.repeat(evidence, 300, axis=0), np.repeat(asked, 300, axis=0)
    for blackwell in (False, True):
        answers = gibbs(net, Queries(evidence, asked), chains=2, samples=3000, rao_blackwell=blackwell, marginals=True)
        posterior = given_evidence(p, evidence[0])
        for v, found in enumerate(answers.marginals):
            if evidence[0, v] < 0 and found.value.shape[1] > 1:
                z = (found.value[:, 0] - marginal(posterior, v)[0]) / found.error[:, 0]
                assert 0.6 < z.std() < 1.3
                assert abs(z.mean()) < 0.25
        log = answers.log_probability
        z = (log.value - np.log(probability(posterior, asked[0]))) / log.error
        assert 0.6 < z.std() < 1.3


@pytest.mark.parametrize("trees", [False, True])
def test_the_kernel_keeps_the_distribution(trees):
    """Count where a sweep leads from every state of a tiny network: a matrix that leaves the posterior as it is."""
    rng = np.random.default_rng(5)
    variables = [Variable("a", (0, 1)), Variable("b", (0, 1, 2)), Variable("c", (0, 1))]
    net = zoo.random_net(rng, 3, 2, target=False, formats=(Float(64),), trees=trees, variables=variables)
    p = joint(net)
    flat, plan = p.ravel(), layout(net)
    free, nothing, logs, draws = np.arange(3), np.full(3, NOTHING, dtype=np.int32), np.empty(3), 8_000
    moves = np.zeros((p.size, p.size))
    chain = new_chain(plan)
    for origin in range(p.size):
        chain.random[0] = origin
        for _ in range(draws):
            chain.x[:] = np.unravel_index(origin, p.shape)
            enter(plan, chain, nothing, -1)
            burn(plan, chain, free, nothing, -1, 1, logs)
            moves[origin, np.ravel_multi_index(tuple(chain.x), p.shape)] += 1 / draws
    exact = transition_matrix(p)
    np.testing.assert_allclose(flat @ exact, flat, atol=1e-12)  # the oracle itself
    assert (abs(moves - exact) <= 5 * np.sqrt(exact * (1 - exact) / draws) + 1e-9).all()


def transition_matrix(p):
    """One sweep in the order of the variables, from the joint distribution alone."""
    matrix = np.eye(p.size)
    for axis in range(p.ndim):
        conditional = p / p.sum(axis=axis, keepdims=True)
        step = np.zeros((p.size, p.size))
        for x in np.ndindex(p.shape):
            for value in range(p.shape[axis]):
                y = (*x[:axis], value, *x[axis + 1 :])
                step[np.ravel_multi_index(x, p.shape), np.ravel_multi_index(y, p.shape)] = conditional[y]
        matrix = matrix @ step
    return matrix


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_what_is_kept_between_moves_equals_what_is_computed_anew(seed):
    """A chain that forgets everything after each sweep draws the same states: nothing stale was ever used."""
    rng = np.random.default_rng(seed)
    net = zoo.random_net(rng, 90, max_parents=4, target=False, formats=(Float(64),), trees=True)
    plan = layout(net)
    free, nothing = np.arange(90), np.full(90, NOTHING, dtype=np.int32)
    logs = np.empty(int(plan.states.max()))
    kept, anew = new_chain(plan), new_chain(plan)
    for chain in (kept, anew):
        enter(plan, chain, nothing, -1)
    for _ in range(30):
        enter(plan, anew, nothing, -1)
        for chain in (kept, anew):
            burn(plan, chain, free, nothing, -1, 1, logs)
        np.testing.assert_array_equal(kept.x, anew.x)
        np.testing.assert_array_equal(kept.entry, anew.entry)


@pytest.mark.parametrize("name", ["MOST_WORDS", "MOST_STOPS"])
def test_networks_too_large_for_all_shortcuts_give_the_same_samples(name, monkeypatch):
    def ask():
        net = zoo.random_net(np.random.default_rng(3), 20, 4, target=False, formats=(Float(64),), trees=True)
        return gibbs(net, np.full((2, 20), NOTHING), samples=200)

    before = ask()
    monkeypatch.setattr(MODULE, name, 0)
    for a, b in zip(before.marginals, ask().marginals, strict=True):
        np.testing.assert_array_equal(a.value, b.value)


def test_quantised_networks_need_no_normalisation():
    net = zoo.random_net(np.random.default_rng(8), 4, target=False, formats=(Fixed(3, 2),))
    assert not net.is_normalized()
    p = joint(net)
    answers = gibbs(net, np.full((1, 4), NOTHING), chains=4, samples=20_000, rao_blackwell=True)
    for v, found in enumerate(answers.marginals):
        assert (abs(found.value[0] - marginal(p, v)) <= 5 * found.error[0] + 1e-4).all()


def test_smoothing_is_a_count_over_all_joint_states():
    """200 variables with 2 ** 200 joint states: a configuration that never occurs keeps its share of the count."""
    sure = CPD((), np.log([[1 - 1e-9, 1e-9]]), Float(64))
    net = BayesNet(tuple(Variable(f"v{i}", (0, 1)) for i in range(200)), None, (sure,) * 200)
    nothing = np.full((1, 200), NOTHING)
    for smoothing in (0.5, 1.0):
        never = gibbs(net, Queries(nothing, np.ones((1, 200), dtype=int)), smoothing=smoothing).log_probability
        assert never.value[0] == pytest.approx(np.log(smoothing) - 200 * np.log(2) - np.log(1000 + smoothing))
        assert (never.error[0], never.effective[0]) == (np.inf, 0)
        always = gibbs(net, Queries(nothing, np.zeros((1, 200), dtype=int)), smoothing=smoothing).log_probability
        assert always.value[0] == pytest.approx(np.log(1000 / (1000 + smoothing)))
        one = gibbs(net, nothing, smoothing=smoothing).marginals[0]
        np.testing.assert_allclose(one.value[0, 1], smoothing / 2 / (1000 + smoothing))
        assert one.error[0, 1] > 0  # a value that was never seen is not known to be impossible
    never = gibbs(net, Queries(nothing, np.ones((1, 200), dtype=int)), smoothing=0).log_probability
    assert never.value[0] == -np.inf


def test_averaging_conditionals_has_smaller_errors():
    net, _, _, _ = random_case(21, target=False)
    nothing = np.full((50, 5), NOTHING)
    plain, averaged = (gibbs(net, nothing, rao_blackwell=blackwell).marginals for blackwell in (False, True))
    for a, b in zip(plain, averaged, strict=True):
        if a.value.shape[1] > 1:
            assert b.value.std(axis=0).max() < a.value.std(axis=0).max()
            assert b.effective.mean() > a.effective.mean()


def test_answers_do_not_depend_on_threads_or_on_other_queries(monkeypatch):
    net, _, evidence, _ = random_case(2, rows=9, target=False)
    ask = {"chains": 3, "samples": 300, "seed": 7}
    monkeypatch.setenv("TINYBAYES_THREADS", "1")
    one = gibbs(net, evidence, **ask)
    monkeypatch.setenv("TINYBAYES_THREADS", "4")
    monkeypatch.setattr(MODULE, "MOST_SUMS", 100)  # a few queries at a time
    four, first = gibbs(net, evidence, **ask), gibbs(net, evidence[:2], **ask)
    other = gibbs(net, evidence, **{**ask, "seed": 8})
    for a, b, c in zip(one.marginals, four.marginals, first.marginals, strict=True):
        np.testing.assert_array_equal(a.value, b.value)
        np.testing.assert_array_equal(a.error, b.error)
        np.testing.assert_array_equal(a.value[:2], c.value)
    assert any((a.value != b.value).any() for a, b in zip(one.marginals, other.marginals, strict=True))


def test_a_time_limit_stops_early_and_says_how_far_it_came():
    net, p, _, _ = random_case(2, target=False)
    nothing = np.full((4, 5), NOTHING)
    answers = gibbs(net, nothing, samples=10**9, seconds=0.3)
    assert (answers.samples > 1000).all()
    assert (answers.samples < 10**9).all()
    for v, found in enumerate(answers.marginals):
        assert (abs(found.value - marginal(p, v)) <= 6 * found.error + 1e-3).all()


def exclusive(n):
    """A chain of coins in which each is the opposite of the one before; the last is observed."""
    flip = zoo.cpd([[0, 1], [1, 0]], [0])
    cpds = [zoo.cpd([0.5, 0.5])] + [CPD((i,), flip.table, flip.format) for i in range(n - 1)]
    return BayesNet(tuple(Variable(f"v{i}", (0, 1)) for i in range(n)), None, tuple(cpds))


def test_a_start_is_found_where_forward_sampling_seldom_succeeds():
    net = exclusive(40)
    evidence = np.full((20, 40), NOTHING)
    evidence[:, -1] = np.arange(20) % 2
    answers = gibbs(net, evidence, samples=10)
    for v, found in enumerate(answers.marginals):
        expected = (np.arange(20) + (39 - v)) % 2
        np.testing.assert_array_equal(found.value.argmax(axis=1), expected)


def test_impossible_evidence_is_refused():
    net = exclusive(6)
    evidence = np.full((3, 6), NOTHING)
    evidence[1, [0, 5]] = 0
    with pytest.raises(
        TinybayesError, match=r"evidence of query 1: expected evidence that can occur.*probability zero"
    ):
        gibbs(net, evidence)
    with pytest.raises(TinybayesError, match="probability zero"):
        gibbs(zoo.sprinkler(), np.array([[1, 1, 0]]))


def test_an_endless_search_for_a_start_is_given_up(monkeypatch):
    monkeypatch.setattr(MODULE, "START_VISITS", 50)
    evidence = np.full((1, 40), NOTHING)
    evidence[0, [0, 39]] = 0
    coins = zoo.cpd([[0.5, 0.5]])
    net = exclusive(40)
    free = BayesNet(
        tuple(Variable(f"v{i}", (0, 1)) for i in range(40)), None, (*net.cpds[:1], *(coins,) * 38, net.cpds[1])
    )
    with pytest.raises(TinybayesError, match="probability zero"):
        gibbs(free, np.where(np.arange(40) % 39 == 0, 0, -1)[None])
    parents = BayesNet(
        free.variables,
        None,
        (*(coins,) * 39, CPD(tuple(range(10)), np.where(np.arange(1024)[:, None] < 0, 0.0, [0.0, -np.inf]), Float(64))),
    )
    evidence[0] = NOTHING
    evidence[0, 39] = 1
    with pytest.raises(TinybayesError, match="none within 50 steps"):
        gibbs(parents, evidence)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"burn_in": -1}, "burn_in: expected an integer of at least 0, got -1"),
        ({"samples": 0}, "samples: expected an integer of at least 1"),
        ({"chains": 0}, "chains: expected an integer of at least 1"),
        ({"smoothing": -1}, "smoothing"),
        ({"smoothing": float("nan")}, "smoothing"),
        ({"seed": -1}, "seed"),
        ({"seconds": 0}, "seconds: expected a positive number"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(TinybayesError, match=message):
        gibbs(zoo.sprinkler(), np.full((1, 3), NOTHING), **options)


def test_no_queries_give_no_answers():
    answers = gibbs(zoo.sprinkler(), np.empty((0, 3), dtype=int))
    assert [found.value.shape for found in answers.marginals] == [(0, 2)] * 3
