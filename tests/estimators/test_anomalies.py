"""Anomalies: the rate of false alarms, and which feature is to blame."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tinybayes import AnomalyDetector, CircuitDensity, TinybayesError
from tinybayes.estimators.anomalies import _quantile
from tinybayes.infer import log_conditionals


@pytest.mark.exhaustive
@parametrize_with_checks([AnomalyDetector(hidden_states=2, epochs=3), AnomalyDetector(method="quick")])
def test_scikit_learn_conformance(estimator, check):
    check(estimator)


def usual(rows, seed):
    """Six features that one hidden cause makes agree, in nine of ten cases."""
    generator = np.random.default_rng(seed)
    cause = generator.integers(0, 3, (rows, 1))
    return np.where(generator.random((rows, 6)) < 0.9, cause, generator.integers(0, 3, (rows, 6)))


@pytest.mark.parametrize("method", ["latent", "quick"])
def test_usual_rows_raise_few_alarms_and_others_many(method):
    detector = AnomalyDetector(0.05, method=method, hidden_states=3, epochs=15).fit(usual(4000, 0))
    alarms = (detector.predict(usual(4000, 1)) == -1).mean()
    assert 0.02 < alarms < 0.08
    independent = np.random.default_rng(2).integers(0, 3, (1000, 6))
    assert (detector.predict(independent) == -1).mean() > 0.5
    scores = detector.score_samples(independent)
    np.testing.assert_allclose(detector.decision_function(independent), scores - detector.offset_)
    np.testing.assert_array_equal(detector.predict(independent), np.where(scores < detector.offset_, -1, 1))


def test_the_value_that_does_not_fit_is_to_blame():
    frame = pd.DataFrame(usual(2000, 0), columns=list("abcdef"))
    detector = AnomalyDetector(hidden_states=3, epochs=15).fit(frame)
    odd = pd.DataFrame([[1, 1, 1, 2, 1, 1], [0, 0, 0, 0, 0, 2]], columns=list("abcdef"))
    assert detector.blame(odd).argmin(axis=1).tolist() == [3, 5]
    odd = odd.astype(float)
    odd.iloc[0, 0] = np.nan
    blamed = detector.blame(odd)
    assert np.isnan(blamed[0, 0])
    assert np.nanargmin(blamed[0]) == 3


def test_blame_is_the_exact_conditional():
    X = usual(500, 3)
    density = CircuitDensity(method="latent", hidden_states=2, epochs=3).fit(X)
    rows = X[:20]
    logs = log_conditionals(density.circuit_, rows)
    for v in range(6):
        query, others = np.full_like(rows, -1), rows.copy()
        query[:, v], others[:, v] = rows[:, v], -1
        np.testing.assert_allclose(np.exp(logs[:, v]), density.circuit_.conditional(query, others), rtol=1e-9)


def test_the_threshold_is_a_weighted_quantile():
    scores = np.arange(100.0)[::-1]
    assert _quantile(scores, None, 0.05) == 5.0
    assert (scores < _quantile(scores, None, 0.05)).mean() <= 0.05
    assert _quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 8.0, 1.0]), 0.5) == 1.0
    assert _quantile(np.array([3.0, 1.0, 2.0]), np.array([8.0, 1.0, 1.0]), 0.5) == 3.0


@pytest.mark.parametrize("rate", [0.0, 1.0, -1])
def test_a_bad_rate_is_refused(rate):
    with pytest.raises(TinybayesError, match="false_alarm_rate"):
        AnomalyDetector(rate).fit(usual(100, 0))
