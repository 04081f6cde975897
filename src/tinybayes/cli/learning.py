"""The command that learns."""

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinybayes import __version__
from tinybayes.cli._console import Json, TableFile, check_output, print_json, say, suggest, watched, watched_live
from tinybayes.errors import error, near

if TYPE_CHECKING:
    from tinybayes.data.variables import Discretization
    from tinybayes.learn import HybridOptions
    from tinybayes.learn.closed_form.counts import Data
    from tinybayes.learn.training.tables import Progress
    from tinybayes.model import BayesNet

REPORT_ROWS = 1_000_000  # of which a report shows figures
INTERRUPTED = 130  # the exit code of a process that Ctrl-C ended


def _hybrid(text: str, *names: str, metavar: str | None = None) -> Any:
    """Return an option of training by gradient, which has a panel of its own in the help."""
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel="With --training hybrid")


def fit(
    table: TableFile,
    target: Annotated[str, typer.Option(help="The column to predict.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The model file to write.")],
    structure: Annotated[
        str, typer.Option(help="naive, chow-liu, random; with hybrid also subset, order-free, heuristic.")
    ] = "chow-liu",
    training: Annotated[
        str, typer.Option(help="ml: smoothed maximum likelihood; hybrid: by gradient, likelihood and margin.")
    ] = "ml",
    smoothing: Annotated[float | None, typer.Option(help="Of ml: added to every joint cell; 1 by default.")] = None,
    discretizer: Annotated[str, typer.Option(help="Cuts numeric columns: mdlp, uniform, quantile or none.")] = "mdlp",
    bins: Annotated[int, typer.Option(help="Bins of the uniform and quantile discretisers.")] = 8,
    max_states: Annotated[int, typer.Option(help="Refuse columns with more distinct states.")] = 1000,
    weight: Annotated[str | None, typer.Option(help="A column of row weights.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="For everything drawn at random.")] = 0,
    bits: Annotated[
        str | None, _hybrid("Train through tables of that many bits; 3,1: before and after the binary point.")
    ] = None,
    candidates: Annotated[int, _hybrid("Candidate parents of a feature.")] = 8,
    size_penalty: Annotated[float, _hybrid("What a table entry costs in the search.")] = 0.0,
    structure_noise: Annotated[float, _hybrid("Probability that a feature loses its extra parent for a batch.")] = 0.0,
    sharing: Annotated[float, _hybrid("Rate at which the contexts of a feature learn together; try 1.")] = 0.0,
    structure_rate: Annotated[float, _hybrid("Constant learning rate of the structure.")] = 1e-3,
    lam: Annotated[float, _hybrid("Weight of the margin loss.")] = 30.0,
    gamma: Annotated[float, _hybrid("Wanted log-margin.")] = 10.0,
    eta: Annotated[float, _hybrid("Softness of the maximum in the margin; larger is harder.")] = 10.0,
    conditional: Annotated[float, _hybrid("Weight of the conditional log-likelihood.")] = 0.0,
    epochs: Annotated[
        int | None, _hybrid("Passes over the data; by default as many as make 6,000 mini-batches.")
    ] = None,
    learning_rate: Annotated[float, _hybrid("At the start; it falls by a factor of 1000.")] = 0.03,
    batch_size: Annotated[int, _hybrid("Rows of a mini-batch.")] = 100,
    configs: Annotated[int, _hybrid("Above 1, try that many random settings at once.")] = 1,
    early_stopping: Annotated[
        bool, _hybrid("Keep the parameters with the fewest errors on held-out rows.", "--early-stopping")
    ] = False,
    validation_fraction: Annotated[float, _hybrid("Share of the rows held out, when something is chosen.")] = 0.1,
    image_shape: Annotated[
        str | None, _hybrid("Of structure heuristic; square by default.", metavar="ROWSxCOLUMNS")
    ] = None,
    ordering: Annotated[str, _hybrid("Of structure heuristic: A, B or C.")] = "C",
    device: Annotated[str | None, _hybrid("cpu or gpu.")] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Also write a page that shows the model.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Learn a classifier from a table and save it.

    Ctrl-C ends a training by gradient early: what it has learned by then is saved, and the exit code is 130.
    """
    from tinybayes.cost import model_cost
    from tinybayes.data.variables import Discretization
    from tinybayes.deploy import save
    from tinybayes.infer import evaluate
    from tinybayes.learn import HybridOptions

    check_output(output)
    if report is not None:
        check_output(report, "--report")
    by_gradient = training == "hybrid"
    if by_gradient and smoothing is not None:
        remedy = "it belongs to training ml: leave it out"
        raise error("no smoothing with --training hybrid", smoothing, where="--smoothing", remedy=remedy)
    options = HybridOptions(
        n_candidates=candidates,
        bits=_bits(bits),
        size_penalty=size_penalty,
        structure_noise=structure_noise,
        sharing=sharing,
        structure_rate=structure_rate,
        lam=lam,
        gamma=gamma,
        eta=eta,
        conditional=conditional,
        epochs=epochs,
        learning_rate=learning_rate,
        batch_size=batch_size,
        n_configs=configs,
        early_stopping=early_stopping,
        validation_fraction=validation_fraction,
        image_shape=image_shape_of(image_shape),
        ordering=ordering,
        device=device,
    )
    cuts = None if discretizer == "none" else discretizer
    discretization = Discretization(discretizer=cuts, n_bins=bins, max_states=max_states, seed=seed)
    rows = read_rows(table, target, weight, drop or [], discretization, in_memory=by_gradient)
    added = 1.0 if smoothing is None else smoothing
    net, end = _learn(rows, structure, training, added, seed, options)
    result = evaluate(net, rows)
    complete = end is None or end.done >= end.total
    trained: dict[str, Any] = {"rows": result.rows, "structure": structure, "training": training}
    trained |= {"complete": complete} if by_gradient else {"smoothing": added}
    trained |= {"discretizer": discretizer, "seed": seed, "training_error": result.error}
    save(net, output, metadata={"trained": trained, "tinybayes": __version__})
    cost = model_cost(net)
    if report is not None:
        _report(net, rows, report, trained)
    if as_json:
        print_json({"training_error": result.error, **cost.to_dict(), **trained}, output)
    else:
        say(f"Learned {structure} from {result.rows:,} rows: {100 * result.error:.2f} % error on them; {cost}.")
        say(f"Saved to {output}. {suggest('evaluate', output, 'TEST_TABLE')}")
        if report is not None:
            say(f"See {report} in a browser.")
    if end is not None and not complete:
        epoch = f"{end.done:,} of {end.total:,} epochs"
        say(f"Training was cut short by an interrupt after {epoch}; the model is what had been learned.", err=True)
        raise typer.Exit(INTERRUPTED)


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


def _learn(
    rows: "Data", structure: str, training: str, smoothing: float, seed: int, options: "HybridOptions"
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
            report=report,
        )
    return net, last


def _bits(text: str | None) -> int | tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,4})(?:,(-?[0-9]{1,4}))?", text)
    if found is None:
        expected = "a number of bits such as 4, or those before and after the binary point such as 3,1"
        raise error(expected, repr(text), where="--bits")
    whole, fraction = found.groups()
    return int(whole) if fraction is None else (int(whole), int(fraction))


def image_shape_of(text: str | None) -> tuple[int, int] | None:
    """Return rows and columns of an image from a text such as 28x28."""
    if text is None:
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", text)
    if found is None:
        raise error("rows and columns such as 28x28", repr(text), where="--image-shape")
    return int(found[1]), int(found[2])
