"""Class scores of quantised neural networks in integers: the meaning that exported code must have."""

import numpy as np

from tinybayes._kernels.threads import for_blocks
from tinybayes.model import NeuralNet
from tinybayes.model.layout import check_codes
from tinybayes.model.neural_net import PEAK, Layer

BLOCK = 512  # rows of a unit of work


def net_scores(net: NeuralNet, X: np.ndarray) -> np.ndarray:
    """Return the integer scores of all classes, shape (rows, classes); the largest wins.

    Missing values (-1) enter as zero: the mean of the feature, or none of its states.
    """
    X = check_codes(X, [v.cardinality for v in net.variables])
    out = np.empty((len(X), net.target.cardinality), dtype=np.int64)

    def block(start: int, stop: int) -> None:
        values = input_values(net, X[start:stop])
        for layer, shape in zip(net.layers, net.shapes, strict=True):
            values = activate(layer, layer_sums(layer, values.reshape(-1, *shape)))
        out[start:stop] = values

    for_blocks(block, len(X), BLOCK)
    return out


def input_values(net: NeuralNet, X: np.ndarray) -> np.ndarray:
    """Return what enters the first layer, as floats that hold integers: their products run on BLAS, exactly."""
    inputs = net.inputs
    codes = X[:, inputs.feature]
    value = np.where(inputs.state >= 0, codes == inputs.state, codes)
    return np.where(codes >= 0, value * inputs.multiplier.astype(float) - inputs.center, 0.0)


def layer_sums(layer: Layer, values: np.ndarray) -> np.ndarray:
    """Add up; every sum is below 2**31 (the model was checked), so that doubles are exact."""
    weights = layer.weights.astype(np.float64)
    if not layer.convolution:
        return values.reshape(len(values), -1) @ weights
    rows, columns = values.shape[1:3]
    padded = np.pad(values, ((0, 0), (1, 1), (1, 1), (0, 0)))
    total = np.zeros((*values.shape[:3], layer.units))
    for r in range(3):
        for c in range(3):
            total += padded[:, r : r + rows, c : c + columns] @ weights[r, c]
    return _pooled(total)


def _pooled(values: np.ndarray) -> np.ndarray:
    """Take the maximum of 2x2 pixels; since activations never fall, before them is as good as after them."""
    rows, columns = values.shape[1] // 2, values.shape[2] // 2
    even = values[:, : 2 * rows, : 2 * columns]
    return np.asarray(even.reshape(len(values), rows, 2, columns, 2, -1).max(axis=(2, 4)))


def activate(layer: Layer, sums: np.ndarray) -> np.ndarray:
    """Add the bias and apply the activation."""
    total = sums + layer.bias
    if layer.activation == "none":
        return total
    if layer.activation == "sign":
        return np.where(total >= 0, 1.0, -1.0)
    assert layer.multiplier is not None
    half = 1 << (layer.after - 1) if layer.after else 0
    scaled = np.maximum(total, 0).astype(np.int64) >> layer.before
    scaled = (scaled * layer.multiplier + half) >> layer.after
    return np.minimum(scaled, PEAK).astype(np.float64)
