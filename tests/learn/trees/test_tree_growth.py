"""What all learners of trees share, by hand: columns, limits, prices, bytes, and models from grown trees."""

import numpy as np
import pytest

from tinybayes._kernels.tree_growth import Tree
from tinybayes.cost import model_cost
from tinybayes.infer.trees import tree_scores
from tinybayes.learn.trees import forest
from tinybayes.learn.trees.boosting import Boosting, learn_boosted_trees
from tinybayes.learn.trees.forest import learn_forest
from tinybayes.learn.trees.growth import Ensemble, as_rows, is_ordered, limits_of, prices_of
from tinybayes.learn.trees.options import BoostingOptions, ForestOptions
from tinybayes.model import Categories, Dataset, Variable


def table(rows=200, cards=(5, 8, 3), classes=3, seed=0):
    random = np.random.default_rng(seed)
    X = np.stack([random.integers(0, k, rows) for k in cards], axis=1)
    y = (X.sum(axis=1) + random.integers(0, 3, rows)) * classes // (sum(cards) + 2)
    variables = tuple(Variable(f"x{i}", tuple(range(k))) for i, k in enumerate(cards))
    return Dataset(variables, Variable("y", tuple(range(classes))), X, y)


def one_test(feature, threshold, values, outputs=1):
    """Return a tree of one test; `values` are those of its two leaves."""
    nodes = 3
    value = np.zeros((nodes, outputs))
    value[1:] = np.reshape(values, (2, outputs))
    return Tree(
        feature=np.array([feature, -1, -1], dtype=np.int32),
        threshold=np.array([threshold, 0, 0], dtype=np.int32),
        child=np.array([1, 0, 0], dtype=np.int32),
        missing=np.zeros(nodes, dtype=bool),
        members=np.zeros((nodes, 9), dtype=bool),
        start=np.zeros(nodes, dtype=np.int64),
        stop=np.zeros(nodes, dtype=np.int64),
        value=value,
        second=np.zeros(nodes),
        depth=np.zeros(nodes, dtype=np.int32),
    )


def leaf(*value):
    """Return a tree that is a leaf."""
    alone = one_test(-1, 0, np.zeros((2, len(value))), len(value))
    return Tree(*(array[:1] for array in alone))._replace(value=np.array([value], dtype=float))


def ensemble(data, **options):
    columns = as_rows(data).columns
    return Ensemble(prices_of(ForestOptions(threshold_price=1.5, feature_price=2.5), columns), columns.begin, **options)


@pytest.mark.parametrize("states", [3, 254, 255, 256, 300, 65_535, 65_536])
def test_columns_hold_all_codes_and_one_for_what_is_missing(states):
    codes = np.array([0, states - 1, -1, states // 2])
    variables = Variable("a", tuple(range(states))), Variable("b", (0, 1))
    X = np.stack([codes, [0, 1, 1, -1]], axis=1)
    rows = as_rows(Dataset(variables, Variable("y", (0, 1)), X, np.array([0, 1, 0, 1])))
    assert rows.columns.codes.astype(np.int64).tolist() == [[0, states - 1, states, states // 2], [0, 1, 1, 2]]
    assert rows.columns.begin.tolist() == [0, states + 1, states + 4]


def test_rows_without_weight_are_left_out():
    data = table(6)
    weight = np.array([1.0, 0.0, 2.0, 0.0, 0.5, 1.0])
    rows = as_rows(Dataset(data.variables, data.target, data.X, data.y, weight))
    assert rows.index.tolist() == [0, 2, 4, 5]
    assert rows.weight.tolist() == [1.0, 2.0, 0.5, 1.0]


def test_two_categories_are_as_good_as_ordered():
    for states, ordered in ((1, True), (2, True), (3, False)):
        assert is_ordered(Variable("a", tuple(range(states)), Categories())) is ordered
        assert is_ordered(Variable("a", tuple(range(states))))


def test_limits_and_prices_by_hand():
    options = ForestOptions(
        leaves=7, leaf_rows=3, node_price=0.5, feature_share=0.01, feature_price=2, threshold_price=3
    )
    limits = limits_of(options, 4, 0.25, 0.125)
    assert (limits.leaves, limits.rows, limits.second, limits.ridge, limits.gain) == (7, 3.0, 0.125, 0.25, 1.0)
    assert limits.features == 1  # at least
    assert limits.depth > 10**9
    columns = as_rows(table(10)).columns
    prices = prices_of(options, columns, np.array([1.0, 0.3, 2.0]))
    assert prices.feature == pytest.approx([4.0, 1.2, 8.0])
    assert (prices.test == 6.0).all()
    assert prices_of(options, columns).feature.tolist() == [4.0] * 3


def test_what_a_tree_uses_is_free_from_then_on():
    data = table()
    grown = ensemble(data, most_tests=2)
    grown.add(0, one_test(0, 2, (1, 2)), 3)
    assert grown.prices.feature.tolist() == [0.0, 5.0, 5.0]
    assert np.flatnonzero(grown.prices.test == 0).tolist() == [2]
    assert np.isfinite(grown.prices.test).all()
    grown.add(1, one_test(1, 4, (1, 2)), 3)
    assert grown.prices.feature.tolist() == [0.0, 0.0, 5.0]
    assert np.flatnonzero(np.isfinite(grown.prices.test)).tolist() == [2, 6 + 4]  # no other test from now on


def test_the_bytes_of_trees_by_hand():
    """Tests take three bytes, nodes one and a half; of symmetric trees a level takes a byte, and two leaves one."""
    data = table()
    grown = ensemble(data)
    assert grown.bytes(symmetric=False) == 0
    grown.add(0, one_test(0, 2, (1, 2)), 3)
    grown.add(1, one_test(0, 2, (1, 2)), 3)
    assert grown.bytes(symmetric=False) == 3 + 2 * 5
    grown.add(2, one_test(1, 2, (1, 2)), 3)
    assert grown.bytes(symmetric=True) == 2 * 3 + 3 * (1 + 1)
    boosting = Boosting(data, BoostingOptions(leaves=8, leaf_rows=1, symmetric=True))
    boosting.round()
    boosting.round()
    tests = 3 * int(boosting.ensemble.used.sum())
    assert boosting.ensemble.largest == 15
    assert boosting.bytes == tests + 6 * (3 + 4)


def scores(model, data):
    return tree_scores(model, data.X) * model.scale


@pytest.mark.parametrize("output", range(3))
def test_a_tree_that_is_a_leaf_adds_to_its_class_alone(output):
    data = table()
    grown, start = ensemble(data), np.array([0.5, -0.25, 1.0])
    grown.add((output + 1) % 3, one_test(0, 2, (-1.0, 3.0)), 3)
    grown.add(output, leaf(2.0), 1)
    wanted = np.tile(start, (len(data), 1))
    wanted[:, output] += 2.0
    wanted[:, (output + 1) % 3] += np.where(data.X[:, 0] <= 2, -1.0, 3.0)
    np.testing.assert_allclose(scores(grown.model(data, start), data), wanted, atol=3.0 / 2047)


def test_a_leaf_for_all_classes_adds_to_all():
    data = table()
    grown = ensemble(data)
    grown.add(-1, leaf(1.0, 2.0, 4.0), 1)
    grown.add(-1, one_test(1, 3, [(1, 0, 0), (0, 1, 0)], 3), 3)
    wanted = np.array([1.0, 2.0, 4.0]) + np.where(data.X[:, 1:2] <= 3, [[1, 0, 0]], [[0, 1, 0]])
    np.testing.assert_allclose(scores(grown.model(data, np.zeros(3)), data), wanted, atol=1.0 / 2047)


@pytest.mark.parametrize(
    ("values", "start", "largest"),
    [((0.5, -2.0), 0.0, 2.0), ((0.5, -2.0), 1024.0, 4.0), ((0.0, 0.0), 0.0, 2.0**-16)],
)
def test_the_unit_of_scores(values, start, largest):
    """The largest value of a leaf has 12 bits; or a 256th of what scores start with has."""
    data = table()
    grown = ensemble(data)
    grown.add(0, one_test(0, 2, values), 3)
    model = grown.model(data, np.array([start, 0.0, 0.0]))
    assert model.scale == pytest.approx(largest / 2047, rel=1e-12)


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_scores_of_all_rows_are_those_of_the_trees_so_far(share):
    """Also of rows that a tree was not grown from."""
    data = table(300)
    boosting = Boosting(data, BoostingOptions(leaves=4, row_share=share, learning_rate=0.5))
    for _ in range(4):
        boosting.round()
    model = boosting.model()
    own = boosting.scores.T - boosting.start.max()
    np.testing.assert_allclose(scores(model, data), own, atol=5 * model.scale)


def test_the_last_round_within_the_budget_is_taken():
    data, options = table(300, (12, 9, 7)), BoostingOptions(rounds=8, leaves=6, leaf_rows=5)
    boosting = Boosting(data, options)
    for _ in range(options.rounds):
        boosting.round()
    costs = [model_cost(boosting.model(k)).bytes for k in range(1, 9)]
    assert costs == sorted(costs)
    for budget, rounds in ((costs[0] - 1, 1), (costs[0], 1), (costs[1] - 1, 1), (costs[4], 5), (costs[7], 8)):
        found = learn_boosted_trees(data, options, budget=budget)
        assert found.trees.count == 3 * rounds


def test_rounds_are_reported_until_the_bytes_exceed_the_budget():
    data, options = table(300, (12, 9, 7)), BoostingOptions(rounds=8, leaves=6, leaf_rows=5)
    boosting = Boosting(data, options)
    for _ in range(3):
        boosting.round()
    told = []
    learn_boosted_trees(data, options, budget=boosting.bytes, report=lambda *numbers: told.append(numbers))
    assert told == [(k, 8) for k in range(1, 5)]


def test_every_tree_of_a_forest_draws_from_a_stream_of_its_own(monkeypatch):
    streams = []
    kernel = forest.grow_tree

    def noted(*arguments):
        streams.extend(array.tolist()[0] for array in arguments if getattr(array, "dtype", None) == np.uint64)
        return kernel(*arguments)

    monkeypatch.setattr(forest, "grow_tree", noted)
    learn_forest(table(), ForestOptions(trees=60, leaves=4))
    assert len(set(streams)) == 60


def test_many_rows_are_scored_as_few():
    """Tasks are of 1,024 rows."""
    data = table(2500)
    grown = ensemble(data)
    grown.add(0, one_test(0, 2, (-1.0, 3.0)), 3)
    grown.add(1, one_test(1, 4, (2.0, 1.0)), 3)
    model = grown.model(data, np.zeros(3))
    apart = [tree_scores(model, data.X[start : start + 100]) for start in range(0, 2500, 100)]
    np.testing.assert_array_equal(tree_scores(model, data.X), np.concatenate(apart))
