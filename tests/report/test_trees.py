"""Decision trees for people: sizes, questions, answers, graphs and figures."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cases import thinned
from raw_values import variable_of
from tinybayes import TinybayesError, save
from tinybayes.cost import model_cost
from tinybayes.infer.trees import tree_scores
from tinybayes.model import Cuts, Dataset, Grid, Integers, TreeEnsemble, Trees, Variable
from tinybayes.report.cards import breakdown, model_card
from tinybayes.report.console import decision_tree, describe
from tinybayes.report.console import model_card as console_card
from tinybayes.report.graphs import tree_graph
from tinybayes.report.html import model_report
from tinybayes.report.trees import NODES, describe_trees, family_of, leaf_text, question, tree_nodes
from tree_ensembles import kinds, tree_ensemble

KINDS = kinds()
Y = Variable("fruit", ("apple", "pear"))


def one_test(variable, threshold, *, missing=False, members=(), kind="all"):
    """A tree with a single question."""
    sets = [members] if threshold < 0 else np.zeros((0, 0), dtype=bool)
    output = [-1] if kind == "all" else [1]
    trees = Trees([0, -1, -1], [threshold, 0, 1], [1, -1, -1], [missing, False, False], sets, [0], output)
    values = np.array([[3, 1], [2, 4]]) if kind == "all" else np.array([[250], [-120]])
    return TreeEnsemble((variable,), Y, trees, values, np.zeros(2, dtype=int), 0.01)


COLOURS = Variable("colour", ("red", "green", "blue", "grey", "white", "black", "pink", "brown", "gold", "teal"))


@pytest.mark.parametrize(
    ("variable", "threshold", "words"),
    [
        (variable_of("height", Cuts([1.5, 180.25])), 1, "< 180.25"),
        (variable_of("height", Grid(-1, 0.25, 5)), 0, "< -0.75"),
        (variable_of("age", Integers(-2, 5)), 3, "<= 1"),
        (COLOURS, 0, "= red"),
        (COLOURS, 1, "in red, green"),
        (COLOURS, 8, "is not teal"),
        (COLOURS, 6, "not in brown, gold, teal"),
        (COLOURS, 4, "in red, green, blue, grey and 1 more"),
        (COLOURS, 9, "is known"),
    ],
)
def test_questions(variable, threshold, words):
    assert question(one_test(variable, threshold), 0) == words
    assert tree_nodes(one_test(variable, threshold))[0].text == f"{variable.name} {words}"


def test_questions_about_sets_and_missing_values():
    members = np.arange(10) % 2 == 0
    assert question(one_test(COLOURS, -1, members=members), 0) == "in red, blue, white, pink and 1 more"
    assert question(one_test(COLOURS, -1, members=members, missing=True), 0).endswith("1 more")  # all go left
    assert question(one_test(COLOURS, -1, members=np.zeros(10, bool), missing=True), 0) == "is missing"
    assert question(one_test(COLOURS, -1, members=np.zeros(10, bool)), 0) == "is nothing"
    assert question(one_test(COLOURS, 9, missing=True), 0) == "is any"
    model = KINDS["no sets"]
    told = [question(model, node) for node in np.flatnonzero(~model.trees.is_leaf)]
    ordered = model.trees.missing[~model.trees.is_leaf]
    assert any(word.endswith(", or missing") for word in told)
    assert not any(word.endswith(", or missing") for word, left in zip(told, ordered, strict=True) if not left)


def test_answers():
    assert [leaf_text(one_test(COLOURS, 0), node, -1) for node in (1, 2)] == ["apple", "pear"]
    boosted = one_test(COLOURS, 0, kind="class")
    assert [leaf_text(boosted, node, 1) for node in (1, 2)] == ["+2.5 for pear", "-1.2 for pear"]
    assert family_of(boosted) == "boosted"
    assert (family_of(KINDS["all 1 trees"]), family_of(KINDS["votes 7 trees"])) == ("tree", "forest")


def test_long_names_are_cut_before_the_threshold():
    node = tree_nodes(one_test(variable_of("od280/od315_of_diluted_wines", Cuts([2.115])), 0))[0]
    assert node.short(18) == "od280/od3… < 2.115"
    assert node.short(99) == node.text
    for longest in range(4, 40):
        assert len(node.short(longest)) <= longest


@given(st.integers(0, 200), st.integers(1, 40), st.sampled_from(["class", "all", "votes"]), st.integers(1, 30))
def test_drawn_nodes_are_those_of_the_tree(seed, leaves, kind, limit):
    model = tree_ensemble(3, leaves=leaves, kind=kind, seed=seed)
    for tree in range(3):
        nodes = tree_nodes(model, tree, limit)
        ends = [*model.trees.root[1:], len(model.trees.feature)]
        size = int(ends[tree] - model.trees.root[tree])
        assert len(nodes) <= max(limit, 1)
        assert len(nodes) == size or any(node.is_cut for node in nodes)
        below = np.bincount([node.parent for node in nodes if node.parent >= 0], minlength=len(nodes))
        for count, node in zip(below, nodes, strict=True):
            assert count == (0 if node.is_leaf or node.is_cut else 2)


def followed(model, tree, row):
    """The answer at the end of the path, found from the drawn texts alone: features are integers or missing."""
    nodes = tree_nodes(model, tree, 10**6)
    names = {v.name: i for i, v in enumerate(model.variables)}
    everywhere = bool(model.trees.missing[~model.trees.is_leaf].all())
    here = 0
    while not nodes[here].is_leaf:
        node = nodes[here]
        code, rest = row[names[node.name]], node.rest.removesuffix(", or missing")
        if rest.startswith("is "):
            yes = {"is any": True, "is nothing": False, "is known": code >= 0, "is missing": code < 0}[rest]
        elif code < 0:
            yes = everywhere or rest != node.rest
        else:
            yes = code <= int(rest.removeprefix("<= "))
        children = [i for i, other in enumerate(nodes) if other.parent == here]
        here = children[0] if yes else children[1]
    return nodes[here].text


def test_the_texts_lead_to_the_right_leaf():
    rng = np.random.default_rng(0)
    for seed in range(20):
        model = tree_ensemble(1, leaves=12, sets=0, states=[4, 5, 2], classes=2, start=False, seed=seed)
        for row in rng.integers(-1, [4, 5, 2], (20, 3)):
            scores = tree_scores(model, row[None])[0]
            output = int(model.trees.output[0])
            assert followed(model, 0, row) == f"{scores[output] * 0.01:+.3g} for c{output}"


def test_sizes():
    sizes = describe_trees(KINDS["symmetric"])
    trees = KINDS["symmetric"].trees
    assert (sizes["trees"], sizes["depth"], sizes["symmetric"], sizes["values"]) == (6, 3, True, 7)
    assert sizes["leaves"] + sizes["tests"] == len(trees.feature)
    assert sizes["used_features"] == len(set(trees.feature[trees.feature >= 0].tolist()))
    assert describe_trees(KINDS["votes 7 trees"])["adds"] == "votes"
    assert describe_trees(KINDS["single leaf"])["depth"] == 0
    for model in KINDS.values():
        told = describe(model)
        assert json.loads(json.dumps(told)) == told
        assert told["cost"]["bits"] == model_cost(model).bits


def shown(renderable):
    console = Console(width=150, record=True, file=None, quiet=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_the_terminal_shows_sizes_a_tree_and_the_price():
    text = shown(console_card(KINDS["no sets"]))
    for words in (
        "trees",
        "leaves",
        "depth",
        "different",
        "values of leaves",
        "features in use",
        "Tree 1 of 6",
        "bytes",
    ):
        assert words in text or words == "bytes"
    assert f"{model_cost(KINDS['no sets']).bits:,} bits" in text
    deep = shown(decision_tree(KINDS["deep"], limit=9))
    assert re.search(r"\.\.\. and \d+ more nodes", deep)
    assert "Decision tree" in shown(decision_tree(KINDS["class 1 trees"]))
    bold = replace(
        KINDS["no sets"], variables=tuple(replace(v, name=f"[b]{v.name}") for v in KINDS["no sets"].variables)
    )
    assert "[b]f" in shown(decision_tree(bold))


def test_graphs_have_few_nodes_and_say_so():
    graph = tree_graph(KINDS["deep"])
    assert len(graph["labels"]) == len(graph["x"]) == len(graph["titles"]) <= NODES
    assert len(graph["edges"]) == len(graph["labels"]) - 1
    assert set(graph["kinds"]) == {"feature", "leaf"}
    assert graph["cut"]
    assert graph["note"].startswith("The first of 2 trees. Of ")
    for parent, child in graph["edges"]:
        assert graph["x"][parent] < graph["x"][child]
    for left, right in zip(graph["edges"][::2], graph["edges"][1::2], strict=True):
        assert left[0] == right[0]
        assert graph["y"][left[1]] < graph["y"][right[1]]  # yes is the upper one
    assert "note" not in tree_graph(KINDS["class 1 trees"])
    assert tree_graph(KINDS["single leaf"])["edges"] == []
    with pytest.raises(TinybayesError, match="tree: expected the number of a tree, 1 to 2, got 3"):
        tree_graph(KINDS["deep"], 2)


@pytest.mark.parametrize("key", thinned(KINDS, ("class 7 trees", "votes 7 trees", "sets", "single leaf")))
def test_cards_add_up_to_the_price(key):
    model = KINDS[key]
    parts, cost = breakdown(model), model_cost(model)
    assert sum(part[1] for part in parts) == cost.bits
    assert sum(part[2] for part in parts) == cost.operations
    card = model_card(model)
    assert card["kind"] == "trees"
    assert ["trees", f"{model.trees.count:,}"] in card["facts"]
    assert "source" in card["code"]
    json.dumps(card, allow_nan=False)


def test_a_page_of_a_model(tmp_path):
    model = tree_ensemble(3, classes=2, seed=4)
    rng = np.random.default_rng(0)
    X = np.array([rng.integers(0, v.cardinality, 40) for v in model.variables]).T
    data = Dataset(model.variables, model.target, X, tree_scores(model, X).argmax(axis=1))
    page = model_report(model, data, tmp_path / "trees.html").read_text(encoding="utf-8")
    held = json.loads(re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)[1])
    (entry,) = held["models"]
    assert (entry["family"], entry["test_error"]) == ("boosted", 0)
    assert held["cards"]["1"]["kind"] == "trees"


def test_figures(tmp_path):
    pytest.importorskip("matplotlib", reason="figures need Matplotlib")
    from tinybayes.report.plots import draw_tree, plot

    save(KINDS["no sets"], tmp_path / "m.tb")
    first = plot(tmp_path / "m.tb", "structure", tmp_path / "a.svg")
    second = plot(tmp_path / "m.tb", "structure", tmp_path / "b.svg", tree=2)
    assert first.read_bytes().startswith(b"<?xml")
    assert first.read_bytes() != second.read_bytes()
    (axes,) = draw_tree(KINDS["no sets"], 0, 5.5).axes
    assert [t.get_text() for t in axes.texts] == [n.short(24) for n in tree_nodes(KINDS["no sets"])]
    with pytest.raises(TinybayesError, match="the number of a tree, 1 to 6, got 7"):
        plot(tmp_path / "m.tb", "structure", tmp_path / "c.svg", tree=7)
    with pytest.raises(TinybayesError, match="got decision trees"):
        plot(tmp_path / "m.tb", "cpt", tmp_path / "c.svg")
