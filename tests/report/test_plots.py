import json
import shutil
import sys

import numpy as np
import pytest

import zoo
from cases import exhaustive
from cli_host import fails, run
from explored import digits, write_explored
from tinybayes import TinybayesError, Variable, load, save
from tinybayes.errors import TinybayesWarning
from tinybayes.report.front import read_front
from tinybayes.report.plot_front import draw_bits, draw_front
from tinybayes.report.plot_models import draw_structure, draw_tables, row_labels
from tinybayes.report.plot_style import drawn_text
from tinybayes.report.plots import plot
from tinybayes.search.titles import TITLES

pytest.importorskip("matplotlib", reason="figures need Matplotlib")
STARTS = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    place = tmp_path_factory.mktemp("plots") / "digits"
    write_explored(place, *digits())
    return place


@pytest.mark.filterwarnings("ignore:the figure is")
@pytest.mark.parametrize("figure", ["front", "bits", "structure", "cpt"])
@pytest.mark.parametrize("kind", ["svg", *exhaustive("pdf", "png")])
def test_every_figure_in_every_format(explored, tmp_path, figure, kind):
    first = plot(explored, figure, tmp_path / f"a.{kind}")
    assert first.read_bytes().startswith(STARTS[kind])
    second = plot(explored, figure, tmp_path / f"b.{kind}")
    assert first.read_bytes() == second.read_bytes()


def test_names_of_control_characters_are_drawn_as_escapes(tmp_path):
    """Matplotlib would warn of a missing glyph, and its warning brings the character to the terminal."""
    name = "a\x1b]0;b\x07$c"
    net = zoo.random_net(np.random.default_rng(0), 1, variables=[Variable(name, ("\x00", "1")), Variable("y", "ab")])
    path = tmp_path / "net.tb"
    save(net, path)
    for figure in ("structure", "cpt"):
        plot(path, figure, tmp_path / "a.svg")
    word = "x" * 100_000
    save(zoo.random_net(np.random.default_rng(0), 1, variables=[Variable(word, "ab"), Variable("y", "ab")]), path)
    assert len(draw_tables(load(path), 5).axes[0].get_title()) == 120  # the layout of all letters took a minute
    assert drawn_text(name) == r"a\x1b]0;b\x07\$c"


def test_the_front_shows_all_models_and_their_families(explored):
    models = read_front(explored)["models"]
    (axes,) = draw_front(models, 5.5).axes
    drawn = np.concatenate([c.get_offsets() for c in axes.collections if len(c.get_offsets())])
    drawn = drawn[np.isfinite(drawn).all(axis=1)]
    expected = sorted((m["flash"], 100 * m["validation_error"]) for m in models)
    np.testing.assert_allclose(sorted(map(tuple, drawn.tolist())), expected)
    names = {text.get_text() for text in axes.figure.legends[0].get_texts()}
    assert names == {TITLES[m["family"]] for m in models}


def test_the_front_shows_the_budget_the_chosen_model_and_what_areas_mean(explored):
    front = read_front(explored)
    (axes,) = draw_front(front["models"], 5.5, budget={"flash": 4000}, chosen=front["chosen"]).axes
    (line,) = [line for line in axes.lines if line.get_label() == "budget"]
    assert list(line.get_xdata()) == [4000, 4000]
    names, key = axes.figure.legends
    assert {"budget", "chosen:\ntan"} < {text.get_text() for text in names.get_texts()}
    chosen = next(m for m in front["models"] if m["id"] == front["chosen"])
    rings = [c for c in axes.collections if c.get_linewidth()[0] == 1.2 and len(c.get_offsets())]
    assert rings[0].get_offsets()[0].tolist() == pytest.approx([chosen["flash"], 100 * chosen["validation_error"]])
    figure = axes.figure
    figure.canvas.draw()
    assert names.get_window_extent().x1 <= figure.bbox.x1 + 1  # within the figure
    assert key.get_title().get_text() == "instructions"
    work = [m["instructions"] for m in front["models"] if m["instructions"]]
    shown = [text.get_text() for text in key.get_texts()]
    assert [shown[0], shown[-1]] == [f"{float(f'{count:.2g}'):,.0f}" for count in (min(work), max(work))]
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        ticks = [tick for tick in axis.get_majorticklocs() if low <= tick <= high]
        assert len(ticks) >= 3
        axis.axes.figure.canvas.draw()
        assert all(label.get_text() for label in axis.get_ticklabels())
    bare = [m | {"flash": None, "instructions": None} for m in front["models"]]
    (axes,) = draw_front(bare, 5.5, budget=front["budget"]).axes
    assert axes.get_xlabel() == "memory of the parameters (bytes)"
    (line,) = [line for line in axes.lines if line.get_label() == "budget"]
    assert line.get_xdata()[0] == front["budget"]["bits"] / 8


def test_rows_of_tables_are_named():
    net = zoo.tan()
    for node, cpd in enumerate(net.cpds):
        labels = row_labels(cpd, net.nodes)
        assert len(labels) == len(cpd.table)
        if len(cpd.parents) == 2:
            first, second = (net.nodes[p] for p in cpd.parents)
            assert labels[1] == f"{first.states[0]}, {second.states[1]}"
            axes = draw_tables(net, 5.5, [net.nodes[node].name]).axes[0]
            assert [label.get_text() for label in axes.get_yticklabels()] == labels
    tree = zoo.tree_tan()
    assert row_labels(tree.cpds[1], tree.nodes)[1] == "class = spam, a = 0"


def test_the_structure_has_the_class_and_names_that_can_be_read(explored):
    net = zoo.tan()
    (axes,) = draw_structure(net, 5.5).axes
    assert {net.target.name, *(v.name for v in net.variables)} == {t.get_text() for t in axes.texts if t.get_text()}
    wide = load(explored / "models" / "6.tb")
    with pytest.warns(TinybayesWarning, match="inches wide, not 2"):
        figure = draw_structure(wide, 2)
    assert figure.get_figwidth() > 2
    assert min(text.get_fontsize() for text in figure.axes[0].texts if text.get_text()) >= 4.5


def test_another_model_than_the_chosen_one_is_told(explored, tmp_path):
    shutil.copytree(explored, tmp_path / "other")
    front = json.loads((explored / "front.json").read_text())
    front["chosen"] = next(m["id"] for m in front["models"] if m["family"] == "dense" and m["file"])
    (tmp_path / "other" / "front.json").write_text(json.dumps(front))
    done = run("plot", "other", "--figure", "cpt", "-o", "t.svg", cwd=tmp_path)
    assert "warning: the chosen model, linear net" in done.stderr
    assert "cannot be drawn so; this is tan" in done.stderr
    front["models"] = [m for m in front["models"] if m["family"] == "dense"]
    (tmp_path / "other" / "front.json").write_text(json.dumps(front))
    with pytest.raises(TinybayesError, match=r"a model to draw so: naive Bayes, .*, got neural net"):
        plot(tmp_path / "other", "cpt", tmp_path / "t.svg")


def test_transparent_figures_have_no_background(explored, tmp_path):
    from matplotlib.image import imread

    for transparent, opacity in ((False, 1.0), (True, 0.0)):
        image = imread(plot(explored, "front", tmp_path / "x.png", transparent=transparent))
        assert image[0, 0, 3] == opacity


def test_bits_shows_the_least_error_of_each_family(explored):
    models = read_front(explored)["models"]
    (axes,) = draw_bits(models, 5.5).axes
    line = next(line for line in axes.lines if line.get_label() == "naive Bayes")
    errors = {m["label"]: 100 * m["validation_error"] for m in models if m["family"] == "naive"}
    assert dict(zip(*line.get_data(), strict=True)) == pytest.approx(
        {2: errors["naive Bayes, 2 bits"], 3: errors["naive Bayes, 3 bits"], 4: errors["naive Bayes, 4 bits"]}
        | {6: errors["naive Bayes, 6 bits"], 32: errors["naive Bayes, floats"]}
    )


def test_commands(explored, tmp_path):
    done = run("plot", explored, "-o", "front.svg", cwd=tmp_path)
    assert done.stdout.startswith("Wrote front.svg.\nNow try: tinybayes export ")
    done = run("plot", explored, "--figure", "structure", "--model", "1", "-o", "s.pdf", "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == {"figure": "structure", "output": "s.pdf"}
    save(zoo.tree_tan(), tmp_path / "net.tb")
    run("plot", "net.tb", "--figure", "cpt", "--variable", "b", "--variable", "class", "-o", "t.png", cwd=tmp_path)
    save(zoo.sprinkler(), tmp_path / "rain.tb")
    run("plot", "rain.tb", "--figure", "structure", "-o", "rain.svg", cwd=tmp_path)
    assert {p.name for p in tmp_path.iterdir()} >= {"front.svg", "s.pdf", "t.png", "rain.svg"}


def test_mistakes_are_told(explored, tmp_path):
    save(zoo.naive_bayes(), tmp_path / "net.tb")
    fails("plot", explored, "-o", "front.gif", cwd=tmp_path, message="*.svg")
    fails("plot", explored, "--figure", "pie", "-o", "x.svg", cwd=tmp_path, message="front, bits, structure, cpt")
    fails("plot", "nowhere", "-o", "x.svg", cwd=tmp_path, message="tinybayes explore")
    fails("plot", explored, "--figure", "cpt", "--model", "x", "-o", "x.svg", cwd=tmp_path, message="the id of a saved")
    fails("plot", explored, "--figure", "cpt", "--model", "10", "-o", "x.svg", cwd=tmp_path, message="a circuit")
    fails("plot", "net.tb", "--figure", "cpt", "--variable", "z", "-o", "x.svg", cwd=tmp_path, message="'z'")
    fails("plot", "net.tb", "--figure", "cpt", "--width", "0", "-o", "x.svg", cwd=tmp_path, message="width")


def test_without_matplotlib_it_says_what_to_install(explored, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(TinybayesError, match=r"tinybayes\[plot\]"):
        plot(explored, "front", tmp_path / "x.svg")
