import json
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from cli_host import fails, run
from tinybayes import BayesNetClassifier, load
from tinybayes.deploy.files.native import model_id


def test_as_a_process_of_its_own(place):
    """The installed way in, with real exit codes and streams."""
    command = [sys.executable, "-m", "tinybayes", "info"]
    good = subprocess.run([*command, "iris.tb", "--json"], cwd=place, capture_output=True, text=True, check=True)
    assert json.loads(good.stdout)["target"]["name"] == "species"
    bad = subprocess.run([*command, "train.csv"], cwd=place, capture_output=True, text=True)
    assert bad.returncode == 2
    assert bad.stderr.count("\n") == 1
    assert bad.stderr.startswith("error: train.csv: expected a model file")


def test_fit_saves_what_the_estimator_learns(place):
    train = pd.read_csv(place / "train.csv")
    model = BayesNetClassifier("naive").fit(train.drop(columns="species"), train["species"]).model_
    saved = load(place / "iris.tb")
    assert saved.variables == model.variables
    assert saved.cpds == model.cpds
    assert saved.target.states == model.target.states


def test_evaluate_and_predict_agree(place):
    test = pd.read_csv(place / "test.csv")
    figures = json.loads(run("evaluate", "iris.tb", "test.csv", "--json", cwd=place).stdout)
    assert figures["rows"] == len(test)
    assert figures["cost"]["operations"] == 4 * 3
    run("predict", "iris.tb", "new.parquet", "--proba", "-o", "out.csv", cwd=place)
    out = pd.read_csv(place / "out.csv")
    assert out.columns.tolist() == ["species", "p(setosa)", "p(versicolor)", "p(virginica)"]
    np.testing.assert_allclose(out.iloc[:, 1:].sum(axis=1), 1)
    assert np.mean(out["species"] != test["species"]) == pytest.approx(figures["error"])
    assert figures["error"] < 0.1
    printed = run("predict", "iris.tb", "test.csv", "-o", "-", cwd=place).stdout.splitlines()
    assert printed == ["species", *out["species"]]
    shown = run("evaluate", "iris.tb", "test.csv", cwd=place).stdout
    assert "% error on 75 rows" in shown
    assert "virginica" in shown


def test_info_shows_variables_structure_and_price(place):
    run("fit", "train.csv", "--target", "species", "-o", "tan.tb", cwd=place)
    shown = run("info", "tan.tb", cwd=place).stdout
    for text in ("Classifier of 'species' from 4 features", "petal width (cm)", "Structure", "additions", "float32"):
        assert text in shown
    described = json.loads(run("info", "tan.tb", "--json", cwd=place).stdout)
    assert described["parents"]["species"] == []
    assert described["metadata"]["trained"]["structure"] == "chow-liu"
    assert len(described["variables"]) == 4
    assert f"Model {described['id']}." in shown
    assert described["id"] == model_id(load(place / "tan.tb"))


def test_names_are_shown_as_they_are(tmp_path):
    """Brackets are markup to the library that draws the tables, but not in what a user calls a thing."""
    table(tmp_path, "t.csv", "[red]a,[/y]\n" + "[bold]p,[/u]\nq,v\n" * 9)
    name = "a [blue] name that makes the line longer than a narrow terminal is wide [x].tb"
    shown = run("fit", "t.csv", "--target", "[/y]", "-o", name, cwd=tmp_path).stdout
    assert f"tinybayes evaluate {shlex.quote(name)} TEST_TABLE" in shown
    shown = run("info", name, cwd=tmp_path).stdout
    for text in ("'[/y]'", "[red]a", "[/u], v", "[bold]p, q"):
        assert text in shown
    assert "[/u]" in run("evaluate", name, "t.csv", cwd=tmp_path).stdout


def test_rows_of_an_unknown_class_are_left_out_aloud(tmp_path):
    table(tmp_path, "t.csv", "a,y\n" + "p,u\nq,v\n" * 9)
    table(tmp_path, "other.csv", "a,y\np,u\nq,never\nq,v\nq,\n")
    run("fit", "t.csv", "--target", "y", "-o", "m.tb", cwd=tmp_path)
    figures = json.loads(run("evaluate", "m.tb", "other.csv", "--json", cwd=tmp_path).stdout)
    assert (figures["rows"], figures["error"], figures["skipped"]) == (2, 0, 2)
    assert "2 rows were left out" in run("evaluate", "m.tb", "other.csv", cwd=tmp_path).stdout
    assert "left out" not in run("evaluate", "m.tb", "t.csv", cwd=tmp_path).stdout


def test_json_is_json_when_a_row_is_impossible(tmp_path):
    table(tmp_path, "t.csv", "a,y\n" + "p,u\nq,v\n" * 9)
    table(tmp_path, "other.csv", "a,y\np,v\n")
    run("fit", "t.csv", "--target", "y", "--smoothing", "0", "-o", "m.tb", cwd=tmp_path)
    shown = run("evaluate", "m.tb", "other.csv", "--json", cwd=tmp_path).stdout
    figures = json.loads(shown, parse_constant=pytest.fail)
    assert figures["log_loss"] is None
    assert figures["error"] == 1


def test_convert_goes_there_and_back(place):
    run("convert", "iris.tb", "iris.bif.gz", cwd=place)
    run("convert", "iris.bif.gz", "back.tb", "--json", cwd=place)
    there, back = load(place / "iris.tb"), load(place / "back.tb")
    assert there.variables == back.variables
    for a, b in zip(there.cpds, back.cpds, strict=True):
        np.testing.assert_allclose(a.log_parameters, b.log_parameters, rtol=1e-6)
    run("convert", "iris.bif.gz", "other.xmlbif", "--target", "petal width (cm)", cwd=place)
    assert load(place / "other.xmlbif").target.name == "petal width (cm)"


@pytest.mark.exhaustive
def test_demo_searches_shows_the_trade_off_and_writes_c_and_a_report(tmp_path):
    shown = run("demo", "--time", "10s", cwd=tmp_path).stdout
    for text in ("The front", "validation", "instructions", "Chosen:", "Now try", "tinybayes explore"):
        assert text in shown
    place = tmp_path / "demo"
    found = json.loads((place / "front.json").read_text())
    chosen = next(model for model in found["models"] if model["id"] == found["chosen"])
    assert chosen["bytes"] <= 4000
    assert chosen["test_error"] < 0.15
    assert load(place / chosen["file"]).target.name == "digit"
    assert "digits_predict" in (place / "c" / "digits.h").read_text()
    assert "<html" in (place / "report.html").read_text()[:1000]


def test_help_and_version(place):
    assert "demo" in run("--help", cwd=place).stdout
    assert run("--version", cwd=place).stdout.startswith("tinybayes ")
    for command in ("demo", "explore", "fit", "evaluate", "predict", "info", "convert"):
        shown = run(command, "--help", cwd=place).stdout
        assert "Example: tinybayes" in shown


def table(place, name, text):
    (place / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("empty.csv", "", "empty.csv"),
        ("header.csv", "a,y\n", "at least one row"),
        ("one_class.csv", "a,y\n1,x\n2,x\n", "at least 2 classes"),
        ("no_target.csv", "a,b\n1,2\n", "expected a column 'y'"),
        ("only_target.csv", "y\n0\n1\n", "at least one feature column"),
        ("twice.csv", "a,a,y\n1,2,0\n1,2,1\n", "'a'"),
        ("latin.csv", "a,y\ncaf\u00e9,0\nthe,1\n".encode("latin-1"), "UTF-8"),
        ("ragged.csv", "a,y\n1,0\n1,2,3\n", "ragged.csv:3"),
        ("infinite.csv", "a,y\ninf,0\n1,1\n", "infinity"),
        ("table.xls", "a,y\n", ".csv"),
    ],
)
def test_bad_tables(place, name, text, message):
    fails("fit", table(place, name, text), "--target", "y", "-o", "bad.tb", cwd=place, message=message)


def test_a_column_of_ten_thousand_states(place):
    rows = "".join(f"u{i},{i % 2}\n" for i in range(10_000))
    table(place, "ids.csv", "id,y\n" + rows)
    fails(
        "fit",
        "ids.csv",
        "--target",
        "y",
        "-o",
        "bad.tb",
        cwd=place,
        message="at most 1,000 distinct values, got 10,000",
    )
    run("fit", "ids.csv", "--target", "y", "--max-states", "10000", "-o", "ids.tb", cwd=place)


def test_documented_results_for_odd_tables(place):
    # A constant column, one without any value, gaps everywhere, numbers beside text in a column.
    rows = [f"k,,{'x' if i % 3 else 1},{i % 4 or ''},{i % 2}" for i in range(40)]
    table(place, "odd.csv", "\n".join(["const,none,mixed,n,y", *rows]))
    run("fit", "odd.csv", "--target", "y", "-o", "odd.tb", cwd=place)
    states = {v.name: v.states for v in load(place / "odd.tb").variables}
    assert states["const"] == ("k",)
    assert states["none"] == ("any",)
    assert states["mixed"] == ("1", "x")
    table(place, "unseen.csv", "const,none,mixed,n\nZ,5,never,99\n,,,\n")
    run("predict", "odd.tb", "unseen.csv", "-o", "unseen_out.csv", "--proba", cwd=place)
    assert np.isfinite(pd.read_csv(place / "unseen_out.csv").iloc[:, 1:].to_numpy()).all()


def test_other_bad_input(place):
    fails("fit", "nowhere.csv", "--target", "y", "-o", "bad.tb", cwd=place, message="nowhere.csv")
    fails("fit", "train.csv", "--target", "species", "-o", "no/such/dir/m.tb", cwd=place, message="directory")
    fails(
        "fit", "train.csv", "--target", "species", "--structure", "deep", "-o", "m.tb", cwd=place, message="structure"
    )
    fails("fit", "train.csv", "--target", "species", "--drop", "x", "-o", "m.tb", cwd=place, message="--drop")
    fails("fit", "train.csv", "--target", "species", "--smoothing=-1", "-o", "m.tb", cwd=place, message="smoothing")
    fails("fit", "train.csv", "--target", "species", "--seed=-1", "-o", "m.tb", cwd=place, message="seed")
    fails("evaluate", "train.csv", "train.csv", cwd=place, message="a model file")
    fails("evaluate", "iris.tb", "new.parquet", cwd=place, message="'species'")
    fails("info", "nowhere.tb", cwd=place, message="nowhere.tb")
    (place / "broken.tb").write_bytes((place / "iris.tb").read_bytes()[:-10])
    fails("info", "broken.tb", cwd=place, message="broken.tb")
    table(place, "columns.csv", "a,b\n1,2\n")
    fails("predict", "iris.tb", "columns.csv", "-o", "p.csv", cwd=place, message="sepal length (cm)")
    fails("predict", "iris.tb", "test.csv", "-o", "p.xls", cwd=place, message=".csv")
    fails("predict", "iris.tb", "test.csv", "-o", "-", "--json", cwd=place, message="--json")
    (place / "folder.csv").mkdir()
    fails("predict", "iris.tb", "test.csv", "-o", "folder.csv", cwd=place, message="folder.csv")
    fails("convert", "iris.tb", "iris.docx", cwd=place, message="a model file")
    run("convert", "iris.tb", "iris.uai", cwd=place)
    fails("evaluate", "iris.uai", "test.csv", cwd=place, message="--target NAME")
    fails("convert", "iris.uai", "x.tb", "--target", "zz", cwd=place, message="target")
    assert run("fit", "train.csv", cwd=place, code=2).stderr  # Typer's own usage message


def test_fit_by_gradient(place):
    common = ("fit", "train.csv", "--target", "species", "--training", "hybrid", "--epochs", "30")
    run(*common, "--structure", "subset", "--n-candidates", "2", "-o", "grad.tb", cwd=place)
    assert json.loads(run("evaluate", "grad.tb", "test.csv", "--json", cwd=place).stdout)["error"] < 0.2
    run(*common, "--structure", "naive", "--bits", "4", "-o", "bits.tb", cwd=place)
    assert load(place / "bits.tb").cpds[0].format.bits == 4
    plain = ("fit", "train.csv", "--target", "species", "--bits", "4", "-o", "m.tb")
    fails(*plain, cwd=place, message="expected no options of training by gradient, got bits")
