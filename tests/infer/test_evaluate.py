import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix, log_loss

import oracle
from strategies import random_data
from tinybayes import read_dataset
from tinybayes.errors import TinybayesError
from tinybayes.infer import class_scores, evaluate, normalize_scores
from tinybayes.learn import learn_classifier
from tinybayes.model import Dataset


@pytest.mark.parametrize("weighted", [False, True])
def test_against_scikit_learn(weighted):
    data = random_data(3, weighted=weighted)
    net = learn_classifier(data)
    result = evaluate(net, data)
    scores = oracle.class_scores(net, data.X)
    posterior = np.exp(normalize_scores(scores))
    labels = range(net.target.cardinality)
    expected = confusion_matrix(data.y, scores.argmax(axis=1), labels=labels, sample_weight=data.weight)
    np.testing.assert_allclose(result.confusion, expected)
    assert result.error == pytest.approx(1 - np.trace(expected) / expected.sum())
    assert result.log_loss == pytest.approx(log_loss(data.y, posterior, labels=labels, sample_weight=data.weight))
    mean = np.average(scores[np.arange(len(data)), data.y], weights=data.weight)
    assert result.log_likelihood == pytest.approx(mean)
    assert (result.rows, result.unknown, result.skipped) == (len(data), 0, 0)


def test_batches_gaps_and_rows_without_a_class():
    data = random_data(4, missing=0.3)
    y = np.where(np.arange(len(data)) % 5 == 0, -1, data.y)
    gaps = Dataset(data.variables, data.target, data.X, y)
    net = learn_classifier(gaps)
    whole, parts = evaluate(net, gaps), evaluate(net, [gaps.rows(slice(0, 7)), gaps.rows(slice(7, None))])
    known = y >= 0
    assert whole.rows == parts.rows == known.sum()
    assert whole.skipped == parts.skipped == (~known).sum()
    assert whole.unknown == parts.unknown == (data.X[known] < 0).mean()
    wrong = class_scores(net, data.X[known]).argmax(axis=1) != y[known]
    assert whole.error == parts.error == pytest.approx(wrong.mean())
    np.testing.assert_array_equal(whole.confusion, parts.confusion)


def test_blocks_do_not_change_the_result(monkeypatch):
    data = random_data(4, missing=0.3, weighted=True)
    y = np.where(np.arange(len(data)) // 3 % 3 == 0, -1, data.y)  # blocks without, with some and with all classes
    gaps = Dataset(data.variables, data.target, data.X, y, data.weight)
    net = learn_classifier(gaps)
    whole = evaluate(net, gaps)
    monkeypatch.setattr(sys.modules["tinybayes.infer.evaluate"], "BLOCK", 3)
    parts = evaluate(net, gaps)
    np.testing.assert_allclose(parts.confusion, whole.confusion)
    assert parts.log_loss == pytest.approx(whole.log_loss)
    assert (parts.rows, parts.skipped, parts.unknown) == (whole.rows, whole.skipped, whole.unknown)


def test_data_with_cut_points_of_its_own_are_refused():
    """Codes mean something only through their variables: a test table must be read with those of the model."""
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, 400)
    table = pd.DataFrame({"x": y + generator.normal(size=400), "y": y})
    net = learn_classifier(read_dataset(table[:200], target="y"))
    with pytest.raises(TinybayesError, match="the variables of the network"):
        evaluate(net, read_dataset(table[200:], target="y"))
