"""The command that ties the parameters of a network."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tinybayes.cli._console import Json, ModelFile, check_output, print_json, say
from tinybayes.errors import error

if TYPE_CHECKING:
    from tinybayes.compress import Tied
    from tinybayes.model import BayesNet


def tie(
    model: ModelFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="The model file to write.")],
    levels: Annotated[str, typer.Option(help="How many levels; auto: the best on --data.")] = "16",
    data: Annotated[
        Path | None, typer.Option(help="A table of held-out rows: shows the likelihoods, and chooses the levels.")
    ] = None,
    counts: Annotated[
        Path | None, typer.Option(help="A table, such as that learned from: its counts weigh the entries.")
    ] = None,
    per_table: Annotated[bool, typer.Option("--per-table", help="Levels of their own for each table.")] = False,
    zeros: Annotated[
        str, typer.Option(help="keep: zeros have a level of their own; a probability: raise what is smaller to it.")
    ] = "keep",
    renormalize: Annotated[
        bool, typer.Option("--renormalize", help="Let rows sum to one again; takes more bits.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Tie the parameters of a network: replace them by a few levels."""
    from tinybayes.compress import tie as tie_parameters
    from tinybayes.cost import bayes_net_cost
    from tinybayes.data.tables import read_dataset
    from tinybayes.deploy import read_network, write_model

    check_output(output)
    net = read_network(model)
    tied = tie_parameters(
        net,
        _levels(levels),
        data=None if data is None else read_dataset(data, like=net),
        counts=None if counts is None else read_dataset(counts, like=net),
        per_table=per_table,
        zeros=_zeros(zeros),
        renormalize=renormalize,
    )
    write_model(tied.net, output)
    before, after = bayes_net_cost(net).bits, bayes_net_cost(tied.net).bits
    if as_json:
        figures = {key: value for key, value in vars(tied).items() if key != "net"}
        print_json({**figures, "bits_before": before, "bits": after}, output)
        return
    for line in _lines(tied, net, before, after):
        say(line)
    say(f"Wrote {output}.")


def _lines(tied: "Tied", net: "BayesNet", before: int, after: int) -> list[str]:
    entries = sum(cpd.table.size for cpd in net.cpds)
    kept = f", one of them for {tied.zeros:,} probabilities of zero" if tied.zeros else ""
    lines = [
        f"Levels: {tied.levels:,} for {entries:,} parameters{kept}.",
        f"Bits: {after:,} instead of {before:,}.",
        f"Largest change of a log-parameter: {tied.epsilon:.6g}.",
    ]
    kind = "exact" if tied.normalization == "exact" else "of the network with normalised rows"
    if tied.before is not None and tied.after is not None:
        lines.append(f"Mean log-likelihood ({kind}): {tied.before:.6f} before, {tied.after:.6f} after.")
    if tied.before is not None and tied.after is not None and math.isfinite(tied.before):
        fall = f"It fell by {tied.before - tied.after:.6g}"
        lines.append(f"{fall}; bound {tied.table_bound:.6g}, Theorem 1 {tied.bound:.6g}.")
    else:
        lines.append(f"A mean log-likelihood falls by at most {tied.table_bound:.6g} (Theorem 1: {tied.bound:.6g}).")
    if tied.log_partition is not None:
        lines.append(f"log Z: {tied.log_partition:.6g}.")
    elif tied.before is not None:
        lines.append("The sum over all assignments is out of reach: no circuit of a sensible size.")
    return lines


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
