"""Runs rows through the Verilog of neural networks, and draws small networks whose layers are all different."""

import re

import numpy as np

from neural_nets import _inputs, _layer, _peak
from targets_host import simulate
from tinybayes.deploy.export import export, write_files
from tinybayes.model import NeuralNet, Variable

# Every row as soon as the module is ready. Between rows of a pipeline, x is unknown. A reset in the middle of a row
# must leave no trace.
DRIVER = """module drive_{name};
    reg clk, rst, start;
    reg [{x}:0] x, row [0:{rows} - 1];
    wire ready, done;
    wire [{label}:0] label;
    wire [{scores}:0] scores;
    integer i, asked;
    {name} device (.clk(clk), .rst(rst), .start(start), .ready(ready), .done(done),
        .x(x), .label(label), .scores(scores));
    initial begin
        $readmemh("{name}.hex", row);
        clk = 0;
        rst = 1;
        start = 1;
        x = row[0];
        for (i = 0; i < {early}; i = i + 1) begin
            #1 clk = 1;
            #1 clk = 0;
            rst = i == {early} - 2;
        end
        asked = 0;
        for (i = 1; i <= {clocks}; i = i + 1) begin
            start = asked < {rows};
            if (ready && start) begin
                x = row[asked];
                asked = asked + 1;
            end else if ({forgets}) x = {{{inputs}{{1'bx}}}};
            #1 clk = 1;
            #1 clk = 0;
            if (done !== 1'b0) $display("{name} %0d %0d %h", i, label, scores);
        end
    end
endmodule
"""


def timing(text):
    """Return the clocks that a row takes, and those from row to row, as the comment states them."""
    comment = " ".join(line.removeprefix("// ") for line in text.splitlines() if line.startswith("// "))
    latency = int(re.search(r"done is high for one clock, (\d+) clocks after start", comment)[1])
    interval = re.search(r"ready is high again (\d+) clocks later", comment)
    return latency, int(interval[1]) if interval else latency


def run_nets(directory, nets, rows, target):
    """Return (clocks, labels, scores) of each of these networks, by name, on its rows."""
    files, lanes = [], {}
    for name, net in nets.items():
        write_files(export(net, target, name=name, checks=0), directory)
        text = (directory / f"{name}.v").read_text()
        latency, interval = timing(text)
        low = [int(v) for v in re.findall(r"^//   x\[\d+:(\d+)\]", text, flags=re.MULTILINE)]
        sizes = re.findall(r"^    (?:input|output) wire \[(\d+):0\] (x|label|scores)\b", text, re.MULTILINE)[:3]
        x, label, scores = (int(size) for size, _ in sizes)
        lanes[name] = (scores + 1) // net.target.cardinality
        packed = [sum(v << at for v, at in zip(row, low, strict=True)) for row in rows[name].tolist()]
        (directory / f"{name}.hex").write_text("".join(f"{v:x}\n" for v in packed))
        count = len(packed)
        driver = DRIVER.format(
            name=name,
            x=x,
            inputs=x + 1,
            label=label,
            scores=scores,
            rows=count,
            early=2 + latency * 2 // 3,
            clocks=latency + (count - 1) * interval + 1,
            forgets=int(target == "verilog-pipelined"),
        )
        (directory / f"drive_{name}.v").write_text(driver)
        files += [f"{name}.v", f"drive_{name}.v"]
    answers = {name: [] for name in nets}
    for line in simulate(directory, *files).splitlines():
        name, *words = line.split()
        answers[name].append(words)
    return {name: _read(net, answers[name], lanes[name]) for name, net in nets.items()}


def _read(net, lines, bits):
    clocks, labels = (np.array([int(line[i]) for line in lines]) for i in (0, 1))
    classes = range(net.target.cardinality)
    words = [int(line[2], 16) for line in lines]
    lanes = np.array([[word >> c * bits & 2**bits - 1 for c in classes] for word in words], dtype=np.int64)
    return clocks, labels, np.where(lanes >> bits - 1, lanes - 2**bits, lanes)


def drawn_net(seed):
    """Draw a small network whose layers differ in bits, activations and sizes, half of them with convolutions."""
    rng = np.random.default_rng(seed)
    image = tuple(int(n) for n in rng.integers(2, 8, 2)) if seed % 2 else None
    cards = rng.integers(1, 20, int(np.prod(image)) if image else rng.integers(1, 9)).tolist()
    kind = "ordinal" if image else ["ordinal", "one-hot", "mixed", "some"][seed // 2 % 4]
    inputs = _inputs(rng, cards, kind, scaled=bool(rng.integers(2)))
    shape, before, layers = (*image, 1) if image else (len(inputs),), _peak(inputs, cards), []
    for _ in range(int(rng.integers(1 if image else 0, 4))):
        units, bits, activation = int(rng.integers(1, 6)), int(rng.integers(1, 9)), str(rng.choice(["relu", "sign"]))
        if len(shape) == 3 and min(shape[:2]) > 1 and (not layers or rng.integers(2)):
            codes, made = (3, 3, shape[2], units), (shape[0] // 2, shape[1] // 2, units)
        else:
            codes, made = (int(np.prod(shape)), units), (units,)
        layers.append(_layer(rng, codes, bits, activation, before))
        shape, before = made, activation
    classes, bits = int(rng.integers(1, 6)), int(rng.integers(1, 9))
    layers.append(_layer(rng, (int(np.prod(shape)), classes), bits, "none", before))
    variables = tuple(Variable(f"f {i}", tuple(range(k))) for i, k in enumerate(cards))
    target = Variable("the class", tuple(f"c{i}" for i in range(classes)))
    return NeuralNet(variables, target, inputs, tuple(layers), 0.01, image)
