"""Quantised neural networks in the native model file."""

import math
from functools import partial
from typing import Any

import numpy as np

from tinybayes.deploy.files._native.fields import each, get, integer, short, sound, values
from tinybayes.deploy.files._native.parts import pack_nodes, unpack_variable
from tinybayes.deploy.files._native.tensors import INTEGERS, Storage, Tensors, pack_parts
from tinybayes.errors import FileError, error
from tinybayes.model import NeuralNet
from tinybayes.model.neural_net import Inputs, Layer

_INPUTS = {part: Storage(f"inputs.{part}", INTEGERS) for part in ("feature", "state", "multiplier", "center")}
_BIAS = Storage("layers.bias", INTEGERS)
_MULTIPLIER = Storage("layers.multiplier", INTEGERS)
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
        "inputs": len(net.inputs),
        "layers": layers,
        "scale": float(net.scale),
        "image": None if net.image_shape is None else [int(n) for n in net.image_shape],
    }
    return pack_nodes(net.variables, net.target) | content, pack_parts(parts)


def unpack_neural_net(content: dict[str, Any], tensors: Tensors) -> NeuralNet:
    """Return the neural network that a JSON object and tensors describe."""
    where = f"{tensors.path}, model"
    variables = each(content, "variables", where, unpack_variable)
    target = unpack_variable(get(content, "target", dict, where), f"{where}.target")
    columns = integer(content, "inputs", where, low=1)
    inputs = Inputs(**{part: tensors.take(storage, columns, f"{where}.inputs") for part, storage in _INPUTS.items()})
    layers = each(content, "layers", where, partial(_unpack_layer, tensors))
    scale = get(content, "scale", float, where)
    image = None
    if content.get("image", "missing") is not None:
        image = _pair(content, "image", where, 1, _LARGEST)
    with sound("neural network", where):
        return NeuralNet(variables, target, inputs, layers, scale, image)


def _unpack_layer(tensors: Tensors, content: dict[str, Any], where: str) -> Layer:
    shape = values(content, "shape", (int,), where)
    if len(shape) not in (2, 4) or min(shape) < 1:
        expected = "two or four numbers from 1 on"
        raise error(expected, short(shape), where=f"{where}.shape", kind=FileError)
    storage = _weights(integer(content, "bits", where, 1, 8))
    codes = tensors.take(storage, math.prod(shape), where).reshape(shape)
    bias = tensors.take(_BIAS, shape[-1], where)
    activation = get(content, "activation", str, where)
    multiplier, before, after = None, 0, 0
    if activation == "relu":
        before, after = _pair(content, "shifts", where, 0, 31)
        multiplier = tensors.take(_MULTIPLIER, shape[-1], where)
    with sound("layer", where):
        return Layer(codes, storage.bits, bias, activation, multiplier, before, after)


def _pair(holder: dict[str, Any], key: str, where: str, low: int, high: int) -> tuple[int, int]:
    """Return a list of two integers in a range."""
    pair = values(holder, key, (int,), where)
    if len(pair) != 2 or not all(low <= value <= high for value in pair):
        raise error(f"two numbers from {low} to {high}", short(pair), where=f"{where}.{key}", kind=FileError)
    return pair[0], pair[1]
