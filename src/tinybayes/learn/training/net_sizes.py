"""How wide a network may be under a budget, as resource_efficient_bn_classifiers derives it (sections V-C and V-D).

The hidden layers of a dense network have equally many units; the second convolution of two has twice the channels of
the first. Each function solves for the real number that meets the budget exactly, and rounds.
"""

import math

from tinybayes.errors import error

FLOAT = 32  # bits of a bias and of each parameter of a batch normalisation


def hidden_units(bits: int, *, inputs: int, classes: int, weight_bits: int, layers: int, batch_norm: bool) -> int:
    """Return the hidden units of a dense network with `layers` weight matrices, within about so many bits."""
    b, beta, rest = weight_bits, 2 * FLOAT * batch_norm, bits - FLOAT * classes
    if layers == 2:
        return _rounded(rest / ((inputs + classes) * b + beta))
    return _rounded(_root(b * (layers - 2), b * (inputs + classes) + (layers - 1) * beta, rest))


def channels(
    bits: int, *, image: tuple[int, int], classes: int, weight_bits: int, convolutions: int, batch_norm: bool
) -> tuple[int, ...]:
    """Return the channels of one or two convolutions, within about so many bits."""
    b, beta, rest = weight_bits, 2 * FLOAT * batch_norm, bits - FLOAT * classes
    once, twice = _halved(image, 1), _halved(image, 2)
    if convolutions == 1:
        return (_rounded(rest / ((9 + once * classes) * b + beta)),)
    x = _root(18 * b, b * (9 + 2 * twice * classes) + 3 * beta, rest)
    return _rounded(x), _rounded(2 * x)


def units_for_operations(operations: int, *, inputs: int, classes: int, layers: int, batch_norm: bool) -> int:
    """Return the hidden units of a dense network that takes about so many operations a prediction."""
    rest = operations - classes
    if layers == 2:
        return _rounded(rest / (inputs + classes + batch_norm))
    return _rounded(_root(layers - 2, inputs + classes + (layers - 1) * batch_norm, rest))


def channels_for_operations(
    operations: int, *, image: tuple[int, int], classes: int, convolutions: int, batch_norm: bool
) -> tuple[int, ...]:
    """Return the channels of one or two convolutions that take about so many operations a prediction."""
    pixels, once, twice = image[0] * image[1], _halved(image, 1), _halved(image, 2)
    rest = operations - classes
    if convolutions == 1:
        return (_rounded(rest / ((9 + batch_norm) * pixels + once * classes)),)
    x = _root(18 * once, (9 + batch_norm) * pixels + 2 * once * batch_norm + 2 * twice * classes, rest)
    return _rounded(x), _rounded(2 * x)


def smallest_bits(*, inputs: int, classes: int, weight_bits: int) -> int:
    """Return the bits of the smallest dense network: one hidden unit, no batch normalisation."""
    return FLOAT * classes + (inputs + classes) * weight_bits


def image_side(features: int) -> tuple[int, int]:
    """Return the shape of a square image of so many pixels."""
    side = math.isqrt(features)
    if side * side != features:
        remedy = "give image_shape"
        raise error("a square number of pixels", features, where="image_shape", remedy=remedy)
    return side, side


def _halved(image: tuple[int, int], times: int) -> int:
    """Return the pixels that are left after pooling so often."""
    return (image[0] >> times) * (image[1] >> times)


def _root(square: float, linear: float, total: float) -> float:
    """Return the positive root of ``square x^2 + linear x - total``."""
    if total <= 0:
        return 0.0
    return (math.sqrt(linear**2 + 4 * square * total) - linear) / (2 * square)


def _rounded(x: float) -> int:
    return max(1, round(x))
