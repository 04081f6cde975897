"""From raw measurements to codes: the cut points of the discretiser, in the arithmetic of the device.

The comparisons agree exactly with those in Python for every value of the chosen type: a float32 is at least a cut point
if and only if it is at least the next float32 not below it; the same holds for integers.
"""

import math
from dataclasses import dataclass

import numpy as np

from tinybayes.deploy.programs.program import Array, Function, loop, narrow, narrowest
from tinybayes.errors import error
from tinybayes.model import Variable

RAW = ("float", "int", "none")
CUT_TYPES = ("uint8", "int8", "uint16", "int16", "int32")  # all can be compared with 32-bit integers
DOC = "The states of raw measurements; a feature without cut points takes the number of its state."


@dataclass(frozen=True, eq=False)
class Encoding:
    """How a row of raw values becomes codes."""

    raw: str  # the type of raw values: ``"float"`` (32 bits) or ``"int"``
    # For each feature its cut points (float32 or int64); a value's code is the count of those not above it. None where
    # the raw value is the code.
    cuts: tuple[np.ndarray | None, ...]

    @property
    def value_type(self) -> str:
        """The C type of a raw value."""
        return "float" if self.raw == "float" else "int32_t"

    @property
    def counts(self) -> np.ndarray:
        """The number of cut points of each feature."""
        return np.array([0 if cuts is None else len(cuts) for cuts in self.cuts])

    @property
    def coded(self) -> np.ndarray:
        """Whether the raw value of a feature is its code."""
        return np.array([cuts is None for cuts in self.cuts])


def make_encoding(variables: tuple[Variable, ...], raw: str) -> Encoding | None:
    """Return how raw values are encoded; None if that was not asked for, or if no feature has cut points."""
    if raw not in RAW:
        raise error(f"one of {', '.join(RAW)}", repr(raw), where="raw")
    if raw == "none" or not any(v.edges for v in variables):
        return None
    cuts_of = float_cuts if raw == "float" else integer_cuts
    return Encoding(raw, tuple(None if v.edges is None else cuts_of(v) for v in variables))


def encode_function(encoding: Encoding, state: str) -> Function:
    """Make the function that sets states ``x`` from measurements ``value``."""
    features = len(encoding.cuts)
    flat = np.concatenate([cuts for cuts in encoding.cuts if cuts is not None])
    if encoding.raw == "int":
        flat = flat.astype(narrowest(int(flat.min()), int(flat.max()), CUT_TYPES))
    arrays = [Array("cut", flat), Array("cuts", narrow(encoding.counts))]
    code = "s"
    if encoding.coded.any():
        arrays.append(Array("coded", encoding.coded.astype(np.uint8)))
        code = "(coded[i] ? (unsigned)v : s)"
    lines = [
        f"const {encoding.value_type} v = value[i];",
        "const unsigned n = cuts[i];",
        "unsigned s = 0;",
        "while (s < n && v >= cut[k + s]) {",
        "    ++s;",
        "}",
        f"x[i] = ({state}){code};",
        "k += n;",
    ]
    parameters = (f"const {encoding.value_type} value[{features}]", f"{state} x[{features}]")
    body = ("unsigned i, k = 0;", *loop("i", features, lines))
    return Function("encode", "void", parameters, body, DOC, tuple(arrays), public=True)


def float_cuts(variable: Variable) -> np.ndarray:
    """Return for each cut point the smallest float32 that is not below it."""
    edges = np.array(variable.edges or (), dtype=np.float64)
    with np.errstate(over="ignore"):
        near = edges.astype(np.float32)
    below = near.astype(np.float64) < edges
    cuts = np.where(below, np.nextafter(near, np.float32(np.inf)), near)
    if not np.isfinite(cuts).all():
        raise error("cut points within float32", float(edges[~np.isfinite(cuts)][0]), where=variable.name)
    return cuts


def integer_cuts(variable: Variable) -> np.ndarray:
    """Return for each cut point the smallest integer that is not below it."""
    cuts = [math.ceil(edge) for edge in variable.edges or ()]
    if any(not -(2**31) <= cut < 2**31 for cut in cuts):
        remedy = "use --raw float, or scale the column"
        raise error("cut points within 32-bit integers", cuts, where=f"variable {variable.name!r}", remedy=remedy)
    return np.array(cuts, dtype=np.int64)
