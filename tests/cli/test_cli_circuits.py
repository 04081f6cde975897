"""`tinybayes learn-circuit`: what it saves, its checkpoints, what an interrupt leaves, bad input."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from cli_host import fails, run
from tinybayes import CircuitClassifier, CircuitDensity, export, learn_latent_tree, load, read_dataset
from tinybayes.cost import model_cost
from tinybayes.deploy.files.native import load_metadata
from tinybayes.infer.alarm import from_metadata
from tinybayes.infer.circuit import conditional
from tinybayes.learn.circuits import learn_ac
from tinybayes.model import BayesNet, Circuit
from tinybayes.report import progress

LEARN = ("learn-circuit", "t.csv", "-o", "m.tb")


@pytest.fixture
def place(tmp_path):
    generator = np.random.default_rng(0)
    a = generator.integers(0, 2, 600)
    b = np.where(generator.random(600) < 0.9, a, 1 - a)
    c = np.where(generator.random(600) < 0.8, a ^ b, generator.integers(0, 2, 600))
    d = np.where(generator.random(600) < 0.7, b + c, generator.integers(0, 3, 600))
    frame = pd.DataFrame({"a": a, "b": np.array(["no", "yes"])[b], "c": c, "d": d, "h": a + generator.normal(size=600)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path


@pytest.fixture
def frame(place):
    return pd.read_csv(place / "t.csv")


def test_it_saves_what_the_estimator_learns(place, frame):
    shown = run(*LEARN, cwd=place).stdout
    saved = load(place / "m.tb")
    density = CircuitDensity().fit(frame)
    assert saved == density.circuit_
    assert f"a circuit of {saved.n_edges:,} edges from 600 rows" in shown
    assert "Saved to m.tb. Now try: tinybayes query m.tb" in shown
    answer = run("query", "m.tb", "b=yes | a=0, h=0.5", cwd=place).stdout
    assert float(answer.split("= ")[-1]) == pytest.approx(density.query({"b": "yes"}, {"a": 0, "h": 0.5}), rel=1e-9)


def test_a_class_makes_a_classifier(place, frame):
    run(*LEARN, "--target", "b", cwd=place)
    saved = load(place / "m.tb")
    model = CircuitClassifier().fit(frame.drop(columns="b"), frame["b"])
    assert saved.target.name == "b"
    assert saved.variables == model.circuit_.variables
    np.testing.assert_array_equal(saved.children, model.circuit_.children)
    np.testing.assert_array_equal(saved.table, model.circuit_.table)


def test_every_option_reaches_the_learner(place, frame):
    options = "--edge-price 0.3 --parameter-price 0.5 --method greedy --smoothing 2 --max-edges 150"
    run(*LEARN, *options.split(), "--discretizer", "uniform", "--n-bins", "4", "--drop", "c", cwd=place)
    wanted = CircuitDensity(0.3, 0.5, method="greedy", smoothing=2, max_edges=150, discretizer="uniform", n_bins=4)
    assert load(place / "m.tb") == wanted.fit(frame.drop(columns="c")).circuit_
    trained = load_metadata(place / "m.tb")["trained"]
    assert trained["method"] == "greedy"
    assert trained["edge_price"] == 0.3
    frame.assign(w=np.arange(600) % 3).to_csv(place / "t.csv", index=False)
    run(*LEARN, "--weight", "w", cwd=place)
    assert load(place / "m.tb") == CircuitDensity().fit(frame, sample_weight=np.arange(600) % 3).circuit_


def test_numbers_for_machines(place):
    done = run(*LEARN, "--json", cwd=place)
    figures = json.loads(done.stdout)
    saved = load(place / "m.tb")
    assert isinstance(saved, Circuit)
    assert model_cost(saved).to_dict().items() <= figures.items()
    assert (figures["rows"], figures["complete"], figures["output"]) == (600, True, "m.tb")
    assert figures["score"] == pytest.approx(600 * figures["log_likelihood"] - 0.1 * saved.n_edges)
    assert done.stderr == ""
    assert load_metadata(place / "m.tb")["trained"]["splits"] == figures["splits"] > 0


def test_trees_only(place):
    figures = json.loads(run(*LEARN, "--trees-only", "--json", cwd=place).stdout)
    net = load(place / "m.tb")
    assert isinstance(net, BayesNet)
    assert any(cpd.tree is not None for cpd in net.cpds)
    assert figures["parameter_price"] == 1.0
    assert model_cost(net).to_dict().items() <= figures.items()
    run(*LEARN, "--trees-only", "--parameter-price", "1e9", cwd=place)
    assert all(cpd.tree is None for cpd in load(place / "m.tb").cpds)
    assert "Learned decision trees" in run(*LEARN, "--trees-only", "--target", "b", cwd=place).stdout
    for option in (("--edge-price", "1"), ("--method", "quick"), ("--max-edges", "9"), ("--checkpoint", "c")):
        message = f"{option[0]}: expected no options of circuits with --trees-only"
        fails(*LEARN[:2], "-o", "n.tb", "--trees-only", *option, cwd=place, message=message)


@pytest.fixture
def interrupted(monkeypatch):
    """Ctrl-C at the first report, with few candidates looked at before it."""
    monkeypatch.setattr(learn_ac, "LOOKS", 20)

    class Watch:
        def __init__(self, show):
            pass

        def __enter__(self):
            return lambda growth: os.kill(os.getpid(), signal.SIGINT)

        def __exit__(self, *problem):
            pass

    monkeypatch.setattr(progress, "growth_progress", Watch)


def test_an_interrupt_saves_the_circuit_so_far_and_says_so(place, interrupted):
    before = signal.getsignal(signal.SIGINT)
    done = run(*LEARN, "--edge-price", "0.01", cwd=place, code=130)
    assert done.stderr.count("\n") == 1
    assert "An interrupt ended the growth after" in done.stderr
    assert "Saved to m.tb" in done.stdout
    assert load_metadata(place / "m.tb")["trained"]["complete"] is False
    assert signal.getsignal(signal.SIGINT) is before
    figures = json.loads(run(*LEARN, "--edge-price", "0.01", "--json", cwd=place, code=130).stdout)
    assert figures["complete"] is False
    assert isinstance(load(place / "m.tb"), Circuit)


@pytest.mark.parametrize("method", ["quick", "greedy"])
def test_a_checkpoint_leads_to_the_circuit_of_an_uninterrupted_run(place, interrupted, monkeypatch, method):
    resumable = (*LEARN, "--edge-price", "0.02", "--method", method, "--checkpoint", "c.ckpt")
    done = run(*resumable, cwd=place, code=130)
    assert "run the same command again to continue from c.ckpt" in done.stderr
    first = load_metadata(place / "m.tb")["trained"]["splits"]
    run(*resumable, cwd=place, code=130)
    second = load_metadata(place / "m.tb")["trained"]["splits"]
    monkeypatch.undo()
    run(*resumable, cwd=place)
    resumed, figures = load(place / "m.tb"), load_metadata(place / "m.tb")["trained"]
    run(*LEARN, "--edge-price", "0.02", "--method", method, cwd=place)
    whole, wanted = load(place / "m.tb"), load_metadata(place / "m.tb")["trained"]
    assert 0 <= first < second < figures["splits"] == wanted["splits"]
    np.testing.assert_array_equal(resumed.table, whole.table)
    assert resumed.n_edges == whole.n_edges
    assert figures["score"] == pytest.approx(wanted["score"])


def test_a_checkpoint_of_other_data_or_prices_is_refused(place, frame):
    run(*LEARN, "--checkpoint", "c.ckpt", cwd=place)
    (place / "m.tb").unlink()
    same = (*LEARN, "--checkpoint", "c.ckpt")
    fails(*same, "--edge-price", "0.2", cwd=place, message="c.ckpt: expected a checkpoint with edge_price 0.2, got one")
    frame.iloc[1:].to_csv(place / "t.csv", index=False)
    fails(*same, cwd=place, message="c.ckpt: expected a checkpoint of the same data, got one of other data; choose")
    fails(*LEARN, "--checkpoint", "t.csv", cwd=place, message="t.csv: expected a checkpoint")
    fails(*LEARN, "--checkpoint", "no/c.ckpt", cwd=place, message="--checkpoint: expected a file in a directory")


def test_a_time_limit_is_no_error(place, monkeypatch):
    monkeypatch.setattr(learn_ac, "LOOKS", 1)
    done = run(*LEARN, "--seconds", "1e-9", "--edge-price", "0.01", cwd=place)
    assert "more splits would have paid" in done.stdout
    assert done.stderr == ""
    assert load_metadata(place / "m.tb")["trained"]["complete"] is False


@pytest.mark.exhaustive
def test_as_a_process_of_its_own_with_a_real_interrupt(tmp_path):
    """A growth that takes minutes, Ctrl-C after the checkpoint is there: exit code 130, and a model."""
    generator = np.random.default_rng(0)
    hidden = generator.integers(0, 2, (4000, 6))
    X = hidden[:, generator.integers(0, 6, 60)] ^ (generator.random((4000, 60)) < 0.2)
    np.savez(tmp_path / "t.npz", X=X)
    command = [sys.executable, "-m", "tinybayes", "learn-circuit", "t.npz", "--edge-price", "0.001", "-o", "m.tb"]
    process = subprocess.Popen(
        [*command, "--checkpoint", "c"], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        for _ in range(600):
            if (tmp_path / "c").exists() or process.poll() is not None:
                break
            try:
                process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "An interrupt ended the growth" in err
    assert "Saved to m.tb" in out
    assert load(tmp_path / "m.tb").n_edges > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--edge-price=-0.1",), "--edge-price: expected at least 0, got -0.1"),
        (("--edge-price", "nan"), "--edge-price"),
        (("--parameter-price=-1",), "--parameter-price: expected at least 0"),
        (("--method", "fast"), "--method: expected one of quick, greedy, latent, got 'fast'"),
        (("--smoothing", "0"), "--smoothing: expected above 0"),
        (("--max-edges", "0"), "--max-edges: expected at least 1"),
        (("--seconds", "0"), "--seconds: expected above 0"),
        (("--n-bins", "1"), "--n-bins: expected 2 to 65536"),
        (("--discretizer", "magic"), "discretizer: expected"),
        (("--discretizer", "mdlp"), "a class to discretise by"),
        (("--discretizer", "none"), "at most 62 distinct values"),
        (("--target", "zz"), "expected a column 'zz'"),
        (("--target", "h"), "choose a column of classes as the target"),
        (("--drop", "zz"), "--drop"),
        (("-o", "no/such/m.tb"), "directory"),
    ],
)
def test_bad_options_write_nothing(place, options, message):
    fails("learn-circuit", "t.csv", "-o", "n.tb", "--checkpoint", "n.ckpt", *options, cwd=place, message=message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "bad.csv"),
        ("a,b\n", "at least one row"),
        ("a,b\n0,1\n,1\n1,0\n", "expected rows without missing values"),
        ("a,b\ninf,1\n0,1\n", "infinity"),
    ],
)
@pytest.mark.parametrize("extra", [(), ("--trees-only",)])
def test_bad_tables_write_nothing(tmp_path, text, message, extra):
    (tmp_path / "bad.csv").write_text(text)
    fails("learn-circuit", "bad.csv", "-o", "n.tb", *extra, cwd=tmp_path, message=message)


def test_a_rate_of_false_alarms_makes_a_detector_that_is_exported(place, frame):
    shown = run(*LEARN, "--false-alarm-rate", "0.1", cwd=place).stdout
    alarm = from_metadata(load_metadata(place / "m.tb"))
    assert (alarm.rate, alarm.rows, alarm.unseen) == (0.1, 120, pytest.approx(np.log(601)))
    assert f"Alarm below a log-likelihood of {alarm.threshold:.4f}: 10 % of 120 held-out rows." in shown
    assert "from 480 rows" in shown
    circuit = load(place / "m.tb")
    below = circuit.log_likelihood(read_dataset(place / "t.csv", like=circuit).X) < alarm.threshold
    assert 0.04 < below.mean() < 0.16
    assert "tinybayes predict m.tb TABLE -o alarms.csv" in shown
    odd = pd.read_csv(place / "t.csv", dtype=str)
    odd.iloc[0, 0], odd.iloc[1, 0] = "never seen", None
    odd.to_csv(place / "odd.csv", index=False)
    run("predict", "m.tb", "odd.csv", "-o", "alarms.csv", cwd=place)
    told = pd.read_csv(place / "alarms.csv")
    assert told["alarm"][2:].tolist() == below[2:].tolist()
    assert told["alarm"][0]
    assert told["blame"][0] == odd.columns[0]
    assert told["blame"].notna().tolist() == told["alarm"].tolist()
    rows = read_dataset(place / "odd.csv", like=circuit).X[2:][below[2:]]
    given = np.full_like(rows[:1], -1)
    for row, name in zip(rows, told["blame"][2:][below[2:]], strict=True):  # each value alone, the others as evidence
        logs = []
        for v in range(len(row)):
            query, evidence = given.copy(), row[None].copy()
            query[0, v], evidence[0, v] = row[v], -1
            logs.append(conditional(circuit, query, evidence)[0])
        assert name == circuit.variables[int(np.argmin(logs))].name
    assert told["log_likelihood"][1] == pytest.approx(
        circuit.log_likelihood(read_dataset(place / "odd.csv", like=circuit).X[1:2])[0]
    )
    fails("predict", "m.tb", "odd.csv", "--proba", "-o", "x.csv", cwd=place, message="--proba: expected a model with a")
    run("export", "m.tb", "-o", "out", cwd=place)
    assert (place / "out" / "m.c").read_text() == export(circuit, name="m", alarm=alarm)["m.c"]
    hint = run("export", "m.tb", "--to", "cpp", "-o", "out", cwd=place).stdout
    assert "m::log_likelihood" in hint
    assert "bool alarm_raw(" in (place / "out" / "m.hpp").read_text()
    run("export", "m.tb", "--query", "b", "-o", "asked", cwd=place)
    assert "m_posterior" in (place / "asked" / "m.h").read_text()
    for more, words in (
        (("--false-alarm-rate", "1"), "--false-alarm-rate: expected above 0, below 1"),
        (("--false-alarm-rate", "0.1", "--target", "b"), "expected a density, got --target; leave --target out"),
        (("--false-alarm-rate", "0.1", "--trees-only"), "expected a density, got --trees-only"),
    ):
        fails(*LEARN, *more, cwd=place, message=words)


def test_help(place):
    shown = run("learn-circuit", "--help", cwd=place).stdout
    assert "Example: tinybayes learn-circuit" in shown
    assert "learn-circuit" in run("--help", cwd=place).stdout


def test_a_latent_tree_is_what_the_learner_learns(place, frame):
    shown = run(*LEARN, "--method", "latent", "--hidden-states", "3", "--epochs", "4", cwd=place).stdout
    saved = load(place / "m.tb")
    learned = learn_latent_tree(read_dataset(place / "t.csv", like=saved), hidden_states=3, epochs=4)
    assert saved == learned.circuit
    assert f"Learned a latent tree, a circuit of {saved.n_edges:,} edges, from 600 rows" in shown
    answer = run("query", "m.tb", "b=yes | a=0", cwd=place).stdout
    assert 0 < float(answer.split("= ")[-1]) < 1
    info = run("info", "m.tb", cwd=place).stdout
    assert "deterministic" in info
    trained = load_metadata(place / "m.tb")["trained"]
    assert trained["method"] == "latent"
    assert trained["hidden_states"] == 3
    assert trained["validation_log_likelihood"] == pytest.approx(learned.validation_log_likelihood)


def test_a_latent_tree_has_a_price(place):
    arguments = (*LEARN, "--method", "latent", "--hidden-states", "3", "--epochs", "4", "--json")
    free, priced = (json.loads(run(*arguments, *more, cwd=place).stdout) for more in ((), ("--edge-price", "2")))
    assert priced["edges"] < free["edges"]
    assert (free["edge_price"], priced["edge_price"]) == (0.0, 2.0)


def test_a_latent_tree_has_a_class_and_a_limit(place):
    arguments = ("--method", "latent", "--target", "b", "--epochs", "2", "--max-edges", "400")
    shown = json.loads(run(*LEARN, *arguments, "--json", cwd=place).stdout)
    saved = load(place / "m.tb")
    assert saved.target.name == "b"
    assert shown["edges"] == saved.n_edges <= 400
    assert shown["class_trees"] in (True, False)
    run("evaluate", "m.tb", "t.csv", cwd=place)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--hidden-states", "3"), "add --method latent"),
        (("--method", "latent", "--parameter-price", "1"), "--parameter-price"),
        (("--method", "latent", "--checkpoint", "c"), "--checkpoint"),
        (("--method", "latent", "--hidden-states", "0"), "--hidden-states"),
        (("--method", "latent", "--trees-only"), "--method"),
    ],
)
def test_options_of_another_method_are_refused(place, arguments, message):
    fails(*LEARN, *arguments, cwd=place, message=message)
