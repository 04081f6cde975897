"""Circuits in the native model file."""

from typing import Any

import numpy as np

from tinybayes.deploy.files._native.bayes_net import (
    pack_format,
    pack_variable,
    table_storage,
    unpack_format,
    unpack_variable,
)
from tinybayes.deploy.files._native.fields import get, integer, items, sound
from tinybayes.deploy.files._native.tensors import LEVELS, Storage, Tensors
from tinybayes.errors import FileError, error
from tinybayes.infer.circuit_properties import is_decomposable
from tinybayes.model import Circuit, Codebook

_KIND = Storage("circuit.kind", ("uint8",), 2)
_SIZES = Storage("circuit.sizes", ("int8", "int16", "int32"))
_CHILDREN = Storage("circuit.children", ("int8", "int16", "int32"))
_LEAVES = Storage("circuit.leaves", ("int8", "int16", "int32"))
_SUM = 2


def pack_circuit(circuit: Circuit) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the JSON object and the tensors that describe a circuit."""
    inner = circuit.kind >= _SUM
    parts: dict[Storage, np.ndarray] = {
        _KIND: circuit.kind,
        _SIZES: np.diff(circuit.offsets)[inner],
        _CHILDREN: circuit.children,
        _LEAVES: circuit.leaf[~inner],
        table_storage(circuit.format): circuit.table,
    }
    if isinstance(circuit.format, Codebook):
        parts[LEVELS] = np.array(circuit.format.values)
    content = {
        "variables": [pack_variable(variable) for variable in circuit.variables],
        "target": None if circuit.target is None else pack_variable(circuit.target),
        "format": pack_format(circuit.format),
        "nodes": circuit.n_nodes,
        "parameters": len(circuit.table),
    }
    return content, {storage.name: storage.pack([part]) for storage, part in parts.items() if len(part)}


def unpack_circuit(content: dict[str, Any], tensors: Tensors) -> Circuit:
    """Return the circuit that a JSON object and tensors describe; it is decomposable, or an error says where not."""
    where = f"{tensors.path}, model"
    variables = [
        unpack_variable(item, f"{where}.variables[{index}]")
        for index, item in enumerate(items(content, "variables", (dict,), where))
    ]
    target = None
    if content.get("target", "missing") is not None:
        target = unpack_variable(get(content, "target", dict, where), f"{where}.target")
    form = unpack_format(get(content, "format", dict, where), tensors, f"{where}.format")
    kind = tensors.take(_KIND, integer(content, "nodes", where, low=1), where)
    inner = kind >= _SUM
    sizes = np.zeros(len(kind), np.int64)
    sizes[inner] = tensors.take(_SIZES, int(inner.sum()), where)
    if (sizes[inner] < 1).any():
        raise error("one child or more for each", int(sizes[inner].min()), where=f"{where}, sizes", kind=FileError)
    children = tensors.take(_CHILDREN, int(sizes.sum()), where)
    leaf = np.full(len(kind), -1, np.int32)
    leaf[~inner] = tensors.take(_LEAVES, int((~inner).sum()), where)
    table = tensors.take(table_storage(form), integer(content, "parameters", where, low=0), where)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    with sound("circuit", where):
        circuit = Circuit(tuple(variables), target, kind, offsets, children, leaf, table, form)
    if not (found := is_decomposable(circuit)):
        raise error("a decomposable circuit", found.reason, where=where, kind=FileError)
    return circuit
