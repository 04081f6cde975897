"""Temperatures against scipy, margins against trying every one."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from networks import classifier, codebook, every_state
from neural_nets import neural_net, rows_of
from tinybayes.errors import TinybayesError
from tinybayes.infer import class_scores, normalize_scores, predict_codes
from tinybayes.infer.calibration import Calibration, calibrate, calibration_metadata, from_metadata
from tinybayes.model import Dataset, Fixed, Float

MODELS = {
    "fixed": classifier("tree", Fixed(3, 1), classes=4, seed=1),
    "codebook": classifier("naive", codebook(13), classes=3, seed=2),
    "float": classifier("general", Float(32), classes=5, seed=3),
    "zeros": classifier("naive", Float(32), zeros=True, seed=4),
    "net": neural_net((5,), seed=5),
}


def labelled(model, *, right=0.7, seed=0, rows=200):
    """Draw rows whose classes are often those that the model predicts."""
    rng = np.random.default_rng(seed)
    X = (rows_of if hasattr(model, "layers") else every_state)(model, rows=rows)
    drawn = rng.integers(0, model.target.cardinality, len(X))
    y = np.where(rng.random(len(X)) < right, predict_codes(model, X), drawn)
    return Dataset(model.variables, model.target, X, y.astype(np.int32))


@pytest.mark.parametrize("key", MODELS)
def test_the_temperature_minimises_the_log_loss(key):
    model = MODELS[key]
    data = labelled(model)
    scores = class_scores(model, data.X)
    possible = np.isfinite(scores[np.arange(len(data)), data.y])

    def loss(heat):
        log_p = normalize_scores(scores[possible] / np.exp(heat))
        return -log_p[np.arange(possible.sum()), data.y[possible]].mean()

    found = calibrate(model, data)
    best = minimize_scalar(loss, bounds=(np.log(1 / 16), np.log(1024)), method="bounded", options={"xatol": 1e-9})
    assert loss(np.log(found.temperature)) <= best.fun + 1e-6
    if 1 / 16 < found.temperature < 1024:
        # Levels of a codebook were rounded.
        assert found.temperature == pytest.approx(np.exp(best.x), rel=1e-3 if key == "codebook" else 1e-4)


@pytest.mark.parametrize("key", MODELS)
def test_margins_are_the_smallest_that_keep_the_error(key):
    model = MODELS[key]
    data = labelled(model, right=0.8)
    scores = np.sort(class_scores(model, data.X), axis=1)
    with np.errstate(invalid="ignore"):
        margin = np.where(scores[:, -1] > scores[:, -2], scores[:, -1] - scores[:, -2], 0.0)
    if key == "codebook":  # whose levels were rounded: equal margins are equal
        margin = np.round(margin, 4)
    wrong = predict_codes(model, data.X) != data.y
    found = calibrate(model, data, errors=(0.01, 0.05, 0.1, 0.15, 0.5))
    tried = {nats: wrong[margin >= nats].mean() for nats in {0.0, *margin.tolist()}}
    assert found.best == pytest.approx(min(tried.values()))
    for chosen in found.margins:
        exact = min(nats for nats, error in tried.items() if error <= chosen.wanted)
        assert chosen.nats == pytest.approx(exact, abs=1e-4)
        assert chosen.error == pytest.approx(tried[exact])
        assert chosen.rejected == pytest.approx((margin < exact).mean())
    reachable = [e for e in (0.01, 0.05, 0.1, 0.15, 0.5) if e >= found.best]
    assert [chosen.wanted for chosen in found.margins] == reachable


def test_weights_count_as_repeated_rows_and_batches_as_one_table():
    model = MODELS["fixed"]
    data = labelled(model, rows=40)
    weight = np.arange(len(data)) % 3
    repeated = data.rows(np.repeat(np.arange(len(data)), weight))
    weighted = Dataset(data.variables, data.target, data.X, data.y, weight.astype(float))
    a, b = calibrate(model, weighted), calibrate(model, repeated)
    assert a.temperature == pytest.approx(b.temperature)
    for one, other in zip(a.margins, b.margins, strict=True):
        assert vars(one) == pytest.approx(vars(other))
    parts = [data.rows(slice(0, 15)), data.rows(slice(15, None))]
    assert calibrate(model, parts) == calibrate(model, data)


def test_labels_that_are_all_right_leave_the_temperature():
    data = labelled(MODELS["fixed"], right=1.0)
    found = calibrate(MODELS["fixed"], data)
    assert (found.temperature, found.best, found.margins[0].nats) == (1.0, 0.0, 0.0)


def test_rejecting_takes_the_next_lower_error_or_names_the_best_one():
    found = calibrate(MODELS["fixed"], labelled(MODELS["fixed"], right=0.8), errors=(0.1, 0.2))
    assert found.rejecting(0.15).chosen == found.margins[0]
    assert found.rejecting(0.2).chosen == found.margins[1]
    with pytest.raises(TinybayesError, match=rf"reject error: expected at least {found.best:.4g}, the smallest error"):
        Calibration(rows=200, best=found.best).rejecting(0.01)
    with pytest.raises(TinybayesError, match="expected calibrated margins"):
        Calibration().rejecting(0.1)
    with pytest.raises(TinybayesError, match="expected an error from 0 to 1, got 2"):
        found.rejecting(2)


def test_metadata_are_json_and_read_back():
    model = MODELS["zeros"]
    stored = json.loads(json.dumps(calibration_metadata(model, labelled(model)), allow_nan=False))
    assert from_metadata({"calibration": stored}) == calibrate(model, labelled(model))
    assert from_metadata({}) is None
    values = (stored | {"temperature": value} for value in ("warm", -1.0, 10**400))
    for broken in ([], {"temperature": 1}, *values, stored | {"rows": float("inf")}):
        with pytest.raises(TinybayesError, match=r"metadata\.calibration: expected"):
            from_metadata({"calibration": broken})


def test_rows_that_cannot_calibrate():
    model = MODELS["fixed"]
    data = labelled(model, rows=20)
    nobody = Dataset(data.variables, data.target, data.X, np.full(len(data), -1, np.int32))
    with pytest.raises(TinybayesError, match="expected rows with a known class"):
        calibrate(model, nobody)
    with pytest.raises(TinybayesError, match="expected the variables of the model"):
        calibrate(model, labelled(MODELS["float"], rows=20))
    with pytest.raises(TinybayesError, match="with the classes"):
        calibrate(model, Dataset(data.variables, None, data.X))
