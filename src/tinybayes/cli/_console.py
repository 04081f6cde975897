"""What the commands share: types of arguments, and what they print."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinybayes.errors import error

if TYPE_CHECKING:
    from tinybayes.data.readers import Table

TableFile = Annotated[
    Path, typer.Argument(metavar="TABLE", help="CSV, TSV, Parquet, ARFF, npz or .data; text also .gz")
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model: .tb, .bif, .xmlbif, .uai or .ac")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines instead of tables.")]


def show(thing: object) -> None:
    """Print a table or a tree."""
    from rich.console import Console

    Console().print(thing)


def say(text: str, *, err: bool = False) -> None:
    """Print a line as it is: no markup in the names and paths it holds, and not cut at the width of a pipe."""
    from rich.console import Console

    Console(stderr=err).print(text, markup=False, highlight=False, soft_wrap=True)


def print_json(values: dict[str, Any], output: Path | None = None) -> None:
    """Print an object for machines, with the file that was written."""
    if output is not None:
        values = {**values, "output": str(output)}
    typer.echo(json.dumps(_finite(values), allow_nan=False))


def _finite(value: Any) -> Any:
    """Replace the numbers that JSON does not have by null: the log loss of an impossible row is infinite."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_output(path: Path, option: str = "--output") -> None:
    """Fail before the work, not after it."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise error("a file in a directory that exists", str(path), where=option, remedy="create the directory")


@contextmanager
def watched(table: "Table", label: str) -> Iterator["Table"]:
    """Show the batches of a table as they are read, when it has several and someone is watching."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield table
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(label, total=None)

        def batches() -> Iterator[Any]:
            for frame in table.batches():
                yield frame
                progress.advance(task)

        yield replace(table, source=batches)
