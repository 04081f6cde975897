"""Neural networks as Verilog-2001: one multiplication a clock, or a pipeline with one unit of each layer a clock."""

from math import prod

from tinybayes.deploy.programs.plan import make_plan, rows_with_every_state
from tinybayes.deploy.programs.verilog_layers import layered_design
from tinybayes.deploy.programs.verilog_ports import Ports, signed_bits
from tinybayes.deploy.programs.verilog_serial import serial_design
from tinybayes.errors import error
from tinybayes.infer.neural_net import net_scores
from tinybayes.model import NeuralNet

MAX_WEIGHTS = 2**18  # each is a line, or a part of one

CONTROL = ("input wire clk", "input wire rst", "input wire start", "output wire ready", "output wire done")

TEST_BENCH = """// Checks {name} on {count} rows: iverilog -g2001 -o {name}_tb {name}.v {name}_tb.v && vvp {name}_tb
module {name}_tb;
    reg clk, rst, start;
    wire ready, done;
    reg [{x}:0] x;
    wire [{label}:0] label;
    wire [{scores}:0] scores;
    reg [{x}:0] row [0:{last}];
    reg [{label}:0] right_label [0:{last}];
    reg [{scores}:0] right_scores [0:{last}];
    integer clocks, asked, answered, wrong;

    {name} device (.clk(clk), .rst(rst), .start(start), .ready(ready), .done(done),
        .x(x), .label(label), .scores(scores));

    initial begin
{rows}        asked = 0;
        answered = 0;
        wrong = 0;
        clk = 0;
        rst = 1;
        start = 0;
        #1 clk = 1;
        #1 clk = 0;
        rst = 0;
        // As many clocks as all rows take.
        for (clocks = 0; clocks < {clocks}; clocks = clocks + 1) begin
            #1 start = ready === 1'b1 && asked < {count};
            if (start) begin
                x = row[asked];
                asked = asked + 1;
            end{between}
            #1 clk = 1;
            #1 clk = 0;
            if (done === 1'b1) begin
                if (label !== right_label[answered] || scores !== right_scores[answered]) begin
                    wrong = wrong + 1;
                    $display("{name}: row %0d: label %0d, should be %0d; scores %h, should be %h",
                             answered, label, right_label[answered], scores, right_scores[answered]);
                end
                answered = answered + 1;
            end
        end
        if (wrong == 0 && answered == {count}) $display("{name}: PASS, {count} rows");
        else $display("{name}: FAIL, %0d of {count} rows, %0d answered", wrong, answered);
    end
endmodule
"""


def net_to_verilog(net: NeuralNet, *, name: str, note: str, pipelined: bool, checks: int) -> dict[str, str]:
    """Write a neural network as a module, with a test bench that checks itself, as `to_verilog` says.

    The scores are those of `tinybayes.infer.neural_net.net_scores`, bit for bit.
    """
    plan = make_plan(net)
    weights = sum(prod(layer.codes.shape) for layer in net.layers)
    if weights > MAX_WEIGHTS:
        remedy = "export to C, or train a smaller net"
        raise error(f"at most {MAX_WEIGHTS:,} weights", f"{weights:,}", where="verilog", remedy=remedy)
    ports = Ports(net.variables, net.target, signed_bits(net.reach[-1]))
    if pipelined:
        body, latency, interval = layered_design(net, ports, name)
        comment = [
            "Each layer computes one unit in each clock (of one pixel, in a convolution), while others work on other",
            "rows. Set start for a clock while ready is high; x is taken with it. ready is high again",
            f"{interval} clocks later. done is high for one clock, {latency} clocks after start; label and scores are",
            "valid in that clock. rst is synchronous.",
        ]
    else:
        body, latency = serial_design(net, ports)
        interval = latency
        comment = [
            "One multiplication in each clock. Set start for a clock while ready is high, and keep x until done.",
            f"done is high for one clock, {latency} clocks after start; label and scores stay until the next start.",
            "rst is synchronous.",
        ]
    head = ports.head(name, plan.facts(note), comment, CONTROL)
    files = {f"{name}.v": head + body}
    if checks:
        rows = rows_with_every_state(tuple(v.cardinality for v in net.variables), checks)
        files[f"{name}_tb.v"] = TEST_BENCH.format(
            name=name,
            count=len(rows),
            last=len(rows) - 1,
            x=ports.inputs - 1,
            label=ports.label - 1,
            scores=ports.outputs - 1,
            rows=ports.right(rows.tolist(), net_scores(net, rows).tolist()),
            clocks=latency + (len(rows) - 1) * interval,
            # A pipeline takes a row with its start; what is there afterwards must not matter.
            between=f" else x = {{{ports.inputs}{{1'bx}}}};" if pipelined else "",
        )
    return files
