"""What a log-linear model accepts, and its counts."""

import numpy as np
import pytest

import zoo
from tinybayes.errors import TinybayesError
from tinybayes.model import DecisionTree, Factor, LogLinear, Variable

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
        ((A, B), [], [1.0], [0, 1], "classes from 0 to 0"),
        ((A, B), [], [1.0], [-1], "the class of each feature"),
        ((A, B), [Factor([0], [0], DecisionTree([1, -1], [0, 0], [1, 1, 1], [0, 0]))], [1.0], None, "a test of one of"),
    ],
)
def test_what_is_no_model_is_refused(variables, factors, weights, ties, message):
    with pytest.raises(TinybayesError, match=message):
        LogLinear(variables, factors, np.array(weights), None if ties is None else np.array(ties))


@pytest.mark.parametrize("feature", [[[0]], [], [-2], [0.5]])
def test_factors_hold_numbers_of_features(feature):
    with pytest.raises(TinybayesError, match="factor: expected numbers of features"):
        Factor([0], np.array(feature))


@pytest.mark.parametrize("X", [[[0, 0, 0]], [[0, -1]], [[0, 3]], [[0.0, 1.0]]])
def test_rows_must_be_complete(X):
    model = LogLinear((A, B), [Factor([0], [0, 0])], [1.0])
    for ask in (model.features, model.log_weights, model.counts):
        with pytest.raises(TinybayesError, match="rows: expected"):
            ask(np.array(X))
