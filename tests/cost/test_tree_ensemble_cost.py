"""The price of trees against counts by hand, and the different tests against a count of tuples."""

import numpy as np
import pytest

from tinybayes.compress.trees import tie_leaves
from tinybayes.cost import model_cost
from tinybayes.cost.tree_ensemble import find_tests, is_symmetric, level_bytes, node_bytes, tree_depths
from tinybayes.learn.trees.boosting import learn_boosted_trees
from tinybayes.learn.trees.forest import learn_forest
from tinybayes.learn.trees.options import BoostingOptions, ForestOptions
from tinybayes.model import Categories, Dataset, TreeEnsemble, Trees, Variable

X = tuple(Variable(f"x{i}", (0, 1, 2)) for i in range(2))
Y = Variable("y", ("a", "b", "c"))


def data(classes=3, gaps=0.1):
    random = np.random.default_rng(0)
    rows = random.integers(0, 6, (400, 4))
    y = (rows.sum(axis=1) + random.integers(0, 3, 400)) * classes // 23
    kinds = [None, None, Categories(), None]
    variables = tuple(Variable(f"x{i}", tuple(range(6)), kind) for i, kind in enumerate(kinds))
    missing = random.random(rows.shape) < gaps
    return Dataset(variables, Variable("y", tuple(range(classes))), np.where(missing, -1, rows), y)


@pytest.mark.parametrize("symmetric", [False, True])
def test_tests_are_counted_once(symmetric):
    options = BoostingOptions(rounds=5, leaves=8, symmetric=symmetric, ridge=1.0, leaf_rows=1)
    trees = learn_boosted_trees(data(), options).trees
    sets = iter(trees.members)
    asked = {}
    for node in np.flatnonzero(~trees.is_leaf):
        chosen = tuple(next(sets)) if trees.is_set[node] else ()
        asked[int(node)] = int(trees.feature[node]), int(trees.threshold[node]), bool(trees.missing[node]), chosen
    tests = find_tests(trees)
    assert len(tests.node) == len(set(asked.values()))
    assert {asked[int(node)] for node in tests.node} == set(asked.values())
    assert all(asked[node] == asked[int(tests.node[tests.number[node]])] for node in asked)
    assert (tests.number[trees.is_leaf] == -1).all()


def votes():
    """Return x0 <= 0 ? a : (x1 <= 1 ? b : c)."""
    leaf = [-1, -1, -1]
    nodes = Trees(
        feature=np.array([0, -1, 1, -1, -1]),
        threshold=np.array([0, 0, 1, 1, 2]),
        child=np.array([1, leaf[0], 3, leaf[1], leaf[2]]),
        missing=np.ones(5, dtype=bool),
        members=np.zeros((0, 3), dtype=bool),
        root=np.array([0]),
        output=np.array([-1]),
    )
    return TreeEnsemble(X, Y, nodes, np.eye(3, dtype=int), np.zeros(3, dtype=int), 1.0)


def test_a_tree_of_votes_by_hand():
    model = votes()
    cost = model_cost(model)
    assert node_bytes(model) == 2 * 3 + 3  # nodes of a feature, a threshold and a length, and leaves
    assert (cost.bytes, cost.parameters, cost.operations) == (9, 7, 0)
    assert cost.comparisons == 2 + 2
    assert tree_depths(model.trees).tolist() == [2]
    assert not is_symmetric(model.trees)
    assert level_bytes(model) is None


def test_symmetric_trees_are_stored_as_levels():
    rows = data(gaps=0.0)
    options = BoostingOptions(rounds=4, leaves=8, symmetric=True, ridge=1.0)
    model = tie_leaves(learn_boosted_trees(rows, options), 16, rows)
    trees, tests = model.trees, len(find_tests(model.trees).node)
    assert (tree_depths(trees) == 3).all()
    tables = 2 * tests + 2 * len(model.values) + 3 * 2  # a set of six categories takes a byte, as a threshold does
    assert model.start.max() < 2**15
    assert level_bytes(model) == tables + trees.count * (3 + 4)  # each class has as many trees
    assert model_cost(model).bytes == level_bytes(model) < node_bytes(model)
    assert model_cost(model).additions == trees.count


def test_forests_add_shares_or_votes():
    shares = learn_forest(data(), ForestOptions(trees=4, leaves=8))
    assert model_cost(shares).additions == 4 * 3
    assert model_cost(learn_forest(data(), ForestOptions(trees=4, leaves=8, votes=True))).additions == 4
