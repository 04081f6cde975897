"""Commands on model files: evaluate, predict, info, convert."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tinybayes.cli._console import print_json, say, show, suggest, watched
from tinybayes.cli._options import Clock, Core, Json, ModelFile, TableFile
from tinybayes.errors import error

if TYPE_CHECKING:
    from tinybayes.infer.alarm import Alarm
    from tinybayes.model import Circuit, Classifier


def evaluate(model: ModelFile, table: TableFile, as_json: Json = False) -> None:
    """Measure the error of a model on a table that has the class column."""
    from tinybayes.cost import model_cost
    from tinybayes.data.readers import as_table
    from tinybayes.data.tables import EncodedTable
    from tinybayes.infer import evaluate as measure
    from tinybayes.model import NeuralNet, TreeEnsemble
    from tinybayes.report.console import evaluation_table

    net = read_with_class(model)
    assert net.target is not None
    with watched(as_table(table), "evaluating") as source:
        result = measure(net, EncodedTable(source, net.variables, net.target))
    if as_json:
        figures = {**asdict(result), "confusion": result.confusion.tolist(), "classes": list(net.target.states)}
        print_json({**figures, "cost": model_cost(net).to_dict()})
        return
    show(evaluation_table(result, net.target))
    if result.unknown:
        treated = "taken as zero" if isinstance(net, NeuralNet) else "summed out"
        treated = "sent to learned sides" if isinstance(net, TreeEnsemble) else treated
        say(f"{100 * result.unknown:.2f} % of the cells were missing or of an unknown state: {treated}.")
    if result.skipped:
        say(f"{result.skipped:,} rows were left out: their class is missing, or none that the model knows.")
    say(f"Price: {model_cost(net)}.")
    say(suggest("export", model, "--to", "c", "-o", "firmware"))


def predict(
    model: ModelFile,
    table: TableFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="CSV (also .gz) or Parquet; - prints CSV.")],
    proba: Annotated[bool, typer.Option("--proba", help="Add a column with the probability of each class.")] = False,
    as_json: Json = False,
) -> None:
    """Write the predicted class of every row of a table; of a detector of anomalies, log-likelihoods and alarms."""
    from tinybayes.data.readers import as_table
    from tinybayes.data.tables import EncodedTable
    from tinybayes.data.writers import write_frames
    from tinybayes.infer.frames import alarm_frames, prediction_frames
    from tinybayes.model import BayesNet, TreeEnsemble

    if as_json and str(output) == "-":
        raise error("a file with --json", "-", where="--output", remedy="the predictions would mix with the JSON")
    detector = _detector(model)
    if detector is not None and proba:
        raise error("a model with a class variable", "a detector of anomalies", where="--proba", remedy="leave it out")
    net = read_with_class(model) if detector is None else detector[0]
    with watched(as_table(table), "predicting") as source:
        if detector is not None:
            frames = alarm_frames(*detector, source.batches())
        else:  # classes in the table are not looked at: rows to predict may have them or not
            frames = prediction_frames(net, EncodedTable(source, net.variables), proba=proba)
        rows = write_frames(frames, output)
    if as_json:
        print_json({"rows": rows}, output)
    elif str(output) != "-":
        say(f"Wrote {rows:,} predictions to {output}.")
        if isinstance(net, BayesNet | TreeEnsemble):
            say(f"{suggest('explain', model, table, '--row', 1)}\nIt says why the first row got its class.")


def info(
    model: ModelFile,
    limit: Annotated[int, typer.Option("--limit", min=0, help="How many variables to list.")] = 20,
    core: Core = "cortex-m0+",
    clock: Clock = None,
    inference: Annotated[
        bool, typer.Option("--inference", help="Show what exact inference takes instead: memory and time.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the variables, the structure and the price of a model, and that of its program."""
    if inference:
        _tell_inference(model, as_json)
        return
    from tinybayes.deploy import read_classifier
    from tinybayes.deploy.files.native import load_metadata, model_id
    from tinybayes.deploy.price import find_core
    from tinybayes.infer.calibration import from_metadata
    from tinybayes.report.console import describe, model_card, program_figures, program_table
    from tinybayes.search.budget import parse_clock

    core, frequency = find_core(core), None if clock is None else parse_clock(clock, "--clock")
    loaded = read_classifier(model)
    program = program_figures(loaded, core, frequency)
    metadata = load_metadata(model) if model.suffix == ".tb" else {}
    if as_json:
        variables = [{"name": v.name, "states": list(v.states), "encoding": str(v.encoding)} for v in loaded.variables]
        target = None if loaded.target is None else {"name": loaded.target.name, "states": list(loaded.target.states)}
        print_json(
            {
                "id": model_id(loaded),
                "target": target,
                "variables": variables,
                **describe(loaded),
                "program": program,
                "metadata": metadata,
            }
        )
        return
    show(model_card(loaded, limit=limit))
    say(f"Model {model_id(loaded)}.")
    if program:
        show(program_table(program))
    if (calibration := from_metadata(metadata)) is not None:
        say(calibration.sentence())
    if metadata:
        say(f"Metadata: {json.dumps({key: value for key, value in metadata.items() if key != 'calibration'})}")
    words = ("query", model, "--marginals") if loaded.target is None else ("evaluate", model, "TEST_TABLE")
    say(suggest(*words))


def _tell_inference(path: Path, as_json: bool) -> None:
    """Show what each way to all marginals takes, for whatever `infer` can be asked about."""
    from tinybayes.cli.inference import read_any
    from tinybayes.infer import inference_costs
    from tinybayes.report.console import inference_table

    costs = inference_costs(read_any(path))
    if as_json:
        print_json({"inference": [asdict(cost) for cost in costs]})
        return
    show(inference_table(costs))
    exact = any(cost.fits for cost in costs if cost.method != "tied")
    say(suggest("infer", path, *([] if exact else ["--seconds", "60"])))


def convert(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="A model: .tb, .bif, .xmlbif, .uai or .ac; text also .gz")
    ],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The model to write; its suffix says the format.")],
    target: Annotated[str | None, typer.Option(help="Make this variable the class.")] = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Normalise quantised tables (text formats).")] = False,
    as_json: Json = False,
) -> None:
    """Convert a model between file formats."""
    from tinybayes.deploy import read_classifier, read_network, save
    from tinybayes.model import with_target

    model = read_classifier(source) if target is None else with_target(read_network(source), target)
    save(model, output, normalize=normalize)
    variables = len(model.variables) + (model.target is not None)
    if as_json:
        print_json({"variables": variables}, output)
    else:
        say(f"Wrote {variables:,} variables to {output}. {suggest('info', output)}")


def _detector(path: Path) -> "tuple[Circuit, Alarm] | None":
    """Read a density with an alarm; None if the file holds something else."""
    from tinybayes.deploy import read_classifier
    from tinybayes.deploy.files.native import load_metadata
    from tinybayes.infer.alarm import from_metadata
    from tinybayes.model import Circuit

    if path.suffix != ".tb" or (alarm := from_metadata(load_metadata(path))) is None:
        return None
    model = read_classifier(path)
    return (model, alarm) if isinstance(model, Circuit) and model.target is None else None


def read_with_class(path: Path) -> "Classifier":
    """Read a model that predicts a class."""
    from tinybayes.deploy import read_classifier

    net = read_classifier(path)
    if net.target is None:
        remedy = f"name one: tinybayes convert {path} OUT.tb --target NAME, or learn it with one"
        raise error("a model with a class variable", "one without", where=str(path), remedy=remedy)
    return net
