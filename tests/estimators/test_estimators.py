import inspect
import warnings
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from cases import exhaustive, whole
from tinybayes import BayesNetClassifier, CircuitClassifier, QuantizedNetClassifier, TinybayesError
from tinybayes.data import MDLPDiscretizer
from tinybayes.errors import TinybayesWarning
from tinybayes.estimators._base import class_codes
from tinybayes.learn import HybridOptions


@parametrize_with_checks([BayesNetClassifier()])
def test_scikit_learn_conformance(estimator, check):
    check(estimator)


@pytest.mark.exhaustive
@parametrize_with_checks([BayesNetClassifier("naive"), BayesNetClassifier(discretizer="quantile")])
def test_scikit_learn_conformance_of_other_settings(estimator, check):
    check(estimator)


def discrete(seed=0, rows=400):
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 3, rows)
    X = np.stack([(y + generator.integers(0, k, rows)) % k for k in (3, 4, 5)], axis=1)
    return X, y


def test_naive_bayes_equals_scikit_learn():
    X, y = discrete()
    ours = BayesNetClassifier("naive", discretizer=None).fit(X, y)
    theirs = CategoricalNB(alpha=1.0).fit(X, y)
    # The prior is smoothed too, theirs is not: compare with that difference removed.
    smoothed = np.log((np.bincount(y) + 1) / (len(y) + 3))
    theirs.class_log_prior_ = smoothed
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-5)


@pytest.mark.parametrize("structure", ["naive", "chow-liu", "random"])
@pytest.mark.parametrize("discretizer", ["mdlp", "uniform", "quantile", MDLPDiscretizer(), KBinsDiscretizer(4)])
def test_all_structures_and_discretisers_learn_iris(structure, discretizer):
    X, y = load_iris(return_X_y=True)
    model = BayesNetClassifier(structure, discretizer=discretizer, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9


def test_digits_and_cancer_are_learned():
    for loader, least in ((load_digits, 0.88), (load_breast_cancer, 0.93)):
        X, X_test, y, y_test = train_test_split(*loader(return_X_y=True), random_state=0)
        assert BayesNetClassifier().fit(X, y).score(X_test, y_test) > least


def mixed_frame(rows=300, seed=0):
    generator = np.random.default_rng(seed)
    y = generator.choice(["no", "yes"], rows)
    number = np.where(y == "yes", 1.0, -1.0) + generator.normal(size=rows)
    return pd.DataFrame(
        {
            "number": np.where(generator.random(rows) < 0.1, np.nan, number),
            "count": generator.poisson(3, rows),
            "text": np.where(generator.random(rows) < 0.8, y, "no"),
            "flag": generator.random(rows) < 0.5,
            "size": pd.Categorical(generator.choice(["S", "M", "L"], rows), categories=["S", "M", "L", "XL"]),
            "nullable": pd.array(np.where(generator.random(rows) < 0.5, 1, 2), dtype="Int64"),
            "empty": np.full(rows, np.nan),
            "constant": "same",
        }
    ), y


def test_frames_with_all_kinds_of_columns():
    X, y = mixed_frame()
    X.loc[5, "text"] = None
    X.loc[6, "nullable"] = pd.NA
    model = BayesNetClassifier().fit(X, y)
    assert model.score(X, y) > 0.8
    by_name = {v.name: v for v in model.model_.variables}
    assert by_name["size"].states == ("S", "M", "L", "XL")
    assert by_name["flag"].states == (False, True)
    assert by_name["text"].states == ("no", "yes")
    assert by_name["empty"].states == ("any",)
    assert by_name["constant"].cardinality == 1
    assert by_name["number"].has_intervals
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == list(X.columns)
    # Another order of the rows, other types for the same values, and values never seen.
    other = X.astype({"text": object, "nullable": float})
    other.loc[0, "text"] = "never seen"
    other.loc[1, "number"] = np.nan
    assert np.isfinite(model.predict_proba(other)).all()
    np.testing.assert_array_equal(model.predict(other)[2:], model.predict(X)[2:])


def test_a_state_never_seen_is_summed_out():
    X, y = mixed_frame()
    X = X[["text", "size"]]
    model = BayesNetClassifier("naive").fit(X, y)
    unseen, missing = X.head(1).copy(), X.head(1).copy()
    unseen["text"] = "brand new"
    missing["text"] = None
    np.testing.assert_array_equal(model.predict_proba(unseen), model.predict_proba(missing))


def test_pipelines_searches_and_pandas_output():
    X, y = load_iris(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), BayesNetClassifier())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.9
    search = GridSearchCV(BayesNetClassifier(), {"smoothing": [0.1, 1.0], "structure": ["naive", "chow-liu"]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.9
    binned = make_pipeline(MDLPDiscretizer().set_output(transform="pandas"), BayesNetClassifier(discretizer=None))
    assert binned.fit(X, y).score(X, y) > 0.9


def test_discretising_before_or_inside_is_the_same():
    X, y = load_iris(return_X_y=True)
    inside = BayesNetClassifier().fit(X, y)
    before = make_pipeline(MDLPDiscretizer(), BayesNetClassifier(discretizer=None)).fit(X, y)
    np.testing.assert_allclose(inside.predict_proba(X), before.predict_proba(X))


def test_weights_and_random_state():
    X, y = discrete()
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    weighted = BayesNetClassifier(discretizer=None).fit(X, y, sample_weight=weight)
    repeated = BayesNetClassifier(discretizer=None).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.model_ == repeated.model_
    fits = [BayesNetClassifier("random", random_state=s, discretizer=None).fit(X, y).model_ for s in (1, 1, 4)]
    assert fits[0] == fits[1]
    assert fits[0] != fits[2]


def test_zero_smoothing_gives_posteriors_for_impossible_rows():
    X = np.array([[0, 0], [1, 1]] * 3)
    model = BayesNetClassifier(smoothing=0, discretizer=None).fit(X, [0, 1] * 3)
    np.testing.assert_allclose(model.predict_proba([[0, 1]]), [[0.5, 0.5]])
    np.testing.assert_allclose(model.predict_proba([[0, 0]]), [[1, 0]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: (np.zeros((0, 2)), []), "0 sample"),
        (lambda: (pd.DataFrame({"a": []}), []), "at least one row"),
        (lambda: (pd.DataFrame(index=range(3)), [0, 1, 0]), "at least one row and one column"),
        (lambda: ([[0], [1]], [1, 1]), "at least 2 classes, got one class"),
        (lambda: ([[0.0], [np.inf]], [0, 1]), "infinity"),
        (
            lambda: (pd.DataFrame({"a": [0.0, np.inf]}), [0, 1]),
            "column 'a', row 1: expected finite numbers, got infinity",
        ),
        (lambda: (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), [0, 1]), "(distinct|unique) column names"),
        (lambda: (pd.DataFrame({"t": pd.to_datetime(["2024-01-01", "2024-01-02"])}), [0, 1]), "dates"),
        (lambda: (pd.DataFrame({"id": [f"u{i}" for i in range(1001)]}), [0, 1] * 500 + [0]), "at most 1,000 distinct"),
        (lambda: ([[0], [1]], [0.5, 1.25]), "Unknown label type"),
        (lambda: ([[0], [1]], [0, 1, 1]), "inconsistent"),
    ],
)
def test_bad_tables_get_clear_errors(make, message):
    X, y = make()
    with pytest.raises(ValueError, match=message):
        BayesNetClassifier().fit(X, y)


def test_bad_options_get_clear_errors():
    X, y = discrete()
    for options, message in [
        ({"structure": "deep"}, "structure: expected one of naive, chow-liu, random"),
        ({"training": "sgd"}, "training: expected one of ml, hybrid"),
        ({"smoothing": -1}, "smoothing: expected"),
        ({"discretizer": "magic"}, "discretizer: expected 'mdlp', 'uniform', 'quantile'"),
        ({"discretizer": "uniform", "n_bins": 1}, "n_bins: expected 2 to 65536"),
    ]:
        with pytest.raises(TinybayesError, match=message):
            BayesNetClassifier(**options).fit(X.astype(float), y)
    model = BayesNetClassifier(discretizer=None).fit(X, y)
    with pytest.raises(ValueError, match="expecting 3 features"):
        model.predict(X[:, :2])


def test_ten_thousand_states_work_when_asked_for():
    X = pd.DataFrame({"id": [f"u{i}" for i in range(10_000)], "x": np.arange(10_000) % 2})
    y = np.arange(10_000) % 2
    model = BayesNetClassifier("naive", max_states=10_000).fit(X, y)
    assert model.score(X, y) == 1.0


def test_mixed_types_in_a_column_count_as_text():
    X = pd.DataFrame({"a": [1, "b", 2.0, None, 1, "b"] * 5}, dtype=object)
    y = [0, 1, 0, 1, 0, 1] * 5
    model = BayesNetClassifier("naive").fit(X, y)
    assert model.model_.variables[0].states == ("1", "2", "b")
    assert model.predict(pd.DataFrame({"a": [1.0, "1", "b"]}, dtype=object)).tolist() == [0, 0, 1]


def test_fitting_leaves_the_table_alone_and_warns_of_nothing():
    X, y = mixed_frame()
    before = X.copy(deep=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesNetClassifier(discretizer="quantile").fit(X, y).predict(X)
    pd.testing.assert_frame_equal(X, before)


def test_training_by_gradient_beats_the_closed_form_without_any_flag():
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X[:1200, 16:48], y[:1200], test_size=1 / 3, random_state=0)
    closed = BayesNetClassifier("naive").fit(X, y).score(X_test, y_test)
    trained = BayesNetClassifier("naive", training="hybrid", random_state=0).fit(X, y)
    assert trained.score(X_test, y_test) > closed + 0.02


@pytest.mark.parametrize(
    "options",
    [
        {"structure": "chow-liu", "structure_noise": 0.2, "sharing": 1.0},
        *exhaustive({"structure": "naive", "n_configs": 3, "verbose": True}, {"structure": "naive", "bits": 3}),
        *whole(
            {"structure": "subset", "n_candidates": 2},
            {"structure": "order-free"},
            {"structure": "chow-liu", "bits": (3, 1)},
            {"structure": "order-free", "structure_noise": 0.2, "early_stopping": True},
            {"structure": "naive", "n_configs": 2, "early_stopping": True, "validation_fraction": 0.2},
        ),
    ],
)
def test_options_of_training_by_gradient(options):
    X, y = load_iris(return_X_y=True)
    model = BayesNetClassifier(training="hybrid", epochs=60, batch_size=20, random_state=0, **options).fit(X, y)
    assert model.score(X, y) > 0.8
    if "bits" in options:
        assert model.model_.cpds[0].format.bits in (3, 4)
    again = BayesNetClassifier(training="hybrid", epochs=60, batch_size=20, random_state=0, **options).fit(X, y)
    assert again.model_ == model.model_


def test_every_option_of_training_by_gradient_is_a_parameter():
    parameters = inspect.signature(BayesNetClassifier).parameters
    assert {f.name: f.default for f in fields(HybridOptions)}.items() <= {
        name: parameter.default for name, parameter in parameters.items()
    }.items()


def test_heuristic_structures_need_an_image():
    X, y = load_digits(return_X_y=True)
    options = {"training": "hybrid", "structure": "heuristic", "epochs": 3, "random_state": 0}
    model = BayesNetClassifier(n_candidates=2, **options).fit(X[:300], y[:300])
    assert len(model.model_.variables) == 64
    with pytest.raises(TinybayesError, match="structure 'heuristic': expected an image of 63 pixels"):
        BayesNetClassifier(**options).fit(X[:300, :63], y[:300])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 40}, "bits: expected 1 to 16 bits"),
        ({"n_configs": 0}, "n_configs: expected at least 1"),
        ({"epochs": 0}, "epochs: expected 1 to 1000000000"),
        ({"gamma": -1}, "gamma: expected above 0"),
        ({"device": "abacus"}, "device: expected one of cpu"),
        ({"n_configs": 2, "validation_fraction": 2}, "validation_fraction: expected above 0, below 1"),
        ({"early_stopping": True, "validation_fraction": 0}, "validation_fraction: expected above 0, below 1"),
        ({"structure": "chow-liu", "structure_noise": 1}, "structure_noise: expected at least 0, below 1"),
        ({"structure": "chow-liu", "sharing": -1}, "sharing: expected at least 0"),
        ({"structure": "subset", "n_candidates": 0}, "n_candidates: expected at least 1"),
        ({"structure": "subset", "training": "ml"}, "use training 'hybrid'"),
    ],
)
def test_bad_options_of_training_by_gradient(options, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TinybayesError, match=message):
        BayesNetClassifier(**({"structure": "naive", "training": "hybrid"} | options)).fit(X, y)


@pytest.mark.parametrize(
    "y",
    [
        np.array([3, 1, 3, 7, 1]),
        np.array([-128, 127, 0] * 100, dtype=np.int8),
        np.array([2**63, 2**63 + 5] * 3, dtype=np.uint64),
        np.array([10**12, -(10**12), 0]),
        np.array([True, False, True]),
        np.array(["b", "a", "b"]),
        np.array([2.0, 1.0, 2.0]),
    ],
    ids=str,
)
def test_class_codes_are_those_of_unique(y: np.ndarray) -> None:
    classes, codes = class_codes(y)
    expected, inverse = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(classes, expected)
    assert classes.dtype == expected.dtype
    np.testing.assert_array_equal(codes, inverse)


ESTIMATORS = [
    BayesNetClassifier("naive"),
    CircuitClassifier(max_edges=200),
    QuantizedNetClassifier(hidden=2, epochs=1, random_state=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_tables_that_mean_something_else_are_refused_or_warned_of(estimator):
    generator = np.random.default_rng(0)
    X, y = pd.DataFrame({"a": generator.normal(size=60)}), np.arange(60) % 2
    with pytest.raises(TinybayesError, match="y: expected classes, got 60 distinct values in 60 rows; cut it"):
        estimator.fit(X, np.arange(60))
    with pytest.raises(TinybayesError, match="column 'a': expected numbers with a decimal point"):
        estimator.fit(X.assign(a=[f"{i % 9},5" for i in range(60)]), y)
    with pytest.warns(TinybayesWarning, match="identifiers or times: 'x0'; ") as told:
        estimator.fit(np.arange(60)[:, None], y)
    assert [warning.filename for warning in told if warning.category is TinybayesWarning] == [__file__]
    with pytest.warns(TinybayesWarning, match="only 6 rows of 2 classes"):
        estimator.fit(X[:6], y[:6])


@pytest.mark.parametrize("estimator", ESTIMATORS[:2], ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize("total", [1.0, 1234.5])
def test_scaled_weights_mean_the_same(estimator, total):
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(1).uniform(0.5, 1.5, len(y))
    one, other = (clone(estimator).fit(X, y, sample_weight=w) for w in (weight, weight / weight.sum() * total))
    assert one.model_.variables == other.model_.variables
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)


def test_equal_weights_of_any_size_mean_the_same_as_none():
    X, y = load_iris(return_X_y=True)
    plain = BayesNetClassifier().fit(X, y)
    assert BayesNetClassifier().fit(X, y, sample_weight=np.full(len(y), 0.5 / len(y))).model_ == plain.model_
    assert BayesNetClassifier().fit(X, y, sample_weight=np.full(len(y), 2)).model_ != plain.model_
    cuts = MDLPDiscretizer().fit(X, y, sample_weight=np.full(len(y), 0.25)).n_bins_
    np.testing.assert_array_equal(cuts, MDLPDiscretizer().fit(X, y).n_bins_)


def test_training_by_gradient_cuts_numbers_finely_where_mdlp_sees_no_reason_to():
    # The class depends on both numbers together, and on neither alone.
    X = np.random.default_rng(0).uniform(size=(600, 2))
    y = (X > 0.5).sum(axis=1) % 2
    chosen = BayesNetClassifier(training="hybrid", epochs=200, random_state=0).fit(X[:400], y[:400])
    assert [v.cardinality for v in chosen.model_.variables] == [8, 8]
    assert chosen.score(X[400:], y[400:]) > 0.9
    mdlp = BayesNetClassifier(training="hybrid", discretizer="mdlp", epochs=200, random_state=0).fit(X[:400], y[:400])
    assert [v.cardinality for v in mdlp.model_.variables] == [1, 1]
    closed = BayesNetClassifier(random_state=0).fit(X, y)  # "auto" is MDLP here
    assert closed.model_ == BayesNetClassifier(discretizer="mdlp", random_state=0).fit(X, y).model_
