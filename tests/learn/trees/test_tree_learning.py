"""Boosted trees, decision trees and forests against an independent learner, scikit-learn, and their own definitions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier

from tinybayes.compress.trees import tie_leaves
from tinybayes.cost import model_cost
from tinybayes.cost.tree_ensemble import find_tests, is_symmetric, node_bytes, tree_depths
from tinybayes.errors import TinybayesError
from tinybayes.infer import class_scores, predict_codes
from tinybayes.infer.scores import normalize_scores
from tinybayes.infer.trees import tree_scores
from tinybayes.learn.trees import boosting
from tinybayes.learn.trees.boosting import learn_boosted_trees
from tinybayes.learn.trees.by_kind import learn_trees
from tinybayes.learn.trees.forest import learn_forest
from tinybayes.learn.trees.options import BoostingOptions, ForestOptions
from tinybayes.model import Categories, Dataset, Variable


def table(rows=300, cards=(5, 8, 3), classes=3, gaps=0.0, seed=0, categories=()):
    """Rows whose class depends on the sums of codes, with noise."""
    random = np.random.default_rng(seed)
    X = np.stack([random.integers(0, k, rows) for k in cards], axis=1)
    y = (X.sum(axis=1) + random.integers(0, 3, rows)) * classes // (sum(cards) + 2)
    X = np.where(random.random(X.shape) < gaps, -1, X)
    variables = tuple(
        Variable(f"x{i}", tuple(range(k)), Categories() if i in categories else None) for i, k in enumerate(cards)
    )
    return Dataset(variables, Variable("y", tuple(range(classes))), X, y)


def gini_gain(y, left, classes):
    def score(chosen):
        counts = np.bincount(y[chosen], minlength=classes)
        return (counts**2).sum() / counts.sum()

    return score(left) + score(~left) - score(np.ones(len(y), dtype=bool))


def best_root(data, gaps_left=(False, True)):
    """The best gain of any threshold, by trying all."""
    best = 0.0
    for f, variable in enumerate(data.variables):
        column = data.X[:, f]
        for threshold in range(variable.cardinality):
            for side in gaps_left:
                left = np.where(column < 0, side, column <= threshold)
                if 0 < left.sum() < len(left):
                    best = max(best, gini_gain(data.y, left, data.target.cardinality))
    return best


def root_side(model, X):
    trees = model.trees
    column = X[:, trees.feature[0]]
    ordered = column <= trees.threshold[0]
    if trees.threshold[0] < 0:
        ordered = trees.members[0][column]
    return np.where(column < 0, trees.missing[0], ordered)


@given(seed=st.integers(0, 10_000), gaps=st.sampled_from([0.0, 0.2]), classes=st.integers(2, 4))
def test_the_root_is_the_best_of_all_splits(seed, gaps, classes):
    data = table(60, (4, 3, 6), classes, gaps, seed)
    model = learn_forest(data, ForestOptions(leaves=2))
    gain = best_root(data)
    if gain < 1e-9:
        assert model.trees.feature[0] == -1
    else:
        assert gini_gain(data.y, root_side(model, data.X), classes) == pytest.approx(gain)


def test_sets_of_categories_of_two_classes_are_the_best_of_all():
    data = table(200, (6, 2), 2, categories=(0,))
    model = learn_forest(data, ForestOptions(leaves=2))
    column, best = data.X[:, 0], best_root(data)
    for subset in range(1, 31):
        left = (subset >> column) & 1 == 1
        if 0 < left.sum() < len(left):
            best = max(best, gini_gain(data.y, left, 2))
    assert gini_gain(data.y, root_side(model, data.X), 2) == pytest.approx(best, rel=1e-2)


def test_a_tree_is_that_of_scikit_learn():
    data = table(500, (9, 7, 5, 6))
    ours = learn_forest(data, ForestOptions(leaves=12))
    theirs = DecisionTreeClassifier(max_leaf_nodes=12, random_state=0).fit(data.X, data.y)
    leaf = theirs.apply(data.X)
    for some in np.unique(leaf):  # one row in all is added to those of a leaf
        counts = np.bincount(data.y[leaf == some], minlength=3) + 1 / 3
        scores = class_scores(ours, data.X[leaf == some])
        np.testing.assert_allclose(scores, np.log(counts / counts.sum())[None].repeat(len(scores), axis=0), atol=1e-3)
    votes = learn_forest(data, ForestOptions(leaves=12, votes=True))
    assert votes.votes
    np.testing.assert_array_equal(predict_codes(votes, data.X), theirs.predict(data.X))


def boosted_by_scikit_learn(data, **options):
    theirs = HistGradientBoostingClassifier(early_stopping=False, **options)
    X = np.where(data.X < 0, np.nan, data.X)
    return theirs.fit(X, data.y).decision_function(X)


@pytest.mark.parametrize(("classes", "gaps"), [(2, 0.0), (3, 0.1)])
def test_boosted_trees_are_those_of_scikit_learn(classes, gaps):
    data = table(400, (9, 7, 5), classes, gaps)
    model = learn_boosted_trees(data, BoostingOptions(rounds=8, leaves=6))
    ours = class_scores(model, data.X)
    theirs = boosted_by_scikit_learn(data, max_iter=8, max_leaf_nodes=6, learning_rate=0.1)
    if classes == 2:
        np.testing.assert_allclose(ours[:, 1] - ours[:, 0], theirs, atol=2e-3)
    else:
        centred = theirs - theirs.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(ours - ours.mean(axis=1, keepdims=True), centred, atol=2e-3)


def loss(model, data):
    scores = class_scores(model, data.X)
    return -(scores[np.arange(len(data.y)), data.y] - np.logaddexp.reduce(scores, axis=1)).mean()


def test_every_round_lowers_the_loss_and_gaps_and_shares_are_taken():
    data = table(400, (9, 7, 5), 4, 0.2, categories=(1,))
    options = {"leaves": 5, "row_share": 0.7, "feature_share": 0.5}
    losses = [loss(learn_boosted_trees(data, BoostingOptions(rounds=n, **options)), data) for n in (1, 4, 16)]
    assert losses[0] > losses[1] > losses[2]


def test_leaves_counted_by_several_threads_give_the_same_trees(monkeypatch):
    data = table(400, (9, 7, 5), 2, 0.1, categories=(1,))
    options = BoostingOptions(rounds=3, leaves=6, leaf_rows=2, threshold_price=0.1, feature_share=0.7)
    alone, count, calls = learn_boosted_trees(data, options), boosting.Boosting._count, []
    monkeypatch.setattr(boosting, "LARGE", 30)
    monkeypatch.setattr(boosting, "thread_count", lambda: 4)
    monkeypatch.setattr(boosting.Boosting, "_count", lambda self, *given: (calls.append(1), count(self, *given))[1])
    shared = learn_boosted_trees(data, options)
    assert len(calls) > options.rounds  # not the roots only
    for name in ("feature", "threshold", "child", "missing"):
        np.testing.assert_array_equal(getattr(shared.trees, name), getattr(alone.trees, name))
    np.testing.assert_array_equal(shared.values, alone.values)


def test_results_do_not_depend_on_the_threads(monkeypatch):
    data = table(300, gaps=0.1)
    models = []
    for threads in ("1", "2"):
        monkeypatch.setenv("TINYBAYES_THREADS", threads)
        models.append(learn_boosted_trees(data, BoostingOptions(rounds=3, row_share=0.5, feature_share=0.5)))
    np.testing.assert_array_equal(models[0].trees.threshold, models[1].trees.threshold)
    np.testing.assert_array_equal(models[0].values, models[1].values)


def test_prices_lead_to_fewer_nodes_thresholds_and_features():
    data = table(600, (12, 12, 12), 3)

    def used(**prices):
        trees = learn_boosted_trees(data, BoostingOptions(rounds=10, leaves=8, **prices)).trees
        inner = ~trees.is_leaf
        tests = set(zip(trees.feature[inner].tolist(), trees.threshold[inner].tolist(), strict=True))
        return int(inner.sum()), len(tests), len({f for f, _ in tests})

    free = used()
    assert used(node_price=2.0)[0] < free[0]
    assert used(threshold_price=3.0)[1] < free[1]
    assert used(feature_price=1e4) == (0, 0, 0)


def test_weights_are_repetitions():
    data = table(80, seed=3)
    weight = np.random.default_rng(0).integers(0, 3, 80).astype(float)
    weighted = Dataset(data.variables, data.target, data.X, data.y, weight)
    repeated = data.rows(np.repeat(np.arange(80), weight.astype(int)))
    options = BoostingOptions(rounds=4, leaves=4, leaf_rows=1)
    np.testing.assert_allclose(
        class_scores(learn_boosted_trees(weighted, options), data.X),
        class_scores(learn_boosted_trees(repeated, options), data.X),
        atol=1e-3,
    )


def test_a_forest_is_the_mean_of_trees_and_rows_without_class_are_left_out():
    data = table(200)
    y = data.y.copy()
    y[::7] = -1
    forest = learn_forest(Dataset(data.variables, data.target, data.X, y), ForestOptions(trees=5, feature_share=0.5))
    scores = tree_scores(forest, data.X)
    np.testing.assert_allclose(scores.sum(axis=1) / scores.sum(axis=1).mean(), 1.0, atol=1e-3)
    calibrated = normalize_scores(class_scores(forest, data.X))[np.arange(200), data.y].mean()
    assert calibrated > -0.8
    assert (scores.argmax(axis=1) == data.y).mean() > 0.6
    assert forest.trees.count == 5


def test_bad_input_is_named():
    data = table(50)
    with pytest.raises(TinybayesError, match="rows with a class"):
        learn_boosted_trees(Dataset(data.variables, None, data.X))
    with pytest.raises(TinybayesError, match="known class"):
        learn_forest(Dataset(data.variables, data.target, data.X, np.full(50, -1)))
    with pytest.raises(TinybayesError, match="leaves"):
        BoostingOptions(leaves=0)
    with pytest.raises(TinybayesError, match="codes with 3 columns"):
        tree_scores(learn_forest(data), data.X[:, :2])


def test_symmetric_trees_ask_one_question_a_level_the_best_for_all_leaves():
    data = table(500, (9, 7, 5), 3, 0.1)
    model = learn_boosted_trees(data, BoostingOptions(rounds=6, leaves=8, symmetric=True, ridge=1.0))
    assert is_symmetric(model.trees)
    assert tree_depths(model.trees).max() == 3
    plain = learn_boosted_trees(data, BoostingOptions(rounds=6, leaves=8, ridge=1.0))
    assert not is_symmetric(plain.trees)
    assert loss(model, data) < 1.15 * loss(plain, data)
    root = learn_boosted_trees(data, BoostingOptions(rounds=1, leaves=2, ridge=1.0)).trees
    level = learn_boosted_trees(data, BoostingOptions(rounds=1, leaves=2, ridge=1.0, symmetric=True)).trees
    np.testing.assert_array_equal(root.feature, level.feature)
    np.testing.assert_array_equal(root.threshold[~root.is_leaf], level.threshold[~level.is_leaf])
    np.testing.assert_array_equal(root.missing, level.missing)


def test_the_number_of_tests_and_the_bytes_are_limits():
    data = table(500, (20, 20, 20), 3)
    few = learn_boosted_trees(data, BoostingOptions(rounds=20, leaves=6, tests=10))
    assert len(find_tests(few.trees).node) <= 25  # the limit is looked at after each round
    assert few.trees.count == 60
    small = learn_boosted_trees(data, BoostingOptions(rounds=50, leaves=6), budget=400)
    assert 3 <= small.trees.count < 150
    assert node_bytes(tie_leaves(small, 16, data)) < 550


@pytest.mark.parametrize("levels", [4, 16])
def test_few_values_of_leaves_keep_the_scores(levels):
    data = table(800, (9, 7, 5), 3, 0.1)
    model = learn_boosted_trees(data, BoostingOptions(rounds=20, leaves=6))
    tied = tie_leaves(model, levels, data)
    assert len(tied.values) <= levels
    exact = class_scores(model, data.X)
    off = np.abs(class_scores(tied, data.X) - exact).mean()
    # Rounded one by one, to the same levels, leaves are further off.
    nearest = tied.values[np.abs(model.values - tied.values.T).argmin(axis=1)]
    alone = replace(model, values=nearest)
    assert off < 0.7 * np.abs(class_scores(alone, data.X) - exact).mean()


def test_many_levels_change_nothing():
    data = table(300)
    model = learn_boosted_trees(data, BoostingOptions(rounds=3, leaves=4))
    np.testing.assert_array_equal(tree_scores(tie_leaves(model, 10**4, data), data.X), tree_scores(model, data.X))
    with pytest.raises(TinybayesError, match="one level"):
        tie_leaves(model, 0, data)


def test_leaves_of_a_forest_share_vectors():
    data = table(600, (9, 7, 5), 3, 0.1)
    forest = learn_forest(data, ForestOptions(trees=20, leaves=16))
    exact = normalize_scores(class_scores(forest, data.X))
    off = []
    for levels in (1, 4, 16, 10**4):
        tied = tie_leaves(forest, levels, data)
        assert len(tied.values) <= min(levels, len(forest.values))
        assert 0 <= tied.values.min() <= tied.values.max() <= 127  # a byte each
        np.testing.assert_array_equal(tied.trees.feature, forest.trees.feature)
        off.append(float(np.abs(np.exp(normalize_scores(class_scores(tied, data.X))) - np.exp(exact)).mean()))
    assert off == sorted(off, reverse=True)
    assert off[-1] < 0.01  # of rounding to 7 bits
    one = tie_leaves(forest, 1, data)  # the mean of all leaves, by rows: shares of the classes
    means = one.values[0] / one.values[0].sum()
    np.testing.assert_allclose(means, np.bincount(data.y) / len(data.y), atol=0.03)


@given(seed=st.integers(0, 1000), gaps=st.sampled_from([0.0, 0.2]))
@settings(max_examples=25)
def test_every_level_asks_the_best_question_for_all_leaves(seed, gaps):
    data = table(120, (4, 5, 3), 2, gaps, seed, categories=(1,))
    ridge = 1.0
    options = BoostingOptions(rounds=1, leaves=4, symmetric=True, ridge=ridge, learning_rate=1.0)
    trees = learn_boosted_trees(data, options).trees
    share = np.bincount(data.y, minlength=2) / len(data.y)
    gradient, second = share[1] - (data.y == 1), np.full(len(data.y), share[0] * share[1])

    def score(rows):
        return gradient[rows].sum() ** 2 / (second[rows].sum() + ridge)

    def gain(left, leaves):
        return sum(score(leaf & left) + score(leaf & ~left) - score(leaf) for leaf in leaves)

    def side(node):
        column = data.X[:, trees.feature[node]]
        if trees.threshold[node] < 0:
            chosen = trees.members[0 if node == 0 or not trees.is_set[0] else 1][column]
        else:
            chosen = column <= trees.threshold[node]
        return np.where(column < 0, trees.missing[node], chosen)

    leaves = [np.ones(len(data.y), dtype=bool)]
    for node in (0, 1):
        if trees.feature[node] < 0:
            break
        best = 0.0
        for f in (0, 2):  # all thresholds of the ordered features
            column = data.X[:, f]
            for threshold in range(data.variables[f].cardinality):
                for gaps_left in (False, True):
                    best = max(best, gain(np.where(column < 0, gaps_left, column <= threshold), leaves))
        assert gain(side(node), leaves) >= best - 1e-9
        leaves = [leaf & half for leaf in leaves for half in (side(node), ~side(node))]


def test_symmetric_trees_split_categories_into_sets():
    random = np.random.default_rng(0)
    X = random.integers(0, 8, (400, 1))
    y = np.isin(X[:, 0], [1, 4, 6]).astype(int)
    data = Dataset((Variable("x", tuple("abcdefgh"), Categories()),), Variable("y", (0, 1)), X, y)
    options = BoostingOptions(rounds=1, leaves=2, symmetric=True, learning_rate=1.0)
    model = learn_boosted_trees(data, options)
    assert model.trees.is_set[0]
    np.testing.assert_array_equal(predict_codes(model, X), y)


def test_trees_of_a_forest_know_the_tests_of_those_before():
    data = table(400, (20, 20, 20), 3)
    sizes = [
        len(find_tests(learn_forest(data, ForestOptions(trees=8, leaves=6, feature_share=0.7, **limit)).trees).node)
        for limit in ({}, {"tests": 6}, {"threshold_price": 5.0})
    ]
    assert sizes[1] <= 10 < sizes[0]  # the limit is looked at after each tree
    assert sizes[2] < sizes[0]


def test_a_budget_is_that_of_what_is_left_after_shrinking():
    data = table(500, (12, 9, 7), 3)
    options = BoostingOptions(rounds=60, leaves=6, leaf_rows=5)
    plain = learn_boosted_trees(data, options, budget=700)
    tied = learn_boosted_trees(data, options, budget=700, shrink=lambda model: tie_leaves(model, 4, data))
    assert len(tied.values) <= 4
    assert tied.trees.count > plain.trees.count
    assert 600 < model_cost(tied).bytes <= 700
    assert 600 < model_cost(plain).bytes <= 700
    one = learn_boosted_trees(data, options, budget=1)
    assert one.trees.count == 3  # at least one round
    with pytest.raises(TinybayesError, match="shrink: expected boosted trees, got a forest"):
        learn_trees(data, "forest", shrink=lambda model: model)
