"""A neural network as a machine with one multiplier: memories for weights and values, and counters that walk over them.

Every layer is a walk of a window over an image: a dense layer has one window, as large as the image, and a vector is an
image of one pixel. The address of a value is its row, column and channel side by side, so that nothing is multiplied to
find it. The values of a layer and of the next one are in two halves of a memory. A weight is ``2 q + 1`` for a signed
``q`` with the bits of its layer, which is what the memory holds.

Numbers at the ends of names are stages: what is ``a_2`` in one clock was ``a_1`` in the clock before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tinybayes.deploy.programs.verilog_ends import answer, one_column
from tinybayes.deploy.programs.verilog_ports import Ports, bits, number, signed_bits
from tinybayes.deploy.programs.verilog_text import Text, block, span
from tinybayes.model import NeuralNet
from tinybayes.model.neural_net import PEAK, scaling_reach

LOAD = 3  # clocks from the number of a column to its value in the memory


@dataclass(frozen=True)
class Walk:
    """How far each counter of a layer counts, from the innermost to the outermost."""

    channel: int
    across: int
    down: int
    pool: int
    unit: int
    column: int
    row: int

    @property
    def steps(self) -> int:
        """The multiplications of the layer."""
        return prod(getattr(self, name) for name in COUNTERS)


COUNTERS = tuple(Walk.__dataclass_fields__)
WINDOW = COUNTERS[:3]


def serial_design(net: NeuralNet, ports: Ports) -> tuple[str, int]:
    """Write the body of the module, and count the clocks that a row takes."""
    machine = _Machine(net, ports)
    return machine.text(), len(net.inputs) + LOAD + sum(w.steps + machine.end for w in machine.walks)


class _Machine:
    """The machine: its sizes and its text."""

    def __init__(self, net: NeuralNet, ports: Ports) -> None:
        self.net, self.ports, self.out = net, ports, Text()
        self.layers, self.last = net.layers, len(net.layers) - 1
        self.images = [_image(shape) for shape in net.shapes]
        self.walks = [
            _walk(layer.units, shape, layer.convolution) for layer, shape in zip(net.layers, self.images, strict=True)
        ]
        self.image = net.layers[0].convolution
        self.relu = any(layer.activation == "relu" for layer in net.layers)
        self.summed = 4 if self.image else 3  # the stage of a complete sum, after pooling
        self.end = self.summed + 1  # the stage whose values are written
        self.counters = [name for name in COUNTERS if max(getattr(w, name) for w in self.walks) > 1]
        # The bits of row, column and channel in the address of a value.
        self.fields = [[(n - 1).bit_length() for n in shape] for shape in self.images]
        self.half = max(sum(widths) for widths in self.fields)
        tops = [_joined([n - 1 for n in shape], widths) for shape, widths in zip(self.images, self.fields, strict=True)]
        self.words = 1 + max((i % 2 << self.half) + top for i, top in enumerate(tops))  # of the memory of values
        self.address = bits(self.words)
        peaks = [1 if layer.activation == "sign" else PEAK for layer in net.layers[:-1]]
        self.value = signed_bits(max(int(net.input_reach.max()), *peaks, 1))
        self.sum = signed_bits(max(net.reach))
        self.layer = bits(len(net.layers))

    def text(self) -> str:
        """Write all parts."""
        self._memories()
        self._state()
        self._load()
        self._walk()
        self._read()
        self._add()
        self._activate()
        self._control()
        answer(self.out, self.ports, f"last_{self.end} && last_layer", f"sum_{self.end}")
        return str(self.out)

    def _by_layer(self, texts: Sequence[str]) -> str:
        """Write a choice between the texts of layers."""
        *others, last = texts
        while others and others[-1] == last:
            others.pop()
        return "".join(f"layer == {self.layer}'d{i} ? {text} : " for i, text in enumerate(others)) + last

    def _memories(self) -> None:
        """Lay out weights, unit after unit, then biases and multipliers of all units, and the values."""
        out, layers = self.out, self.layers
        weights = np.concatenate([np.moveaxis(layer.weights, -1, 0).reshape(-1) for layer in layers])
        bias = np.concatenate([layer.bias for layer in layers])
        self.steps, self.units = bits(len(weights)), bits(len(bias))
        self.code, self.bias = max(layer.bits for layer in layers), signed_bits(bias)
        out.first.append("// A weight is 2 * q + 1.")
        out.rom("q", (weights // 2).tolist(), self.code)
        out.rom("bias", bias.tolist(), self.bias)
        if self.relu:
            factor = np.concatenate([0 * a.bias if a.multiplier is None else a.multiplier for a in layers])
            self.factor = max(1, int(factor.max()).bit_length())
            out.rom("factor", factor.tolist(), self.factor)
        out.first.append(f"reg {span(self.value)}value [0:{self.words - 1}];")

    def _state(self) -> None:
        """Declare what the whole machine is doing."""
        out = self.out
        out.section("A row is loaded, then one layer runs after another.")
        for name in ("busy", "loading", "running", "finished"):
            out.register(name, 1)
        if self.last:
            out.register("layer", self.layer)
        out.sections[-1].wires += ["assign ready = !busy;", "assign done = finished;"]
        out.wire("taken", 1, "start && ready")
        out.wire("last_layer", 1, f"layer == {self.layer}'d{self.last}" if self.last else "1'b1")

    def _control(self) -> None:
        """Load, then let layers run; one begins when all values before it are written."""
        out, ended = self.out, ["if (last_layer) busy <= 1'b0;"]
        if self.last:
            ended += block("else", [f"layer <= layer + {self.layer}'d1;", "running <= 1'b1;"])
        start = ["busy <= 1'b1;", "loading <= 1'b1;", *(["layer <= 0;"] if self.last else [])]
        out.section("A layer begins when all values before it are written.")
        out.clock(
            f"finished <= top_{self.end} && last_layer;",
            *block("if (taken)", start),
            "if (loading && input_end) loading <= 1'b0;",
            f"if (loaded_{LOAD - 1}) running <= 1'b1;",
            "if (running && row_end) running <= 1'b0;",
            *block(f"if (top_{self.end})", ended),
        )
        out.sections[-1].cleared += ["busy", "loading", "running", "finished"]

    def _load(self) -> None:
        """Take the columns of the row out of ``x``, one with each clock."""
        out, count = self.out, len(self.net.inputs)
        width = bits(count)
        out.section("The columns of the row, one a clock.")
        out.register("input_at", width)
        out.wire("input_end", 1, f"input_at == {width}'d{count - 1}")
        out.clock(f"if (loading) input_at <= input_end ? 0 : input_at + {width}'d1;")
        at = f"{self.address}'d0 + input_at"
        rows, wide = self.images[0][:2]
        if self.image and rows > 1 and wide & (wide - 1):  # a line of the image does not fill its addresses
            x = bits(wide)
            out.register("input_x", x)
            out.register("place", self.address)
            out.wire("line_end", 1, f"input_x == {x}'d{wide - 1}")
            step = f"line_end ? {self.address}'d{2**x - wide + 1} : {self.address}'d1"
            out.clock(
                *block(
                    "if (loading)",
                    [f"input_x <= line_end ? 0 : input_x + {x}'d1;", f"place <= input_end ? 0 : place + ({step});"],
                )
            )
            out.sections[-1].cleared += ["input_x", "place"]
            at = "place"
        out.sections[-1].cleared.append("input_at")
        out.delay("load", 1, "loading", range(1, LOAD), clear=True)
        out.delay("loaded", 1, "loading && input_end", range(1, LOAD), clear=True)
        out.delay("load_at", self.address, at, range(1, LOAD))
        out.wire("entered", self.value, one_column(self.net, self.ports, out, "input_at"))

    def _walk(self) -> None:
        """Count; a counter goes on when all before it are at their ends."""
        out, before = self.out, ""
        out.section("Where the machine is: counters from the innermost to the outermost.")
        for name in COUNTERS:
            counts = [getattr(w, name) for w in self.walks]
            width = bits(max(counts))
            if name in self.counters:
                out.register(name, width, clear=True)
                last = self._by_layer([f"{width}'d{n - 1}" for n in counts])
                last = f"({last})" if "?" in last else last
                out.wire(f"{name}_end", 1, f"{before}{name} == {last}")
                condition = f"running && {before.removesuffix(' && ')}" if before else "running"
                out.clock(f"if ({condition}) {name} <= {name}_end ? 0 : {name} + {width}'d1;")
                before = f"{name}_end && "
            else:
                out.wire(f"{name}_end", 1, before.removesuffix(" && ") or "1'b1")

    def _read(self) -> None:
        """Find weight, value and unit of the step."""
        out, steps, units = self.out, self.steps, self.units
        out.section("The weight, the value and the unit of each step.")
        out.register("q_at", steps)
        out.register("unit_at", units)
        start = ["q_at <= 0;", "unit_at <= 0;"]
        next_q, next_unit = f"q_at + {steps}'d1", f"unit_at + {units}'d1"
        if self.image:  # weights are read again for each pixel
            for name, width in (("unit_q", steps), ("layer_q", steps), ("layer_unit", units)):
                out.register(name, width)
                start.append(f"{name} <= 0;")
            out.wire("again", 1, "unit_end && !row_end")
            out.wire("following_q", steps, f"again ? layer_q : {next_q}")
            out.wire("following_unit", units, f"again ? layer_unit : {next_unit}")
            moved = [
                f"q_at <= !down_end ? {next_q} : !pool_end ? unit_q : following_q;",
                *block("if (pool_end)", ["unit_q <= following_q;", "unit_at <= following_unit;"]),
                *block("if (row_end)", ["layer_q <= following_q;", "layer_unit <= following_unit;"]),
            ]
        else:
            moved = [f"q_at <= {next_q};", f"if (down_end) unit_at <= {next_unit};"]
        out.clock(*block("if (running)", moved), *block("if (taken)", start))
        read, write = self._addresses()
        out.wire("read_at", self.address, read)
        out.register("q_1", self.code, "q[q_at]")
        out.register("value_1", self.value, "value[read_at]")
        first = " && ".join(f"{name} == 0" for name in WINDOW if name in self.counters)
        out.delay("unit", units, "unit_at", range(1, self.summed if self.relu else 2))
        out.delay("first", 1, first or "1'b1", range(1, 3))
        out.delay("last", 1, "running && down_end", range(1, 4 if self.image else self.end + 1), clear=True)
        out.delay("top", 1, "running && row_end", range(1, self.end + 1), clear=True)
        if self.last:
            out.wire("write_at", self.address, write)
            out.delay("to", self.address, "write_at", range(1, self.end + 1))
        if self.image:
            out.register("outside_1", 1, "outside")
            out.delay("fresh", 1, "pool == 2'd0", range(1, 4))
            kept = ["pool == 2'd3" if layer.convolution else "1'b1" for layer in self.layers]
            out.delay("pooled", 1, self._by_layer(kept), range(1, 4))

    def _addresses(self) -> tuple[str, str]:
        """Write the addresses of the value that is read and of the one that is written."""
        fields = list(enumerate(self.fields))
        reads = [self._address(layer, widths, ("y", "x_at", "channel")) for layer, widths in fields]
        writes = [self._address(layer, widths, ("row", "column", "unit")) for layer, widths in fields[1:]]
        if self.image:
            self._pixels()
        return self._by_layer(reads), self._by_layer([*writes, *writes[-1:]]) if writes else ""

    def _address(self, layer: int, widths: list[int], names: Sequence[str]) -> str:
        """Join the lowest bits of counters, below the half of the memory that the values of a layer are in."""
        parts = [
            f"{name}[{w - 1}:0]" if self._width(name) > 1 else name for name, w in zip(names, widths, strict=True) if w
        ]
        room = self.address - sum(widths)
        upper = (layer % 2 << self.half) >> sum(widths)
        parts = [f"{room}'d{upper}", *parts] if room else parts
        return f"{{{', '.join(parts)}}}" if parts else f"{self.address}'d0"

    def _width(self, name: str) -> int:
        if name in ("y", "x_at"):
            return self._coordinate
        return bits(max(getattr(w, name) for w in self.walks))

    @property
    def _coordinate(self) -> int:
        """The bits of a row or a column of an image, with a border around it."""
        return bits(max(max(shape[:2]) for shape in self.images) + 2)

    def _pixels(self) -> None:
        """Find the pixel; the first window of a convolution begins outside of the image."""
        out, width = self.out, self._coordinate
        border = self._by_layer([f"{width}'d{int(layer.convolution)}" for layer in self.layers])
        out.wire("border", width, border)
        for name, outer, inner, half in (("y", "row", "down", "1"), ("x_at", "column", "across", "0")):
            parts = [f"{{{outer}, 1'b0}}"] if outer in self.counters else []
            parts += [f"pool[{half}]", *([inner] if inner in self.counters else [])]
            out.wire(name, width, " + ".join(parts) + " - border")
        sizes = [self._by_layer([f"{width}'d{shape[axis]}" for shape in self.images]) for axis in (0, 1)]
        out.wire("rows", width, sizes[0])
        out.wire("columns", width, sizes[1])
        # One less than zero is a large number.
        out.wire("outside", 1, "y >= rows || x_at >= columns")

    def _add(self) -> None:
        """Multiply and add up; of four neighbours of an image the largest sum is kept."""
        out, size = self.out, self.sum
        out.section("Sums: a product with each clock" + (", and the largest of four pixels." if self.image else "."))
        product = "$signed({q_1, 1'b1}) * $signed(value_1)"
        wide = self.code + 1 + self.value
        out.register("product_2", wide, f"outside_1 ? {wide}'sd0 : {product}" if self.image else product, signed=True)
        out.register("bias_2", self.bias, "bias[unit_1]", signed=True)
        out.register("sum_3", size, "product_2 + (first_2 ? bias_2 : sum_3)", signed=True)
        if self.image:
            out.register("sum_4", size, signed=True)
            out.clock("if (last_3 && (fresh_3 || sum_3 > sum_4)) sum_4 <= sum_3;")
            out.delay("last", 1, "last_3 && pooled_3", range(4, self.end + 1), clear=True)

    def _activate(self) -> None:
        """Scale and limit sums, or take their signs; write them, or the columns of the row."""
        out, total, end, size = self.out, f"sum_{self.summed}", self.end, self.sum
        out.section("Activations, and the one place that writes values.")
        out.register(f"sum_{end}", size, total, signed=True)
        scaled = self._scale() if self.relu else ""
        sign = f"(sum_{end}[{size - 1}] ? {number(-1, self.value)} : {number(1, self.value)})"
        kinds = [scaled if layer.activation == "relu" else sign for layer in self.layers[:-1]]
        load, at, value = f"load_{LOAD - 1}", f"load_at_{LOAD - 1}", "entered"
        write = load
        if kinds:
            out.wire("active", self.value, self._by_layer([*kinds, kinds[-1]]))
            write, at = f"{load} || last_{end} && !last_layer", f"{load} ? {at} : to_{end}"
            value = f"{load} ? entered : active"
        out.clock(f"if ({write})", f"    value[{at}] <= {value};")

    def _scale(self) -> str:
        """Write the multiplication by the factor of the unit, and return the limited value."""
        out, layers, total, end, size = self.out, self.layers, f"sum_{self.summed}", self.end, self.sum
        out.register(f"factor_{self.summed}", self.factor, f"factor[unit_{self.summed - 1}]")
        out.wire("positive", size - 1, f"{total}[{size - 1}] ? {size - 1}'d0 : {total}[{size - 2}:0]")
        out.wire("shifted", size - 1, self._by_layer([f"positive >> {layer.before}" for layer in layers]))
        reach = max(map(scaling_reach, layers, self.net.reach))
        wide = max(reach.bit_length(), PEAK.bit_length() + 1)
        scaled = out.register(f"scaled_{end}", wide, f"shifted * factor_{self.summed}")
        halves = [1 << layer.after - 1 if layer.after else 0 for layer in layers]
        rounded = [f"({scaled} + {wide}'d{half}) >> {a.after}" for half, a in zip(halves, layers, strict=True)]
        out.wire("rounded", wide, self._by_layer(rounded))
        return f"(rounded > {wide}'d{PEAK} ? {self.value}'d{PEAK} : rounded[7:0])"


def _image(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return rows, columns and channels; a vector is one pixel."""
    return (1, 1, shape[0]) if len(shape) == 1 else (shape[0], shape[1], shape[2])


def _walk(units: int, shape: tuple[int, int, int], convolution: bool) -> Walk:
    rows, columns, channels = shape
    if convolution:
        return Walk(channels, 3, 3, 4, units, columns // 2, rows // 2)
    return Walk(channels, columns, rows, 1, units, 1, 1)


def _joined(values: Sequence[int], widths: Sequence[int]) -> int:
    """Put numbers of these widths side by side, the last one lowest."""
    address = 0
    for value, width in zip(values, widths, strict=True):
        address = address << width | value
    return address
