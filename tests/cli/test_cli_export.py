import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

from cli_host import fails, run
from tinybayes import Fixed, learn_classifier, load, model_cost, quantize, read_dataset, save
from tinybayes.deploy.export import TARGETS, export
from tinybayes.infer.calibration import calibrate
from tinybayes.infer.integers import integer_log_joint
from zoo import hand_circuit


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    frame = load_iris(as_frame=True).frame.rename(columns={"target": "species"})
    data = read_dataset(frame, target="species")
    net = learn_classifier(data)
    save(net, folder / "floats.tb")
    save(quantize(net, Fixed(3, 1)), folder / "iris-4 bits.tb", metadata={"trained": {"training_error": 0.0566}})
    save(quantize(net, Fixed(3, 1)), folder / "7up.tb")
    save(hand_circuit(), folder / "circuit.tb")
    np.save(folder / "X.npy", data.X)
    return folder


@pytest.mark.parametrize("target", TARGETS)
def test_files_are_those_of_the_package(place, tmp_path, target):
    said = run("export", "iris-4 bits.tb", "--to", target, "-o", tmp_path / "new" / "folder", cwd=place).stdout
    net = load(place / "iris-4 bits.tb")
    files = export(net, target, name="iris_4_bits", note="Error on the training rows: 5.66 %.")
    written = {p.name: p.read_bytes() for p in (tmp_path / "new" / "folder").iterdir()}
    assert written == {f: c.encode() if isinstance(c, str) else c for f, c in files.items()}
    for file, content in written.items():
        assert f"{file}" in said
        assert f"{len(content):,}" in said
    assert f"Price: {model_cost(net)}." in said
    assert "Now try:" in said


def test_json_tells_the_files_and_the_price(place, tmp_path):
    out = run("export", "7up.tb", "--to", "c", "--raw", "int", "-o", tmp_path, "--json", cwd=place).stdout
    figures = json.loads(out)
    assert figures["name"] == "model"  # no C identifier begins with 7
    assert figures["files"] == {p.name: p.stat().st_size for p in tmp_path.iterdir()}
    assert figures["cost"]["bits"] == model_cost(load(place / "7up.tb")).bits
    assert "int32_t value[4]" in (tmp_path / "model.h").read_text()
    assert "Error" not in (tmp_path / "model.h").read_text()


def test_the_code_for_missing_values_can_be_left_out(place, tmp_path):
    for option, words in (((), "Missing values are summed out."), (("--no-gaps",), "Rows must be complete.")):
        run("export", "7up.tb", *option, "-o", tmp_path, cwd=place)
        assert words in (tmp_path / "model.h").read_text()
        assert ("MODEL_MISSING" in (tmp_path / "model.h").read_text()) == (not option)


def test_the_module_predicts_what_the_model_predicts(place, tmp_path):
    run("export", "7up.tb", "--to", "micropython", "--name", "small", "-o", tmp_path, cwd=place)
    X = np.load(place / "X.npy")
    code = f"import small; print([small.predict(x) for x in {X.tolist()}])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    labels = integer_log_joint(load(place / "7up.tb"), X)[0].argmax(axis=1)
    assert json.loads(done.stdout) == labels.tolist()


def test_what_cannot_be_exported_leaves_no_file(place):
    fails("export", "floats.tb", "--to", "verilog", "-o", "out", cwd=place, message="expected a model in fixed point")
    fails("export", "7up.tb", "--to", "rust", "-o", "out", cwd=place, message="expected one of c, cpp, arduino")
    fails("export", "7up.tb", "--name", "while", "-o", "out", cwd=place, message="a name that no language reserves")
    fails("export", "7up.tb", "--raw", "text", "-o", "out", cwd=place, message="expected one of float, int, none")
    fails("export", "7up.tb", "-o", "X.npy", cwd=place, message="--output: expected a directory")
    fails("export", "7up.tb", "--to", "cpp", "--measure", "-o", "out", cwd=place, message="--measure: expected --to c")
    fails("export", "circuit.tb", "--to", "onnx", "-o", "out", cwd=place, message="expected a Bayesian network")


def test_circuits_in_c_and_cpp(place, tmp_path):
    first = load(place / "circuit.tb").variables[0].name
    asked = ("export", "circuit.tb", "--query", first, "--arithmetic", "float", "-o", tmp_path)
    assert "circuit.h" in run(*asked, cwd=place).stdout
    assert "float" in (tmp_path / "circuit.c").read_text()
    fails("export", "7up.tb", "--query", first, "-o", "out", cwd=place, message="--query: expected a circuit")
    other = ("export", "circuit.tb", "--to", "onnx", "--query", first, "-o", "out")
    wanted = "c or cpp or arduino or javascript"
    fails(*other, cwd=place, message=f"query: expected the target {wanted}, got onnx; leave query out")
    run("export", "circuit.tb", "--to", "cpp", "--query", first, "--no-gaps", "-o", tmp_path, cwd=place)
    assert "Rows must be complete." in (tmp_path / "circuit.hpp").read_text()


@pytest.fixture(scope="module")
def calibrated(place):
    """A table of rows with noisy classes, and a model file that holds its calibration."""
    frame = load_iris(as_frame=True).frame.rename(columns={"target": "species"})
    noise = np.random.default_rng(0)
    frame["species"] = np.where(noise.random(150) < 0.25, noise.integers(0, 3, 150), frame["species"])
    frame.to_csv(place / "rows.csv", index=False)
    net = load(place / "7up.tb")
    found = calibrate(net, read_dataset(place / "rows.csv", like=net))
    save(net, place / "calibrated.tb", metadata={"calibration": found.to_metadata(), "validation_error": 0.125})
    return found


def test_a_margin_for_a_wanted_error(place, tmp_path, calibrated):
    options = ("--reject-error", 0.15, "--name", "net")
    for more in (("7up.tb", "--validation", "rows.csv"), ("calibrated.tb",)):
        said = run("export", *more, *options, "-o", tmp_path, cwd=place).stdout
        margin = calibrated.rejecting(0.15).chosen
        expected = f"The margin rejects {100 * margin.rejected:.2f} % of them; {100 * margin.error:.2f} % of the others"
        assert expected in " ".join(said.split())
        header = (tmp_path / "net.h").read_text()
        assert f"#define NET_MARGIN {round(margin.nats * 1024)}\n" in header
        assert f"temperature {calibrated.temperature:.4g} (fitted on 150 validation rows)" in header
    assert "Error on validation rows: 12.50 %." in header
    shown = json.loads(run("export", "calibrated.tb", "--json", "-o", tmp_path, cwd=place).stdout)
    assert shown["calibration"] == calibrated.to_metadata()
    assert "MARGIN" not in (tmp_path / "calibrated.h").read_text()
    run("export", "7up.tb", "--no-extras", "--name", "bare", "-o", tmp_path, cwd=place)
    assert "selftest" not in (tmp_path / "bare.h").read_text()


def test_margins_that_no_rows_give(place, calibrated):
    best = f"expected at least {calibrated.best:.4g}, the smallest error that a margin leaves in 150 validation rows"
    low = ("--reject-error", calibrated.best / 2)
    fails("export", "calibrated.tb", *low, "-o", "out", cwd=place, message=best)
    fails("export", "7up.tb", "--validation", "rows.csv", *low, "-o", "out", cwd=place, message=best)
    message = "--reject-error: expected --validation TABLE, got none"
    fails("export", "7up.tb", "--reject-error", 0.1, "-o", "out", cwd=place, message=message)
    message = "reject error: expected an error from 0 to 1, got 2"
    fails("export", "calibrated.tb", "--reject-error", 2, "-o", "out", cwd=place, message=message)
    other = ("export", "7up.tb", "--to", "onnx", "--validation", "rows.csv", "-o", "out")
    fails(*other, cwd=place, message="--validation: expected a classifier and --to c or cpp or arduino, got onnx")
    other = ("export", "circuit.tb", "--validation", "rows.csv", "-o", "out")
    fails(*other, cwd=place, message="got a circuit; leave it out")
    run("export", "calibrated.tb", "--to", "micropython", "-o", place / "module", cwd=place)


def test_help(place):
    shown = run("export", "--help", cwd=place).stdout
    assert all(word in shown for word in ("--to", "--name", "--raw", "--measure", "Example: tinybayes export"))
