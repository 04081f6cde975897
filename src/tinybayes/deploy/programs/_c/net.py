"""C code of neural networks: one function for each layer, and two for each way in which words of weights are seen."""

from dataclasses import dataclass
from math import prod

import numpy as np

from tinybayes.deploy.programs._c import text
from tinybayes.deploy.programs._c.header import state_type
from tinybayes.deploy.programs._c.net_inputs import Entry, first_entry, image_entry, signed, terms, window
from tinybayes.deploy.programs._c.net_kernels import Bank, Kernel, net_banks
from tinybayes.deploy.programs._net_plan import NetPlan, Stage
from tinybayes.model.neural_net import PEAK

APART = """/* A loop that is not inlined into others has all registers for itself. */
#ifdef __GNUC__
#define {apart} __attribute__((noinline))
#else
#define {apart}
#endif

"""
CLEAR = """/* Volatile, so that no compiler puts a call of memset here, which is longer than the loop. */
static void clear(uint32_t *a, unsigned count)
{
    volatile uint32_t *p = a;
    do {
        *p++ = 0;
    } while (--count);
}

"""
SURROUND = """static void surround(uint8_t *image, unsigned count, uint8_t value)
{
    volatile uint8_t *p = image;
    do {
        *p++ = value;
    } while (--count);
}

"""


@dataclass(frozen=True)
class Function:
    """A function of C: its constants, what it is, its head and its body."""

    data: str
    said: str
    head: str
    body: str


@dataclass(frozen=True)
class NetCode:
    """The functions that words are multiplied in, those of the layers, and the body of the one that calls them all."""

    kernels: str
    layers: tuple[Function, ...]
    body: str


class _Kernels:
    """The functions that are needed, each once."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def name(self, what: str, written: str) -> str:
        """Return the name of a function whose text, all but its name, is known or new."""
        for name, known in self.texts.items():
            if known.replace(name, "NAME") == written:
                return name
        name = f"{what}{sum(known.startswith(what) for known in self.texts)}"
        self.texts[name] = written.replace("NAME", name)
        return name


def net_code(found: NetPlan, apart: str) -> NetCode:
    """Write everything that leads from states ``x`` to ``score``; `apart` keeps functions from being inlined."""
    kernels = _Kernels()
    layers = tuple(_layer(found, i, kernels, apart) for i in range(len(found.stages)))
    begin = CLEAR + (SURROUND if any("surround(" in layer.body for layer in layers) else "")
    return NetCode(begin + "".join(kernels.texts.values()), layers, _calls(found))


def _calls(found: NetPlan) -> str:
    """Let layers write to two buffers in turn."""
    sizes = [_size(stage) for stage in found.stages[1:]]
    names = [["even", "odd"][i % 2] for i in range(len(sizes))]
    room = {name: max(s for s, n in zip(sizes, names, strict=True) if n == name) for name in dict.fromkeys(names)}
    out = "".join(f"    uint8_t {name}[{size}];\n" for name, size in room.items())
    for i, (given, made) in enumerate(zip(["x", *names], [*names, "score"], strict=True)):
        out += f"    layer{i}({given}, {made});\n"
    return out


def _size(stage: Stage) -> int:
    """Return how many values enter a layer, with the border that a convolution needs around them."""
    if not stage.layer.convolution:
        return prod(stage.shape)
    rows, columns, channels = stage.shape
    return (rows + 2) * (columns + 2) * channels


def _layer(found: NetPlan, number: int, kernels: _Kernels, apart: str) -> Function:
    stage = found.stages[number]
    layer, last = stage.layer, number == len(found.stages) - 1
    entry = _entry(found, number)
    banks = _banks(found, number)
    data, begin, clear, adds, takes, chunk = entry.data, [], [], [], [], 0
    for which, bank in zip("ab", banks, strict=False):
        kernel = Kernel(bank.shape, layer.bits, not stage.flags)
        weights = f"weights{number}" + ("" if len(banks) == 1 else which)
        data += text.array(weights, kernel.word, bank.words(stage.codes).reshape(-1))
        add = kernels.name("add", kernel.add("NAME", apart))
        take = kernels.name("take", kernel.take("NAME", more=bank.shape.chunk > 0))
        start = weights if entry.row == "0" else f"{weights} + {entry.row}{_times(bank.planes)}"
        adds.append(f"{add}({start}, {bank.planes}U, {'' if stage.flags else 'x, '}{which});")
        takes.append(f"{take}({which}, {bank.planes}U, sum{f' + {bank.first}' if bank.first else ''});")
        begin.append(f"uint32_t {which}[{bank.planes * bank.shape.each}];")
        clear.append(f"clear({which}, {bank.planes * bank.shape.each}U);")
        chunk = min(filter(None, (chunk, bank.shape.chunk)), default=0)
    early = [take for take, bank in zip(takes, banks, strict=True) if bank.shape.chunk]
    size = sum(bank.planes * bank.shape.room for bank in banks)
    begin.append(f"uint32_t sum[{size}];")
    sums = [*([f"clear(sum, {size}U);"] if chunk else []), *_loop(entry, adds, early, chunk), *takes]
    more, body = (_image if layer.convolution else _dense)(found, number, entry, clear, sums)
    kind = state_type(found) if number == 0 else "uint8_t"
    head = f"void layer{number}(const {kind} *in, {'int32_t' if last else 'uint8_t'} *out)"
    return Function(data + more, _said(stage), head, _lines(begin, 4) + body)


def _times(planes: int) -> str:
    return f" * {planes}U" if planes > 1 else ""


def _loop(entry: Entry, adds: list[str], early: list[str], chunk: int) -> list[str]:
    """Write the loop over rows; after so many of them the lanes are emptied."""
    lines = adds + (["total += x;"] if entry.total is None else [])
    if chunk:
        lines += [f"if (++n == {chunk}U) {{", *(f"    {take}" for take in early), "    n = 0;", "}"]
    if entry.total is None:
        lines = [*entry.find, "if (x) {", *(f"    {line}" for line in lines), "}"]
    for head in reversed(entry.loop):
        lines = [head, *(f"    {line}" for line in lines), "}"]
    return (["n = 0;"] if chunk else []) + lines


def _banks(found: NetPlan, number: int) -> list[Bank]:
    """Cut the units of a layer; bounds are those of the terms, of which each adds one row at most."""
    stage = found.stages[number]
    largest = stage.codes.max(axis=1).astype(np.int64) * stage.peaks
    if number == 0 and not stage.layer.convolution:
        largest = np.array([largest[term.rows].max() for term in terms(found.net)])
    return net_banks(stage.layer.units, stage.layer.bits, largest, times=not stage.flags)


def _entry(found: NetPlan, number: int) -> Entry:
    stage = found.stages[number]
    if stage.layer.convolution:
        return window(stage) if number else image_entry(found, stage)
    if number == 0:
        return first_entry(found, stage)
    return Entry("", "", (f"for (i = 0; i < {_size(stage)}U; ++i) {{",), ("const uint32_t x = in[i];",), "i")


def _said(stage: Stage) -> str:
    layer, inputs = stage.layer, " x ".join(map(str, stage.shape))
    kind = "Convolution of 3 x 3 and maximum over 2 x 2" if layer.convolution else "Dense layer"
    return f"{kind}: {inputs} to {layer.units} units, {layer.bits} bits a weight."


def _declared(lines: str) -> str:
    """Declare the counters that are used."""
    names = [name for name in ("i", "j", "k", "row", "column") if f"for ({name} =" in lines]
    names += ["n"] if "++n ==" in lines else []
    return f"    unsigned {', '.join([*names, 'u'])};\n"


def _dense(found: NetPlan, number: int, entry: Entry, clear: list[str], sums: list[str]) -> tuple[str, str]:
    stage = found.stages[number]
    units = stage.layer.units
    bias = stage.bias - stage.factor * stage.top * (entry.total or 0)
    value = f"{2 * stage.factor % 2**32}U * sum[u]"
    value += f" - {stage.factor * stage.top % 2**32}U * total" if entry.total is None else ""
    data, lines = _activation(found, number, value, bias, "out[u]")
    body = "    uint32_t total = 0;\n" if entry.total is None else ""
    loop = [f"for (u = 0; u < {units}U; ++u) {{", *(f"    {line}" for line in lines), "}"]
    code = entry.before + _lines([*clear, *sums, *loop], 4)
    return data, body + _declared(code) + code


def _image(found: NetPlan, number: int, entry: Entry, clear: list[str], sums: list[str]) -> tuple[str, str]:
    """Write a convolution: of each 2 x 2 places the largest sums are kept, before the bias."""
    stage, after = found.stages[number], found.stages[number + 1]
    units, (rows, columns, channels) = stage.layer.units, stage.shape
    best = "(uint32_t)best[u]" if stage.factor == 1 else f"{stage.factor}U * (uint32_t)best[u]"
    data, lines = _activation(found, number, best, stage.bias, "*to++")
    value, source = (text.unsigned(int(stage.peaks.max())), "z") if number == 0 else ("uint8_t", "in")
    place = f"{source} + ((2U * row + k / 2U) * {columns + 2}U + 2U * column + k % 2U) * {channels}U"
    code = [
        f"for (u = 0; u < {units}U; ++u) {{",
        "    best[u] = INT32_MIN;",
        "}",
        "for (k = 0; k < 4U; ++k) {",
        f"    const {value} *at = {place};",
        "    uint32_t total = 0;",
        *(f"    {line}" for line in sums),
        f"    for (u = 0; u < {units}U; ++u) {{",
        f"        const int32_t s = (int32_t)(2U * sum[u] - {stage.top}U * total);",
        "        if (s > best[u]) {",
        "            best[u] = s;",
        "        }",
        "    }",
        "}",
        f"for (u = 0; u < {units}U; ++u) {{",
        *(f"    {line}" for line in lines),
        "}",
    ]
    fill: list[str] = []
    if after.layer.convolution:
        fill = [f"surround(out, {_size(after)}U, {after.pad});"]
        code.insert(0, f"uint8_t *to = out + ((row + 1U) * {columns // 2 + 2}U + column + 1U) * {units}U;")
    code = [f"for (column = 0; column < {columns // 2}U; ++column) {{", *(f"    {line}" for line in code), "}"]
    code = [f"for (row = 0; row < {rows // 2}U; ++row) {{", *(f"    {line}" for line in code), "}"]
    body = f"    int32_t best[{units}];\n" + ("" if fill else "    uint8_t *to = out;\n")
    written = entry.before + _lines([*clear, *fill, *code], 4)
    return data, body + _declared(written) + written


def _activation(found: NetPlan, number: int, value: str, bias: np.ndarray, place: str) -> tuple[str, list[str]]:
    """Return constants, and lines that turn a sum into what leaves the layer."""
    layer, data = found.stages[number].layer, ""
    wrapped = (bias + 2**31) % 2**32 - 2**31
    if wrapped.any():
        data += text.array(f"bias{number}", signed(wrapped), wrapped)
        value += f" + (uint32_t)bias{number}[u]"
    if layer.activation == "none":
        return data, [f"{place} = (int32_t)({value});"]
    if layer.activation == "sign":
        high = 2 if found.stages[number + 1].layer.convolution else 1
        return data, [f"{place} = ({value}) >> 31 ? 0 : {high};"]
    assert layer.multiplier is not None
    by = f"{int(layer.multiplier[0])}U"
    if len(np.unique(layer.multiplier)) > 1:
        by = f"multiplier{number}[u]"
        data += text.array(f"multiplier{number}", text.unsigned(int(layer.multiplier.max())), layer.multiplier)
    scaled = f"{f'(s >> {layer.before})' if layer.before else 's'} * {by}"
    if layer.after:
        scaled = f"({scaled} + {1 << layer.after - 1}U) >> {layer.after}"
    return data, [
        f"uint32_t s = {value};",
        f"s = s >> 31 ? 0 : {scaled};",
        f"{place} = (uint8_t)(s < {PEAK}U ? s : {PEAK}U);",
    ]


def _lines(lines: list[str], pad: int) -> str:
    return "".join(f"{' ' * pad}{line}\n" for line in lines)
