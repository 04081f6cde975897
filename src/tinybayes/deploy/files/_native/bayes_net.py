"""Bayesian networks in the native model file."""

from functools import partial
from typing import Any

import numpy as np

from tinybayes.deploy.files._native.fields import each, integer, short, sound, values
from tinybayes.deploy.files._native.parts import (
    pack_format,
    pack_nodes,
    pack_tree,
    table_storage,
    unpack_format,
    unpack_nodes,
    unpack_tree,
)
from tinybayes.deploy.files._native.tensors import LEVELS, Storage, Tensors, pack_parts
from tinybayes.errors import FileError, error
from tinybayes.model import CPD, BayesNet, Codebook, NumberFormat


def pack_bayes_net(net: BayesNet) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the JSON object and the tensors that describe a network."""
    formats: dict[NumberFormat, int] = {}
    parts: dict[Storage, list[np.ndarray]] = {}
    cpds: list[dict[str, Any]] = []
    for cpd in net.cpds:
        cpds.append({"parents": list(cpd.parents)})
        if number := formats.setdefault(cpd.format, len(formats)):
            cpds[-1]["format"] = number
        parts.setdefault(table_storage(cpd.format), []).append(cpd.table.reshape(-1))
        if cpd.tree is not None:
            cpds[-1] |= {"rows": len(cpd.table), "tree": pack_tree(cpd.tree, parts)}
    for form in formats:
        if isinstance(form, Codebook):
            parts.setdefault(LEVELS, []).append(np.array(form.values))
    content = {"formats": [pack_format(form) for form in formats], "cpds": cpds}
    return pack_nodes(net.variables, net.target) | content, pack_parts(parts)


def unpack_bayes_net(content: dict[str, Any], tensors: Tensors) -> BayesNet:
    """Return the network that a JSON object and tensors describe."""
    where = f"{tensors.path}, model"
    variables, target = unpack_nodes(content, where)
    nodes = variables if target is None else (*variables, target)
    formats = each(content, "formats", where, partial(unpack_format, tensors))
    families = values(content, "cpds", (dict,), where)
    if len(families) != len(nodes):
        expected = f"{len(nodes)} distributions, one for each variable"
        raise error(expected, len(families), where=f"{where}.cpds", kind=FileError)
    cardinality = [node.cardinality for node in nodes]
    cpds = [
        _unpack_cpd(family, columns, cardinality, formats, tensors, f"{where}.cpds[{index}]")
        for index, (family, columns) in enumerate(zip(families, cardinality, strict=True))
    ]
    with sound("Bayesian network", where):
        return BayesNet(variables, target, tuple(cpds))


def _unpack_cpd(
    content: dict[str, Any],
    columns: int,
    cardinality: list[int],
    formats: tuple[NumberFormat, ...],
    tensors: Tensors,
    where: str,
) -> CPD:
    form = formats[integer({"format": 0} | content, "format", where, 0, len(formats) - 1)]
    parents = values(content, "parents", (int,), where)
    for parent in parents:
        if not 0 <= parent < len(cardinality):
            expected = f"variables from 0 to {len(cardinality) - 1}"
            raise error(expected, short(parent), where=f"{where}.parents", kind=FileError)
    storage = table_storage(form)
    tree = None
    if "tree" in content:
        rows = integer(content, "rows", where, low=1)
        tree = unpack_tree(content, tensors, where)
    else:
        rows, left = 1, tensors.left(storage)
        for parent in parents:
            rows *= cardinality[parent]
            if rows > left:  # more than the file holds; the full product could take forever
                break
    table = tensors.take(storage, rows * columns, where).reshape(rows, columns)
    with sound("distribution", f"{where}, tensor {storage.name!r}"):
        return CPD(tuple(parents), table, form, tree)
