"""The command that learns circuits."""

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from tinybayes import __version__
from tinybayes.cli._console import check_output, print_json, say, suggest, watched_live
from tinybayes.cli._options import Drop, Json, ModelOutput, TableFile, Weight, given, options_from
from tinybayes.cli.learning import INTERRUPTED, discretization_options, read_rows
from tinybayes.errors import error

if TYPE_CHECKING:
    from tinybayes.data.variables import Discretization
    from tinybayes.learn.circuits.learn_ac import Grown
    from tinybayes.learn.circuits.options import CircuitOptions, LatentOptions
    from tinybayes.model import Circuit, Dataset, Variable

    Choose = Callable[[Circuit], dict[str, Any]]


@discretization_options(max_states=62)
@options_from(
    "tinybayes.learn.circuits.options.CircuitOptions", "options", panel="The score and its limits", without=["bayesian"]
)
@options_from(
    "tinybayes.learn.circuits.options.LatentOptions",
    "latent",
    panel="With --method latent",
    without=["smoothing", "edge_price", "max_edges", "seconds"],  # of both methods
)
def learn_circuit(
    context: typer.Context,
    table: TableFile,
    output: ModelOutput,
    target: Annotated[str | None, typer.Option(help="A column that is the class; by default there is none.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A file that keeps the splits so far; resumed from when it is there.")
    ] = None,
    trees_only: Annotated[
        bool, typer.Option("--trees-only", help="No circuit: a network with decision trees; --parameter-price 1.")
    ] = False,
    false_alarm_rate: Annotated[
        float | None,
        typer.Option(help="Share of usual rows that may raise an alarm; a fifth of the rows chooses its threshold."),
    ] = None,
    weight: Weight = None,
    drop: Drop = None,
    as_json: Json = False,
    *,
    options: "CircuitOptions",
    latent: "LatentOptions",
    discretization: "Discretization",
) -> None:
    """Learn an arithmetic circuit, with the price of inference in the score, and save it.

    With --method latent it is that of a tree of hidden variables, learned by EM. Ctrl-C ends learning early: the
    circuit so far is saved, and the exit code is 130.
    """
    from tinybayes.deploy import save
    from tinybayes.model import Dataset

    check_output(output)
    _check_options(context, options, trees_only, target)
    _check_rate(false_alarm_rate, target, trees_only)
    if trees_only and not given(context, "parameter_price"):
        options = replace(options, parameter_price=1.0)
    if checkpoint is not None:
        check_output(checkpoint, "--checkpoint")
    cuts = discretization.discretizer
    if cuts == "auto":
        cuts = "mdlp" if target is not None else "quantile" if false_alarm_rate is None else "uniform"
    discretization = replace(discretization, discretizer=cuts, keep_values=discretization.n_bins)
    rows = read_rows(table, target, weight, drop or [], discretization, in_memory=True)
    assert isinstance(rows, Dataset)
    rows, choose = _held_out(rows, false_alarm_rate, latent.seed)
    if options.method == "latent":
        priced = ("edge_price",) if given(context, "edge_price") else ()  # by default latent trees have no price
        same = {name: getattr(options, name) for name in ("smoothing", *priced, "max_edges", "seconds")}
        _learn_latent(rows, replace(latent, **same), cuts, choose, output, as_json)
        return
    grown, chosen = _grow(rows, options, trees_only, checkpoint)
    growth = grown.growth
    trained = {"rows": len(rows), **chosen, "discretizer": cuts or "none", "splits": growth.splits}
    trained |= {"complete": grown.complete, "log_likelihood": growth.log_likelihood, "score": growth.score}
    model = grown.net if grown.circuit is None else grown.circuit
    alarm = {} if grown.circuit is None else choose(grown.circuit)
    save(model, output, metadata={"trained": trained, "tinybayes": __version__, **alarm})
    _tell(grown, trained, alarm, output, as_json)
    if not grown.complete and growth.seconds < options.seconds:
        again = "" if checkpoint is None else f"; run the same command again to continue from {checkpoint}"
        say(f"An interrupt ended the growth after {growth.splits:,} splits: saved the model so far{again}.", err=True)
        raise typer.Exit(INTERRUPTED)


def _check_options(context: typer.Context, options: "CircuitOptions", trees_only: bool, target: str | None) -> None:
    """Refuse options of another method, or of a class where there is none."""
    unused = given(context, "edge_price", "method", "max_edges", "checkpoint")
    if trees_only and unused:
        raise error("no options of circuits with --trees-only", ", ".join(unused), where=unused[0])
    latent: tuple[str, ...] = "hidden_states", "components", "epochs", "batch_size", "restarts", "average"
    latent += "discriminative", "validation_fraction", "last_step", "levels", "seed", "device", "deterministic"
    growing = "parameter_price", "checkpoint"
    by_em = options.method == "latent"
    if unused := given(context, *(growing if by_em else latent)):
        remedy = "leave it out" if by_em else "add --method latent"
        raise error(f"no such option with --method {options.method}", unused[0], where=unused[0], remedy=remedy)
    if target is None and (unused := given(context, "discriminative")):
        raise error("a class to predict", "none", where=unused[0], remedy="name it: --target COLUMN")


def _check_rate(rate: float | None, target: str | None, trees_only: bool) -> None:
    """Refuse a rate of false alarms that is none, or where there is no density."""
    if rate is None:
        return
    if not 0 < rate < 1:
        raise error("above 0, below 1", rate, where="--false-alarm-rate")
    if target is not None or trees_only:
        got = "--trees-only" if trees_only else "--target"
        raise error("a density", got, where="--false-alarm-rate", remedy=f"leave {got} out")


def _held_out(rows: "Dataset", rate: float | None, seed: int) -> "tuple[Dataset, Choose]":
    """Return the rows to learn from, and what makes an alarm of a circuit by the others, for the metadata."""
    from tinybayes.infer.alarm import choose_alarm, hold_out

    if rate is None:
        return rows, lambda circuit: {}
    rest, others = hold_out(rows, seed)
    total = float(len(rows) if rows.weight is None else rows.weight.sum())
    return rest, lambda circuit: {"alarm": choose_alarm(circuit, others, rate, total).to_metadata()}


def _learn_latent(
    rows: "Dataset", options: "LatentOptions", cuts: Any, choose: "Choose", output: Path, as_json: bool
) -> None:
    """Learn a latent tree, or a classifier by latent trees, save the circuit and show what it is."""
    from tinybayes.cost import model_cost
    from tinybayes.deploy import save
    from tinybayes.infer import log_likelihood
    from tinybayes.learn.circuits.latent_classifier import LatentClassifier, learn_latent_classifier
    from tinybayes.learn.circuits.latent_tree import LatentTree, learn_latent_tree_with
    from tinybayes.report.progress import density_progress

    learned: LatentClassifier | LatentTree
    began = time.monotonic()
    with density_progress(watched_live()) as report:
        if rows.target is None:
            learned = learn_latent_tree_with(rows, options, report=report)
        else:
            learned = learn_latent_classifier(rows, options, report=report)
    chosen = {
        name: value for name, value in asdict(options).items() if name not in ("seconds", "device", "deterministic")
    }
    trained = {"rows": len(rows), "method": "latent", **chosen, "discretizer": cuts or "none"}
    fit = float(np.average(log_likelihood(learned.circuit, rows), weights=rows.weight))
    trained |= {"complete": learned.complete, "log_likelihood": fit}
    if isinstance(learned, LatentClassifier):
        trained["class_trees"] = learned.class_trees
    elif not np.isnan(learned.validation_log_likelihood):
        trained["validation_log_likelihood"] = learned.validation_log_likelihood
    alarm = choose(learned.circuit)
    save(learned.circuit, output, metadata={"trained": trained, "tinybayes": __version__, **alarm})
    cost = model_cost(learned.circuit)
    if as_json:
        print_json({**cost.to_dict(), **trained, **alarm}, output)
    else:
        what = "a latent tree for each class" if trained.get("class_trees") else "a latent tree"
        held_out = trained.get("validation_log_likelihood")
        likelihood = f"log-likelihood {fit:.4f} a row" + (
            "" if held_out is None else f", {held_out:.4f} of held-out rows"
        )
        say(f"Learned {what}, a circuit of {cost.edges:,} edges, from {len(rows):,} rows: {likelihood}; {cost}.")
        _say_alarm(alarm)
        say(f"Saved to {output}. {_next(learned.circuit.nodes[0], alarm, output)}")
    if not learned.complete and time.monotonic() - began < options.seconds:
        say("An interrupt ended the training: saved the circuit so far.", err=True)
        raise typer.Exit(INTERRUPTED)


def _next(node: "Variable", alarm: dict[str, Any], output: Path) -> str:
    """Say what to try next: a detector is for rows, a density for questions."""
    if alarm:
        return suggest("predict", output, "TABLE", "-o", "alarms.csv")
    return suggest("query", output, f"{node.name}={node.states[0]}")


def _say_alarm(alarm: dict[str, Any]) -> None:
    if alarm:
        found = alarm["alarm"]
        rows = f"{100 * found['rate']:g} % of {found['rows']:,} held-out rows"
        say(f"Alarm below a log-likelihood of {found['threshold']:.4f}: {rows}.")


def _grow(
    rows: "Dataset", options: "CircuitOptions", trees_only: bool, checkpoint: Path | None
) -> "tuple[Grown, dict[str, Any]]":
    """Learn, and return the hyper-parameters, too; show the progress when someone is watching."""
    from tinybayes.learn.circuits.checkpoint import learn_circuit_resumable
    from tinybayes.learn.circuits.learn_ac import learn_circuit, learn_tree_cpds
    from tinybayes.report.progress import growth_progress

    names = ("smoothing", "parameter_price") + (() if trees_only else ("edge_price", "method", "max_edges"))
    chosen = {name: getattr(options, name) for name in names}
    with growth_progress(watched_live()) as report:
        if checkpoint is not None:
            return learn_circuit_resumable(rows, checkpoint, options, report=report), chosen
        learn: Callable[..., Grown] = learn_tree_cpds if trees_only else learn_circuit
        return learn(rows, **chosen, seconds=options.seconds, report=report), chosen


def _tell(grown: "Grown", trained: dict[str, Any], alarm: dict[str, Any], output: Path, as_json: bool) -> None:
    from tinybayes.cost import model_cost

    cost = model_cost(grown.net if grown.circuit is None else grown.circuit)
    if as_json:
        print_json({**cost.to_dict(), **trained, **alarm}, output)
        return
    what = "decision trees" if grown.circuit is None else f"a circuit of {cost.edges:,} edges"
    likelihood = f"log-likelihood {trained['log_likelihood']:.4f} a row"
    say(f"Learned {what} from {trained['rows']:,} rows in {trained['splits']:,} splits: {likelihood}; {cost}.")
    if not trained["complete"]:
        say("The growth ended before a best circuit was reached; more splits would have paid.")
    _say_alarm(alarm)
    say(f"Saved to {output}. {_next(grown.net.nodes[0], alarm, output)}")
