"""From trained arrays to a `NeuralNet` of integers: weights to codes, batch normalisation into bias and scale.

A hidden unit computes ``relu(a * (sum - mean) + beta)`` with ``a = gamma / sqrt(variance + eps)``. A negative `a`
turns all weights of the unit around, which the levels allow, since they are symmetric. Then ``sum + bias`` has the
sign of the result, and one multiplier brings it to the 256 levels of an activation, whose unit is chosen on training
rows.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tinybayes.infer.neural_net import activate, layer_sums
from tinybayes.learn.training.net_steps import VARIANCE, Moving, NetSteps, Weights
from tinybayes.model import Layer
from tinybayes.model.neural_net import PEAK, scaling_reach, sum_reach, value_reach

LARGE_SHARE = 0.9995  # of the activations that are kept within the levels


class TrainedLayer(NamedTuple):
    """A layer as it was trained: weights, and what follows the sum: ``factor * (sum + shift)`` in real numbers."""

    w: np.ndarray
    factor: np.ndarray
    shift: np.ndarray


def trained_layers(
    spec: NetSteps, hidden: tuple[int, ...], layers: Sequence[Weights], moving: Sequence[Moving]
) -> list[TrainedLayer]:
    """Cut off the padding, and write batch normalisation as ``factor * (sum + shift)``."""
    trained, entering, shape = [], spec.inputs[-1], spec.inputs
    for number, (layer, units) in enumerate(zip(layers, (*hidden, spec.classes), strict=True)):
        last = number == len(hidden)
        image = len(shape) == 3 and not last
        places = (3, 3) if image else shape[:2] if len(shape) == 3 else ()
        w = np.asarray(layer.w, dtype=np.float64).reshape(*places, -1, np.shape(layer.w)[-1])[..., :entering, :units]
        factor, shift = np.ones(units), np.zeros(units)
        if last:
            shift = np.asarray(layer.beta, dtype=np.float64)[:units]
        elif spec.batch_norm:
            scale, beta = (np.asarray(part, dtype=np.float64)[:units] for part in layer[1:])
            mean, variance = (np.asarray(part, dtype=np.float64)[:units] for part in moving[number])
            factor = scale / np.sqrt(variance + VARIANCE)
            factor = np.where(np.abs(factor) < 1e-9, 1e-9, factor)  # a dead unit: its weights do not matter
            shift = beta / factor - mean
        trained.append(TrainedLayer(w if image else w.reshape(-1, units), factor, shift))
        padded = spec.hidden[number] if not last else spec.classes
        shape = (shape[0] // 2, shape[1] // 2, padded) if image else (padded,)
        entering = units
    return trained


def integer_layers(
    trained: Sequence[TrainedLayer], bits: int, activation: str, unit: float, values: np.ndarray, reach: np.ndarray
) -> tuple[tuple[Layer, ...], float]:
    """Turn trained layers, with weights (inputs, units) or (3, 3, channels, units), into layers of integers.

    `values` are the integer inputs of some training rows, shaped as they enter the first layer, and `reach` the largest
    magnitudes that inputs can have. `unit` is the worth of one unit of the inputs; also return that of a class score.
    """
    levels, layers = 2**bits - 1, []
    for number, (w, factor, shift) in enumerate(trained):
        codes = _codes(np.where(factor < 0, -w, w), bits)
        worth = unit / levels  # of one unit of a sum
        last = number == len(trained) - 1
        exact = np.where(factor < 0, -shift, shift) / worth
        bias = np.clip(np.rint(exact) if last else np.floor(exact), -(2**29), 2**29).astype(np.int64)
        kind = "none" if last else activation
        multiplier = np.zeros(len(bias), np.int64) if kind == "relu" else None
        layer = Layer(codes, bits, bias, kind, multiplier)
        if kind == "relu":
            layer, unit = _scaled(layer, np.abs(factor) * worth, values, sum_reach(layer, reach))
        elif kind == "sign":
            unit = 1.0
        else:
            unit = worth
        layers.append(layer)
        if not last:
            values = activate(layer, layer_sums(layer, values))
            reach = value_reach(layer, values.shape[1:])
    return tuple(layers), unit


def _codes(w: np.ndarray, bits: int) -> np.ndarray:
    """Quantise weights (12), (13)."""
    levels = np.float32(2**bits - 1)
    scaled = (np.clip(w.astype(np.float32), -1, 1) + np.float32(1)) / np.float32(2) * levels
    return np.floor(scaled + np.float32(0.5)).astype(np.uint8)


def _scaled(layer: Layer, factor: np.ndarray, values: np.ndarray, reach: int) -> tuple[Layer, float]:
    """Choose the unit of the activations, and the multipliers and shifts that lead to it most precisely."""
    positive = np.maximum(layer_sums(layer, values) + layer.bias, 0)
    real = positive * factor
    peak = float(np.quantile(real[real > 0], LARGE_SHARE)) if (real > 0).any() else 1.0
    unit = max(peak, 1e-30) / PEAK
    wanted, seen = factor / unit, max(1.0, float(positive.max()))
    best, scaled = -1.0, layer
    for before in range(max(1, int(seen).bit_length() - 7)):
        # The largest shift after it under which multipliers have 16 bits and products 32.
        after = min(31, int(np.floor(16 - before - np.log2(max(wanted.max(), 1e-30)))) + 1)
        while after >= 0:
            multiplier = np.rint(wanted * 2.0 ** (before + after)).astype(np.int64)
            if multiplier.max() < 2**16:
                trial = replace(layer, multiplier=multiplier, before=before, after=after)
                if scaling_reach(trial, reach) < 2**32:
                    precision = min(float(multiplier.max()), seen / 2**before)
                    best, scaled = max((best, scaled), (precision, trial), key=lambda pair: pair[0])
                    break
            after -= 1
    return scaled, unit
