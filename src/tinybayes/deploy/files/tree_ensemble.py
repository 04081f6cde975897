"""Tree ensembles in native model files."""

from reprlib import repr as short

import numpy as np

from tinybayes.deploy.files import fields
from tinybayes.deploy.files.fields import INTEGERS, Storage, Tensors
from tinybayes.deploy.files.variables import Content, pack_nodes, unpack_target, unpack_variable
from tinybayes.errors import FileError, error
from tinybayes.model import TreeEnsemble, Trees, Variable

_NODES = {name: Storage(f"nodes.{name}", INTEGERS) for name in ("feature", "threshold", "child")}
_TREES = {name: Storage(f"trees.{name}", INTEGERS) for name in ("root", "output")}
_MISSING = Storage("nodes.missing", ("uint8",), 1)
_MEMBERS = Storage("nodes.members", ("uint8",), 1)
_VALUES = Storage("leaves.values", INTEGERS)
_START = Storage("start", INTEGERS)


def pack_tree_ensemble(model: TreeEnsemble) -> tuple[Content, dict[str, np.ndarray]]:
    """Return the JSON object and the tensors that describe trees."""
    trees = model.trees
    members = trees.members[:, : _most_codes(model.variables) if len(trees.members) else 0]
    parts = {storage: [getattr(trees, name)] for name, storage in (_NODES | _TREES).items()}
    parts |= {_MISSING: [trees.missing.astype(np.uint8)], _MEMBERS: [members.reshape(-1).astype(np.uint8)]}
    parts |= {_VALUES: [model.values.reshape(-1)], _START: [model.start]}
    content = {
        "nodes": len(trees.feature),
        "trees": trees.count,
        "members": list(members.shape),
        "values": list(model.values.shape),
        "scale": float(model.scale),
    }
    return pack_nodes(model.variables, model.target) | content, fields.pack_parts(parts)


def unpack_tree_ensemble(content: Content, tensors: Tensors) -> TreeEnsemble:
    """Return the trees that a JSON object and tensors describe."""
    where = f"{tensors.path}, model"
    variables = fields.each(content, "variables", where, unpack_variable)
    target = unpack_target(content, where)
    nodes, count = (fields.integer(content, name, where, low=1) for name in ("nodes", "trees"))
    parts = {name: tensors.take(storage, nodes, where) for name, storage in _NODES.items()}
    parts |= {name: tensors.take(storage, count, where) for name, storage in _TREES.items()}
    missing = tensors.take(_MISSING, nodes, where)
    members = _take_table(_MEMBERS, "members", _most_codes(variables), content, tensors, where)
    values = _take_table(_VALUES, "values", target.cardinality, content, tensors, where)
    start = tensors.take(_START, target.cardinality, where)
    scale = fields.get(content, "scale", float, where)
    with fields.sound("tree ensemble", where):
        trees = Trees(**parts, missing=missing, members=members)
        return TreeEnsemble(variables, target, trees, values, start, scale)


def _most_codes(variables: tuple[Variable, ...]) -> int:
    return max((v.cardinality for v in variables), default=0)


def _take_table(storage: Storage, name: str, most: int, content: Content, tensors: Tensors, where: str) -> np.ndarray:
    """Take a table whose rows have up to `most` entries; one without rows has no columns."""
    shape = fields.values(content, name, (int,), where)
    if len(shape) != 2 or min(shape) < 0 or shape[1] > (most if shape[0] else 0):
        expected = f"the shape of a table with up to {most} columns, none without rows"
        raise error(expected, short(shape), where=f"{where}.{name}", kind=FileError)
    if shape[0] and not shape[1]:
        raise error("columns in a table with rows", short(shape), where=f"{where}.{name}", kind=FileError)
    return tensors.take(storage, shape[0] * shape[1], where).reshape(shape)
