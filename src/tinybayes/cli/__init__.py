"""The command line. Each command calls the arrows of the package and shows what came out; it holds no logic."""

import sys
from typing import Annotated, NoReturn

import typer

from tinybayes import __version__
from tinybayes.cli.circuits import learn_circuit
from tinybayes.cli.examples import demo, reproduce
from tinybayes.cli.explore import explore
from tinybayes.cli.export import export
from tinybayes.cli.inference import infer
from tinybayes.cli.learning import fit
from tinybayes.cli.models import convert, evaluate, info, predict
from tinybayes.cli.plot import plot
from tinybayes.cli.query import query
from tinybayes.cli.tying import tie
from tinybayes.errors import TinybayesError

__all__ = ["app", "main"]

app = typer.Typer(
    name="tinybayes",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Discrete probabilistic models learned under a price, and shipped at that price.",
    epilog="Start with [bold]tinybayes demo[/bold]. Exit codes: 0 done, 2 bad input, 130 interrupted.",
)
for command, example in (
    (demo, "demo -o demo"),
    (fit, "fit iris.csv --target species --structure naive -o iris.tb"),
    (explore, "explore digits.csv --target class --budget 4kB --time 5m -o search"),
    (learn_circuit, "learn-circuit survey.csv --edge-cost 0.1 -o survey.tb"),
    (evaluate, "evaluate iris.tb test.csv"),
    (predict, "predict iris.tb new.csv --proba -o labels.csv"),
    (query, 'query alarm.bif.gz "HR=HIGH | CVP=LOW"'),
    (infer, "infer grid.uai --evidence grid.evid --seconds 10"),
    (tie, "tie digits.tb --levels 16 -o tied.tb"),
    (export, "export digits.tb --to c -o firmware"),
    (info, "info digits.tb"),
    (convert, "convert alarm.bif.gz alarm.tb"),
    (plot, "plot search --figure front -o front.pdf"),
    (reproduce, "reproduce experiments/differentiable_tan/table1.toml --quick"),
):
    app.command(epilog=f"Example: [bold]tinybayes {example}[/bold]")(command)


@app.callback(invoke_without_command=True)
def options(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    """Discrete probabilistic models learned under a price, and shipped at that price."""
    if version:
        typer.echo(f"tinybayes {__version__}")
        raise typer.Exit


def main() -> NoReturn:
    """Run the command line; an error of the user's is one line on stderr and exit code 2."""
    try:
        app()
    except TinybayesError as problem:
        message = " ".join(str(problem).split())
        sys.stderr.write(f"error: {message}\n")
        sys.exit(2)
    sys.exit(0)
