"""The price of a quantised neural network: as it is stored here, and as resource_efficient_bn_classifiers counts."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tinybayes.model import Cost, NeuralNet

FLOAT = 32  # bits of a bias, and of each of the two numbers of a batch normalisation, as the paper counts


def neural_net_cost(net: NeuralNet) -> Cost:
    """Price a network as it is stored; see `model_cost`."""
    bits = parameters = 0
    for number, layer in enumerate(net.layers):
        centred = number == 0 and not layer.convolution and bool(net.inputs.center.any())
        biases = layer.units if layer.bias.any() or centred else 0
        distinct = 0 if layer.multiplier is None else len(np.unique(layer.multiplier))
        multipliers = layer.units if distinct > 1 else distinct
        bits += layer.codes.size * layer.bits + 32 * biases + 16 * multipliers
        parameters += layer.codes.size + biases + multipliers
    tables = [net.inputs.multiplier] + ([net.inputs.center] if net.layers[0].convolution else [])
    for table in tables:
        if len(np.unique(table)) > 1:
            bits += 16 * len(table)
            parameters += len(table)
    # Batch normalisation leaves biases of hidden units.
    operations = paper_cost(net, batch_norm=any(layer.bias.any() for layer in net.layers[:-1]))
    return replace(operations, bits=bits, parameters=parameters)


class LayerSize(NamedTuple):
    """The size of one layer, by which networks are priced."""

    weights: int
    units: int
    positions: int = 1  # pixels at which a convolution is evaluated


def layer_sizes(hidden: Sequence[int], *, inputs: int, classes: int, image: tuple[int, int] | None) -> list[LayerSize]:
    """Return the layers of a network with so many hidden units; with an image they are channels of convolutions."""
    sizes, entering = [], inputs
    if image is not None:
        rows, columns, channels = *image, 1
        for units in hidden:
            sizes.append(LayerSize(9 * channels * units, units, rows * columns))
            rows, columns, channels = rows // 2, columns // 2, units
        entering = rows * columns * channels
    else:
        for units in hidden:
            sizes.append(LayerSize(entering * units, units))
            entering = units
    return [*sizes, LayerSize(entering * classes, classes)]


def layers_cost(
    sizes: Sequence[LayerSize], bits: Sequence[int], *, batch_norm: bool, unit_bits: int = 2 * FLOAT
) -> Cost:
    """Price layers as the paper does: 32 bits a class for the bias, and 64 a hidden unit for batch normalisation.

    Multiply-accumulates count as multiplications; each bias, and with batch normalisation each hidden value, is one
    addition. Pooling and activations are free; 1-bit weights and signs count like all others.
    """
    *hidden, last = sizes
    scaled = hidden if batch_norm else []
    units = sum(layer.units for layer in scaled)
    weight_bits = sum(layer.weights * b for layer, b in zip(sizes, bits, strict=True))
    return Cost(
        bits=weight_bits + FLOAT * last.units + unit_bits * units,
        parameters=sum(layer.weights for layer in sizes) + last.units + 2 * units,
        multiplications=sum(layer.positions * layer.weights for layer in sizes),
        additions=sum(layer.positions * layer.units for layer in [*scaled, last]),
        comparisons=last.units - 1,
    )


def paper_cost(net: NeuralNet, *, batch_norm: bool) -> Cost:
    """Price a network as the paper does: 32 bits a class for the bias, and 64 a hidden unit for batch normalisation.

    An indicator is not multiplied with: the weights of the state that was seen are added.
    """
    sizes = [
        LayerSize(layer.codes.size, layer.units, math.prod(shape[:2]) if layer.convolution else 1)
        for layer, shape in zip(net.layers, net.shapes, strict=True)
    ]
    cost = layers_cost(sizes, [layer.bits for layer in net.layers], batch_norm=batch_norm)
    indicators = net.inputs.state >= 0
    units = 0 if net.layers[0].convolution else net.layers[0].units
    seen = len(np.unique(net.inputs.feature[indicators]))
    return cost + Cost(additions=seen * units, multiplications=-int(indicators.sum()) * units)
