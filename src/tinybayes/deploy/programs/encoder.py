"""The functions of the C family from raw values to codes: one loop for each kind of encoding that occurs."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from tinybayes.deploy.programs.encoding import Features, bisects
from tinybayes.deploy.programs.program import Array, Dialect, Function, block, loop, narrow, records
from tinybayes.model import Categories, Cuts, Grid, Integers

DOC = "The codes of a row of raw values."
SIGN = "bits >> 31 ? -(int32_t){0} : (int32_t){0}"
KEY = "Integers in the order of floats: the bits of the magnitude, with the sign."
STEPS = "A float in steps of 2**shift, rounded down; beyond 23 bits some integer of as many."
WHOLE = "The integer that a float is; the lowest one for all other floats."
WHOLE_OR_NAN = "The integer that a float is; the lowest one for NaN, and the one after it for all other floats."
WHOLE_BODY = """const uint32_t m = (bits & 0x7FFFFFU) | 0x800000U;
const unsigned down = 150U - (unsigned)(size >> 23);
if (size == 0U) {
    return 0;
}
if (down > 23U || m & (((uint32_t)1 << down) - 1U)) {
    return INT32_MIN;
}"""
# Below zero, from one less and with all bits turned, shifts round down, too. The smallest numbers, without a leading
# one, are less than a step in any case.
NAN = """if (size > 0xFF000000U) {
    return INT32_MIN; /* not a number */
}"""
SHIFT = """const uint32_t below = bits > 0x80000000U;
int down = 150 + shift - (int)(size >> 24);
uint32_t m = (bits & 0x7FFFFFU) | 0x800000U;
FAR
down = down < 0 ? 0 : down;
down = down > 31 ? 31 : down;
m = (m - below) >> down;
return (int32_t)(m ^ (0U - below));"""
FAR = """if (down < 0) {
    m = down < -6 ? 0x7FFFFFFFU : m << -down;
}"""
NEAR = 2**23  # steps from zero: larger numbers need not be exact where all grids end before


def encode_functions(features: Features, dialect: Dialect, shared: Sequence[Array] = ()) -> tuple[Function, ...]:
    """Make the function that sets codes ``x`` from raw values ``value``, after the functions that it calls.

    A `shared` table ``grid`` has the numbers of grids for other functions, too.
    """
    grids = partial(_grids, shared=[array for array in shared if array.name == "grid"])
    arrays: list[Array] = []
    lines: list[str] = []
    for kinds, write in (((Cuts,), _cuts), ((Grid,), grids), ((Integers, Categories), _states)):
        if indices := features.of_kind(*kinds):
            found, own = write(features, indices)
            feature, listed = _feature(indices, len(features.variables), kinds[0].__name__.lower())
            arrays += [*listed, *own]
            lines += loop("k", len(indices), [f"const unsigned i = {feature};", *found])
    width = max(1, len(features.variables))
    parameters = (f"const {features.value} value[{width}]", f"{features.state} x[{width}]")
    counters = ["unsigned k;"] if lines else ["(void)value;", "(void)x;"]
    if features.ignored is not None:
        lines += [f"x[{features.ignored}] = {f'{features.missing}U' if features.gaps else '0'};"]
    encode = Function("encode", "void", parameters, (*counters, *lines), DOC, tuple(arrays), public=True)
    return (*_float_functions(features, dialect), encode)


def _float_functions(features: Features, dialect: Dialect) -> list[Function]:
    if features.raw != "float":
        return []
    functions = []
    if features.has_keys:
        functions.append(key_function(dialect, gaps=features.gaps))
    if features.of_kind(Integers, Categories):
        functions.append(whole_function(dialect, unseen=features.unseen))
    if any(features.gaps or grid.count > 1 for _, grid in features.grids()):
        near = all(grid.first >= -NEAR and grid.first + grid.count <= NEAR for _, grid in features.grids())
        lines = [*dialect.float_bits, "const uint32_t size = bits << 1;", *(NAN.splitlines() if features.gaps else [])]
        body = (*lines, *SHIFT.replace("FAR\n", "" if near else f"{FAR}\n").splitlines())
        functions.append(Function("steps", "int32_t", ("float value", "int shift"), body, STEPS))
    return functions


def key_function(dialect: Dialect, *, gaps: bool) -> Function:
    """Make the function of the keys of floats; with `gaps` the lowest integer is that of any NaN."""
    body = (*_magnitude(dialect, gaps=gaps), f"return {SIGN.format('size')};")
    return Function("key", "int32_t", ("float value",), body, KEY)


def whole_function(dialect: Dialect, *, unseen: bool = False) -> Function:
    """Make the function of the integers that floats are, within 2**24; with `unseen` only NaN gives the lowest one."""
    lines = WHOLE_BODY.replace("INT32_MIN", "INT32_MIN + 1") if unseen else WHOLE_BODY
    body = (*_magnitude(dialect, gaps=unseen), *lines.splitlines(), f"return {SIGN.format('(m >> down)')};")
    return Function("whole", "int32_t", ("float value",), body, WHOLE_OR_NAN if unseen else WHOLE)


def _magnitude(dialect: Dialect, *, gaps: bool) -> list[str]:
    """Write lines that set ``bits`` and ``size``, the bits without the sign."""
    gap = block("if (size > 0x7F800000U)", ["return INT32_MIN; /* not a number */"]) if gaps else []
    return [*dialect.float_bits, "const uint32_t size = bits & 0x7FFFFFFFU;", *gap]


def _feature(indices: Sequence[int], features: int, kind: str) -> tuple[str, tuple[Array, ...]]:
    """Return an expression of the k-th of these features, and the table that it reads."""
    first = indices[0]
    if list(indices) == list(range(first, first + len(indices))):
        return f"k + {first}U" if first else "k", ()
    return f"{kind}_feature[k]", (Array(f"{kind}_feature", narrow(indices, limit=features)),)


def _number(name: str, values: Sequence[int], *, signed: bool = False) -> tuple[str, list[Array]]:
    """Return an expression of the k-th of these numbers, and the table that it reads unless all are equal."""
    if len(set(values)) == 1:
        return str(values[0]) if signed else f"{values[0]}U", []
    return f"{name}[k]", [Array(name, narrow(np.array(values), signed=signed))]


def _cuts(features: Features, indices: list[int]) -> tuple[list[str], list[Array]]:
    """Count the cut points that are not above a value."""
    keys, lists = features.lists
    value = "key(value[i])" if features.raw == "float" else "value[i]"
    if not len(keys):  # one interval, but a missing value is still missing
        known = [f"const int32_t v = {value};", f"x[i] = {_known(features, 'v == INT32_MIN', '0')};"]
        return known if features.gaps else ["(void)value;", "x[i] = 0;"], []
    table = Array("cut", keys)
    begin, arrays = _number("cut_begin", [lists[i][0] for i in indices])
    counts = [lists[i][1] for i in indices]
    count, more = _number("cut_count", counts)
    compared = "(v >> 16)" if features.short else "v"
    search = [f"while (s < n && {compared} >= cut[b + s]) {{", "    ++s;", "}"]
    if bisects(counts):
        search = [
            "unsigned end = n;",
            "while (s < end) {",
            "    const unsigned h = (s + end) / 2U;",
            f"    if ({compared} >= cut[b + h]) {{",
            "        s = h + 1U;",
            "    } else {",
            "        end = h;",
            "    }",
            "}",
        ]
    lines = [
        f"const int32_t v = {value};",
        f"const unsigned b = {begin}, n = {count};",
        "unsigned s = 0;",
        *search,
        f"x[i] = {_known(features, 'v == INT32_MIN', f'({features.state})s')};",
    ]
    return lines, [table, *arrays, *more]


def grid_numbers(features: Features) -> dict[str, list[int]]:
    """Return the numbers of grids that codes are counted by."""
    grids = [grid for _, grid in features.grids()]
    return {
        "shift": [grid.shift for grid in grids],
        "first": [grid.first for grid in grids],
        "top": [grid.count - 1 for grid in grids],
    }


def _grids(features: Features, indices: list[int], shared: Sequence[Array]) -> tuple[list[str], list[Array]]:
    """Count the steps from the start, and clip them."""
    assert sum(1 for _ in features.grids()) == len(indices)
    text, arrays = records("grid", "k", grid_numbers(features), ("shift", "first"))
    for table in shared:
        text |= {field: f"grid[k].{field}" for field in table.values.dtype.names or ()}
        arrays = []
    shift, first, top = text["shift"], text["first"], text["top"]
    if features.raw == "float":
        q, missing = [f"const int32_t q = steps(value[i], {shift});"], "q == INT32_MIN"
    else:
        q, missing = [f"const int32_t q = value[i]{'' if shift == '0' else f' >> {shift}'};"], "value[i] == INT32_MIN"
    code = f"(s < {top} ? ({features.state})s : ({features.state}){top})"
    if top == "0U":  # one interval, but a missing value is still missing
        if not features.gaps:
            return ["(void)value;", "x[i] = 0;"], []
        known = f"x[i] = {_known(features, missing, '0')};"
        return ["const int32_t q = steps(value[i], 0);", known] if features.raw == "float" else [known], []
    lines = [
        *q,
        f"const uint32_t s = q < {first} ? 0U : (uint32_t)q - (uint32_t){first};",
        f"x[i] = {_known(features, missing, code)};",
    ]
    return lines, arrays


def _states(features: Features, indices: list[int]) -> tuple[list[str], list[Array]]:
    """Subtract the lowest value; other values are unknown, or those that are not missing unseen."""
    low, arrays = _number("state_low", [features.lowest(i) for i in indices], signed=True)
    top, last = _number("state_last", [features.variables[i].cardinality - 1 for i in indices])
    unknown = f"({features.state}){features.missing}U" if features.gaps else "0"
    value = "whole(value[i])" if features.raw == "float" else "value[i]"
    if features.unseen:
        unknown = f"w == INT32_MIN ? {unknown} : ({features.state}){features.unseen_code}U"
    lines = [
        *([f"const int32_t w = {value};"] if features.unseen else []),
        f"const uint32_t s = (uint32_t){'w' if features.unseen else value} - (uint32_t){low};",
        f"x[i] = s {'== 0U' if top == '0U' else f'<= {top}'} ? ({features.state})s : {unknown};",
    ]
    return lines, [*arrays, *last]


def _known(features: Features, missing: str, code: str) -> str:
    return f"{missing} ? ({features.state}){features.missing}U : {code}" if features.gaps else code
