"""Quantised neural networks in integers: the computation of a device, to the last bit.

Weights are codes of eq. 12-13 of resource_efficient_bn_classifiers: with ``b`` bits a code ``k`` stands for
``w = (2 k - m) / m`` with ``m = 2**b - 1``, so that all sums can be made of the integers ``2 k - m``. Everything
real-valued (the scale of the inputs, batch normalisation) is folded into one integer bias and one integer multiplier
per unit.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinybayes.errors import error
from tinybayes.model.record import whole_numbers
from tinybayes.model.variable import Variable

LARGEST = 2**31 - 1  # of a sum
PEAK = 255  # of an activation
ACTIVATIONS = ("relu", "sign", "none")


@dataclass(frozen=True, eq=False)
class Inputs:
    """How codes become the numbers that enter the first layer: ``multiplier * value - center``, in integers.

    Parameters
    ----------
    feature
        The feature of each column.
    state
        The state that the column is the indicator of; -1 for a column that takes the code itself.
    multiplier, center
        Of each column. A missing value gives zero: that is the mean, or no state at all.
    """

    feature: np.ndarray
    state: np.ndarray
    multiplier: np.ndarray
    center: np.ndarray

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = whole_numbers(getattr(self, name), np.int32, f"inputs, {name}")
            if len(value) != len(self.feature):
                raise error(f"one entry for each of {len(self.feature)} columns", value.shape, where=f"inputs, {name}")
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.feature)


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer: a sum over the inputs, then ``min(255, max(0, sum + bias) * multiplier)`` or a sign.

    Parameters
    ----------
    codes
        Of the weights: shape (inputs, units), or (3, 3, channels, units) of a convolution, which keeps the size of the
        image (zeros around it) and is followed by the maximum over 2x2 pixels.
    bits
        Bits of a weight, 1 to 8.
    bias
        Added to the sum of each unit.
    activation
        ``"relu"``, ``"sign"`` (+1 for sums from zero on, else -1) or ``"none"`` (the last layer: class scores).
    multiplier
        Of "relu", one per unit, below 2**16: with ``v = max(0, sum + bias)`` the unit's value is
        ``min(255, ((v >> before) * multiplier + half) >> after)``, where half is ``2**(after - 1)``, or 0 for no shift.
    before, after
        Those shifts.
    """

    codes: np.ndarray
    bits: int
    bias: np.ndarray
    activation: str = "none"
    multiplier: np.ndarray | None = None
    before: int = 0
    after: int = 0

    def __post_init__(self) -> None:
        if not (isinstance(self.bits, int | np.integer) and 1 <= self.bits <= 8):
            raise error("1 to 8 bits", self.bits, where="layer, bits")
        codes = np.asarray(self.codes)
        shape = codes.shape
        if codes.dtype.kind not in "iu" or len(shape) not in (2, 4) or 0 in shape or shape[:-2] not in ((), (3, 3)):
            raise error("codes (inputs, units) or (3, 3, channels, units)", f"{codes.dtype} {shape}", where="layer")
        if codes.min() < 0 or codes.max() >= 2**self.bits:
            raise error(f"codes from 0 to {2**self.bits - 1}", f"{codes.min()} to {codes.max()}", where="layer")
        if self.activation not in ACTIVATIONS:
            raise error(" or ".join(ACTIVATIONS), repr(self.activation), where="layer, activation")
        object.__setattr__(self, "codes", np.ascontiguousarray(codes, dtype=np.uint8))
        object.__setattr__(self, "bias", self._units("bias", LARGEST))
        if (self.multiplier is not None) != (self.activation == "relu"):
            raise error("multipliers with 'relu' and only there", self.activation, where="layer, multiplier")
        if self.multiplier is not None:
            object.__setattr__(self, "multiplier", self._units("multiplier", 2**16 - 1, 0))
        for shift in (self.before, self.after):
            if not (isinstance(shift, int | np.integer) and 0 <= shift <= 31):
                raise error("shifts from 0 to 31", (self.before, self.after), where="layer")

    def _units(self, name: str, high: int, low: int | None = None) -> np.ndarray:
        value = np.asarray(getattr(self, name))
        if value.dtype.kind not in "iu" or value.shape != (self.units,):
            raise error(f"{self.units} integers", f"{value.dtype} {value.shape}", where=f"layer, {name}")
        if value.min() < (-high if low is None else low) or value.max() > high:
            raise error(f"magnitudes up to {high}", f"{value.min()} to {value.max()}", where=f"layer, {name}")
        return np.ascontiguousarray(value, dtype=np.int32)

    @property
    def units(self) -> int:
        """The number of units, or of channels that leave it."""
        return int(self.codes.shape[-1])

    @property
    def convolution(self) -> bool:
        """Whether the layer is a convolution with pooling."""
        return self.codes.ndim == 4

    @cached_property
    def weights(self) -> np.ndarray:
        """The integers ``2 k - (2**bits - 1)`` that stand for the weights."""
        return np.asarray(2 * self.codes.astype(np.int32) - (2**self.bits - 1))


@dataclass(frozen=True, eq=False)
class NeuralNet:
    """A classifier made of integer layers.

    Parameters
    ----------
    variables
        The features; rows are codes as for every other model.
    target
        The class.
    inputs
        How codes enter the first layer.
    layers
        At least one; the last has one unit for each class and no activation.
    scale
        Class scores times this are the logarithms of unnormalised probabilities.
    image_shape
        Rows and columns of the image that the inputs are, where the first layer is a convolution.
    """

    variables: tuple[Variable, ...]
    target: Variable
    inputs: Inputs
    layers: tuple[Layer, ...]
    scale: float
    image_shape: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        object.__setattr__(self, "layers", tuple(self.layers))
        if not isinstance(self.target, Variable):
            raise error("a class variable", repr(self.target), where="NeuralNet")
        names = [variable.name for variable in (*self.variables, self.target)]
        if len(set(names)) != len(names):
            raise error("distinct names", f"{names[:10]}", where="NeuralNet")
        if not (isinstance(self.scale, int | float | np.number) and 0 < self.scale <= sys.float_info.max):
            raise error("a finite scale above zero", self.scale, where="NeuralNet, scale")
        self._check_inputs()
        self._check_layers()
        for number, reach in enumerate(self.reach):
            if reach > LARGEST:
                remedy = "use fewer bits, units or states"
                raise error("sums below 2**31", f"{reach:,}", where=f"layer {number}", remedy=remedy)
        for number, (layer, reach) in enumerate(zip(self.layers, self.reach, strict=True)):
            if (scaled := scaling_reach(layer, reach)) > 2**32 - 1:
                remedy = "shift by more bits before"
                raise error("scaled sums below 2**32", f"{scaled:,}", where=f"layer {number}", remedy=remedy)

    def _check_inputs(self) -> None:
        inputs = self.inputs
        states = np.array([v.cardinality for v in self.variables])
        if len(inputs) and (inputs.feature.min() < 0 or inputs.feature.max() >= len(states)):
            raise error(f"features from 0 to {len(states) - 1}", "others", where="inputs, feature")
        if (inputs.state < -1).any() or (inputs.state >= states[inputs.feature]).any():
            raise error("states of the features, or -1", "others", where="inputs, state")
        if (np.diff(inputs.feature) < 0).any():
            raise error("columns in the order of the features", "another", where="inputs, feature")

    def _check_layers(self) -> None:
        if not self.layers:
            raise error("at least one layer", "none", where="NeuralNet")
        last = self.layers[-1]
        if last.convolution or last.activation != "none" or last.units != self.target.cardinality:
            raise error(f"a last layer of {self.target.cardinality} sums", f"{last.units} units", where="NeuralNet")
        if any(layer.activation == "none" for layer in self.layers[:-1]):
            raise error("an activation in every layer but the last", "none", where="NeuralNet")
        convolutions = [layer.convolution for layer in self.layers]
        if convolutions != sorted(convolutions, reverse=True):
            raise error("convolutions before all other layers", "one after them", where="NeuralNet")
        image = self.image_shape
        sides = () if image is None else tuple(image)
        if image is not None and (len(sides) != 2 or not all(isinstance(n, int | np.integer) and n > 0 for n in sides)):
            raise error("rows and columns", repr(image), where="NeuralNet, image_shape")
        if self.layers[0].convolution and math.prod(sides, start=int(image is not None)) != len(self.inputs):
            raise error(f"an image of {len(self.inputs)} pixels", image, where="NeuralNet, image_shape")
        for number, (layer, shape) in enumerate(zip(self.layers, self.shapes, strict=True)):
            fan_in = shape[-1] if layer.convolution else math.prod(shape)
            if layer.codes.shape[-2] != fan_in or min(shape) < 1:
                raise error(f"weights for inputs {shape}", layer.codes.shape, where=f"layer {number}")

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of the inputs of each layer: (units,), or (rows, columns, channels) of an image."""
        image = self.image_shape if self.layers[0].convolution else None
        shape: tuple[int, ...] = (len(self.inputs),) if image is None else (*image, 1)
        entering = []
        for layer in self.layers:
            entering.append(shape)
            shape = (shape[0] // 2, shape[1] // 2, layer.units) if layer.convolution else (layer.units,)
        return tuple(entering)

    @cached_property
    def input_reach(self) -> np.ndarray:
        """The largest magnitude of each column of the inputs."""
        return input_reach(self.variables, self.inputs)

    @cached_property
    def reach(self) -> tuple[int, ...]:
        """A bound, for each layer, of the magnitude of any sum, of any part of one, and of bias and sum together."""
        reaches, values = [], self.input_reach
        for layer in self.layers:
            reaches.append(sum_reach(layer, values))
            values = value_reach(layer, self.shapes[min(len(reaches), len(self.layers) - 1)])
        return tuple(reaches)


def input_reach(variables: Sequence[Variable], inputs: Inputs) -> np.ndarray:
    """Return the largest magnitude of each column of the inputs."""
    top = np.array([v.cardinality - 1 for v in variables], dtype=np.int64)[inputs.feature]
    top = np.where(inputs.state >= 0, 1, top) * inputs.multiplier.astype(np.int64)
    return np.maximum(np.abs(inputs.center.astype(np.int64)), np.abs(top - inputs.center))


def sum_reach(layer: Layer, values: np.ndarray) -> int:
    """Bound sums together with the bias, from the largest magnitudes of the inputs of the layer."""
    weights = np.abs(layer.weights).astype(np.float64)  # exact below 2**53; beyond it, unlike integers, never wraps
    if layer.convolution:
        channels = values.reshape(-1, weights.shape[2]).max(axis=0)
        total = np.einsum("rscu,c->u", weights, channels)
    else:
        total = values.reshape(-1) @ weights
    return int((total + np.abs(layer.bias.astype(np.int64))).max())


def value_reach(layer: Layer, shape: tuple[int, ...]) -> np.ndarray:
    """Return the largest magnitudes of the outputs of a layer, which have this shape."""
    return np.full(shape, 1 if layer.activation == "sign" else PEAK, dtype=np.int64)


def scaling_reach(layer: Layer, reach: int) -> int:
    """Bound the product that a multiplier makes, rounding included."""
    if layer.multiplier is None:
        return 0
    half = 1 << (layer.after - 1) if layer.after else 0
    return (reach >> layer.before) * int(layer.multiplier.max()) + half
