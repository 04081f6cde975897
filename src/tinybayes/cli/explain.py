"""The command that says why a network decides as it does."""

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
    """Say what each feature of a row contributes to the decision of a network; the sum is exact."""
    from tinybayes.infer import explain as explain_row
    from tinybayes.infer.ask import state_code
    from tinybayes.report.console import explanation_table

    net = read_with_class(model)
    assert net.target is not None
    other = None if against is None else net.target.states[state_code(net.target, against)]
    explanation = explain_row(net, _row(net, table, row), against=other)
    if as_json:
        print_json({"row": row, **explanation.to_dict()})
        return
    show(explanation_table(explanation, net.target, limit=limit))
    if any(part.value == "missing" for part in explanation.contributions):
        say("Missing values contribute nothing: they are summed out.")
    say(suggest("export", model, "--to", "c", "-o", "firmware"))


def _row(net: "Classifier", table: Path, row: int) -> "np.ndarray":
    """Read as far as the row."""
    from tinybayes.data.readers import as_table
    from tinybayes.data.tables import EncodedTable

    seen = 0
    for batch in EncodedTable(as_table(table), net.variables):
        if row <= seen + len(batch):
            codes: np.ndarray = batch.X[row - seen - 1]
            return codes
        seen += len(batch)
    raise error(f"a row from 1 to {seen:,}", row, where="--row")
