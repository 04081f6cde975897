"""Classifiers as one file of plain Python for MicroPython: tables in bytes, integers only where the model has them."""

import numpy as np

from tinybayes.deploy.programs._c.cut_points import float_cuts, integer_cuts, raw_kind
from tinybayes.deploy.programs._names import check_name
from tinybayes.deploy.programs._net_plan import NetPlan, net_plan
from tinybayes.deploy.programs._net_python import net_body
from tinybayes.deploy.programs._plan import Plan, plan
from tinybayes.deploy.programs._terms import Term
from tinybayes.model import BayesNet, Fixed, NeuralNet, Variable

CHUNK = 24  # bytes of a table in one line
FRACTION = 2**126  # the largest denominator that is still a 32-bit float

FUNCTIONS = '''
def _add(sums, row):
    """Add a row of the table to the sums of all classes."""
{add}

def scores(x):
    """Return the scores of all classes for a row of states; the largest wins."""
    sums = list(_START)
    for first, steps in _TERMS:
        for feature, stride in steps:
            first += stride * x[feature]
        _add(sums, first)
{shared}    return sums


def predict(x):
    """Return the number of the most probable class; of equally probable ones the first."""
    found = scores(x)
    return found.index(max(found))
'''

SHARED = """    shared = {start}
    for first, steps in _COMMON:
        for feature, stride in steps:
            first += stride * x[feature]
        shared {entry}
    for c in range(len(sums)):
        sums[c] += shared
"""

FROM_RAW = '''
# A value is in the state whose number is the count of cut points not above it; None where it is the state itself.
_CUTS = (
{cuts}
)


def encode(values):
    """Return the states of a row of measurements."""
    states = []
    for value, cuts in zip(values, _CUTS):
        if cuts is not None:
            state = 0
            while state < len(cuts) and value >= cuts[state]:
                state += 1
            value = state
        states.append({state})
    return states


def predict_raw(values):
    """Return the number of the most probable class of a row of measurements."""
    return predict(encode(values))
'''


def to_micropython(
    net: BayesNet | NeuralNet, *, name: str = "model", raw: str = "float", note: str = ""
) -> dict[str, str]:
    """Write a classifier as a module for MicroPython, which CPython can run as well.

    The module of a network in one `Fixed` format or one `Codebook` imports nothing, computes with integers only, and
    its scores are those of `tinybayes.infer.integer_log_joint`, or of `tinybayes.infer.neural_net.net_scores` for a
    neural net. Networks of floats are added up in the floats of the board, with ``struct`` to read them.

    Parameters
    ----------
    net
        The classifier, or the neural net.
    name
        The name of the module.
    raw
        What ``predict_raw`` takes: ``"float"``, ``"int"``, or ``"none"`` for no such function.
    note
        A line for the comment at the top, such as the measured error.

    Returns
    -------
    dict of str
        The text by file name.
    """
    check_name(name)
    raw = raw_kind(net.variables, raw)
    found: Plan | NetPlan = net_plan(net) if isinstance(net, NeuralNet) else plan(net)
    out = "".join(f"# {line}\n" for line in found.facts(note))
    out += "from struct import unpack_from\n\n" if found.score == "float" else "\n"
    out += _names("FEATURES", [v.name for v in net.variables]) + _names("CLASSES", found.target.states) + "\n"
    out += _body(found) if isinstance(found, Plan) else net_body(found)
    if raw != "none":
        cuts = "".join(f"    {_cuts(v, raw)},\n" for v in net.variables).rstrip("\n")
        out += FROM_RAW.format(cuts=cuts, state="int(value)" if raw == "float" else "value")
    return {f"{name}.py": out}


def _body(found: Plan) -> str:
    """Write the constants and the functions ``scores`` and ``predict``."""
    out = _tables(found)
    shared = ""
    if found.terms.common or len(found.terms.common_constant):
        entry = _entry(found, "_ENTRIES", "first") if found.terms.common else "+= 0"
        start = found.worth(found.terms.common_constant).sum()
        shared = SHARED.format(start=_number(start), entry=entry)
    return out + FUNCTIONS.format(add=_add(found), shared=shared)


def _tables(found: Plan) -> str:
    """Write the constants: the first sums, where rows are, and the tables."""
    terms, out = found.terms, ""
    if found.values is not None and not isinstance(found.form, Fixed):
        out += "# What a code adds to a score.\n" + _tuple("_LEVEL", [str(v) for v in found.values.tolist()])
    start = found.worth(terms.constant).astype(np.float64).sum(axis=0)
    out += "# What all rows begin with, and (first row, ((feature, stride), ...)) of each table.\n"
    kind = np.float32 if found.values is None else np.int64
    out += _tuple("_START", [_number(v) for v in start.astype(kind)]) + _tuple("_TERMS", _terms(terms.terms))
    out += f"_TABLE = {_bytes(found, terms.rows)}\n"
    if terms.common or len(terms.common_constant):
        out += "# The same of the tables without the class, which add the same to all scores.\n"
        out += _tuple("_COMMON", _terms(terms.common)) + f"_ENTRIES = {_bytes(found, terms.entries)}\n"
    return out + "\n"


def _add(found: Plan) -> str:
    classes = found.classes
    if found.values is None:
        return (
            f'    values = unpack_from("<{classes}f", _TABLE, {4 * classes} * row)\n'
            f"    for c in range({classes}):\n        sums[c] += values[c]\n"
        )
    entry = _entry(found, "_TABLE", "k")
    return f"    k = {classes} * row\n    for c in range({classes}):\n        sums[c] {entry}\n        k += 1\n"


def _entry(found: Plan, table: str, k: str) -> str:
    """Write what entry k of a table does to a score."""
    if found.values is None:
        return f'+= unpack_from("<f", {table}, 4 * {k})[0]'
    size, width = _bits(found), _bytes_of(found)
    if width:
        parts = (f"{table}[{width} * {k} + {i}] << {8 * i}" for i in range(1, width))
        code = " | ".join([f"{table}[{width} * {k}]" if width > 1 else f"{table}[{k}]", *parts])
    else:
        code = f"{table}[{size} * {k} >> 3]" if size > 1 else f"{table}[{k} >> 3]"
        if 8 % size:  # a code may begin in one byte and end in the next
            code = f"({code} | {table}[({size} * {k} >> 3) + 1] << 8)"
        place = f"({size} * {k} & 7)" if size > 1 else f"({k} & 7)"
        code = f"{code} >> {place} & {2**size - 1}"
    return f"-= {code}" if isinstance(found.form, Fixed) else f"+= _LEVEL[{code}]"


def _bytes(found: Plan, codes: np.ndarray) -> str:
    """Write codes as bytes: packed to the bit up to 7 bits, in whole bytes above."""
    flat = codes.reshape(-1)
    if found.values is None:
        data = flat.astype("<f4").tobytes()
    elif width := _bytes_of(found):
        data = flat.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :width].tobytes()
    else:
        bits = flat[:, None] >> np.arange(_bits(found), dtype=flat.dtype) & 1
        data = np.packbits(bits.astype(np.uint8), bitorder="little").tobytes()
        data += b"\0" if 8 % _bits(found) else b""  # the last code is read with the byte after it
    lines = [repr(data[i : i + CHUNK]) for i in range(0, len(data), CHUNK)] or ["b''"]
    return lines[0] if len(lines) == 1 else "(\n" + "".join(f"    {line}\n" for line in lines) + ")"


def _bits(found: Plan) -> int:
    return max(found.form.bits, 1)


def _bytes_of(found: Plan) -> int:
    """Return the whole bytes of a code; 0 where several codes share a byte."""
    return -(-_bits(found) // 8) if _bits(found) >= 8 else 0


def _terms(terms: tuple[Term, ...]) -> list[str]:
    return [repr((term.first, term.steps)) for term in terms]


def _tuple(name: str, items: list[str]) -> str:
    if sum(map(len, items)) < 80:
        return f"{name} = ({', '.join(items)}{',' if len(items) == 1 else ''})\n"
    return f"{name} = (\n" + "".join(f"    {item},\n" for item in items) + ")\n"


def _names(name: str, values: list[str] | tuple[object, ...]) -> str:
    return _tuple(name, [ascii(str(value)) for value in values])


def _number(value: float) -> str:
    """Write a number so that every board reads it exactly; not all of them round decimals correctly."""
    if isinstance(value, np.integer):
        return str(value)
    if np.isneginf(value):
        return '-float("inf")'
    over, under = float(value).as_integer_ratio()
    if under == 1:
        return f"{over}.0" if abs(over) < 2**24 else f"float({over})"
    return f"{over} / {under}" if under <= FRACTION else f"{over} / {FRACTION} / {under // FRACTION}"


def _cuts(variable: Variable, raw: str) -> str:
    """Write the cut points of a variable; those of floats are exact for 32-bit floats."""
    if variable.edges is None:
        return "None"
    cuts = float_cuts(variable) if raw == "float" else integer_cuts(variable)
    return f"({', '.join(_number(v) for v in cuts)}{',' if len(cuts) == 1 else ''})"
