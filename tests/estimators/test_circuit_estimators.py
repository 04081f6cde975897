import copy
import itertools
import math
import os
import pickle
import signal
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracle
from cases import WHOLE
from tinybayes import CircuitClassifier, CircuitDensity, TinybayesError
from tinybayes.cost import model_cost
from tinybayes.estimators import circuits
from tinybayes.estimators._base import encode
from tinybayes.infer.circuit import log_evidence
from tinybayes.learn.circuits.learn_ac import learn_circuit
from tinybayes.model import Dataset, Variable


@parametrize_with_checks([CircuitDensity(), CircuitClassifier()])
def test_scikit_learn_conformance(estimator, check):
    check(estimator)


@pytest.mark.exhaustive
@parametrize_with_checks(
    [
        CircuitDensity(method="greedy", discretizer="uniform"),
        CircuitClassifier(edge_price=1.0, discretizer="quantile"),
        CircuitDensity(method="latent", hidden_states=2, epochs=3),
    ]
)
def test_scikit_learn_conformance_of_other_settings(estimator, check):
    check(estimator)


@WHOLE  # three minutes: every check compiles for other numbers of classes and columns
@pytest.mark.exhaustive
@parametrize_with_checks([CircuitClassifier(method="latent", hidden_states=4, epochs=10)])
def test_scikit_learn_conformance_of_latent_classifiers(estimator, check):
    check(estimator)


def bits(rows=400, seed=0):
    generator = np.random.default_rng(seed)
    a = generator.integers(0, 2, rows)
    b = np.where(generator.random(rows) < 0.9, a, 1 - a)
    c = np.where(generator.random(rows) < 0.8, a ^ b, generator.integers(0, 2, rows))
    d = generator.integers(0, 2, rows)
    return np.stack([a, b, c, d], axis=1)


def mixed(rows=300, seed=0):
    generator = np.random.default_rng(seed)
    rain = generator.random(rows) < 0.3
    return pd.DataFrame(
        {
            "rain": np.where(rain, "yes", "no"),
            "temperature": 20 - 6 * rain + generator.normal(size=rows),
            "umbrellas": generator.poisson(1 + rain) % 4,
            "weekend": generator.random(rows) < 2 / 7,
            "size": pd.Categorical(generator.choice(["S", "L"], rows), categories=["S", "M", "L"]),
        }
    )


def total(net, known):
    """The probability of a partial row of codes, by enumeration."""
    choices = [[v] if v >= 0 else range(node.cardinality) for v, node in zip(known, net.nodes, strict=True)]
    return sum(math.exp(oracle.log_joint(net, list(row))) for row in itertools.product(*choices))


def test_a_matrix_of_bits_keeps_its_states_and_is_learned_as_the_learner_does():
    X = bits()
    density = CircuitDensity().fit(X)
    assert [v.states for v in density.circuit_.variables] == [(0, 1)] * 4
    variables = tuple(Variable(f"x{i}", (0, 1)) for i in range(4))
    direct = learn_circuit(Dataset(variables, None, X), edge_price=0.1)
    assert density.circuit_ == direct.circuit
    assert density.model_ == direct.net
    assert density.n_edges_ == direct.circuit.n_edges == model_cost(density.circuit_).edges
    assert density.complete_ is True
    assert density.n_features_in_ == 4
    floats = CircuitDensity().fit(X.astype(float))
    assert floats.circuit_ == density.circuit_
    np.testing.assert_array_equal(floats.score_samples(X.astype(bool)), density.score_samples(X))


def test_every_option_reaches_the_learner():
    X = bits()
    variables = tuple(Variable(f"x{i}", (0, 1)) for i in range(4))
    options = {"edge_price": 0.02, "parameter_price": 0.7, "method": "greedy", "smoothing": 3.0, "max_edges": 70}
    direct = learn_circuit(Dataset(variables, None, X), **options)
    ours = CircuitDensity(0.02, 0.7, method="greedy", smoothing=3.0, max_edges=70).fit(X)
    assert ours.circuit_ == direct.circuit
    assert ours.n_edges_ <= 70
    assert (
        CircuitDensity(parameter_price=0.7).fit(X).model_
        != CircuitDensity(parameter_price=0.0, smoothing=3.0).fit(X).model_
    )


def test_likelihoods_by_enumeration_with_and_without_gaps():
    frame = mixed()
    density = CircuitDensity().fit(frame)
    by_name = {v.name: v for v in density.circuit_.variables}
    assert by_name["rain"].states == ("no", "yes")
    assert by_name["umbrellas"].states == (0, 1, 2, 3)
    assert by_name["size"].states == ("S", "M", "L")
    assert len(by_name["temperature"].encoding.points) == 7
    assert density.feature_names_in_.tolist() == list(frame.columns)
    rows = frame.head(12).copy()
    rows.loc[0, "rain"] = None
    rows.loc[1, ["temperature", "umbrellas"]] = np.nan
    rows.loc[2, "rain"] = "snow"  # never seen: summed out like a missing value
    rows["weekend"] = rows["weekend"].astype(object)
    rows.loc[3] = [None] * 5
    codes = np.column_stack([encode(rows[[name]], (by_name[name],)) for name in frame.columns])
    assert (codes < 0).sum() == 1 + 2 + 1 + 5
    wanted = [math.log(total(density.model_, row)) for row in codes.tolist()]
    scores = density.score_samples(rows)
    np.testing.assert_allclose(scores, wanted, atol=1e-9)
    assert scores[3] == pytest.approx(0, abs=1e-12)
    assert density.score(rows) == pytest.approx(np.mean(wanted))


def test_queries_by_enumeration():
    frame = mixed()
    density = CircuitDensity().fit(frame)
    net, edges = density.model_, density.circuit_.variables[1].encoding.points
    cold = density.query({"rain": "yes", "umbrellas": 2}, {"temperature": 12.5, "weekend": True})
    assert cold == pytest.approx(total(net, [1, 0, 2, 1, -1]) / total(net, [-1, 0, -1, 1, -1]), rel=1e-9)
    assert density.query({"rain": "yes"}) == pytest.approx(total(net, [1, -1, -1, -1, -1]), rel=1e-9)
    assert density.query({}, {"rain": "yes"}) == pytest.approx(1)
    interval = density.circuit_.variables[1].states[3]
    middle = (edges[2] + edges[3]) / 2
    assert density.query({"temperature": interval}) == density.query({"temperature": middle})
    assert density.query({"rain": "yes"}, {"rain": "no"}) == 0
    assert density.query({"umbrellas": "2"}) == density.query({"umbrellas": 2.0})
    assert density.query("rain=yes, umbrellas=2 | temperature=12.5, weekend=true") == cold
    array = CircuitDensity().fit(bits())
    assert array.query({0: 1}, {1: 1}) == array.query({"x0": 1}, {"x1": 1})
    assert array.query({0: 1}, {1: 1}) > 0.8


@pytest.mark.parametrize(
    ("event", "evidence", "message"),
    [
        ({"hail": 1}, None, "event: expected one of the columns rain, temperature.*, got 'hail'"),
        ({"rain": "maybe"}, None, r"expected a state of 'rain' \(no, yes\), got 'maybe'"),
        ({"rain": "yes"}, {"umbrellas": 9}, r"a state of 'umbrellas' \(0, 1, 2, 3\), got '9'"),
        ({"temperature": "warm"}, None, "a state of 'temperature'"),
        ({"rain": None}, None, "a state of 'rain'"),
        ("rain=yes", {"umbrellas": 1}, "the evidence behind a bar"),
        ("hail=yes", None, "one of the variables"),
        ({9: 1}, None, "one of the columns"),
        ({-1: 1}, None, "one of the columns"),
    ],
)
def test_bad_queries(event, evidence, message):
    density = CircuitDensity().fit(mixed())
    with pytest.raises(TinybayesError, match=message):
        density.query(event, evidence)


def test_samples_follow_the_density_and_are_of_the_kind_that_was_fitted():
    X = bits()
    density = CircuitDensity().fit(X)
    rows = density.sample(20_000, random_state=3)
    assert rows.shape == (20_000, 4)
    assert rows.dtype.kind == "i"
    np.testing.assert_array_equal(rows, density.sample(20_000, random_state=3))
    assert (rows != density.sample(20_000, random_state=4)).any()
    for row in itertools.product((0, 1), repeat=4):
        p = total(density.model_, list(row))
        seen = (rows == row).all(axis=1).mean()
        assert abs(seen - p) < 5 * math.sqrt(p * (1 - p) / len(rows)) + 1e-9
    frame = mixed()
    drawn = CircuitDensity().fit(frame).sample(50, random_state=0)
    assert drawn.columns.tolist() == list(frame.columns)
    assert set(drawn["rain"]) == {"no", "yes"}
    assert drawn["weekend"].dtype == bool
    assert drawn["umbrellas"].dtype.kind == "i"
    assert all(isinstance(text, str) for text in drawn["temperature"])
    objects = CircuitDensity().fit(frame.to_numpy(dtype=object)).sample(3, random_state=0)
    assert objects.shape == (3, 5)
    assert objects.dtype == object
    assert CircuitDensity().fit(X).sample().shape == (1, 4)
    for bad in (0, -1, 2.5):
        with pytest.raises(TinybayesError, match="n_samples"):
            density.sample(bad)


@pytest.mark.parametrize("copied", [lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy])
def test_models_can_be_copied_after_queries(copied):
    X = bits()
    density, classifier = CircuitDensity().fit(X), CircuitClassifier().fit(X[:, :3], X[:, 3])
    scores, posteriors = density.score_samples(X), classifier.predict_proba(X[:, :3])
    np.testing.assert_array_equal(copied(density).score_samples(X), scores)
    np.testing.assert_array_equal(copied(classifier).predict_proba(X[:, :3]), posteriors)


def test_weights_count_as_rows():
    X = bits()
    weight = np.random.default_rng(1).integers(0, 3, len(X))
    weighted = CircuitDensity().fit(X, sample_weight=weight)
    repeated = CircuitDensity().fit(np.repeat(X, weight, axis=0))
    assert weighted.model_ == repeated.model_
    # A row of weight zero may hold anything.
    strange = np.vstack([X.astype(float), [[np.nan, 7, 7, 7]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = CircuitDensity().fit(strange, sample_weight=np.append(weight, 0))
    assert same.model_ == weighted.model_


def test_rows_with_gaps_are_left_out_of_learning_aloud():
    X = bits().astype(float)
    holes = X.copy()
    holes[:7, 2] = np.nan
    with pytest.warns(UserWarning, match="7 of 400 rows have missing values .most in 'x2'.: left out") as caught:
        density = CircuitDensity().fit(holes)
    assert caught[0].filename == __file__
    assert density.model_ == CircuitDensity().fit(X[7:]).model_
    with pytest.warns(UserWarning, match="7 of 400 rows") as caught:
        CircuitClassifier().fit(holes, X[:, 0].astype(int))
    assert caught[0].filename == __file__
    holes[:, 1] = np.nan
    with pytest.raises(TinybayesError, match=r"expected rows without missing values, got none; .* such as 'x1'"):
        CircuitDensity().fit(holes)


def test_searches_and_pipelines():
    X = bits(600)
    search = GridSearchCV(CircuitDensity(), {"edge_price": [0.01, 0.1, 1000.0]}, cv=3).fit(X)
    assert search.best_params_["edge_price"] < 1000
    frame, y = load_iris(return_X_y=True, as_frame=True)
    scaled = make_pipeline(StandardScaler().set_output(transform="pandas"), CircuitClassifier())
    assert cross_val_score(scaled, frame, y, cv=3).mean() > 0.9
    density = CircuitDensity(discretizer=KBinsDiscretizer(3, strategy="uniform")).fit(frame)
    assert all(v.cardinality == 3 for v in density.circuit_.variables)
    assert clone(CircuitDensity(edge_price=0.3, n_bins=5)).get_params()["n_bins"] == 5
    assert CircuitDensity(discretizer=None).fit(np.round(frame)).circuit_.variables[0].states[0] == 4


def test_posteriors_by_enumeration_with_and_without_gaps(monkeypatch):
    frame = mixed(seed=1)
    y = np.where(frame.pop("rain") == "yes", "wet", "dry")
    model = CircuitClassifier(edge_price=0.02).fit(frame, y)
    assert model.classes_.tolist() == ["dry", "wet"]
    assert model.circuit_.target.states == ("dry", "wet")
    rows = frame.head(10).astype({"weekend": object, "umbrellas": float})
    rows.iloc[0, 0] = np.nan
    rows.iloc[1, 1] = np.nan
    rows.iloc[2] = [np.nan, np.nan, None, None]
    variables = model.circuit_.variables
    codes = np.column_stack([encode(rows[[v.name]], (v,)) for v in variables])
    joint = np.array([[total(model.model_, [*row, c]) for c in (0, 1)] for row in codes.tolist()])
    wanted = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(rows), wanted, atol=1e-9)
    np.testing.assert_allclose(model.predict_log_proba(rows), np.log(wanted), atol=1e-9)
    assert model.predict(rows).tolist() == model.classes_[wanted.argmax(axis=1)].tolist()
    whole = model.predict_proba(frame)
    monkeypatch.setattr(circuits, "BLOCK", 7)
    np.testing.assert_allclose(model.predict_proba(frame), whole, atol=1e-12)


def test_classifiers_learn_and_have_a_price():
    X, X_test, y, y_test = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
    model = CircuitClassifier().fit(X, y)
    assert model.score(X_test, y_test) > 0.9
    cost = model_cost(model.circuit_)
    assert cost.operations == 2 * model.n_edges_
    small = CircuitClassifier(max_edges=cost.edges // 2).fit(X, y)
    assert model_cost(small.circuit_).edges <= cost.edges // 2
    assert log_evidence(model.circuit_, np.full((1, 31), -1))[0] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("estimator", [CircuitDensity, CircuitClassifier])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edge_price": -0.1}, "edge_price: expected at least 0, got -0.1"),
        ({"edge_price": "cheap"}, "edge_price: expected"),
        ({"parameter_price": float("nan")}, "parameter_price: expected"),
        ({"method": "fast"}, "method: expected one of quick, greedy"),
        ({"smoothing": 0}, "smoothing: expected"),
        ({"max_edges": 0}, "max_edges: expected at least 1"),
        ({"seconds": -1}, "seconds: expected"),
        ({"n_bins": 1}, "n_bins: expected 2 to 65536"),
        ({"discretizer": "magic"}, "discretizer: expected"),
        ({"max_states": 2}, None),
        ({"max_states": 2, "discretizer": None}, "at most 2 distinct values"),
    ],
)
def test_bad_options(estimator, options, message):
    X = np.column_stack([bits(), np.linspace(0, 1, 400)])
    if message is None:
        estimator(**options).fit(X, X[:, 0].astype(int))
        return
    with pytest.raises(TinybayesError, match=message):
        estimator(**options).fit(X, X[:, 0].astype(int))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: np.zeros((0, 2)), "0 sample"),
        (lambda: pd.DataFrame({"a": []}), "at least one row"),
        (lambda: [[0.0], [np.inf]], "infinity"),
        (lambda: pd.DataFrame({"id": [f"u{i}" for i in range(63)]}), "at most 62 distinct values, got 63"),
    ],
)
def test_bad_tables(make, message):
    with pytest.raises(ValueError, match=message):
        CircuitDensity().fit(make())


def test_mdlp_needs_a_class():
    with pytest.raises(TinybayesError, match="a class to discretise by"):
        CircuitDensity(discretizer="mdlp").fit(load_iris().data)


def test_an_interrupt_keeps_the_circuit_so_far(monkeypatch):
    """Ctrl-C at the first report, which only those who watch get."""

    class Watch:
        def __init__(self, show):
            self.show = show

        def __enter__(self):
            return (lambda growth: os.kill(os.getpid(), signal.SIGINT)) if self.show else None

        def __exit__(self, *problem):
            pass

    monkeypatch.setattr(circuits, "growth_progress", Watch)
    generator = np.random.default_rng(0)
    X = generator.integers(0, 2, (2000, 1)) ^ (generator.random((2000, 12)) < 0.3)
    cut = CircuitDensity(edge_price=0.0, verbose=True).fit(X)
    assert cut.complete_ is False
    assert np.isfinite(cut.score(X))


def test_verbose_shows_the_growth(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    CircuitDensity(verbose=True).fit(bits())
    shown = capsys.readouterr().err
    assert "splits" in shown
    assert "edges" in shown
    assert "a row" in shown


def test_a_latent_density_learns_from_gaps_and_answers_like_any_other():
    X = mixed(600)
    X.loc[X.index[::7], "rain"] = None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no row is left out
        density = CircuitDensity(method="latent", hidden_states=3, epochs=10).fit(X)
    assert density.complete_
    assert density.model_ is density.circuit_
    assert density.n_edges_ == density.circuit_.n_edges
    codes = encode(X.set_axis(map(str, X.columns), axis=1), density.circuit_.variables)
    np.testing.assert_allclose(density.score_samples(X), log_evidence(density.circuit_, codes))
    rain = [density.query({"rain": value}, {"umbrellas": 2}) for value in ("yes", "no")]
    assert sum(rain) == pytest.approx(1)
    assert density.sample(5, random_state=0).columns.tolist() == X.columns.tolist()
    again = CircuitDensity(method="latent", hidden_states=3, epochs=10).fit(X)
    assert again.circuit_ == density.circuit_
    other = CircuitDensity(method="latent", hidden_states=3, epochs=10, random_state=1).fit(X)
    assert other.circuit_ != density.circuit_
    assert pickle.loads(pickle.dumps(density)).score(X) == density.score(X)


def test_a_latent_density_keeps_its_edges():
    X = bits(600)
    free = CircuitDensity(method="latent", hidden_states=6, epochs=4).fit(X)
    few = CircuitDensity(method="latent", hidden_states=6, epochs=4, max_edges=free.n_edges_ // 2).fit(X)
    assert few.n_edges_ <= free.n_edges_ // 2
    with pytest.raises(TinybayesError, match="max_edges"):
        CircuitDensity(method="latent", epochs=4, max_edges=3).fit(X)


def test_a_latent_density_has_a_price_of_edges_but_none_of_parameters():
    X = bits(600)
    free, priced = (CircuitDensity(method="latent", hidden_states=6, epochs=4, edge_price=p).fit(X) for p in (0.0, 2.0))
    assert priced.n_edges_ < free.n_edges_
    assert free.circuit_ == CircuitDensity(method="latent", hidden_states=6, epochs=4).fit(X).circuit_
    with pytest.raises(TinybayesError, match=r"parameter_price: expected 0 with method='latent'.*use edge_price"):
        CircuitDensity(method="latent", parameter_price=1.0).fit(X)
    assert CircuitDensity(edge_price=0.1).fit(X).circuit_ == CircuitDensity().fit(X).circuit_


def test_a_latent_classifier_predicts():
    X, y = load_iris(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    model = CircuitClassifier(method="latent", hidden_states=3, epochs=20).fit(X, y)
    assert model.score(X_test, y_test) > 0.85
    np.testing.assert_allclose(model.predict_proba(X_test).sum(axis=1), 1)
