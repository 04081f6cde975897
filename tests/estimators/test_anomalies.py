"""Anomalies: the rate of false alarms, and which feature is to blame."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tinybayes import AnomalyDetector, CircuitDensity, TinybayesError, export, load, save
from tinybayes.deploy.files.native import load_metadata
from tinybayes.infer import compile_circuit, log_conditionals
from tinybayes.infer.alarm import from_metadata, least_probable, quantile
from zoo import sprinkler


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


def test_the_threshold_is_a_weightedquantile():
    scores = np.arange(100.0)[::-1]
    assert quantile(scores, None, 0.05) == 5.0
    assert (scores < quantile(scores, None, 0.05)).mean() <= 0.05
    assert quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 8.0, 1.0]), 0.5) == 1.0
    assert quantile(np.array([3.0, 1.0, 2.0]), np.array([8.0, 1.0, 1.0]), 0.5) == 3.0


@pytest.mark.parametrize("method", ["latent", "quick"])
def test_a_state_that_was_never_seen_raises_the_alarm_and_a_gap_does_not(method):
    frame = pd.DataFrame(usual(1000, 4), columns=list("abcdef")).astype(object)
    frame["a"] = frame["a"].map(["low", "middle", "high"].__getitem__)
    detector = AnomalyDetector(hidden_states=3, epochs=5, method=method).fit(frame)
    likely = frame.iloc[[int(detector.score_samples(frame).argmax())] * 4].reset_index(drop=True)
    likely.loc[1, "a"], likely.loc[2, "a"], likely.loc[3, "b"] = "never", None, 17
    assert detector.predict(likely).tolist() == [1, -1, 1, -1]
    scores = detector.score_samples(likely)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores[1], detector.offset_ - detector.alarm_.unseen)
    assert detector.alarm_.unseen == pytest.approx(np.log(1001))
    blamed = detector.blame(likely)
    assert np.isneginf(blamed[1, 0])
    assert np.isnan(blamed[2, 0])
    assert np.isneginf(blamed[3, 1])
    likely.loc[1, "c"] = "what"
    np.testing.assert_allclose(detector.decision_function(likely)[1], -2 * detector.alarm_.unseen)


def test_levels_tie_the_parameters_before_the_threshold_is_chosen():
    X = usual(1000, 5)
    for method, more in (("latent", {"hidden_states": 3, "epochs": 5}), ("quick", {"edge_price": 0.01})):
        detector = AnomalyDetector(0.1, method=method, levels=8, **more).fit(X)
        assert 4 <= len(np.unique(detector.circuit_.log_parameters)) <= 8
    assert 0.02 < (detector.predict(usual(1000, 6)) == -1).mean() < 0.16  # few levels make rows with equal scores
    assert detector.model_ is detector.circuit_
    same = AnomalyDetector(hidden_states=1, epochs=2, levels=256).fit(X)  # fewer parameters than levels
    assert len(np.unique(same.circuit_.log_parameters)) <= 256


def test_a_detector_is_saved_with_its_alarm_and_exported(tmp_path):
    detector = AnomalyDetector(0.05, hidden_states=2, epochs=3).fit(usual(600, 7))
    save(detector, tmp_path / "odd.tb", metadata={"by": "hand"})
    metadata = load_metadata(tmp_path / "odd.tb")
    assert metadata["by"] == "hand"
    assert from_metadata(metadata) == detector.alarm_
    files = export(detector, name="odd")
    assert files == export(load(tmp_path / "odd.tb"), name="odd", alarm=detector.alarm_)
    assert "odd_alarm_raw" in files["odd.h"]
    density = CircuitDensity(method="latent", hidden_states=2, epochs=3).fit(usual(300, 8))
    assert "odd_log_likelihood" in export(density, name="odd")["odd.h"]
    assert "odd_alarm" not in export(density, name="odd")["odd.h"]
    assert "odd_posterior" in export(detector, name="odd", query="x0")["odd.h"]


@pytest.mark.parametrize("rate", [0.0, 1.0, -1])
def test_a_bad_rate_is_refused(rate):
    with pytest.raises(TinybayesError, match="false_alarm_rate"):
        AnomalyDetector(rate).fit(usual(100, 0))


def test_no_value_is_to_blame_where_nothing_is_known_or_the_row_is_impossible():
    circuit = compile_circuit(sprinkler())
    X = np.zeros((4, len(circuit.nodes)), dtype=np.int32)
    X[1] = -1
    X[2] = _impossible(circuit)
    unseen = np.zeros(X.shape, dtype=bool)
    unseen[3, 2:] = True
    X[unseen] = -1
    expected = log_conditionals(circuit, X[:1]).argmin()
    assert least_probable(circuit, X, unseen).tolist() == [expected, -1, -1, 2]
    assert least_probable(circuit, X[:0], unseen[:0]).shape == (0,)


def _impossible(circuit):
    rows = np.array(list(itertools.product(*(range(n) for n in circuit.cardinalities))), dtype=np.int32)
    return rows[circuit.log_likelihood(rows) == -np.inf][0]
