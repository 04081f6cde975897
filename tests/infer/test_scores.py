import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gaps
import oracle
from strategies import random_data
from tinybayes.compress import quantize
from tinybayes.errors import TinybayesError
from tinybayes.infer import class_scores, integer_scores, normalize_scores, predict_codes, score_blocks
from tinybayes.infer.integers import gap_arithmetic
from tinybayes.learn import chow_liu, learn_classifier, maximum_likelihood, naive_bayes
from tinybayes.model import CPD, BayesNet, Codebook, DecisionTree, Fixed, Float, Structure

FORMATS = [Float(64), Float(32), Fixed(4, 3), Fixed(6, -1), Codebook((-5.0, -2.0, -1.0, -0.1))]


@given(st.integers(0, 10_000), st.sampled_from(["naive", "chow-liu", "random"]), st.sampled_from(FORMATS))
def test_scores_equal_looking_entries_up(seed, structure, number_format):
    data = random_data(seed)
    net = learn_classifier(data, structure=structure, number_format=number_format, seed=seed)
    found = class_scores(net, data.X)
    np.testing.assert_allclose(found, oracle.class_scores(net, data.X), rtol=1e-12)
    np.testing.assert_array_equal(predict_codes(net, data.X), found.argmax(axis=1))


@given(st.integers(0, 10_000), st.sampled_from(["naive", "chow-liu", "random"]), st.sampled_from(FORMATS))
def test_missing_values_are_summed_out(seed, structure, number_format):
    data = random_data(seed, missing=0.4)
    net = learn_classifier(data, structure=structure, number_format=number_format, seed=seed)
    away = np.abs(class_scores(net, data.X) - oracle.class_scores(net, data.X)).max(axis=1)
    rule = gap_arithmetic(net)  # None for floats, which are exact
    assert (rule is None) == isinstance(number_format, Float)
    error, rounding = (0.0, 0.0) if rule is None else (rule.error, len(net.cpds) * 2.0 ** -(rule.fraction + 1))
    assert (away <= [1e-9 + rounding + error * gaps.additions(net, row) for row in data.X]).all()


def test_a_missing_value_gives_the_posterior_not_the_best_completion():
    # x1 depends on x0. With x0 unknown the best single completion favours class 0, the sum class 1.
    data = random_data(0, features=2, classes=2)
    variables = [type(v)(v.name, (0, 1, 2)) for v in data.variables]
    log = np.log
    prior = CPD((), log([[0.5, 0.5]]), Float(64))
    x0 = CPD((2,), log([[0.8, 0.1, 0.1], [1 / 3, 1 / 3, 1 / 3]]), Float(64))
    rows = [[0.5, 0.25, 0.25], [0.9, 0.05, 0.05]] + [[0.02, 0.49, 0.49], [0.9, 0.05, 0.05]] * 2
    net = BayesNet(variables, data.target, (x0, CPD((0, 2), log(rows), Float(64)), prior))
    scores = class_scores(net, np.array([[-1, 0]]))[0]
    np.testing.assert_allclose(np.exp(scores), [0.5 * (0.4 + 0.002 * 2), 0.5 * 0.9])
    assert scores.argmax() == 1
    best = max((oracle.log_joint(net, [v, 0, c]), c) for v in range(3) for c in range(2))
    assert best[1] == 0


@given(st.integers(0, 1000))
def test_networks_of_any_shape_are_scored(seed):
    data = random_data(seed, features=5)
    # x3 has three parents, x4 does not depend on the class, the class depends on x0.
    structure = Structure(((), (5,), (1, 5), (0, 5, 2), (3,), (0,)))
    net = maximum_likelihood(data, structure, number_format=Float(64))
    np.testing.assert_allclose(class_scores(net, data.X), oracle.class_scores(net, data.X), rtol=1e-12)


def with_trees(data):
    """A network whose last feature is reached through a tree that tests another feature, then the class."""
    last = len(data.variables) - 1
    net = maximum_likelihood(data, naive_bayes(data), number_format=Float(64))
    states, classes = data.variables[0].cardinality, data.target.cardinality
    inner, leaves = 1 + (states > 1), states - (states > 1)
    # The root sends value 0 to node 1 and the others to leaves; node 1 asks the class.
    split = [0, last + 1] + [-1] * (leaves + classes) if states > 1 else [last + 1] + [-1] * classes
    if states > 1:
        children = [1, *range(2, 2 + leaves), *range(2 + leaves, 2 + leaves + classes)]
        first = [0, states] + [0] * (leaves + classes)
        row = [0, 0, *range(leaves + classes)]
    else:
        children, first, row = list(range(1, 1 + classes)), [0] * (1 + classes), [0, *range(classes)]
    tree = DecisionTree(*map(np.array, (split, first, children, row)))
    rows = len([s for s in split if s < 0])
    generator = np.random.default_rng(inner)
    table = np.log(generator.dirichlet(np.ones(data.variables[last].cardinality), size=rows))
    cpds = list(net.cpds)
    cpds[last] = CPD((0, last + 1), table, Float(64), tree)
    return BayesNet(data.variables, data.target, tuple(cpds))


@given(st.integers(0, 1000), st.sampled_from([Float(64), Fixed(4, 4)]))
def test_tree_distributions_are_scored(seed, number_format):
    data = random_data(seed)
    net = quantize(with_trees(data), number_format)
    np.testing.assert_allclose(class_scores(net, data.X), oracle.class_scores(net, data.X), rtol=1e-12)


@given(st.integers(0, 1000), st.sampled_from([Fixed(3, 1), Fixed(5, -2), Fixed(8, 8)]))
def test_integer_scores_are_sums_of_codes(seed, number_format):
    data = random_data(seed)
    net = learn_classifier(data, number_format=number_format)
    sums = integer_scores(net, data.X)
    assert sums.dtype == np.int64
    np.testing.assert_array_equal(-sums * 2.0**-number_format.fraction, class_scores(net, data.X))


def test_probabilities_survive_many_features():
    # In linear space 1,500 features underflow to zero.
    data = random_data(1, features=1500, rows=30)
    net = learn_classifier(data, structure="naive")
    posterior = np.exp(normalize_scores(class_scores(net, data.X)))
    np.testing.assert_allclose(posterior.sum(axis=1), 1)
    assert (predict_codes(net, data.X) == data.y).mean() > 0.9


def test_impossible_rows_become_uniform():
    np.testing.assert_allclose(normalize_scores(np.full((1, 4), -np.inf)), np.log(0.25))
    np.testing.assert_allclose(np.exp(normalize_scores(np.array([[0.0, -np.inf]]))), [[1, 0]])


def test_blocks_cover_all_rows():
    data = random_data(2, rows=1000)
    net = learn_classifier(data)
    blocks = list(score_blocks(net, data.X, rows=300))
    assert [start for start, _ in blocks] == [0, 300, 600, 900]
    np.testing.assert_array_equal(np.concatenate([s for _, s in blocks]), class_scores(net, data.X))


def test_a_million_rows_need_little_memory():
    data = random_data(3, rows=1000, features=8, classes=8)
    net = learn_classifier(data)
    X = np.tile(data.X, (1000, 1))
    predict_codes(net, X[:10])
    tracemalloc.start()
    labels = predict_codes(net, X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(labels[:1000], labels[-1000:])
    assert peak < 4 * len(X) + 20e6  # the labels themselves, and blocks


def test_bad_codes_are_refused():
    data = random_data(4)
    net = learn_classifier(data)
    for X, message in [
        (data.X[:, :2], "4 columns"),
        (data.X.astype(float), "integer codes"),
        (np.full_like(data.X, 99), "codes from -1"),
        (np.full_like(data.X, -2), "codes from -1"),
    ]:
        with pytest.raises(TinybayesError, match=message):
            class_scores(net, X)
    with pytest.raises(TinybayesError, match="complete rows"):
        integer_scores(quantize(net, Fixed(3, 3)), np.full_like(data.X, -1))
    with pytest.raises(TinybayesError, match="one Fixed format"):
        integer_scores(net, data.X)
    with pytest.raises(TinybayesError, match="class variable"):
        class_scores(
            BayesNet(net.variables[:1], None, (CPD((), np.zeros((1, net.variables[0].cardinality)), Float()),)), data.X
        )


def test_missing_values_in_other_structures_are_refused_not_guessed():
    data = random_data(6)
    net = maximum_likelihood(data, Structure(((4,), (0, 4), (0, 1, 4), (4,), ())))
    with pytest.raises(TinybayesError, match="at most one feature as parents"):
        class_scores(net, np.full((1, 4), -1))
    assert chow_liu(data) is not None
