"""Fitted trees of scikit-learn as a `TreeEnsemble`: scores, labels and thresholds to the last float32."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

from tinybayes import export, from_sklearn, load, model_cost, predict_codes, save
from tinybayes.compress.trees import tie_leaves
from tinybayes.data.encode import encode_frame, encode_matrix
from tinybayes.deploy.imports.foreign import ForeignTree, bits_set, cut_above
from tinybayes.errors import TinybayesError
from tinybayes.infer import class_scores
from tinybayes.infer.scores import normalize_scores
from tinybayes.model import Dataset

TREES = [DecisionTreeClassifier(random_state=0), ExtraTreeClassifier(max_leaf_nodes=9, random_state=0)]
FORESTS = [RandomForestClassifier(15, random_state=0), ExtraTreesClassifier(12, max_depth=5, random_state=0)]
BOOSTED = [
    HistGradientBoostingClassifier(max_iter=12, min_samples_leaf=5, random_state=0),
    GradientBoostingClassifier(n_estimators=12, random_state=0),
    GradientBoostingClassifier(n_estimators=12, init="zero", subsample=0.7, random_state=0),
]


def single(loader, gaps=0.0, seed=0):
    """A table of float32, with gaps."""
    X, y = loader(return_X_y=True)
    X = X.astype(np.float32)
    X[np.random.default_rng(seed).random(X.shape) < gaps] = np.nan
    return X, y


def name_of(estimator):
    return type(estimator).__name__


def codes_of(model, X):
    return encode_matrix(X, model.variables)


def mixed_rows(X):
    """Rows of a table, mixed: most leaves are reached."""
    rng = np.random.default_rng(1)
    return np.concatenate([X, np.stack([rng.choice(column, 400) for column in X.T], axis=1)])


@pytest.mark.parametrize("loader", [load_iris, load_breast_cancer])
@pytest.mark.parametrize("estimator", TREES, ids=name_of)
def test_a_tree_has_the_same_labels_and_probabilities(estimator, loader):
    X, y = single(loader, gaps=0.1)
    model, rows = from_sklearn(estimator.fit(X, y)), mixed_rows(X)
    np.testing.assert_array_equal(predict_codes(model, codes_of(model, rows)), estimator.predict(rows))
    posterior = np.exp(normalize_scores(class_scores(model, codes_of(model, rows))))
    np.testing.assert_allclose(posterior, estimator.predict_proba(rows), atol=5e-4)


@pytest.mark.parametrize("loader", [load_iris, load_digits])
@pytest.mark.parametrize("estimator", FORESTS, ids=name_of)
def test_scores_of_a_forest_are_mean_shares(estimator, loader):
    X, y = single(loader, gaps=0.1)
    model, rows = from_sklearn(estimator.fit(X, y)), mixed_rows(X)
    shares = class_scores(model, codes_of(model, rows)) / len(estimator.classes_)
    wanted = estimator.predict_proba(rows)
    np.testing.assert_allclose(shares, wanted, atol=1e-4)
    second, first = np.sort(wanted, axis=1)[:, -2:].T
    clear = first - second > 2e-4
    assert clear.mean() > 0.8
    np.testing.assert_array_equal(predict_codes(model, codes_of(model, rows))[clear], estimator.predict(rows)[clear])


@pytest.mark.parametrize("loader", [load_iris, load_breast_cancer])
@pytest.mark.parametrize("estimator", BOOSTED, ids=name_of)
def test_scores_of_boosted_trees_are_raw_scores(estimator, loader):
    missing = isinstance(estimator, HistGradientBoostingClassifier)
    X, y = single(loader, gaps=0.1 if missing else 0.0)
    model, rows = from_sklearn(estimator.fit(X, y)), mixed_rows(X)
    scores, wanted = class_scores(model, codes_of(model, rows)), estimator.decision_function(rows)
    if wanted.ndim == 1:
        np.testing.assert_allclose(scores[:, 1] - scores[:, 0], wanted, atol=2e-3)
    else:
        scores, wanted = (s - s.mean(axis=1, keepdims=True) for s in (scores, wanted))
        np.testing.assert_allclose(scores, wanted, atol=2e-3)
    np.testing.assert_allclose(np.exp(normalize_scores(scores)), estimator.predict_proba(rows), atol=1e-3)


def test_the_exponential_loss_has_twice_the_scores():
    X, y = single(load_breast_cancer)
    estimator = GradientBoostingClassifier(loss="exponential", n_estimators=8, random_state=0).fit(X, y)
    model = from_sklearn(estimator)
    posterior = np.exp(normalize_scores(class_scores(model, codes_of(model, X))))
    np.testing.assert_allclose(posterior, estimator.predict_proba(X), atol=1e-3)


def test_categories_of_histogram_boosting():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=500).astype(np.float32),
            "word": pd.Categorical(rng.choice(list("abcdefg"), 500)),
            "z": rng.integers(0, 9, 500),
            "flag": pd.Categorical(rng.choice(["no", "yes"], 500)),
        }
    )
    frame.loc[::9, "word"] = None
    y = np.where(frame.word.isin(["a", "d", "g"]) ^ (frame.x > 0), "up", "down")
    estimator = HistGradientBoostingClassifier(max_iter=15, categorical_features="from_dtype").fit(frame, y)
    model = from_sklearn(estimator)
    assert [v.name for v in model.variables] == list(frame.columns)
    assert model.variables[1].states == tuple("abcdefg")
    assert model.trees.is_set.any()
    codes = encode_frame(frame, model.variables)
    scores = class_scores(model, codes)
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], estimator.decision_function(frame), atol=1e-3)
    states = np.array(model.target.states)
    np.testing.assert_array_equal(states[predict_codes(model, codes)], estimator.predict(frame))


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(width=32, allow_nan=False))
def test_every_float32_keeps_its_side(threshold, number):
    cut = cut_above(np.array([threshold]))[0]
    assert (number <= threshold) == (number < cut or (number == np.inf and cut == np.inf and threshold == np.inf))
    with np.errstate(over="ignore"):
        near = np.float32(threshold)
    for close in (near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))):
        if np.isfinite(close):
            assert (float(close) <= threshold) == (float(close) < cut)


def test_thresholds_beyond_float32():
    huge = np.array([1e300, np.inf, -1e300, -np.inf, 3.4028234663852886e38])
    assert cut_above(huge).tolist() == [np.inf, np.inf, -np.inf, -np.inf, np.inf]
    tree = ForeignTree(
        np.array([0, -1, -1]),
        np.array([-np.inf, 0, 0]),
        np.array([1, -1, -1]),
        np.array([2, -1, -1]),
        np.array([True, False, False]),
        np.array([[0.0], [1.0], [2.0]]),
        1,
    )
    assert (tree.left[0], tree.right[0], tree.missing[0], tree.cut[0]) == (2, 1, False, np.inf)
    assert bits_set(np.array([1 | 1 << 31, 2])).tolist() == [0, 31, 33]


def test_names_of_features_and_classes():
    X, y = load_iris(return_X_y=True, as_frame=True)
    tree = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, y)
    assert [v.name for v in from_sklearn(tree).variables] == list(X.columns)
    model = from_sklearn(tree, ["a", "b", "c", "d"], ["setosa", "versicolor", "virginica"])
    assert [v.name for v in model.variables] == ["a", "b", "c", "d"]
    assert model.target.states == ("setosa", "versicolor", "virginica")
    with pytest.raises(TinybayesError, match="feature_names"):
        from_sklearn(tree, ["a"])
    with pytest.raises(TinybayesError, match="class_names"):
        from_sklearn(tree, class_names=["a"])


def test_the_trees_of_a_forest_may_vote():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(7, max_depth=2, random_state=0).fit(X[::2], y[::2])
    model = from_sklearn(forest, votes=True)
    assert model.votes
    cast = np.stack([tree.predict(X).astype(int) for tree in forest.estimators_])
    counts = np.stack([(cast == c).sum(axis=0) for c in range(3)], axis=1)
    np.testing.assert_array_equal(predict_codes(model, encode_matrix(X, model.variables)), counts.argmax(axis=1))
    assert model_cost(model).bytes < model_cost(from_sklearn(forest)).bytes
    with pytest.raises(TinybayesError, match="votes: expected a forest, got DecisionTreeClassifier"):
        from_sklearn(DecisionTreeClassifier().fit(X, y), votes=True)


def test_a_constant_tree_is_its_prior():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=1, min_samples_leaf=100).fit(X[:120], y[:120])
    model = from_sklearn(tree)
    posterior = np.exp(normalize_scores(class_scores(model, codes_of(model, X))))
    np.testing.assert_allclose(posterior, tree.predict_proba(X), atol=1e-3)


def test_other_models_are_refused():
    X, y = load_iris(return_X_y=True)
    for estimator in (LogisticRegression(max_iter=500).fit(X, y), DecisionTreeRegressor().fit(X, y), "model"):
        with pytest.raises(TinybayesError, match="DecisionTreeClassifier"):
            from_sklearn(estimator)
    with pytest.raises(TinybayesError, match="fitted"):
        from_sklearn(DecisionTreeClassifier())
    with pytest.raises(TinybayesError, match="one class"):
        from_sklearn(DecisionTreeClassifier().fit(X, np.stack([y, y], axis=1)))
    with pytest.raises(TinybayesError, match="init"):
        from_sklearn(GradientBoostingClassifier(init=GaussianNB(), n_estimators=2).fit(X, y))


def test_one_line_exports_prices_and_saves_a_fitted_model(tmp_path):
    X, y = single(load_iris)
    forest = RandomForestClassifier(5, max_leaf_nodes=6, random_state=0).fit(X, y)
    model = from_sklearn(forest)
    assert model_cost(forest) == model_cost(model)
    assert export(forest, to="c") == export(model, to="c")
    save(forest, tmp_path / "forest.tb")
    np.testing.assert_array_equal(
        predict_codes(load(tmp_path / "forest.tb"), codes_of(model, X)), predict_codes(model, codes_of(model, X))
    )
    with pytest.raises(TinybayesError, match="DecisionTreeClassifier"):
        export(LogisticRegression(max_iter=500).fit(X, y))


def test_imported_trees_have_few_bits_and_few_values():
    X, y = single(load_breast_cancer)
    boosted = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(X, y)
    model = from_sklearn(boosted)
    tied = tie_leaves(model, 16, X)  # raw rows, or codes
    same = tie_leaves(model, 16, Dataset(model.variables, None, codes_of(model, X)))
    np.testing.assert_array_equal(tied.trees.threshold, same.trees.threshold)
    assert len(tied.values) <= 16
    assert model_cost(tied).bytes < model_cost(model).bytes
    for small in (tied, from_sklearn(boosted, bits=8)):
        assert (predict_codes(small, codes_of(small, X)) == boosted.predict(X)).mean() > 0.98
