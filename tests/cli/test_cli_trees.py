"""The command line on decision trees: what predicts takes them, what asks for distributions refuses them."""

import json

import numpy as np
import pandas as pd
import pytest

from cli_host import fails, run
from networks import every_state
from tinybayes import TinybayesError, evaluate, load, read_dataset, save
from tinybayes.cli.trees import learn_trees as command
from tinybayes.cost import model_cost
from tinybayes.data import Discretization
from tinybayes.deploy.files.native import load_metadata, model_id
from tinybayes.infer.trees import tree_scores
from tinybayes.learn.trees.by_kind import DEFAULTS, learn_trees
from tree_ensembles import tree_ensemble


@pytest.fixture(scope="module")
def model():
    return tree_ensemble(5, leaves=5, states=[3, 4, 2], classes=3, seed=2)


@pytest.fixture(scope="module")
def place(tmp_path_factory, model):
    folder = tmp_path_factory.mktemp("trees")
    save(model, folder / "trees.tb", metadata={"test_error": 0.25})
    X = every_state(model, rows=40)
    labels = tree_scores(model, X).argmax(axis=1)
    frame = pd.DataFrame({v.name: X[:, i] for i, v in enumerate(model.variables)})
    frame[model.target.name] = [model.target.states[k] for k in labels]
    frame.to_csv(folder / "rows.csv", index=False)
    frame.loc[0, "f 0"] = None
    frame.astype({"f 0": "Int64"}).to_csv(folder / "gaps.csv", index=False)
    return folder


def test_evaluate_and_predict(place, model):
    result = json.loads(run("evaluate", "trees.tb", "rows.csv", "--json", cwd=place).stdout)
    assert result["error"] == 0
    assert result["cost"] == model_cost(model).to_dict()
    assert "sent to learned sides" in run("evaluate", "trees.tb", "gaps.csv", cwd=place).stdout
    run("predict", "trees.tb", "rows.csv", "-o", "out.csv", "--proba", cwd=place)
    found = pd.read_csv(place / "out.csv")
    assert found["the class"].tolist() == pd.read_csv(place / "rows.csv")["the class"].tolist()
    scores = tree_scores(model, every_state(model, rows=40)) * model.scale
    wanted = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(
        found[[f"p(c{k})" for k in range(3)]], wanted / wanted.sum(axis=1, keepdims=True), atol=1e-9
    )


def test_info(place, model):
    said = run("info", "trees.tb", cwd=place).stdout
    for words in ("Trees", "leaves", "depth", "different", "features in use", "Tree 1 of 5", "Price", "flash"):
        assert words in said
    told = json.loads(run("info", "trees.tb", "--json", cwd=place).stdout)
    assert (told["trees"], told["leaves"]) == (5, int(model.trees.is_leaf.sum()))
    assert told["cost"]["bits"] == model_cost(model).bits
    assert told["program"]["flash"] > 0


def test_convert_and_plot(place):
    assert "Wrote 4 variables" in run("convert", "trees.tb", "copy.tb", cwd=place).stdout
    fails("convert", "trees.tb", "trees.bif", cwd=place, message="got decision trees; write it as .tb")
    pytest.importorskip("matplotlib", reason="figures need Matplotlib")
    run("plot", "trees.tb", "--figure", "structure", "--tree", "2", "-o", "tree.svg", cwd=place)
    assert (place / "tree.svg").exists()
    fails("plot", "trees.tb", "--figure", "structure", "--tree", "6", "-o", "x.svg", cwd=place, message="1 to 5, got 6")


def test_what_needs_a_distribution_refuses(place):
    for words in (["query", "trees.tb", "f 0=1"], ["tie", "trees.tb", "--levels", "4", "-o", "t.tb"]):
        fails(*words, cwd=place, message="expected a model of a distribution over its variables, got decision trees")


@pytest.mark.parametrize("target", ["c", "cpp", "arduino", "micropython", "onnx", "verilog", "verilog-pipelined"])
def test_export(place, tmp_path, target):
    if target == "onnx":
        pytest.importorskip("onnx", reason="onnx is not installed")
    said = run("export", "trees.tb", "--to", target, "-o", tmp_path, cwd=place).stdout
    assert "Now try:" in said
    assert any(tmp_path.iterdir())


LEARN = ("learn-trees", "rows.csv", "--target", "the class", "-o", "m.tb")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("boosted", {"rounds": 5, "leaves": 4, "symmetric": True}),
        ("boosted", {"learning_rate": 0.3, "row_share": 1.0}),
        ("forest", {"trees": 7, "votes": True}),
        ("tree", {"depth": 3}),
    ],
)
def test_learn_trees(place, kind, options):
    words = [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}") for name, value in options.items()]
    told = json.loads(run(*LEARN, "--kind", kind, *words, "--seed", "3", "--json", cwd=place).stdout)
    read = Discretization(discretizer="histogram", n_bins=128, max_states=1000, seed=3)
    data = read_dataset(pd.read_csv(place / "rows.csv"), target="the class", discretization=read)
    wanted, found = learn_trees(data, kind, seed=3, **options), load(place / "m.tb")
    np.testing.assert_array_equal(tree_scores(found, data.X), tree_scores(wanted, data.X))
    assert model_id(found) == model_id(wanted)
    assert told["training_error"] == evaluate(wanted, data).error
    assert {name: told[name] for name in options} == options
    assert load_metadata(place / "m.tb")["trained"]["kind"] == kind


def test_learn_trees_within_a_budget(place):
    said = run(*LEARN, "--budget", "150B", "--levels", "8", cwd=place).stdout
    assert "% error on them" in said
    assert "Now try: tinybayes evaluate m.tb" in said
    assert model_cost(load(place / "m.tb")).bits <= 8 * 150
    assert len(load(place / "m.tb").values) <= 8


def test_learn_trees_tells_mistakes(place):
    fails(*LEARN, "--kind", "oak", cwd=place, message="kind: expected one of boosted, forest, tree, got 'oak'")
    fails(
        *LEARN, "--kind", "forest", "--rounds", "4", cwd=place, message="--rounds: expected --kind boosted, got forest"
    )
    fails(*LEARN, "--votes", cwd=place, message="--votes: expected --kind forest or tree, got boosted")
    fails(*LEARN, "--kind", "tree", "--trees", "4", cwd=place, message="--trees: expected --kind forest, got tree")
    fails(*LEARN, "--kind", "tree", "--levels", "4", cwd=place, message="--levels: expected boosted trees, got a tree")
    fails(*LEARN, "--kind", "tree", "--budget", "4kB", cwd=place, message="budget: expected boosted trees, got a tree")
    fails(*LEARN, "--budget", "much", cwd=place, message="--budget: expected a size")
    fails(*LEARN, "--leaves", "0", cwd=place, message="leaves")


def test_the_defaults_of_the_command_are_those_of_boosted_trees_and_forests():
    shown = {name: value for learner in command.learners for name, value in learner.defaults.items()}
    for kind in ("boosted", "forest"):
        assert {name: shown[name] for name in DEFAULTS[kind]} == DEFAULTS[kind]


def test_unknown_options_of_a_kind_are_named(place):
    data = read_dataset(pd.read_csv(place / "rows.csv"), target="the class")
    with pytest.raises(TinybayesError, match=r"round: expected an option of 'boosted'.*did you mean 'rounds'"):
        learn_trees(data, round=3)
