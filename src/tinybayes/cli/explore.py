"""The command that searches: a table and a budget in, the best deployable models out."""

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinybayes.cli._console import print_json, process_age, say, show, suggest, watched_live
from tinybayes.cli._options import (
    Clock,
    Core,
    Drop,
    Json,
    Seed,
    TableFile,
    Target,
    Weight,
    image_shape_of,
    options_from,
)
from tinybayes.errors import error
from tinybayes.extras import require

if TYPE_CHECKING:
    from tinybayes.search.budget import Budget
    from tinybayes.search.explore import Execution, Exploration, State
    from tinybayes.search.measure import Measure

SECONDS = {"s": 1, "m": 60, "h": 3600}
UNREACHED = 3  # the exit code of a search in which no model keeps the limits
SHORT = 20.0  # seconds of a search that is too short to start processes for
WRITING = 0.05  # of the time, for the page of results
DECIDING = "What decides"  # the panel of the help


@options_from("tinybayes.search.explore.Execution", "execution", panel="Workers and storage", workers=None)
def explore(
    table: TableFile,
    target: Target,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Directory of the search.")],
    budget: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Flash of the whole program: 4kB, 512B, 2KiB, 32kbit.")
    ] = None,
    max_ram: Annotated[str | None, typer.Option(metavar="SIZE", help="RAM of the program, stack included.")] = None,
    max_latency: Annotated[str | None, typer.Option(metavar="TIME", help="Of a prediction: 300us, 5ms.")] = None,
    core: Core = "cortex-m0+",
    clock: Clock = None,
    budget_parameters: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory of the parameters alone, the price of the papers.")
    ] = None,
    max_ops: Annotated[int | None, typer.Option(help="Operations of a prediction, as the papers count them.")] = None,
    max_error: Annotated[
        float | None, typer.Option(help="Choose the smallest model with at most this error (or metric): 0.05 is 5 %.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What is minimised on validation rows: error, balanced, f1, logloss, auc or cost. Default: the cost "
            "where there is a cost matrix, else the error.",
            rich_help_panel=DECIDING,
        ),
    ] = None,
    class_weight: Annotated[
        str | None,
        typer.Option(
            metavar="balanced|FILE",
            help="What rows of each class count in training: JSON or CSV, class and weight.",
            rich_help_panel=DECIDING,
        ),
    ] = None,
    cost_matrix: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="What labels cost: JSON or CSV, a true class a row.", rich_help_panel=DECIDING
        ),
    ] = None,
    weight: Weight = None,
    groups: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Keep rows of a group in one part of the table.", rich_help_panel=DECIDING),
    ] = None,
    time_order: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Train on early rows, validate on later ones, test last.", rich_help_panel=DECIDING
        ),
    ] = None,
    feature_cost: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What columns cost to read: JSON or CSV, column and cost; * for all others.",
            rich_help_panel=DECIDING,
        ),
    ] = None,
    max_feature_cost: Annotated[
        float | None, typer.Option(help="Of all columns that a model reads.", rich_help_panel=DECIDING)
    ] = None,
    time: Annotated[str, typer.Option("--time", metavar="TIME", help="Of the whole search: 90s, 10m, 2h.")] = "10m",
    trials: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Try N settings instead of --time: the same command gives the same files."
        ),
    ] = None,
    families: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Some of naive, tan, subset, dense, conv, closed-form, tied, circuit, tree, forest, boosted, with "
            "commas between; all by default.",
        ),
    ] = None,
    test: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="Test rows; otherwise a fifth of the table is set aside.")
    ] = None,
    image: Annotated[
        str | None, typer.Option("--image-shape", metavar="ROWSxCOLUMNS", help="When the features are pixels.")
    ] = None,
    drop: Drop = None,
    seed: Seed = 0,
    whole: Annotated[bool, typer.Option("--all", help="List all models of the front, not 20 at most.")] = False,
    as_json: Json = False,
    *,
    execution: "Execution",
) -> None:
    """Search all families of models for the best ones under a budget.

    Ctrl-C ends the search and makes the front of the finished runs; the same command resumes a search.
    """
    began = monotonic() - process_age()
    require("jax", "optuna", "sklearn", extra="search")
    from tinybayes.report.html import write_report
    from tinybayes.search.explore import explore as run
    from tinybayes.search.goal import Goal

    goal = Goal(metric=metric, class_weight=class_weight, costs=cost_matrix)
    limits = budget_from(
        budget=budget,
        max_ram=max_ram,
        max_latency=max_latency,
        core=core,
        clock=clock,
        budget_parameters=budget_parameters,
        max_ops=max_ops,
        max_error=max_error,
        max_feature_cost=max_feature_cost,
        measure=goal.measure,
    )
    seconds = parse_time(time)
    shape = image_shape_of(image)
    workers, command = execution.workers or default_workers(seconds), shlex.join(["tinybayes", *sys.argv[1:]])
    announced = None if as_json else announcement(time, trials)
    with search_progress(watched_live() and not as_json, goal.measure, announced) as report:
        result = run(
            table,
            target,
            output=output,
            test=test,
            budget=limits,
            seconds=max(0.8 * seconds, (1 - WRITING) * seconds - (monotonic() - began)),
            families=families,
            image_shape=shape,
            trials=trials,
            drop=drop or (),
            seed=seed,
            goal=goal,
            weight=weight,
            groups=groups,
            time_order=time_order,
            feature_costs=feature_cost,
            execution=replace(execution, workers=workers, command=command),
            report=report,
        )
    write_report(result.directory)
    if as_json:
        values = {"chosen": result.chosen, "closest": result.closest, "front": result.front}
        print_json({**values, "runs": len(result.models)}, output)
    else:
        tell(result, whole=whole)
    end(result)


def budget_from(
    *,
    budget: str | None,
    core: str = "cortex-m0+",
    clock: str | None = None,
    max_ram: str | None = None,
    max_latency: str | None = None,
    budget_parameters: str | None = None,
    max_ops: int | None = None,
    max_error: float | None = None,
    max_feature_cost: float | None = None,
    measure: "Measure | None" = None,
) -> "Budget":
    """Return the budget that the options state; the error is a value of `measure`."""
    from tinybayes.search.budget import Budget, check_error, parse_bytes, parse_clock, parse_latency, parse_size
    from tinybayes.search.measure import ERROR

    check_error(max_error, measure or ERROR, "--max-error")
    return Budget(
        flash=None if budget is None else parse_bytes(budget, "--budget"),
        ram=None if max_ram is None else parse_bytes(max_ram, "--max-ram"),
        microseconds=None if max_latency is None else parse_latency(max_latency, "--max-latency"),
        core=core,
        clock=None if clock is None else parse_clock(clock, "--clock"),
        bits=None if budget_parameters is None else parse_size(budget_parameters, "--budget-parameters"),
        operations=max_ops,
        error=max_error,
        features=max_feature_cost,
    )


def end(result: "Exploration") -> None:
    """End the command with an exit code of its own if no model keeps the limits."""
    if result.chosen is None:
        say(result.shortfall, err=True)
        raise typer.Exit(UNREACHED)


def default_workers(seconds: float, most: int = 8) -> int:
    """Return how many processes to use: one for each core, if there is time to start them."""
    return 1 if seconds < SHORT else max(1, min(most, os.cpu_count() or 1))


def announcement(time: str, trials: int | None = None) -> str:
    """Say how long it takes, and that nothing is lost when it is ended."""
    long = f"Searching for {time}" if trials is None else f"Searching with {trials:,} trials, however long they take"
    return f"{long}; Ctrl-C ends it early and keeps the finished runs, and the same command goes on."


def tell(result: "Exploration", *, whole: bool = False) -> None:
    """Show the front and name the chosen model."""
    from tinybayes.report.front_table import front_table

    show(front_table(result, whole=whole))
    failures = result.document["failures"]
    if failures:
        say(f"Not everything could be carried out ({len(failures)} times); the last: {failures[-1]}", err=True)
    cut = result.document["cut"]
    if cut:
        say(f"Cut short: {'; '.join(cut)}.")
    chosen = result.chosen
    if chosen is not None:
        rows = result.document["data"]["test_rows"]
        tested = "" if chosen["test_error"] is None else f", {_said(chosen, result)} on {rows:,} test rows"
        say(f"Chosen: {chosen['label'].rsplit(', ', 1)[0]}{tested}.")
        say(f"Its program on {result.document['budget']['core']}: {program_words(chosen)}.")
        say(suggest("export", result.directory, "--to", "c", "-o", "firmware", "--name", "model"))
        say(f"That takes the chosen model; the others of the front are in {result.directory / 'models'}.")
    say(f"See {result.directory / 'report.html'} in a browser. The same command goes on searching.")


def _said(model: dict[str, Any], result: "Exploration") -> str:
    """Return the figures of a model on the test rows in words."""
    error = f"{100 * model['test_error']:.1f} % error"
    measure = result.measure
    return error if measure.name == "error" else f"{measure.say(model['test_value'])} and {error}"


def program_words(model: dict[str, Any]) -> str:
    """Return what the program of a model of the front takes."""
    parameters = f"{model['bytes']:,} B of parameters"
    if model["tables_only"]:
        return f"not priced; it has {parameters}"
    flash = f"{model['flash']:,} B of flash ({parameters}), {model['ram']:,} B of RAM, {model['stack']:,} B of stack"
    features = f", {model['feature_cost']:g} for features" if "feature_cost" in model else ""
    return f"{flash}, {model['instructions']:,.0f} instructions, {model['microseconds']:,.0f} us{features}"


@contextmanager
def search_progress(
    shown: bool, measure: "Measure | None" = None, announced: str | None = None
) -> "Iterator[Callable[[State], None]]":
    """Announce a search when it begins, and draw its phase, the time left and the best model so far.

    Only what can be exported is called the best.
    """
    from tinybayes.report.progress import drawn
    from tinybayes.search.families import describe
    from tinybayes.search.measure import ERROR

    said = measure or ERROR
    told = announced is None

    def text(state: "State") -> tuple[float, float, str]:
        line, best = f"{state.phase}: {state.runs} runs, {state.seconds_left:.0f} s left", state.best
        if best is not None:
            line += f"; best {said.say(best.error)}: {describe(best.setting)}, {best.price.flash / 1000:.1f} kB"
        return state.seconds, state.seconds + state.seconds_left, line

    with drawn(shown, "search", text, bar=True) as draw:

        def report(state: "State") -> None:
            nonlocal told
            if not told and announced is not None:  # all arguments were right
                say(announced)
            told = True
            if draw is not None:
                draw(state)

        yield report


def parse_time(text: str) -> float:
    """Return the seconds of a time such as 10m."""
    match = re.fullmatch(r"\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([smh]?)\s*", text)
    if match is None or float(match[1]) <= 0:
        raise error("a time such as 90s, 10m or 2h", repr(text[:40]), where="--time")
    return float(match[1]) * SECONDS[match[2] or "s"]
