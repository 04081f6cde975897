"""What a log-linear model accepts, and its counts."""

from itertools import product

import numpy as np
import pytest

import zoo
from tinybayes.errors import TinybayesError
from tinybayes.model import CPD, BayesNet, Codebook, DecisionTree, Factor, Float, LogLinear, Variable

A, B = Variable("a", (0, 1)), Variable("b", (0, 1, 2))


def test_counts_are_those_of_the_rows():
    model = LogLinear((A, B), [Factor([1, 0], [0, 1, -1, 2, 0, 1]), Factor([], [3])], [0.5, 1.0, 2.0], [0, 1, 1, 2])
    X = np.array([[0, 0], [1, 0], [0, 1], [1, 2], [1, 2]])
    assert model.features(X).tolist() == [[0, 3], [1, 3], [-1, 3], [1, 3], [1, 3]]
    assert model.counts(X).tolist() == [1, 3, 0, 5]
    assert model.counts(X, np.array([1, 2, 4, 8, 0.5])).tolist() == [1, 10.5, 0, 15.5]
    assert model.class_counts(X).tolist() == [1, 3, 5]
    assert model.log_weights(X).tolist() == [2.5, 3.0, 2.0, 3.0, 3.0]
    assert model.feature_weights.tolist() == [0.5, 1.0, 1.0, 2.0]


def test_equal_models_are_equal():
    one = LogLinear.from_bayes_net(zoo.tree_tan())
    assert one == LogLinear.from_bayes_net(zoo.tree_tan())
    assert one != LogLinear.from_bayes_net(zoo.tan())
    assert one == one.untied()
    assert [f.tree is not None for f in one.factors] == [False, True, False]


@pytest.mark.parametrize("seed", range(3))
def test_networks_with_trees_keep_their_distribution(seed):
    net = zoo.random_net(np.random.default_rng(seed), 4, trees=True, max_parents=3)
    model = LogLinear.from_bayes_net(net)
    X = np.array(list(product(*(range(node.cardinality) for node in net.nodes))))
    wanted = np.zeros(len(X))
    for i, row in enumerate(X.tolist()):
        for node, cpd in enumerate(net.cpds):
            row_of_table = 0
            for parent in cpd.parents:
                row_of_table = row_of_table * net.nodes[parent].cardinality + row[parent]
            if cpd.tree is not None:
                row_of_table = cpd.tree.find(dict(enumerate(row)))
            wanted[i] += cpd.log_parameters[row_of_table, row[node]]
    assert any(factor.tree is not None for factor in model.factors)
    np.testing.assert_allclose(model.log_weights(X), wanted, rtol=1e-12)


def test_factors_differ_in_each_of_their_parts():
    tree = DecisionTree([0, -1, -1], [0, 0, 0], [1, 2], [0, 0, 1])
    one = Factor([0], [0, 1])
    assert one == Factor((0,), np.array([0, 1]))
    for other in (Factor([1], [0, 1]), Factor([0], [0, 2]), Factor([0], [0, 1], tree), "a factor"):
        assert one != other


def test_entries_with_one_level_of_one_codebook_are_tied():
    books = (Codebook((-2.0, -1.0)), Codebook((-3.0, -1.0, -0.5)))
    tables = [([[1, 0]], books[0], ()), ([[2, 0, 2], [1, 1, 1]], books[1], (0,)), ([[0, 0]], books[0], ())]
    cpds = [CPD(parents, np.array(table), book) for table, book, parents in tables] + [
        CPD((), np.array([[-0.5, -1.5]]), Float(64))
    ]
    net = BayesNet((A, B, Variable("c", (0, 1)), Variable("d", (0, 1))), None, cpds)
    model = LogLinear.from_bayes_net(net)
    where = [(cpd.format, level) for cpd in cpds[:3] for level in cpd.table.reshape(-1).tolist()] + [0, 1]
    for i, j in product(range(len(where)), repeat=2):
        assert (model.classes[i] == model.classes[j]) == (where[i] == where[j])
    levels = np.concatenate([cpd.log_parameters.reshape(-1) for cpd in cpds])
    assert model.feature_weights.tolist() == levels.tolist()
    assert len(model.weights) == len(set(where))
    made = LogLinear([A], [Factor([0], [0, 0])], [1.0])
    assert (made.variables, made.factors) == ((A,), (Factor((0,), np.zeros(2, int)),))


@pytest.mark.parametrize(
    ("variables", "factors", "weights", "ties", "message"),
    [
        ((), [], [], None, "distinct names, one at least"),
        ((A, A), [], [], None, "distinct names"),
        ((A, B), [Factor([0, 0], [0, 0, 0, 0])], [1.0], None, "factor 0: expected distinct variables"),
        ((A, B), [Factor([0], [0, 0]), Factor([2], [0])], [1.0], None, "factor 1: expected distinct variables"),
        ((A, B), [Factor([0, 1], [0] * 5)], [1.0], None, "6 entries, one an assignment of the scope, got 5"),
        ((A, B), [Factor([0], [0, 1])], [1.0], None, "features from 0 to 0, got 1"),
        ((A, B), [], [np.inf], None, "weights below infinity"),
        ((A, B), [], [np.nan], None, "weights below infinity"),
        ((A, B), [], [1.0], [0, 1], "classes from 0 to 0, which have a weight, got 1"),
        ((A, B), [], [1.0], [-1], "the class of each feature"),
        ((A, B), [], [1.0], [-1, 0], "the class of each feature"),
        ((A, B), [Factor([-1], [0, 0])], [1.0], None, "distinct variables among 0..1"),
        ((A,) * 30, [], [], None, r"one at least, got \[('a', ){9}'a'\]"),
        ((A, B), [Factor([0], [0], DecisionTree([1, -1], [0, 0], [1, 1, 1], [0, 0]))], [1.0], None, "a test of one of"),
    ],
)
def test_what_is_no_model_is_refused(variables, factors, weights, ties, message):
    with pytest.raises(TinybayesError, match=message):
        LogLinear(variables, factors, np.array(weights), None if ties is None else np.array(ties))


@pytest.mark.parametrize("feature", [[[0]], [], [-2], [-2, 0], [0.5]])
def test_factors_hold_numbers_of_features(feature):
    with pytest.raises(TinybayesError, match=r"factor.*: expected (numbers of features|integers)"):
        Factor([0], np.array(feature))


@pytest.mark.parametrize("X", [[[0, 0, 0]], [[0, -1]], [[0, 3]], [[0.0, 1.0]]])
def test_rows_must_be_complete(X):
    model = LogLinear((A, B), [Factor([0], [0, 0])], [1.0])
    for ask in (model.features, model.log_weights, model.counts):
        with pytest.raises(TinybayesError, match=r"rows.*: expected"):
            ask(np.array(X))
