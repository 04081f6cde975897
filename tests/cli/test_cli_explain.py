"""`tinybayes explain` and `tinybayes fit --report`."""

import json
import re

import numpy as np
import pytest
from sklearn.datasets import load_iris

from cli_host import run
from tinybayes import class_scores, compile_circuit, load, read_dataset, save


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    frame = load_iris(as_frame=True).frame.rename(columns={"target": "species"})
    frame["species"] = np.array(["setosa", "versicolor", "virginica"])[frame["species"]]
    frame.iloc[::2].to_csv(folder / "train.csv", index=False)
    test = frame.iloc[1::2].reset_index(drop=True)
    test.loc[3, "petal width (cm)"] = None
    test.to_csv(folder / "test.csv", index=False)
    run("fit", "train.csv", "--target", "species", "-o", "iris.tb", "--report", "iris.html", "--seed", 5, cwd=folder)
    return folder


def test_the_report_of_fit(place):
    page = (place / "iris.html").read_text()
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    (model,) = data["models"]
    assert data["command"] == "tinybayes fit train.csv --target species -o iris.tb --report iris.html --seed 5"
    assert data["seed"] == 5
    assert data["data"]["rows"] == 75 == sum(map(sum, model["confusion"]))
    assert model["test_error"] is None  # nobody has seen a test row
    wrong = 75 - sum(model["confusion"][k][k] for k in range(3))
    assert model["settings"]["training_error"] == f"{100 * wrong / 75:.2f} %"
    assert model["settings"]["structure"] == "chow-liu"
    problem = run(
        "fit", "train.csv", "--target", "species", "-o", "x.tb", "--report", "no/x.html", cwd=place, code=2
    ).stderr
    assert "--report" in problem
    assert not (place / "x.tb").exists()


def test_explains_a_row(place):
    net = load(place / "iris.tb")
    rows = read_dataset(place / "test.csv", like=net)
    for number in (1, 4, 75):
        found = json.loads(run("explain", "iris.tb", "test.csv", "--row", number, "--json", cwd=place).stdout)
        scores = class_scores(net, rows.X[[number - 1]])[0]
        best = np.argsort(-scores)
        assert [found["label"], found["against"]] == [net.target.states[k] for k in best[:2]]
        assert found["total"] == pytest.approx(scores[best[0]] - scores[best[1]], abs=1e-9)
        said = [item["log_odds"] for item in found["contributions"]]
        assert found["prior"] + sum(said) == pytest.approx(found["total"], abs=1e-9)
    shown = run("explain", "iris.tb", "test.csv", "--row", 4, "--against", "virginica", cwd=place).stdout
    assert "species = setosa, not virginica" in shown
    assert "█" in shown
    assert "Missing values contribute nothing" in shown
    short = run("explain", "iris.tb", "test.csv", "--limit", 1, cwd=place).stdout
    assert "more together" in short


def test_explain_refuses_with_a_remedy(place):
    for arguments, words in (
        (["iris.tb", "test.csv", "--row", 76], "a row from 1 to 75, got 76"),
        (["iris.tb", "test.csv", "--against", "tulip"], "tulip"),
        (["circuit.tb", "test.csv"], "not sums over features; learn a network"),
        (["none.tb", "test.csv"], "--target NAME"),
    ):
        save(compile_circuit(load(place / "iris.tb")), place / "circuit.tb")
        if arguments[0] == "none.tb":
            run("learn-circuit", "train.csv", "--trees-only", "-o", "none.tb", cwd=place)
        assert words in run("explain", *arguments, cwd=place, code=2).stderr
