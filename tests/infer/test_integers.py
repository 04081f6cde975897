import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gaps
import oracle
from strategies import random_data
from tinybayes.compress import quantize
from tinybayes.errors import TinybayesError
from tinybayes.infer import class_scores, integer_log_joint, integer_scores, normalize_scores, predict_codes
from tinybayes.infer.integers import LARGEST, PRECISE, GapArithmetic, _gain, gap_arithmetic, integer_levels
from tinybayes.learn import learn_classifier, maximum_likelihood
from tinybayes.model import CPD, BayesNet, Codebook, Fixed, Float, Structure, Variable

fixed = st.builds(lambda bits, fraction: Fixed(bits - fraction, fraction), st.integers(1, 8), st.integers(-4, 12))
hundredths = st.lists(st.integers(-900, 40), min_size=1, max_size=9, unique=True)
levels = hundredths.map(lambda values: [value / 100 for value in sorted(values)])
codebooks = st.builds(lambda v, zero: Codebook(([-np.inf] if zero else []) + v), levels, st.booleans())
forests = st.builds(
    gaps.random_forest,
    st.integers(0, 10_000),
    st.sampled_from(gaps.SHAPES),
    fixed | codebooks,
    features=st.integers(1, 5),
    states=st.sampled_from([(1, 1), (1, 2), (1, 4), (2, 6)]),
    classes=st.integers(2, 4),
)
SIZES = [  # one at a time, so that the tables stay small
    {"shape": "naive", "states": (300, 300), "features": 2, "classes": 2},
    {"shape": "roots", "states": (1, 40), "features": 3, "classes": 3},
    {"shape": "chain", "states": (1, 3), "features": 12, "classes": 30},
    {"shape": "star", "states": (1, 9), "features": 10, "classes": 2},
]
FORMS = [Fixed(1, 0), Fixed(6, -2), Fixed(3, 3), Fixed(1, 7), Fixed(4, 12), Codebook((-np.inf, -7.3, -1.1, -0.2))]


def check(net, seed=0, count=12):
    """Compare with plain integers to the bit, and with the sum over all completions within the stated error."""
    X = gaps.rows_with_gaps(net, seed, count)
    sums, fraction = integer_log_joint(net, X, gaps=True)
    expected, unit = gaps.integer_scores(net, X)
    np.testing.assert_array_equal(sums, expected)
    assert fraction == unit
    return X, sums, fraction


@given(forests, st.integers(0, 10_000))
@settings(max_examples=60)
def test_scores_with_gaps_are_those_of_plain_integers_and_near_the_sum_over_completions(net, seed):
    X, sums, fraction = check(net, seed)
    rule, exact = gap_arithmetic(net), oracle.class_scores(net, X)
    rounding = 0 if isinstance(net.cpds[0].format, Fixed) else len(net.cpds) * 2.0 ** -(fraction + 1)
    bound = [gaps.additions(net, row) * rule.error + rounding + 1e-9 for row in X]
    possible = np.isfinite(exact)
    np.testing.assert_array_equal(sums >= rule.lowest, possible)
    away = np.abs(np.where(possible, np.ldexp(sums.astype(float), -fraction) - np.where(possible, exact, 0), 0))
    assert (away.max(axis=1) <= bound).all()


@given(forests, st.integers(0, 10_000))
@settings(max_examples=40)
def test_labels_are_the_arg_max_of_scores_and_scores_are_those_of_devices(net, seed):
    X = gaps.rows_with_gaps(net, seed)
    sums, fraction = integer_log_joint(net, X, gaps=True)
    scores, incomplete = class_scores(net, X), (X < 0).any(axis=1)
    np.testing.assert_array_equal(predict_codes(net, X), scores.argmax(axis=1))
    finite = np.isfinite(scores) & incomplete[:, None]
    np.testing.assert_array_equal(scores[finite], np.ldexp(sums[finite].astype(float), -fraction))
    some = finite.any(axis=1)
    np.testing.assert_array_equal(scores[some].argmax(axis=1), sums[some].argmax(axis=1))


@given(forests, st.integers(0, 10_000))
@settings(max_examples=40)
def test_complete_rows_are_shifted_sums(net, seed):
    X = np.abs(gaps.rows_with_gaps(net, seed))
    X = np.minimum(X, [v.cardinality - 1 for v in net.variables])
    shifted, fraction = integer_log_joint(net, X, gaps=True)
    sums, coarse = integer_log_joint(net, X)
    rule = gap_arithmetic(net)
    assert (rule.fraction, rule.fraction - rule.shift) == (fraction, coarse)
    np.testing.assert_array_equal(shifted, sums << rule.shift)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: size["shape"])
def test_many_states_and_many_classes(form, size):
    check(gaps.random_forest(7, form=form, **size), count=4)


def test_a_hand_worked_sum():
    # A missing feature of two states with the entries 0 and -1/4 below one class: T[1] = rint(1024 * 0.5759) = 590.
    variables = random_data(0, features=1, classes=2)
    feature = type(variables.variables[0])("x", (0, 1))
    cpds = (CPD((1,), np.array([[0, 1], [3, 3]]), Fixed(4, 2)), CPD((), np.array([[0, 2]]), Fixed(4, 2)))
    net = BayesNet((feature,), variables.target.__class__("class", ("a", "b")), cpds)
    sums, fraction = integer_log_joint(net, np.array([[-1], [0]]), gaps=True)
    assert fraction == 10
    np.testing.assert_array_equal(sums, [[590, -512 - 768 + 710], [0, -768 - 512]])
    np.testing.assert_array_equal(class_scores(net, np.array([[-1]])), sums[:1] / 1024)


@pytest.mark.parametrize("form", [Fixed(1, 0), Fixed(3, 3), Fixed(8, -4), Fixed(2, 14), Codebook((-8.0, -0.1, 0.4))])
def test_the_largest_sums_fit_in_32_bits(form):
    # Sums of equal codes are the largest that there are: all values are missing, and no term is below the others.
    for code in {0, 2**form.bits - 1 if isinstance(form, Fixed) else len(form.values) - 1}:
        net = gaps.random_forest(1, "star", form, features=30, states=(20, 20), classes=2)
        net = BayesNet(
            net.variables, net.target, tuple(CPD(c.parents, np.full_like(c.table, code), form) for c in net.cpds)
        )
        X = np.full((1, 30), -1)
        assert gap_arithmetic(net) is not None
        sums, _ = integer_log_joint(net, X, gaps=True)
        np.testing.assert_array_equal(sums, gaps.integer_scores(net, X)[0])
        assert np.abs(sums).max() <= LARGEST


def test_levels_leave_room_for_sums_over_many_features():
    # 800 features of 20 states: summed out, they add up to 2,400 nats, as much as the largest levels of 500 tables.
    book = Codebook((-5.0, -0.1))
    net = gaps.random_forest(1, "naive", book, features=800, states=(20, 20), classes=2)
    assert gap_arithmetic(net) is not None
    same = BayesNet(net.variables, net.target, tuple(CPD(c.parents, np.ones_like(c.table), book) for c in net.cpds))
    sums, fraction = integer_log_joint(same, np.full((1, 800), -1), gaps=True)
    exact = 800 * np.log(20) - 0.1 * 801
    assert np.abs(np.ldexp(sums[0].astype(float), -fraction) - exact).max() < 800 * 19 * gap_arithmetic(same).error
    assert sums.max() <= LARGEST


def test_products_of_the_interpolation_fit_in_32_bits():
    # Sums of two tables fit, but not the product of the interpolation: 0.117 * 2**27 * 255.
    small = {"features": 1, "states": (2, 2), "classes": 2}
    assert gap_arithmetic(gaps.random_forest(1, "naive", Fixed(1, 27), **small)) is None
    net = gaps.random_forest(1, "naive", Fixed(1, 26), **small)
    assert gap_arithmetic(net) is not None
    check(net)


def test_formats_whose_sums_could_exceed_32_bits_are_summed_in_floats():
    for form in (Fixed(2, 27), Fixed(4, 26), Fixed(-960, 980)):
        net = gaps.random_forest(3, "tree", form, features=9, states=(3, 3))
        assert gap_arithmetic(net) is None
        X = gaps.rows_with_gaps(net, 0, count=3)
        X[:, 5:] = np.maximum(X[:, 5:], 0)
        np.testing.assert_allclose(class_scores(net, X), oracle.class_scores(net, X), rtol=1e-12)
        with pytest.raises(TinybayesError, match=r"sums below 2\*\*31"):
            integer_log_joint(net, X, gaps=True)


def test_extreme_fractions_do_not_overflow():
    net = gaps.random_forest(3, "tree", Fixed(990, -985), states=(2, 4))
    X = gaps.rows_with_gaps(net, 0)
    check(net)
    assert np.isfinite(class_scores(net, X)).all()


@given(st.integers(0, 1000), codebooks, st.sampled_from([1, 4, 40]))
def test_rounded_levels_have_room_for_all_sums(seed, book, features):
    net = gaps.random_forest(seed, "naive", book, features=features, states=(1, 30))
    rounded, fraction = integer_levels(net)
    values = np.array(book.values)
    finite, tables = np.isfinite(values), features + 1
    assert fraction <= 20
    assert (np.abs(rounded[finite] - np.ldexp(values[finite], fraction)) <= 0.5).all()
    assert tables * int(np.abs(rounded).max()) <= LARGEST
    if not finite.all():
        low, high = (int(b) for b in (rounded[finite].min(initial=0), rounded[finite].max(initial=0)))
        assert int(rounded[0]) + (tables - 1) * high < tables * low


def test_impossible_values_stay_impossible():
    # Class a forbids state 0 of both features; a row with one of them missing keeps the verdict of the other.
    variables = random_data(0, features=2, classes=2)
    first, second = (type(v)(v.name, (0, 1)) for v in variables.variables)
    book = Codebook((-np.inf, -1.0, 0.0))
    table = np.array([[0, 2], [1, 1]])
    cpds = (CPD((2,), table, book), CPD((2,), table, book), CPD((), np.array([[1, 1]]), book))
    net = BayesNet((first, second), variables.target, cpds)
    X = np.array([[-1, 0], [-1, 1], [-1, -1]])
    scores = class_scores(net, X)
    np.testing.assert_array_equal(np.isneginf(scores), np.isneginf(oracle.class_scores(net, X)))
    assert np.isneginf(scores).any()
    np.testing.assert_array_equal(predict_codes(net, X), [1, 0, 0])
    nowhere = BayesNet((first, second), variables.target, (CPD((2,), np.zeros_like(table), book), *cpds[1:]))
    np.testing.assert_allclose(np.exp(normalize_scores(class_scores(nowhere, X))), 0.5)


def test_networks_without_integer_gaps_say_so():
    data = random_data(6, missing=0.3)
    net = learn_classifier(data, structure="naive")
    assert gap_arithmetic(net) is None
    mixed = BayesNet(net.variables, net.target, (*quantize(net, Fixed(3, 3)).cpds[:-1], net.cpds[-1]))
    assert gap_arithmetic(mixed) is None
    np.testing.assert_allclose(class_scores(mixed, data.X), oracle.class_scores(mixed, data.X), rtol=1e-12)
    wide = quantize(maximum_likelihood(data, Structure(((4,), (0, 4), (0, 1, 4), (4,), ()))), Fixed(3, 3))
    assert gap_arithmetic(wide) is None
    for model, message in [
        (net, "one Fixed format or one codebook"),
        (mixed, "one number format"),
        (wide, "at most one feature as parents"),
    ]:
        with pytest.raises(TinybayesError, match=message):
            integer_log_joint(model, data.X, gaps=True)
    with pytest.raises(TinybayesError, match="complete rows"):
        integer_log_joint(quantize(net, Fixed(3, 3)), data.X)
    with pytest.raises(TinybayesError, match="one codebook"):
        integer_levels(quantize(net, Fixed(3, 3)))


def test_many_rows_are_scored_as_few():
    net = gaps.random_forest(5, "tree", Fixed(4, 4))
    X = gaps.rows_with_gaps(net, 3, count=10_000)
    sums, _ = integer_log_joint(net, X, gaps=True)
    np.testing.assert_array_equal(sums[-20:], integer_log_joint(net, X[-20:], gaps=True)[0])
    np.testing.assert_array_equal(class_scores(net, X)[-20:], class_scores(net, X[-20:]))
    complete = (X >= 0).all(axis=1)
    np.testing.assert_array_equal(-integer_scores(net, X[complete]), sums[complete] >> gap_arithmetic(net).shift)


def test_what_sums_over_states_may_add_by_hand():
    """Features of 2, 3 and 5 states: 30 terms, 1 + 2 + 4 additions."""
    features = tuple(Variable(f"x{k}", tuple(range(k))) for k in (2, 3, 5))
    cpds = tuple(CPD((), np.zeros((1, k)), Float(64)) for k in (2, 3, 5, 2))
    nats, units = _gain(BayesNet(features, Variable("y", (0, 1)), cpds))
    assert nats == pytest.approx(np.log(30) + 7 * (1 / 512 + 2.0**-11))
    assert units == 7 * 1.5


def test_the_error_of_an_addition_by_hand():
    """Interpolation, roundings of a unit and a half, and a distance that is cut off where units are finer."""
    table, steps = np.zeros(1, dtype=np.int64), (6, PRECISE, PRECISE + 1, 20)
    found = [GapArithmetic(fraction, 0, table, None, 0).error for fraction in steps]
    cut = [0.0, 0.0, 2.0**-11, 2.0**-11]
    assert found == [1 / 512 + more + 1.5 * 2.0**-fraction for fraction, more in zip(steps, cut, strict=True)]
