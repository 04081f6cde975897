"""The price of a quantised neural network: as it is stored here, and as resource_efficient_bn_classifiers counts."""

import math

import numpy as np

from tinybayes.model import Cost, NeuralNet

FLOAT = 32  # bits of a bias, and of each of the two numbers of a batch normalisation, as the paper counts


def neural_net_cost(net: NeuralNet) -> Cost:
    """Price a network as it is stored: weights in their bits, and the whole numbers that everything else became.

    A bias takes 32 bits, a multiplier 16; where all units of a layer have the same multiplier it is paid once, and
    biases that are all zero cost nothing. Multipliers of the inputs take 16 bits each, unless all are equal; so do
    the centres of convolutions, while those of dense layers are part of the bias. Arithmetic is that of the paper.
    """
    bits = parameters = 0
    for number, layer in enumerate(net.layers):
        centred = number == 0 and not layer.convolution and bool(net.inputs.center.any())
        biases = layer.units if layer.bias.any() or centred else 0
        multipliers = 0 if layer.multiplier is None else layer.units
        if layer.multiplier is not None and len(np.unique(layer.multiplier)) == 1:
            multipliers = 1
        bits += layer.codes.size * layer.bits + 32 * biases + 16 * multipliers
        parameters += layer.codes.size + biases + multipliers
    tables = [net.inputs.multiplier] + ([net.inputs.center] if net.layers[0].convolution else [])
    for table in tables:
        if len(np.unique(table)) > 1:
            bits += 16 * len(table)
            parameters += len(table)
    return Cost(bits=bits, parameters=parameters) + arithmetic(net, batch_norm=any_scaled(net))


def paper_cost(net: NeuralNet, *, batch_norm: bool) -> Cost:
    """Price a network as the paper does: 32 bits a class for the bias, and 64 a hidden unit for batch normalisation."""
    hidden = sum(layer.units for layer in net.layers[:-1])
    classes = net.target.cardinality
    weights = sum(layer.codes.size for layer in net.layers)
    bits = sum(layer.codes.size * layer.bits for layer in net.layers) + FLOAT * classes
    bits += 2 * FLOAT * hidden if batch_norm else 0
    parameters = weights + classes + (2 * hidden if batch_norm else 0)
    return Cost(bits=bits, parameters=parameters) + arithmetic(net, batch_norm=batch_norm)


def arithmetic(net: NeuralNet, *, batch_norm: bool) -> Cost:
    """Count the operations of a prediction: multiply-accumulates, one for each bias and, scaled, each hidden value.

    An indicator is not multiplied with: the weights of the state that was seen are added. Pooling and activations are
    free, as in the paper; 1-bit weights and signs count like all others.
    """
    additions = multiplications = 0
    for number, (layer, shape) in enumerate(zip(net.layers, net.shapes, strict=True)):
        if layer.convolution:
            places = shape[0] * shape[1]
            multiplications += places * layer.codes.size
        else:
            places = 1
            if number == 0:
                indicators = np.unique(net.inputs.feature[net.inputs.state >= 0])
                multiplications += int((net.inputs.state < 0).sum()) * layer.units
                additions += len(indicators) * layer.units
            else:
                multiplications += math.prod(shape) * layer.units
        if layer is net.layers[-1] or batch_norm:
            additions += places * layer.units
    return Cost(additions=additions, multiplications=multiplications, comparisons=net.target.cardinality - 1)


def any_scaled(net: NeuralNet) -> bool:
    """Tell whether hidden units have biases of their own, as batch normalisation leaves them."""
    return any(bool(layer.bias.any()) for layer in net.layers[:-1])
