"""From raw measurements to codes: the cut points of the discretiser, in the arithmetic of the device.

The comparisons agree exactly with those in Python for every value of the chosen type: a float32 is at least a cut point
if and only if it is at least the next float32 not below it; the same holds for integers.
"""

import math
from dataclasses import dataclass

import numpy as np

from tinybayes.deploy.programs.program import Array, Function, block, loop, narrow, narrowest, unsigned
from tinybayes.errors import error
from tinybayes.model import Variable

RAW = ("float", "int", "none")
CUT_TYPES = ("uint8", "int8", "uint16", "int16", "int32")  # all can be compared with 32-bit integers
DOC = "The states of raw measurements; a feature without cut points takes the number of its state."


@dataclass(frozen=True, eq=False)
class Features:
    """The inputs of a program: the features, and how a row of raw values becomes their codes."""

    variables: tuple[Variable, ...]
    raw: str = "none"  # the type of raw values: "float" (32 bits) or "int"; "none" where the program takes codes only
    # For each feature its cut points (float32 or int64); a value's code is the count of those not above it. None where
    # the raw value is the code.
    cuts: tuple[np.ndarray | None, ...] = ()

    @property
    def state(self) -> str:
        """The C type of a code."""
        return unsigned(max((v.cardinality for v in self.variables), default=1) - 1)

    @property
    def value(self) -> str:
        """The C type of a raw value; empty where the program takes none."""
        return {"float": "float", "int": "int32_t", "none": ""}[self.raw]

    @property
    def counts(self) -> np.ndarray:
        """The number of cut points of each feature."""
        return np.array([0 if cuts is None else len(cuts) for cuts in self.cuts])

    @property
    def coded(self) -> np.ndarray:
        """Whether the raw value of a feature is its code."""
        return np.array([cuts is None for cuts in self.cuts])

    @property
    def flat(self) -> np.ndarray:
        """The cut points of all features, one after another."""
        return np.concatenate([cuts for cuts in self.cuts if cuts is not None])


def make_features(variables: tuple[Variable, ...], raw: str) -> Features:
    """Describe the inputs of a program; it takes no raw values if no feature has cut points."""
    if raw not in RAW:
        raise error(f"one of {', '.join(RAW)}", repr(raw), where="raw")
    if raw == "none" or not any(v.edges for v in variables):
        return Features(variables)
    cuts_of = float_cuts if raw == "float" else integer_cuts
    return Features(variables, raw, tuple(None if v.edges is None else cuts_of(v) for v in variables))


def encode_function(features: Features) -> Function:
    """Make the function that sets states ``x`` from measurements ``value``."""
    count, flat = len(features.variables), features.flat
    if features.raw == "int":
        flat = flat.astype(narrowest(int(flat.min()), int(flat.max()), CUT_TYPES))
    arrays = [Array("cut", flat), Array("cuts", narrow(features.counts))]
    code = "s"
    if features.coded.any():
        arrays.append(Array("coded", features.coded.astype(np.uint8)))
        code = "(coded[i] ? (unsigned)v : s)"
    lines = [
        f"const {features.value} v = value[i];",
        "const unsigned n = cuts[i];",
        "unsigned s = 0;",
        *block("while (s < n && v >= cut[k + s])", ["++s;"]),
        f"x[i] = ({features.state}){code};",
        "k += n;",
    ]
    parameters = (f"const {features.value} value[{count}]", f"{features.state} x[{count}]")
    body = ("unsigned i, k = 0;", *loop("i", count, lines))
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
