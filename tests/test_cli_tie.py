"""The command that ties parameters."""

import json

import pandas as pd
import pytest

import zoo
from test_cli import fails, run
from tinybayes import bayes_net_cost, load, save, tie
from tinybayes.infer import compile_circuit, sample
from tinybayes.model import Codebook, Dataset


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
    assert f"Bits: {bayes_net_cost(tied).bits:,} instead of {bayes_net_cost(net).bits:,}." in shown
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
    assert load(folder / "tied.tb") == expected.net
    for name in ("levels", "zeros", "epsilon", "bound", "table_bound", "before", "after", "log_partition"):
        assert found[name] == pytest.approx(getattr(expected, name))
    assert found["bits"] == bayes_net_cost(expected.net).bits
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["net.tb", "--levels", "few", "-o", "t.tb"], "--levels: expected a number of levels, or auto"),
        (["net.tb", "--levels", "0", "-o", "t.tb"], "2 to 7 levels"),
        (["net.tb", "--levels", "99", "-o", "t.tb"], "2 to 7 levels"),
        (["net.tb", "--levels", "auto", "-o", "t.tb"], "data to choose the levels by"),
        (["net.tb", "--levels", "4", "--zeros", "some", "-o", "t.tb"], "--zeros: expected keep"),
        (["circuit.tb", "--levels", "4", "-o", "t.tb"], "expected a Bayesian network, got a circuit"),
        (["net.tb", "--levels", "4", "--data", "nowhere.csv", "-o", "t.tb"], "nowhere.csv"),
        (["net.tb", "--levels", "4", "-o", "nowhere/t.tb"], "--output: expected a file in a directory that exists"),
    ],
)
def test_wrong_requests_end_with_one_line(folder, arguments, message):
    fails("tie", *arguments, cwd=folder, message=message)
