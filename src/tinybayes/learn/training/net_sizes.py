"""How wide a network may be under a budget, as resource_efficient_bn_classifiers derives it (sections V-C and V-D).

The hidden layers of a dense network have equally many units; the second convolution of two has twice the channels of
the first. The width is the real number that meets the budget exactly, rounded.
"""

import math
from typing import Literal

from tinybayes.cost.neural_net import layer_sizes, layers_cost
from tinybayes.errors import error


def hidden_within(
    budget: int,
    price: Literal["bits", "operations"],
    *,
    layers: int,
    weight_bits: int,
    inputs: int,
    classes: int,
    image: tuple[int, int] | None,
    batch_norm: bool,
) -> tuple[int, ...]:
    """Return the hidden units of the network that takes about so many bits, or operations a prediction.

    `layers` counts the weight matrices of a dense network (one: no hidden layer), or the convolutions of an image.
    """
    ratio = (1, 2)[:layers] if image is not None else (1,) * (layers - 1)
    if not ratio:
        return ()

    def spent(width: int) -> int:
        sizes = layer_sizes([width * r for r in ratio], inputs=inputs, classes=classes, image=image)
        return int(getattr(layers_cost(sizes, [weight_bits] * len(sizes), batch_norm=batch_norm), price))

    # Prices are polynomials of the width of degree two at most: three of them tell the coefficients.
    none, one, two = (spent(width) for width in range(3))
    square = (two - 2 * one + none) // 2
    width = _root(square, one - none - square, budget - none)
    return tuple(max(1, round(width * r)) for r in ratio)


def smallest_bits(*, inputs: int, classes: int, weight_bits: int) -> int:
    """Return the bits of the smallest dense network: one hidden unit, no batch normalisation."""
    sizes = layer_sizes([1], inputs=inputs, classes=classes, image=None)
    return layers_cost(sizes, [weight_bits] * 2, batch_norm=False).bits


def image_of(shape: tuple[int, int] | None, features: int, convolutions: int) -> tuple[int, int]:
    """Return the shape of an image of so many pixels, a square by default; it must not vanish in the poolings."""
    side = math.isqrt(features)
    if shape is None and side * side != features:
        raise error("a square number of pixels", features, where="image_shape", remedy="give image_shape")
    shape = shape or (side, side)
    if math.prod(shape) != features:
        raise error(f"an image of {features} pixels", shape, where="image_shape")
    if convolutions > halvings(shape):
        least = 2**convolutions
        expected = f"at least {least}x{least} pixels for {convolutions} convolution{'s'[: convolutions - 1]}"
        remedy = "use fewer convolutions" if halvings(shape) else "use kind 'dense'"
        raise error(expected, "{}x{}".format(*shape), where="image_shape", remedy=remedy)
    return shape


def halvings(image: tuple[int, int]) -> int:
    """Return how many poolings of 2x2 pixels leave a pixel of an image."""
    return min(image).bit_length() - 1


def _root(square: int, linear: int, total: int) -> float:
    """Return the positive root of ``square x^2 + linear x - total``."""
    if total <= 0:
        return 0.0
    return (math.sqrt(linear**2 + 4 * square * total) - linear) / (2 * square) if square else total / linear
