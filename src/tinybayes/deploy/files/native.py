"""The native model file: a safetensors file whose header describes its tensors in JSON.

Reading trusts nothing: every field is checked before it is used, memory follows the size of the file and never
a number written in it, nothing is executed, and every fault becomes a `FileError` that says where it is.
The format is described in docs/model_file.md. Each kind of model has a pair of functions, to a JSON object and tensors
and back.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable
from functools import partial
from reprlib import repr as short
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save as safetensors_bytes

from tinybayes.deploy.files import fields
from tinybayes.deploy.files.fields import INTEGERS, JSON, Storage, Tensors
from tinybayes.deploy.files.tree_ensemble import pack_tree_ensemble, unpack_tree_ensemble
from tinybayes.deploy.files.variables import (
    Content,
    is_null,
    pack_nodes,
    pack_variable,
    unpack_nodes,
    unpack_target,
    unpack_variable,
)
from tinybayes.errors import FileError, error
from tinybayes.files import atomic_path, named
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
    TreeEnsemble,
)
from tinybayes.model.circuit import SUM
from tinybayes.model.neural_net import Inputs, Layer

Model = BayesNet | Circuit | LogLinear | NeuralNet | TreeEnsemble
VERSION = 2
_HEADER_LIMIT = 2**26
_BLANK = b"0" * 64  # replaces the checksum while that is computed
_DAMAGED = "the file is damaged: fetch or make it again"

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


# Number formats and decision trees, which several kinds have


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
    kind = fields.get(content, "kind", str, where)
    with fields.sound("number format", where):
        match kind:
            case "float":
                return Float(fields.get(content, "bits", int, where))
            case "fixed":
                return Fixed(fields.get(content, "integer", int, where), fields.get(content, "fraction", int, where))
            case "codebook":
                levels = tensors.take(_LEVELS, fields.integer(content, "levels", where, low=1), where)
                return Codebook(tuple(levels.tolist()))
    raise error("float, fixed or codebook", short(kind), where=f"{where}.kind", kind=FileError)


def _pack_tree(tree: DecisionTree, parts: Parts) -> list[int]:
    """Add the arrays of a decision tree to the parts of tensors, and return its sizes."""
    for name, storage in _TREES.items():
        parts.setdefault(storage, []).append(getattr(tree, name))
    return [len(tree.split), len(tree.children)]


def _unpack_tree(content: Content, tensors: Tensors, where: str) -> DecisionTree:
    sizes = fields.values(content, "tree", (int,), where)
    if len(sizes) != 2 or sizes[0] < 1 or sizes[1] < 0:
        expected = "the numbers of nodes and of children"
        raise error(expected, short(sizes), where=f"{where}.tree", kind=FileError)
    take = partial(tensors.take, user=where)
    with fields.sound("decision tree", f"{where}.tree"):
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
    return pack_nodes(net.variables, net.target) | content, fields.pack_parts(parts)


def unpack_bayes_net(content: Content, tensors: Tensors) -> BayesNet:
    """Return the network that a JSON object and tensors describe."""
    where = f"{tensors.path}, model"
    variables, target = unpack_nodes(content, where)
    nodes = variables if target is None else (*variables, target)
    formats = fields.each(content, "formats", where, partial(_unpack_format, tensors))
    families = fields.values(content, "cpds", (dict,), where)
    if len(families) != len(nodes):
        expected = f"{len(nodes)} distributions, one for each variable"
        raise error(expected, len(families), where=f"{where}.cpds", kind=FileError)
    cards = [node.cardinality for node in nodes]
    cpds = [
        _unpack_cpd(family, node, cards, formats, tensors, f"{where}.cpds[{node}]")
        for node, family in enumerate(families)
    ]
    with fields.sound("Bayesian network", where):
        return BayesNet(variables, target, tuple(cpds))


def _unpack_cpd(
    content: Content, node: int, cards: list[int], formats: tuple[NumberFormat, ...], tensors: Tensors, where: str
) -> CPD:
    form = formats[fields.integer({"format": 0} | content, "format", where, 0, len(formats) - 1)]
    parents = fields.values(content, "parents", (int,), where)
    for parent in parents:
        if not 0 <= parent < len(cards):
            expected = f"variables from 0 to {len(cards) - 1}"
            raise error(expected, short(parent), where=f"{where}.parents", kind=FileError)
    storage = _table_storage(form)
    tree = None
    if "tree" in content:
        rows = fields.integer(content, "rows", where, low=1)
        tree = _unpack_tree(content, tensors, where)
    else:
        rows, left = 1, tensors.left(storage)
        for parent in parents:
            rows *= cards[parent]
            if rows > left:  # more than the file holds; the full product could take forever
                break
    table = tensors.take(storage, rows * cards[node], where).reshape(rows, cards[node])
    with fields.sound("distribution", f"{where}, tensor {storage.name!r}"):
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
    return pack_nodes(circuit.variables, circuit.target) | content, fields.pack_parts(parts)


def unpack_circuit(content: Content, tensors: Tensors) -> Circuit:
    """Return the circuit that a JSON object and tensors describe; it must be decomposable."""
    where = f"{tensors.path}, model"
    variables, target = unpack_nodes(content, where)
    form = _unpack_format(tensors, fields.get(content, "format", dict, where), f"{where}.format")
    kind = tensors.take(_KIND, fields.integer(content, "nodes", where, low=1), where)
    inner = kind >= SUM
    sizes = np.zeros(len(kind), np.int64)
    sizes[inner] = tensors.take(_SIZES, int(inner.sum()), where)
    if (sizes[inner] < 1).any():
        raise error("one child or more for each", int(sizes[inner].min()), where=f"{where}, sizes", kind=FileError)
    children = tensors.take(_CHILDREN, int(sizes.sum()), where)
    leaf = np.full(len(kind), -1, np.int32)
    leaf[~inner] = tensors.take(_LEAVES, int((~inner).sum()), where)
    table = tensors.take(_table_storage(form), fields.integer(content, "parameters", where, low=0), where)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    with fields.sound("circuit", where):
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
    variables = [pack_variable(variable) for variable in model.variables]
    sizes = {"features": model.n_features, "classes": len(model.weights)}
    return {"variables": variables, "factors": factors} | sizes, fields.pack_parts(parts)


def unpack_log_linear(content: Content, tensors: Tensors) -> LogLinear:
    """Return the log-linear model that a JSON object and tensors describe."""
    where = f"{tensors.path}, model"
    variables = fields.each(content, "variables", where, unpack_variable)
    factors = fields.each(content, "factors", where, partial(_unpack_factor, tensors))
    weights = tensors.take(_WEIGHTS, fields.integer(content, "classes", where, low=0), where)
    ties = tensors.take(_TIES, fields.integer(content, "features", where, low=0), where)
    with fields.sound("log-linear model", where):
        return LogLinear(variables, factors, weights, ties)


def _unpack_factor(tensors: Tensors, content: Content, where: str) -> Factor:
    scope = fields.values(content, "scope", (int,), where)
    feature = tensors.take(_FEATURES, fields.integer(content, "entries", where, low=1), where)
    tree = _unpack_tree(content, tensors, where) if "tree" in content else None
    with fields.sound("factor", where):
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
    return pack_nodes(net.variables, net.target) | content, fields.pack_parts(parts)


def unpack_neural_net(content: Content, tensors: Tensors) -> NeuralNet:
    """Return the neural network that a JSON object and tensors describe."""
    where = f"{tensors.path}, model"
    variables = fields.each(content, "variables", where, unpack_variable)
    target = unpack_target(content, where)
    columns = fields.integer(content, "inputs", where, low=1)
    inputs = Inputs(**{part: tensors.take(storage, columns, f"{where}.inputs") for part, storage in _INPUTS.items()})
    layers = fields.each(content, "layers", where, partial(_unpack_layer, tensors))
    scale = fields.get(content, "scale", float, where)
    image = None if is_null(content, "image") else _pair(content, "image", where, 1, _LARGEST)
    with fields.sound("neural network", where):
        return NeuralNet(variables, target, inputs, layers, scale, image)


def _unpack_layer(tensors: Tensors, content: Content, where: str) -> Layer:
    shape = fields.values(content, "shape", (int,), where)
    if len(shape) not in (2, 4) or min(shape) < 1:
        raise error("two or four numbers from 1 on", short(shape), where=f"{where}.shape", kind=FileError)
    storage = _weight_storage(fields.integer(content, "bits", where, 1, 8))
    codes = tensors.take(storage, math.prod(shape), where).reshape(shape)
    bias = tensors.take(_BIAS, shape[-1], where)
    activation = fields.get(content, "activation", str, where)
    multiplier, before, after = None, 0, 0
    if activation == "relu":
        before, after = _pair(content, "shifts", where, 0, 31)
        multiplier = tensors.take(_MULTIPLIER, shape[-1], where)
    with fields.sound("layer", where):
        return Layer(codes, storage.bits, bias, activation, multiplier, before, after)


def _pair(holder: Content, key: str, where: str, low: int, high: int) -> tuple[int, int]:
    """Return a list of two integers in a range."""
    pair = fields.values(holder, key, (int,), where)
    if len(pair) != 2 or not all(low <= value <= high for value in pair):
        raise error(f"two numbers from {low} to {high}", short(pair), where=f"{where}.{key}", kind=FileError)
    return pair[0], pair[1]


# The file


_KINDS: dict[str, tuple[Callable[[Any], Packed], Callable[[Content, Tensors], Model]]] = {
    "BayesNet": (pack_bayes_net, unpack_bayes_net),
    "Circuit": (pack_circuit, unpack_circuit),
    "LogLinear": (pack_log_linear, unpack_log_linear),
    "NeuralNet": (pack_neural_net, unpack_neural_net),
    "TreeEnsemble": (pack_tree_ensemble, unpack_tree_ensemble),
}


def write_native(model: Model, path: str | os.PathLike[str], *, metadata: dict[str, JSON] | None = None) -> None:
    """Write a model to a file; the same model and metadata always give the same bytes."""
    kind = type(model).__name__
    if kind not in _KINDS:
        raise error(f"a model of the kind {' or '.join(_KINDS)}", kind, where="save")
    metadata = {} if metadata is None else metadata
    if not isinstance(metadata, dict):
        raise error("a JSON object", short(metadata), where="metadata")
    fields.dumps(metadata, "metadata")  # raises here, so that the message does not blame the model
    content, tensors = _KINDS[kind][0](model)
    # "checksum" sorts first, so the first 64 zeros of the file are its own, whichever names follow.
    blank = _BLANK.decode()
    document = {"checksum": blank, "kind": kind, "metadata": metadata, "model": content, "version": VERSION}
    data = bytearray(safetensors_bytes(tensors, {"tinybayes": fields.dumps(document, "model")}))
    length = int.from_bytes(data[:8], "little")
    if length > _HEADER_LIMIT:
        raise error(f"names, states and metadata within {_HEADER_LIMIT} bytes", length, where="model")
    start = data.index(_BLANK)
    data[start : start + len(_BLANK)] = hashlib.sha256(data).hexdigest().encode()
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def model_id(model: Model) -> str:
    """Return 12 hexadecimal digits that tell models apart: a hash of everything in a file but its metadata."""
    kind = type(model).__name__
    content, tensors = _KINDS[kind][0](model)
    digest = hashlib.sha256(json.dumps([kind, content], sort_keys=True, default=str).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tensor.shape}".encode())
        digest.update(np.ascontiguousarray(tensor))
    return digest.hexdigest()[:12]


def read_native(path: str | os.PathLike[str]) -> Model:
    """Read a model; raise a `FileError` that says where the file is not sound."""
    document, tensors = _read(path)
    content = fields.get(document, "model", dict, f"{path}, header")
    model = _KINDS[document["kind"]][1](content, tensors)
    tensors.finish()
    return model


def load_metadata(path: str | os.PathLike[str]) -> dict[str, JSON]:
    """Read the metadata that `save` stored beside the model."""
    document, _ = _read(path)
    return fields.get(document, "metadata", dict, f"{path}, header")


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Tensors]:
    """Read a file, and check everything but the content of the model."""
    where = f"{path}, header"
    data, header = _read_bytes(path)
    named = fields.parse(header, where, _DAMAGED).get("__metadata__")
    if not isinstance(named, dict) or not isinstance(named.get("tinybayes"), str):
        raise error("a tinybayes model", "a safetensors file of something else", where=where, kind=FileError)
    try:
        entries = deserialize(data)
    except SafetensorError as problem:
        raise error("sound tensors", f"{problem}", where=where, remedy=_DAMAGED, kind=FileError) from problem
    document = fields.parse(named["tinybayes"], where, _DAMAGED)
    version = fields.integer(document, "version", where, low=1)
    if version > VERSION:
        expected, remedy = f"a file version up to {VERSION}", "upgrade tinybayes"
        raise error(expected, short(version), where=f"{where}.version", remedy=remedy, kind=FileError)
    _verify(data, header, fields.get(document, "checksum", str, where), f"{where}.checksum")
    kind = fields.get(document, "kind", str, where)
    if kind not in _KINDS:
        remedy = "a newer tinybayes may know it"
        raise error(" or ".join(_KINDS), short(kind), where=f"{where}.kind", remedy=remedy, kind=FileError)
    return document, Tensors(entries, str(path))


def _read_bytes(path: str | os.PathLike[str]) -> tuple[bytes, bytes]:
    """Read a file; return its bytes and the JSON of its header."""
    where = str(path)
    try:
        with open(path, "rb", opener=named) as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if size < 8 or length > min(size - 8, _HEADER_LIMIT):
                expected = f"8 bytes, then a header within the file and {_HEADER_LIMIT} bytes"
                got = f"{size} bytes" if size < 8 else f"{size} bytes in all for a header of {length}"
                remedy = "this is no model file, or only a part of one"
                raise error(expected, got, where=where, remedy=remedy, kind=FileError)
            file.seek(0)
            data = file.read()
    except OSError as problem:
        reason = problem.strerror or problem
        raise error("a file that can be read", reason, where=where, kind=FileError) from problem
    return data, data[8 : 8 + length]


def _verify(data: bytes, header: bytes, checksum: str, where: str) -> None:
    """Raise unless the checksum is right."""
    digits = checksum.encode(errors="replace")
    start = 8 + header.find(digits)
    digest = hashlib.sha256(data[:start])
    digest.update(_BLANK)
    digest.update(memoryview(data)[start + len(digits) :])
    if digest.hexdigest() != checksum:
        raise error(digest.hexdigest(), short(checksum), where=where, remedy=_DAMAGED, kind=FileError)
