"""The result of a search, front.json, read as untrusted input."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinybayes.errors import FileError, error
from tinybayes.files import atomic_path, read_regular
from tinybayes.report.finite import finite

FRONT = "front.json"
LARGEST = 1e300  # larger numbers are rejected
_LIMIT = 2**28  # bytes of front.json
_COUNTS = ("bits", "bytes", "operations", "multiplications", "parameters")
_MAYBE = ("operations", "multiplications", "parameters")  # counts that may be unknown
# The price of the program, where it is known, and of the columns that it reads, where these have prices.
_PROGRAM = ("flash", "ram", "stack", "instructions", "microseconds", "feature_cost")
_MODEL: dict[str, Any] = {
    "label": None,
    "group": None,  # models of different groups, such as data sets, are never compared
    "settings": {},
    "validation_error": None,
    "test_error": None,
    "validation_value": None,  # of the metric, where it is not the error
    "test_value": None,
    "standard_error": None,  # of the validation error, or of the metric
    "checked": False,  # whether it is a mean over several splits of the rows, and not that of one
    "within": None,  # whether the search found it within its budget
    "on_front": False,
    "file": None,
    "boards": None,
    "tables_only": False,  # whether flash is that of tables without a program
    "history": None,
    "seconds": None,  # training time, where models are in the order of the search
    "confusion": None,
    "reliability": None,
    "explanations": None,
}
_ERROR: dict[str, Any] = {"name": "error", "title": "error", "percent": True}  # the usual metric
_TOP: dict[str, Any] = {
    "title": "Models and their price",
    "command": "",
    "seed": None,
    "created": None,
    "data": {},
    "budget": {},
    "metric": _ERROR,  # what the search minimised
    "chosen": None,
    "trials": None,  # how many were asked for, in the place of a time
    "cut": None,  # sentences: what the time did not suffice for; None where nothing is known about it
    "provenance": {},
}


def read_front(directory: Path, name: str = FRONT) -> dict[str, Any]:
    """Read and check ``front.json`` of a directory, or another file of its form.

    Absent fields get their defaults, unknown fields are dropped, and numbers that JSON does not have become None.
    """
    path = Path(directory) / name
    try:
        return checked_front(json.loads(read_regular(path, _LIMIT).decode()), str(path))
    except FileError:
        raise
    except OSError as problem:
        remedy = "name a directory that tinybayes explore has written"
        reason = problem.strerror or problem
        raise error(f"a {name}", reason, where=str(path), remedy=remedy, kind=FileError) from problem
    except (ValueError, RecursionError) as problem:
        raise error("JSON", f"{problem}", where=str(path), kind=FileError) from problem


def note_boards(directory: Path, name: str, boards: list[dict[str, Any]]) -> bool:
    """Record in ``front.json`` the cost of a model on boards; return whether it lists a model of that file name."""
    read_front(directory)  # raises if the file is damaged
    document = json.loads(read_regular(directory / FRONT, _LIMIT).decode())
    measured = [model for model in document["models"] if model.get("file") == f"models/{name}"]
    for model in measured:
        model["boards"] = boards
    if measured:
        with atomic_path(directory / FRONT) as temporary:
            temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return bool(measured)


def checked_front(document: Any, where: str = "front") -> dict[str, Any]:
    """Check the result of a search, and fill in defaults."""
    _need(isinstance(document, dict), "an object", document, where)
    models = document.get("models")
    _need(isinstance(models, list) and len(models) > 0, "a list of models, one at least", models, f"{where}, models")
    front = {name: document.get(name, usual) for name, usual in _TOP.items()}
    for name in ("data", "budget", "metric", "provenance"):
        _need(isinstance(front[name] or {}, dict), "an object", front[name], f"{where}, {name}")
        front[name] = front[name] or {}
    front["metric"] = {name: type(usual)(front["metric"].get(name, usual)) for name, usual in _ERROR.items()}
    front["models"] = [_checked_model(model, f"{where}, models[{i}]") for i, model in enumerate(models)]
    ids = [model["id"] for model in front["models"]]
    _need(len(set(ids)) == len(ids), "distinct ids", "the same twice", f"{where}, models")
    cut = front["cut"]
    _need(
        cut is None or (isinstance(cut, list) and all(isinstance(c, str) for c in cut)), "texts", cut, f"{where}, cut"
    )
    _need(front["trials"] is None or _is_number(front["trials"]), "a number", front["trials"], f"{where}, trials")
    front["chosen"] = None if front["chosen"] is None else str(front["chosen"])
    _need(front["chosen"] in (None, *ids), "the id of a model", front["chosen"], f"{where}, chosen")
    clean: dict[str, Any] = finite(front)
    return clean


def _checked_model(entry: Any, where: str) -> dict[str, Any]:
    _need(isinstance(entry, dict) and "id" in entry, "an object with an id", entry, where)
    model = {name: entry.get(name, usual) for name, usual in _MODEL.items()}
    model |= {"id": str(entry["id"]), "family": str(entry.get("family", "other"))}
    for name in _COUNTS:
        count = entry.get(name, 0)
        unknown = count is None and name in _MAYBE
        sound = unknown or (_is_number(count) and count >= 0)
        _need(sound, "a number, not negative", count, f"{where}, {name}")
        model[name] = None if unknown else int(count)
    for name in _PROGRAM:
        model[name] = entry.get(name)
        sound = model[name] is None or (_is_number(model[name]) and model[name] >= 0)
        _need(sound, "a number, not negative", model[name], f"{where}, {name}")
    model["group"] = None if model["group"] is None else str(model["group"])
    model["label"] = str(model["label"] or f"{model['family']} {model['id']}")
    for name in ("validation_error", "test_error"):
        share = model[name]
        sound = share is None or (isinstance(share, float) and math.isnan(share))
        _need(sound or (_is_number(share) and 0 <= share <= 1), "a share from 0 to 1", share, f"{where}, {name}")
    for name in ("validation_value", "test_value", "standard_error"):
        value = model[name]
        sound = value is None or (isinstance(value, float) and math.isnan(value)) or (_is_number(value) and value >= 0)
        _need(sound, "a number, not negative", value, f"{where}, {name}")
    spent = model["seconds"]
    _need(spent is None or (_is_number(spent) and spent >= 0), "seconds, not negative", spent, f"{where}, seconds")
    _need(isinstance(model["settings"] or {}, dict), "an object", model["settings"], f"{where}, settings")
    lists: dict[str, Callable[[Any], bool]] = {
        "boards": lambda board: isinstance(board, dict),
        "history": lambda point: _numbers(point, 2),
        "reliability": lambda point: _numbers(point, 3),
        "confusion": lambda row: _numbers(row, len(model["confusion"])),
    }
    for name, sound_entry in lists.items():
        entries = model[name]
        sound = entries is None or (isinstance(entries, list) and all(map(sound_entry, entries)))
        _need(sound, "a list of the described form", entries, f"{where}, {name}")
    model["explanations"] = _checked_explanations(model["explanations"], f"{where}, explanations")
    file = model["file"]
    _need(file is None or isinstance(file, str), "the name of a file", file, f"{where}, file")
    model["within"] = None if model["within"] is None else bool(model["within"])
    return model | {name: bool(model[name]) for name in ("on_front", "tables_only", "checked")}


def _checked_explanations(entries: Any, where: str) -> list[dict[str, Any]] | None:
    """Check the rows whose labels are explained; see `tinybayes.infer.explain.explained_rows`."""
    if entries is None:
        return None
    form = "a list of the described form"
    _need(isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries), form, entries, where)
    clean = []
    for entry in entries:
        parts = entry.get("contributions")
        _need(isinstance(parts, list) and all(isinstance(part, dict) for part in parts), form, parts, where)
        kept = {name: entry.get(name) for name in ("row", "prior", "total", "others", "rest")}
        numbers = [*kept.values(), *(part.get("log_odds") for part in parts)]
        _need(_numbers(numbers, len(numbers)), form, numbers, where)
        kept |= {name: str(entry.get(name, "")) for name in ("truth", "label", "against")}
        kept["contributions"] = [
            {"feature": str(p.get("feature", "")), "value": str(p.get("value", "")), "log_odds": p.get("log_odds")}
            for p in parts
        ]
        clean.append(kept)
    return clean


def metric_value(model: dict[str, Any], front: dict[str, Any], rows: str = "validation") -> float | None:
    """Return the value of a model on some rows by the metric of its search."""
    value: float | None = model[f"{rows}_{'error' if front['metric']['name'] == 'error' else 'value'}"]
    return value


def model_path(directory: Path, file: str) -> Path:
    """Return the path of a model's file, which must lie in the directory."""
    root = Path(os.path.realpath(directory))
    path = root if "\0" in file else Path(os.path.realpath(root / file))
    if path == root or not path.is_relative_to(root):
        raise error("a file below the directory", file, where=str(root / FRONT), kind=FileError)
    return path


def _is_number(value: Any) -> bool:
    # Unlike `math.isfinite`, a comparison takes integers of any size; it is false for NaN.
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def _numbers(row: Any, length: int) -> bool:
    return isinstance(row, list) and len(row) == length and all(x is None or isinstance(x, int | float) for x in row)


def _need(sound: bool, expected: str, got: Any, where: str) -> None:
    if not sound:
        text = repr(got)
        raise error(expected, text if len(text) < 80 else f"{text[:77]}...", where=where, kind=FileError)
