"""Models as programs: one mapping from the name of a target to the function that writes it."""

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from tinybayes.deploy.imports.scikit_learn import as_model
from tinybayes.deploy.programs.arduino import to_arduino
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.cpp import to_cpp
from tinybayes.deploy.programs.javascript import to_javascript
from tinybayes.deploy.programs.micropython import to_micropython
from tinybayes.deploy.programs.onnx import to_onnx
from tinybayes.deploy.programs.verilog import to_verilog
from tinybayes.errors import error, near
from tinybayes.files import atomic_path
from tinybayes.infer.alarm import Alarm
from tinybayes.model import Classifier

Files = Mapping[str, str | bytes]

TARGETS: dict[str, Callable[..., Files]] = {
    "c": to_c,
    "cpp": to_cpp,
    "arduino": to_arduino,
    "micropython": to_micropython,
    "javascript": to_javascript,
    "onnx": to_onnx,
    "verilog": to_verilog,
    "verilog-pipelined": partial(to_verilog, pipelined=True),
}


def export(
    model: Classifier | Any,
    to: str = "c",
    *,
    output: str | os.PathLike[str] | None = None,
    name: str = "model",
    raw: str | None = None,
    note: str = "",
    **options: Any,
) -> dict[str, str | bytes]:
    """Write a model as code for a device.

    Code of classifiers in one `Fixed` format or one `Codebook`, and of neural nets, uses integers only.

    Parameters
    ----------
    model
        A classifier, a neural net, or trees; for the targets ``"c"``, ``"cpp"``, ``"arduino"`` and ``"javascript"``
        also a circuit. Or a fitted estimator of this package; an `AnomalyDetector` brings its alarm, for the first
        three of these. A fitted tree, forest or boosted trees of scikit-learn are read by `from_sklearn`.
    to
        The target: ``"c"``, ``"cpp"``, ``"arduino"``, ``"micropython"``, ``"javascript"``, ``"onnx"``, ``"verilog"``
        or ``"verilog-pipelined"``.
    output
        The directory to write the files to; it is made if it does not exist. None writes nothing.
    name
        The name of the files, and the prefix of the public names in them.
    raw
        The raw values that the code takes beside states: ``"float"``, ``"int"`` or ``"none"``. By default integers
        where all numeric columns held integers, else floats.
    note
        A line for the comment at the top, such as the measured error.
    options
        Of some targets only: ``query`` and ``arithmetic`` of circuits, ``alarm`` of densities (circuits without a
        class, the result of `tinybayes.infer.alarm.choose_alarm`), ``checks`` of Verilog, and ``gaps`` of
        classifiers in all but Verilog: False leaves out the code for missing values, and rows must be complete.
        In C, C++ and Arduino also, for classifiers, ``calibration``, the result of
        `tinybayes.infer.calibration.calibrate`, and ``extras``: False leaves out all functions that no prediction
        needs. For trees ``form``: ``"nested"``, ``"nodes"`` or ``"levels"``, see
        `tinybayes.deploy.programs.c.to_c`; by default the one that costs least. For neural nets ``"compact"`` (little
        flash) or ``"lanes"`` (few instructions); by default small dense nets are compact.

    Returns
    -------
    dict
        The content of each file, text or bytes, by its name.

    Examples
    --------
    >>> export(net, to="c", output="firmware", name="digits")  # doctest: +SKIP
    """
    if to not in TARGETS:
        raise error(f"one of {', '.join(TARGETS)}", repr(to), where="to")
    _check_options(to, options)
    if raw is not None:
        options["raw"] = raw
    alarm = getattr(model, "alarm_", None)
    if isinstance(alarm, Alarm) and options.get("query") is None:
        _check_options(to, {"alarm": alarm})
        options = {"alarm": alarm, **options}
    files = dict(TARGETS[to](as_model(model), name=name, note=note, **options))
    if output is not None:
        write_files(files, output)
    return files


def _check_options(to: str, options: Mapping[str, Any]) -> None:
    """Refuse options that the target does not have."""
    known = {target: list(signature(write).parameters)[1:] for target, write in TARGETS.items()}  # without the model
    for option in options:
        targets = [target for target, names in known.items() if option in names]
        if targets and to not in targets:
            remedy = f"leave {option} out, or choose another target"
            raise error(f"the target {' or '.join(targets)}", to, where=option, remedy=remedy)
        if not targets:
            remedy = near(option, known[to])
            raise error(f"one of {', '.join(known[to])}", repr(option), where=f"option of {to}", remedy=remedy)


def write_files(files: Files, directory: str | os.PathLike[str]) -> list[Path]:
    """Write generated files into a directory, which is made if it does not exist; all of them or none."""
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise error("a directory", problem.strerror or problem, where=str(folder)) from problem
    with ExitStack() as together:  # the files get their names when all of them are complete
        for file, content in files.items():
            temporary = together.enter_context(atomic_path(folder / file))
            temporary.write_bytes(content.encode("ascii") if isinstance(content, str) else content)
    return [folder / file for file in files]
