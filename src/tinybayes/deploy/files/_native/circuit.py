"""Circuits in the native model file."""

from typing import Any

import numpy as np

from tinybayes.deploy.files._native.fields import get, integer, sound
from tinybayes.deploy.files._native.parts import pack_format, pack_nodes, table_storage, unpack_format, unpack_nodes
from tinybayes.deploy.files._native.tensors import INTEGERS, LEVELS, Storage, Tensors, pack_parts
from tinybayes.errors import FileError, error
from tinybayes.infer.circuit_properties import is_decomposable
from tinybayes.model import Circuit, Codebook

_KIND = Storage("circuit.kind", ("uint8",), 2)
_SIZES = Storage("circuit.sizes", INTEGERS)
_CHILDREN = Storage("circuit.children", INTEGERS)
_LEAVES = Storage("circuit.leaves", INTEGERS)
_SUM = 2


def pack_circuit(circuit: Circuit) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the JSON object and the tensors that describe a circuit."""
    inner = circuit.kind >= _SUM
    parts: dict[Storage, list[np.ndarray]] = {
        _KIND: [circuit.kind],
        _SIZES: [np.diff(circuit.offsets)[inner]],
        _CHILDREN: [circuit.children],
        _LEAVES: [circuit.leaf[~inner]],
        table_storage(circuit.format): [circuit.table],
    }
    if isinstance(circuit.format, Codebook):
        parts[LEVELS] = [np.array(circuit.format.values)]
    content = {"format": pack_format(circuit.format), "nodes": circuit.n_nodes, "parameters": len(circuit.table)}
    return pack_nodes(circuit.variables, circuit.target) | content, pack_parts(parts)


def unpack_circuit(content: dict[str, Any], tensors: Tensors) -> Circuit:
    """Return the circuit that a JSON object and tensors describe; it is decomposable, or an error says where not."""
    where = f"{tensors.path}, model"
    variables, target = unpack_nodes(content, where)
    form = unpack_format(tensors, get(content, "format", dict, where), f"{where}.format")
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
        circuit = Circuit(variables, target, kind, offsets, children, leaf, table, form)
    if not (answer := is_decomposable(circuit)):
        raise error("a decomposable circuit", answer.reason, where=where, kind=FileError)
    return circuit
