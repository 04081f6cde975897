"""The command that ties parameters."""

import json

import numpy as np
import pandas as pd
import pytest

import oracle
import zoo
from cli_host import fails, run
from tinybayes import load, model_cost, read_dataset, relearn, save, tie
from tinybayes.infer import compile_circuit, log_evidence, sample
from tinybayes.model import Codebook, Dataset, LogLinear


@pytest.fixture
def folder(tmp_path):
    net = zoo.sprinkler()
    save(net, tmp_path / "net.tb")
    save(compile_circuit(net), tmp_path / "circuit.tb")
    rows = sample(compile_circuit(net), 200, 1)
    names = {v.name: [v.states[code] for code in rows[:, i]] for i, v in enumerate(net.variables)}
    pd.DataFrame(names).to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


def test_levels_are_chosen_and_shown(folder):
    shown = run("tie", "net.tb", "--levels", "auto", "--data", "rows.csv", "-o", "tied.tb", cwd=folder).stdout
    net, tied = load(folder / "net.tb"), load(folder / "tied.tb")
    assert isinstance(tied.cpds[0].format, Codebook)
    assert "one of them for 2 probabilities of zero" in shown
    assert f"Bits: {model_cost(tied).bits:,} instead of {model_cost(net).bits:,}." in shown
    for words in ("Mean log-likelihood (exact):", "before", "Theorem 1", "log Z:", "Wrote tied.tb."):
        assert words in shown


def test_figures_for_machines_are_those_of_the_library(folder):
    arguments = ("--levels", "4", "--data", "rows.csv", "--counts", "rows.csv", "--per-table", "--json")
    found = json.loads(run("tie", "net.tb", *arguments, "-o", "tied.tb", cwd=folder).stdout)
    net = load(folder / "net.tb")
    frame = pd.read_csv(folder / "rows.csv")
    codes = [[v.states.index(value) for value in frame[v.name]] for v in net.variables]
    data = Dataset(net.variables, None, pd.DataFrame(codes).to_numpy().T)
    expected = tie(net, 4, data=data, counts=data, per_table=True)
    assert load(folder / "tied.tb") == expected.model
    for name in ("levels", "zeros", "epsilon", "bound", "table_bound", "before", "after", "log_partition"):
        assert found[name] == pytest.approx(getattr(expected, name))
    assert found["bits"] == model_cost(expected.model).bits
    assert found["output"] == "tied.tb"


def test_without_data_only_the_bound_is_shown(folder):
    shown = run("tie", "net.tb", "--levels", "3", "--zeros", "0.01", "--renormalize", "-o", "t.tb", cwd=folder).stdout
    assert "A mean log-likelihood falls by at most" in shown
    assert "zero" not in shown
    assert load(folder / "t.tb").is_normalized()


def test_impossible_rows_are_shown_as_such(folder):
    (folder / "odd.csv").write_text("rain,sprinkler,wet\nno,off,True\n")
    shown = run("tie", "net.tb", "--levels", "4", "--data", "odd.csv", "-o", "t.tb", cwd=folder).stdout
    assert "-inf before, -inf after" in shown
    assert "nan" not in shown


@pytest.mark.parametrize("local", [False, True])
def test_relearned_networks_can_be_asked_and_are_those_of_the_library(folder, local):
    how = ["--relearn", "--normalized"] if local else ["--relearn"]
    arguments = ("tie", "net.tb", "--levels", "4", "--data", "rows.csv", *how)
    shown = run(*arguments, "--train", "rows.csv", "-o", "tied.tb", cwd=folder).stdout
    net, found = load(folder / "net.tb"), load(folder / "tied.tb")
    data = read_dataset(folder / "rows.csv", like=net)
    again = relearn(tie(net, 4).model, data, normalized=local)
    assert found == again.model
    assert found.is_normalized() == local
    assert "converged" in shown
    for number in (f"{again.before:.6f}", f"{again.after:.6f}", f"{model_cost(found).bits}"):
        assert number in shown
    figures = json.loads(run(*arguments, "--json", "-o", "t.tb", cwd=folder).stdout)
    assert figures["relearned"]["after"] == pytest.approx(again.after)
    assert figures["relearned"]["method"] == ("rows" if local else "exact")
    # Probabilities are those of the distribution, whose rows need not sum to one.
    rows, logs = oracle.joint(found)
    asked = json.loads(run("query", "tied.tb", "| wet=True", "--json", cwd=folder).stdout)
    wet = oracle.log_sum(logs[rows[:, 2] == 1]) - oracle.log_sum(logs)
    assert asked["log_evidence"] == pytest.approx(wet, abs=1e-6)
    frame = run("query", "tied.tb", "wet=True", "--evidence", "rows.csv", "-o", "a.csv", cwd=folder)
    assert "Wrote 200 answers" in frame.stdout
    run("convert", "tied.tb", "class.tb", "--target", "wet", cwd=folder)
    assert "%" in run("evaluate", "class.tb", "rows.csv", cwd=folder).stdout
    run("predict", "class.tb", "rows.csv", "-o", "p.csv", cwd=folder)


def test_circuits_are_tied(folder):
    shown = run("tie", "circuit.tb", "--levels", "3", "--data", "rows.csv", "-o", "t.tb", cwd=folder).stdout
    circuit, found = load(folder / "circuit.tb"), load(folder / "t.tb")
    expected = tie(circuit, 3, data=read_dataset(folder / "rows.csv", like=circuit))
    assert found == expected.model
    assert f"{expected.before:.6f} before, {expected.after:.6f} after" in shown
    assert f"Bits: {model_cost(found).bits:,} instead of {model_cost(circuit).bits:,}." in shown
    asked = json.loads(run("query", "t.tb", "| wet=True", "--json", cwd=folder).stdout)
    logs = log_evidence(found, np.array([[-1, -1, 1], [-1, -1, -1]]))
    assert asked["log_evidence"] == pytest.approx(logs[0] - logs[1])


def test_log_linear_models_are_asked_but_neither_tied_nor_evaluated(folder):
    save(LogLinear.from_bayes_net(load(folder / "net.tb")), folder / "model.tb")
    asked = json.loads(run("query", "model.tb", "wet=True", "--json", cwd=folder).stdout)
    assert asked["probability"] == pytest.approx(27 / 64)
    for command in (["tie", "model.tb", "-o", "t.tb"], ["evaluate", "model.tb", "rows.csv"], ["info", "model.tb"]):
        fails(*command, cwd=folder, message="expected a network or a circuit, got a log-linear model")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["net.tb", "--levels", "few", "-o", "t.tb"], "--levels: expected a number of levels, or auto"),
        (["net.tb", "--levels", "0", "-o", "t.tb"], "2 to 7 levels"),
        (["net.tb", "--levels", "99", "-o", "t.tb"], "2 to 7 levels"),
        (["net.tb", "--levels", "auto", "-o", "t.tb"], "data to choose the levels by"),
        (["net.tb", "--levels", "4", "--zeros", "some", "-o", "t.tb"], "--zeros: expected keep"),
        (["circuit.tb", "--relearn", "--data", "rows.csv", "-o", "t.tb"], "expected a Bayesian network, got a circuit"),
        (["net.tb", "--levels", "4", "--normalized", "-o", "t.tb"], "--normalized: expected --relearn"),
        (["net.tb", "--levels", "4", "--train", "rows.csv", "-o", "t.tb"], "--train: expected --relearn"),
        (["net.tb", "--levels", "4", "--relearn", "-o", "t.tb"], "--relearn: expected a table to learn from"),
        (
            ["net.tb", "--relearn", "--normalized", "--chains", "9", "--data", "rows.csv", "-o", "t.tb"],
            "--chains: expected --relearn alone, got --normalized",
        ),
        (["net.tb", "--relearn", "--renormalize", "--data", "rows.csv", "-o", "t.tb"], "one of --relearn and"),
        (["net.tb", "--levels", "4", "--data", "nowhere.csv", "-o", "t.tb"], "nowhere.csv"),
        (["net.tb", "--levels", "4", "-o", "nowhere/t.tb"], "--output: expected a file in a directory that exists"),
    ],
)
def test_wrong_requests_end_with_one_line(folder, arguments, message):
    fails("tie", *arguments, cwd=folder, message=message)
