"""Models with arbitrary parameters, by which settings are priced before they are trained.

The size of a program depends on the sizes of its tables, on the encodings of the features and on the code that these
need, and little on the values of the parameters. So a model of the right size over the real variables, with random
parameters, has about the price of the trained one, which is priced again after training.
"""

from collections.abc import Callable, Hashable, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from tinybayes.cost import model_cost
from tinybayes.infer.neural_net import activate, layer_sums
from tinybayes.learn.training.net_inputs import columns
from tinybayes.model import CPD, BayesNet, Dataset, Fixed, Layer, NeuralNet, Structure
from tinybayes.model.neural_net import input_reach, sum_reach, value_reach
from tinybayes.search.price import Price, price_of
from tinybayes.search.views import Views

SEEN = 16  # training rows by which biases get their usual sizes
_PRICES: "WeakKeyDictionary[Views, dict[Hashable, Price]]" = WeakKeyDictionary()


def skeleton_price(
    views: Views, key: Hashable, make: Callable[[], BayesNet | NeuralNet], core: str, *, rows: int = 0
) -> Price:
    """Price a skeleton, once for each key; instructions are counted if some rows are run."""
    prices = _PRICES.setdefault(views, {})
    known = (key, core, rows)
    if known not in prices:
        model = make()
        prices[known] = price_of(model, model_cost(model), core, rows=rows)
    return prices[known]


def table_skeleton(data: Dataset, structure: Structure, number_format: Fixed) -> BayesNet:
    """Return a Bayesian network with random tables."""
    assert data.target is not None
    random = np.random.default_rng(0)
    nodes = (*data.variables, data.target)
    cpds = []
    for node, parents in zip(nodes, structure.parents, strict=True):
        rows = int(np.prod([nodes[p].cardinality for p in parents], dtype=np.int64))
        logs = np.log(random.dirichlet(np.ones(node.cardinality), rows) + 1e-12)
        cpds.append(CPD(parents, number_format.encode(logs), number_format))
    return BayesNet(data.variables, data.target, tuple(cpds))


def net_skeleton(
    data: Dataset, hidden: Sequence[int], bits: int, activation: str, inputs: str, image: tuple[int, int] | None = None
) -> NeuralNet:
    """Return a neural network with random weights, and with the biases that batch normalisation would give it."""
    assert data.target is not None
    random = np.random.default_rng(0)
    entering = columns(data, inputs, centred=image is None)
    shape = (*image, 1) if image else (len(entering.inputs),)
    values = np.rint(entering.values(data.X[:SEEN]).astype(np.float64) / entering.unit).reshape(-1, *shape)
    reach = input_reach(data.variables, entering.inputs).reshape(shape)
    layers = []
    for number, units in enumerate((*hidden, data.target.cardinality)):
        last = number == len(hidden)
        size = (3, 3, shape[-1], units) if image and not last else (int(np.prod(shape)), units)
        codes = random.integers(0, 2**bits, size).astype(np.uint8)
        layer = Layer(codes, bits, np.zeros(units, np.int64))
        sums = layer_sums(layer, values)
        bias = -np.rint(sums.reshape(-1, units).mean(axis=0)).astype(np.int64)
        layer = Layer(codes, bits, bias)
        if not last:
            layer = _activated(layer, activation, sum_reach(layer, reach), random)
            values = activate(layer, sums)
            shape = values.shape[1:]
            reach = value_reach(layer, shape)
        layers.append(layer)
    return NeuralNet(data.variables, data.target, entering.inputs, tuple(layers), 1.0, image)


def _activated(layer: Layer, activation: str, reach: int, random: np.random.Generator) -> Layer:
    """Give a layer its activation; multipliers have 16 bits, and shifts keep products within 32."""
    if activation == "sign":
        return Layer(layer.codes, layer.bits, layer.bias, activation)
    multiplier = random.integers(2**14, 2**16, layer.units)
    before = max(0, reach.bit_length() - 15)
    after = min(31, max(0, (reach >> before).bit_length() + 16 - 10))
    return Layer(layer.codes, layer.bits, layer.bias, activation, multiplier, before, after)
