"""What models of all kinds have in the native model file: variables, number formats, decision trees."""

import math
from typing import Any

import numpy as np

from tinybayes.deploy.files._native.fields import each, get, integer, short, sound, values
from tinybayes.deploy.files._native.tensors import INTEGERS, LEVELS, Storage, Tensors
from tinybayes.errors import FileError, error
from tinybayes.model import Codebook, DecisionTree, Fixed, Float, NumberFormat, State, Variable

TREES = {part: Storage(f"trees.{part}", INTEGERS) for part in ("split", "first", "children", "row")}


def table_storage(form: NumberFormat) -> Storage:
    """Return the tensor that holds tables in a format.

    An entry of a codebook with a single level takes one bit and not none, so that no file can describe a
    table that is larger than itself.
    """
    if isinstance(form, Float):
        return Storage(f"tables.float{form.bits}", (f"float{form.bits}",))
    bits = max(form.bits, 1)
    return Storage(f"tables.bits{bits}", ("uint8",), bits)


def pack_nodes(variables: tuple[Variable, ...], target: Variable | None) -> dict[str, Any]:
    """Return the fields of the variables and the class of a model."""
    return {
        "variables": [pack_variable(variable) for variable in variables],
        "target": None if target is None else pack_variable(target),
    }


def unpack_nodes(content: dict[str, Any], where: str) -> tuple[tuple[Variable, ...], Variable | None]:
    """Return the variables and the class of a model; the class may be null."""
    target = None
    variables = each(content, "variables", where, unpack_variable)
    if content.get("target", "missing") is not None:
        target = unpack_variable(get(content, "target", dict, where), f"{where}.target")
    return variables, target


def pack_tree(tree: DecisionTree, parts: dict[Storage, list[np.ndarray]]) -> list[int]:
    """Add the arrays of a decision tree to the parts of tensors, and return its sizes."""
    for name, storage in TREES.items():
        parts.setdefault(storage, []).append(getattr(tree, name))
    return [len(tree.split), len(tree.children)]


def unpack_tree(content: dict[str, Any], tensors: Tensors, where: str) -> DecisionTree:
    """Return the decision tree that a JSON object and tensors describe."""
    sizes = values(content, "tree", (int,), where)
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
    content: dict[str, Any] = {"name": variable.name}
    if variable.edges is not None:
        content["edges"] = list(variable.edges)
        if variable == Variable.from_edges(variable.name, variable.edges):
            return content  # the names of the intervals need no space: they follow from the cut points
    content["states"] = [_pack_state(state) for state in variable.states]
    return content


def _pack_state(state: State) -> State | dict[str, str]:
    # JSON has no word for the infinities.
    return {"float": str(state)} if isinstance(state, float) and math.isinf(state) else state


def unpack_variable(content: dict[str, Any], where: str) -> Variable:
    """Return the variable of a JSON object."""
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


def pack_format(form: NumberFormat) -> dict[str, Any]:
    """Return the JSON object of a number format, of a codebook without its levels."""
    match form:
        case Float(bits):
            return {"kind": "float", "bits": int(bits)}
        case Fixed(whole, fraction):
            return {"kind": "fixed", "integer": int(whole), "fraction": int(fraction)}
        case Codebook(values):
            return {"kind": "codebook", "levels": len(values)}


def unpack_format(tensors: Tensors, content: dict[str, Any], where: str) -> NumberFormat:
    """Return the number format of a JSON object."""
    kind = get(content, "kind", str, where)
    with sound("number format", where):
        match kind:
            case "float":
                return Float(get(content, "bits", int, where))
            case "fixed":
                return Fixed(get(content, "integer", int, where), get(content, "fraction", int, where))
            case "codebook":
                levels = tensors.take(LEVELS, integer(content, "levels", where, low=1), where)
                return Codebook(tuple(levels.tolist()))
    raise error("float, fixed or codebook", short(kind), where=f"{where}.kind", kind=FileError)
