import numpy as np
import pytest

from tinybayes.errors import TinybayesError
from tinybayes.infer import class_scores, predict_codes
from tinybayes.infer.trees import tree_scores
from tinybayes.model import TreeEnsemble, Trees, Variable

X = tuple(Variable(f"x{i}", (0, 1, 2)) for i in range(2))
Y = Variable("y", ("a", "b"))
# x0 <= 0 ? a value : (x1 in {0, 2} ? another : a third); then a tree that is a leaf
NODES = {
    "feature": [0, -1, 1, -1, -1, -1],
    "threshold": [0, 0, -1, 1, 2, 1],
    "child": [1, -1, 3, -1, -1, -1],
    "missing": [True, False, False, False, False, False],
    "members": [[True, False, True]],
    "root": [0, 5],
    "output": [0, 1],
}


def trees(**changes):
    return Trees(**{name: np.array(changes.get(name, value)) for name, value in NODES.items()})


def ensemble(**changes):
    given = {"values": np.array([[-10], [-20], [-40]]), "start": np.array([0, -5]), "scale": 0.1}
    return TreeEnsemble(X, Y, **({"trees": trees()} | given | changes))


def test_scores_are_the_values_of_the_leaves():
    rows = np.array([[0, 1], [1, 0], [2, 1], [1, 2], [-1, 1], [1, -1]])
    on_a = [-10, -20, -40, -20, -10, -40]
    np.testing.assert_array_equal(tree_scores(ensemble(), rows), [[value, -25] for value in on_a])
    np.testing.assert_allclose(class_scores(ensemble(), rows), [[value / 10, -2.5] for value in on_a])
    assert predict_codes(ensemble(), rows).tolist() == [0, 0, 1, 0, 0, 1]
    assert tree_scores(ensemble(), rows[:0]).shape == (0, 2)


def test_leaves_may_have_a_value_for_each_class():
    values = np.array([[1, 2], [3, 4], [5, 6]])
    model = ensemble(trees=trees(output=[-1, -1]), values=values, start=np.array([1, 0]))
    np.testing.assert_array_equal(tree_scores(model, np.array([[0, 0]])), [[1 + 1 + 3, 0 + 2 + 4]])
    assert model.votes is False
    assert ensemble().votes is False
    assert model.reach == 1 + 6 + 4


def test_votes_are_one_number_for_one_class():
    votes = {"trees": trees(output=[-1, -1]), "start": np.array([0, 0])}
    assert ensemble(**votes, values=np.array([[3, 0], [0, 3], [3, 0]])).votes
    assert not ensemble(**votes, values=np.array([[3, 0], [0, 2], [3, 0]])).votes
    assert not ensemble(**votes, values=np.array([[-3, 0], [0, -3], [-3, 0]])).votes


def test_the_reach_bounds_all_scores():
    assert ensemble().reach == 40
    with pytest.raises(TinybayesError, match="sums below"):
        ensemble(values=np.array([[2**31 - 1], [0], [0]]), start=np.array([1, 0]))


def test_depth_and_kinds_of_nodes():
    found = trees()
    assert found.count == 2
    assert found.depth.tolist() == [0, 1, 1, 2, 2, 0]
    assert np.flatnonzero(found.is_set).tolist() == [2]
    assert np.flatnonzero(found.is_leaf).tolist() == [1, 3, 4, 5]
    first = trees(threshold=[-1, 0, 2, 1, 2, 1])  # a set of codes of the first feature
    assert np.flatnonzero(first.is_set).tolist() == [0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"child": [1, -1, 2, -1, -1, -1]}, "behind their node"),
        ({"child": [1, -1, 4, -1, -1, -1]}, "in its tree"),
        ({"child": [1, 3, 3, -1, -1, -1]}, "none of leaves"),
        ({"child": [2, -1, 3, -1, -1, -1]}, "below one other, got 0 above node 1"),
        ({"root": [1, 5]}, "from node 0 on"),
        ({"root": [0, 6]}, "from node 0 on"),
        ({"output": [0]}, "2 entries"),
        ({"missing": [True]}, "6 entries"),
        ({"members": np.zeros((0, 3), dtype=bool)}, "1 sets"),
        ({"feature": [[0]]}, "one axis"),
        ({"threshold": [0.5] * 6}, "integers"),
    ],
)
def test_nodes_that_are_no_trees_are_refused(changes, said):
    with pytest.raises(TinybayesError, match=said):
        trees(**changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"trees": trees(feature=[7, -1, 1, -1, -1, -1])}, "features below 2"),
        ({"trees": trees(threshold=[3, 0, -1, 1, 2, 1])}, "number of states"),
        ({"trees": trees(threshold=[0, 9, -1, 1, 2, 1])}, "values below 3"),
        ({"trees": trees(threshold=[0, -1, -1, 1, 2, 1])}, "values below 3"),
        ({"trees": trees(members=[[True, False]])}, "sets of 3 codes"),
        ({"trees": trees(output=[0, 2])}, "a class a tree"),
        ({"trees": trees(output=[0, -1])}, "a class a tree"),
        ({"trees": trees(output=[0, -1]), "values": np.ones((3, 2), dtype=int)}, "a class a tree"),
        ({"trees": trees(output=[-1, -1])}, "all classes"),
        ({"values": np.array([1])}, "2 axes"),
        ({"values": np.array([[0.5]] * 3)}, "integers"),
        ({"values": np.array([[-(2**31)]] * 3)}, "magnitudes"),
        ({"start": np.array([0])}, "2 scores"),
        ({"scale": 0.0}, "above zero"),
    ],
)
def test_ensembles_that_make_no_sense_are_refused(changes, said):
    with pytest.raises(TinybayesError, match=said):
        ensemble(**changes)


def test_codes_beyond_the_states_are_refused():
    with pytest.raises(TinybayesError, match="codes from -1 to 2"):
        tree_scores(ensemble(), np.array([[3, 0]]))
    with pytest.raises(TinybayesError, match="a class variable"):
        TreeEnsemble(X, None, trees(), np.array([[0]] * 3), np.array([0, 0]), 1.0)
