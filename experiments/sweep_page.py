"""The HTML page of a file of sweeps, made from the stored runs."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments.reproduce import name_of, sweeps_of
from experiments.store import Record, Runs, read_report, read_store
from experiments.sweep import NetSweep, Sweep, TableSweep
from tinybayes.model import Fixed
from tinybayes.report.front import checked_front
from tinybayes.report.html import write_page
from tinybayes.search.front import pareto

FLOAT = 32  # bits of a parameter that is not quantised
_FAMILIES = {"naive": "naive", "chow-liu": "tan", "random": "tan"}


def write_sweeps_page(path: Path, output: Path, *, quick: bool = False) -> Path | None:
    """Write ``NAME.html`` beside the results of a file of sweeps.

    Parameters
    ----------
    path
        The TOML file of sweeps.
    output
        The directory that `experiments.reproduce.reproduce` wrote to.
    quick
        Whether the short form was run.

    Returns
    -------
    Path or None
        The page; None, and no file, where no setting of any sweep has gone through all its folds.
    """
    name = name_of(path, quick=quick)
    stored = read_store(output / f"{name}.jsonl")
    sweeps = [sweep for sweep in sweeps_of(path, quick=quick) if sweep.name in stored]
    models = [entry for sweep in sweeps for entry in _entries(sweep, stored[sweep.name])]
    if not models:
        return None
    short = all(model["validation_error"] is not None for model in models)
    if short:
        title = f"{name}: validation errors of the short runs, test errors of the full ones"
    else:  # some have none: errors of different kinds are not to be compared
        title = f"{name}: test errors, on which the papers choose"
        models = [model | {"validation_error": None} for model in models]
    for number, model in enumerate(models):
        model["id"] = str(number)
    groups = list(dict.fromkeys(model["group"] for model in models))
    error = "validation_error" if short else "test_error"
    for group in groups:
        _mark([model for model in models if model["group"] == group], error)
    made = _provenance(output / f"{name}.json")
    front = {
        "title": title,
        "command": f"python -m experiments {path}" + (" --quick" if quick else ""),
        "created": made.pop("date", None),
        "data": {"name": ", ".join(groups)},
        "provenance": made,
        "chosen": min((m for m in models if m["group"] == groups[0]), key=lambda m: (m[error], m["bits"]))["id"],
        "models": models,
    }
    return write_page(checked_front(front, f"{output / name}.jsonl"), output / f"{name}.html")


def _entries(sweep: Sweep, done: Runs) -> Iterator[Record]:
    """Describe the settings whose last stage is complete, as ``front.json`` does it."""
    final: dict[int, list[Record]] = {}
    for (stage, _, run), record in done.items():
        if stage == 2:
            final.setdefault(run // sweep.seeds, []).append(record)
    short = sweep.means(done, 1, "validation_error")
    for index, records in sorted(final.items()):
        error = _mean(records, "test_error")
        if error is None or index >= sweep.n_settings or len(records) < sweep.n_folds * sweep.seeds:
            continue  # not finished, or of another form of the file
        assert isinstance(sweep, TableSweep | NetSweep)
        described = _network(sweep, index, records) if isinstance(sweep, TableSweep) else _net(sweep, index, records)
        if described is not None:
            errors = {"validation_error": short.get(index), "test_error": error}
            yield described | errors | {"group": sweep.data, "file": None}


def _network(sweep: TableSweep, index: int, records: list[Record]) -> Record | None:
    parameters, operations = _mean(records, "parameters"), _mean(records, "operations")
    if parameters is None:
        return None
    chosen = sweep.setting(index)
    bits = Fixed(*chosen["bits"]).bits if chosen["bits"] else FLOAT
    return {
        "family": _FAMILIES.get(sweep.structure, "subset"),
        "label": f"{sweep.name}, {f'{bits} bits' if chosen['bits'] else 'floats'}, setting {index}",
        "settings": {"structure": sweep.structure, "epochs": sweep.epochs, "seed": sweep.seed, **chosen},
        **_price(parameters * bits, operations),
        "multiplications": 0,
        "parameters": round(parameters),
    }


def _net(sweep: NetSweep, index: int, records: list[Record]) -> Record | None:
    bits = _mean(records, "bits_used")
    if bits is None:
        return None
    chosen = sweep.setting(index)
    width = f"{chosen['bits']} bits" if chosen["bits"] else "floats"
    return {
        "family": sweep.kind,
        "label": f"{sweep.name}, {chosen['layers']} layers, {width}, {chosen['activation']}, setting {index}",
        "settings": {"kind": sweep.kind, "epochs": sweep.epochs, "hidden": records[0].get("hidden"), **chosen},
        **_price(bits, _mean(records, "operations")),
        "multiplications": None,
        "parameters": None,
    }


def _price(bits: float, operations: float | None) -> dict[str, int | None]:
    whole = round(bits)
    return {"bits": whole, "bytes": -(-whole // 8), "operations": None if operations is None else round(operations)}


def _mean(records: list[Record], field: str) -> float | None:
    values = [record[field] for record in records if isinstance(record.get(field), int | float)]
    return float(np.mean(values)) if len(values) == len(records) else None


def _mark(models: list[Record], error: str) -> None:
    """Mark the front of one data set; operations count where all are known, which those of older stores are not."""
    fields = [error, "bits", "operations"]
    known = [field for field in fields if all(model[field] is not None for model in models)]
    best = pareto(np.array([[model[field] for field in known] for model in models]))
    for model, front in zip(models, best, strict=True):
        model["on_front"] = bool(front)


def _provenance(report: Path) -> Record:
    try:
        made = (read_report(report) or {})["provenance"]
        return dict(made[-1] if isinstance(made, list) else made)
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return {}
