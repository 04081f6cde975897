"""One run of short measurements beside every peer, and the page made from it (docs/comparison.md).

Run it as ``python benchmarks/run_all.py`` on an idle machine, with the peers in the environment
(``pip install -e '.[dev,bench]'``; pomegranate and Orange3 where they are wanted), and TINYBAYES_DATA for networks.
``--page-only`` writes the page from the JSON of the last run; ``--quick`` is a small run into another place.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from closed_form import write_rows
from comparison_page import page
from comparison_tasks import LIBRARIES, NETWORKS, TASKS, about, installed
from harness import Figures, measure
from peers import CONTENDERS, OTHERS

HERE = Path(__file__).parent
CLASSIFIERS = {
    "naive Bayes": ("tinybayes NB", "scikit-learn CategoricalNB", "pyAgrum NB", "pgmpy NB", "pomegranate NB"),
    "TAN": ("tinybayes TAN", "pyAgrum TAN", "pgmpy TAN"),
}
# The libraries of each benchmark; a library is left out where it lacks the feature.
ASKED = {
    "footprint": tuple(LIBRARIES),
    "tree": ("tinybayes", "pgmpy", "pomegranate"),
    "cut points": ("tinybayes", "Orange"),
    "inference": ("tinybayes", "pyAgrum", "pgmpy"),
}


def main(
    quick: Annotated[bool, typer.Option("--quick", help="Few rows and models, to see that everything works.")] = False,
    page_only: Annotated[bool, typer.Option("--page-only", help="Measure nothing; write the page again.")] = False,
    limit: Annotated[float, typer.Option(help="Wall seconds that one step of a classifier may take.")] = 30.0,
    only: Annotated[
        list[str] | None, typer.Option(help="Parts of the run; their figures replace those of the last.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="The JSON file.")] = None,
    docs: Annotated[Path | None, typer.Option(help="The page.")] = None,
) -> None:
    """Measure everything once, and write the figures and the page."""
    folder = Path(tempfile.gettempdir()) if quick else None
    output = output or (folder or HERE / "results") / "comparison.json"
    docs = docs or (folder / "comparison.md" if folder else HERE.parent / "docs" / "comparison.md")
    if not page_only:
        result = json.loads(output.read_text()) if only and output.exists() else {"runs": []}
        result["runs"] = [run for run in result["runs"] if run["task"] not in (only or ())]
        for _ in compare(result, quick, limit, only):
            output.write_text(json.dumps(result, indent=1) + "\n")  # what is measured is kept
    boards = HERE / "results" / "deploy.json"  # of a run of its own: its figures do not depend on the machine
    docs.write_text(page(json.loads(output.read_text()), json.loads(boards.read_text())))
    print(f"wrote {docs}")


def compare(result: Figures, quick: bool, limit: float, only: list[str] | None) -> Iterator[None]:
    """Run everything, one process after another; yield after each."""
    began, load = time.monotonic(), os.getloadavg()[0]
    result |= {"provenance": about() | {"load_before": load, "quick": quick, "only": only}, "limit": limit}
    result["features"] = {name: probe(name) for name in LIBRARIES if name != "Orange"}
    with tempfile.TemporaryDirectory() as place:
        tables = write_tables(Path(place), quick)
        result["data"] = {name: describe for name, (_, describe) in tables.items()}
        files = {name: file for name, (file, _) in tables.items()}
        steps = [*classifiers(files, limit, Path(place) / "cache"), *tasks(files, quick)]
        for task, call in steps:
            if only and task not in only:
                continue
            run = {"task": task, **call()}
            result["runs"].append(run)
            print(json.dumps(run)[:300], flush=True)
            minutes = round((time.monotonic() - began) / 60, 1)
            result["provenance"] |= {"load_after": os.getloadavg()[0], "minutes": minutes}
            yield


def probe(library: str) -> dict[str, bool] | None:
    """Check the claims about a library in a process of its own: what they import is no part of the figures."""
    if not installed(library):
        return None
    code = f"import json, os, comparison_features as f; found = f.probe({library!r}); print(json.dumps(found))"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=HERE, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}


def write_tables(place: Path, quick: bool) -> dict[str, tuple[Path, Figures]]:
    """Store the tables that everybody gets: one million rows of codes, digits, and numbers to be cut."""
    n, tables = 20_000 if quick else 1_000_000, {}
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 2 * n)
    chances = rng.dirichlet(np.ones(5), (10, 20)).cumsum(axis=2)
    X = np.stack([(rng.random(2 * n)[:, None] > chances[y, j]).sum(axis=1) for j in range(20)], axis=1)
    X = np.minimum(X, 4)
    wide = place / "rows.npz"
    np.savez(wide, X=X[:n], y=y[:n], X_test=X[n:], y_test=y[n:], states=np.full(20, 5))
    tables["rows"] = (
        wide,
        {"training rows": n, "test rows": n, "features": 20, "classes": 10, "source": "drawn, seed 0"},
    )
    few, m = place / "few.npz", n // 10
    np.savez(few, X=X[:m], y=y[:m], X_test=X[n : n + m], y_test=y[n : n + m], states=np.full(20, 5))
    tables["100,000 rows"] = few, {"training rows": m, "test rows": m, "features": 20, "source": "the first of these"}
    tables["digits"] = place / "digits.npz", write_rows("digits", place / "digits.npz")
    numbers, classes = rng.normal(size=(n // 5, 10)), rng.integers(0, 10, n // 5)
    np.savez(place / "numbers.npz", X=numbers + 0.3 * classes[:, None], y=classes)
    source = "normal, shifted by class, seed 0"
    tables["numbers"] = place / "numbers.npz", {"training rows": n // 5, "features": 10, "source": source}
    return tables


Step = tuple[str, Callable[[], Figures]]


def classifiers(files: dict[str, Path], limit: float, cache: Path) -> Iterator[Step]:
    """Fit and predict through `harness.py`, as `closed_form.py` does."""
    known = CONTENDERS | OTHERS
    for task, names in CLASSIFIERS.items():
        for data in ("rows" if task == "naive Bayes" else "100,000 rows", "digits"):
            for name in names:
                library = known[name].library

                def call(name: str = name, data: str = data, library: str = library) -> Figures:
                    head = {"data": data, "library": library, "model": name}
                    if not installed(library):
                        return head | {"absent": True}
                    if library == "tinybayes":  # leave the compiled code on disk, as after any first use
                        measure(name, files["digits"], threads="all", limit=120, cache=cache, repeat=False)
                    return head | measure(name, files[data], threads="all", limit=limit, cache=cache)

                yield task, call


def tasks(files: dict[str, Path], quick: bool) -> Iterator[Step]:
    """Everything else, each in a process of its own."""
    seconds = 0.2 if quick else 2.0
    settings: dict[str, dict[str, Figures]] = {
        "footprint": {"": {"processes": 1 if quick else 5}},
        "tree": {name: {"rows": str(files[name]), "seconds": seconds} for name in ("100,000 rows", "digits")},
        "cut points": {"numbers": {"rows": str(files["numbers"]), "seconds": seconds}},
        "inference": {name: {"network": name, "seconds": seconds} for name in NETWORKS},
    }
    for task, cases in settings.items():
        for case, setting in cases.items():
            for library in ASKED[task]:
                yield task, lambda t=task, c=case, s=setting, n=library: {"data": c, "library": n, **run(t, n, s)}


def run(task: str, library: str, settings: Figures, limit: float = 420.0) -> Figures:
    """Run one task in a process; what fails or takes too long says so in its place."""
    if not installed(library):
        return {"absent": True}
    if task == "inference" and not os.environ.get("TINYBAYES_DATA"):
        return {"failed": "TINYBAYES_DATA is not set: no networks"}
    assert task in TASKS
    command = [sys.executable, str(HERE / "comparison_tasks.py"), task, library, json.dumps(settings)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"over": limit}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1][:200]}
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    typer.run(main)
