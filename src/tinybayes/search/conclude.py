"""The end of a search: the front, the chosen model, the files."""

import csv
import io
import json
import math
import platform
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tinybayes import __version__
from tinybayes.cost import model_cost
from tinybayes.errors import FileError, TinybayesError, error, warn
from tinybayes.files import atomic_path, made_directory
from tinybayes.infer.calibration import calibration_metadata
from tinybayes.infer.evaluate import page_figures
from tinybayes.infer.explain import explained_rows
from tinybayes.search.budget import Budget
from tinybayes.search.checks import Score, uncertainty
from tinybayes.search.columns import like
from tinybayes.search.families import describe, family_of
from tinybayes.search.families.family import Model, posteriors_of, view_of
from tinybayes.search.front import choose, closest, on_front, shortfall
from tinybayes.search.measure import ERROR, Measure, quality
from tinybayes.search.price import ENOUGH, Price, price_of
from tinybayes.search.runs import Run
from tinybayes.search.trials import Outcome
from tinybayes.search.views import Views


@dataclass(frozen=True)
class Exploration:
    """The result of a search.

    Parameters
    ----------
    directory
        Where the files are.
    models
        All runs as JSON objects, the front's marked, as in ``front.json``.
    chosen
        The best one within the budget; None when no model keeps its limits.
    document
        The whole content of ``front.json``.
    closest
        When none is chosen: the one that misses the limits by the least.
    shortfall
        When none is chosen: a sentence that says so.
    """

    directory: Path
    models: list[dict[str, Any]]
    chosen: dict[str, Any] | None
    document: dict[str, Any]
    closest: dict[str, Any] | None = None
    shortfall: str = ""

    @property
    def measure(self) -> Measure:
        """The metric that the search minimised."""
        return Measure(self.document["metric"]["name"])

    @property
    def front(self) -> list[dict[str, Any]]:
        """The models of the front, by flash."""
        return sorted((m for m in self.models if m["on_front"]), key=lambda m: m["flash"])


def conclude(
    finals: Sequence[tuple[Run, Outcome | None]],
    views: Views,
    budget: Budget,
    directory: Path,
    heading: dict[str, Any],
    failures: Sequence[str] = (),
    scores: Mapping[str, Score] | None = None,
    until: float = math.inf,
) -> Exploration:
    """Choose, test the retrained models, and write the files.

    After `until`, on the monotonic clock, only the chosen model is explained.
    """
    runs = [run for run, _ in finals]
    marked = on_front(runs)
    scores = scores or {}
    chosen = choose(runs, budget, scores)
    nearest = closest(runs, budget) if chosen is None else None
    models = []
    made_directory(directory / "models")
    for (run, outcome), front in zip(finals, marked, strict=True):
        kept = bool(front) or run is chosen or run is nearest
        if outcome is not None and budget.allows(run.price) and not budget.allows(outcome.price):
            outcome = None  # retrained on more rows it became larger; that of the search keeps the limits
        ended = _finished(run, outcome, views, directory) if kept else None
        rows = scores[run.key].rows if run.key in scores else len(views.valid)
        spread = uncertainty(run, len(views.valid), rows)
        uncertain = {"standard_error": round(spread, 6), "validation_rows": rows, "checked": run.key in scores}
        models.append(_entry(run, ended, bool(front), directory, views, budget) | uncertain)
        if heading.get("trials") is not None:
            models[-1]["seconds"] = None  # the only figure that depends on the machine
        if ended is not None and (run is chosen or time.monotonic() < until):
            models[-1] |= _explained(run, ended, views)
    key = None if chosen is None else chosen.key
    document = {**heading, "chosen": key, "failures": list(failures), "models": models}
    _write(directory, document)
    entry = {model["id"]: model for model in models}.get
    if chosen is not None:
        return Exploration(directory, models, entry(chosen.key), document)
    missed = None if nearest is None else entry(nearest.key)
    said = shortfall(nearest, "" if missed is None else missed["label"], budget, views.measure)
    return Exploration(directory, models, None, document, missed, said)


def heading(views: Views, budget: Budget, seed: int, command: str) -> dict[str, Any]:
    """Return the part of ``front.json`` about the search as a whole."""
    rows = views.by_name["mdlp"]
    return {
        "title": f"{views.target.name}: models under a budget",
        "command": command,
        "seed": seed,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": {
            "name": views.target.name,
            "rows": len(rows.seen),
            "test_rows": len(rows.test),
            "features": len(rows.seen.variables),
            "classes": views.target.cardinality,
            "target": views.target.name,
            "image_shape": views.image_shape,
        },
        "metric": views.measure.to_dict(),
        "failures": [],  # told at the end
        "cut": None,  # likewise
        "budget": asdict(budget),
        "provenance": {
            "tinybayes": __version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "versions": {name: version(name) for name in ("jax", "numpy", "optuna")},
        },
    }


def _finished(run: Run, outcome: Outcome | None, views: Views, directory: Path) -> Outcome | None:
    """Return the retrained model; where there was no time for it, the model of the search, tested now."""
    if outcome is not None or (model := _kept(run, directory)) is None:
        return outcome
    tested = quality(posteriors_of(model), like(views.by_name[view_of(run.setting)].test, model), views.measure)
    price = price_of(model, model_cost(model), run.price.core, rows=ENOUGH)  # a search counts fewer rows
    return Outcome(run.setting, model, run.error, run.loss, replace(price, features=run.price.features), tested=tested)


def _kept(run: Run, directory: Path) -> Model | None:
    """Return the model that the search kept of a run; a file that was damaged does not keep others from their end."""
    from tinybayes.deploy import read_classifier

    path = directory / "trials" / f"{run.key}.tb"
    if not run.saved:
        return None
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise error("a regular file", "a link, a pipe or a device", where=str(path), kind=FileError)
        return read_classifier(path)
    except (OSError, TinybayesError) as problem:
        warn(f"the model of a run is lost: {problem}")
        return None


def _entry(
    run: Run, outcome: Outcome | None, front: bool, directory: Path, views: Views, budget: Budget
) -> dict[str, Any]:
    """Return the entry of a run in ``front.json``, and save its model."""
    from tinybayes.deploy import save

    if outcome is None:
        return described(run, run.price, front, budget, views.measure)
    entry = described(run, outcome.price, front, budget, views.measure)
    if outcome.tested is not None:
        entry |= _figures("test", outcome.tested.value, outcome.tested.wrong, views.measure)
    if outcome.model is not None:
        entry["file"] = f"models/{run.key}.tb"
        told = [name for name in entry if name.startswith(("validation_", "test_"))]
        metadata: dict[str, Any] = {"setting": run.setting} | {name: entry[name] for name in told}
        if views.measure.name != "error":
            metadata["metric"] = views.measure.metric.title
        metadata |= _calibration(run, views, directory)
        save(outcome.model, directory / entry["file"], metadata=metadata)
    return entry


def _explained(run: Run, outcome: Outcome, views: Views) -> dict[str, Any]:
    """Return what the page of results shows of a model: its errors by class, and some rows."""
    if outcome.model is None:
        return {}
    test = like(views.by_name[view_of(run.setting)].test, outcome.model)
    return page_figures(outcome.model, test) | {"explanations": explained_rows(outcome.model, test)}


def _calibration(run: Run, views: Views, directory: Path) -> dict[str, Any]:
    """Calibrate with the model of the search, which has not seen the validation rows."""
    if (model := _kept(run, directory)) is None:
        return {}
    return {"calibration": calibration_metadata(model, like(views.validation(view_of(run.setting)), model))}


def described(run: Run, price: Price, front: bool, budget: Budget, measure: Measure = ERROR) -> dict[str, Any]:
    """Return the entry of a run in ``front.json`` before its test error is known."""
    family = family_of(run.setting)
    return {
        "id": run.key,
        "family": family.shown_as(run.setting),
        "label": f"{describe(run.setting)}, {_size(price.flash)}{' of tables' if price.tables_only else ''}",
        "settings": run.setting,
        "steps": run.rung,
        **_figures("validation", run.error, run.share_wrong, measure),
        **_figures("test", None, None, measure),
        **prices_of(price, budget),
        "on_front": front,
        "file": None,
        "boards": None,
        "history": run.history or None,
        "seconds": run.seconds,
    }


def _figures(rows: str, value: float | None, wrong: float | None, measure: Measure) -> dict[str, float | None]:
    """Return the share of wrong labels of some rows, and the value of the metric where it is another one."""
    if measure.name == "error":
        return {f"{rows}_error": value}
    return {f"{rows}_error": wrong, f"{rows}_value": value}


def prices_of(price: Price, budget: Budget) -> dict[str, Any]:
    """Return the figures of a price that ``front.json`` has; of tables alone, those of a program are not known."""
    names = ("bits", "bytes", "operations", "multiplications", "parameters", "flash", "tables_only")
    figures = {name: getattr(price, name) for name in names}
    if price.features is not None:
        figures["feature_cost"] = price.features
    program = {name: getattr(price, name) for name in ("ram", "stack", "instructions")}
    program["microseconds"] = round(price.microseconds(budget.clock), 2)
    figures["within"] = budget.allows(price)
    return figures | (dict.fromkeys(program) if price.tables_only else program)


def _size(count: int) -> str:
    return f"{count:,} B" if count < 1000 else f"{count / 1000:.1f} kB"


def _write(directory: Path, document: dict[str, Any]) -> None:
    figures = [name for name in document["models"][0] if name.endswith(("_error", "_value"))]
    figures = [name for name in figures if name != "standard_error"]
    columns = ["id", "family", "label", *figures, "bits", "operations"]
    columns += ["flash", "ram", "stack", "instructions", "microseconds", "tables_only", "file"]
    columns += ["feature_cost"] * ("feature_cost" in document["models"][0])
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(sorted((m for m in document["models"] if m["on_front"]), key=lambda m: m["flash"]))
    try:
        with atomic_path(directory / "front.csv") as temporary:
            temporary.write_text(text.getvalue())
        with atomic_path(directory / "front.json") as temporary:
            temporary.write_text(json.dumps(document, indent=1) + "\n")
    except OSError as problem:
        raise error("a directory to write to", problem.strerror or problem, where=str(directory)) from problem
