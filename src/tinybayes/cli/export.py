"""The command that writes a model as code for a device."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinybayes.cli._console import print_json, say, show, watched
from tinybayes.cli._options import MODELS, Json, named_model
from tinybayes.errors import TinybayesError, error
from tinybayes.files import exists, is_directory, is_file

if TYPE_CHECKING:
    from tinybayes.deploy.export import Files
    from tinybayes.deploy.measure import Measurement
    from tinybayes.infer.alarm import Alarm
    from tinybayes.infer.calibration import Calibration
    from tinybayes.model import Classifier, Cost

NEXT = {
    "c": "cc -std=c99 -O2 -c {out}/{name}.c",
    "cpp": 'put #include "{name}.hpp" into a program and call {name}::predict',
    "arduino": "in the Arduino IDE: Sketch, Include Library, Add .ZIP Library, {out}/{name}.zip",
    "micropython": "mpremote cp {out}/{name}.py : + exec 'import {name}; print({name}.CLASSES)'",
    "javascript": "node -p \"require('./{out}/{name}.js').features\"",
    "onnx": "python -c \"import onnxruntime as o; print(o.InferenceSession('{out}/{graph}').get_inputs()[0])\"",
    "verilog": "iverilog -g2001 -o {name}_tb {out}/{name}.v {out}/{name}_tb.v && vvp {name}_tb",
}
ERRORS = {
    "test_error": "Error on test rows",
    "validation_error": "Error on validation rows",
    "error": "Error",
    "training_error": "Error on the training rows",
}
CALIBRATED = ("c", "cpp", "arduino")  # targets with probabilities and margins
ROWS = 256  # that a board predicts when it is measured


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODELS)],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The directory for the files.")],
    to: Annotated[
        str, typer.Option("--to", help="c, cpp, arduino, micropython, javascript, onnx, verilog or verilog-pipelined.")
    ] = "c",
    ident: Annotated[
        str | None,
        typer.Option("--model", metavar="ID", help="Of a search: another model than the chosen one, see its page."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Names the files and what is in them; by default that of the model's file.")
    ] = None,
    raw: Annotated[
        str | None,
        typer.Option(
            metavar="float|int|none", help="The raw values that predict_raw takes; by default as in the table."
        ),
    ] = None,
    complete: Annotated[
        bool, typer.Option("--no-gaps", help="Leave out the code for missing values: rows must be complete.")
    ] = False,
    validation: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="Of c, cpp, arduino: rows with the class, none of them trained on, that calibrate probabilities.",
        ),
    ] = None,
    reject_error: Annotated[
        float | None,
        typer.Option(help="State the margin that leaves at most this error, 0.02 for instance, in the rows it keeps."),
    ] = None,
    bare: Annotated[
        bool, typer.Option("--no-extras", help="Of c, cpp, arduino: write only what a prediction needs.")
    ] = False,
    query: Annotated[
        str | None,
        typer.Option(
            help="Of a circuit: the variable to ask for; by default the class, or without one the likelihood."
        ),
    ] = None,
    arithmetic: Annotated[str | None, typer.Option(help="Of a circuit: integer, or float.")] = None,
    measured: Annotated[
        bool, typer.Option("--measure", help="Of c: build it for microcontrollers and run it on emulated ones.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a model as code for a device: C, C++, Arduino, MicroPython, JavaScript, ONNX or Verilog."""
    from tinybayes.cost import model_cost
    from tinybayes.deploy import read_classifier
    from tinybayes.deploy.export import export as make
    from tinybayes.deploy.export import write_files

    if measured and to != "c":
        raise error("--to c", to, where="--measure", remedy="only C is built for emulated boards")
    if exists(output) and not is_directory(output):
        raise error("a directory", str(output), where="--output", remedy="name another")
    model = named_model(model, ident)
    classifier = read_classifier(model)
    calibration = _calibration(classifier, model, to, validation, reject_error)
    options: dict[str, Any] = {
        **_circuit_options(classifier, query, arithmetic),
        **_alarm(classifier, model, query),
        **({"gaps": False} if complete else {}),
        **({"extras": False} if bare else {}),
        **({} if calibration is None else {"calibration": calibration}),
    }
    chosen = _name_of(model) if name is None else name
    files = make(classifier, to, name=chosen, raw=raw, note=_note(model), **options)
    boards = _measure(classifier, files, chosen, query, raw) if measured else []
    write_files(files, output)
    page = _note_boards(model, [_figures(b) for b in boards]) if boards else None
    if as_json:
        sizes = {file: len(content) for file, content in files.items()}
        price = model_cost(classifier).to_dict()
        figures: dict[str, Any] = {"target": to, "name": chosen, "files": sizes, "cost": price}
        figures |= {} if calibration is None else {"calibration": calibration.to_metadata()}
        print_json(figures | ({"boards": [_figures(b) for b in boards]} if measured else {}), output)
        return
    show(_table(files))
    say(f"Price: {model_cost(classifier)}.")
    if calibration is not None:
        say(calibration.sentence())
    if boards:
        show(_board_table(boards, model_cost(classifier)))
    if page is not None:
        say(f"These figures are in {page}, too.")
    say(f"Wrote {len(files)} file{'s' if len(files) > 1 else ''} to {output}. Now try:")
    graph = next((file for file in files if file.endswith("_raw.onnx")), f"{chosen}.onnx")  # what takes raw rows
    hint = NEXT[to.removesuffix("-pipelined")].format(out=output, name=chosen, graph=graph)
    say(f"  {hint.replace('::predict', '::log_likelihood') if _is_density(classifier, query) else hint}")


def _circuit_options(model: "Classifier", query: str | None, arithmetic: str | None) -> dict[str, str]:
    from tinybayes.model import Circuit

    given = {"query": query, "arithmetic": arithmetic}
    options = {key: value for key, value in given.items() if value is not None}
    if options and not isinstance(model, Circuit):
        where = ", ".join(f"--{key}" for key in options)
        raise error("a circuit", "another model", where=where, remedy="leave it out: the class is predicted")
    return options


def _is_density(model: "Classifier", query: str | None) -> bool:
    from tinybayes.deploy.programs.density_plan import is_density
    from tinybayes.model import Circuit

    return isinstance(model, Circuit) and is_density(model, query)


def _alarm(model: "Classifier", path: Path, query: str | None) -> "dict[str, Alarm]":
    """Return the alarm that the file of a density holds, if it does and no variable is asked for."""
    from tinybayes.deploy.files.native import load_metadata
    from tinybayes.infer.alarm import from_metadata

    if not _is_density(model, query) or path.suffix != ".tb":
        return {}
    found = from_metadata(load_metadata(path))
    return {} if found is None else {"alarm": found}


def _calibration(
    model: "Classifier", path: Path, to: str, validation: Path | None, reject: float | None
) -> "Calibration | None":
    """Calibrate on a table of validation rows; without one, take what a search stored in the file of the model."""
    from tinybayes.data.readers import as_table
    from tinybayes.data.tables import EncodedTable
    from tinybayes.deploy.files.native import load_metadata
    from tinybayes.infer.calibration import ERRORS, calibrate, from_metadata
    from tinybayes.model import Circuit

    if to not in CALIBRATED or isinstance(model, Circuit):
        for option, value in (("--validation", validation), ("--reject-error", reject)):
            if value is not None:
                got = "a circuit" if isinstance(model, Circuit) else to
                raise error(
                    f"a classifier and --to {' or '.join(CALIBRATED)}", got, where=option, remedy="leave it out"
                )
        return None
    if validation is not None:
        with watched(as_table(validation), "calibrating") as source:
            rows = EncodedTable(source, model.variables, model.target)
            found: Calibration | None = calibrate(model, rows, errors=(*ERRORS, *([] if reject is None else [reject])))
    else:
        found = from_metadata(load_metadata(path)) if path.suffix == ".tb" else None
    if reject is None:
        return found
    if found is None:
        remedy = "give a table of rows with the class that the model was not trained on"
        raise error("--validation TABLE", "none", where="--reject-error", remedy=remedy)
    return found.rejecting(reject)


def _name_of(path: Path) -> str:
    """Name the model by its file, where that gives a valid name."""
    from tinybayes.deploy.programs.names import check_name, identifier

    if is_file(path.parent.parent / "front.json"):
        return "model"  # a search names its files by number
    try:
        return check_name(identifier(path.name.split(".")[0]))
    except TinybayesError:
        return "model"


def _note(path: Path) -> str:
    """Return a sentence with the measured error, if the file of the model holds one."""
    from tinybayes.deploy.files.native import load_metadata

    if path.suffix != ".tb":
        return ""
    metadata = load_metadata(path)
    parts = [metadata, *(part for part in metadata.values() if isinstance(part, dict))]
    for key, said in ERRORS.items():
        for part in parts:
            value = part.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return f"{said}: {100 * value:.2f} %."
    return ""


def _note_boards(path: Path, boards: list[dict[str, Any]]) -> Path | None:
    """Add the measurements to the report of the search that the model came from, if it came from one."""
    from tinybayes.report.front import FRONT, note_boards
    from tinybayes.report.html import write_report

    directory = path.absolute().parent.parent
    if not is_file(directory / FRONT) or not note_boards(directory, path.name, boards):
        return None
    return write_report(directory)


def _table(files: "Files") -> object:
    from tinybayes.report.console import empty_table

    table = empty_table(None, "file", "bytes", right=("bytes",))
    for file, content in files.items():
        table.add_row(file, f"{len(content):,}")
    return table


def _measure(model: "Classifier", files: "Files", name: str, query: str | None, raw: str | None) -> "list[Measurement]":
    from tinybayes.deploy.measure import measure
    from tinybayes.deploy.programs.circuit_plan import find_query
    from tinybayes.deploy.programs.encoding import make_features
    from tinybayes.deploy.programs.plan import rows_with_every_state
    from tinybayes.model import Circuit

    variables = model.nodes if isinstance(model, Circuit) else model.variables
    rows = rows_with_every_state(tuple(v.cardinality for v in variables), ROWS)
    if raw != "none":
        asked = find_query(model, query) if isinstance(model, Circuit) and not _is_density(model, query) else None
        rows = make_features(variables, raw, ignored=asked).values(rows)
    return measure({file: str(content) for file, content in files.items()}, name, rows, raw=raw != "none")


def _figures(board: "Measurement") -> dict[str, Any]:
    return {name: getattr(board, name) for name in ("core", "flash", "ram", "stack", "instructions")}


def _board_table(boards: "list[Measurement]", price: "Cost") -> object:
    """Show the measured cost of a prediction beside the price of the parameters."""
    from tinybayes.report.console import empty_table

    counts = ("priced bytes", "flash", "static RAM", "peak stack", "instructions")
    table = empty_table(None, "core", *counts, right=counts)
    for board in boards:
        numbers = (price.bytes, board.flash, board.ram, board.stack, round(board.instructions))
        table.add_row(board.core, *(f"{number:,}" for number in numbers))
    return table
