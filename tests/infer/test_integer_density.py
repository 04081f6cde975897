"""Log-likelihoods in integers: within their bound of the exact ones, whatever is missing; alarms in integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zoo
from density_host import random_latent
from networks import codebook
from tinybayes import tie
from tinybayes.errors import TinybayesError
from tinybayes.infer import compile_circuit, log_evidence, log_likelihood
from tinybayes.infer.alarm import Alarm, choose_alarm, from_metadata, hold_out, integer_alarm, least_probable
from tinybayes.infer.density_layout import LEAF, PLUS, TIMES, _allocate, lay_out
from tinybayes.infer.integer_density import (
    INTERPOLATION,
    REACH,
    ROUNDING,
    ZERO,
    integer_density,
    integer_log_likelihood,
    log_add,
)
from tinybayes.model import CPD, BayesNet, Circuit, Dataset, Fixed, Float, Variable


@pytest.mark.parametrize("fraction", [8, 11, 16])
def test_one_addition_is_within_its_bound_for_every_distance(fraction):
    distance = np.arange((REACH + 2) << fraction)
    found = log_add(-distance, np.zeros_like(distance), fraction)
    exact = np.log1p(np.exp(-np.ldexp(distance.astype(float), -fraction)))
    worst = np.abs(np.ldexp(found.astype(float), -fraction) - exact).max()
    assert worst <= INTERPOLATION + np.ldexp(ROUNDING, -fraction)
    np.testing.assert_array_equal(found, log_add(np.zeros_like(distance), -distance, fraction))


def rows_of(circuit, rows=80, seed=0, gaps=0.4):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, circuit.cardinalities, (rows, len(circuit.nodes)))
    return np.where(rng.random(X.shape) < gaps, -1, X)


def variables(count=9, seed=0, least=1):
    sizes = np.random.default_rng(seed).integers(least, 6, count)
    return tuple(Variable(f"v{i}", tuple(range(size))) for i, size in enumerate(sizes))


def latent():
    return random_latent(variables(least=2), 5)


def random_net(*arguments, **options):
    return compile_circuit(zoo.random_net(np.random.default_rng(5), *arguments, **options))


# Made anew for each test: a circuit keeps what was computed for it.
CIRCUITS = {
    "latent": latent,
    "many parameters": lambda: random_latent(variables(12), 8, seed=2),
    "some of one state": lambda: random_latent(variables(12), 3, seed=7),
    "pruned": lambda: random_latent(variables(), 6, seed=1, cut=0.6),
    "tied": lambda: tie(latent(), 12).model,
    "fixed": lambda: random_net(6, 2, False, [Fixed(3, 2)]),
    "codebook": lambda: random_net(6, 2, False, [codebook(9)]),
    "with a class": lambda: random_net(5, 1, True, [Float(64)]),
    "decision trees": lambda: random_net(6, 2, False, [Float(64)], trees=True),
    "hand": zoo.hand_circuit,
    "one variable": lambda: random_latent(variables(1, seed=3), 2),
}


@pytest.mark.parametrize("key", CIRCUITS)
def test_rows_are_within_the_bound(key):
    circuit = CIRCUITS[key]()
    density = integer_density(circuit)
    for gaps in (0.0, 0.4, 1.0):
        X = rows_of(circuit, gaps=gaps)
        exact, found = log_likelihood(circuit, X), integer_log_likelihood(circuit, X)
        possible = np.isfinite(exact)
        assert (
            np.abs(np.ldexp(found[possible].astype(float), -density.fraction) - exact[possible]).max() <= density.bound
        )
        assert (found[~possible] == ZERO).all()
        assert np.abs(found).max() < 2**31
    assert density.bound < 0.02


def test_impossible_rows():
    table = np.log(np.array([[0.5, 0.5, 1e-300]]).clip(1e-9))
    table[0, 2] = -np.inf
    net = zoo.naive_bayes()
    cpd = type(net.cpds[0])
    pair = np.array([[0.0, -np.inf], [-np.inf, 0.0], [0.0, -np.inf]])
    net = type(net)(
        (Variable("a", (0, 1, 2)), Variable("b", (0, 1))), None, (cpd((), table, Float(64)), cpd((0,), pair, Float(64)))
    )
    circuit = compile_circuit(net)
    X = np.array([[0, 0], [0, 1], [1, 1], [2, 0], [2, -1], [-1, 1], [-1, -1]])
    exact = log_likelihood(circuit, X)
    found = integer_log_likelihood(circuit, X)
    np.testing.assert_array_equal(found == ZERO, np.isneginf(exact))
    np.testing.assert_allclose(found[found != ZERO] / 2**16, exact[found != ZERO], atol=integer_density(circuit).bound)


def test_a_latent_tree_takes_few_groups_and_little_memory():
    several = variables(16, seed=4, least=2)
    layout = lay_out(random_latent(several, 8))
    kinds = [group.kind for group in layout.groups]
    assert kinds.count(LEAF) == 16
    assert kinds.count(PLUS) == 8  # a message for each hidden variable
    assert kinds.count(TIMES) <= 8
    assert all(group.repeat == 8 for group in layout.groups[:-1])
    assert layout.slots < 16 * 8
    for group in layout.groups:  # no group writes what it still reads
        if group.kind != LEAF:
            span = group.repeat if group.kind == TIMES else 1
            read = {o + i for o in group.operands for i in range(span)}
            assert read.isdisjoint(range(group.slot, group.slot + group.repeat))


def test_tied_circuits_are_divided_by_their_sum():
    tied = CIRCUITS["tied"]()
    nothing = np.full((1, len(tied.nodes)), -1)
    assert abs(log_evidence(tied, nothing)[0]) > 1e-3
    assert abs(integer_log_likelihood(tied, nothing)[0]) / 2**16 <= integer_density(tied).bound
    assert integer_density(tied).constant != 0


def test_variables_of_one_state_add_no_levels():
    tied = tie(random_latent(variables(12), 3, seed=7), 8).model
    assert 1 in tied.cardinalities
    assert len(integer_density(tied).levels) <= 8
    X = rows_of(tied)
    exact, density = log_likelihood(tied, X), integer_density(tied)
    assert np.abs(integer_log_likelihood(tied, X) / 2**16 - exact).max() <= density.bound


def test_tied_parameters_are_levels_and_others_have_16_bits():
    assert len(integer_density(CIRCUITS["tied"]()).levels) <= 12
    density = integer_density(CIRCUITS["many parameters"]())
    assert density.levels is None
    assert all(codes.max(initial=0) < 2**16 for codes in density.codes)


def independent(count, log):
    """Variables of two states, the first with a probability of this logarithm."""
    cpd = type(zoo.naive_bayes().cpds[0])
    table = np.array([[log, np.log1p(-np.exp(log))]])
    several = tuple(Variable(f"v{i}", (0, 1)) for i in range(count))
    return compile_circuit(BayesNet(several, None, (cpd((), table, Float(64)),) * count))


def test_the_unit_grows_with_the_range_and_ends():
    for count, fraction in ((10, 16), (2000, 14)):
        circuit = independent(count, -20.0)
        density = integer_density(circuit)
        assert density.fraction == fraction
        found = integer_log_likelihood(circuit, np.zeros((1, count), dtype=int))[0]
        assert np.ldexp(float(found), -fraction) == pytest.approx(-20.0 * count, abs=density.bound)
    with pytest.raises(TinybayesError, match="expected log-likelihoods within"):
        integer_density(independent(20, -1e6))


@pytest.mark.parametrize(("log", "fraction"), [(-16383.9, 14), (-16384.1, 13)])
def test_the_unit_is_the_finest_that_the_range_allows(log, fraction):
    """Four variables span 65,536 nats at most where 2**30 units are 2**14 to the nat."""
    assert integer_density(independent(4, log)).fraction == fraction


def test_circuits_that_are_not_smooth_are_refused():
    arrays = ([1, 1, 2], [0, 0, 0, 2], [0, 1], [0, 2, -1])
    circuit = Circuit(
        (Variable("a", (0, 1)), Variable("b", (0, 1))), None, *map(np.array, arrays), np.empty(0), Float(64)
    )
    with pytest.raises(TinybayesError, match="smooth"):
        integer_density(circuit)


@given(st.lists(st.integers(-(2**24), 2**24), min_size=2, max_size=12))
def test_sums_keep_their_order_of_size(terms):
    """A sum is not below its largest term, and not above it by more than the logarithm of their number."""
    total = np.array(terms[0])
    for term in terms[1:]:
        total = log_add(total, np.array(term), 16)
    slack = 2**16 * (INTERPOLATION + 2.0**-16) * len(terms)
    assert max(terms) - slack <= total <= max(terms) + 2**16 * np.log(len(terms)) + slack


def test_an_alarm_never_exceeds_that_of_floats():
    circuit = CIRCUITS["latent"]()
    X = rows_of(circuit, 3000, gaps=0.05)
    exact = log_likelihood(circuit, X)
    data = Dataset(circuit.variables, None, X)
    rest, others = hold_out(data, 0)
    assert (len(rest), len(others)) == (2400, 600)
    alarm = choose_alarm(circuit, others, 0.1, len(data))
    assert (log_likelihood(circuit, others.X) < alarm.threshold).mean() <= 0.1
    none = np.zeros(len(X), dtype=int)
    score, flag = integer_alarm(circuit, alarm, X, none)
    bound = integer_density(circuit).bound
    assert not flag[exact >= alarm.threshold].any()
    assert flag[exact < alarm.threshold - 2 * bound - 2.0**-16].all()
    assert 0.05 < flag.mean() < 0.15
    np.testing.assert_array_equal(score, integer_log_likelihood(circuit, X))
    odd, flagged = integer_alarm(circuit, alarm, X, none + 2)
    assert flagged.all()
    in_floats = alarm.scores(exact, none + 2)
    assert (in_floats < alarm.threshold).all()
    assert np.abs(odd / 2**16 - in_floats).max() <= 2 * bound + 2.0**-14
    assert from_metadata({"alarm": alarm.to_metadata()}) == alarm
    assert Alarm(-1e9, 1e9, 0.1, 3).units(integer_density(circuit), 500) == (ZERO, 2**29 // 500)


@pytest.mark.parametrize(
    "stored",
    [
        {"threshold": 1},
        3,
        {"threshold": "x", "unseen": 1, "rate": 0.1, "rows": 3},
        {"threshold": -(10**400), "unseen": 1, "rate": 0.1, "rows": 3},
        {"threshold": -1, "unseen": 1, "rate": 0.1, "rows": float("inf")},
    ],
    ids=["lacking", "number", "text", "huge", "endless"],
)
def test_damaged_metadata_are_refused(stored):
    with pytest.raises(TinybayesError, match=r"metadata\.alarm: expected an alarm"):
        from_metadata({"alarm": stored})
    with pytest.raises(TinybayesError, match="numbers of nats up to"):
        Alarm(-np.inf, 1.0, 0.1, 3)
    with pytest.raises(TinybayesError, match="numbers of nats up to"):
        Alarm(-1.0, 0.0, 0.1, 3)
    with pytest.raises(TinybayesError, match="rate of false alarms"):
        Alarm(-1.0, 1.0, 1.0, 3)
    assert from_metadata({}) is None


def test_scores_with_an_alarm_by_hand():
    """A row with states that were never seen is no better than the threshold, less what each of them costs."""
    scores = Alarm(-4.0, 5.0, 0.05, 60).scores(np.array([-1.0, -1.0, -10.0, -10.0, -9.0]), np.array([0, 1, 1, 2, 0]))
    assert scores.tolist() == [-1.0, -9.0, -15.0, -20.0, -9.0]


def test_parameters_whose_sum_is_beyond_doubles_are_refused():
    table = np.array([[-1.5e308, 0.0]])
    net = BayesNet(
        tuple(Variable(name, "ab") for name in "xy"), None, tuple(CPD((), table, Float(64)) for _ in range(2))
    )
    with np.errstate(all="ignore"), pytest.raises(TinybayesError, match="log-likelihoods within"):
        integer_density(compile_circuit(net))


@pytest.mark.parametrize("log", [-3.0, -60.0])
def test_the_bound_of_independent_variables_by_hand(log):
    """A leaf errs by half a unit, since its parameters are levels; a product adds up; the constant is rounded."""
    density = integer_density(independent(7, log))
    assert density.levels is not None
    assert density.sums_to_one
    assert density.bound == pytest.approx(7 * 2.0 ** (-density.fraction - 1) + 2.0 ** (-density.fraction - 1), rel=1e-3)


def test_codes_of_16_bits_are_as_fine_as_their_range_allows():
    """Parameters between 0 and -20 nats: 2**11 steps a nat, and a bound that knows it."""
    circuit = CIRCUITS["many parameters"]()
    density = integer_density(circuit)
    logs = np.concatenate([group.parameters.reshape(-1) for group in density.layout.groups])
    span = max(0.0, logs.max()) - logs.min()
    step = 2.0 ** (density.shift - density.fraction)
    assert step * (2**16 - 2) >= span > step * (2**15 - 1) or density.shift == 0
    for group, codes in zip(density.layout.groups, density.codes, strict=True):
        worth = np.ldexp(density.worth(codes).astype(float), -density.fraction)
        np.testing.assert_allclose(worth, group.parameters, atol=step / 2 + 2.0 ** (-density.fraction - 1))
    assert density.bound > step / 2


def test_a_state_that_was_never_seen_is_as_probable_as_one_row_more():
    circuit = CIRCUITS["latent"]()
    data = Dataset(circuit.variables, None, rows_of(circuit, 50))
    for learned, wanted in ((0.0, 2.0), (1.0, 2.0), (1.5, 2.5), (99.0, 100.0)):
        assert choose_alarm(circuit, data, 0.1, learned).unseen == pytest.approx(np.log(wanted))


def test_the_least_probable_value_is_to_blame():
    """The second variable repeats the first one, the third is nearly always 0."""
    cpds = (
        CPD((), np.log([[0.5, 0.5]]), Float(64)),
        CPD((0,), np.log([[0.99, 0.01], [0.01, 0.99]]), Float(64)),
        CPD((), np.log([[1 - 1e-6, 1e-6]]), Float(64)),
    )
    circuit = compile_circuit(BayesNet(tuple(Variable(name, (0, 1)) for name in "abc"), None, cpds))
    X = np.array([[0, 0, 1], [0, -1, 1], [0, -1, 0], [-1, -1, -1], [-1, -1, -1], [0, -1, 1]])
    unseen = np.zeros(X.shape, dtype=bool)
    unseen[4, 1] = unseen[5, 1] = True
    # What was never seen is to blame, whatever else is unlikely; where nothing is known, nothing is.
    assert least_probable(circuit, X, unseen).tolist() == [2, 2, 0, -1, 1, 1]


def test_a_row_of_probability_zero_blames_nothing():
    cpds = CPD((), np.log([[0.5, 0.5]]), Float(64)), CPD((0,), np.array([[0.0, -np.inf], [-np.inf, 0.0]]), Float(64))
    circuit = compile_circuit(BayesNet((Variable("a", (0, 1)), Variable("b", (0, 1))), None, cpds))
    rows = np.array([[0, 1], [1, 1]])
    assert least_probable(circuit, rows, np.zeros((2, 2), dtype=bool)).tolist() == [-1, 0]


def test_sums_of_one_term_are_that_term():
    """A sum over the only child, as pruning leaves it, with a parameter."""
    kind, leaf = [0, 1, 1, 3, 3, 2, 2], [0, 0, 1, -1, -1, -1, -1]
    offsets, children = [0, 0, 0, 0, 2, 4, 5, 7], [0, 1, 0, 2, 3, 5, 4]
    circuit = Circuit(
        (Variable("a", (0, 1)),), None, *map(np.array, (kind, offsets, children, leaf)), np.log([0.5]), Float(64)
    )
    X = np.array([[0], [1], [-1]])
    found = np.ldexp(integer_log_likelihood(circuit, X).astype(float), -integer_density(circuit).fraction)
    np.testing.assert_allclose(found, log_likelihood(circuit, X), atol=integer_density(circuit).bound)


def test_parameters_above_one_have_codes_of_16_bits_too():
    """A table that is not normalised, whose 300 entries are too many for levels."""
    logs = np.random.default_rng(0).uniform(-3, 5, 300)
    net = BayesNet((Variable("a", tuple(range(300))),), None, (CPD((), logs[None], Float(64)),))
    circuit = compile_circuit(net)
    density = integer_density(circuit)
    assert density.levels is None
    assert all(codes.min() >= 0 and codes.max() < 2**16 for codes in density.codes)
    X = np.arange(-1, 300)[:, None]
    found = np.ldexp(integer_log_likelihood(circuit, X).astype(float), -density.fraction)
    np.testing.assert_allclose(found, log_likelihood(circuit, X), atol=density.bound)
    assert found[1:].max() - found[1:].min() == pytest.approx(np.ptp(logs), abs=2 * density.bound)


def test_parameters_that_are_all_one():
    net = BayesNet((Variable("a", (0, 1)),), None, (CPD((), np.zeros((1, 2)), Float(64)),))
    density = integer_density(compile_circuit(net))
    assert density.shift == 0
    found = integer_log_likelihood(compile_circuit(net), np.array([[0], [1], [-1]]))
    np.testing.assert_allclose(found / 2.0**density.fraction, np.log([0.5, 0.5, 1.0]), atol=density.bound)


def test_products_of_two_and_three_factors_beside_each_other():
    """(a b + a b) c + a b c, in which the last two products follow each other."""
    kind = [0] * 5 + [1] * 6 + [3, 3, 2, 3, 3, 2]
    leaf = [*range(5), *range(6), *[-1] * 6]
    below = [(0, 5, 7), (1, 6, 8), (11, 12), (2, 13, 9), (3, 5, 8, 10), (14, 15)]
    offsets = np.cumsum([0] * 12 + [len(part) for part in below])
    names = tuple(Variable(name, (0, 1)) for name in "abc")
    table = np.log([0.3, 0.7, 0.6, 0.4, 1.0])
    circuit = Circuit(names, None, kind, offsets, [c for part in below for c in part], leaf, table, Float(64))
    layout = lay_out(circuit)
    assert [len(group.operands) for group in layout.groups if group.kind == TIMES][-2:] == [2, 3]
    X = np.array([[0, 0, 0], [1, 1, 0], [0, 1, 1], [-1, -1, 1], [1, -1, -1], [-1, -1, -1], [0, 1, 0]])
    exact, density = log_likelihood(circuit, X), integer_density(circuit)
    found = integer_log_likelihood(circuit, X)
    assert found[-1] == ZERO
    np.testing.assert_allclose(found[:-1] / 2.0**density.fraction, exact[:-1], atol=density.bound)


def test_slots_are_used_again_by_hand():
    """A group takes the lowest slots that are free after the last use of what was there, also if they just suffice."""
    assert _allocate([2, 2, 2], [1, 2, 2]) == ([0, 2, 0], 4)
    assert _allocate([2, 2, 3], [1, 2, 2]) == ([0, 2, 4], 7)
    assert _allocate([2, 1, 2, 1], [3, 2, 3, 3]) == ([0, 2, 3, 2], 5)


def test_variables_of_one_state_have_a_bound_too():
    net = BayesNet((Variable("a", (0,)),), None, (CPD((), np.array([[0.0]]), Float(64)),))
    density = integer_density(compile_circuit(net))
    assert density.layout.groups == ()
    assert density.bound == 2.0 ** (-density.fraction - 1)
