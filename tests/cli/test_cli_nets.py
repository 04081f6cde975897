"""The command line on neural nets: what predicts takes them, what asks for distributions refuses them."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from cli_host import fails, run
from neural_nets import neural_net, rows_of
from tinybayes import save
from tinybayes.cost import model_cost
from tinybayes.infer.neural_net import net_scores
from zoo import hand_circuit

emulated = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")), reason="no emulated boards here"
)


@pytest.fixture(scope="module")
def net():
    return neural_net((6,), bits=3, states=[3, 4, 2], classes=3)


@pytest.fixture(scope="module")
def place(tmp_path_factory, net):
    folder = tmp_path_factory.mktemp("nets")
    save(net, folder / "net.tb", metadata={"test_error": 0.25})
    save(hand_circuit(), folder / "circuit.tb")
    X = rows_of(net)
    labels = net_scores(net, X).argmax(axis=1)
    frame = pd.DataFrame({v.name: X[:, i] for i, v in enumerate(net.variables)})
    frame[net.target.name] = [net.target.states[k] for k in labels]
    frame.to_csv(folder / "rows.csv", index=False)
    return folder


def test_evaluate(place, net):
    result = json.loads(run("evaluate", "net.tb", "rows.csv", "--json", cwd=place).stdout)
    assert result["error"] == 0
    assert result["cost"] == model_cost(net).to_dict()
    assert f"Price: {model_cost(net)}." in run("evaluate", "net.tb", "rows.csv", cwd=place).stdout


def test_predict(place, net):
    run("predict", "net.tb", "rows.csv", "-o", "out.csv", "--proba", cwd=place)
    found = pd.read_csv(place / "out.csv")
    assert found["the class"].tolist() == pd.read_csv(place / "rows.csv")["the class"].tolist()
    scores = net_scores(net, rows_of(net)) * net.scale
    wanted = np.exp(scores - scores.max(axis=1, keepdims=True))
    wanted /= wanted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[[f"p(c{k})" for k in range(3)]], wanted, atol=1e-9)


def test_info(place, net):
    shown = run("info", "net.tb", cwd=place).stdout
    assert all(word in shown for word in ("dense", "relu", "test_error", "multiply-accumulates"))
    told = json.loads(run("info", "net.tb", "--json", cwd=place).stdout)
    assert [(layer["units"], layer["bits"]) for layer in told["layers"]] == [(6, 3), (3, 3)]
    assert told["inputs"] == {"states": 0, "numbers": 3}
    assert told["cost"]["bits"] == model_cost(net).bits


def test_convert(place):
    assert "Wrote 4 variables" in run("convert", "net.tb", "copy.tb", cwd=place).stdout
    fails("convert", "net.tb", "net.bif", cwd=place, message="got a neural net; write it as .tb")


def test_what_needs_a_distribution_refuses(place):
    fails("query", "net.tb", "f 0=1", cwd=place, message="expected a model of a distribution over its variables")
    fails("tie", "net.tb", "--levels", "4", "-o", "t.tb", cwd=place, message="expected a model of a distribution")
    fails("infer", "net.tb", cwd=place, message="expected a model of a distribution")


@pytest.mark.parametrize("target", ["c", "cpp", "arduino", "micropython", "onnx"])
def test_export(place, tmp_path, target):
    if target == "onnx":
        pytest.importorskip("onnx", reason="onnx is not installed")
    said = run("export", "net.tb", "--to", target, "-o", tmp_path, cwd=place).stdout
    assert "Now try:" in said
    assert any(tmp_path.iterdir())
    if target == "c":
        assert "Error on test rows: 25.00 %." in (tmp_path / "net.h").read_text()


def test_verilog(place, tmp_path):
    out = run("export", "net.tb", "--to", "verilog-pipelined", "-o", tmp_path, cwd=place).stdout
    assert f"iverilog -g2001 -o net_tb {tmp_path}/net.v {tmp_path}/net_tb.v && vvp net_tb" in " ".join(out.split())
    fails("export", "net.tb", "--to", "verilog", "--raw", "int", "-o", "out", cwd=place, message="no raw measurements")


def test_options_of_circuits_are_refused(place):
    fails("export", "net.tb", "--query", "f 0", "-o", "out", cwd=place, message="--query: expected a circuit")


@emulated
@pytest.mark.parametrize(("file", "options"), [("net.tb", []), ("circuit.tb", []), ("circuit.tb", ["--query", "a"])])
def test_measure(place, tmp_path, file, options):
    out = run("export", file, "--measure", *options, "-o", tmp_path, "--json", cwd=place).stdout
    small, large = json.loads(out)["boards"]
    assert 0 < large["instructions"] < small["instructions"]
    assert (small["ram"] == 0) == (file == "net.tb")
