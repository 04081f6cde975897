"""The command that ties the parameters of a network or a circuit."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tinybayes.cli._console import check_output, print_json, say, show, suggest, watched_live
from tinybayes.cli._options import Json, ModelFile, ModelOutput, given, options_from
from tinybayes.cli.learning import INTERRUPTED
from tinybayes.errors import error
from tinybayes.options import options_of

if TYPE_CHECKING:
    from tinybayes.compress import Tied
    from tinybayes.learn import Relearned, RelearnOptions
    from tinybayes.model import BayesNet, Circuit, Dataset

RELEARN = "With --relearn"


@options_from("tinybayes.learn.ties.relearn.RelearnOptions", "options", panel=RELEARN)
def tie(
    context: typer.Context,
    model: ModelFile,
    output: ModelOutput,
    levels: Annotated[str, typer.Option(help="How many levels; auto: the best on --data.")] = "16",
    data: Annotated[
        Path | None, typer.Option(help="A table of held-out rows: shows the likelihoods, and chooses the levels.")
    ] = None,
    counts: Annotated[
        Path | None, typer.Option(help="A table, such as the training rows: its counts weight the entries.")
    ] = None,
    per_table: Annotated[bool, typer.Option("--per-table", help="Levels of their own for each table.")] = False,
    zeros: Annotated[
        str, typer.Option(help="keep: zeros have a level of their own; a probability: raise smaller ones to it.")
    ] = "keep",
    renormalize: Annotated[
        bool, typer.Option("--renormalize", help="Let rows sum to one again; takes more bits.")
    ] = False,
    relearn: Annotated[
        bool, typer.Option("--relearn", help="Relearn the levels under the ties, from --train or else --data.")
    ] = False,
    normalized: Annotated[
        bool, typer.Option("--normalized", help="Rows stay normalised; takes more bits.", rich_help_panel=RELEARN)
    ] = False,
    train: Annotated[Path | None, typer.Option(help="The table to learn from.", rich_help_panel=RELEARN)] = None,
    as_json: Json = False,
    *,
    options: "RelearnOptions",
) -> None:
    """Tie the parameters of a network or a circuit: replace them by a few levels."""
    from tinybayes.compress import tie as tie_parameters
    from tinybayes.cost import model_cost
    from tinybayes.data.tables import read_dataset
    from tinybayes.deploy import read_joint, save
    from tinybayes.model import Circuit

    check_output(output)
    _check(given(context, "normalized", "train", *options_of(type(options))), relearn, renormalize, train or data)
    if normalized and (unused := given(context, "max_edges", "chains", "sweeps", "seed")):
        remedy = "leave it out: with normalised rows there are no circuits and no chains"
        raise error("--relearn alone", "--normalized", where=unused[0], remedy=remedy)
    net: Any = read_joint(model)
    wanted = _levels(levels)
    held_out = None if data is None else read_dataset(data, like=net)
    unused = given(context, "per_table", "zeros", "renormalize", "relearn")
    if isinstance(net, Circuit) and unused:
        remedy = "for circuits only --levels, --data and --counts count"
        raise error("a Bayesian network", "a circuit", where=", ".join(unused), remedy=remedy)
    weights = None if counts is None else read_dataset(counts, like=net)
    tying: dict[str, Any] = {"per_table": per_table, "zeros": _zeros(zeros), "renormalize": renormalize}
    learned_from = held_out if train is None else read_dataset(train, like=net)
    tied = tie_parameters(net, wanted, data=held_out, counts=weights, **tying)
    again = None
    if relearn and learned_from is not None:
        again = _relearn(tied.model, learned_from, asdict(options) | {"normalized": normalized})
    result = tied.model if again is None else again.model
    save(result, output)
    before, after = model_cost(net).bits, model_cost(tied.model).bits
    if as_json:
        figures = {key: value for key, value in vars(tied).items() if key != "model"}
        figures |= {"bits_before": before, "bits": model_cost(result).bits}
        if again is not None:
            figures["relearned"] = {key: value for key, value in vars(again).items() if key != "model"}
        print_json(figures, output)
    else:
        for line in _lines(tied, net, before, after):
            say(line)
        if again is not None:
            _show_relearned(net, tied, again, held_out, rows_are_data=learned_from is held_out)
        then = ("info", output) if net.target is None else ("export", output, "--to", "c", "-o", "firmware")
        say(f"Wrote {output}. {suggest(*then)}")
    if again is not None and not again.complete:
        say(f"Interrupted after {again.steps} steps: the best levels so far were kept.", err=True)
        raise typer.Exit(INTERRUPTED)


def _check(options: list[str], relearn: bool, renormalize: bool, rows: Path | None) -> None:
    if not relearn and options:
        raise error("--relearn with it", "none", where=options[0])
    if relearn and rows is None:
        raise error("a table to learn from", "none", where="--relearn", remedy="name it with --train")
    if relearn and renormalize:
        remedy = "--relearn --normalized normalises rows"
        raise error("one of --relearn and --renormalize", "both", where="tie", remedy=remedy)


def _relearn(net: "BayesNet", rows: "Dataset", options: dict[str, Any]) -> "Relearned[BayesNet]":
    from tinybayes.learn import relearn
    from tinybayes.report.progress import relearning_progress

    with relearning_progress(watched_live()) as report:
        return relearn(net, rows, report=report, **options)


def _lines(tied: "Tied[Any]", net: "BayesNet | Circuit", before: int, after: int) -> list[str]:
    from tinybayes.model import Circuit

    entries = len(net.table) if isinstance(net, Circuit) else sum(cpd.table.size for cpd in net.cpds)
    kept = f", one of them for {tied.zeros:,} probabilities of zero" if tied.zeros else ""
    lines = [
        f"Levels: {tied.levels:,} for {entries:,} parameters{kept}.",
        f"Bits: {after:,} instead of {before:,}.",
        f"Largest change of a log-parameter: {tied.epsilon:.6g}.",
    ]
    kind = "exact" if tied.normalization == "exact" else "of the network with normalised rows"
    if tied.before is not None and tied.after is not None:
        lines.append(f"Mean log-likelihood ({kind}): {tied.before:.6f} before, {tied.after:.6f} after.")
    if tied.table_bound is None:
        pass  # the bounds are those of networks
    elif tied.before is not None and tied.after is not None and math.isfinite(tied.before):
        fall = f"It fell by {tied.before - tied.after:.6g}"
        lines.append(f"{fall}; bound {tied.table_bound:.6g}, Theorem 1 {tied.bound:.6g}.")
    else:
        lines.append(f"A mean log-likelihood falls by at most {tied.table_bound:.6g} (Theorem 1: {tied.bound:.6g}).")
    if tied.log_partition is not None:
        lines.append(f"log Z: {tied.log_partition:.6g}.")
    elif tied.before is not None:
        lines.append("The sum over all assignments is out of reach: no circuit of a sensible size.")
    return lines


def _show_relearned(
    net: "BayesNet", tied: "Tied[Any]", again: "Relearned[BayesNet]", held_out: "Dataset | None", *, rows_are_data: bool
) -> None:
    """Compare size and likelihood of the network, its ties and the relearned levels."""
    import numpy as np
    from rich.table import Table

    from tinybayes.cost import model_cost
    from tinybayes.infer import log_likelihood

    after = None
    if held_out is not None and again.method != "approximate":
        weight = np.ones(len(held_out)) if held_out.weight is None else held_out.weight
        used = weight > 0
        after = float(np.average(log_likelihood(again.model, held_out.rows(used)), weights=weight[used]))
    table = Table("", "levels", "bits", "log-likelihood, learned from", "log-likelihood, held out")
    distinct = [
        len(np.unique(np.concatenate([cpd.log_parameters.ravel() for cpd in one.cpds]))) for one in (net, again.model)
    ]
    rows: list[tuple[str, int, BayesNet, Any, Any]] = [
        ("before", distinct[0], net, None, tied.before),
        ("tied", tied.levels, tied.model, again.before, tied.after),
        ("relearned", distinct[1], again.model, again.after, after),
    ]
    for name, count, one, learned, out in rows:
        figures = ("" if v is None else f"{v:.6f}" for v in (learned, None if rows_are_data else out))
        table.add_row(name, f"{count:,}", f"{model_cost(one).bits:,}", *figures)
    show(table)
    how = {"exact": "exactly", "rows": "with normalised rows", "approximate": "approximately, from samples"}
    end = "converged" if again.converged else "not converged"
    say(f"Relearned {how[again.method]}: {again.steps} steps, {end} (difference of counts {again.gradient:.2g}).")
    if again.method == "approximate":
        say("No likelihood can be told: the sum over all assignments is out of reach.")
    if again.unused:
        prior = f"the tied network counts as {again.prior:g} rows more" if again.prior else "their levels drift away"
        say(f"{again.unused:,} levels are used by no row: {prior}.")
    if rows_are_data:
        say("The levels were chosen on the rows learned from: name others with --train for a likelihood held out.")


def _levels(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.isdecimal() or len(text) > 9:
        raise error("a number of levels, or auto", repr(text), where="--levels")
    return int(text)


def _zeros(text: str) -> float | Literal["keep"]:
    if text == "keep":
        return "keep"
    try:
        return float(text)
    except ValueError:
        raise error("keep, or a probability between 0 and 1", repr(text), where="--zeros") from None
