"""What a neural network accepts, up to its exact limits, and the bounds of its sums."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import neural_nets
from tinybayes.errors import TinybayesError
from tinybayes.model import Inputs, Layer, NeuralNet, Variable
from tinybayes.model.neural_net import LARGEST, scaling_reach

VARIABLES = (Variable("a", (0, 1, 2)), Variable("b", ("x", "y")))
TARGET = Variable("class", ("no", "yes"))
INPUTS = Inputs([0, 1, 1], [-1, 0, 1], [1, 1, 1], [0, 0, 0])


def layer(shape, activation="none", bits=1, **changes):
    """A layer whose weights are all +1."""
    units = shape[-1]
    multiplier = np.ones(units, int) if activation == "relu" else None
    given = {"codes": np.full(shape, 2**bits - 1), "bits": bits, "bias": np.zeros(units, int)}
    return Layer(**(given | {"activation": activation, "multiplier": multiplier} | changes))


def net(*layers, inputs=INPUTS, scale=0.5, image=None, variables=VARIABLES):
    return NeuralNet(variables, TARGET, inputs, layers, scale, image)


def pixels(count):
    return Inputs(np.arange(count), np.full(count, -1), np.ones(count, int), np.zeros(count, int))


def image_net(*layers, image):
    variables = [Variable(f"p{i}", (0, 1)) for i in range(image[0] * image[1])]
    return net(*layers, inputs=pixels(len(variables)), image=image, variables=variables)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bits": 0}, "layer, bits: expected 1 to 8 bits, got 0"),
        ({"bits": 9}, "1 to 8 bits, got 9"),
        ({"bits": 1.0}, "1 to 8 bits"),
        ({"codes": np.ones((2, 2))}, "codes .inputs, units."),
        ({"codes": np.ones((3, 2, 2), int)}, "codes .inputs, units."),
        ({"codes": np.ones((2, 3, 1, 2), int)}, "codes .inputs, units."),
        ({"codes": np.ones((0, 2), int)}, "codes .inputs, units."),
        ({"codes": np.full((2, 2), -1)}, "codes from 0 to 1, got -1 to -1"),
        ({"codes": np.array([[0, -1], [0, 1]])}, "codes from 0 to 1, got -1 to 1"),
        ({"codes": np.array([[0, 2], [0, 0]])}, "codes from 0 to 1, got 0 to 2"),
        ({"activation": "tanh"}, "relu or sign or none, got 'tanh'"),
        ({"bias": np.zeros(2)}, "layer, bias: expected 2 integers, got float64"),
        ({"bias": np.zeros(3, int)}, "2 integers"),
        ({"bias": np.array([0, LARGEST + 1])}, "magnitudes up to 2147483647, got 0 to 2147483648"),
        ({"bias": np.array([-LARGEST - 1, 0])}, "magnitudes up to"),
        ({"multiplier": np.ones(2, int)}, "multipliers with 'relu' and only there, got none"),
        ({"activation": "relu", "multiplier": None}, "multipliers with 'relu' and only there, got relu"),
        ({"activation": "relu", "multiplier": np.array([1, 2**16])}, "layer, multiplier: expected magnitudes"),
        ({"activation": "relu", "multiplier": np.array([-1, 1])}, "layer, multiplier: expected magnitudes"),
        ({"before": 32}, "shifts from 0 to 31"),
        ({"before": -1}, "shifts from 0 to 31"),
        ({"after": 32}, "shifts from 0 to 31"),
        ({"after": -1}, "shifts from 0 to 31"),
    ],
)
def test_what_is_no_layer_is_refused(change, message):
    with pytest.raises(TinybayesError, match=message):
        layer((2, 2), **change)


def test_layers_at_their_limits():
    assert layer((1, 1), bits=8).weights.tolist() == [[255]]
    assert layer((1, 2), bits=3, codes=np.array([[0, 7]])).weights.tolist() == [[-7, 7]]
    assert layer((2, 2), bias=np.array([-LARGEST, LARGEST])).bias.dtype == np.int32
    wide = layer((2, 2), "relu", multiplier=np.array([0, 2**16 - 1]), before=31, after=31)
    assert wide.multiplier.tolist() == [0, 65535]
    assert (wide.units, wide.convolution) == (2, False)
    convolution = layer((3, 3, 2, 5), "sign")
    assert (convolution.units, convolution.convolution, convolution.codes.dtype) == (5, True, np.uint8)


@pytest.mark.parametrize("name", ["state", "multiplier", "center"])
def test_inputs_have_one_entry_for_each_column(name):
    for value in ([0], [[0, 0, 0]]):
        with pytest.raises(
            TinybayesError, match=f"inputs, {name}: expected (one entry for each of 3 col|integers with one)"
        ):
            replace(INPUTS, **{name: value})
    assert len(INPUTS) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NeuralNet(VARIABLES, None, INPUTS, [layer((3, 2))], 1.0), "a class variable, got None"),
        (lambda: net(layer((3, 2)), scale=0.0), "a finite scale above zero, got 0"),
        (lambda: net(layer((3, 2)), scale=np.inf), "a finite scale"),
        (lambda: net(layer((3, 2)), scale=np.nan), "a finite scale"),
        (lambda: net(), "at least one layer"),
        (lambda: net(layer((3, 3))), "a last layer of 2 sums, got 3 units"),
        (lambda: net(layer((3, 2), "sign")), "a last layer of 2 sums"),
        (lambda: image_net(layer((3, 3, 1, 2)), image=(4, 4)), "a last layer of 2 sums"),
        (lambda: net(layer((3, 4)), layer((4, 2))), "an activation in every layer but the last"),
        (lambda: net(layer((4, 2))), "layer 0: expected weights for inputs .3,., got .4, 2."),
        (lambda: net(layer((3, 4), "sign"), layer((3, 2))), "layer 1: expected weights for inputs .4,."),
        (lambda: net(layer((3, 3, 1, 2), "sign"), layer((2, 2))), "an image of 3 pixels, got None"),
        (
            lambda: net(layer((3, 3, 1, 2), "sign"), layer((2, 2)), image=(2, 2)),
            "NeuralNet, image_shape: expected an image of 3 pixels",
        ),
        (
            lambda: image_net(layer((3, 3, 1, 2), "sign"), layer((3, 3, 2, 2), "sign"), layer((2, 2)), image=(2, 2)),
            "layer 2: expected weights for inputs .0, 0, 2.",
        ),
        (
            lambda: image_net(*[layer((3, 3, k, 2), "sign") for k in (1, 2, 2)], layer((2, 2)), image=(2, 2)),
            "layer 2: expected weights for inputs .0, 0, 2., got .3, 3, 2, 2.",
        ),
        (
            lambda: image_net(layer((3, 3, 2, 2), "sign"), layer((8, 2)), image=(4, 4)),
            "layer 0: expected weights for inputs .4, 4, 1.",
        ),
        (
            lambda: net(layer((3, 4), "sign"), layer((3, 3, 4, 1), "sign"), layer((1, 2))),
            "convolutions before all other layers",
        ),
        (lambda: net(layer((3, 2)), inputs=replace(INPUTS, feature=[0, 1, 2])), "features from 0 to 1"),
        (lambda: net(layer((3, 2)), inputs=replace(INPUTS, feature=[-1, 1, 1])), "features from 0 to 1"),
        (lambda: net(layer((3, 2)), inputs=replace(INPUTS, feature=[1, 0, 0])), "columns in the order of the features"),
        (lambda: net(layer((3, 2)), inputs=replace(INPUTS, state=[3, 0, 1])), "states of the features, or -1"),
        (lambda: net(layer((3, 2)), inputs=replace(INPUTS, state=[-2, 0, 1])), "states of the features, or -1"),
    ],
)
def test_what_is_no_network_is_refused(make, message):
    with pytest.raises(TinybayesError, match=message):
        make()


def test_shapes_are_those_of_what_enters():
    model = NeuralNet(list(VARIABLES), TARGET, INPUTS, [layer((3, 5), "sign"), layer((5, 2))], 1.0)
    assert model.shapes == ((3,), (5,))
    assert (model.variables, len(model.layers[:1])) == (VARIABLES, 1)
    assert isinstance(model.layers, tuple)
    two = image_net(layer((3, 3, 1, 4), "sign"), layer((3, 3, 4, 6), "sign"), layer((6, 2)), image=(4, 5))
    assert two.shapes == ((4, 5, 1), (2, 2, 4), (1, 1, 6))
    assert net(layer((3, 2)), inputs=replace(INPUTS, state=[2, 0, 1])).shapes == ((3,),)


def test_sums_fill_32_bits_and_no_more():
    # |2 + 1 + 1| from the inputs and the bias
    assert net(layer((3, 2), bias=np.array([0, LARGEST - 4]))).reach == (LARGEST,)
    with pytest.raises(
        TinybayesError, match=r"layer 0: expected sums below 2\*\*31, got 2,147,483,648; use fewer bits"
    ):
        net(layer((3, 2), bias=np.array([0, 3 - LARGEST])))
    deep = layer((5, 2), bias=np.array([LARGEST, 0]))
    with pytest.raises(TinybayesError, match=r"layer 1: expected sums below"):
        net(layer((3, 5), "sign"), deep)
    with pytest.raises(TinybayesError, match=r"layer 0: expected sums below 2\*\*31, got 2,147,483,651;"):
        net(layer((3, 5), "sign", bias=np.full(5, LARGEST)), deep)


def test_scaled_sums_fill_32_bits_and_no_more():
    def scaled(bias, **changes):
        hidden = layer((3, 1), "relu", bias=np.array([bias]), multiplier=np.array([65535]), **changes)
        return net(hidden, layer((1, 2)))

    # 65537 * 65535 is 2**32 - 1
    assert scaling_reach(scaled(65537 - 4).layers[0], 65537) == 2**32 - 1
    with pytest.raises(TinybayesError, match=r"layer 0: expected scaled sums below 2\*\*32, got 4,295,032,830; shift"):
        scaled(65538 - 4)
    assert scaled(65538 - 4, before=1).reach[0] == 65538
    with pytest.raises(TinybayesError, match="scaled sums below"):
        scaled(65537 - 4, after=1)
    assert scaling_reach(layer((3, 2), "sign"), 10**9) == 0
    assert scaling_reach(layer((3, 2), "relu", multiplier=np.array([3, 5])), 7) == 35
    assert scaling_reach(layer((3, 1), "relu", multiplier=np.array([3]), before=2, after=4), 103) == 25 * 3 + 8


def magnitudes(model):
    """The largest magnitude of each column, tried out with every value."""
    reaches = []
    columns = zip(model.inputs.feature, model.inputs.state, model.inputs.multiplier, model.inputs.center, strict=True)
    for feature, state, multiplier, center in columns:
        values = range(model.variables[feature].cardinality) if state < 0 else (0, 1)
        reaches.append(max(abs(int(multiplier) * value - int(center)) for value in values))
    return reaches


@pytest.mark.parametrize("key", sorted(neural_nets.kinds()))
def test_no_sum_can_be_above_its_reach(key):
    model = neural_nets.kinds()[key]
    entering = magnitudes(model)
    assert model.input_reach.tolist() == entering
    for one, reach, shape in zip(model.layers, model.reach, model.shapes, strict=True):
        weights = np.abs(2 * one.codes.astype(int) - (2**one.bits - 1)).tolist()
        totals = [abs(int(b)) for b in one.bias]
        if one.convolution:
            tops = [max(entering[c :: shape[2]]) for c in range(shape[2])]
            for r, s, c, u in product(range(3), range(3), range(shape[2]), range(one.units)):
                totals[u] += weights[r][s][c][u] * tops[c]
        else:
            for i, u in product(range(len(entering)), range(one.units)):
                totals[u] += weights[i][u] * entering[i]
        assert reach == max(totals)
        pooled = (shape[0] // 2) * (shape[1] // 2) if one.convolution else 1
        entering = [1 if one.activation == "sign" else 255] * (pooled * one.units)
