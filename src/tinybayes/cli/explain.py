"""The command that says why a network, or trees, decide as they do."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tinybayes.cli._console import print_json, say, show, suggest
from tinybayes.cli._options import Json, ModelFile, TableFile
from tinybayes.cli.models import read_with_class
from tinybayes.errors import error

if TYPE_CHECKING:
    import numpy as np

    from tinybayes.model import Classifier


def explain(
    model: ModelFile,
    table: TableFile,
    row: Annotated[int, typer.Option("--row", min=1, help="The row of the table; the first is 1.")] = 1,
    against: Annotated[
        str | None, typer.Option(metavar="CLASS", help="Compare with this class; by default the second best.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="How many features to list.")] = 15,
    as_json: Json = False,
) -> None:
    """Say what each feature of a row contributes to the decision of a network or of trees; the sum is exact.

    Trees are explained by Shapley values, with rows of the table as the background.
    """
    from tinybayes.infer import explain as explain_row
    from tinybayes.infer.ask import state_code
    from tinybayes.model import TreeEnsemble
    from tinybayes.report.console import explanation_table

    net = read_with_class(model)
    assert net.target is not None
    other = None if against is None else net.target.states[state_code(net.target, against)]
    codes, some = _rows(net, table, row)
    trees = isinstance(net, TreeEnsemble)
    explanation = explain_row(net, codes, against=other, background=some if trees else None)
    if as_json:
        print_json({"row": row, **explanation.to_dict()})
        return
    show(explanation_table(explanation, net.target, limit=limit))
    if explanation.total == float("inf"):
        ruling = [part for part in explanation.contributions if part.log_odds == float("inf")]
        names = " and ".join(f"{part.feature} = {part.value}" for part in ruling[:5])
        why = f"with it, {names} cannot happen" if names else "the class itself has probability zero"
        say(f"{explanation.against} is impossible, and its log-odds are infinite: {why}.")
    if not trees and any(part.value == "missing" for part in explanation.contributions):
        say("Missing values contribute nothing: they are summed out.")
    say(suggest("export", model, "--to", "c", "-o", "firmware"))


def _rows(net: "Classifier", table: Path, row: int) -> "tuple[np.ndarray, np.ndarray]":
    """Read as far as the row; return it, and rows from the beginning of the table as its background."""
    from tinybayes.data.readers import as_table
    from tinybayes.data.tables import EncodedTable
    from tinybayes.infer.explain import some_rows

    seen, first = 0, None
    for batch in EncodedTable(as_table(table), net.variables):
        first = some_rows(batch.X) if first is None else first
        if row <= seen + len(batch):
            return batch.X[row - seen - 1], first
        seen += len(batch)
    raise error(f"a row from 1 to {seen:,}", row, where="--row")
