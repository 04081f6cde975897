"""The command that asks a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tinybayes.cli._console import print_json, remark, say, show, suggest, watched
from tinybayes.cli._options import Json, ModelFile
from tinybayes.errors import error

if TYPE_CHECKING:
    from tinybayes.infer.ask import Answer


def query(
    model: ModelFile,
    text: Annotated[
        str, typer.Argument(metavar="QUERY", help='What is asked, and after a bar what is known: "A=1, B=yes | C=0"')
    ] = "",
    evidence: Annotated[
        Path | None, typer.Option(help="A table: answer for each row; empty cells are not observed.")
    ] = None,
    marginals: Annotated[
        bool, typer.Option("--marginals", help="The posterior of every variable given what is known.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Of --evidence: CSV (also .gz) or Parquet; printed if none.")
    ] = None,
    max_edges: Annotated[
        int | None, typer.Option(help="Compile, and give up when that takes a larger circuit.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Of --marginals: how many variables to list.")] = 50,
    as_json: Json = False,
) -> None:
    """Ask a circuit, a Bayesian network or a log-linear model for a probability; the answer is exact."""
    from tinybayes.data.readers import as_table
    from tinybayes.data.writers import write_frames
    from tinybayes.deploy import read_distribution
    from tinybayes.infer import ask_codes, compile_circuit
    from tinybayes.infer.ask import parse_query
    from tinybayes.infer.frames import query_frames
    from tinybayes.model import LogLinear
    from tinybayes.report.console import posterior_table

    asked = read_distribution(model)
    nodes = asked.variables if isinstance(asked, LogLinear) else asked.nodes
    wanted, known = parse_query(text, nodes)
    if evidence is None and output is not None:
        raise error("--evidence with --output", "none", where="--output", remedy="answers to one query are printed")
    if evidence is None and not marginals and not (wanted >= 0).any() and not (known >= 0).any():
        raise error("a query, --evidence or --marginals", "none", where="query", remedy='ask for example "A=1 | C=0"')
    if evidence is not None and as_json and output is None:
        raise error("a file with --json", "none", where="--output", remedy="name one with -o")
    if evidence is not None or max_edges is not None:
        asked = circuit = compile_circuit(asked, max_edges=max_edges)
    if evidence is not None:
        with watched(as_table(evidence), "asking") as source:
            frames = query_frames(circuit, source.batches(), wanted, known, posterior=marginals)
            rows = write_frames(frames, output or "-")
        if as_json:
            print_json({"rows": rows}, output)
        elif output is not None:
            say(f"Wrote {rows:,} answers to {output}.")
        return
    answer = ask_codes(asked, wanted, known, posterior=marginals)
    if as_json:
        print_json({"query": text, **answer.to_dict(nodes)})
        return
    _tell(answer, text)
    if answer.posterior is not None:
        show(posterior_table(nodes, known, answer.posterior, limit=limit))
    else:
        given = text.partition("|")[2].strip()
        remark(suggest("query", model, *([f"| {given}"] if given else []), "--marginals"))


def _tell(answer: "Answer", text: str) -> None:
    if answer.probability is not None:
        say(f"P({text.strip()}) = {answer.probability:.10g}", always=True)
    else:
        known_text = text.strip().removeprefix("|").strip() or "nothing known"
        say(f"log P({known_text}) = {answer.log_evidence:.10g}", always=True)
