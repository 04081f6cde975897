"""C code from raw numbers to codes: the cut points of the discretiser, so that a board need not know them."""

import math

import numpy as np

from tinybayes.deploy.programs._c import text
from tinybayes.errors import error
from tinybayes.model import Variable

RAW = ("float", "int", "none")


def raw_kind(variables: tuple[Variable, ...], raw: str) -> str:
    """Return what kind of raw values generated code takes: what was asked for, or none where nothing has cut points."""
    if raw not in RAW:
        raise error(f"one of {', '.join(RAW)}", repr(raw), where="raw")
    return raw if any(v.edges for v in variables) else "none"


def cut_points(variables: tuple[Variable, ...], raw: str) -> tuple[str, str]:
    """Return (constant data, body of a loop over the features i) that sets ``x[i]`` from ``value[i]``.

    The loop needs a counter ``k`` of the cut points that it has passed, which begins with 0.

    The comparisons agree exactly with those in Python for every value of the chosen type: a float32 is at least a
    cut point if and only if it is at least the next float32 not below it, and so for integers.
    """
    cuts = [float_cuts(v) if raw == "float" else integer_cuts(v) for v in variables]
    flat = np.concatenate([np.asarray(c) for c in cuts])
    if raw == "float":
        data = text.array("cut", "float", flat.astype(np.float32))
    else:
        data = text.array("cut", _narrowest(flat), flat.astype(np.int64))
    data += text.array("cuts", text.unsigned(max(map(len, cuts))), np.array([len(c) for c in cuts]))
    top = np.array([v.cardinality - 1 for v in variables])
    coded = np.array([v.edges is None for v in variables])
    state = text.unsigned(int(top.max()))
    body = (
        f"        const {'float' if raw == 'float' else 'int32_t'} v = value[i];\n"
        "        const unsigned n = cuts[i];\n        unsigned s = 0;\n"
        "        while (s < n && v >= cut[k + s]) {\n            ++s;\n        }\n"
    )
    if coded.any():
        data += text.array("coded", "uint8_t", coded.astype(np.uint8))
        body += f"        x[i] = ({state})(coded[i] ? (unsigned)v : s);\n"
    else:
        body += f"        x[i] = ({state})s;\n"
    return data, body + "        k += n;\n"


def _narrowest(cuts: np.ndarray) -> str:
    """Return the smallest type that holds all cut points and can be compared with 32-bit integers."""
    low, high = int(cuts.min(initial=0)), int(cuts.max(initial=0))
    for kind in (np.uint8, np.int8, np.uint16, np.int16):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return f"{kind.__name__}_t"
    return "int32_t"


def float_cuts(variable: Variable) -> np.ndarray:
    """Return for each cut point the smallest float32 that is not below it."""
    edges = np.array(variable.edges or (), dtype=np.float64)
    with np.errstate(over="ignore"):
        near = edges.astype(np.float32)
    below = near.astype(np.float64) < edges
    found = np.where(below, np.nextafter(near, np.float32(np.inf)), near)
    if not np.isfinite(found).all():
        raise error("cut points within float32", float(edges[~np.isfinite(found)][0]), where=variable.name)
    return found


def integer_cuts(variable: Variable) -> np.ndarray:
    """Return for each cut point the smallest whole number that is not below it."""
    found = [math.ceil(edge) for edge in variable.edges or ()]
    if any(not -(2**31) <= cut < 2**31 for cut in found):
        remedy = "use --raw float, or scale the column"
        raise error("cut points within 32-bit integers", found, where=f"variable {variable.name!r}", remedy=remedy)
    return np.array(found, dtype=np.int64)
