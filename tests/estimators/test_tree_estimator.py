"""Trees for scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

from tinybayes import TinybayesError, TreeEnsembleClassifier, explain, load, model_cost, save
from tinybayes.infer import class_scores
from tinybayes.learn.trees.forest import learn_forest
from tinybayes.learn.trees.options import BoostingOptions, ForestOptions
from tinybayes.model import Categories, Cuts

SMALL = {"rounds": 20, "random_state": 0}
KINDS = ({"kind": "boosted", "rounds": 20}, {"kind": "forest", "trees": 20}, {"kind": "tree"})


def expected_failures(estimator):
    """Leaves have a least number of rows, and rows are drawn: two equal rows are not one of weight 2."""
    reason = "rows are counted and drawn, not weights"
    names = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    return {} if estimator.kind == "tree" else dict.fromkeys(names, reason)


@parametrize_with_checks([TreeEnsembleClassifier(rounds=10)], expected_failed_checks=expected_failures)
def test_scikit_learn_conformance(estimator, check):
    check(estimator)


@pytest.mark.exhaustive
@parametrize_with_checks(
    [TreeEnsembleClassifier(**kind, random_state=0) for kind in KINDS]
    + [TreeEnsembleClassifier(rounds=10, levels=16, symmetric=True, leaves=8)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_conformance_of_other_kinds(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_learn(kind):
    for loader, least in ((load_iris, 0.9), (load_breast_cancer, 0.9)):
        X, y = loader(return_X_y=True)
        assert cross_val_score(TreeEnsembleClassifier(**kind, random_state=0), X, y, cv=3).mean() > least


def test_a_forest_and_boosted_trees_read_digits():
    X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    for kind in ({"kind": "forest", "trees": 60}, {"rounds": 40}):
        assert TreeEnsembleClassifier(**kind, random_state=0).fit(X, y).score(X_test, y_test) > 0.95


def mixed_frame(rows=400, seed=0):
    generator = np.random.default_rng(seed)
    y = generator.choice(["no", "yes"], rows)
    number = np.where(y == "yes", 1.0, -1.0) + generator.normal(size=rows)
    frame = pd.DataFrame(
        {
            "number": np.where(generator.random(rows) < 0.1, np.nan, number),
            "count": generator.poisson(3, rows),
            "word": np.where(generator.random(rows) < 0.8, y, "maybe"),
            "size": pd.Categorical(generator.choice(["S", "M", "L"], rows), categories=["S", "M", "L", "XL"]),
        }
    )
    return frame, y


def test_frames_with_gaps_and_text():
    X, y = mixed_frame()
    X.loc[3, "word"] = None
    fitted = TreeEnsembleClassifier(**SMALL).fit(X, y)
    assert fitted.score(X, y) > 0.9
    by_name = {v.name: v for v in fitted.model_.variables}
    assert isinstance(by_name["word"].encoding, Categories)
    assert isinstance(by_name["number"].encoding, Cuts)
    assert by_name["size"].states == ("S", "M", "L", "XL")
    other = X.copy()
    other.loc[0, "word"] = "never seen"
    missing = X.copy()
    missing.loc[0, "word"] = None
    np.testing.assert_array_equal(fitted.predict_proba(other), fitted.predict_proba(missing))
    assert fitted.classes_.tolist() == ["no", "yes"]


def test_integers_are_cut_between_neighbours_and_unknown_ones_are_outer():
    X = np.repeat(np.array([0, 1, 2, 7]), [500, 3, 500, 1])[:, None]
    fitted = TreeEnsembleClassifier(**SMALL).fit(X, np.repeat([0, 1, 0, 1], [500, 3, 500, 1]))
    (variable,) = fitted.model_.variables
    assert (variable.encoding.points, variable.encoding.integer) == ((1, 2, 5), True)
    np.testing.assert_array_equal(fitted.predict_proba([[9]]), fitted.predict_proba([[7]]))
    np.testing.assert_array_equal(fitted.predict_proba([[-4]]), fitted.predict_proba([[0]]))


def test_weights_count():
    X, y = load_iris(return_X_y=True)
    weight = np.where(y == 1, 0.0, 1.0)
    assert set(TreeEnsembleClassifier(**SMALL).fit(X, y, weight).predict(X)) == {0, 2}
    tree = TreeEnsembleClassifier("tree", leaves=6)
    twice = clone(tree).fit(np.concatenate([X, X[:70]]), np.concatenate([y, y[:70]]))
    weighted = tree.fit(X, y, np.where(np.arange(150) < 70, 2, 1))
    np.testing.assert_array_equal(twice.predict(X), weighted.predict(X))


def test_few_levels_and_budgets():
    X, y = load_breast_cancer(return_X_y=True)
    tied = TreeEnsembleClassifier(rounds=60, levels=16, random_state=0).fit(X, y)
    assert len(tied.model_.values) <= 16
    assert tied.score(X, y) > 0.97
    small = TreeEnsembleClassifier(rounds=60, leaves=8, levels=16, budget=600, random_state=0).fit(X, y)
    assert model_cost(small.model_).bytes < 0.6 * model_cost(tied.model_).bytes
    assert small.score(X, y) > 0.93
    for wrong in ({"levels": 4}, {"budget": 100}):
        with pytest.raises(TinybayesError, match="boosted trees"):
            TreeEnsembleClassifier("tree", **wrong).fit(X, y)
    with pytest.raises(TinybayesError, match="kind"):
        TreeEnsembleClassifier("bush").fit(X, y)


def test_models_are_saved_and_explained(tmp_path):
    X, y = load_iris(return_X_y=True)
    fitted = TreeEnsembleClassifier(**SMALL).fit(X, y)
    save(fitted.model_, tmp_path / "iris.tb")
    codes = fitted._codes(X)
    np.testing.assert_array_equal(class_scores(load(tmp_path / "iris.tb"), codes), class_scores(fitted.model_, codes))
    told = explain(fitted.model_, codes[70], background=codes)
    assert told.label == fitted.predict(X[70:71])[0]


def test_defaults_depend_on_the_kind(monkeypatch):
    seen = {}

    def capture(name):
        def learn(data, options, **_):
            seen[name] = options
            return learn_forest(data, ForestOptions(leaves=2))

        return learn

    monkeypatch.setattr("tinybayes.learn.trees.boosting.learn_boosted_trees", capture("boosted"))
    monkeypatch.setattr("tinybayes.learn.trees.forest.learn_forest", capture("forest"))
    X, y = load_iris(return_X_y=True)
    TreeEnsembleClassifier(random_state=0).fit(X, y)
    boosted = seen["boosted"]
    assert isinstance(boosted, BoostingOptions)
    assert (boosted.leaf_rows, boosted.leaves, boosted.rounds, boosted.row_share) == (15, 31, 100, 0.7)
    TreeEnsembleClassifier("forest", leaf_rows=3).fit(X, y)
    forest = seen["forest"]
    assert (forest.leaf_rows, forest.leaves, forest.trees, forest.feature_share) == (3, 512, 100, 0.5)
    TreeEnsembleClassifier("tree").fit(X, y)
    assert (seen["forest"].trees, seen["forest"].feature_share) == (1, 1.0)
