"""Closed-form classifiers beside their peers: time to fit and to predict, test error, bytes of the model.

Run it as ``python benchmarks/closed_form.py``; README.md beside it says what is compared and how.
"""

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from harness import Figures, measure, provenance
from peers import CONTENDERS, QUICK, YARDSTICK
from rich.console import Console
from rich.table import Table

DATA = ("letter", "satimage", "usps")
THREADS = ("all", "one")
SEED = 0  # of the split, where a data set comes without one; nothing else is random
TIMES = ("ms", "CPU ms", "x ours")
HEADINGS = ("model", "error %", *(f"fit {t}" for t in TIMES), *(f"predict {t}" for t in TIMES), "file kB", "priced kB")
WIDTH = 130  # columns of the terminal that the tables need


def main(
    quick: Annotated[bool, typer.Option("--quick", help="Only our own models and scikit-learn's.")] = False,
    limit: Annotated[float, typer.Option(min=30, help="Wall seconds that one step may take.")] = 300.0,
    data: Annotated[list[str] | None, typer.Option(help="Data sets; all three by default.")] = None,
    threads: Annotated[list[str] | None, typer.Option(help="'all' cores or 'one' thread; both by default.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder for closed_form.json and closed_form.md.")] = None,
) -> None:
    """Compare tinybayes with scikit-learn, pyAgrum and pgmpy on the same integer codes."""
    for given, known in ((data, DATA), (threads, THREADS)):
        if not set(given or ()) <= set(known):
            raise typer.BadParameter(f"expected some of {', '.join(known)}, got {', '.join(given or ())}")
    console = Console(width=max(WIDTH, Console().width))
    chosen = [name for name, contender in CONTENDERS.items() if not quick or contender.library in QUICK]
    result = compare(chosen, data or DATA, threads or THREADS, limit, console)
    for table in tables(result):
        console.print(table, "")
    for line in findings(result):
        console.print(line, highlight=False)
    if output is None and not quick:
        output = Path(__file__).parent / "results"
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        (output / "closed_form.json").write_text(json.dumps(result, indent=1) + "\n")
        (output / "closed_form.md").write_text(markdown(result))


def compare(chosen: list[str], data: Sequence[str], threads: Sequence[str], limit: float, console: Console) -> Figures:
    """Run every contender on every data set, one after another."""
    packages = sorted({contender.package for contender in CONTENDERS.values()} | {"numpy", "numba", "pandas"})
    result: Figures = {"provenance": {**provenance(packages), "seed": SEED}, "limit": limit, "first": [], "runs": []}
    with tempfile.TemporaryDirectory() as folder, console.status("") as status:
        files = {name: Path(folder) / f"{name}.npz" for name in data}
        cache = Path(folder) / "cache"
        result["data"] = {name: write_rows(name, file) for name, file in files.items()}
        for contender in chosen:
            if CONTENDERS[contender].library == "tinybayes":
                status.update(f"first call, nothing compiled: {contender}")
                figures = first_call(contender, files[data[0]], cache, limit)
                result["first"].append({"model": contender, **figures})
        for name, setting, contender in product(data, threads, chosen):
            status.update(f"{name}, {setting}: {contender}")
            figures = measure(contender, files[name], threads=setting, limit=limit, cache=cache)
            result["runs"].append({"data": name, "threads": setting, "model": contender, **figures})
            walls = ", ".join(f"{step} {times(figures.get(step, {}))[0]}" for step in ("fit", "predict"))
            console.print(f"[dim]{name}, {setting}, {contender}: {walls}[/]", highlight=False)
    result["provenance"]["load_after"] = os.getloadavg()[0]
    add_ratios(result["runs"])
    return result


def write_rows(name: str, path: Path) -> Figures:
    """Store the codes for the processes to come; return what describes the data."""
    from tinybayes import datasets

    # The reference discretisation if TINYBAYES_DATA is set; of several folds the first.
    split = datasets.load(name, seed=SEED)
    train, test = split.train, split.test
    states = [variable.cardinality for variable in train.variables]
    X, y, X_test, y_test = (np.asarray(codes, dtype=np.int64) for codes in (train.X, train.y, test.X, test.y))
    np.savez(path, X=X, y=y, X_test=X_test, y_test=y_test, states=np.array(states))
    local = os.environ.get("TINYBAYES_DATA", "")
    return {
        "training rows": len(train),
        "test rows": len(test),
        "features": len(states),
        "classes": train.target.cardinality if train.target else 0,
        "states": [min(states), max(states)],
        "source": split.source.replace(local, "$TINYBAYES_DATA") if local else split.source,
    }


def first_call(contender: str, rows: Path, cache: Path, limit: float) -> Figures:
    """Time a process that finds nothing compiled; leave the compiled code in the cache for those to come."""
    with tempfile.TemporaryDirectory() as empty:
        figures = measure(contender, rows, threads="all", limit=limit, cache=Path(empty), repeat=False)
    measure(contender, rows, threads="all", limit=limit, cache=cache, repeat=False)
    return figures


def add_ratios(runs: list[Figures]) -> None:
    """Divide the times of each run by ours of the same structure, data and threads; over the limit: at least."""
    found = {(run["data"], run["threads"], run["model"]): run for run in runs}
    for run in runs:
        ours = found.get((run["data"], run["threads"], YARDSTICK[CONTENDERS[run["model"]].structure]), {})
        run["times_ours"] = {}
        for step in ("fit", "predict"):
            theirs, mine = run.get(step, {}), ours.get(step, {})
            if "wall" not in mine:
                continue
            if "over" in theirs:
                run["times_ours"][step] = {"wall": theirs["over"] / mine["wall"], "at_least": True}
            elif "wall" in theirs:
                run["times_ours"][step] = {clock: theirs[clock] / mine[clock] for clock in ("wall", "cpu")}


def rows_of(runs: list[Figures]) -> Iterator[list[str]]:
    """Yield the cells of a table, one row a model."""
    for run in runs:
        error = run.get("predict", {}).get("error")
        cells = [run["model"], "" if error is None else f"{100 * error:.2f}"]
        for step in ("fit", "predict"):
            cells += [*times(run.get(step, {})), ratio(run["times_ours"].get(step, {}))]
        saved = run.get("save", {})
        size = f"{saved['bytes'] / 1000:,.1f} {saved['file']}" if "bytes" in saved else ""
        yield [*cells, size, f"{saved['priced_bytes'] / 1000:,.1f}" if "priced_bytes" in saved else ""]


def times(figures: Figures) -> tuple[str, str]:
    if "wall" in figures:
        return milliseconds(figures["wall"]), milliseconds(figures["cpu"])
    if "over" in figures:
        return f"over {figures['over']:g} s", ""
    return ("failed", "") if "failed" in figures else ("not run", "")


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.2f}" if seconds < 0.1 else f"{1000 * seconds:,.0f}"


def ratio(figures: Figures) -> str:
    if not figures:
        return ""
    value = figures["wall"]
    text = f"{value:.2f}" if value < 10 else f"{value:,.0f}"
    return f"> {text}" if "at_least" in figures else text


def sections(result: Figures) -> Iterator[tuple[str, tuple[str, ...], list[list[str]]]]:
    """Yield the title, headings and rows of every table."""
    for name, about in result["data"].items():
        for setting in THREADS:
            runs = [run for run in result["runs"] if (run["data"], run["threads"]) == (name, setting)]
            if runs:
                shape = f"{about['training rows']:,} + {about['test rows']:,} rows, {about['features']} features"
                cores = "one thread" if setting == "one" else f"all {result['provenance']['cores']} cores"
                title = f"{name}: {shape}, {about['classes']} classes; {cores}"
                yield title, HEADINGS, list(rows_of(runs))
    yield first_section(result)


def first_section(result: Figures) -> tuple[str, tuple[str, ...], list[list[str]]]:
    """Return the table of what a new process waits for."""
    name = next(iter(result["data"]))
    cold = {run["model"]: run for run in result["first"]}
    rows = []
    for run in result["runs"]:
        if (run["data"], run["threads"]) == (name, result["runs"][0]["threads"]):
            if run["model"] in cold:
                rows.append([f"{run['model']} (nothing compiled yet)", *first_times(cold[run["model"]])])
            rows.append([run["model"], *first_times(run)])
    return f"First calls in a new process on {name}, wall ms", ("model", "import", "first fit", "first predict"), rows


def first_times(run: Figures) -> list[str]:
    return [times(run.get(step, {}).get("first", run.get(step, {})))[0] for step in ("import", "fit", "predict")]


def tables(result: Figures) -> Iterator[Table]:
    for title, headings, rows in sections(result):
        table = Table(title=title, title_justify="left")
        for position, heading in enumerate(headings):
            table.add_column(heading, justify="right" if position else "left", no_wrap=position == 0)
        for cells in rows:
            peer = not cells[0].startswith("tinybayes")
            # A ratio below one is a loss of ours: it must not be overlooked.
            lost = [peer and h.endswith("x ours") and c.startswith("0.") for h, c in zip(headings, cells, strict=True)]
            table.add_row(*(f"[bold red]{c}[/]" if bad else c for c, bad in zip(cells, lost, strict=True)))
        yield table


def findings(result: Figures) -> Iterator[str]:
    """Say in sentences how the comparison went."""
    peers = ("pyAgrum", "pgmpy")
    groups = {
        "naive Bayes, scikit-learn": lambda c: c.library == "scikit-learn",
        "naive Bayes, pyAgrum and pgmpy": lambda c: c.library in peers and c.structure == "naive",
        "trees, pyAgrum and pgmpy": lambda c: c.library in peers and c.structure != "naive",
    }
    for title, member in groups.items():
        for step in ("fit", "predict"):
            found = [
                (run["times_ours"][step]["wall"], run)
                for run in result["runs"]
                if member(CONTENDERS[run["model"]]) and step in run["times_ours"]
            ]
            if not found:
                continue
            _, run = min(found, key=lambda pair: pair[0])
            low, high = (ratio({"wall": pick(value for value, _ in found)}) for pick in (min, max))
            where = f"{run['model']} on {run['data']}, {'one thread' if run['threads'] == 'one' else 'all cores'}"
            lost = sum(value < 1 for value, _ in found)
            yield (
                f"{title}: {step} takes {low} to {high} times our wall time (closest: {where}); "
                f"ours is slower in {lost} of {len(found)} comparisons"
            )


def markdown(result: Figures) -> str:
    about = result["provenance"]
    versions = ", ".join(f"{name} {number}" for name, number in about["packages"].items() if number)
    lines = [
        "# Closed-form classifiers beside their peers",
        "",
        "Written by `benchmarks/closed_form.py` from `closed_form.json`; `benchmarks/README.md` says how to read it.",
        "",
        f"- {about['date']}, `{about['command']}`, commit {about['commit']}",
        f"- {about['cpu']}, {about['cores']} cores, {about['system']}, "
        f"load {about['load_before']:.2f} before and {about['load_after']:.2f} after",
        f"- Python {about['python']}, {versions}",
    ]
    lines += [f"- {name}: {figures['source']}" for name, figures in result["data"].items()]
    lines += ["", *(f"- {line}" for line in findings(result))]
    for title, headings, rows in sections(result):
        lines += ["", f"## {title}", "", "| " + " | ".join(headings) + " |"]
        lines += ["|" + "|".join("---" if h == "model" else "---:" for h in headings) + "|"]
        lines += ["| " + " | ".join(cells) + " |" for cells in rows]
    failed = [
        f"- {run['model']}, {run['data']}, {run['threads']}, {step}: {run[step]['failed']}"
        for run in result["runs"]
        for step in ("import", "fit", "predict", "save")
        if "failed" in run.get(step, {})
    ]
    lines += ["", "## Failures", "", *failed] if failed else []
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    typer.run(main)
