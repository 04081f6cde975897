import json
import sys

import numpy as np
import pytest

import zoo
from cases import exhaustive
from cli_host import fails, run
from explored import digits, write_explored
from tinybayes import TinybayesError, save
from tinybayes.report.front import read_front
from tinybayes.report.plots import draw_bits, draw_front, plot
from tinybayes.search.titles import TITLES

pytest.importorskip("matplotlib", reason="figures need Matplotlib")
STARTS = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    place = tmp_path_factory.mktemp("plots") / "digits"
    write_explored(place, *digits())
    return place


@pytest.mark.parametrize("figure", ["front", "bits", "structure", "cpt"])
@pytest.mark.parametrize("kind", ["svg", *exhaustive("pdf", "png")])
def test_every_figure_in_every_format(explored, tmp_path, figure, kind):
    first = plot(explored, figure, tmp_path / f"a.{kind}")
    assert first.read_bytes().startswith(STARTS[kind])
    second = plot(explored, figure, tmp_path / f"b.{kind}")
    assert first.read_bytes() == second.read_bytes()


def test_the_front_shows_all_models_and_their_families(explored):
    models = read_front(explored)["models"]
    (axes,) = draw_front(models, 5.5).axes
    drawn = np.concatenate([c.get_offsets() for c in axes.collections if len(c.get_offsets())])
    drawn = drawn[np.isfinite(drawn).all(axis=1)]
    expected = sorted((m["flash"], 100 * m["validation_error"]) for m in models)
    np.testing.assert_allclose(sorted(map(tuple, drawn.tolist())), expected)
    names = {text.get_text() for text in axes.get_legend().get_texts()}
    assert names == {TITLES[m["family"]] for m in models}


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
