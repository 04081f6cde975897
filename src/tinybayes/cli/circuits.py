"""The command that learns circuits."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinybayes import __version__
from tinybayes.cli._console import Json, TableFile, check_output, print_json, say, suggest, watched_live
from tinybayes.cli.learning import INTERRUPTED, read_rows
from tinybayes.errors import error

if TYPE_CHECKING:
    from tinybayes.learn.circuits.learn_ac import Grown
    from tinybayes.model import Dataset


def learn_circuit(
    table: TableFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="The model file to write.")],
    target: Annotated[str | None, typer.Option(help="A column that is the class; by default there is none.")] = None,
    edge_cost: Annotated[float | None, typer.Option(help="Price of an edge of the circuit; 0.1 by default.")] = None,
    parameter_cost: Annotated[
        float | None, typer.Option(help="Price of a free parameter; 0 by default, with --trees-only 1.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="quick (default) or greedy, which is slower and finer.")] = None,
    smoothing: Annotated[float, typer.Option(help="Spread over the states of each leaf's distribution.")] = 1.0,
    max_edges: Annotated[int | None, typer.Option(help="The most edges the circuit may have.")] = None,
    seconds: Annotated[float, typer.Option(help="Take the circuit so far after this time.")] = float("inf"),
    checkpoint: Annotated[
        Path | None, typer.Option(help="A file that keeps the splits so far; taken up again when it is there.")
    ] = None,
    trees_only: Annotated[
        bool, typer.Option("--trees-only", help="No circuit: a Bayesian network with decision trees.")
    ] = False,
    discretizer: Annotated[
        str, typer.Option(help="Cuts numeric columns: quantile, uniform, mdlp, none; auto: mdlp with a class.")
    ] = "auto",
    bins: Annotated[int, typer.Option(help="Bins; so many whole numbers are states as they are.")] = 8,
    max_states: Annotated[int, typer.Option(help="Refuse columns with more distinct states; 62 at most.")] = 62,
    weight: Annotated[str | None, typer.Option(help="A column of row weights.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.")] = None,
    as_json: Json = False,
) -> None:
    """Learn an arithmetic circuit, with the price of inference in the score, and save it.

    Ctrl-C ends the growth early: the circuit so far is saved, and the exit code is 130.
    """
    from tinybayes.data.variables import Discretization
    from tinybayes.deploy import save
    from tinybayes.model import Dataset

    check_output(output)
    given = {"--edge-cost": edge_cost, "--method": method, "--max-edges": max_edges, "--checkpoint": checkpoint}
    _check(given, trees_only, parameter_cost, smoothing, seconds, bins)
    if checkpoint is not None:
        check_output(checkpoint, "--checkpoint")
    cuts = {"none": None, "auto": "quantile" if target is None else "mdlp"}.get(discretizer, discretizer)
    discretization = Discretization(discretizer=cuts, n_bins=bins, max_states=max_states, keep_values=bins)
    rows = read_rows(table, target, weight, drop or [], discretization, in_memory=True)
    assert isinstance(rows, Dataset)
    options: dict[str, Any] = {"smoothing": smoothing, "seconds": seconds}
    options["parameter_price"] = float(trees_only) if parameter_cost is None else parameter_cost
    if not trees_only:
        options |= {"edge_price": 0.1 if edge_cost is None else edge_cost, "method": method or "quick"}
        options |= {"max_edges": max_edges}
    grown = _grow(rows, options, trees_only, checkpoint)
    growth = grown.growth
    trained = {"rows": len(rows), **options, "discretizer": discretizer, "splits": growth.splits}
    trained |= {"complete": grown.complete, "log_likelihood": growth.log_likelihood, "score": growth.score}
    del trained["seconds"]
    model = grown.net if grown.circuit is None else grown.circuit
    save(model, output, metadata={"trained": trained, "tinybayes": __version__})
    _tell(grown, trained, output, as_json)
    if not grown.complete and growth.seconds < seconds:
        again = "" if checkpoint is None else f"; run the same command again to go on from {checkpoint}"
        say(f"An interrupt ended the growth after {growth.splits:,} splits: saved what was learned{again}.", err=True)
        raise typer.Exit(INTERRUPTED)


def _check(
    given: dict[str, Any], trees_only: bool, parameter_cost: float | None, smoothing: float, seconds: float, bins: int
) -> None:
    """Refuse bad options by the names they have here, before the table is read."""
    unused = [name for name, value in given.items() if value is not None]
    if trees_only and unused:
        raise error("no options of circuits with --trees-only", ", ".join(unused), where=unused[0])
    for name, price in (("--edge-cost", given["--edge-cost"]), ("--parameter-cost", parameter_cost)):
        if price is not None and not (math.isfinite(price) and price >= 0):
            raise error("a finite price that is not negative", price, where=name)
    if given["--method"] not in (None, "quick", "greedy"):
        raise error("quick or greedy", repr(given["--method"]), where="--method")
    if not (math.isfinite(smoothing) and smoothing > 0):
        raise error("a finite number above zero", smoothing, where="--smoothing")
    for name, number, least in (("--max-edges", given["--max-edges"], 1), ("--bins", bins, 2)):
        if number is not None and number < least:
            raise error(f"at least {least}", number, where=name)
    if not seconds > 0:
        raise error("a time above zero", seconds, where="--seconds")


def _grow(rows: "Dataset", options: dict[str, Any], trees_only: bool, checkpoint: Path | None) -> "Grown":
    """Learn; show how far it is when someone is watching."""
    from tinybayes.learn.circuits.checkpoint import learn_circuit_resumable
    from tinybayes.learn.circuits.learn_ac import learn_circuit, learn_tree_cpds
    from tinybayes.learn.circuits.options import CircuitOptions
    from tinybayes.report.progress import growth_progress

    with growth_progress(watched_live()) as report:
        if checkpoint is not None:
            return learn_circuit_resumable(rows, checkpoint, CircuitOptions(**options), report=report)
        return (learn_tree_cpds if trees_only else learn_circuit)(rows, **options, report=report)


def _tell(grown: "Grown", trained: dict[str, Any], output: Path, as_json: bool) -> None:
    from tinybayes.cost import model_cost

    cost = model_cost(grown.net if grown.circuit is None else grown.circuit)
    if as_json:
        print_json({**cost.to_dict(), **trained}, output)
        return
    what = "decision trees" if grown.circuit is None else f"a circuit of {cost.edges:,} edges"
    likelihood = f"log-likelihood {trained['log_likelihood']:.4f} a row"
    say(f"Learned {what} from {trained['rows']:,} rows in {trained['splits']:,} splits: {likelihood}; {cost}.")
    if not trained["complete"]:
        say("The growth ended before a best circuit was reached; more splits would have paid.")
    node = grown.net.nodes[0]
    say(f"Saved to {output}. {suggest('query', output, f'{node.name}={node.states[0]}')}")
