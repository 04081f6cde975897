"""Prices of neural networks counted by hand, and the choice of the cheapest format."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinybayes.cost import (
    cheapest_format,
    model_cost,
    paper_cost,
)
from tinybayes.cost.neural_net import LayerSize, layer_sizes, layers_cost
from tinybayes.model import Codebook, Cost, Float, Inputs, Layer, NeuralNet, Variable

CLASSES = Variable("class", (0, 1, 2))


def dense(bias=0, multiplier=(7, 7, 7, 7), inputs=None, last_bias=0):
    """Three states as a number and two as indicators, four hidden units, three classes, two bits a weight."""
    inputs = inputs or Inputs([0, 1, 1], [-1, 0, 1], [1, 1, 1], [0, 0, 0])
    hidden = Layer(np.zeros((3, 4), int), 2, np.full(4, bias), "relu", np.array(multiplier))
    last = Layer(np.zeros((4, 3), int), 2, np.array([0, 0, last_bias]))
    return NeuralNet((Variable("a", (0, 1, 2)), Variable("b", (0, 1))), CLASSES, inputs, (hidden, last), 1.0)


def convolutions(center):
    """An image of 4x6 pixels, two channels, then three, of 2x3 and 1x1 pixels; three bits a weight."""
    inputs = Inputs(np.arange(24), np.full(24, -1), np.ones(24, int), center)
    layers = (
        Layer(np.zeros((3, 3, 1, 2), int), 3, np.zeros(2, int), "sign"),
        Layer(np.zeros((3, 3, 2, 3), int), 3, np.zeros(3, int), "sign"),
        Layer(np.zeros((3, 3), int), 1, np.zeros(3, int)),
    )
    return NeuralNet([Variable(f"p{i}", (0, 1)) for i in range(24)], CLASSES, inputs, layers, 1.0, (4, 6))


def test_a_dense_network_by_hand():
    # One number times four weights, the four weights of one of two states, then four times three.
    arithmetic = Cost(multiplications=4 + 12, additions=4 + 3, comparisons=2)
    assert model_cost(dense()) == Cost(bits=24 + 24 + 16, parameters=12 + 12 + 1) + arithmetic
    scaled = model_cost(dense(bias=-5, multiplier=(7, 7, 7, 8)))
    assert scaled == Cost(bits=48 + 4 * 16 + 4 * 32, parameters=24 + 4 + 4, additions=4) + arithmetic
    biased = model_cost(dense(last_bias=1))
    assert biased == Cost(bits=48 + 16 + 3 * 32, parameters=24 + 1 + 3) + arithmetic


def test_sizes_of_layers_by_hand():
    assert layer_sizes([5, 4], inputs=7, classes=3, image=None) == [(35, 5, 1), (20, 4, 1), (12, 3, 1)]
    assert layer_sizes([], inputs=7, classes=3, image=None) == [(21, 3, 1)]
    # 5x9 pixels with 2 channels, 2x4 with 3, then 1x2 with 3 values each.
    image = layer_sizes([2, 3], inputs=45, classes=4, image=(5, 9))
    assert image == [(9 * 2, 2, 45), (9 * 2 * 3, 3, 8), (1 * 2 * 3 * 4, 4, 1)]


def test_layers_as_the_paper_prices_them():
    sizes = [LayerSize(18, 2, 45), LayerSize(24, 4)]
    plain = layers_cost(sizes, [3, 1], batch_norm=False)
    assert plain == Cost(
        bits=18 * 3 + 24 + 32 * 4, parameters=18 + 24 + 4, multiplications=18 * 45 + 24, additions=4, comparisons=3
    )
    scaled = layers_cost(sizes, [3, 1], batch_norm=True)
    assert scaled == plain + Cost(bits=64 * 2, parameters=2 * 2, additions=2 * 45)
    with pytest.raises(ValueError, match="zip"):
        layers_cost(sizes, [3], batch_norm=False)


def test_images_of_indicators_are_priced_as_images():
    net = convolutions(np.zeros(24, int))
    states = replace(net, inputs=Inputs(np.arange(24), np.ones(24, int), np.ones(24, int), np.zeros(24, int)))
    assert paper_cost(states, batch_norm=True) == paper_cost(net, batch_norm=True)


def test_scaled_inputs_by_hand():
    plain = model_cost(dense())
    different = model_cost(dense(inputs=Inputs([0, 1, 1], [-1, 0, 1], [1, 2, 1], [0, 0, 0])))
    assert different == plain + Cost(bits=3 * 16, parameters=3)
    centred = model_cost(dense(inputs=Inputs([0, 1, 1], [-1, 0, 1], [1, 1, 1], [0, 5, 0])))
    assert centred == plain + Cost(bits=4 * 32, parameters=4)  # the centre is part of the bias
    # A number in place of the indicators: two columns times four weights, no weight is only added.
    numbers = model_cost(dense(inputs=Inputs([0, 1, 1], [-1, -1, -1], [1, 1, 1], [0, 0, 0])))
    assert numbers == replace(plain, multiplications=3 * 4 + 12, additions=3)
    states = model_cost(dense(inputs=Inputs([0, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0])))
    assert states == replace(plain, multiplications=12, additions=2 * 4 + 3)


def test_convolutions_by_hand():
    first, second, last = 9 * 2, 9 * 2 * 3, 9
    stored = Cost(bits=3 * (first + second) + last, parameters=first + second + last)
    arithmetic = Cost(multiplications=24 * first + 6 * second + last, additions=3, comparisons=2)
    assert model_cost(convolutions(np.full(24, 3))) == stored + arithmetic
    centred = model_cost(convolutions(np.arange(24)))
    assert centred == stored + arithmetic + Cost(bits=24 * 16, parameters=24)
    paper = paper_cost(convolutions(np.arange(24)), batch_norm=True)
    assert paper == stored + arithmetic + Cost(bits=32 * 3 + 64 * 5, parameters=3 + 2 * 5, additions=24 * 2 + 6 * 3)


def test_one_bias_of_one_hidden_unit_is_scaling():
    def deep(first, second, last):
        biases = (np.array([0, first]), np.array([0, second]), np.array([0, 0, last]))
        layers = [Layer(np.zeros((2, 2), int), 1, bias, "sign") for bias in biases[:2]]
        inputs = Inputs([0, 1], [-1, -1], [1, 1], [0, 0])
        variables = (Variable("a", (0, 1)), Variable("b", (0, 1)))
        return NeuralNet(variables, CLASSES, inputs, (*layers, Layer(np.zeros((2, 3), int), 1, biases[2])), 1.0)

    assert model_cost(deep(0, 0, 1)).additions == 3
    assert model_cost(deep(1, 0, 0)).additions == 3 + 4
    assert model_cost(deep(0, 1, 0)).additions == 3 + 4


def test_the_paper_counts_floats():
    plain = Cost(bits=48 + 3 * 32, parameters=24 + 3, multiplications=16, additions=4 + 3, comparisons=2)
    assert paper_cost(dense(bias=9), batch_norm=False) == plain
    assert paper_cost(dense(bias=9), batch_norm=True) == plain + Cost(bits=4 * 64, parameters=8, additions=4)


def test_costs_by_name_and_in_words():
    cost = Cost(bits=80_001, parameters=1234, additions=3, multiplications=4, lookups=5, comparisons=6, edges=1007)
    names = ("bits", "parameters", "additions", "multiplications", "lookups", "comparisons", "edges")
    values = (80_001, 1234, 3, 4, 5, 6, 1007)
    assert cost.to_dict() == dict(zip(names, values, strict=True)) | {"operations": 7, "bytes": 10_001}
    assert str(cost) == "10.0 kB, 1,234 parameters, 7 operations, 1,007 edges"
    assert str(Cost(bits=8 * 9_999)) == "9,999 B, 0 parameters, 0 operations"
    assert str(Cost(bits=8 * 10_000)).startswith("10.0 kB")
    assert str(Cost(bits=8 * 98_760)).startswith("98.8 kB")
    assert cost.fits(Cost())
    assert not cost.fits(Cost(bits=80_001, lookups=4))


@given(st.lists(st.lists(st.integers(-9, 0), min_size=1, max_size=40), min_size=1, max_size=3))
def test_the_cheapest_format_is_the_cheaper_one(tables):
    cheapest = cheapest_format([np.array(table, float).reshape(1, -1) for table in tables])
    values = [value for table in tables for value in table]
    levels = sorted(set(values))
    bits = next(b for b in range(9) if 2**b >= len(levels))
    book = bits * len(values) + 32 * len(levels)
    assert cheapest == (Codebook(tuple(map(float, levels))) if book < 32 * len(values) else Float())


def test_floats_are_taken_where_a_codebook_saves_nothing():
    # A level costs 32 bits: one for each value saves nothing, and one for two of three values saves 32 - 3 bits.
    assert cheapest_format([np.array([-1.0])]) == Float()
    assert cheapest_format([np.array([-1.0, 0.0])]) == Float()
    assert cheapest_format([np.array([-1.0, 0.0]), np.array([[-1.0]])]) == Codebook((-1.0, 0.0))
    # One level twice is 0 * 2 + 32 bits instead of 64.
    assert cheapest_format([np.zeros((1, 2))]) == Codebook((0.0,))
    # One level less than entries: 8 times 3 bits are less than a float, 10 times 4 bits are more.
    assert isinstance(cheapest_format([-np.array([0.0, *range(7)])]), Codebook)
    assert cheapest_format([-np.array([0.0, *range(9)])]) == Float()
