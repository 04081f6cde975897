"""Variables and their encodings in native model files: JSON objects."""

import math
from reprlib import repr as short
from typing import Any

from tinybayes.deploy.files import fields
from tinybayes.errors import FileError, error
from tinybayes.model import State, Variable
from tinybayes.model.encoding import Cuts, Grid, Intervals

Content = dict[str, Any]


def pack_nodes(variables: tuple[Variable, ...], target: Variable | None) -> Content:
    """Return the JSON object of the variables and the class of a model."""
    packed = [pack_variable(variable) for variable in variables]
    return {"variables": packed, "target": None if target is None else pack_variable(target)}


def unpack_nodes(content: Content, where: str) -> tuple[tuple[Variable, ...], Variable | None]:
    """Return the variables and the class of a model; the class may be null."""
    variables = fields.each(content, "variables", where, unpack_variable)
    return variables, None if is_null(content, "target") else unpack_target(content, where)


def unpack_target(content: Content, where: str) -> Variable:
    """Return the class of a model that must have one."""
    return unpack_variable(fields.get(content, "target", dict, where), f"{where}.target")


def is_null(content: Content, key: str) -> bool:
    """Tell whether a field is there, and null."""
    return key in content and content[key] is None


def pack_variable(variable: Variable) -> Content:
    """Return the JSON object of a variable."""
    content: Content = {"name": variable.name}
    encoding = variable.encoding
    if isinstance(encoding, Intervals):
        content |= {"cuts": list(encoding.points)} if isinstance(encoding, Cuts) else {"grid": _pack_grid(encoding)}
        content |= {"integer": True} if encoding.integer else {}
        if variable == Variable.from_encoding(variable.name, encoding):
            return content  # the names of the intervals need no space: they follow from the encoding
    content["states"] = [_pack_state(state) for state in variable.states]
    return content


def _pack_state(state: State) -> State | dict[str, str]:
    # JSON has no word for the infinities.
    return {"float": str(state)} if isinstance(state, float) and math.isinf(state) else state


def unpack_variable(content: Content, where: str) -> Variable:
    """Return the variable that a JSON object describes."""
    name = fields.get(content, "name", str, where)
    with fields.sound("variable", where):
        encoding = _unpack_encoding(content, where)
        if encoding is not None and "states" not in content:
            return Variable.from_encoding(name, encoding)
        states = fields.values(content, "states", (str, int, float, bool, dict), where)
        for index, state in enumerate(states):
            if type(state) is dict:
                if state not in ({"float": "inf"}, {"float": "-inf"}):
                    raise error("a state", short(state), where=f"{where}.states[{index}]", kind=FileError)
                states[index] = float(state["float"])
        return Variable(name, tuple(states), encoding)  # type: ignore[arg-type]


def _pack_grid(grid: Grid) -> list[float]:
    return [grid.start, grid.step, float(grid.count)]


def _unpack_encoding(content: Content, where: str) -> Cuts | Grid | None:
    integer = "integer" in content and fields.get(content, "integer", bool, where)
    for name in ("cuts", "edges"):  # files of version 1 have edges
        if name in content:
            return Cuts(fields.values(content, name, (float,), where), integer)
    if "grid" not in content:
        return None
    numbers = fields.values(content, "grid", (float,), where)
    if len(numbers) != 3 or not float(numbers[2]).is_integer():
        raise error("start, step and count", short(numbers), where=f"{where}.grid", kind=FileError)
    return Grid(numbers[0], numbers[1], int(numbers[2]), integer)
