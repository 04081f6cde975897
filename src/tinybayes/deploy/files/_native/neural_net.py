"""Quantised neural networks in the native model file."""

import math
from typing import Any

import numpy as np

from tinybayes.deploy.files._native.bayes_net import pack_variable, unpack_variable
from tinybayes.deploy.files._native.fields import get, integer, items, short, sound
from tinybayes.deploy.files._native.tensors import Storage, Tensors
from tinybayes.errors import FileError, error
from tinybayes.model import NeuralNet
from tinybayes.model.neural_net import Inputs, Layer

_INTEGERS = ("int8", "int16", "int32")
_INPUTS = {part: Storage(f"inputs.{part}", _INTEGERS) for part in ("feature", "state", "multiplier", "center")}
_BIAS = Storage("layers.bias", _INTEGERS)
_MULTIPLIER = Storage("layers.multiplier", _INTEGERS)
_LARGEST = 2**31 - 1


def _weights(bits: int) -> Storage:
    return Storage(f"weights.bits{bits}", ("uint8",), bits)


def pack_neural_net(net: NeuralNet) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the JSON object and the tensors that describe a neural network."""
    parts: dict[Storage, list[np.ndarray]] = {s: [getattr(net.inputs, name)] for name, s in _INPUTS.items()}
    layers: list[dict[str, Any]] = []
    for layer in net.layers:
        layers.append({"shape": list(layer.codes.shape), "bits": int(layer.bits), "activation": layer.activation})
        parts.setdefault(_weights(int(layer.bits)), []).append(layer.codes.reshape(-1))
        parts.setdefault(_BIAS, []).append(layer.bias)
        if layer.multiplier is not None:
            layers[-1]["shifts"] = [int(layer.before), int(layer.after)]
            parts.setdefault(_MULTIPLIER, []).append(layer.multiplier)
    content = {
        "variables": [pack_variable(variable) for variable in net.variables],
        "target": pack_variable(net.target),
        "inputs": len(net.inputs),
        "layers": layers,
        "scale": float(net.scale),
        "image": None if net.image_shape is None else [int(n) for n in net.image_shape],
    }
    return content, {s.name: s.pack(some) for s, some in parts.items() if any(len(part) for part in some)}


def unpack_neural_net(content: dict[str, Any], tensors: Tensors) -> NeuralNet:
    """Return the neural network that a JSON object and tensors describe."""
    where = f"{tensors.path}, model"
    variables = [
        unpack_variable(item, f"{where}.variables[{index}]")
        for index, item in enumerate(items(content, "variables", (dict,), where))
    ]
    target = unpack_variable(get(content, "target", dict, where), f"{where}.target")
    columns = integer(content, "inputs", where, low=1)
    inputs = Inputs(**{part: tensors.take(storage, columns, f"{where}.inputs") for part, storage in _INPUTS.items()})
    layers = [
        _unpack_layer(item, tensors, f"{where}.layers[{index}]")
        for index, item in enumerate(items(content, "layers", (dict,), where))
    ]
    scale = get(content, "scale", float, where)
    image = None
    if content.get("image", "missing") is not None:
        image = _pair(content, "image", where, 1, _LARGEST)
    with sound("neural network", where):
        return NeuralNet(tuple(variables), target, inputs, tuple(layers), scale, image)


def _unpack_layer(item: dict[str, Any], tensors: Tensors, where: str) -> Layer:
    shape = items(item, "shape", (int,), where)
    if len(shape) not in (2, 4) or min(shape) < 1:
        expected = "two or four numbers from 1 on"
        raise error(expected, short(shape), where=f"{where}.shape", kind=FileError)
    storage = _weights(integer(item, "bits", where, 1, 8))
    codes = tensors.take(storage, math.prod(shape), where).reshape(shape)
    bias = tensors.take(_BIAS, shape[-1], where)
    activation = get(item, "activation", str, where)
    multiplier, before, after = None, 0, 0
    if activation == "relu":
        before, after = _pair(item, "shifts", where, 0, 31)
        multiplier = tensors.take(_MULTIPLIER, shape[-1], where)
    with sound("layer", where):
        return Layer(codes, storage.bits, bias, activation, multiplier, before, after)


def _pair(holder: dict[str, Any], key: str, where: str, low: int, high: int) -> tuple[int, int]:
    """Return a list of two integers in a range."""
    values = items(holder, key, (int,), where)
    if len(values) != 2 or not all(low <= value <= high for value in values):
        raise error(f"two numbers from {low} to {high}", short(values), where=f"{where}.{key}", kind=FileError)
    return values[0], values[1]
