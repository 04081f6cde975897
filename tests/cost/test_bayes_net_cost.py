import numpy as np
import pytest

from strategies import folds, random_data
from tinybayes.compress import quantize
from tinybayes.cost import model_cost
from tinybayes.learn import chow_liu, learn_classifier, maximum_likelihood, naive_bayes
from tinybayes.model import CPD, BayesNet, Codebook, Cost, Dataset, DecisionTree, Fixed, Float, Variable


def small():
    variables = [Variable("a", (0, 1)), Variable("b", (0, 1, 2))]
    return Dataset(variables, Variable("y", (0, 1, 2, 3)), np.array([[0, 1], [1, 2]]), np.array([0, 3]))


def test_naive_bayes_by_hand():
    cost = model_cost(learn_classifier(small(), structure="naive"))
    assert cost.parameters == 4 + 4 * 2 + 4 * 3
    assert cost.bits == 32 * 24
    assert cost.additions == cost.operations == 2 * 4
    assert cost.lookups == 3 * 4
    assert cost.comparisons == 3
    assert cost.bytes == 96


def test_tan_by_hand():
    cost = model_cost(learn_classifier(small(), structure="chow-liu", number_format=Fixed(2, 3)))
    assert cost.parameters == 4 + 4 * 2 + 4 * 2 * 3
    assert cost.bits == 5 * 36
    assert cost.operations == 8


def test_a_codebook_is_paid_once():
    net = quantize(learn_classifier(small(), structure="naive"), Codebook((-3.0, -2.0, -1.0, -0.5, -0.1)))
    assert model_cost(net).bits == 24 * 3 + 5 * 32


def test_without_a_class_and_with_trees():
    variables = [Variable("a", (0, 1)), Variable("b", (0, 1, 2))]
    tree = DecisionTree([0, -1, -1], [0, 0, 0], [1, 2], [0, 0, 1])
    cpds = (CPD((), np.log([[0.5, 0.5]]), Float(64)), CPD((0,), np.log(np.full((2, 3), 1 / 3)), Float(64), tree))
    cost = model_cost(BayesNet(variables, None, cpds))
    assert cost == Cost(bits=64 * 8, parameters=8, additions=1, lookups=2, comparisons=1)


def test_the_longest_path_of_a_tree_is_counted():
    variables = [Variable("a", (0, 1)), Variable("b", (0, 1, 2)), Variable("c", (0, 1, 2, 3)), Variable("d", (0, 1))]
    # b at the root: state 0 is a leaf, 1 asks for a and then c, 2 asks for c; children in no particular order.
    split, first = [1, -1, 0, 2, -1, 2, -1, -1], [6, 0, 4, 0, 0, 9, 0, 0]
    children = [4, 6, 6, 7, 6, 5, 1, 2, 3, 7, 7, 6, 6]
    row = [0, 0, 0, 0, 1, 0, 2, 3]
    leaf = DecisionTree([-1], [0], [], [0])
    cpds = [CPD((), np.zeros((1, v.cardinality)), Float(64), leaf) for v in variables[:3]]
    cpds.append(CPD((0, 1, 2), np.zeros((4, 2)), Float(64), DecisionTree(split, first, children, row)))
    assert model_cost(BayesNet(variables, None, cpds)).comparisons == 3
    # Two equally deep halves: the children of one stand before those of the other, and are not its own.
    split, first = [0, 1, 1, 2, 2, -1, -1], [0, 2, 5, 8, 12, 0, 0]
    children = [1, 2, 3, 5, 5, 4, 6, 6, 5, 6, 5, 6, 6, 5, 6, 5]
    tree = DecisionTree(split, first, children, [0] * 7)
    cpds[-1] = CPD((0, 1, 2), np.zeros((1, 2)), Float(64), tree)
    assert model_cost(BayesNet(variables, None, cpds)).comparisons == 3


def test_tables_without_the_class_cost_no_operations():
    data = small()
    structure = type(naive_bayes(data))(((), (0, 2), ()))
    assert model_cost(maximum_likelihood(data, structure)).lookups == 2 * 4


def test_costs_add_compare_and_print():
    a = Cost(bits=100, parameters=10, additions=5)
    assert a + a == Cost(bits=200, parameters=20, additions=10)
    assert a.fits(Cost(bits=100))
    assert not a.fits(Cost(bits=99))
    assert str(a) == "13 B, 10 parameters, 5 operations"


@pytest.mark.parametrize(
    ("name", "parameters"), [("letter", {3822}), ("usps", {8650}), ("satimage", range(2448, 2515))]
)
def test_parameters_of_the_reference_models(data_dir, name, parameters):
    for train, _ in folds(data_dir / "classification" / f"{name}.npz"):
        assert model_cost(learn_classifier(train, structure="naive")).parameters in parameters


def test_structure_search_changes_only_the_tables():
    data = random_data(0, features=6)
    naive, tan = (model_cost(maximum_likelihood(data, s(data))) for s in (naive_bayes, chow_liu))
    assert naive.operations == tan.operations
    assert naive.parameters < tan.parameters
