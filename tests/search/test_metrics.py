"""The metrics of a search, against scikit-learn and by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, log_loss, roc_auc_score

from tinybayes.model import Dataset, Variable
from tinybayes.search.measure import METRICS, Measure, effective, measured, quality


@st.composite
def scored_rows(draw):
    """Posteriors with ties, classes that all occur, and weights, some of them zero."""
    classes = draw(st.integers(2, 4))
    rows = draw(st.integers(4 * classes, 60))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    p = np.round(random.dirichlet(np.ones(classes), rows), 1) + 0.05
    y = np.concatenate([np.repeat(np.arange(classes), 2), random.integers(classes, size=rows - 2 * classes)])
    weight = random.integers(0, 4, rows).astype(float)
    weight[: 2 * classes] += 1  # every class counts
    p = np.exp(np.log(p / p.sum(axis=1, keepdims=True)))  # so that logarithms have the same ties
    return p, y, draw(st.sampled_from([None, weight]))


@settings(max_examples=60, deadline=None)
@given(scored_rows())
def test_metrics_are_those_of_scikit_learn(case):
    p, y, weight = case
    label = p.argmax(axis=1)
    if weight is not None:  # scikit-learn counts a label of rows that weigh nothing as a class
        p, y, label, weight = p[weight > 0], y[weight > 0], label[weight > 0], weight[weight > 0]
    area = {"sample_weight": weight} | ({} if p.shape[1] == 2 else {"multi_class": "ovr", "average": "macro"})
    expected = {
        "error": 1 - accuracy_score(y, label, sample_weight=weight),
        "balanced": 1 - balanced_accuracy_score(y, label, sample_weight=weight),
        "f1": 1 - f1_score(y, label, average="macro", sample_weight=weight),
        "logloss": log_loss(y, p, sample_weight=weight),
        "auc": 1 - roc_auc_score(y, p[:, 1] if p.shape[1] == 2 else p, **area),
    }
    for name, value in expected.items():
        found = measured(np.log(p), y, weight, Measure(name))
        assert found.value == pytest.approx(value, abs=1e-9), name
        assert found.wrong == pytest.approx(expected["error"])
        assert found.loss == pytest.approx(expected["logloss"])
        assert found.deviation is None or found.deviation > 0


def test_costs_are_those_of_the_labels_by_hand():
    costs = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 7.0], [10.0, 0.5, 0.0]])
    y, label = np.array([0, 0, 1, 2, 2]), np.array([0, 2, 0, 1, 2])
    log_p = np.log(np.eye(3)[label] * 0.9 + 0.1 / 3)
    found = measured(log_p, y, None, Measure("cost", costs))
    assert found.value == pytest.approx((0 + 5 + 2 + 0.5 + 0) / 5)
    weighted = measured(log_p, y, np.array([1.0, 2, 0, 4, 1]), Measure("cost", costs))
    assert weighted.value == pytest.approx((2 * 5 + 4 * 0.5) / 8)
    assert weighted.wrong == pytest.approx(6 / 8)
    assert weighted.deviation == pytest.approx(np.sqrt((1.5**2 * 2 + 2 * 3.5**2 + 4 * 1) / 8 / (64 / 22)))


def test_rows_without_a_class_are_left_out_and_zero_posteriors_lose_thirty():
    rows = Dataset((Variable("a", (0, 1)),), Variable("y", (0, 1)), np.array([[0], [1], [1]]), np.array([0, -1, 0]))
    with np.errstate(divide="ignore"):
        table = np.log([[0.25, 0.75], [0.0, 1.0]])
    found = quality(lambda X: table[X[:, 0]], rows, Measure())
    assert found == (1.0, pytest.approx((-np.log(0.25) + 30) / 2), 1.0, None)


@settings(max_examples=30, deadline=None)
@given(scored_rows())
def test_weights_of_integers_are_repetitions(case):
    p, y, weight = case
    if weight is None:
        return
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    for name in METRICS:
        measure = Measure(name, np.arange(p.shape[1] ** 2).reshape(p.shape[1], -1) + 1.0)
        once = measured(np.log(p), y, weight, measure)
        assert once.value == pytest.approx(measured(np.log(p[again]), y[again], None, measure).value)


def test_effective_rows():
    assert effective(np.full(7, 3.0)) == pytest.approx(7)
    assert effective(np.array([1.0, 0, 0])) == 1
    assert effective(None, 5) == 5


def test_values_are_called_what_they_are():
    assert Measure().say(0.1234) == "12.34 % error"
    assert Measure("auc").say(0.01234) == "1 - AUC 0.01234"
    assert Measure("cost").show(None) == ""
