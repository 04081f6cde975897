import numpy as np
import pytest

from tinybayes.errors import TinybayesError
from tinybayes.infer.trees import tree_scores
from tinybayes.model import Fixed, Float, TreeEnsemble, Trees, Variable

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
    given = {"table": np.float32([[-1.0], [-2.0], [-4.0]]), "start": np.float32([0.0, -0.5]), "format": Float()}
    return TreeEnsemble(X, Y, **({"trees": trees()} | given | changes))


def test_scores_are_the_values_of_the_leaves():
    rows = np.array([[0, 1], [1, 0], [2, 1], [1, 2], [-1, 1], [1, -1]])
    on_a = [-1, -2, -4, -2, -1, -4]
    np.testing.assert_array_equal(tree_scores(ensemble(), rows), [[value, -2.5] for value in on_a])
    assert tree_scores(ensemble(), rows[:0]).shape == (0, 2)


def test_leaves_may_have_a_value_for_each_class_in_fixed_point():
    model = ensemble(
        trees=trees(output=[-1, -1]),
        table=np.uint8([[1, 2], [3, 4], [5, 6]]),
        start=np.uint8([1, 0]),
        format=Fixed(3, 1),
    )
    np.testing.assert_array_equal(tree_scores(model, np.array([[0, 0]])), [[-(1 + 1 + 3) / 2, -(0 + 2 + 4) / 2]])


def test_depth_and_kinds_of_nodes():
    found = trees()
    assert found.count == 2
    assert found.depth.tolist() == [0, 1, 1, 2, 2, 0]
    assert np.flatnonzero(found.is_set).tolist() == [2]
    assert np.flatnonzero(found.is_leaf).tolist() == [1, 3, 4, 5]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"child": [1, -1, 2, -1, -1, -1]}, "behind their node"),
        ({"child": [1, -1, 4, -1, -1, -1]}, "in its tree"),
        ({"child": [1, 3, 3, -1, -1, -1]}, "none of leaves"),
        ({"child": [2, -1, 3, -1, -1, -1]}, "below one other"),
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
        ({"trees": trees(members=[[True, False]])}, "sets of 3 codes"),
        ({"trees": trees(output=[0, 2])}, "a class a tree"),
        ({"trees": trees(output=[0, -1])}, "a class a tree"),
        ({"trees": trees(output=[-1, -1])}, "all classes"),
        ({"table": np.float32([1.0])}, "2 axes"),
        ({"start": np.float32([0.0])}, "2 scores"),
    ],
)
def test_ensembles_that_make_no_sense_are_refused(changes, said):
    with pytest.raises(TinybayesError, match=said):
        ensemble(**changes)


def test_codes_beyond_the_states_are_refused():
    with pytest.raises(TinybayesError, match="number of states"):
        tree_scores(ensemble(), np.array([[3, 0]]))
    with pytest.raises(TinybayesError, match="a class variable"):
        TreeEnsemble(X, None, trees(), np.float32([[0.0]] * 3), np.float32([0, 0]), Float())
