"""The command line. Each command calls the arrows of the package and shows what came out; it holds no logic."""

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from tinybayes import __version__
from tinybayes.errors import TinybayesError, error

if TYPE_CHECKING:
    from rich.console import Console

    from tinybayes.data.readers import Table
    from tinybayes.model import BayesNet

app = typer.Typer(
    name="tinybayes",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Discrete probabilistic models learned under a price, and shipped at that price.",
    epilog="Start with [bold]tinybayes demo[/bold]. Exit codes: 0 done, 2 bad input, 130 interrupted.",
)

TableFile = Annotated[
    Path, typer.Argument(metavar="TABLE", help="CSV, TSV, Parquet, ARFF, npz or .data; text also .gz")
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model: .tb, .bif, .xmlbif or .uai")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines instead of tables.")]


def main() -> NoReturn:
    """Run the command line; an error of the user's is one line on stderr and exit code 2."""
    try:
        app()
    except TinybayesError as problem:
        message = " ".join(str(problem).split())
        sys.stderr.write(f"error: {message}\n")
        sys.exit(2)
    sys.exit(0)


@app.callback(invoke_without_command=True)
def options(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    """Discrete probabilistic models learned under a price, and shipped at that price."""
    if version:
        typer.echo(f"tinybayes {__version__}")
        raise typer.Exit


@app.command(epilog="Example: [bold]tinybayes demo -o digits.tb[/bold]")
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to save the model.")] = Path("digits.tb"),
    as_json: Json = False,
) -> None:
    """Learn to read handwritten digits, and see what accuracy costs in memory and operations."""
    from tinybayes.compress import to_format
    from tinybayes.cost import bayes_net_cost
    from tinybayes.data import named as datasets
    from tinybayes.deploy import save
    from tinybayes.infer import evaluate
    from tinybayes.learn import learn_classifier
    from tinybayes.model import Fixed
    from tinybayes.report.console import front_table

    train, test = datasets.load("digits")
    rows, nets = [], {}
    for label, structure in (("naive Bayes", "naive"), ("Chow-Liu TAN", "chow-liu")):
        net = learn_classifier(train, structure=structure)
        for storage, variant in (("float32", net), ("8 bits", to_format(net, Fixed(4, 4)))):
            name = f"{label}, {storage}"
            nets[name] = variant
            rows.append((name, evaluate(variant, test).error, bayes_net_cost(variant)))
    saved = rows[-1][0]  # fixed beforehand: choosing by the test error would flatter it
    save(nets[saved], output, metadata={"dataset": "digits", "model": saved})
    if as_json:
        _print_json(
            {"models": [{"model": n, "test_error": e, **c.to_dict()} for n, e, c in rows], "saved": saved}, output
        )
        return
    console = _console()
    console.print(f"digits: {len(train):,} training and {len(test):,} test images of 8x8 pixels, discretised by MDLP")
    console.print(front_table(rows, "What accuracy costs"))
    _say(f"Saved {saved} to {output}. Now try:")
    _say(f"  tinybayes info {output}")
    _say("  tinybayes fit YOUR_TABLE.csv --target COLUMN -o model.tb")


@app.command(epilog="Example: [bold]tinybayes fit iris.csv --target species --structure naive -o iris.tb[/bold]")
def fit(
    table: TableFile,
    target: Annotated[str, typer.Option(help="The column to predict.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The model file to write.")],
    structure: Annotated[
        str, typer.Option(help="naive, chow-liu, random; with hybrid also differentiable, order-free, heuristic.")
    ] = "chow-liu",
    training: Annotated[
        str, typer.Option(help="ml: smoothed maximum likelihood; hybrid: by gradient, likelihood and margin.")
    ] = "ml",
    smoothing: Annotated[float, typer.Option(help="Of ml: added to every joint cell.")] = 1.0,
    bits: Annotated[int | None, typer.Option(help="Of hybrid: train through tables of that many bits.")] = None,
    candidates: Annotated[int, typer.Option(help="Of hybrid: candidate parents of a feature.")] = 8,
    size_penalty: Annotated[float, typer.Option(help="Of hybrid: what a table entry costs in the search.")] = 0.0,
    lam: Annotated[float, typer.Option(help="Of hybrid: weight of the margin loss.")] = 30.0,
    gamma: Annotated[float, typer.Option(help="Of hybrid: wanted log-margin.")] = 10.0,
    epochs: Annotated[int | None, typer.Option(help="Of hybrid: passes over the data.")] = None,
    learning_rate: Annotated[float, typer.Option(help="Of hybrid.")] = 0.03,
    configs: Annotated[int, typer.Option(help="Of hybrid: above 1, try that many random settings at once.")] = 1,
    device: Annotated[str | None, typer.Option(help="Of hybrid: cpu or gpu.")] = None,
    discretizer: Annotated[str, typer.Option(help="Cuts numeric columns: mdlp, uniform, quantile or none.")] = "mdlp",
    bins: Annotated[int, typer.Option(help="Bins of the uniform and quantile discretisers.")] = 8,
    max_states: Annotated[int, typer.Option(help="Refuse columns with more distinct states.")] = 1000,
    weight: Annotated[str | None, typer.Option(help="A column of row weights.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="For everything drawn at random.")] = 0,
    as_json: Json = False,
) -> None:
    """Learn a classifier from a table and save it."""
    from tinybayes.cost import bayes_net_cost
    from tinybayes.data.readers import as_table
    from tinybayes.data.tables import open_dataset
    from tinybayes.data.variables import Rules
    from tinybayes.deploy.native import save
    from tinybayes.infer import evaluate
    from tinybayes.learn import GradientOptions, learn_classifier
    from tinybayes.report.progress import training_progress

    _check_output(output)
    options = GradientOptions(
        bits=bits,
        n_candidates=candidates,
        size_penalty=size_penalty,
        lam=lam,
        gamma=gamma,
        epochs=epochs,
        learning_rate=learning_rate,
        n_configs=configs,
        device=device,
    )
    rules = Rules(
        discretizer=None if discretizer == "none" else discretizer, n_bins=bins, max_states=max_states, seed=seed
    )
    with _progress(as_table(table), "reading") as source:
        unknown = [name for name in drop or [] if name not in source.columns]
        if unknown:
            raise error("columns of the table", unknown, where="--drop")
        features = [c for c in source.columns if c not in (target, weight, *(drop or []))] if drop else None
        data = open_dataset(source, target=target, features=features, weight=weight, rules=rules)
        rows = data.in_memory() if training == "hybrid" else data  # the gradient passes over them many times
    watched = sys.stderr.isatty()
    with training_progress(watched and training == "hybrid") as report:
        net = learn_classifier(
            rows,
            structure=structure,
            training=training,
            smoothing=smoothing,
            seed=seed,
            options=options,
            report=report,
        )
    result = evaluate(net, rows)
    trained: dict[str, Any] = {
        "rows": result.rows,
        "structure": structure,
        "training": training,
        "smoothing": smoothing,
        "discretizer": discretizer,
        "seed": seed,
    }
    save(net, output, metadata={"trained": trained, "tinybayes": __version__})
    cost = bayes_net_cost(net)
    if as_json:
        _print_json({"training_error": result.error, **cost.to_dict(), **trained}, output)
        return
    _say(f"Learned {structure} from {result.rows:,} rows: {100 * result.error:.2f} % error on them; {cost}.")
    _say(f"Saved to {output}. Now try: tinybayes evaluate {output} TEST_TABLE")


@app.command(epilog="Example: [bold]tinybayes evaluate iris.tb test.csv[/bold]")
def evaluate(model: ModelFile, table: TableFile, as_json: Json = False) -> None:
    """Measure the error of a model on a table that has the class column."""
    from tinybayes.cost import bayes_net_cost
    from tinybayes.data.readers import as_table
    from tinybayes.data.tables import EncodedTable
    from tinybayes.infer import evaluate as measure
    from tinybayes.report.console import evaluation_table

    net = _classifier(model)
    assert net.target is not None
    with _progress(as_table(table), "evaluating") as source:
        result = measure(net, EncodedTable(source, net.variables, net.target))
    if as_json:
        figures = {**asdict(result), "confusion": result.confusion.tolist(), "classes": list(net.target.states)}
        _print_json({**figures, "cost": bayes_net_cost(net).to_dict()})
        return
    _console().print(evaluation_table(result, net.target))
    if result.unknown:
        _say(f"{100 * result.unknown:.2f} % of the cells were missing or of an unknown state: summed out.")
    if result.skipped:
        _say(f"{result.skipped:,} rows were left out: their class is missing, or none that the model knows.")
    _say(f"Price: {bayes_net_cost(net)}.")


@app.command(epilog="Example: [bold]tinybayes predict iris.tb new.csv --proba -o labels.csv[/bold]")
def predict(
    model: ModelFile,
    table: TableFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="CSV (also .gz) or Parquet; - prints CSV.")],
    proba: Annotated[bool, typer.Option("--proba", help="Add a column with the probability of each class.")] = False,
    as_json: Json = False,
) -> None:
    """Write the predicted class of every row of a table."""
    from tinybayes.data.readers import as_table
    from tinybayes.data.tables import EncodedTable
    from tinybayes.data.writers import write_frames
    from tinybayes.infer.predictions import prediction_frames

    if as_json and str(output) == "-":
        raise error("a file with --json", "-", where="--output", remedy="the predictions would mix with the JSON")
    net = _classifier(model)
    with _progress(as_table(table), "predicting") as source:
        # Classes in the table are not looked at: rows to predict may have them or not.
        data = EncodedTable(source, net.variables)
        rows = write_frames(prediction_frames(net, data, proba=proba), output)
    if as_json:
        _print_json({"rows": rows}, output)
    elif str(output) != "-":
        _say(f"Wrote {rows:,} predictions to {output}.")


@app.command(epilog="Example: [bold]tinybayes info digits.tb[/bold]")
def info(
    model: ModelFile,
    limit: Annotated[int, typer.Option("--limit", min=0, help="How many variables to list.")] = 20,
    as_json: Json = False,
) -> None:
    """Show the variables, the structure and the price of a model."""
    from tinybayes.cost import bayes_net_cost
    from tinybayes.deploy import read_model
    from tinybayes.deploy.native import load_metadata
    from tinybayes.report.console import model_card

    net = read_model(model)
    metadata = load_metadata(model) if model.suffix == ".tb" else {}
    if as_json:
        variables = [{"name": v.name, "states": list(v.states), "edges": v.edges} for v in net.variables]
        parents = {n.name: [net.nodes[p].name for p in c.parents] for n, c in zip(net.nodes, net.cpds, strict=True)}
        target = None if net.target is None else {"name": net.target.name, "states": list(net.target.states)}
        described = {"target": target, "variables": variables, "parents": parents}
        _print_json({**described, "cost": bayes_net_cost(net).to_dict(), "metadata": metadata})
        return
    _console().print(model_card(net, limit=limit))
    if metadata:
        _say(f"Metadata: {json.dumps(metadata)}")


@app.command(epilog="Example: [bold]tinybayes convert alarm.bif.gz alarm.tb[/bold]")
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A model: .tb, .bif, .xmlbif or .uai; text also .gz")],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The model to write; its suffix says the format.")],
    target: Annotated[str | None, typer.Option(help="Make this variable the class.")] = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Normalise quantised tables (text formats).")] = False,
    as_json: Json = False,
) -> None:
    """Convert a model between file formats."""
    from tinybayes.deploy import read_model, write_model
    from tinybayes.model import with_target

    net = read_model(source)
    if target is not None:
        net = with_target(net, target)
    write_model(net, output, normalize=normalize)
    if as_json:
        _print_json({"variables": len(net.nodes)}, output)
    else:
        _say(f"Wrote {len(net.nodes):,} variables to {output}.")


@app.command(epilog="Example: [bold]tinybayes reproduce experiments/differentiable_tan/table1.toml --quick[/bold]")
def reproduce(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of sweeps under experiments/.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Directory; results/ beside the file.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Sweeps whose names begin so; may be repeated.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few short runs, to see that everything works.")] = False,
    seconds: Annotated[float, typer.Option(help="Begin no new part after this time.")] = float("inf"),
    as_json: Json = False,
) -> None:
    """Run the experiments of a paper; what was finished before is taken up, not run again."""
    from tinybayes.search.reproduce import reproduce as run

    tell = (lambda line: None) if as_json else _say
    place = output or file.parent / "results"
    report = run(file, place, only=only or (), quick=quick, seconds=seconds, tell=tell)
    if as_json:
        _print_json(report, place)


def _console() -> "Console":
    from rich.console import Console

    return Console()


def _say(text: str) -> None:
    """Print a line as it is: no markup in the names and paths it holds, and not cut at the width of a pipe."""
    _console().print(text, markup=False, highlight=False, soft_wrap=True)


def _print_json(values: dict[str, Any], output: Path | None = None) -> None:
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


def _classifier(path: Path) -> "BayesNet":
    from tinybayes.deploy import read_model

    net = read_model(path)
    if net.target is None:
        remedy = f"name one: tinybayes convert {path} OUT.tb --target NAME"
        raise error("a model with a class variable", "one without", where=str(path), remedy=remedy)
    return net


def _check_output(path: Path) -> None:
    """Fail before the work, not after it."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise error("a file in a directory that exists", str(path), where="--output", remedy="create the directory")


@contextmanager
def _progress(table: "Table", label: str) -> Iterator["Table"]:
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
