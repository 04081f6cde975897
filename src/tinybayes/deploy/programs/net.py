"""Functions of a neural network: one for each layer, and two for each way in which words of weights are seen.

A word holds the codes of several units, as `packing` describes. One code is cut out of every lane and multiplied by the
value, or added where values are zero or one: one multiplication serves all lanes. Nothing is cut out of a single lane:
sums are taken modulo 2**32, and the bits above a code are subtracted at the end. The first sum takes whole words in
either case. Sums are in memory and everything else is in registers, of which a Cortex-M0 has eight; a value of zero
skips its whole row.
"""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tinybayes.deploy.programs.net_compact import compact_sums
from tinybayes.deploy.programs.packing import Bank, Shape, net_banks
from tinybayes.deploy.programs.plan import NetPlan, Stage
from tinybayes.deploy.programs.program import Array, Dialect, Function, Sums, block, indent, loop, narrow, unsigned
from tinybayes.errors import error
from tinybayes.model import NeuralNet
from tinybayes.model.neural_net import PEAK


def _fill(name: str, kind: str, array: str, more: tuple[str, ...], value: str, doc: str = "") -> Function:
    lines = (f"volatile {kind} *p = {array};", "do {", f"    *p++ = {value};", "} while (--count);")
    return Function(name, "void", (f"{kind} *{array}", "unsigned count", *more), lines, doc)


VOLATILE = "Volatile, so that no compiler calls memset here, which takes more code than the loop."
CLEAR = _fill("clear", "uint32_t", "a", (), "0", VOLATILE)
SURROUND = _fill("surround", "uint8_t", "image", ("uint8_t value",), "value")


@dataclass(frozen=True)
class Entry:
    """How values enter a layer: a loop that finds a row and a value ``x`` for it."""

    loop: tuple[str, ...]  # heads of the loops, from the outer to the inner one; each has one counter
    lines: tuple[str, ...]  # lines that set ``x``, unless it is always one, and what `row` needs
    row: str  # the number of the row, as an expression
    arrays: tuple[Array, ...] = ()
    before: tuple[str, ...] = ()  # lines that come before the loop
    counters: tuple[str, ...] = ("i",)  # the counters of all these lines
    total: int | None = None  # the sum of all values, where it is known beforehand; then every row is added as it is


@dataclass(frozen=True)
class Term:
    """A column with numbers, or the columns of consecutive states of a feature; rows begin with `first`."""

    feature: int
    first: int
    low: int = 0
    states: int = 0

    @property
    def rows(self) -> slice:
        """The rows that may be added, one at a time."""
        return slice(self.first, self.first + max(1, self.states))


@dataclass(frozen=True)
class Kernel:
    """Makes functions that add a row to sums in lanes, and take the sums out of the lanes."""

    shape: Shape
    bits: int  # of a code
    times: bool  # whether rows are multiplied by a value

    def add(self, dialect: Dialect) -> Function:
        """Make the function that adds a row; it is not inlined, since loops around it would take its registers."""
        shape = self.shape
        mask = sum((2**self.bits - 1) << lane * shape.lane for lane in range(shape.lanes))
        lines = ["const uint32_t w = *words++;"]
        for j in reversed(range(shape.each)):
            code = f"(w >> {j * self.bits})" if j and self.times else f"w >> {j * self.bits}" if j else "w"
            if j and shape.lanes > 1:
                code = f"(w >> {j * self.bits}) & 0x{mask:X}U"
                code = f"({code})" if self.times else code
            lines.append(f"a[{j}] += {code}{' * x' if self.times else ''};")
        lines.append(f"a += {shape.each};")
        words = dialect.pointer(f"uint{shape.width}_t")
        parameters = (f"{words}words", "unsigned count", *(("uint32_t x",) if self.times else ()), "uint32_t *a")
        body = (f"{words}end = words + count;", "do {", *indent(lines), "} while (words < end);")
        return Function("add", "void", parameters, body, noinline=True)

    def take(self, *, more: bool) -> Function:
        """Make the function that empties the lanes: into sums, or with `more`, on top of them."""
        shape, each, how = self.shape, self.shape.each, "+=" if more else "="
        before: list[str] = []
        lines: list[str] = []
        if each > 1 and shape.lanes > 1:
            before = loop("j", each, [f"*a -= a[j] << {self.bits}U * j;"], start=1)
        elif each > 1:
            lines = block(f"if (j < {each - 1}U)", [f"*a -= a[1] << {self.bits};"])
        for lane in range(shape.lanes):
            value, last = f"*a >> {lane * shape.lane}" if lane else "*a", lane == shape.lanes - 1
            if not last:
                value = f"{f'({value})' if lane else value} & 0x{(1 << shape.lane) - 1:X}U"
            lines.append(f"sum[{lane * each}] {how} {value};")
        zeroed = "*(volatile uint32_t *)a++" if each == 1 else "*a++"  # a loop of only this would become memset
        lines = [*before, *loop("j", each, [*lines, f"{zeroed} = 0;", "++sum;"])]
        lines += [f"sum += {shape.room - each};"] if shape.lanes > 1 else []
        body = ("unsigned j;", "do {", *indent(lines), "} while (--count);")
        return Function("take", "void", ("uint32_t *a", "unsigned count", "uint32_t *sum"), body)


class _Kernels:
    """The functions that layers share; equal ones are kept once."""

    def __init__(self) -> None:
        self.functions: list[Function] = []

    def name(self, function: Function) -> str:
        """Return the name of a function, with a number after it."""
        same = [known for known in self.functions if known.name.startswith(function.name)]
        for known in same:
            if replace(known, name=function.name) == function:
                return known.name
        self.functions.append(replace(function, name=f"{function.name}{len(same)}"))
        return self.functions[-1].name


def net_sums(plan: NetPlan, dialect: Dialect) -> Sums:
    """Make the functions that lead from states to scores; those of a small dense network are in the compact form."""
    compact = compact_sums(plan, dialect) if plan.form != "lanes" else None
    if compact is None and plan.form == "compact":
        remedy = "use the form 'lanes', or leave it out"
        raise error("dense layers that are alike, of whole features", "another net", where="form", remedy=remedy)
    return compact or lane_sums(plan, dialect)


def lane_sums(plan: NetPlan, dialect: Dialect) -> Sums:
    """Make a function for each layer, and those that layers share."""
    kernels = _Kernels()
    layers = [_Layer(plan, i, dialect).function(kernels) for i in range(len(plan.stages))]
    border = [SURROUND] if any(line.lstrip().startswith("surround(") for f in layers for line in f.body) else []
    parameters = (f"const {plan.features.state} *x", "int32_t *sum")
    add_up = Function("add_up", "void", parameters, tuple(_calls(plan)), "All layers; the largest sum wins.")
    return Sums((CLEAR, *border, *kernels.functions, *layers, add_up), "int32_t")


def _calls(plan: NetPlan) -> list[str]:
    """Let layers write to two buffers in turn."""
    sizes = [_size(stage) for stage in plan.stages[1:]]
    names = [["even", "odd"][i % 2] for i in range(len(sizes))]
    room = {name: max(s for s, n in zip(sizes, names, strict=True) if n == name) for name in dict.fromkeys(names)}
    calls = enumerate(zip(["x", *names], [*names, "sum"], strict=True))
    return [f"uint8_t {name}[{size}];" for name, size in room.items()] + [
        f"layer{i}({given}, {made});" for i, (given, made) in calls
    ]


def _size(stage: Stage) -> int:
    """Return how many values enter a layer, with the border that a convolution needs around them."""
    if not stage.layer.convolution:
        return prod(stage.shape)
    rows, columns, channels = stage.shape
    return (rows + 2) * (columns + 2) * channels


def _pixel(stage: Stage) -> str:
    """Return the C type of a pixel of the first image."""
    return unsigned(int(stage.peaks.max()))


class _Layer:
    """One layer, and the function that is made of it."""

    def __init__(self, plan: NetPlan, number: int, dialect: Dialect) -> None:
        self.plan, self.number, self.dialect = plan, number, dialect
        self.stage, self.layer = plan.stages[number], plan.stages[number].layer
        self.last = number == len(plan.stages) - 1
        self.entry = self._entry()
        self.arrays = list(self.entry.arrays)

    def function(self, kernels: _Kernels) -> Function:
        """Make the function; `kernels` takes those that it calls."""
        banks = self._banks()
        declare, clear, sums, chunked = self._sums(banks, kernels)
        body = (self._image if self.layer.convolution else self._dense)(clear, sums, chunked)
        given = self.plan.features.state if self.number == 0 else "uint8_t"
        parameters = (f"const {given} *in", f"{'int32_t' if self.last else 'uint8_t'} *out")
        return Function(
            f"layer{self.number}", "void", parameters, (*declare, *body), self._described(), tuple(self.arrays)
        )

    def _sums(self, banks: list[Bank], kernels: _Kernels) -> tuple[list[str], list[str], list[str], bool]:
        """Return declarations, lines that clear the lanes, lines that set ``sum``, and whether these count rows."""
        stage, entry = self.stage, self.entry
        declare, clear, adds, takes, early, chunk = [], [], [], [], [], 0
        for lanes, bank in zip("ab", banks, strict=False):
            kernel = Kernel(bank.shape, self.layer.bits, not stage.flags)
            weights = f"weights{self.number}" + ("" if len(banks) == 1 else lanes)
            self.arrays.append(Array(weights, bank.words(stage.codes).reshape(-1)))
            add, take = kernels.name(kernel.add(self.dialect)), kernels.name(kernel.take(more=bank.shape.chunk > 0))
            times = f" * {bank.planes}U" if bank.planes > 1 else ""
            adds.append(
                f"{add}({weights} + {entry.row}{times}, {bank.planes}U, {'' if stage.flags else 'x, '}{lanes});"
            )
            takes.append(f"{take}({lanes}, {bank.planes}U, sum{f' + {bank.first}' if bank.first else ''});")
            early += takes[-1:] if bank.shape.chunk else []
            declare.append(f"uint32_t {lanes}[{bank.planes * bank.shape.each}];")
            clear.append(f"clear({lanes}, {bank.planes * bank.shape.each}U);")
            chunk = min(filter(None, (chunk, bank.shape.chunk)), default=0)
        size = sum(bank.planes * bank.shape.room for bank in banks)
        declare.append(f"uint32_t sum[{size}];")
        first = [f"clear(sum, {size}U);"] if chunk else []
        return declare, clear, [*first, *self._loop(adds, early, chunk), *takes], chunk > 0

    def _loop(self, adds: list[str], early: list[str], chunk: int) -> list[str]:
        """Write the loop over rows; after every `chunk` of them the lanes are emptied."""
        unknown = self.entry.total is None
        lines = adds + (["total += x;"] if unknown else [])
        if chunk:
            lines += block(f"if (++n == {chunk}U)", [*early, "n = 0;"])
        if unknown:
            lines = [*self.entry.lines, *block("if (x)", lines)]
        for head in reversed(self.entry.loop):
            lines = block(head, lines)
        return (["n = 0;"] if chunk else []) + lines

    def _banks(self) -> list[Bank]:
        """Cut the units of a layer; the bounds are those of the terms, since a term adds at most one row."""
        largest = self.stage.codes.max(axis=1).astype(np.int64) * self.stage.peaks
        if self.number == 0 and not self.layer.convolution:
            largest = np.array([largest[term.rows].max() for term in terms(self.plan.net, self.stage)])
        return net_banks(self.layer.units, self.layer.bits, largest, times=not self.stage.flags)

    def _entry(self) -> Entry:
        if self.layer.convolution:
            return window(self.stage) if self.number else image_entry(self.plan.net, self.stage)
        if self.number == 0:
            return first_entry(self.plan.net, self.stage)
        return Entry((f"for (i = 0; i < {_size(self.stage)}U; ++i)",), ("const uint32_t x = in[i];",), "i")

    def _described(self) -> str:
        layer, inputs = self.layer, " x ".join(map(str, self.stage.shape))
        kind = "Convolution of 3 x 3 and maximum over 2 x 2" if layer.convolution else "Dense layer"
        return f"{kind}: {inputs} to {layer.units} units, {layer.bits} bits a weight."

    def _dense(self, clear: list[str], sums: list[str], chunked: bool) -> list[str]:
        stage, entry = self.stage, self.entry
        bias = stage.bias - stage.factor * stage.top * (entry.total or 0)
        value = f"{2 * stage.factor % 2**32}U * sum[u]"
        value += f" - {stage.factor * stage.top % 2**32}U * total" if entry.total is None else ""
        lines = self._activation(value, bias, "out[u]")
        total = ["uint32_t total = 0;"] if entry.total is None else []
        counters = [*entry.counters, *(["n"] if chunked else []), "u"]
        return [
            *total,
            f"unsigned {', '.join(counters)};",
            *entry.before,
            *clear,
            *sums,
            *loop("u", self.layer.units, lines),
        ]

    def _image(self, clear: list[str], sums: list[str], chunked: bool) -> list[str]:
        """Write a convolution: the largest sums of each 2 x 2 pixels are kept, before the bias."""
        stage, after, units = self.stage, self.plan.stages[self.number + 1], self.layer.units
        rows, columns, channels = stage.shape
        best = "(uint32_t)best[u]" if stage.factor == 1 else f"{stage.factor}U * (uint32_t)best[u]"
        lines = self._activation(best, stage.bias, "*to++")
        value, source = (_pixel(stage), "z") if self.number == 0 else ("uint8_t", "in")
        corner = f"{source} + ((2U * row + k / 2U) * {columns + 2}U + 2U * column + k % 2U) * {channels}U"
        largest = [
            f"const int32_t s = (int32_t)(2U * sum[u] - {stage.top}U * total);",
            *block("if (s > best[u])", ["best[u] = s;"]),
        ]
        pooled = [f"const {value} *at = {corner};", "uint32_t total = 0;", *sums, *loop("u", units, largest)]
        code = [*loop("u", units, ["best[u] = INT32_MIN;"]), *loop("k", 4, pooled), *loop("u", units, lines)]
        fill, target = [], ["uint8_t *to = out;"]
        if after.layer.convolution:
            fill, target = [f"surround(out, {_size(after)}U, {after.pad});"], []
            code.insert(0, f"uint8_t *to = out + ((row + 1U) * {columns // 2 + 2}U + column + 1U) * {units}U;")
        counters = ["i", "j", "k", "row", "column", *(["n"] if chunked else []), "u"]
        return [
            f"int32_t best[{units}];",
            *target,
            f"unsigned {', '.join(counters)};",
            *self.entry.before,
            *clear,
            *fill,
            *loop("row", rows // 2, loop("column", columns // 2, code)),
        ]

    def _activation(self, value: str, bias: np.ndarray, target: str) -> list[str]:
        """Return lines that turn a sum into an output of the layer."""
        layer = self.layer
        wrapped = (bias + 2**31) % 2**32 - 2**31
        if wrapped.any():
            self.arrays.append(Array(f"bias{self.number}", narrow(wrapped, signed=True)))
            value += f" + (uint32_t)bias{self.number}[u]"
        if layer.activation == "none":
            return [f"{target} = (int32_t)({value});"]
        if layer.activation == "sign":
            high = 2 if self.plan.stages[self.number + 1].layer.convolution else 1
            return [f"{target} = ({value}) >> 31 ? 0 : {high};"]
        assert layer.multiplier is not None
        by = f"{int(layer.multiplier[0])}U"
        if len(np.unique(layer.multiplier)) > 1:
            by = f"multiplier{self.number}[u]"
            self.arrays.append(Array(f"multiplier{self.number}", narrow(layer.multiplier)))
        scaled = f"{f'(s >> {layer.before})' if layer.before else 's'} * {by}"
        if layer.after:
            scaled = f"({scaled} + {1 << layer.after - 1}U) >> {layer.after}"
        return [
            f"uint32_t s = {value};",
            f"s = s >> 31 ? 0 : {scaled};",
            f"{target} = (uint8_t)(s < {PEAK}U ? s : {PEAK}U);",
        ]


def terms(net: NeuralNet, stage: Stage) -> list[Term]:
    """Join columns of consecutive states of a feature, since a row has at most one of them."""
    if _apart(net, stage):
        return [Term(feature, i) for i, feature in enumerate(net.inputs.feature.tolist())]
    joined: list[Term] = []
    for i, (feature, state) in enumerate(zip(net.inputs.feature.tolist(), net.inputs.state.tolist(), strict=True)):
        last = joined[-1] if joined else Term(-1, 0)
        if last.states and last.feature == feature and last.low + last.states == state:
            joined[-1] = Term(feature, last.first, last.low, last.states + 1)
        else:
            joined.append(Term(feature, i, state, 1) if state >= 0 else Term(feature, i))
    return joined


def _apart(net: NeuralNet, stage: Stage) -> bool:
    """Tell whether columns enter one by one: a value that is missing, or another state, may be more than zero."""
    assert stage.shift is not None
    return stage.gap is not None and bool(stage.shift.any() or stage.gap[net.inputs.state >= 0].any())


def first_entry(net: NeuralNet, stage: Stage) -> Entry:
    """Choose how states enter a dense first layer."""
    columns = terms(net, stage)
    assert stage.scale is not None
    unscaled = bool((stage.scale == 1).all())
    arrays, x = _feature(net, [term.feature for term in columns])
    heads = (f"for (i = 0; i < {len(columns)}U; ++i)",)
    scale = () if unscaled else (Array("scale", narrow(stage.scale)),)
    if _apart(net, stage) or not any(term.states for term in columns):
        if stage.gap is not None:
            more, column = _column(net, stage, x)
            return Entry(heads, column, "i", (*arrays, *more))
        x = x if unscaled else f"(uint32_t)scale[i] * {x}"
        return Entry(heads, (f"const uint32_t x = {x};",), "i", (*arrays, *scale))
    cards = [net.variables[term.feature].cardinality for term in columns]
    whole = unscaled and all(term.states == k for term, k in zip(columns, cards, strict=True))
    end = [len(stage.codes)] if whole and stage.gap is not None else []
    arrays += (Array("first", narrow([*(term.first for term in columns), *end], limit=len(stage.codes))),)
    if whole and stage.gap is not None:
        row = f"const uint32_t v = {x}, r = first[i] + v, x = v < (uint32_t)first[i + 1U] - first[i];"
        return Entry(heads, (row,), "r", arrays)
    if whole:
        return Entry(heads, (), f"((uint32_t)first[i] + {x})", arrays, total=len(columns))
    if stage.gap is not None:
        more, rows = _mixed(stage, columns, cards, x)
        return Entry(heads, rows, "r", (*arrays, *more, *scale))
    arrays += (Array("states", narrow([t.states for t in columns])), Array("low", narrow([t.low for t in columns])))
    lines = (
        f"uint32_t r = first[i], x = {x};",
        "if (states[i]) { /* one of the states from low on, or none */",
        "    r += x - low[i];",
        "    x = x - low[i] < states[i];",
        "}",
        *([] if unscaled else ["x = x ? x * scale[r] : 0;"]),
    )
    return Entry(heads, lines, "r", (*arrays, *scale))


def _mixed(stage: Stage, columns: list[Term], cards: list[int], x: str) -> tuple[tuple[Array, ...], tuple[str, ...]]:
    """Return tables and lines of indicators and numbers in which values may be missing."""
    assert stage.scale is not None
    assert stage.gap is not None
    gaps = stage.gap[[term.first for term in columns]]
    states, low, known, gap = (
        _number(name, np.array(values))
        for name, values in (
            ("states", [term.states for term in columns]),
            ("low", [term.low for term in columns]),
            ("known", cards),
            ("gap", gaps),
        )
    )
    unscaled = bool((stage.scale == 1).all())
    indicator = (
        f"r += x - {low[0]};",
        f"x = x - {low[0]} < {states[0]};",
        *([] if unscaled else ["x = x ? scale[r] : 0;"]),
    )
    head = f"uint32_t r = first[i], x = {x};"
    if all(term.states for term in columns):
        return (*states[1], *low[1]), (head, *indicator)
    number = f"x = x < {known[0]} ? {'x' if unscaled else 'x * scale[r]'} : {gap[0]};"
    lines = (head, f"if ({states[0]}) {{", *indent(indicator), "} else {", f"    {number}", "}")
    return (*states[1], *low[1], *known[1], *gap[1]), lines


def _column(net: NeuralNet, stage: Stage, x: str) -> tuple[tuple[Array, ...], tuple[str, ...]]:
    """Return tables and lines that set ``x`` to the number of the i-th column, that of a missing value included."""
    inputs = net.inputs
    assert stage.scale is not None
    assert stage.shift is not None
    assert stage.gap is not None
    cards = np.array([v.cardinality for v in net.variables])[inputs.feature]
    known, scale, shift, gap = (
        _number(name, values)
        for name, values in (("known", cards), ("scale", stage.scale), ("shift", stage.shift), ("gap", stage.gap))
    )
    arrays, value = (*known[1], *gap[1]), "v"
    if (inputs.state >= 0).any():
        arrays += (Array("state", narrow(inputs.state, signed=True)),)
        value = "(state[i] < 0 ? v : (uint32_t)(state[i] == (int32_t)v))"
    if (stage.scale != 1).any():
        arrays, value = (*arrays, *scale[1]), f"{value} * {scale[0]}"
    if stage.shift.any():
        arrays, value = (*arrays, *shift[1]), f"{value} + {shift[0]}"
    return arrays, (f"const uint32_t v = {x};", f"const uint32_t x = v < {known[0]} ? {value} : {gap[0]};")


def _number(name: str, values: np.ndarray, *, signed: bool = False) -> tuple[str, tuple[Array, ...]]:
    """Return an expression of the i-th of these numbers, and the table that it reads unless all are equal."""
    if len(np.unique(values)) == 1:
        return f"{int(values[0]) % 2**32}U", ()
    return f"{'(uint32_t)' if signed else ''}{name}[i]", (Array(name, narrow(values, signed=signed)),)


def _feature(net: NeuralNet, features: list[int]) -> tuple[tuple[Array, ...], str]:
    """Return tables, and an expression that reads the state of the i-th of these features."""
    if features == list(range(len(features))):
        return (), "in[i]"
    return (Array("feature", narrow(features, limit=len(net.variables))),), "in[feature[i]]"


def image_entry(net: NeuralNet, stage: Stage) -> Entry:
    """Write states into an image with a border."""
    inputs = net.inputs
    assert stage.scale is not None
    assert stage.shift is not None
    rows, columns, _ = stage.shape
    value, size = _pixel(stage), (rows + 2) * (columns + 2)
    arrays, code = _feature(net, inputs.feature.tolist())
    x = code
    if (inputs.state >= 0).any():
        arrays += (Array("state", narrow(inputs.state, signed=True)),)
        x = f"(state[i] < 0 ? {x} : state[i] == (int32_t){x})"
    z = f"(uint32_t){x}"
    for name, values, neutral in (("scale", stage.scale, 1), ("shift", stage.shift, 0)):
        if (values == neutral).all():
            continue
        number, table = _number(name, values, signed=True)
        arrays += table
        z = f"{z} * {number}" if name == "scale" else f"{z} + {number}"
    if stage.gap is not None:
        known, table = _number("known", np.array([v.cardinality for v in net.variables])[inputs.feature])
        arrays += table
        z = f"({code} < {known} ? {z} : {stage.pad}U)"
    fill = [f"surround(z, {size}U, {stage.pad});"]
    if value != "uint8_t":
        fill = loop("i", size, [f"z[i] = {stage.pad}U;"])
    pixel = f"z[(i / {columns}U + 1U) * {columns + 2}U + i % {columns}U + 1U]"
    copy = loop("i", rows * columns, [f"{pixel} = ({value})({z});"])
    return window(stage, arrays, (f"{value} z[{size}];", *fill, *copy))


def window(stage: Stage, arrays: tuple[Array, ...] = (), before: tuple[str, ...] = ()) -> Entry:
    """Go through the 3 x 3 pixels from ``at`` on, with all channels."""
    width, step = 3 * stage.shape[2], (stage.shape[1] + 2) * stage.shape[2]
    heads = ("for (i = 0; i < 3U; ++i)", f"for (j = 0; j < {width}U; ++j)")
    lines = (f"const uint32_t x = at[{step}U * i + j];",)
    return Entry(heads, lines, f"({width}U * i + j)", arrays, before, ("i", "j"))
