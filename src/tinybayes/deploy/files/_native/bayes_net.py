"""Bayesian networks in the native model file."""

import math
from typing import Any

import numpy as np

from tinybayes.deploy.files._native.fields import get, integer, items, short, sound
from tinybayes.deploy.files._native.tensors import LEVELS, Storage, Tensors
from tinybayes.errors import FileError, error
from tinybayes.model import CPD, BayesNet, Codebook, DecisionTree, Fixed, Float, NumberFormat, State, Variable

TREES = {part: Storage(f"trees.{part}", ("int8", "int16", "int32")) for part in ("split", "first", "children", "row")}


def table_storage(form: NumberFormat) -> Storage:
    """Say where tables in a format are stored.

    An entry of a codebook with a single level takes one bit and not none, so that no file can describe a
    table that is larger than itself.
    """
    if isinstance(form, Float):
        return Storage(f"tables.float{form.bits}", (f"float{form.bits}",))
    bits = max(form.bits, 1)
    return Storage(f"tables.bits{bits}", ("uint8",), bits)


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
            cpds[-1] |= {"rows": len(cpd.table), "tree": [len(cpd.tree.split), len(cpd.tree.children)]}
            for name, storage in TREES.items():
                parts.setdefault(storage, []).append(getattr(cpd.tree, name))
    for form in formats:
        if isinstance(form, Codebook):
            parts.setdefault(LEVELS, []).append(np.array(form.values))
    content = {
        "variables": [pack_variable(variable) for variable in net.variables],
        "target": None if net.target is None else pack_variable(net.target),
        "formats": [pack_format(form) for form in formats],
        "cpds": cpds,
    }
    return content, {s.name: s.pack(some) for s, some in parts.items() if any(len(part) for part in some)}


def unpack_bayes_net(content: dict[str, Any], tensors: Tensors) -> BayesNet:
    """Return the network that a JSON object and tensors describe."""
    where = f"{tensors.path}, model"
    variables = [
        unpack_variable(item, f"{where}.variables[{index}]")
        for index, item in enumerate(items(content, "variables", (dict,), where))
    ]
    target = None
    if content.get("target", "missing") is not None:
        target = unpack_variable(get(content, "target", dict, where), f"{where}.target")
    nodes = variables if target is None else [*variables, target]
    formats = [
        unpack_format(item, tensors, f"{where}.formats[{index}]")
        for index, item in enumerate(items(content, "formats", (dict,), where))
    ]
    families = items(content, "cpds", (dict,), where)
    if len(families) != len(nodes):
        expected = f"{len(nodes)} distributions, one for each variable"
        raise error(expected, len(families), where=f"{where}.cpds", kind=FileError)
    cardinality = [node.cardinality for node in nodes]
    cpds = [
        _unpack_cpd(item, columns, cardinality, formats, tensors, f"{where}.cpds[{index}]")
        for index, (item, columns) in enumerate(zip(families, cardinality, strict=True))
    ]
    with sound("Bayesian network", where):
        return BayesNet(tuple(variables), target, tuple(cpds))


def _unpack_cpd(
    item: dict[str, Any],
    columns: int,
    cardinality: list[int],
    formats: list[NumberFormat],
    tensors: Tensors,
    where: str,
) -> CPD:
    form = formats[integer({"format": 0} | item, "format", where, 0, len(formats) - 1)]
    parents = items(item, "parents", (int,), where)
    for parent in parents:
        if not 0 <= parent < len(cardinality):
            expected = f"variables from 0 to {len(cardinality) - 1}"
            raise error(expected, short(parent), where=f"{where}.parents", kind=FileError)
    storage = table_storage(form)
    tree = None
    if "tree" in item:
        rows = integer(item, "rows", where, low=1)
        tree = unpack_tree(item, tensors, where)
    else:
        rows, left = 1, tensors.left(storage)
        for parent in parents:
            rows *= cardinality[parent]
            if rows > left:  # more than there is; multiplying on could take for ever
                break
    table = tensors.take(storage, rows * columns, where).reshape(rows, columns)
    with sound("distribution", f"{where}, tensor {storage.name!r}"):
        return CPD(tuple(parents), table, form, tree)


def unpack_tree(item: dict[str, Any], tensors: Tensors, where: str) -> DecisionTree:
    """Return the decision tree that a JSON object and tensors describe."""
    sizes = items(item, "tree", (int,), where)
    if len(sizes) != 2 or sizes[0] < 1 or sizes[1] < 0:
        expected = "the numbers of nodes and of children"
        raise error(expected, short(sizes), where=f"{where}.tree", kind=FileError)
    nodes, children = sizes
    arrays = {
        part: tensors.take(storage, children if part == "children" else nodes, where) for part, storage in TREES.items()
    }
    return DecisionTree(**arrays)


def pack_variable(variable: Variable) -> dict[str, Any]:
    """Return the JSON object of a variable."""
    item: dict[str, Any] = {"name": variable.name}
    if variable.edges is not None:
        item["edges"] = list(variable.edges)
        if variable == Variable.from_edges(variable.name, variable.edges):
            return item  # the names of the intervals need no space: they follow from the cut points
    item["states"] = [_pack_state(state) for state in variable.states]
    return item


def _pack_state(state: State) -> State | dict[str, str]:
    # JSON has no word for the infinities.
    return {"float": str(state)} if isinstance(state, float) and math.isinf(state) else state


def unpack_variable(item: dict[str, Any], where: str) -> Variable:
    """Return the variable of a JSON object."""
    name = get(item, "name", str, where)
    edges = tuple(items(item, "edges", (float,), where)) if "edges" in item else None
    with sound("variable", where):
        if edges is not None and "states" not in item:
            return Variable.from_edges(name, edges)
        states = items(item, "states", (str, int, float, bool, dict), where)
        for index, state in enumerate(states):
            if type(state) is dict:
                if state not in ({"float": "inf"}, {"float": "-inf"}):
                    place = f"{where}.states[{index}]"
                    raise error("a state", short(state), where=place, kind=FileError)
                states[index] = float(state["float"])
        return Variable(name, tuple(states), edges)


def pack_format(form: NumberFormat) -> dict[str, Any]:
    """Return the JSON object of a number format, of a codebook without its levels."""
    match form:
        case Float(bits):
            return {"kind": "float", "bits": int(bits)}
        case Fixed(whole, fraction):
            return {"kind": "fixed", "integer": int(whole), "fraction": int(fraction)}
        case Codebook(values):
            return {"kind": "codebook", "levels": len(values)}


def unpack_format(item: dict[str, Any], tensors: Tensors, where: str) -> NumberFormat:
    """Return the number format of a JSON object."""
    kind = get(item, "kind", str, where)
    with sound("number format", where):
        match kind:
            case "float":
                return Float(get(item, "bits", int, where))
            case "fixed":
                return Fixed(get(item, "integer", int, where), get(item, "fraction", int, where))
            case "codebook":
                levels = tensors.take(LEVELS, integer(item, "levels", where, low=1), where)
                return Codebook(tuple(levels.tolist()))
    raise error("float, fixed or codebook", short(kind), where=f"{where}.kind", kind=FileError)
