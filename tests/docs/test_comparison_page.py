"""The page that compares tinybayes with its peers says what the figures say, and nothing else."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "benchmarks" / "results" / "comparison.json"
DEPLOYED = ROOT / "benchmarks" / "results" / "deploy.json"


@pytest.fixture(scope="module")
def pages():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import comparison_page
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return comparison_page


def figures(*runs):
    about = {"date": "d", "command": "c", "commit": "k", "cpu": "p", "cores": 2, "system": "s", "python": "3"}
    about |= {"packages": {"tinybayes": "1", "pgmpy": None}, "load_before": 0.0, "load_after": 0.0}
    return {"provenance": about, "features": {"tinybayes": {}, "pgmpy": None}, "limit": 30, "runs": list(runs)}


def run(library, wall=None, **more):
    found = {"fit": {"wall": wall}, "predict": {"wall": wall, "error": 0.25}} if wall else {}
    return {"task": "naive Bayes", "data": "digits", "library": library, "model": f"{library} NB", **found, **more}


def test_what_is_not_installed_is_not_a_loss(pages):
    text = pages.page(figures(run("tinybayes", 2.0), run("pgmpy", absent=True)))
    assert "| digits | pgmpy NB | not installed | not installed |  |" in text
    assert "- none in this run" in text
    assert "pgmpy not installed" in text


def test_losses_are_shown(pages):
    text = pages.page(figures(run("tinybayes", 2.0), run("scikit-learn", 1.0), run("pyAgrum", fit={"over": 30})))
    assert "- naive Bayes, digits, fit: scikit-learn takes 0.5 of ours" in text
    assert "| digits | tinybayes NB | 2.00 | 2.00 | 25.00 |" in text
    assert "| digits | scikit-learn NB | **1.00** | **1.00** | 25.00 |" in text
    assert "| digits | pyAgrum NB | over 30 s | not reached |  |" in text
    assert "ours is best in 0" in text


def point(model, wrong, flash, instructions, ours=False):
    cost = {"flash": flash, "ram": 0, "stack": 8, "instructions": instructions}
    place = {"rows": 9, "error": wrong, "mismatches": 0, "m0+": cost, "m4": cost}
    more = {"flash": flash + 300, "ram": 0, "stack": 8, "instructions": instructions}
    own = {"no gap code": place, "gap code": place | {"m0+": more, "m4": more}, "gaps": place, "bits": 80}
    return {"data": "d", "model": model, "ours": ours, "validation_error": wrong, **(own if ours else place)}


def test_points_are_dominated_in_all_three_or_not_at_all(pages):
    runs = [point("tinybayes: a", 0.1, 400, 1000, ours=True), point("tinybayes: b", 0.3, 900, 2000, ours=True)]
    runs += [point("p: worse", 0.2, 500, 1000), point("p: fewer instructions", 0.5, 9000, 999)]
    runs += [point("p: equal", 0.1, 400, 1000), {"data": "d", "model": "p: none", "ours": False, "failed": "x"}]
    found = pages.deploy_report.summary({"data": {"d": {}}, "runs": runs}, "d", "m0+")
    assert found["left"] == ["p: fewer instructions"]
    assert (found["dominated"], found["dominated with gap code"], found["peers"]) == (2, 0, 3)
    assert found["beaten"] == ["tinybayes: a", "tinybayes: b"]


def test_a_busy_machine_is_told(pages):
    busy = figures()
    busy["provenance"]["load_before"] = 3.0
    assert "not idle" in pages.page(busy)
    assert "not idle" not in pages.page(figures())


def test_claims_are_marked_by_what_was_found(pages):
    found = figures()
    found["features"] = {"pgmpy": {"pgmpy.inference:VariableElimination": True}, "pyAgrum": {}}
    (line,) = [line for line in pages.page(found).splitlines() if line.startswith("| Exact inference ")]
    assert "yes ✓: variable elimination" in line
    assert "yes ✗: lazy propagation and others" in line


@pytest.mark.skipif(not FIGURES.exists(), reason="no run of benchmarks/run_all.py is kept")
def test_the_committed_page_is_that_of_the_figures(pages):
    kept = json.loads(FIGURES.read_text()), json.loads(DEPLOYED.read_text())
    assert (ROOT / "docs" / "comparison.md").read_text() == pages.page(*kept)


def test_the_committed_tables_of_boards_are_those_of_the_figures(pages):
    report, figures = pages.deploy_report, json.loads(DEPLOYED.read_text())
    assert DEPLOYED.with_suffix(".md").read_text() == report.markdown(figures)
    page = (ROOT / "docs" / "export.md").read_text()
    assert report.written(figures) in page
