"""Clocks and cells of neural networks in Verilog, synthesised by Yosys for an iCE40: python benchmarks/verilog.py."""

import json
import re
import subprocess
import tempfile
from pathlib import Path

from harness import provenance
from sklearn.datasets import load_digits

from tinybayes import export, read_dataset
from tinybayes.data import Discretization
from tinybayes.learn.training.nets import NetConfiguration, train_nets
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.model import NeuralNet

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = "read_verilog digits.v; synth_ice40 -top digits; check -assert; stat"
NETS = {
    "dense, 32 sign units, 2 bits": NetConfiguration(hidden=(32,), bits=2, activation="sign"),
    "dense, 16 relu units, 3 bits": NetConfiguration(hidden=(16,), bits=3),
    "convolution, 4 relu channels, 3 bits": NetConfiguration(kind="conv", hidden=(4,), bits=3),
}
EPOCHS = 100


def run(*command: str, cwd: str) -> str:
    """Return what a command prints."""
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout


def clocks(text: str) -> dict[str, int]:
    """Return the clocks that the comment of a module states."""
    comment = " ".join(re.findall(r"^// (.*)", text, re.MULTILINE))
    latency = int(re.findall(r"(\d+) clocks after start", comment)[0])
    interval = re.findall(r"ready is high again (\d+) clocks", comment)
    return {"latency": latency, "interval": int(interval[0]) if interval else latency}


def measured(net: NeuralNet, target: str) -> dict[str, int]:
    """Simulate the module against Python, and synthesise it."""
    with tempfile.TemporaryDirectory() as directory:
        files = export(net, to=target, output=directory, name="digits")
        run("iverilog", "-g2001", "-o", "bench", "digits.v", "digits_tb.v", cwd=directory)
        assert "digits: PASS" in run("vvp", "bench", cwd=directory)
        said = run("yosys", "-p", SCRIPT, cwd=directory)
    cells = re.findall(r"^ +(SB_\w+) +(\d+)$", said[said.rindex("Number of cells") :], re.MULTILINE)
    count = {
        kind: sum(int(n) for cell, n in cells if cell.startswith(kind)) for kind in ("SB_LUT4", "SB_DFF", "SB_RAM")
    }
    named = {"lut4": count["SB_LUT4"], "flip_flops": count["SB_DFF"], "ram_blocks": count["SB_RAM"]}
    return clocks(str(files["digits.v"])) | named


def main() -> None:
    data = read_dataset(
        load_digits(as_frame=True).frame, target="target", discretization=Discretization(discretizer="grid", n_bins=128)
    )
    results = []
    for name, configuration in NETS.items():
        (trained,) = train_nets(data, [configuration], TrainingOptions(epochs=EPOCHS))
        net = trained.net
        assert net is not None
        facts = {"net": name, "weights": sum(layer.codes.size for layer in net.layers)}
        for target in ("verilog", "verilog-pipelined"):
            results.append(facts | {"target": target} | measured(net, target))
            print(results[-1], flush=True)
    version = run("yosys", "-V", cwd=str(ROOT)).strip()
    path = ROOT / "benchmarks" / "results" / "verilog.json"
    made = provenance(["jax", "numpy"]) | {"yosys": version, "script": SCRIPT}
    path.write_text(json.dumps({**made, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
