"""The command that learns."""

import shlex
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinybayes import __version__
from tinybayes.cli._console import check_output, print_json, say, suggest, watched, watched_live
from tinybayes.cli._options import Drop, Json, ModelOutput, Seed, TableFile, Target, Weight, given, options_from
from tinybayes.errors import error, near

if TYPE_CHECKING:
    from tinybayes.data.variables import Discretization
    from tinybayes.learn import HybridOptions
    from tinybayes.learn.closed_form.counts import Data
    from tinybayes.learn.training.tables import Progress
    from tinybayes.model import BayesNet, Dataset

REPORT_ROWS = 1_000_000  # the most rows for the figures of a report
INTERRUPTED = 130  # the exit code of a process that Ctrl-C ended
discretization_options = partial(
    options_from,
    "tinybayes.data.variables.Discretization",
    "discretization",
    panel="How columns become variables",
    only=("discretizer", "n_bins", "max_states"),
)


@discretization_options(discretizer="auto")
@options_from("tinybayes.learn.hybrid.HybridOptions", "options", panel="With --training hybrid")
def fit(
    context: typer.Context,
    table: TableFile,
    target: Target,
    output: ModelOutput,
    structure: Annotated[
        str, typer.Option(help="naive, chow-liu, random; with hybrid also subset, order-free, heuristic.")
    ] = "chow-liu",
    training: Annotated[
        str, typer.Option(help="ml: smoothed maximum likelihood; hybrid: by gradient, likelihood and margin.")
    ] = "ml",
    smoothing: Annotated[float, typer.Option(help="Of ml: added to every joint cell.")] = 1.0,
    weight: Weight = None,
    drop: Drop = None,
    seed: Seed = 0,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Also write a page that shows the model.")
    ] = None,
    as_json: Json = False,
    *,
    options: "HybridOptions",
    discretization: "Discretization",
) -> None:
    """Learn a classifier from a table and save it.

    Ctrl-C ends a training by gradient early: the parameters so far are saved, and the exit code is 130.
    """
    from tinybayes.deploy import save
    from tinybayes.infer import evaluate

    check_output(output)
    if report is not None:
        check_output(report, "--report")
    by_gradient = training == "hybrid"
    if by_gradient and given(context, "smoothing"):
        remedy = "it belongs to training ml: leave it out"
        raise error("no smoothing with --training hybrid", smoothing, where="--smoothing", remedy=remedy)
    discretization = replace(discretization, seed=seed)
    rows, *encodings = _read(table, target, weight, drop or [], discretization, by_gradient)
    net, end = _learn(rows, encodings, structure, training, smoothing, seed, options)
    rows = next(one for one in (rows, *encodings) if tuple(one.variables) == tuple(net.variables))
    result = evaluate(net, rows)
    complete = end is None or end.done >= end.total
    trained: dict[str, Any] = {"rows": result.rows, "structure": structure, "training": training}
    trained |= {"complete": complete} if by_gradient else {"smoothing": smoothing}
    trained |= {"discretizer": discretization.discretizer or "none", "seed": seed, "training_error": result.error}
    save(net, output, metadata={"trained": trained, "tinybayes": __version__})
    if report is not None:
        _report(net, rows, report, trained)
    _tell(net, trained, output, report, as_json)
    if end is not None and not complete:
        epoch = f"{end.done:,} of {end.total:,} epochs"
        say(f"Training was cut short by an interrupt after {epoch}; the parameters so far were saved.", err=True)
        raise typer.Exit(INTERRUPTED)


def _tell(net: "BayesNet", trained: dict[str, Any], output: Path, report: Path | None, as_json: bool) -> None:
    from tinybayes.cost import model_cost

    cost, error = model_cost(net), trained["training_error"]
    if as_json:
        print_json({"training_error": error, **cost.to_dict(), **trained}, output)
        return
    say(f"Learned {trained['structure']} from {trained['rows']:,} rows: {100 * error:.2f} % error on them; {cost}.")
    say(f"Saved to {output}. {suggest('evaluate', output, 'TEST_TABLE')}")
    if report is not None:
        say(f"See {report} in a browser.")


def _report(net: "BayesNet", rows: "Data", path: Path, trained: dict[str, Any]) -> None:
    """Write the page of the model, with figures on the rows it was learned from, or on the first million of them."""
    from tinybayes.learn.closed_form.counts import batches
    from tinybayes.model.dataset import concatenate
    from tinybayes.report.html import model_report

    assert net.target is not None
    parts, count = [], 0
    for batch in batches(rows):
        parts.append(batch.rows(slice(0, REPORT_ROWS - count)))
        count += len(parts[-1])
        if count >= REPORT_ROWS:
            break
    known = {
        "title": f"{net.target.name}: one model and its price",
        "seed": trained["seed"],
        "data": {"rows": trained["rows"]},
        "provenance": {"tinybayes": __version__},
        "settings": {name: value for name, value in trained.items() if name not in ("seed", "rows", "training_error")},
    }
    command = shlex.join(["tinybayes", *sys.argv[1:]])
    model_report(net, concatenate(parts), path, command=command, metadata=known, seen=True)


def read_rows(
    table: Path,
    target: str | None,
    weight: str | None,
    drop: list[str],
    discretization: "Discretization",
    *,
    in_memory: bool,
) -> "Data":
    """Open the table; learners that pass over it many times need it in memory."""
    from tinybayes.data.readers import as_table
    from tinybayes.data.tables import open_dataset

    with watched(as_table(table), "reading") as source:
        unknown = [name for name in drop if name not in source.columns]
        if unknown:
            raise error("columns of the table", unknown, where="--drop", remedy=near(unknown[0], source.columns))
        features = [c for c in source.columns if c not in (target, weight, *drop)] if drop else None
        data = open_dataset(source, target=target, features=features, weight=weight, discretization=discretization)
        return data.in_memory() if in_memory else data


def _read(
    table: Path, target: str, weight: str | None, drop: list[str], asked: "Discretization", by_gradient: bool
) -> "list[Any]":
    """Read the table in all encodings that are tried."""
    from tinybayes.learn.hybrid import encodings_tried
    from tinybayes.model import Dataset

    first = read_rows(table, target, weight, drop, asked, in_memory=by_gradient)
    if not isinstance(first, Dataset) or encodings_tried(asked, len(first)) == [asked]:
        return [first]
    tried = encodings_tried(asked, len(first))
    return [read_rows(table, target, weight, drop, one, in_memory=True) for one in tried]


def _learn(
    rows: "Data",
    encodings: "list[Dataset]",
    structure: str,
    training: str,
    smoothing: float,
    seed: int,
    options: "HybridOptions",
) -> "tuple[BayesNet, Progress | None]":
    """Learn, and tell how far training by gradient came; show it on the way when someone is watching."""
    from tinybayes.learn import learn_classifier
    from tinybayes.report.progress import training_progress

    last: Progress | None = None
    with training_progress(watched_live() and training == "hybrid") as draw:

        def report(state: "Progress") -> None:
            nonlocal last
            last = state
            if draw is not None:
                draw(state)

        net = learn_classifier(
            rows,
            structure=structure,
            training=training,
            smoothing=smoothing,
            seed=seed,
            options=options,
            encodings=encodings,
            report=report,
        )
    return net, last
