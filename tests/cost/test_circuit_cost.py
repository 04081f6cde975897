import numpy as np
import pytest

from tinybayes.cost import model_cost
from tinybayes.model import Circuit, Codebook, Cost, Fixed, Float, Variable

COIN = Variable("coin", ("heads", "tails"))
CLASS = Variable("class", (0, 1, 2))


def coin(number_format, target=None):
    """A coin by hand: a sum over (indicator times parameter); with a class, the product with three indicators' sum."""
    kind, children = [1, 1, 0, 0, 3, 3, 2], [[], [], [], [], [0, 2], [1, 3], [4, 5]]
    leaf = [0, 1, 0, 1, -1, -1, -1]
    if target is not None:
        kind += [1, 1, 1, 2, 3]
        children += [[], [], [], [7, 8, 9], [6, 10]]
        leaf += [2, 3, 4, -1, -1]
    offsets = np.cumsum([0, *map(len, children)])
    flat = np.array([c for row in children for c in row])
    table = number_format.encode(np.log([0.5, 0.5]))
    return Circuit((COIN,), target, np.array(kind), offsets, flat, np.array(leaf), table, number_format)


def test_a_coin_by_hand():
    cost = model_cost(coin(Float(64)))
    assert cost == Cost(bits=128, parameters=2, additions=2, multiplications=4, lookups=4, edges=6)
    assert cost.operations == cost.edges


def test_a_class_asks_once_for_each_class():
    circuit = coin(Fixed(3, 1), CLASS)
    cost = model_cost(circuit)
    assert cost.edges == circuit.n_edges == 11
    assert cost.operations == 3 * 11
    assert (cost.additions, cost.multiplications) == (3 * 5, 3 * 6)
    assert cost.lookups == 3 * 7
    assert cost.comparisons == 2
    assert cost.bits == 2 * 4


def test_a_codebook_is_paid_once():
    levels = Codebook((-2.0, -1.0, float(np.log(0.5))))
    assert model_cost(coin(levels)).bits == 2 * levels.bits + levels.shared_bits


def test_a_circuit_without_products():
    arrays = (np.array([1, 1, 2]), np.array([0, 0, 0, 2]), np.array([0, 1]), np.array([0, 1, -1]))
    circuit = Circuit((COIN,), None, *arrays, np.empty(0), Float(64))
    assert model_cost(circuit) == Cost(additions=2, lookups=2, edges=2)


@pytest.mark.parametrize("target", [None, CLASS])
def test_a_budget_in_edges(target):
    cost = model_cost(coin(Float(32), target))
    assert cost.fits(Cost(edges=cost.edges))
    assert not cost.fits(Cost(edges=cost.edges - 1))
