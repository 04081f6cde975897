"""The command that searches: a table and a budget in, the best deployable models out."""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tinybayes.cli._console import Json, TableFile, print_json, say, show, suggest, watched_live
from tinybayes.cli.learning import image_shape_of
from tinybayes.errors import error

if TYPE_CHECKING:
    from collections.abc import Callable

    from tinybayes.search.explore import Exploration, State

UNITS = {"b": 8, "kb": 8000, "mb": 8_000_000, "kib": 8192, "mib": 8 << 20, "bit": 1, "bits": 1, "kbit": 1000}
SECONDS = {"s": 1, "m": 60, "h": 3600}
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"  # no more digits than a double tells apart
SHORT = 20.0  # seconds, of which processes would take too many to start


def explore(
    table: TableFile,
    target: Annotated[str, typer.Option(help="The column to predict.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Directory of the search.")],
    budget: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory of the parameters: 4kB, 512B, 2KiB, 32kbit.")
    ] = None,
    max_ops: Annotated[int | None, typer.Option(help="Operations of a prediction.")] = None,
    max_error: Annotated[
        float | None, typer.Option(help="Choose the smallest model with at most this error, such as 0.05.")
    ] = None,
    time: Annotated[str, typer.Option("--time", metavar="TIME", help="Of the whole search: 90s, 10m, 2h.")] = "10m",
    families: Annotated[
        str | None,
        typer.Option(help="Some of nb,tan,tan-learned,fc,cnn,closed-form,tied,circuit,tree,forest; all by default."),
    ] = None,
    test: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="Rows to judge by; else a fifth of the table is set aside.")
    ] = None,
    image: Annotated[
        str | None, typer.Option("--image-shape", metavar="ROWSxCOLUMNS", help="When the features are pixels.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.")] = None,
    storage: Annotated[
        str | None, typer.Option(metavar="URL", help="sqlite:///x.db or postgresql://...; else a journal in DIR.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes to use; by default one a core, below 20 s one.")
    ] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Use the workers of this Dask scheduler, or scheduler file.")
    ] = None,
    seed: Annotated[int, typer.Option(help="For everything drawn at random.")] = 0,
    as_json: Json = False,
) -> None:
    """Search all families of models for the best ones under a budget.

    Ctrl-C ends the search and makes the front of what was found; the same command takes a search up again.
    """
    from tinybayes.report.html import write_report
    from tinybayes.search.explore import explore as run

    if workers is not None and workers < 1:
        raise error("at least 1", workers, where="--workers")
    seconds = parse_time(time)
    if not as_json:
        say(announcement(time))
    with search_progress(watched_live() and not as_json) as report:
        found = run(
            table,
            target,
            output=output,
            test=test,
            budget_bits=None if budget is None else parse_size(budget),
            max_operations=max_ops,
            max_error=max_error,
            seconds=seconds,
            families=families,
            image_shape=image_shape_of(image),
            drop=tuple(drop or ()),
            storage=storage,
            workers=workers or default_workers(seconds),
            dask=dask,
            seed=seed,
            command=shlex.join(["tinybayes", *sys.argv[1:]]),
            report=report,
        )
    write_report(found.directory)
    if as_json:
        print_json({"chosen": found.chosen, "front": found.front, "runs": len(found.models)}, output)
        return
    tell(found)


def default_workers(seconds: float, most: int = 8) -> int:
    """Return how many processes to use: one for each core, if there is time to start them."""
    return 1 if seconds < SHORT else max(1, min(most, os.cpu_count() or 1))


def announcement(time: str) -> str:
    """Say how long it takes, and that nothing is lost when it is ended."""
    return f"Searching for {time}; Ctrl-C ends it early and keeps what was found, and the same command goes on."


def tell(found: "Exploration") -> None:
    """Show the front and name the chosen model."""
    show(front_table(found))
    failures = found.document["failures"]
    if failures:
        say(f"Not everything could be carried out ({len(failures)} times); the last: {failures[-1]}", err=True)
    chosen = found.chosen
    if chosen is None:
        say("No model was found within the budget: give the search more time, or a larger budget.")
    else:
        tested = "" if chosen["test_error"] is None else f", {100 * chosen['test_error']:.1f} % error on the test rows"
        say(f"Chosen: {chosen['label']}, {chosen['operations']:,} operations{tested}.")
        say(suggest("export", found.directory, "--to", "c", "-o", "firmware", "--name", "model"))
        say(f"That takes the chosen model; the others of the front are in {found.directory / 'models'}.")
    say(f"See {found.directory / 'report.html'} in a browser. The same command goes on searching.")


def front_table(found: "Exploration") -> object:
    """Return the front as a table, by size, with the chosen model in green."""
    from rich.table import Table

    table = Table(title="The front: no other model found is better in error, size and operations")
    for name in ("model", "validation", "test", "bytes", "operations"):
        table.add_column(name, justify="left" if name == "model" else "right")
    shown = found.front
    if found.chosen is not None and all(model["id"] != found.chosen["id"] for model in shown):
        shown = sorted([*shown, found.chosen], key=lambda model: model["bytes"])  # as good as one of them, by a hair
    for model in shown:
        mark = "[bold green]" if found.chosen is not None and model["id"] == found.chosen["id"] else ""
        tested = "" if model["test_error"] is None else f"{100 * model['test_error']:.2f} %"
        table.add_row(
            f"{mark}{model['label'].rsplit(', ', 1)[0]}{'' if model['file'] else ' (baseline)'}",
            f"{100 * model['validation_error']:.2f} %",
            tested,
            f"{model['bytes']:,}",
            f"{model['operations']:,}",
        )
    return table


@contextmanager
def search_progress(shown: bool) -> "Iterator[Callable[[State], None] | None]":
    """Give a function that draws how far a search has come; None when nobody is watching."""
    if not shown:
        yield None
        return
    from rich import progress as rich_progress
    from rich.console import Console

    from tinybayes.search.families import describe

    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.TextColumn("{task.fields[text]}"),
    )
    with rich_progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("searching", total=None, text="")

        def report(state: "State") -> None:
            best = state.best
            text = f"{state.runs} runs, {state.seconds_left:.0f} s left"
            if best is not None:
                text += f"; best {100 * best.error:.2f} %: {describe(best.setting)}, {best.bits / 8000:.1f} kB"
            total = state.seconds + state.seconds_left
            bar.update(task, description=state.phase, completed=state.seconds, total=total, text=text)

        yield report


def parse_size(text: str) -> int:
    """Return the bits that a size such as 4kB has; a number without a unit is bytes."""
    found = re.fullmatch(rf"\s*({_NUMBER})\s*([a-zA-Z]*)\s*", text)
    bits = round(float(found[1]) * UNITS.get(found[2].lower() or "b", 0)) if found else 0
    if bits < 1:
        raise error("a size such as 4kB, 512B, 2KiB or 32kbit", repr(text[:40]), where="--budget")
    return bits


def parse_time(text: str) -> float:
    """Return the seconds of a time such as 10m."""
    found = re.fullmatch(rf"\s*({_NUMBER})\s*([smh]?)\s*", text)
    if found is None or float(found[1]) <= 0:
        raise error("a time such as 90s, 10m or 2h", repr(text[:40]), where="--time")
    return float(found[1]) * SECONDS[found[2] or "s"]
