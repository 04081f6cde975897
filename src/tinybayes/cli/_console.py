"""Output of the commands.

Commands print through the functions here, which know about ``--quiet``. Answers, ``--json`` and errors are
always printed.
"""

import json
import os
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinybayes.errors import TinybayesWarning, error, visible
from tinybayes.files import is_directory
from tinybayes.report.finite import finite

if TYPE_CHECKING:
    from tinybayes.data.readers import Table

MOST_AGE = 60.0  # seconds; what has run for longer is no single command

_silent = False  # set anew by each command; a process runs one command at a time


def be_quiet(quiet: bool) -> None:
    """Say for this command whether tables, remarks and progress are wanted."""
    global _silent
    _silent = quiet


def watched_live() -> bool:
    """Return whether someone looks at standard error and wants to see progress there."""
    return sys.stderr.isatty() and not _silent


def show(thing: object) -> None:
    """Print a table or a tree, unless --quiet."""
    if _silent:
        return
    from rich.console import Console

    Console().print(thing)


def say(text: str, *, err: bool = False, always: bool = False) -> None:
    """Print a line without markup in its names and paths, and without cutting it at the width of a pipe.

    With --quiet only answers (`always`) and lines on standard error are printed.
    """
    if _silent and not (err or always):
        return
    from rich.console import Console

    Console(stderr=err).print(visible(text), markup=False, highlight=False, soft_wrap=True)


def remark(text: str) -> None:
    """Print a line beside an answer that goes to standard output, unless --quiet."""
    if not _silent:
        say(text, err=True)


@contextmanager
def warnings_as_remarks() -> Iterator[None]:
    """Print warnings about data as remarks, each once, without the line of code that Python adds."""
    told: set[str] = set()
    with warnings.catch_warnings():
        others = warnings.showwarning

        def tell(message: Warning | str, category: type[Warning], *position: Any, **more: Any) -> None:
            if not issubclass(category, TinybayesWarning):
                others(message, category, *position, **more)
            elif str(message) not in told:
                told.add(str(message))
                remark(f"warning: {message}")

        warnings.simplefilter("always", TinybayesWarning)
        warnings.showwarning = tell
        yield


def suggest(*words: object) -> str:
    """Suggest the next command in a form that can be pasted into a shell."""
    return f"Now try: {shlex.join(['tinybayes', *map(str, words)])}"


def print_json(values: dict[str, Any], output: Path | None = None) -> None:
    """Print an object for machines, with the file that was written."""
    if output is not None:
        values = {**values, "output": str(output)}
    typer.echo(json.dumps(finite(values), allow_nan=False))


def check_output(path: Path, option: str = "--output") -> None:
    """Fail before the work, not after it."""
    if is_directory(path) or not is_directory(path.absolute().parent):
        raise error("a file in a directory that exists", str(path), where=option, remedy="create the directory")


@contextmanager
def watched(table: "Table", label: str) -> Iterator["Table"]:
    """Show the batches of a table as they are read, when it has several and someone is watching."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal or _silent:
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


def process_age() -> float:
    """Return for how many seconds this command has run; 0 where the system does not say."""
    try:
        started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        age = float(Path("/proc/uptime").read_text().split()[0]) - started
    except (OSError, ValueError, IndexError):
        return 0.0
    return age if 0 <= age < MOST_AGE else 0.0
