"""Small dense networks in little flash: one loop over units and inputs serves all layers.

All values are in one array: those that enter, then those of each hidden layer. Weights follow each other unit by unit,
without padding between units or layers. They are cut out of a word that has a one above its last code: when only this
one is left, the next word is read. Sums are taken modulo 2**32, of the numbers of the model as they are.

The form with lanes (`net`) reads a word for several units and skips zeros, but each of its layers is a function. So a
network with few weights and values is written this way, and every other one that way.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, groupby

import numpy as np

from tinybayes.deploy.programs.encoder import grid_numbers
from tinybayes.deploy.programs.plan import NetPlan
from tinybayes.deploy.programs.program import Array, Dialect, Function, Sums, block, indent, loop, narrow, records
from tinybayes.model import Grid, NeuralNet
from tinybayes.model.neural_net import PEAK, Layer

BYTES = 768  # of weights, at most: more than that leaves no room in 1 kB
WEIGHTS = 2048  # at most: each takes about fifteen instructions, several times those of lanes
VALUES = 128  # inputs and hidden units, at most: each takes four bytes of the stack
SIGNED = ("scale", "center", "shift", "first")  # numbers that may be negative
DOC = "All layers, a unit after another; the largest sum wins."


@dataclass(frozen=True, eq=False)
class Entry:
    """How a row becomes the first values: lines that append them to ``out``, and the tables that these read."""

    lines: list[str]
    arrays: list[Array]
    order: np.ndarray  # the column of each value
    bias: np.ndarray  # of the first layer, with what was left out of the values
    shared: tuple[Array, ...] = ()  # a table that the encoder reads, too


def compact_sums(plan: NetPlan, dialect: Dialect) -> Sums | None:
    """Make the function that leads from states to scores; None for a network that takes the other form."""
    if not _alike(plan.net) or not (plan.form or _small(plan.net)) or (entry := _entry(plan)) is None:
        return None
    layers, inputs = plan.net.layers, len(plan.net.inputs)
    hidden, bits = layers[:-1], layers[0].bits
    codes = [layers[0].codes[entry.order], *(layer.codes for layer in layers[1:])]
    weight = Array("weights", pack(np.concatenate([each.T.reshape(-1) for each in codes]), bits))
    bias = Array("bias", narrow(np.concatenate([entry.bias, *(layer.bias for layer in layers[1:])]), signed=True))
    ends = list(accumulate((layer.units for layer in hidden), initial=inputs))
    activation, multiplier = _activation(hidden, ends)
    made = ["*sum++ = (int32_t)s;"]
    if hidden:
        made = [
            f"if (out != v + {ends[-1]}) {{",
            *indent([*activation, *_switch(ends)]),
            "} else {",
            *indent(made),
            "}",
        ]
    begin, end = ("in", "end") if hidden else ("v", f"v + {inputs}")
    sums = [
        "uint32_t s = (uint32_t)*b++;",
        f"const uint32_t *p = {begin};",
        "do {",
        *indent(_product(bits)),
        f"}} while (p != {end});",
        *made,
    ]
    pointers = [("words", weight), ("b", bias), *(("m", array) for array in multiplier)]
    body = (
        f"uint32_t v[{ends[-1]}];",
        "uint32_t *out = v;",
        *(["const uint32_t *in = v, *end;"] if hidden else []),
        *(f"{dialect.pointer(array.type)}{name} = {array.name};" for name, array in pointers),
        *(["uint32_t w = 1;"] if bits < 7 else []),
        "unsigned i;",
        *entry.lines,
        *(["end = out;"] if hidden else []),
        "do {",
        *indent(sums),
        f"}} while (b != bias + {len(bias.values)});",
    )
    parameters = (f"const {plan.features.state} *x", "int32_t *sum")
    arrays = (*entry.arrays, weight, bias, *multiplier)
    return Sums((Function("add_up", "void", parameters, body, DOC, arrays),), "int32_t", tables=entry.shared)


def _alike(net: NeuralNet) -> bool:
    """Tell whether all layers are dense, and differ in nothing but their sizes and shifts."""
    hidden = net.layers[:-1]
    kinds = (
        {layer.bits for layer in net.layers},
        {layer.activation for layer in hidden},
        {layer.after > 0 for layer in hidden},
    )
    return not net.layers[0].convolution and all(len(kind) <= 1 for kind in kinds)


def _small(net: NeuralNet) -> bool:
    """Tell whether there are few weights and values."""
    weights = sum(layer.codes.size for layer in net.layers)
    values = len(net.inputs) + sum(layer.units for layer in net.layers[:-1])
    size = pack(np.zeros(min(weights, WEIGHTS), np.uint8), net.layers[0].bits).nbytes
    return values <= VALUES and weights <= WEIGHTS and size <= BYTES


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Pack codes: bytes of 7 or 8 bits, bytes that a power of two fills, else words with a one above the last code."""
    if bits >= 7:
        return codes.astype(np.uint8)
    each = 8 // bits if 8 % bits == 0 else 31 // bits
    rows = np.zeros((-(-len(codes) // each), each), np.uint32)
    rows.reshape(-1)[: len(codes)] = codes
    words = (rows << (bits * np.arange(each, dtype=np.uint32))).sum(axis=1, dtype=np.uint32)
    return words.astype(np.uint8) if 8 % bits == 0 else words | np.uint32(1 << bits * each)


def _product(bits: int) -> list[str]:
    """Write lines that add the next weight times the next value."""
    top = 2**bits - 1
    if bits >= 7:
        return ["const uint32_t w = *words++;", f"s += (2U * w - {top}U) * *p++;"]
    mark = " + 256U" if 8 % bits == 0 else ""  # the one above the last code
    return [
        *block("if (w == 1U)", [f"w = *words++{mark};"]),
        f"s += (2U * (w & {top}U) - {top}U) * *p++;",
        f"w >>= {bits};",
    ]


def _activation(hidden: tuple[Layer, ...], ends: list[int]) -> tuple[list[str], list[Array]]:
    """Return lines that append the value of a hidden unit, and the table of multipliers, unless all are equal."""
    if not hidden or hidden[0].activation == "sign":
        return ["*out++ = 1U - (s >> 31 << 1);"], []
    multipliers = np.concatenate([layer.multiplier for layer in hidden])
    arrays = [Array("multiplier", narrow(multipliers))] if len(np.unique(multipliers)) > 1 else []
    before, down = (_of_layer(shifts, ends) for shifts in ([h.before for h in hidden], [h.after - 1 for h in hidden]))
    scaled = f"{f'(s >> {before})' if before != '0' else 's'} * {'*m' if arrays else f'{multipliers[0]}U'}"
    if hidden[0].after:  # rounded, without a wide constant
        scaled = f"(({scaled}{f' >> {down}' if down != '0' else ''}) + 1U) >> 1"
    lines = [f"s = s >> 31 ? 0 : {scaled};", *(["++m;"] if arrays else [])]
    return [*lines, f"*out++ = s < {PEAK}U ? s : {PEAK}U;"], arrays


def _of_layer(numbers: list[int], ends: list[int]) -> str:
    """Write a number of the layer of a unit, whose value comes next in ``out``."""
    text = str(numbers[-1])
    for number, end in zip(numbers[-2::-1], ends[-2::-1], strict=False):
        text = text if str(number) == text else f"(out < v + {end} ? {number} : {text})"
    return text


def _switch(ends: list[int]) -> list[str]:
    """Write lines that begin the next layer after the last unit of one."""
    widths = np.diff(ends)
    after = " || ".join(f"out == v + {end}" for end in ends[1:])
    if len(widths) > 1 and len(set(widths.tolist())) == 1:
        after = f"out == end + {widths[0]}"
    return block(f"if ({after})", ["in = end;", "end = out;"])


def _entry(plan: NetPlan) -> Entry | None:
    """Let numbers enter one by one, and all states of other features as indicators; None for other columns."""
    net = plan.net
    inputs, first = net.inputs, net.layers[0]
    groups = [(f, list(group)) for f, group in groupby(range(len(inputs)), key=lambda i: int(inputs.feature[i]))]
    states = np.array([len(group) if inputs.state[group[0]] >= 0 else 0 for _, group in groups])
    for (feature, group), count in zip(groups, states, strict=True):
        wanted = list(range(net.variables[feature].cardinality)) if count else [-1]
        if inputs.state[group].tolist() != wanted:
            return None
    marked = inputs.state >= 0
    if len(np.unique(inputs.multiplier[marked])) > 1 or inputs.center[marked].any():
        return None
    rows = np.array([group[0] for _, group in groups])
    folded = first.bias - inputs.center.astype(np.int64) @ first.weights
    moved = not plan.features.gaps and _bytes(folded) <= _bytes(first.bias) + len(rows)
    text, arrays, shared = _numbers(plan, rows, states == 0, centred=not moved)
    lines = _value(text) if not states.all() else []
    if marked.any():
        factor = int(inputs.multiplier[marked][0]) % 2**32
        each = ["do {", f"    *out++ = z == --n ? {factor}U : 0U;", "} while (n);"]
        if not states.all():
            each = ["if (n) {", *indent(each), "} else {", *indent(lines), "}"]
        lines = [f"uint32_t n = {text['states']};", *each]
    features = [feature for feature, _ in groups]
    at = "i"
    if features != list(range(len(features))):
        at, arrays = "feature[i]", [Array("feature", narrow(features, limit=len(net.variables))), *arrays]
    order = np.concatenate([group[::-1] for _, group in groups])  # indicators from the last state on
    lines = loop("i", len(groups), [f"const uint32_t z = x[{at}];", *lines])
    return Entry(lines, arrays, order, folded if moved else first.bias, shared)


def _numbers(
    plan: NetPlan, rows: np.ndarray, numeric: np.ndarray, *, centred: bool
) -> tuple[dict[str, str], list[Array], tuple[Array, ...]]:
    """Return the numbers of features, by names, the tables that they read, and those that the encoder reads as well.

    The code of the last state is in the table of the encoder, if all features are on grids.
    """
    net, inputs, features = plan.net, plan.net.inputs, plan.features
    cards = np.array([net.variables[f].cardinality for f in inputs.feature[rows]])
    columns = {"scale": inputs.multiplier[rows], "center": inputs.center[rows], "top": cards - 1}
    wanted = ["scale", *(["center"] if centred else []), *(["top"] if features.gaps else [])] if numeric.any() else []
    # What features without numbers have does not matter.
    numbers = {name: np.where(numeric, columns[name], columns[name][numeric][:1]).tolist() for name in wanted}
    if not numeric.all():
        numbers["states"] = np.where(numeric, 0, cards).tolist()
    grids = plan.encodes and features.of_kind(Grid) == list(range(len(net.variables))) == inputs.feature[rows].tolist()
    if grids and len(set(numbers.get("top", []))) > 1:
        text, tables = records("grid", "i", grid_numbers(features) | numbers, SIGNED)
        if len(tables) == 1:
            return text, [], tuple(tables)
    if "top" in numbers:  # not the last codes themselves: of two equal tables, avr-gcc takes one for uninitialised
        numbers["known"] = [top + 1 for top in numbers.pop("top")]
    text, tables = records("column", "i", numbers, SIGNED)
    return text, tables, ()


def _value(text: Mapping[str, str]) -> list[str]:
    """Append the value of the number ``z``; a missing one is zero, which is the centre."""
    named = {name: name if "[" in (number := text.get(name, "0")) else f"(uint32_t){number}" for name in SIGNED[:2]}
    lines = [f"const uint32_t {name} = (uint32_t){text[name]};" for name, word in named.items() if word == name]
    value = "z" if text["scale"] == "1" else f"z * {named['scale']}"
    if text.get("center", "0") != "0":
        value = f"{value} - {named['center']}"
    if "top" in text or "known" in text:
        known = f"z <= {text['top']}" if "top" in text else f"z < {text['known']}"
        value = f"{known} ? {value} : 0U"
    return [*lines, f"*out++ = {value};"]


def _bytes(values: np.ndarray) -> int:
    return narrow(values, signed=True).nbytes
