"""What the command line says about tables and limits that do not mean what the user thinks, and its exit codes."""

import json

import numpy as np
import pandas as pd
import pytest

from cli_host import fails, run

SEARCH = ("explore", "ok.csv", "--target", "y", "--time", "2s", "--families", "closed-form", "-o")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory with one sound table and others that mean something else."""
    place, generator = tmp_path_factory.mktemp("checks"), np.random.default_rng(0)
    y = generator.integers(0, 2, 120)
    x = (y + generator.normal(size=120)).round(2)
    ok = pd.DataFrame({"x": x, "z": generator.integers(0, 4, 120), "y": y})
    tables = {
        "ok": ok,
        "ids": ok.assign(id=range(120)),
        "numbers": ok.assign(y=(100 * x).astype(int)),
        "six": ok.groupby("y").head(3),
        "weights": ok.assign(w=1 / 120),
        "comma": ok.assign(x=[str(value).replace(".", ",") for value in x]),
    }
    for name, frame in tables.items():
        frame.to_csv(place / f"{name}.csv", index=False, sep=";")
    return place


@pytest.mark.parametrize("command", ["fit", "explore", "learn-circuit", "learn-trees"])
@pytest.mark.parametrize(
    ("table", "message"), [("numbers", "cut it into classes"), ("comma", "expected numbers with a decimal point")]
)
def test_tables_that_mean_something_else_are_refused(folder, command, table, message):
    fails(command, f"{table}.csv", "--target", "y", "-o", "bad", cwd=folder, message=message)


def test_identifiers_and_few_rows_are_one_line_on_standard_error(folder):
    told = run("fit", "ids.csv", "--target", "y", "-o", "ids.tb", "--json", cwd=folder)
    assert told.stderr.startswith("warning: columns that look like identifiers or times: 'id'; ")
    assert told.stderr.count("\n") == 1
    assert json.loads(told.stdout)["rows"] == 120
    assert run("fit", "ids.csv", "--target", "y", "--drop", "id", "-o", "ids.tb", cwd=folder).stderr == ""
    assert run("fit", "ids.csv", "--target", "y", "-q", "-o", "ids.tb", cwd=folder).stderr == ""
    told = run("fit", "six.csv", "--target", "y", "-o", "six.tb", cwd=folder)
    assert told.stderr.startswith("warning: only 6 rows of 2 classes")


def test_a_search_on_six_rows_says_so(folder):
    command = ("explore", "six.csv", "--target", "y", "--time", "2s", "--families", "closed-form", "-o", "six")
    told = run(*command, cwd=folder)
    assert (
        told.stderr == "warning: only 6 rows of 2 classes: what is learned, and its error, is mostly chance; add rows\n"
    )
    assert "error on 2 test rows" in told.stdout


def test_normalised_weights_mean_the_same_as_none(folder):
    first = ("fit", "weights.csv", "--target", "y", "-o", "w.tb", "--json")
    plain, weighted = (
        json.loads(run(*first, *more, cwd=folder).stdout) for more in (("--drop", "w"), ("--weight", "w"))
    )
    assert plain == weighted


def test_an_error_out_of_reach_ends_with_code_3_and_keeps_the_results(folder):
    told = run(*SEARCH, "reach", "--max-error", "0.001", cwd=folder, code=3)
    assert told.stderr.startswith("No model with at most 0.1 % error was found; the closest has ")
    assert told.stderr.count("\n") == 1
    assert "The front" in told.stdout
    assert "Chosen" not in told.stdout
    front = json.loads((folder / "reach" / "front.json").read_text())
    assert front["chosen"] is None
    fails("export", "reach", "-o", "firmware", cwd=folder, message="expected a search that has chosen a model")
    told = run(*SEARCH, "reach", "--max-error", "0.001", "--json", cwd=folder, code=3)
    result = json.loads(told.stdout)
    assert result["chosen"] is None
    assert (folder / "reach" / result["closest"]["file"]).is_file()
    result = json.loads(run(*SEARCH, "reach", "--max-error", "0.9", "--json", cwd=folder).stdout)
    assert result["chosen"] is not None
    assert result["closest"] is None


def test_no_model_within_the_budget_ends_with_code_3(folder):
    told = run(*SEARCH, "small", "--budget", "1B", cwd=folder, code=3)
    assert told.stderr.startswith("error: budget: expected a budget of about ")
    told = run(*SEARCH, "small", "--budget-parameters", "1B", cwd=folder, code=3)
    assert told.stderr.startswith("error: budget: expected a budget of at least ")
    told = run(*SEARCH, "small", "--max-ops", "1", cwd=folder, code=3)
    assert told.stderr.startswith("No model was found within the budget; the closest takes ")


def test_the_chosen_program_is_priced_for_the_core(folder):
    limits = ("--budget", "4kB", "--max-ram", "2kB", "--max-latency", "5ms", "--core", "m4", "--clock", "100MHz")
    told = run(*SEARCH, "m4", *limits, cwd=folder).stdout
    front = json.loads((folder / "m4" / "front.json").read_text())
    chosen = next(model for model in front["models"] if model["id"] == front["chosen"])
    assert (front["budget"]["core"], front["budget"]["flash"], front["budget"]["clock"]) == ("cortex-m4", 4000, 1e8)
    assert f"{chosen['flash']:,} B of flash" in told.replace("\n", " ")
    assert chosen["flash"] <= 4000
    shown = json.loads(run("info", "m4", "--core", "m4", "--clock", "100MHz", "--json", cwd=folder).stdout)
    for name in ("flash", "ram", "stack", "instructions"):
        assert shown["program"][name] == chosen[name]
    assert shown["program"]["microseconds"] == pytest.approx(chosen["microseconds"], abs=0.02)
    assert "Program on cortex-m0+" in run("info", "m4", cwd=folder).stdout


@pytest.mark.parametrize(
    ("option", "value"),
    [("--budget", "4bit"), ("--max-ram", "much"), ("--max-latency", "5"), ("--clock", "fast"), ("--core", "z80")],
)
def test_limits_without_a_meaning_are_refused(folder, option, value):
    fails(*SEARCH, "bad", option, value, cwd=folder, message=option.removeprefix("--"))


@pytest.mark.parametrize(
    ("value", "message"), [("5", "got 5; 5 % is 0.05"), ("-0.1", "from 0 to 1"), ("nan", "from 0 to 1")]
)
def test_errors_outside_of_0_to_1_are_refused(folder, value, message):
    fails(*SEARCH, "bad", "--max-error", value, cwd=folder, message=message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--metric", "accuracy"), "expected one of error, balanced"),
        (("--metric", "auc", "--max-error", "2"), "--max-error: expected 1 - AUC from 0 to 1"),
        (("--class-weight", "balance"), "balanced, or a JSON or CSV file"),
        (("--cost-matrix", "none.csv"), "a JSON or CSV file"),
        (("--cost-matrix", "ok.csv"), "expected"),
        (("--weight", "w"), "a column 'w'"),
        (("--groups", "zz"), "a column 'zz'"),
        (("--groups", "x", "--time-order", "z"), "splits by groups or by time"),
        (("--time-order", "y"), "'y' in two"),
        (("--feature-cost", "ok.csv"), "expected"),
        (("--max-feature-cost", "1"), "costs of features for their limit"),
    ],
)
def test_what_decides_must_mean_something(folder, options, message):
    fails(*SEARCH, "bad", *options, cwd=folder, message=message)


def test_the_table_names_the_metric_and_the_cost_of_features(folder):
    (folder / "costs.csv").write_text("true,0,1\n0,0,1\n1,9,0\n")
    (folder / "prices.json").write_text('{"x": 3, "*": 1}')
    told = run(*SEARCH, "decided", "--cost-matrix", "costs.csv", "--feature-cost", "prices.json", cwd=folder).stdout
    text = " ".join(told.replace("│", " ").split())
    assert "better in mean cost, feature cost, flash and work" in text
    chosen = next(line for line in told.splitlines() if line.startswith("Chosen"))
    assert "mean cost" in chosen
    assert "% error on 24 test rows" in chosen
    assert " for features." in told
    run("evaluate", "decided", "ok.csv", cwd=folder)
    run("export", "decided", "--to", "c", "--name", "m", "-o", "decided-c", cwd=folder)
