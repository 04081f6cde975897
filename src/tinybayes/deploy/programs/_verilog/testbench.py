"""A test bench that checks a module against what Python says of some rows."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Interface:
    """Widths of the ports of a module, where the features lie in ``x``, and the clocks from a row to its answer."""

    low: tuple[int, ...]
    x: int
    label: int
    score: int
    latency: int


TEXT = """// Checks {name} on {count} rows: iverilog -g2001 -o {name}_tb {name}.v {name}_tb.v && vvp {name}_tb
module {name}_tb;
{clock}    reg [{x}:0] x;
    wire [{label}:0] label;
    wire [{scores}:0] scores;
    reg [{x}:0] row [0:{last}];
    reg [{label}:0] right_label [0:{last}];
    reg [{scores}:0] right_scores [0:{last}];
    integer i, wrong;

    {name} device ({port}.x(x), .label(label), .scores(scores));

    initial begin
{rows}        wrong = 0;
        for (i = 0; i < {count}{more}; i = i + 1) begin
{step}        end
        if (wrong == 0) $display("{name}: PASS, {count} rows");
        else $display("{name}: FAIL, %0d of {count} rows", wrong);
    end
endmodule
"""

CHECK = """            if ({guard}(label !== right_label[{i}] || scores !== right_scores[{i}])) begin
                wrong = wrong + 1;
                $display("{name}: row %0d: label %0d, should be %0d; scores %h, should be %h",
                         {i}, label, right_label[{i}], scores, right_scores[{i}]);
            end
"""


def testbench(name: str, ports: Interface, rows: np.ndarray, scores: np.ndarray) -> str:
    """Write the test bench of a module; the right answers come with the scores."""
    lines, size = "", ports.score
    for i, (x, right) in enumerate(zip(rows.tolist(), scores.tolist(), strict=True)):
        packed = sum(code << low for code, low in zip(x, ports.low, strict=True))
        lanes = sum((value % 2**size) << size * c for c, value in enumerate(right))
        lines += f"        row[{i}] = {ports.x}'h{packed:x};\n"
        lines += f"        right_label[{i}] = {ports.label}'d{int(np.argmax(right))};\n"
        lines += f"        right_scores[{i}] = {size * len(right)}'h{lanes:x};\n"
    wait, late = ports.latency, ports.latency - 1
    if wait:
        step = f"            x = row[i < {len(rows)} ? i : 0];\n            clk = 0;\n"
        step += "            #1 clk = 1;\n            #1;\n" + CHECK.format(
            name=name, guard=f"i >= {late} && ", i=f"i - {late}" if late else "i"
        )
    else:
        step = "            x = row[i];\n            #1;\n" + CHECK.format(name=name, guard="", i="i")
    return TEXT.format(
        name=name,
        count=len(rows),
        last=len(rows) - 1,
        x=ports.x - 1,
        label=ports.label - 1,
        scores=size * scores.shape[1] - 1,
        clock="    reg clk;\n" if wait else "",
        port=".clk(clk), " if wait else "",
        rows=lines,
        more=f" + {late}" if wait and late else "",
        step=step,
    )
