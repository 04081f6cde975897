"""The command line. Each command calls functions of the package and shows the result; it holds no logic."""

import errno
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NoReturn

import typer

from tinybayes import __version__
from tinybayes.cli._console import be_quiet, warnings_as_remarks
from tinybayes.cli._options import Command, Commands, Quiet, spelled_out
from tinybayes.cli.circuits import learn_circuit
from tinybayes.cli.demo import demo
from tinybayes.cli.explain import explain
from tinybayes.cli.explore import UNREACHED, explore
from tinybayes.cli.export import export
from tinybayes.cli.inference import infer
from tinybayes.cli.learning import INTERRUPTED, fit
from tinybayes.cli.models import convert, evaluate, info, predict
from tinybayes.cli.plot import plot
from tinybayes.cli.query import query
from tinybayes.cli.serve import serve
from tinybayes.cli.trees import learn_trees
from tinybayes.cli.tying import tie
from tinybayes.errors import LimitError, TinybayesError, visible

__all__ = ["app", "main"]

STORY = """Discrete probabilistic models, learned under a price and shipped at that price.

1. [bold]demo[/bold], or [bold]explore[/bold] with your own table and a budget: see what accuracy costs.
2. [bold]export[/bold] the model you choose: integer-only C that does what Python does.
3. Or [bold]query[/bold] it: the probability of anything given anything, exactly.
"""
COMMANDS: dict[str, tuple[tuple[Callable[..., None], str, str], ...]] = {
    "Learn": (
        (demo, "Read digits within 4 kB: search, report and C in a minute", "demo -o demo"),
        (
            explore,
            "The best models under a budget",
            "explore digits.csv --target class --budget 4kB --time 5m -o search",
        ),
        (fit, "One classifier", "fit iris.csv --target species --structure naive -o iris.tb"),
        (
            learn_trees,
            "Boosted trees, a forest or a decision tree",
            "learn-trees iris.csv --target species --kind tree -o tree.tb",
        ),
        (learn_circuit, "A circuit that answers anything", "learn-circuit survey.csv --edge-price 0.1 -o survey.tb"),
        (tie, "Fewer bits: a few levels for all parameters", "tie digits.tb --levels 16 -o tied.tb"),
    ),
    "Ask": (
        (evaluate, "The error on a table", "evaluate iris.tb test.csv"),
        (predict, "The class of every row", "predict iris.tb new.csv --proba -o labels.csv"),
        (explain, "Why a row got its class", "explain iris.tb test.csv --row 1"),
        (query, "A probability, exactly", 'query alarm.bif.gz "HR=HIGH | CVP=LOW"'),
        (infer, "All posteriors within a time", "infer grid.uai --evidence grid.evid --seconds 10"),
    ),
    "Ship": (
        (
            export,
            "Code: C, C++, Arduino, MicroPython, JavaScript, ONNX, Verilog",
            "export digits.tb --to c -o firmware",
        ),
        (convert, "Another file format", "convert alarm.bif.gz alarm.tb"),
    ),
    "See": (
        (serve, "A search in the browser, live", "serve search"),
        (info, "Variables, structure and price of a model", "info digits.tb"),
        (plot, "A figure for a paper", "plot search --figure front -o front.pdf"),
    ),
}

app = typer.Typer(
    name="tinybayes",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Each command: [bold]tinybayes COMMAND --help[/bold]. "
    "Exit codes: 0 done, 2 bad input, 3 no model keeps the limits, 130 interrupted.",
)


def _complete(command: Callable[..., None], settings: dict[str, Any]) -> object:
    """Return a command of the application with the options that come from dataclasses."""
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
    alone.command(**settings)(spelled_out(command))
    return typer.main.get_command(alone)


for panel, commands in COMMANDS.items():
    for command, short, example in commands:
        settings: dict[str, Any] = {"short_help": short, "rich_help_panel": panel, "cls": Command}
        settings |= {"epilog": f"Example: [bold]tinybayes {example}[/bold]"}
        app.command(**settings)(spelled_out(command, stub=True))
        if hasattr(command, "learners"):
            Commands.late[command.__name__.replace("_", "-")] = partial(_complete, command, settings)


@app.callback(invoke_without_command=True, help=STORY)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    quiet: Quiet = False,
) -> None:
    """Take the options before the name of a command."""
    be_quiet(quiet)
    if version:
        typer.echo(f"tinybayes {__version__}")
        raise typer.Exit


REFUSED = (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EPIPE)  # errors after which standard output takes nothing more


def main() -> NoReturn:
    """Run the command line; an error of the user's is one line on stderr and exit code 2, of limits 3."""
    _open_streams()
    try:
        with warnings_as_remarks():
            app()
    except TinybayesError as problem:
        message = visible(" ".join(str(problem).split()))
        sys.stderr.write(f"error: {message}\n")
        sys.exit(UNREACHED if isinstance(problem, LimitError) else 2)
    except KeyboardInterrupt:  # while the command is looked up; typer ends it in the same way afterwards
        sys.exit(INTERRUPTED)
    except OSError as problem:
        if problem.errno not in REFUSED or problem.filename is not None:  # not of standard output
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the rest is not written again at the end
        sys.stderr.write(f"error: expected an output that can be written to, got {problem.strerror or problem}\n")
        sys.exit(2)
    sys.exit(0)


def _open_streams() -> None:
    """Give a command that was begun with closed streams something to print to."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open until the process ends
