"""Neural networks in Verilog: simulated modules say what Python says, at the clock that their comment states."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cases import WHOLE, exhaustive, whole
from neural_nets import kinds, neural_net, rows_of
from targets_host import simulate
from tinybayes import evaluate, read_dataset
from tinybayes.data import Discretization
from tinybayes.deploy.export import export, write_files
from tinybayes.errors import TinybayesError
from tinybayes.infer.neural_net import net_scores
from tinybayes.learn.training.nets import NetConfiguration, train_nets
from tinybayes.learn.training.options import TrainingOptions
from verilog_nets import drawn_net, run_nets, timing

BOTH = pytest.mark.parametrize("target", ["verilog", "verilog-pipelined"])
SLOW = ("wide", "wide 8 bits", "many classes", "conv", "conv conv", "conv signs", "conv 8 bits")


def check(directory, nets, rows, target):
    """Compare all answers, and the clocks of all answers."""
    for name, (clocks, labels, scores) in run_nets(directory, nets, rows, target).items():
        exact = net_scores(nets[name], rows[name])
        np.testing.assert_array_equal(scores, exact, err_msg=name)
        np.testing.assert_array_equal(labels, exact.argmax(axis=1), err_msg=name)
        latency, interval = timing((directory / f"{name}.v").read_text())
        assert clocks.tolist() == [latency + i * interval for i in range(len(exact))], name


def check_kinds(directory, target, count, keys):
    nets = {f"net{i}": net for i, (key, net) in enumerate(kinds().items()) if key in keys}
    check(directory, nets, {name: rows_of(net)[:count] for name, net in nets.items()}, target)


def check_drawn(directory, target, count, seeds):
    nets = {f"net{seed}": drawn_net(seed) for seed in seeds}
    rows = {name: rows_of(net, rows=count)[: count + 2] for name, net in nets.items()}
    check(directory, nets, rows, target)


@BOTH
def test_every_kind(tmp_path, target):
    check_kinds(tmp_path, target, 4, set(kinds()) - set(SLOW))


@BOTH
def test_layers_that_are_all_different(tmp_path, target):
    check_drawn(tmp_path, target, 3, range(14))


@pytest.mark.exhaustive
@BOTH
@pytest.mark.parametrize("key", [*list(kinds())[::2], *whole(*list(kinds())[1::2])])
def test_every_kind_on_every_state(tmp_path, target, key):
    check_kinds(tmp_path, target, 4 if key in SLOW else 40, [key])


@BOTH
@pytest.mark.parametrize("first", [*exhaustive(14), *whole(34, 54)])
def test_many_layers_that_are_all_different(tmp_path, target, first):
    check_drawn(tmp_path, target, 12, range(first, first + 20))


def test_drawn_networks_have_everything():
    """The tests above would say nothing about what no network has."""
    nets = [drawn_net(seed) for seed in range(14)]
    layers = [layer for net in nets for layer in net.layers]
    assert {layer.activation for layer in layers} == {"relu", "sign", "none"}
    assert {layer.bits for layer in layers} == set(range(1, 9))
    assert {len(net.layers) for net in nets} == {1, 2, 3, 4}
    assert {sum(layer.convolution for layer in net.layers) for net in nets} >= {0, 1, 2}
    activations = {tuple(layer.activation for layer in net.layers[:2]) for net in nets if len(net.layers) > 2}
    assert activations >= {("relu", "sign"), ("sign", "relu")}
    assert any(n % 2 for net in nets if net.image_shape for n in net.image_shape)
    assert any((net.inputs.multiplier < 0).any() for net in nets)


@BOTH
def test_the_test_bench_passes_and_can_fail(tmp_path, target):
    for name, net in (("dense", neural_net((4,), seed=1)), ("image", neural_net(((2,),), image=(3, 4), seed=2))):
        write_files(export(net, target, name=f"{name}_net", checks=9), tmp_path)
    files = [path.name for path in tmp_path.glob("*.v")]
    assert sorted(simulate(tmp_path, *files).splitlines()) == ["dense_net: PASS, 9 rows", "image_net: PASS, 9 rows"]
    for name, change in (("dense", r"score > highest"), ("image", r"fresh_3 \|\| |!south_\d+ && !east_\d+ \|\| ")):
        module = tmp_path / f"{name}_net.v"
        changed = re.sub(change, "" if name == "image" else "score < highest", module.read_text(), count=1)
        assert changed != module.read_text()
        module.write_text(changed)
    assert re.fullmatch(r"(dense|image)_net: FAIL.*\n(dense|image)_net: FAIL.*", _verdicts(simulate(tmp_path, *files)))


def _verdicts(text):
    return "\n".join(line for line in text.splitlines() if "FAIL" in line or "PASS" in line)


@BOTH
def test_a_module_that_is_late_fails_its_test_bench(tmp_path, target):
    write_files(export(neural_net((4,), seed=1), target, name="net", checks=9), tmp_path)
    bench = tmp_path / "net_tb.v"
    clocks = int(re.search(r"clocks < (\d+);", bench.read_text())[1])
    bench.write_text(bench.read_text().replace(f"clocks < {clocks};", f"clocks < {clocks - 1};"))
    assert simulate(tmp_path, "net.v", "net_tb.v") == "net: FAIL, 0 of 9 rows, 8 answered\n"


@BOTH
def test_text_is_neat_and_the_same_every_time(target):
    for net in (drawn_net(3), drawn_net(4), neural_net((5,), states=[300, 4, 2])):
        files = export(net, target, name="net")
        assert files == export(net, target, name="net")
        for file, content in files.items():
            assert content.endswith("\n")
            assert not content.endswith("\n\n")
            lines = content.splitlines()
            assert [line for line in lines if line != line.rstrip() or "\t" in line] == []
            if file == "net.v":
                assert [line for line in lines if (len(line) - len(line.lstrip(" "))) % 4] == []
                assert "Rows must be complete." in content


@BOTH
def test_what_is_refused(monkeypatch, target):
    net = neural_net((4,))
    with pytest.raises(TinybayesError, match="expected no raw measurements in Verilog"):
        export(net, target, raw="float")
    with pytest.raises(TinybayesError, match="expected a name that no language reserves"):
        export(net, target, name="endmodule")
    assert list(export(net, target, checks=0)) == ["model.v"]
    monkeypatch.setattr("tinybayes.deploy.programs.verilog_net.MAX_WEIGHTS", 39)
    with pytest.raises(TinybayesError, match="verilog: expected at most 39 weights, got 40; export to C"):
        export(net, target)


@pytest.mark.exhaustive
@BOTH
@pytest.mark.parametrize("kind", ["dense", "conv"])
def test_a_network_that_learned_digits(tmp_path, target, kind):
    data = read_dataset(
        load_digits(as_frame=True).frame, target="target", discretization=Discretization(discretizer="grid", n_bins=128)
    )
    options = {"dense": {"hidden": (16,), "bits": 3}, "conv": {"hidden": (4,), "bits": 4}}[kind]
    run = NetConfiguration(kind=kind, learning_rate=1e-2, **options)
    (trained,) = train_nets(data, [run], TrainingOptions(epochs=20, batch_size=50))
    check(tmp_path, {"digits": trained.net}, {"digits": data.X[::60]}, target)
    assert evaluate(trained.net, data).error < 0.1


@WHOLE
@pytest.mark.exhaustive
@BOTH
@pytest.mark.parametrize("seed", [3, 4])
def test_what_yosys_makes_of_it_passes_the_test_bench(tmp_path, target, seed):
    if shutil.which("yosys") is None:
        pytest.skip("no yosys on this machine")
    write_files(export(drawn_net(seed), target, name="net", checks=5), tmp_path)
    script = "read_verilog net.v; synth -flatten -top net; check -assert; write_verilog -noattr gates.v"
    done = subprocess.run(["yosys", "-q", "-p", script], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    command = ["iverilog", "-g2001", "-o", "gates", "gates.v", "net_tb.v"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run(["vvp", "gates"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "net: PASS" in said
