"""The neural networks' face to scikit-learn."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from cases import WHOLE
from tinybayes import BayesNetClassifier, QuantizedNetClassifier, TinybayesError, model_cost

SMALL = {"hidden": 8, "random_state": 0}


def expected_failures(estimator):
    """Mini-batches and batch normalisation see rows, not weights: two equal rows are not one of weight 2."""
    reason = "training by mini-batches"
    names = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    return dict.fromkeys(names, reason)


@WHOLE
@pytest.mark.exhaustive
@parametrize_with_checks([QuantizedNetClassifier(hidden=8, epochs=60)], expected_failed_checks=expected_failures)
def test_scikit_learn_conformance(estimator, check):
    check(estimator)


def test_few_bits_learn_iris():
    X, y = load_iris(return_X_y=True)
    for bits in (1, 4):
        assert cross_val_score(QuantizedNetClassifier(bits=bits, **SMALL), X, y, cv=3).mean() > 0.85


def test_convolution_reads_digits_within_its_budget():
    X, y = load_digits(return_X_y=True)
    net = QuantizedNetClassifier("conv", bits=3, budget_bits=16_000, epochs=60, random_state=0).fit(X[::2], y[::2])
    assert net.score(X[1::2], y[1::2]) > 0.93
    assert model_cost(net.model_).bits <= 17_000


def test_budget_of_operations():
    X, y = load_iris(return_X_y=True)
    net = QuantizedNetClassifier(budget_ops=100, epochs=2, random_state=0).fit(X, y)
    assert abs(model_cost(net.model_).operations - 100) <= 8  # one unit more or less is 8 operations


def test_text_enters_as_indicators_and_gaps_as_nothing():
    generator = np.random.default_rng(0)
    import pandas as pd

    y = generator.integers(0, 3, 300)
    frame = pd.DataFrame({"word": np.array(["red", "green", "blue"])[y], "noise": generator.normal(size=300)})
    frame.loc[::7, "noise"] = np.nan
    net = QuantizedNetClassifier(**SMALL).fit(frame, y)
    assert net.score(frame, y) == 1.0
    assert net.predict_proba(pd.DataFrame({"word": [None], "noise": [np.nan]})).shape == (1, 3)


def test_both_widths_and_budget_are_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TinybayesError, match="either hidden units or a budget"):
        QuantizedNetClassifier(hidden=4, budget_bits=1000).fit(X, y)


@pytest.mark.parametrize(
    "classifier", [QuantizedNetClassifier(epochs=0), BayesNetClassifier(training="hybrid", epochs=0)]
)
def test_no_epochs_are_refused(classifier):
    with pytest.raises(TinybayesError, match="epochs: expected 1 to 1000000000, got 0"):
        classifier.fit(*load_iris(return_X_y=True))
