"""Classifiers as one file of plain Python for MicroPython: tables in bytes, integers only where the model has them."""

import numpy as np

from tinybayes.deploy.bits import pack_bits
from tinybayes.deploy.programs.encoding import Features
from tinybayes.deploy.programs.forest import branches
from tinybayes.deploy.programs.micropython_text import byte_lines, bytes_text, tuple_text
from tinybayes.deploy.programs.micropython_trees import tree_body
from tinybayes.deploy.programs.names import check_name
from tinybayes.deploy.programs.plan import NetPlan, Plan, TablePlan, Term, make_plan
from tinybayes.deploy.programs.tree_plan import TreePlan
from tinybayes.infer.integers import PRECISE, GapArithmetic
from tinybayes.model import BayesNet, Fixed, Grid, NeuralNet, TreeEnsemble
from tinybayes.model.encoding import LOWEST
from tinybayes.model.neural_net import Layer

FRACTION = 2**126  # the largest denominator that is still a 32-bit float

ADD = '''
def _add(sums, row):
    """Add a row of the table to the sums of all classes."""
{add}
'''

FUNCTIONS = '''
def scores(x):
    """Return the scores of all classes for a row of states; the largest wins."""
    sums = list(_START)
    for first, steps in _TERMS:
        for feature, stride in steps:
            first += stride * x[feature]
        _add(sums, first)
{shared}    return sums
'''

GAPS = '''
def _log_add(a, b):
    """Return log(exp(a) + exp(b)){how}."""
    if a < b:
        a, b = b, a
{log_add}

def _range(code, states):
    """Return the states that a feature may have."""
    return range(code, code + 1) if 0 <= code < states else range(states)


def _sum_out(x):
    """Return the scores of a row with missing values: features send the sums over their values to their parents."""
    sums, inbox = {start}, {{}}
    for first, feature, states, parent, above in _FOREST:
        received, values = inbox.get(feature), _range(x[feature], states)
        sent = inbox.setdefault(parent, [0] * ({classes} * above)) if parent >= 0 else sums
        for up in _range(x[parent], above) if parent >= 0 else (0,):
            for c in range({classes}):
                message = None
                for value in values:
                    k = {classes} * (first + states * up + value) + c
                    term = received[{classes} * value + c] if received else 0
                    term {entry}
                    message = term if message is None else _log_add(message, term)
                sent[{classes} * up + c] += message
    return sums


def scores(x):
    """Return the scores of all classes for a row of states, -1 where one is missing; the largest wins."""
    sums = list(_START)
    for first, feature, states, parent, _ in reversed(_FOREST):  # parents first, so that their codes are checked
        if not 0 <= x[feature] < states:
            return _sum_out(x)
        if parent >= 0:
            first += states * x[parent]
        _add(sums, first + x[feature])
    return {sums}
'''
TABLE_LOG = """    distance = {distance}
    i = distance >> 8
    if i >= 32:
        return a
    return a + _LOG[i] - ((_LOG[i] - _LOG[i + 1]) * (distance & 255) >> 8)
"""
FLOAT_LOG = """    return a + log(1 + exp(b - a)) if b > -float("inf") else a
"""

SHARED = """    shared = {start}
    for first, steps in _COMMON:
        for feature, stride in steps:
            first += stride * x[feature]
        shared {entry}
    for c in range(len(sums)):
        sums[c] += shared
"""

PREDICT = '''

def predict(x):
    """Return the number of the most probable class; the first one if several are equally probable."""
    values = scores(x)
    return values.index(max(values))
'''

FROM_RAW = '''
# For each feature: its cut points, if it has some (the code is the count of those that are not above the value); the
# logarithm of the step, if it is on a grid; the first step, or the value of code 0; and the number of codes.
_ENCODINGS = (
{encodings}
)


{bits}def _code(value, cuts, shift, first, count):
    """Return the code of a raw value."""
{missing}    if cuts is not None:
        value, code = {key}, 0
        while code < len(cuts) and value >= cuts[code]:
            code += 1
        return code
    code = {steps} - first
    if shift is not None:
        return min(max(code, 0), count - 1)
    return code if 0 <= code < count{exact} else {unknown}


def encode(values):
    """Return the codes of a row of raw values."""
    return [_code(value, *how) for value, how in zip(values, _ENCODINGS)]


def predict_raw(values):
    """Return the number of the most probable class of a row of raw values."""
    return predict(encode(values))
'''
BITS = '''def _bits(value):
    """Return the bits of a number, rounded to a 32-bit float."""
    try:
        return unpack("<I", pack("<f", value))[0]
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000


def _key(value):
    """Return an integer in the order of numbers: the bits of the magnitude, with the sign."""
    bits = _bits(value)
    return bits if bits < 0x80000000 else 0x80000000 - bits


def _steps(value, shift):
    """Return a number in steps of 2**shift, rounded down."""
    bits = _bits(value)
    power, m = bits >> 23 & 255, bits & 0x7FFFFF
    m = m | 0x800000 if power else m
    m = -m if bits >> 31 else m
    down = 150 + shift - max(power, 1)
    return m >> down if down >= 0 else m << -down


'''
EXACT = " and _steps(-value, 0) == -code - first"
FLOATS = {"key": "_key(value)", "steps": "_steps(value, shift or 0)", "exact": EXACT}
INTEGERS = {"key": "value", "steps": "(value >> (shift or 0))", "exact": ""}

NET_FUNCTIONS = '''
def _add(sums, layer, row, value):
    """Add a row of weights times a value to the sums of all units."""
    table, bits = layer[0], layer[1]
    k, held, count = row * layer[2], 0, 0
    for u in range(len(sums)):
        while count < bits:
            held |= table[k] << count
            count += 8
            k += 1
        sums[u] += (held & (1 << bits) - 1) * value
        held >>= bits
        count -= bits


def _weigh(layer, rows):
    """Return the sums of all units over pairs (row, value); a weight is twice its code less the largest code."""
    sums, total = [0] * len(layer[3]), 0
    for row, value in rows:
        if value:
            _add(sums, layer, row, value)
            total += value
    total *= (1 << layer[1]) - 1
    return [2 * s - total for s in sums]


def _activate(layer, sums):
    """Add the biases, then return sums as they are, signs, or numbers from 0 to 255."""
    sums = [s + b for s, b in zip(sums, layer[3])]
    if layer[4] == "none":
        return sums
    if layer[4] == "sign":
        return [1 if s >= 0 else -1 for s in sums]
    before, after = layer[6]
    half = 1 << after >> 1
    return [min(255, ((max(0, s) >> before) * m + half) >> after) for s, m in zip(sums, layer[5])]


{image}def scores(x):
    """Return the scores of all classes for a row of states; the largest wins."""
{inputs}
    for layer in _LAYERS:
{step}
    return values
'''

IMAGE = '''def _window(values, image, top, left):
    """Yield the values of 3 x 3 pixels with the rows of their weights; there are zeros around the image."""
    rows, columns, channels = image
    for r in range(3):
        for c in range(3):
            if 0 <= top + r < rows and 0 <= left + c < columns:
                first = ((top + r) * columns + left + c) * channels
                for i in range(channels):
                    yield (3 * r + c) * channels + i, values[first + i]


def _convolve(layer, values):
    """Return the largest sums of each 2 x 2 pixels, after the activation."""
    image, pooled = layer[7], []
    for row in range(0, image[0] - 1, 2):
        for column in range(0, image[1] - 1, 2):
            best = _weigh(layer, _window(values, image, row - 1, column - 1))
            for k in range(1, 4):
                sums = _weigh(layer, _window(values, image, row - 1 + k // 2, column - 1 + k % 2))
                best = [max(pair) for pair in zip(best, sums)]
            pooled += _activate(layer, best)
    return pooled


'''
DENSE = "        values = _activate(layer, _weigh(layer, enumerate(values)))"
EITHER = """        if layer[7]:
            values = _convolve(layer, values)
        else:
            values = _activate(layer, _weigh(layer, enumerate(values)))"""


def to_micropython(
    net: BayesNet | NeuralNet | TreeEnsemble,
    *,
    name: str = "model",
    raw: str | None = None,
    note: str = "",
    gaps: bool = True,
) -> dict[str, str]:
    """Write a classifier as a module for MicroPython, which CPython can run as well.

    The module of a network in one `Fixed` format or one `Codebook`, of a neural net or of trees, computes with integers
    only, the same as in `to_c`. Networks of floats are added up in the floats of the board. A module imports ``struct``
    to read floats, if it has any, and ``math`` to sum out missing values in floats.

    With `gaps` a code that is not a state, such as -1, is missing. Without, or where the features are no forest, rows
    must be complete.
    """
    check_name(name)
    plan = make_plan(net, raw, gaps=gaps)
    out = "".join(f"# {line}\n" for line in plan.facts(note))
    floats = isinstance(plan, TablePlan) and plan.values is None
    out += "from math import exp, log\n" if floats and plan.features.gaps else ""
    needed = ["pack", "unpack"] * (plan.features.raw == "float") + ["unpack_from"] * floats
    out += f"from struct import {', '.join(needed)}\n\n" if needed else "\n"
    out += _names("FEATURES", [v.name for v in plan.variables]) + _names("CLASSES", plan.target.states) + "\n"
    out += _functions(plan) + PREDICT
    if plan.features.value:
        out += from_raw(plan.features)
    return {f"{name}.py": out}


def _functions(plan: Plan) -> str:
    if isinstance(plan, TreePlan):
        return tree_body(plan)
    return _body(plan) if isinstance(plan, TablePlan) else _net_body(plan)


def _body(plan: TablePlan) -> str:
    """Write the constants (the first sums, where rows are, and the tables) and the function ``scores``."""
    terms, out, shared = plan.terms, "", ""
    if plan.values is not None and not isinstance(plan.form, Fixed):
        out += "# What a code adds to a score.\n" + tuple_text("_LEVEL", [str(v) for v in plan.values.tolist()])
    start = plan.worth(terms.constant).astype(np.float64).sum(axis=0)
    kind = np.float32 if plan.values is None else np.int64
    if plan.values is not None:
        out += f"FRACTION = {plan.fraction}  # a score is in units of 2**-FRACTION nats\n"
    out += "# What all rows begin with.\n" + tuple_text("_START", [_number(v) for v in start.astype(kind)])
    if plan.features.gaps:
        return out + _gaps(plan)
    out += "# The (first row, ((feature, stride), ...)) of each table.\n" + tuple_text("_TERMS", _terms(terms.terms))
    out += f"_TABLE = {_bytes(plan, terms.rows)}\n"
    if terms.has_common:
        out += "# The same of the tables without the class, which add the same to all scores.\n"
        out += tuple_text("_COMMON", _terms(terms.common)) + f"_ENTRIES = {_bytes(plan, terms.entries)}\n"
        entry = _entry(plan, "_ENTRIES", "first") if terms.common else "+= 0"
        shared = SHARED.format(start=_number(plan.worth(terms.common_constant).sum()), entry=entry)
    return out + "\n" + ADD.format(add=_add(plan)) + FUNCTIONS.format(shared=shared)


def _gaps(plan: TablePlan) -> str:
    """Write the forest of features, the tables, and the function ``scores`` that sums out missing values."""
    rule, shift = plan.arithmetic, plan.shift
    out = "# Each table: its first row, its feature and the number of states, the parent or -1 and its states.\n"
    out += tuple_text("_FOREST", [repr(tuple(branch)) for branch in branches(plan)])
    out += f"_TABLE = {_bytes(plan, plan.terms.rows)}\n"
    if rule is not None:
        out += "# log(1 + exp(-i / 4)).\n" + tuple_text("_LOG", [str(v) for v in rule.table.tolist()])
    functions = GAPS.format(
        how="" if rule is None else ", interpolated in a table",
        log_add=FLOAT_LOG if rule is None else TABLE_LOG.format(distance=_distance(rule)),
        start=f"[s << {shift} for s in _START]" if shift else "list(_START)",
        classes=plan.classes,
        entry=_entry(plan, "_TABLE", "k", shift),
        sums=f"[s << {shift} for s in sums]" if shift else "sums",
    )
    return out + "\n" + ADD.format(add=_add(plan)) + functions


def _distance(rule: GapArithmetic) -> str:
    """Write the distance of a and b in units of 2**-10 nats."""
    finer = rule.fraction - PRECISE
    return "a - b" if not finer else f"(a - b) {'>>' if finer > 0 else '<<'} {abs(finer)}"


def _add(plan: TablePlan) -> str:
    classes = plan.classes
    if plan.values is None:
        return (
            f'    values = unpack_from("<{classes}f", _TABLE, {4 * classes} * row)\n'
            f"    for c in range({classes}):\n        sums[c] += values[c]\n"
        )
    entry = _entry(plan, "_TABLE", "k")
    return f"    k = {classes} * row\n    for c in range({classes}):\n        sums[c] {entry}\n        k += 1\n"


def _entry(plan: TablePlan, table: str, k: str, shift: int = 0) -> str:
    """Write how entry k of a table changes a score; a code of a fixed point is shifted."""
    if plan.values is None:
        return f'+= unpack_from("<f", {table}, 4 * {k})[0]'
    size, width = plan.bits, _bytes_of(plan)
    if width:
        parts = (f"{table}[{width} * {k} + {i}] << {8 * i}" for i in range(1, width))
        code = " | ".join([f"{table}[{width} * {k}]" if width > 1 else f"{table}[{k}]", *parts])
    else:
        code = f"{table}[{size} * {k} >> 3]" if size > 1 else f"{table}[{k} >> 3]"
        if 8 % size:  # a code may begin in one byte and end in the next
            code = f"({code} | {table}[({size} * {k} >> 3) + 1] << 8)"
        within = f"({size} * {k} & 7)" if size > 1 else f"({k} & 7)"
        code = f"{code} >> {within} & {2**size - 1}"
    if isinstance(plan.form, Fixed):
        return f"-= ({code}) << {shift}" if shift else f"-= {code}"
    return f"+= _LEVEL[{code}]"


def _bytes(plan: TablePlan, codes: np.ndarray) -> str:
    """Write codes as bytes: packed to the bit up to 7 bits, in whole bytes above."""
    flat = codes.reshape(-1)
    if plan.values is None:
        data = flat.astype("<f4").tobytes()
    elif width := _bytes_of(plan):
        data = flat.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :width].tobytes()
    else:
        data = pack_bits(flat, plan.bits).tobytes()
        data += b"\0" if 8 % plan.bits else b""  # the last code is read with the byte after it
    return bytes_text(data)


def _bytes_of(plan: TablePlan) -> int:
    """Return the whole bytes of a code; 0 where several codes share a byte."""
    return -(-plan.bits // 8) if plan.bits >= 8 else 0


def _terms(terms: tuple[Term, ...]) -> list[str]:
    return [repr((term.first, term.steps)) for term in terms]


def _names(name: str, values: list[str] | tuple[object, ...]) -> str:
    return tuple_text(name, [ascii(str(value)) for value in values])


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


def from_raw(features: Features) -> str:
    """Write the functions ``encode`` and ``predict_raw``."""
    encodings = ""
    for i, (variable, cuts) in enumerate(zip(features.variables, features.cuts, strict=True)):
        grid = variable.encoding if isinstance(variable.encoding, Grid) else None
        keys = None if cuts is None else tuple(cuts.tolist())
        first = features.lowest(i) if grid is None else grid.first
        encodings += f"    {(keys, None if grid is None else grid.shift, first, variable.cardinality)!r},\n"
    numbers = features.raw == "float"
    nothing = f"value is None or value {'!= value' if numbers else f'== {LOWEST}'}"
    return FROM_RAW.format(
        encodings=encodings.rstrip(),
        bits=BITS if numbers else "",
        missing=f"    if {nothing}:\n        return -1\n" if features.gaps else "",
        unknown="-1" if features.gaps else "0",
        **(FLOATS if numbers else INTEGERS),
    )


def _net_body(plan: NetPlan) -> str:
    """Write the constants and the function ``scores``."""
    net = plan.net
    data, inputs = _inputs(plan)
    out = data + "# Each layer: weights, their bits, bytes of a row, biases, activation, multipliers, shifts, image.\n"
    out += "_LAYERS = (\n"
    for layer, shape in zip(net.layers, net.shapes, strict=True):
        out += f"    (\n{_layer(layer, shape)}    ),\n"
    images = any(layer.convolution for layer in net.layers)
    functions = NET_FUNCTIONS.format(image=IMAGE if images else "", inputs=inputs, step=EITHER if images else DENSE)
    return out + ")\n\n" + functions


def _inputs(plan: NetPlan) -> tuple[str, str]:
    """Return constants, and the line from states to values."""
    inputs = plan.net.inputs
    states, data, limit = [v.cardinality for v in plan.variables], "", ""
    if plan.features.gaps:  # a missing value is zero after centring
        same = len(set(states)) == 1
        limit = f" if 0 <= x[f] < {states[0] if same else '_STATES[f]'} else 0"
        data = "" if same else tuple_text("_STATES", [str(k) for k in states])
    in_order = inputs.feature.tolist() == list(range(len(plan.variables))) and (inputs.state < 0).all()
    if in_order and len(np.unique(inputs.multiplier)) == len(np.unique(inputs.center)) == 1:
        value = f"{inputs.multiplier[0]} * x[f] - {inputs.center[0]}"
        return data, f"    values = [{value}{limit} for f in range({len(inputs)})]"
    columns = zip(*(a.tolist() for a in (inputs.feature, inputs.state, inputs.multiplier, inputs.center)), strict=True)
    data += "# Each column: its feature, its state or -1, its multiplier, its centre.\n_COLUMNS = (\n"
    data += "".join(f"    {column},\n" for column in columns) + ")\n"
    return data, f"    values = [m * (x[f] if s < 0 else x[f] == s) - c{limit} for f, s, m, c in _COLUMNS]"


def _layer(layer: Layer, shape: tuple[int, ...]) -> str:
    codes = layer.codes.reshape(-1, layer.units)
    table = b"".join(pack_bits(row, layer.bits).tobytes() for row in codes)
    width = len(table) // len(codes)
    out = "        (\n" + "".join(f"            {line}\n" for line in byte_lines(table)) + "        ),\n"
    multiplier = None if layer.multiplier is None else tuple(layer.multiplier.tolist())
    rest = (layer.bits, width, tuple(layer.bias.tolist()), layer.activation, multiplier, (layer.before, layer.after))
    image = tuple(shape) if layer.convolution else None
    return out + "".join(f"        {part!r},\n" for part in (*rest, image))
