"""The ends of a neural network in Verilog: how the columns of a row enter, and how the answer leaves."""

import numpy as np

from tinybayes.deploy.programs.verilog_ports import Ports, bits, number, signed_bits
from tinybayes.deploy.programs.verilog_text import Text, block
from tinybayes.model import NeuralNet


def all_columns(net: NeuralNet, ports: Ports, value: int) -> list[str]:
    """Write each column of the row as an expression, to be taken modulo ``2**value``."""
    inputs, columns = net.inputs, []
    fields = (inputs.feature, inputs.state, inputs.multiplier, inputs.center)
    for feature, state, multiplier, center in zip(*(field.tolist() for field in fields), strict=True):
        width = ports.width[feature]
        code = f"x[{ports.low[feature]} +: {width}]"
        if state >= 0:
            on, off = number(multiplier - center, value), number(-center, value)
            columns.append(f"{code} == {width}'d{state} ? {on} : {off}")
            continue
        scaled = f"{number(multiplier, value)} * {code}" if multiplier != 1 else code
        columns.append(f"{scaled} - {number(center, value)}" if center else scaled)
    return columns


def one_column(net: NeuralNet, ports: Ports, out: Text, at: str) -> str:
    """Write the two stages that take the column with the number `at` out of ``x``, and return its value after them.

    What differs between columns is in memories: the place in ``x``, the mask, the state, the multiplier and the center.
    """
    inputs = net.inputs
    width, low = np.array(ports.width)[inputs.feature], np.array(ports.low)[inputs.feature]
    wide = int(width.max())

    def field(name: str, values: np.ndarray, size: int, stages: int = 2) -> str:
        if (values == values[0]).all():
            return number(int(values[0]), size)
        out.rom(name, values.tolist(), size)
        out.delay(name, size, f"{name}[{at}]", range(1, stages + 1))
        return f"{name}_{stages}"

    if (low == np.arange(len(low)) * wide).all():
        start = f"{out.register('low_1', bits(len(low)), at)} * {wide}" if len(low) > 1 else "0"
    else:
        start = field("low", low, bits(ports.inputs), 1)
    out.wire("padded", ports.inputs + wide, "x")  # a narrow feature at the end is read with what is above it
    mask = field("mask", 2**width - 1, wide, 1)
    out.register("code_2", wide, f"padded[{start} +: {wide}]" + (f" & {mask}" if mask == "mask_1" else ""))
    text = "code_2"
    if (inputs.state >= 0).any():
        state = field("state", np.maximum(inputs.state, 0), wide)
        text = f"{wide}'d0 + (code_2 == {state})"
        if (inputs.state < 0).any():
            text = f"{field('ordinal', inputs.state < 0, 1)} ? code_2 : {text}"
    out.wire("picked", wide + 1, text)
    times = field("times", inputs.multiplier, signed_bits(inputs.multiplier))
    center = field("center", inputs.center, signed_bits(inputs.center))
    text = "$signed(picked)" if (inputs.multiplier == 1).all() else f"$signed(picked) * $signed({times})"
    return f"{text} - $signed({center})" if inputs.center.any() else text


def answer(out: Text, ports: Ports, when: str, total: str) -> None:
    """Write the registers of the answer, which take the scores one after another."""
    size, label = ports.size, ports.label
    out.section("Scores come one after another; the first of the largest gives the label.")
    out.register("scored", ports.outputs)
    out.register("class_at", label, clear=True)
    out.register("winner", label)
    out.register("highest", size, signed=True)
    out.wire("score", size, total, signed=True)
    out.wire("class_end", 1, f"class_at == {label}'d{ports.classes - 1}")
    shifted = f"{{score, scored[{ports.outputs - 1}:{size}]}}" if ports.classes > 1 else "score"
    better = ["winner <= class_at;", "highest <= score;"]
    out.clock(
        *block(
            f"if ({when})",
            [
                f"scored <= {shifted};",
                f"class_at <= class_end ? 0 : class_at + {label}'d1;",
                *block("if (class_at == 0 || score > highest)", better),
            ],
        )
    )
    out.sections[-1].wires += ["assign label = winner;", "assign scores = scored;"]
