"""Models of each kind as a JSON object and tensors, and back: one pair of functions for each kind.

Unpacking checks every field before it is used; an error names the field or the tensor.
"""

import math
from functools import partial
from typing import Any

import numpy as np

from tinybayes.deploy.files._native.fields import each, get, integer, short, sound, values
from tinybayes.deploy.files._native.tensors import INTEGERS, Storage, Tensors, pack_parts
from tinybayes.errors import FileError, error
from tinybayes.infer.circuit_properties import is_decomposable
from tinybayes.model import (
    CPD,
    BayesNet,
    Circuit,
    Codebook,
    DecisionTree,
    Factor,
    Fixed,
    Float,
    LogLinear,
    NeuralNet,
    NumberFormat,
    State,
    Variable,
)
from tinybayes.model.circuit import SUM
from tinybayes.model.neural_net import Inputs, Layer

Content = dict[str, Any]
Parts = dict[Storage, list[np.ndarray]]
Packed = tuple[Content, dict[str, np.ndarray]]

_LEVELS = Storage("levels", ("float64",))  # of codebooks
_TREES = {part: Storage(f"trees.{part}", INTEGERS) for part in ("split", "first", "children", "row")}
_KIND = Storage("circuit.kind", ("uint8",), 2)
_SIZES = Storage("circuit.sizes", INTEGERS)
_CHILDREN = Storage("circuit.children", INTEGERS)
_LEAVES = Storage("circuit.leaves", INTEGERS)
_FEATURES = Storage("factors.features", INTEGERS)
_TIES = Storage("ties", INTEGERS)
_WEIGHTS = Storage("weights", ("float64",))
_INPUTS = {part: Storage(f"inputs.{part}", INTEGERS) for part in ("feature", "state", "multiplier", "center")}
_BIAS = Storage("layers.bias", INTEGERS)
_MULTIPLIER = Storage("layers.multiplier", INTEGERS)
_LARGEST = 2**31 - 1


# Variables, number formats and decision trees, which several kinds have


def _pack_nodes(variables: tuple[Variable, ...], target: Variable | None) -> Content:
    packed = [_pack_variable(variable) for variable in variables]
    return {"variables": packed, "target": None if target is None else _pack_variable(target)}


def _unpack_nodes(content: Content, where: str) -> tuple[tuple[Variable, ...], Variable | None]:
    """Return the variables and the class of a model; the class may be null."""
    variables = each(content, "variables", where, _unpack_variable)
    return variables, None if _is_null(content, "target") else _unpack_target(content, where)


def _unpack_target(content: Content, where: str) -> Variable:
    return _unpack_variable(get(content, "target", dict, where), f"{where}.target")


def _is_null(content: Content, key: str) -> bool:
    return key in content and content[key] is None


def _pack_variable(variable: Variable) -> Content:
    content: Content = {"name": variable.name}
    if variable.edges is not None:
        content["edges"] = list(variable.edges)
        if variable == Variable.from_edges(variable.name, variable.edges):
            return content  # the names of the intervals need no space: they follow from the cut points
    content["states"] = [_pack_state(state) for state in variable.states]
    return content


def _pack_state(state: State) -> State | dict[str, str]:
    # JSON has no word for the infinities.
    return {"float": str(state)} if isinstance(state, float) and math.isinf(state) else state


def _unpack_variable(content: Content, where: str) -> Variable:
    name = get(content, "name", str, where)
    edges = tuple(values(content, "edges", (float,), where)) if "edges" in content else None
    with sound("variable", where):
        if edges is not None and "states" not in content:
            return Variable.from_edges(name, edges)
        states = values(content, "states", (str, int, float, bool, dict), where)
        for index, state in enumerate(states):
            if type(state) is dict:
                if state not in ({"float": "inf"}, {"float": "-inf"}):
                    raise error("a state", short(state), where=f"{where}.states[{index}]", kind=FileError)
                states[index] = float(state["float"])
        return Variable(name, tuple(states), edges)


def _table_storage(form: NumberFormat) -> Storage:
    """Return the tensor that holds tables in a format.

    An entry of a codebook with a single level takes one bit instead of none, so that no file can describe a table that
    is larger than itself.
    """
    if isinstance(form, Float):
        return Storage(f"tables.float{form.bits}", (f"float{form.bits}",))
    bits = max(form.bits, 1)
    return Storage(f"tables.bits{bits}", ("uint8",), bits)


def _pack_format(form: NumberFormat, parts: Parts) -> Content:
    """Return the JSON object of a number format; the levels of a codebook are added to the parts."""
    match form:
        case Float(bits):
            return {"kind": "float", "bits": int(bits)}
        case Fixed(whole, fraction):
            return {"kind": "fixed", "integer": int(whole), "fraction": int(fraction)}
        case Codebook(levels):
            parts.setdefault(_LEVELS, []).append(np.array(levels))
            return {"kind": "codebook", "levels": len(levels)}


def _unpack_format(tensors: Tensors, content: Content, where: str) -> NumberFormat:
    kind = get(content, "kind", str, where)
    with sound("number format", where):
        match kind:
            case "float":
                return Float(get(content, "bits", int, where))
            case "fixed":
                return Fixed(get(content, "integer", int, where), get(content, "fraction", int, where))
            case "codebook":
                levels = tensors.take(_LEVELS, integer(content, "levels", where, low=1), where)
                return Codebook(tuple(levels.tolist()))
    raise error("float, fixed or codebook", short(kind), where=f"{where}.kind", kind=FileError)


def _pack_tree(tree: DecisionTree, parts: Parts) -> list[int]:
    """Add the arrays of a decision tree to the parts of tensors, and return its sizes."""
    for name, storage in _TREES.items():
        parts.setdefault(storage, []).append(getattr(tree, name))
    return [len(tree.split), len(tree.children)]


def _unpack_tree(content: Content, tensors: Tensors, where: str) -> DecisionTree:
    sizes = values(content, "tree", (int,), where)
    if len(sizes) != 2 or sizes[0] < 1 or sizes[1] < 0:
        expected = "the numbers of nodes and of children"
        raise error(expected, short(sizes), where=f"{where}.tree", kind=FileError)
    take = partial(tensors.take, user=where)
    return DecisionTree(**{part: take(s, sizes[part == "children"]) for part, s in _TREES.items()})


# Bayesian networks


def pack_bayes_net(net: BayesNet) -> Packed:
    """Return the JSON object and the tensors that describe a network."""
    formats: dict[NumberFormat, int] = {}
    parts: Parts = {}
    cpds: list[Content] = []
    for cpd in net.cpds:
        cpds.append({"parents": list(cpd.parents)})
        if number := formats.setdefault(cpd.format, len(formats)):
            cpds[-1]["format"] = number
        parts.setdefault(_table_storage(cpd.format), []).append(cpd.table.reshape(-1))
        if cpd.tree is not None:
            cpds[-1] |= {"rows": len(cpd.table), "tree": _pack_tree(cpd.tree, parts)}
    content = {"formats": [_pack_format(form, parts) for form in formats], "cpds": cpds}
    return _pack_nodes(net.variables, net.target) | content, pack_parts(parts)


def unpack_bayes_net(content: Content, tensors: Tensors) -> BayesNet:
    """Return the network that a JSON object and tensors describe."""
    where = f"{tensors.path}, model"
    variables, target = _unpack_nodes(content, where)
    nodes = variables if target is None else (*variables, target)
    formats = each(content, "formats", where, partial(_unpack_format, tensors))
    families = values(content, "cpds", (dict,), where)
    if len(families) != len(nodes):
        expected = f"{len(nodes)} distributions, one for each variable"
        raise error(expected, len(families), where=f"{where}.cpds", kind=FileError)
    cards = [node.cardinality for node in nodes]
    cpds = [
        _unpack_cpd(family, node, cards, formats, tensors, f"{where}.cpds[{node}]")
        for node, family in enumerate(families)
    ]
    with sound("Bayesian network", where):
        return BayesNet(variables, target, tuple(cpds))


def _unpack_cpd(
    content: Content, node: int, cards: list[int], formats: tuple[NumberFormat, ...], tensors: Tensors, where: str
) -> CPD:
    form = formats[integer({"format": 0} | content, "format", where, 0, len(formats) - 1)]
    parents = values(content, "parents", (int,), where)
    for parent in parents:
        if not 0 <= parent < len(cards):
            expected = f"variables from 0 to {len(cards) - 1}"
            raise error(expected, short(parent), where=f"{where}.parents", kind=FileError)
    storage = _table_storage(form)
    tree = None
    if "tree" in content:
        rows = integer(content, "rows", where, low=1)
        tree = _unpack_tree(content, tensors, where)
    else:
        rows, left = 1, tensors.left(storage)
        for parent in parents:
            rows *= cards[parent]
            if rows > left:  # more than the file holds; the full product could take forever
                break
    table = tensors.take(storage, rows * cards[node], where).reshape(rows, cards[node])
    with sound("distribution", f"{where}, tensor {storage.name!r}"):
        return CPD(tuple(parents), table, form, tree)


# Circuits


def pack_circuit(circuit: Circuit) -> Packed:
    """Return the JSON object and the tensors that describe a circuit."""
    inner = circuit.kind >= SUM
    parts: Parts = {
        _KIND: [circuit.kind],
        _SIZES: [np.diff(circuit.offsets)[inner]],
        _CHILDREN: [circuit.children],
        _LEAVES: [circuit.leaf[~inner]],
        _table_storage(circuit.format): [circuit.table],
    }
    form = _pack_format(circuit.format, parts)
    content = {"format": form, "nodes": circuit.n_nodes, "parameters": len(circuit.table)}
    return _pack_nodes(circuit.variables, circuit.target) | content, pack_parts(parts)


def unpack_circuit(content: Content, tensors: Tensors) -> Circuit:
    """Return the circuit that a JSON object and tensors describe; it must be decomposable."""
    where = f"{tensors.path}, model"
    variables, target = _unpack_nodes(content, where)
    form = _unpack_format(tensors, get(content, "format", dict, where), f"{where}.format")
    kind = tensors.take(_KIND, integer(content, "nodes", where, low=1), where)
    inner = kind >= SUM
    sizes = np.zeros(len(kind), np.int64)
    sizes[inner] = tensors.take(_SIZES, int(inner.sum()), where)
    if (sizes[inner] < 1).any():
        raise error("one child or more for each", int(sizes[inner].min()), where=f"{where}, sizes", kind=FileError)
    children = tensors.take(_CHILDREN, int(sizes.sum()), where)
    leaf = np.full(len(kind), -1, np.int32)
    leaf[~inner] = tensors.take(_LEAVES, int((~inner).sum()), where)
    table = tensors.take(_table_storage(form), integer(content, "parameters", where, low=0), where)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    with sound("circuit", where):
        circuit = Circuit(variables, target, kind, offsets, children, leaf, table, form)
    if not (answer := is_decomposable(circuit)):
        raise error("a decomposable circuit", answer.reason, where=where, kind=FileError)
    return circuit


# Log-linear models


def pack_log_linear(model: LogLinear) -> Packed:
    """Return the JSON object and the tensors that describe a log-linear model."""
    factors: list[Content] = []
    parts: Parts = {_WEIGHTS: [model.weights], _TIES: [model.classes]}
    for factor in model.factors:
        factors.append({"scope": list(factor.scope), "entries": len(factor.feature)})
        parts.setdefault(_FEATURES, []).append(factor.feature)
        if factor.tree is not None:
            factors[-1]["tree"] = _pack_tree(factor.tree, parts)
    variables = [_pack_variable(variable) for variable in model.variables]
    sizes = {"features": model.n_features, "classes": len(model.weights)}
    return {"variables": variables, "factors": factors} | sizes, pack_parts(parts)


def unpack_log_linear(content: Content, tensors: Tensors) -> LogLinear:
    """Return the log-linear model that a JSON object and tensors describe."""
    where = f"{tensors.path}, model"
    variables = each(content, "variables", where, _unpack_variable)
    factors = each(content, "factors", where, partial(_unpack_factor, tensors))
    weights = tensors.take(_WEIGHTS, integer(content, "classes", where, low=0), where)
    ties = tensors.take(_TIES, integer(content, "features", where, low=0), where)
    with sound("log-linear model", where):
        return LogLinear(variables, factors, weights, ties)


def _unpack_factor(tensors: Tensors, content: Content, where: str) -> Factor:
    scope = values(content, "scope", (int,), where)
    feature = tensors.take(_FEATURES, integer(content, "entries", where, low=1), where)
    tree = _unpack_tree(content, tensors, where) if "tree" in content else None
    with sound("factor", where):
        return Factor(tuple(scope), feature, tree)


# Neural networks


def _weight_storage(bits: int) -> Storage:
    return Storage(f"weights.bits{bits}", ("uint8",), bits)


def pack_neural_net(net: NeuralNet) -> Packed:
    """Return the JSON object and the tensors that describe a neural network."""
    parts: Parts = {s: [getattr(net.inputs, name)] for name, s in _INPUTS.items()}
    layers: list[Content] = []
    for layer in net.layers:
        layers.append({"shape": list(layer.codes.shape), "bits": int(layer.bits), "activation": layer.activation})
        parts.setdefault(_weight_storage(int(layer.bits)), []).append(layer.codes.reshape(-1))
        parts.setdefault(_BIAS, []).append(layer.bias)
        if layer.multiplier is not None:
            layers[-1]["shifts"] = [int(layer.before), int(layer.after)]
            parts.setdefault(_MULTIPLIER, []).append(layer.multiplier)
    image = None if net.image_shape is None else [int(n) for n in net.image_shape]
    content = {"inputs": len(net.inputs), "layers": layers, "scale": float(net.scale), "image": image}
    return _pack_nodes(net.variables, net.target) | content, pack_parts(parts)


def unpack_neural_net(content: Content, tensors: Tensors) -> NeuralNet:
    """Return the neural network that a JSON object and tensors describe."""
    where = f"{tensors.path}, model"
    variables = each(content, "variables", where, _unpack_variable)
    target = _unpack_target(content, where)
    columns = integer(content, "inputs", where, low=1)
    inputs = Inputs(**{part: tensors.take(storage, columns, f"{where}.inputs") for part, storage in _INPUTS.items()})
    layers = each(content, "layers", where, partial(_unpack_layer, tensors))
    scale = get(content, "scale", float, where)
    image = None if _is_null(content, "image") else _pair(content, "image", where, 1, _LARGEST)
    with sound("neural network", where):
        return NeuralNet(variables, target, inputs, layers, scale, image)


def _unpack_layer(tensors: Tensors, content: Content, where: str) -> Layer:
    shape = values(content, "shape", (int,), where)
    if len(shape) not in (2, 4) or min(shape) < 1:
        raise error("two or four numbers from 1 on", short(shape), where=f"{where}.shape", kind=FileError)
    storage = _weight_storage(integer(content, "bits", where, 1, 8))
    codes = tensors.take(storage, math.prod(shape), where).reshape(shape)
    bias = tensors.take(_BIAS, shape[-1], where)
    activation = get(content, "activation", str, where)
    multiplier, before, after = None, 0, 0
    if activation == "relu":
        before, after = _pair(content, "shifts", where, 0, 31)
        multiplier = tensors.take(_MULTIPLIER, shape[-1], where)
    with sound("layer", where):
        return Layer(codes, storage.bits, bias, activation, multiplier, before, after)


def _pair(holder: Content, key: str, where: str, low: int, high: int) -> tuple[int, int]:
    """Return a list of two integers in a range."""
    pair = values(holder, key, (int,), where)
    if len(pair) != 2 or not all(low <= value <= high for value in pair):
        raise error(f"two numbers from {low} to {high}", short(pair), where=f"{where}.{key}", kind=FileError)
    return pair[0], pair[1]
