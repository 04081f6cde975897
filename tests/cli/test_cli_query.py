"""The command that asks circuits and networks."""

import json
import math

import pandas as pd
import pytest

import zoo
from cli_host import fails, run
from tinybayes import load, save
from tinybayes.infer import compile_circuit


@pytest.fixture
def folder(tmp_path):
    net = zoo.sprinkler()
    save(net, tmp_path / "net.tb")
    save(compile_circuit(net), tmp_path / "circuit.tb")
    pd.DataFrame({"wet": [True, None, True], "sprinkler": [None, "on", "off"]}).to_csv(tmp_path / "e.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("model", ["net.tb", "circuit.tb"])
def test_a_question_is_answered(folder, model):
    assert run("query", model, "rain=yes | wet=True", cwd=folder).stdout == "P(rain=yes | wet=True) = 0.3333333333\n"
    assert "log P(wet=True) = -0.863" in run("query", model, "| wet=True", cwd=folder).stdout
    shown = run("query", model, "| wet=True", "--marginals", cwd=folder).stdout
    assert "True (known)" in shown
    assert "0.740741" in shown
    answer = json.loads(run("query", model, "rain=yes | wet=true", "--marginals", "--json", cwd=folder).stdout)
    assert answer["probability"] == pytest.approx(1 / 3)
    assert answer["log_evidence"] == pytest.approx(math.log(27 / 64))
    assert answer["marginals"]["sprinkler"] == pytest.approx({"off": 7 / 27, "on": 20 / 27})


def test_many_rows_are_answered_at_once(folder):
    run("query", "circuit.tb", "rain=yes", "--evidence", "e.csv", "-o", "a.csv", "--marginals", cwd=folder)
    found = pd.read_csv(folder / "a.csv")
    assert found["probability"].tolist() == pytest.approx([1 / 3, 1 / 13, 1.0])
    assert found["sprinkler=on"].tolist() == pytest.approx([20 / 27, 1, 0])
    printed = run("query", "net.tb", "--evidence", "e.csv", cwd=folder).stdout.splitlines()
    assert printed[0] == "log_evidence"
    assert math.exp(float(printed[1])) == pytest.approx(27 / 64)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["net.tb", "snow=yes"], "one of the variables"),
        (["net.tb", "rain=maybe"], "a state of 'rain'"),
        (["net.tb", "rain=yes, rain=no"], "one state for 'rain'"),
        (["circuit.tb", "rain=yes | sprinkler=off, rain=no, wet=True"], "one state for 'rain'"),
        (["circuit.tb", "wet=True | rain=no, sprinkler=off, wet=True"], "a probability above zero"),
        (["circuit.tb", "| rain=no, sprinkler=off, wet=True", "--marginals"], "a probability above zero"),
        (["circuit.tb"], "a query, --evidence or --marginals"),
        (["net.tb", "rain=yes", "--max-edges", "3"], "a circuit of at most 3 edges"),
        (["net.tb", "rain=yes", "-o", "x.csv"], "--evidence with --output"),
        (["net.tb", "--evidence", "nowhere.csv"], "nowhere.csv"),
        (
            ["net.tb", "| sprinkler=off", "--evidence", "e.csv", "-o", "x.csv"],
            "the states that the query says are known",
        ),
    ],
)
def test_wrong_questions_end_with_one_line(folder, arguments, message):
    fails("query", *arguments, cwd=folder, message=message)


def test_info_and_convert_know_circuits(folder):
    shown = run("info", "circuit.tb", cwd=folder).stdout
    for word in ("edges", "nodes", "parameters", "smooth", "decomposable", "deterministic"):
        assert word in shown
    described = json.loads(run("info", "circuit.tb", "--json", cwd=folder).stdout)
    circuit = load(folder / "circuit.tb")
    assert (described["nodes"], described["edges"]) == (circuit.n_nodes, circuit.n_edges)
    assert described["properties"] == {"smooth": True, "decomposable": True, "deterministic": True}
    run("convert", "net.tb", "net.ac", cwd=folder)
    assert run("query", "net.ac", "x0=1 | x2=1", cwd=folder).stdout == "P(x0=1 | x2=1) = 0.3333333333\n"
    fails("convert", "circuit.tb", "circuit.bif", cwd=folder, message="expected a Bayesian network, got a circuit")
    message = "expected a model with a class variable, got one without"
    fails("evaluate", "circuit.tb", "e.csv", cwd=folder, message=message)
