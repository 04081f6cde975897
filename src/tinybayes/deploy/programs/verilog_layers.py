"""A neural network as a pipeline of layers: each computes one unit a clock, of one pixel where it is a convolution.

A layer multiplies all inputs of a unit at once and adds the products in a tree. Its inputs are in a register, which it
keeps while the layer before it works on the next row. In a convolution this register is a ring of pixels: it turns by
one pixel when all units have seen the window, so that the window is always at the same place. Pixels come line by line,
and the largest sums of a pair of lines are in a memory until the pair is complete.

Numbers at the ends of names are stages: what is ``a_2`` in one clock was ``a_1`` in the clock before.
"""

from dataclasses import dataclass

import numpy as np

from tinybayes.deploy.programs.verilog_ends import all_columns, answer
from tinybayes.deploy.programs.verilog_ports import Ports, bits, number, side_by_side, signed_bits
from tinybayes.deploy.programs.verilog_text import Text, indent, span
from tinybayes.model import NeuralNet
from tinybayes.model.neural_net import PEAK, scaling_reach


@dataclass(frozen=True)
class Values:
    """The numbers between two layers, side by side."""

    count: int
    width: int
    kind: str  # "signed", "unsigned", or "sign": a bit that is one for +1 and zero for -1

    @property
    def bits(self) -> int:
        """The bits of all of them."""
        return self.count * self.width

    @property
    def product(self) -> int:
        """The bits that a product has beyond those of a weight."""
        return {"signed": self.width, "unsigned": self.width + 1, "sign": 0}[self.kind]

    def times(self, weight: str, bus: str) -> str:
        """Write the product of a weight and the i-th value."""
        if self.kind == "sign":
            return f"{bus}[i] ? {weight} : -{weight}"
        part = f"{bus}[i * {self.width} +: {self.width}]"
        return f"{weight} * $signed({part})" if self.kind == "signed" else f"{weight} * $signed({{1'b0, {part}}})"


def layered_design(net: NeuralNet, ports: Ports, name: str) -> tuple[str, int, int]:
    """Write the body of the module and its layers; count the clocks that a row takes, and those from row to row."""
    layers = [_Layer(net, ports, i) for i in range(len(net.layers))]
    interval = 1 + max(layer.steps for layer in layers)
    latency = sum(layer.steps + layer.stages for layer in layers)
    modules = [_top(net, ports, name, layers, interval), *(layer.text(name) for layer in layers)]
    return "\n".join(modules), latency, interval


def _top(net: NeuralNet, ports: Ports, name: str, layers: "list[_Layer]", interval: int) -> str:
    """Write the columns of the row, and connect the layers."""
    out, first, width = Text(), layers[0].given, bits(interval)
    out.section("A row is taken when the slowest layer is ready for it.")
    out.register("waiting", width, clear=True)
    out.clock(f"if (taken) waiting <= {width}'d{interval - 1};", f"else if (!ready) waiting <= waiting - {width}'d1;")
    out.sections[-1].wires += ["assign ready = waiting == 0;"]
    out.wire("taken", 1, "start && ready")
    out.section("The columns of the row.")
    wires = out.sections[-1].wires
    wires.append(f"wire [{first.bits - 1}:0] values0;")
    for i, text in enumerate(all_columns(net, ports, first.width)):
        wires.append(f"assign values0[{i * first.width} +: {first.width}] = {text};")
    out.section("The layers.")
    start = "taken"
    for i, layer in enumerate(layers):
        wires, end = out.sections[-1].wires, f"done{i}"
        given = f".clk(clk), .rst(rst), .start({start}), .values(values{i})"
        if layer.made is None:
            made = ".done(done), .label(label), .scores(scores)"
        else:
            wires += [f"wire {end};", f"wire {span(layer.made.bits)}values{i + 1};"]
            made = f".done({end}), .out(values{i + 1})"
        wires.append(f"{name}_layer{i} layer{i} ({given}, {made});")
        start = end
    return str(out)


class _Layer:
    """A layer: its sizes and its text."""

    def __init__(self, net: NeuralNet, ports: Ports, index: int) -> None:
        self.layer, self.ports, self.index = net.layers[index], ports, index
        self.given, self.made = _values(net, index), _values(net, index + 1) if index + 1 < len(net.layers) else None
        self.reach = net.reach[index]
        self.size = signed_bits(self.reach)
        self.shape, image = net.shapes[index], self.layer.convolution
        self.taps = self.layer.codes.size // self.layer.units
        self.levels = (self.taps - 1).bit_length()
        self.steps = self.layer.units * (self.shape[0] // 2 * 2 * self.shape[1] if image else 1)
        self.unit = bits(self.layer.units)
        self.added = 3 + self.levels  # the stage of a sum
        self.summed = self.added + int(image)  # that of a sum after pooling
        self.stages = self.summed + (2 if self.layer.activation == "relu" else 1)  # that of the output

    def text(self, name: str) -> str:
        """Write the module."""
        self.out = Text()
        self._tables()
        self._walk()
        self._multiply()
        if self.layer.convolution:
            self._pool()
        self._activate()
        return self._head(name) + str(self.out)

    def _head(self, name: str) -> str:
        layer, inputs = self.layer, " x ".join(map(str, self.shape))
        kind = "Convolution of 3 x 3 and maximum over 2 x 2" if layer.convolution else "Dense layer"
        lines = [f"// {kind}: {inputs} to {layer.units} units, {layer.bits} bits a weight."]
        made = ["output reg done"]
        if self.made is None:
            made += [f"output wire {span(self.ports.label)}label", f"output wire {span(self.ports.outputs)}scores"]
        else:
            made += [f"output reg {span(self.made.bits)}out"]
        given = ["input wire clk", "input wire rst", "input wire start", f"input wire {span(self.given.bits)}values"]
        lines += [f"module {name}_layer{self.index} (", ",\n".join(indent([*given, *made])), ");"]
        return "\n".join(lines) + "\n"

    def _tables(self) -> None:
        """Write functions from the number of a unit to its weights, its bias and its multiplier."""
        layer, out = self.layer, self.out
        halves = (layer.weights.reshape(-1, layer.units).T // 2).tolist()
        words = [side_by_side(row, layer.bits) for row in halves]
        out.first.append("// Weights are 2 * q + 1.")
        out.first += _table("q", words, self.taps * layer.bits, self.unit)
        self.bias = signed_bits(layer.bias)
        out.first += _table("bias", layer.bias.tolist(), self.bias, self.unit)
        if layer.multiplier is not None:
            self.factor = max(1, int(layer.multiplier.max()).bit_length())
            out.first += _table("factor", layer.multiplier.tolist(), self.factor, self.unit)

    def _walk(self) -> None:
        """Count units, and pixels around them."""
        out, image = self.out, self.layer.convolution
        out.section("Where the layer is, and its inputs.")
        counters = [("unit", self.layer.units)]
        if image:
            counters += [("column", self.shape[1]), ("row", self.shape[0] // 2 * 2)]
        before = ""
        out.register("running", 1, clear=True)
        for name, count in counters:
            width = bits(count)
            out.register(name, width, clear=True)
            out.wire(f"{name}_end", 1, f"{before} && {name} == {width}'d{count - 1}".removeprefix(" && "))
            condition = " && ".join(filter(None, ("running", before)))
            out.clock(f"if ({condition}) {name} <= {name}_end ? 0 : {name} + {width}'d1;")
            before = f"{name}_end"
        out.clock(f"if (start || running && {before}) running <= start;")
        out.first.append(f"reg [{self.given.bits - 1}:0] held;")  # parts of it are selected, even of a single bit
        if image:
            pixel = self.given.width * self.shape[2]
            out.register("turn_1", 1, "running && unit_end")
            out.clock(f"if (turn_1) held <= {{held[{pixel - 1}:0], held[{self.given.bits - 1}:{pixel}]}};")
        out.clock("if (start) held <= values;")
        out.delay("go", 1, "running", range(1, self.added + 1 if image else self.stages), clear=True)
        out.delay("end", 1, f"running && {before}", range(1, self.stages), clear=True)
        # The bias needs the number of the unit first, then the multiplier, and pooling.
        late = self.added if image else self.summed - 1 if self.layer.multiplier is not None else self.added - 2
        out.delay("unit", self.unit, "unit", range(1, late + 1))
        out.clock(f"done <= end_{self.stages - 1};")
        out.sections[-1].cleared.append("done")

    def _window(self) -> str:
        """Name the inputs of the window: those of a dense layer, or nine pixels at fixed places of the ring."""
        if not self.layer.convolution:
            return "held"
        out, (rows, columns, channels) = self.out, self.shape
        pixel = self.given.width * channels
        for name, edge in (
            ("above", "row == 0"),
            ("below", f"row == {rows - 1}"),
            ("left", "column == 0"),
            ("right", f"column == {columns - 1}"),
        ):
            out.register(f"{name}_1", 1, edge)
        wires = out.sections[-1].wires
        wires.append(f"wire {span(9 * pixel)}window;")
        for i, (y, x) in enumerate((y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)):
            place = (y * columns + x) % (rows * columns)
            edges = [{-1: "above_1", 1: "below_1"}.get(y), {-1: "left_1", 1: "right_1"}.get(x)]
            outside = " || ".join(edge for edge in edges if edge)
            value = f"held[{place * pixel} +: {pixel}]"
            value = f"{outside} ? {pixel}'d0 : {value}" if outside else value
            wires.append(f"assign window[{i * pixel} +: {pixel}] = {value};")
        return "window"

    def _multiply(self) -> None:
        """Multiply all inputs, and add neighbours stage by stage."""
        out, code = self.out, self.layer.bits
        out.section("Products of all inputs, and a tree of sums.")
        window = self._window()
        out.first.append(f"reg [{self.taps * code - 1}:0] q_1;")
        out.clock("q_1 <= q(unit);")
        width, count = min(self.size, code + 1 + self.given.product), self.taps
        weight = f"$signed({{q_1[i * {code} +: {code}], 1'b1}})"
        out.first.append("integer i;")
        out.register("part_2", width * count)
        out.clock(
            f"for (i = 0; i < {count}; i = i + 1)",
            f"    part_2[i * {width} +: {width}] <= {self.given.times(weight, window)};",
        )
        for stage in range(3, self.added):
            wide, pairs, old = min(self.size, width + 1), count // 2, f"part_{stage - 1}"
            new = out.register(f"part_{stage}", wide * (count - pairs))
            a, b = (f"$signed({old}[({2 * width} * i + {at}) +: {width}])" for at in (0, width))
            out.clock(
                f"for (i = 0; i < {pairs}; i = i + 1)",
                f"    {new}[i * {wide} +: {wide}] <= {a} + {b};",
            )
            if count % 2:
                out.clock(f"{new}[{pairs * wide} +: {wide}] <= $signed({old}[{2 * pairs * width} +: {width}]);")
            width, count = wide, count - pairs
        late = self.added - 1
        out.register(f"bias_{late}", self.bias, f"bias(unit_{late - 1})")
        out.register(f"sum_{self.added}", self.size, f"$signed(part_{late}) + $signed(bias_{late})", signed=True)

    def _pool(self) -> None:
        """Keep the largest sum of two lines of pixels."""
        out, early, late = self.out, self.added, self.summed
        out.section("The largest sums of four pixels, one line of pairs of columns at a time.")
        half = bits(self.shape[1]) - 1
        # The counters of narrow images have a single bit, which cannot be selected.
        column, row = ("column[0]" if half else "column"), ("row[0]" if self.shape[0] > 3 else "row")
        out.delay("east", 1, column, range(1, early + 1))
        out.delay("south", 1, row, range(1, early + 1))
        if half:
            out.delay("pair", half, f"column[{half}:1]", range(1, early + 1))
        out.wire("at", half + self.unit, f"{{pair_{early}, unit_{early}}}" if half else f"unit_{early}")
        out.first.append(f"reg {span(self.size)}best [0:{2 ** (half + self.unit) - 1}];")
        out.wire("known", self.size, "best[at]", signed=True)
        total = f"sum_{early}"
        fresh = f"!south_{early} && !east_{early}"
        out.wire("largest", self.size, f"{fresh} || {total} > known ? {total} : known", signed=True)
        out.clock(f"if (go_{early}) best[at] <= largest;")
        out.register(f"sum_{late}", self.size, "largest", signed=True)
        out.delay("go", 1, f"go_{early} && south_{early} && east_{early}", range(late, self.stages), clear=True)

    def _activate(self) -> None:
        """Scale and limit the sum, or take its sign; or take it as a score."""
        out, layer, stage, size = self.out, self.layer, self.summed, self.size
        total = f"sum_{stage}"
        if self.made is None:
            answer(out, self.ports, f"go_{stage}", total)
            return
        out.section("Activations, one after another; the first is at the bottom in the end.")
        value = f"!{total}[{size - 1}]"
        if layer.multiplier is not None:
            out.register(f"factor_{stage}", self.factor, f"factor(unit_{stage - 1})")
            wide = max(PEAK.bit_length() + 1, scaling_reach(layer, self.reach).bit_length())
            positive = f"({total}[{size - 1}] ? {size - 1}'d0 : {total}[{size - 2}:0])"
            out.wire("shifted", size - 1, f"{positive} >> {layer.before}")
            scaled = out.register(f"scaled_{stage + 1}", wide, f"shifted * factor_{stage}")
            if layer.after:
                scaled = f"({scaled} + {wide}'d{1 << layer.after - 1}) >> {layer.after}"
            out.wire("rounded", wide, scaled)
            value = f"(rounded > {wide}'d{PEAK} ? 8'd{PEAK} : rounded[7:0])"
        elif self.made.width == 2:
            value = f"{total}[{size - 1}] ? 2'b11 : 2'b01"
        out.wire("active", self.made.width, value)
        kept = f"{{active, out[{self.made.bits - 1}:{self.made.width}]}}" if self.made.count > 1 else "active"
        out.clock(f"if (go_{self.stages - 1}) out <= {kept};")


def _values(net: NeuralNet, index: int) -> Values:
    """Describe what enters a layer; signs around which there are zeros take two bits."""
    count = int(np.prod(net.shapes[index]))
    if index == 0:
        return Values(count, signed_bits(int(net.input_reach.max())), "signed")
    if net.layers[index - 1].activation == "relu":
        return Values(count, PEAK.bit_length(), "unsigned")
    return Values(count, 2, "signed") if net.layers[index].convolution else Values(count, 1, "sign")


def _table(name: str, values: list[int], width: int, address: int) -> list[str]:
    """Write a function from a number to a value."""
    lines = [f"{address}'d{i}: {name} = {number(value, width)};" for i, value in enumerate(values)]
    lines = ["case (at)", *indent([*lines, f"default: {name} = {width}'h0;"]), "endcase"]
    return [f"function {span(width)}{name};", *indent([f"input {span(address)}at;", *lines]), "endfunction", ""]
