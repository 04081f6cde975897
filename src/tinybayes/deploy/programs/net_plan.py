"""A neural network as layers without negative numbers.

Numbers that are never negative fit in narrow lanes, and zeros can be skipped. So values enter a layer as ``z``, weights
as their codes ``k``, and with ``top = 2**bits - 1`` a sum is

    factor * (2 * sum(k * z) - top * sum(z)) + bias

where factor and bias contain the signs, centers and offsets that were removed from the values.
"""

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinybayes.cost import model_cost
from tinybayes.deploy.programs.names import plain
from tinybayes.errors import error
from tinybayes.model import NeuralNet, Variable
from tinybayes.model.neural_net import LARGEST, PEAK, Layer


@dataclass(frozen=True, eq=False)
class Stage:
    """A layer on its way to a device."""

    layer: Layer
    shape: tuple[int, ...]  # of the layer's input
    codes: np.ndarray  # of the weights, shape (terms, units); those of negated inputs are negated
    factor: int  # see the module
    bias: np.ndarray  # see the module
    peaks: np.ndarray  # the largest ``z`` of each term
    pad: int = 0  # the ``z`` of a value of zero, which surrounds an image
    scale: np.ndarray | None = None  # of the first layer: how a column becomes ``z = scale * value + shift``
    shift: np.ndarray | None = None

    @property
    def top(self) -> int:
        """The largest code."""
        return int(2**self.layer.bits - 1)

    @property
    def flags(self) -> bool:
        """Whether all values are zero or one."""
        return bool(self.peaks.max(initial=0) <= 1)


@dataclass(frozen=True, eq=False)
class NetPlan:
    """A neural network on its way to a device."""

    net: NeuralNet
    score = "int32_t"

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The features."""
        return self.net.variables

    @property
    def target(self) -> Variable:
        """The class variable."""
        return self.net.target

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The layers without negative numbers."""
        net = self.net
        first = _first_image(net) if net.layers[0].convolution else _first(net)
        before = [layer.activation for layer in net.layers]
        return (first, *map(_hidden, net.layers[1:], net.shapes[1:], before))

    @property
    def entries(self) -> int:
        """The number of weights."""
        return sum(layer.codes.size for layer in self.net.layers)

    @property
    def unit_property(self) -> dict[str, str]:
        """The unit of scores, by its name."""
        return {"scale": repr(float(self.net.scale))}

    def facts(self, note: str = "") -> list[str]:
        """Return lines for the comment at the top of generated files."""
        net = self.net
        lines = [f"A neural net of {len(net.variables)} features into {net.target.cardinality} classes, by tinybayes."]
        lines += [f"Layers: {', '.join(map(_described, net.layers))}."]
        lines += [f"Price: {model_cost(net)}."]
        lines += [f"Scores times {net.scale:.6g} are log p(class | x), up to a constant of the row; they are exact."]
        return [*lines, *([plain(note)] if note else []), f"Model {self.fingerprint}."]

    @property
    def fingerprint(self) -> str:
        """A short hash of everything that a prediction depends on."""
        net = self.net
        digest = hashlib.sha256(repr((net.variables, net.target, net.scale, net.image_shape)).encode())
        parts = [net.inputs.feature, net.inputs.state, net.inputs.multiplier, net.inputs.center]
        for layer in net.layers:
            digest.update(repr((layer.codes.shape, layer.bits, layer.activation, layer.before, layer.after)).encode())
            parts += [layer.codes, layer.bias] + ([] if layer.multiplier is None else [layer.multiplier])
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()[:16]


def _described(layer: Layer) -> str:
    kind = "convolution to " if layer.convolution else ""
    return f"{kind}{layer.units} units of {layer.bits} bits"


def column_peaks(net: NeuralNet) -> np.ndarray:
    """Return the largest number of each column before its multiplier."""
    top = np.array([v.cardinality - 1 for v in net.variables], dtype=np.int64)[net.inputs.feature]
    return np.where(net.inputs.state >= 0, 1, top)


def _first(net: NeuralNet) -> Stage:
    """Fold centres into the bias, and signs of multipliers into the weights."""
    layer, multiplier = net.layers[0], net.inputs.multiplier.astype(np.int64)
    codes = np.where(multiplier[:, None] < 0, 2**layer.bits - 1 - layer.codes, layer.codes).astype(np.uint8)
    bias = layer.bias - net.inputs.center.astype(np.int64) @ layer.weights
    factor = math.gcd(*multiplier.tolist()) or 1
    scale = np.abs(multiplier) // factor
    peaks = scale * column_peaks(net)
    return Stage(layer, net.shapes[0], codes, factor, bias, peaks, scale=scale, shift=np.zeros_like(scale))


def _first_image(net: NeuralNet) -> Stage:
    """Lift all pixels, and the zeros around them, by as much as the darkest is below zero."""
    layer, multiplier = net.layers[0], net.inputs.multiplier.astype(np.int64)
    center, top = net.inputs.center.astype(np.int64), multiplier * column_peaks(net)
    lift = max(0, int((center - np.minimum(top, 0)).max()))
    factor = math.gcd(lift, *multiplier.tolist(), *(lift - center).tolist()) or 1
    scale, shift, pad = multiplier // factor, (lift - center) // factor, lift // factor
    peak = max(pad, int((np.maximum(top, 0) // factor + shift).max()))
    return _image(layer, net.shapes[0], factor, lift, pad, peak, scale=scale, shift=shift)


def _hidden(layer: Layer, shape: tuple[int, ...], before: str) -> Stage:
    """Take signs as 0 and 1 (in images, where there are zeros as well, as 0 and 2 around a 1)."""
    signs = before == "sign"
    if layer.convolution:
        return _image(layer, shape, 1, int(signs), int(signs), 2 if signs else PEAK)
    peaks = np.full(len(layer.codes), 1 if signs else PEAK)
    bias = layer.bias.astype(np.int64) - (layer.weights.sum(axis=0) if signs else 0)
    return Stage(layer, shape, layer.codes, 2 if signs else 1, bias, peaks)


def _image(
    layer: Layer, shape: tuple[int, ...], factor: int, lift: int, pad: int, peak: int, **first: np.ndarray
) -> Stage:
    codes = layer.codes.reshape(-1, layer.units)
    weights = layer.weights.reshape(-1, layer.units).astype(np.int64)
    bound = int(np.abs(weights).sum(axis=0).max()) * peak
    if bound > LARGEST:
        remedy = "use fewer bits, or smaller multipliers of the inputs"
        raise error("sums below 2**31", f"{bound:,}", where="convolution", remedy=remedy)
    bias = layer.bias - lift * weights.sum(axis=0)
    return Stage(layer, shape, codes, factor, bias, np.full(len(codes), peak), pad, **first)
