"""The files of sweeps can be read, and the results page can be written from made-up results."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import WHOLE
from experiments import page
from experiments.differentiable_tan.plots import lower_hull
from experiments.records import Experiment, on_folds_of
from experiments.resource_efficient.plots import pareto
from experiments.store import read_lines, write_text
from experiments.sweep import read_sweeps
from made_up import MADE
from tinybayes.data import named

EXPERIMENTS = Path(page.__file__).parent
FILES = sorted(path for path in EXPERIMENTS.rglob("*.toml") if "[[sweep]]" in path.read_text())
LEVEL = {"letter": 0.1, "satimage": 0.09, "usps": 0.03, "mnist": 0.035}
KIND = {"naive": 1.4, "chow-liu": 1.1, "random": 1.2, "subset": 1.0, "heuristic": 0.95}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_files_of_sweeps_can_be_drawn_from(path):
    sweeps = read_sweeps(path)
    assert len({sweep.name for sweep in sweeps}) == len(sweeps)
    for sweep in sweeps:
        assert sweep.data in named.names()
        assert sweep.settings % (len(sweep.learning_rates) * max(len(sweep.bits), len(sweep.size_penalties))) == 0
        for index in (0, sweep.settings - 1):
            drawn = sweep.setting(index)
            assert 10 ** sweep.lam[0] * 0.999 <= drawn["lam"] <= 10 ** sweep.lam[1] * 1.001
            assert drawn["bits"] is None or 1 <= sum(drawn["bits"]) <= 8


def made_up(sweep, thin=1):
    """Runs that look like runs: errors rise away from one lambda and with fewer bits, sizes fall with their price."""
    generator = np.random.default_rng(len(sweep.name))
    done = {}
    for stage in (1, 2) if sweep.short_epochs else (2,):
        for index in range(0, sweep.settings, thin):
            drawn = sweep.setting(index)
            price = math.log10(max(drawn["size_penalty"], 1e-9))
            free = 1 / (1 + math.exp(2 * (price + 3))) if sweep.structure == "subset" else 0.0
            width = sum(drawn["bits"]) if drawn["bits"] else 9
            factor = KIND.get(sweep.structure, 1.0) + 0.5 * (1 - free) * (price > -9) + 2.0 ** (2 - width)
            factor += 0.05 * (math.log10(drawn["lam"]) - 1.8) ** 2 + 0.1 * generator.random() / (1 + 0.1 * sweep.k)
            for fold in range(sweep.folds or named.n_folds(sweep.data)):
                error = min(0.95, LEVEL[sweep.data] * factor * (1 + 0.01 * fold) * (3 - stage) ** 0.1)
                done[stage, fold, index] = {
                    "sweep": sweep.name,
                    "stage": stage,
                    "fold": fold,
                    "setting": index,
                    "validation_error": None if stage == 2 else error * (1 + 0.3 * generator.random()),
                    "test_error": error,
                    "parameters": int(4000 * (1 + 8 * free)),
                }
    return done


def write_results(path, place, thin, provenance):
    """Write the store and the report of a file of sweeps, as `python -m experiments` does."""
    place.mkdir(parents=True, exist_ok=True)
    runs = {sweep: made_up(sweep, thin) for sweep in read_sweeps(path)}
    lines = [json.dumps(record) for done in runs.values() for record in done.values()]
    write_text(place / f"{path.stem}.jsonl", "\n".join(lines) + "\n")  # the larger ones compressed
    report = {"provenance": provenance, "results": [sweep.summary(done) for sweep, done in runs.items()]}
    (place / f"{path.stem}.json").write_text(json.dumps(report))
    return report["results"]


def copy_of_experiments(place, thin=7, results=True):
    for path in FILES:
        folder = place / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder)
        if results:
            write_results(path, folder / "results", thin, [MADE, MADE] if path.stem == "table1" else MADE)
    if not results:
        return place
    agree = [{"data": "letter", "features": 16, "candidates": "all", "agree": [16, 15]}]
    recovered = {"provenance": MADE, "epochs": 7, "results": agree}
    (place / "differentiable_tan" / "results" / "recovery.json").write_text(json.dumps(recovered))
    widths = [{"bits": bits, "integer": 3, "error": 0.1 + 0.5 / bits} for bits in range(1, 9)]
    trained = [
        {**one, "kind": kind, "error": one["error"] - 0.05} for one in widths for kind in ("validation", "started")
    ]
    result = {"data": "letter", "structure": "naive", "float": 0.1, "rounded": widths, "trained": trained}
    bits = {"command": "", "results": [{**result, "provenance": MADE}]}
    (place / "resource_efficient" / "results" / "bits.json").write_text(json.dumps(bits))
    return place


@WHOLE
def test_a_page_from_made_up_results(tmp_path):
    experiments, docs = copy_of_experiments(tmp_path / "experiments"), tmp_path / "docs"
    page.write(experiments, docs)
    text = (docs / "results.md").read_text()
    pictures = sorted((docs / "figures").iterdir())
    assert [f"figures/{path.name}" in text for path in pictures] == [True] * 4
    assert "Not run yet: `python -m experiments.defaults`" in text
    assert text.count("Not run yet") == 3  # and the integer networks, and the neural ones

    # Several sweeps share the row of naive Bayes on letter; the store itself says what must stand there.
    store = experiments / "differentiable_tan" / "results" / "table1.jsonl"
    runs = read_lines(store)
    runs = [run for run in runs if run["sweep"].startswith("letter naive")]
    first, last = ([run for run in runs if run["stage"] == stage] for stage in (1, 2))
    chosen = min(first, key=lambda run: run["validation_error"])
    same = [r for r in last if (r["sweep"], r["setting"]) == (chosen["sweep"], chosen["setting"])]
    best, validated = 100 * min(r["test_error"] for r in last), 100 * same[0]["test_error"]
    assert validated > best
    assert f"| letter | naive Bayes | {len(runs)} | {best:.2f} | 12.93 | {validated:.2f} |" in text
    assert "| order-free TAN, structure noise |" in text
    # The report comes from two runs of ten seconds.
    assert "20 s on cpu a (2 cores), Python 3.12.0, jax 1, commit 0123456789ab" in " ".join(text.split())
    assert "| letter | 16 | all | 16, 15 of 16 |" in text
    assert "| letter | naive Bayes | trained | 10.00 | 55.00 | 30.00 |" in text
    assert "| letter | naive Bayes | rounded |  | 60.00 | 35.00 |" in text
    assert "In 8 cells of the table, trained tables have more errors than rounded ones in none." in " ".join(
        text.split()
    )
    assert "satimage (first fold only)" in text

    before = {path: path.read_bytes() for path in (docs / "results.md", *pictures)}
    page.write(experiments, docs)
    assert {path: path.read_bytes() for path in before} == before


def test_a_page_without_results(tmp_path):
    page.write(copy_of_experiments(tmp_path / "experiments", results=False), tmp_path / "docs")
    text = (tmp_path / "docs" / "results.md").read_text()
    assert text.count("Not run yet") == 10
    assert "![" not in text
    assert not (tmp_path / "docs" / "figures").exists()


def test_settings_without_all_folds_are_left_out(tmp_path):
    place = copy_of_experiments(tmp_path)
    table1 = Experiment(place / "differentiable_tan" / "table1.toml")
    before = table1.points()
    runs = read_lines(table1.store)
    lost = next(i for i, run in enumerate(runs) if run["fold"] == 4 and run["stage"] == 2)
    write_text(table1.store, "".join(json.dumps(run) + "\n" for run in runs[:lost] + runs[lost + 1 :]))
    assert len(Experiment(table1.file).points()) == len(before) - 1

    first = on_folds_of(Experiment(place / "resource_efficient" / "figure6.toml"), table1)
    assert len(first) == len(before)
    pairs = [(p, q) for p in first for q in before if (p.sweep, p.setting) == (q.sweep, q.setting)]
    assert {p.sweep.data for p, q in pairs if p.error < q.error} == {"satimage"}  # its later folds are worse
    assert all(p.error == q.error for p, q in pairs if p.sweep.data != "satimage")


numbers = st.floats(0, 10).map(lambda x: round(x, 2))


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=30))
def test_hulls_and_fronts(points):
    hull = lower_hull(points)
    x, y = np.array(hull).T
    assert set(hull) <= set(points)
    assert (x[0], x[-1]) == (min(points)[0], max(points)[0])
    assert all(b >= np.interp(a, x, y) - 1e-9 for a, b in points)
    assert (np.diff(np.diff(y) / np.diff(x)) > -1e-9).all()  # the slopes rise
    beaten = {p for p in points if any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)}
    assert pareto(points) == sorted(set(points) - beaten)


def test_the_pages_in_docs_are_those_of_the_results(tmp_path, monkeypatch):
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: None)  # which takes longest
    page.write(EXPERIMENTS, tmp_path)
    for path in sorted(tmp_path.glob("*.md")):
        committed = EXPERIMENTS.parent / "docs" / path.name
        assert path.read_text() == committed.read_text(), "run python -m experiments.page"
