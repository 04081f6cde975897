"""Neural networks as ONNX graphs: products of integer matrices; windows of images are gathered."""

import numpy as np

from tinybayes.deploy.programs._onnx_graph import Graph
from tinybayes.model import NeuralNet
from tinybayes.model.neural_net import PEAK, Layer


def net_graph(graph: Graph, net: NeuralNet, x: str) -> None:
    """Add everything from states `x` to ``scores``, in 32-bit integers that hold every sum exactly."""
    values = _inputs(graph, net, x)
    for number, (layer, shape) in enumerate(zip(net.layers, net.shapes, strict=True)):
        weights = graph.constant(f"weights_{number}", layer.weights.reshape(-1, layer.units), np.int32)
        if layer.convolution:
            values = _windows(graph, values, shape, number)
        sums = graph.add("MatMul", values, weights)
        if layer.convolution:
            sums = graph.add("ReduceMax", sums, axes=[2], keepdims=0)
        bias = graph.constant(f"bias_{number}", layer.bias, np.int32)
        last = number == len(net.layers) - 1
        values = graph.add("Add", sums, bias, named="scores" if last else "")
        if not last:
            values = _activated(graph, layer, values, number)
        if layer.convolution:
            values = graph.add("Reshape", values, graph.constant("flat", [0, -1]))


def _inputs(graph: Graph, net: NeuralNet, x: str) -> str:
    """Turn states into what enters the first layer."""
    inputs = net.inputs
    values = graph.add("Gather", x, graph.constant("feature", inputs.feature), axis=1)
    if (inputs.state >= 0).any():
        seen = graph.cast(graph.add("Equal", values, graph.constant("state", inputs.state)), np.int64)
        is_state = graph.constant("is_indicator", inputs.state >= 0, np.bool_)
        values = graph.add("Where", is_state, seen, values)
    values = graph.add("Mul", values, graph.constant("multiplier", inputs.multiplier))
    return graph.cast(graph.add("Sub", values, graph.constant("center", inputs.center)), np.int32)


def _windows(graph: Graph, values: str, shape: tuple[int, ...], number: int) -> str:
    """Gather what a convolution sees: (rows, pooled pixels, 4 places, 9 pixels with all channels)."""
    rows, columns, channels = shape
    places = np.pad(np.arange(rows * columns * channels).reshape(shape), ((1, 1), (1, 1), (0, 0)), constant_values=-1)
    places = np.where(places < 0, rows * columns * channels, places)  # a zero stands behind the last value
    seen = np.lib.stride_tricks.sliding_window_view(places, (3, 3), axis=(0, 1)).transpose(0, 1, 3, 4, 2)
    seen = seen[: rows // 2 * 2, : columns // 2 * 2].reshape(rows // 2, 2, columns // 2, 2, -1).transpose(0, 2, 1, 3, 4)
    index = graph.constant(f"window_{number}", seen.reshape(-1, 4, 9 * channels))
    padded = graph.add("Pad", values, graph.constant("one_zero", [0, 0, 0, 1]))
    return graph.add("Gather", padded, index, axis=1)


def _activated(graph: Graph, layer: Layer, sums: str, number: int) -> str:
    """Apply the activation; shifts of numbers that are not negative are divisions."""
    zero = graph.constant("zero_32", 0, np.int32)
    if layer.activation == "sign":
        above = graph.add("GreaterOrEqual", sums, zero)
        one, minus = graph.constant("one_32", 1, np.int32), graph.constant("minus_32", -1, np.int32)
        return graph.add("Where", above, one, minus)
    assert layer.multiplier is not None
    value = graph.cast(graph.add("Max", sums, zero), np.int64)
    value = graph.add("Div", value, graph.constant(f"before_{number}", 2**layer.before))
    value = graph.add("Mul", value, graph.constant(f"multiplier_{number}", layer.multiplier))
    value = graph.add("Add", value, graph.constant(f"half_{number}", 2**layer.after // 2))
    value = graph.add("Div", value, graph.constant(f"after_{number}", 2**layer.after))
    return graph.cast(graph.add("Min", value, graph.constant("peak", PEAK)), np.int32)
