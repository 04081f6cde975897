"""Reading what the experiments wrote: runs from the stores, summaries and provenance from the reports."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tinybayes.data import named
from tinybayes.search.sweep import Runs, Sweep, means, read_store, read_sweeps, setting

Record = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """One setting after its full training, averaged over the folds; the error is a test error in percent."""

    sweep: Sweep
    setting: Record
    error: float
    parameters: float

    @property
    def row(self) -> str:
        return self.sweep.row or self.sweep.structure


@dataclass(frozen=True)
class Experiment:
    """A file of sweeps, with its results in the directory ``results`` beside it."""

    file: Path

    @property
    def store(self) -> Path:
        return self.file.parent / "results" / f"{self.file.stem}.jsonl"

    @property
    def report(self) -> Path:
        return self.store.with_suffix(".json")

    @property
    def command(self) -> str:
        return f"tinybayes reproduce experiments/{self.file.parent.name}/{self.file.name}"

    @cached_property
    def sweeps(self) -> list[Sweep]:
        return read_sweeps(self.file)

    @cached_property
    def runs(self) -> dict[str, Runs]:
        return read_store(self.store)

    def points(self, folds: int = 0) -> list[Point]:
        """Return the settings that were trained in full on all their folds, or on the first so many of them."""
        found = []
        for sweep in self.sweeps:
            wanted = min(folds or folds_of(sweep), folds_of(sweep))
            runs = {key: run for key, run in self.runs.get(sweep.name, {}).items() if key[1] < wanted}
            done = Counter(index for stage, _, index in runs if stage == 2)
            errors, sizes = (means(runs, 2, field) for field in ("test_error", "parameters"))
            found += [
                Point(sweep, setting(sweep, index), 100 * errors[index], sizes[index])
                for index, count in sorted(done.items())
                if count == wanted
            ]
        return found


def folds_of(sweep: Sweep) -> int:
    return sweep.folds or named.n_folds(sweep.data)


def on_folds_of(like: Experiment, other: Experiment) -> list[Point]:
    """Return the points of another experiment on the folds that this one was run on, so that they can be compared."""
    folds = {sweep.data: folds_of(sweep) for sweep in like.sweeps}
    return [
        point
        for count in sorted(set(folds.values()))
        for point in other.points(folds=count)
        if folds.get(point.sweep.data) == count
    ]


def read_report(path: Path) -> Record | None:
    return json.loads(path.read_text()) if path.exists() else None


def merged(results: Iterable[Record]) -> dict[tuple[str, str], Record]:
    """Merge the summaries of sweeps of the same data and row.

    The runs are summed. The number chosen on test rows is the least of all; the one chosen on validation rows is that
    with the least validation error, whatever its test error.
    """
    found: dict[tuple[str, str], Record] = {}
    for result in results:
        row = found.setdefault((result["data"], result.get("row", result["structure"])), {"runs": 0})
        row["runs"] += result["runs"]
        row["test"] = min(row.get("test", 100.0), 100 * result["best_on_test"]["error"])
        chosen = result.get("chosen_on_validation")
        if chosen is not None:
            validation = chosen.get("validation_error", float("inf"))
            if "validation" not in row or validation < row["validation_error"]:
                row |= {"validation": 100 * chosen["error"], "validation_error": validation}
    return found


def provenance(report: Record) -> str:
    """Say when, with what and on which machines a report was made; it may come from several runs."""
    entries = report["provenance"] if isinstance(report["provenance"], list) else [report["provenance"]]
    machines: dict[tuple[str, ...], list[Record]] = {}
    for entry in entries:
        versions = ", ".join(f"{name} {number}" for name, number in entry["versions"].items())
        device = " ".join(dict.fromkeys(entry["device"].split()))  # JAX calls a processor "cpu cpu"
        machines.setdefault((f"{device} ({entry['cores']} cores)", entry["python"], versions), []).append(entry)
    parts = []
    for (device, python, versions), runs in machines.items():
        days = sorted({run["date"][:10] for run in runs})
        seconds = sum(run["seconds"] for run in runs)
        commits = sorted({run["commit"][:12] if run["commit"] else "unknown" for run in runs})
        parts.append(
            f"{' to '.join(days[:1] + days[1:][-1:])}, {seconds:,.0f} s on {device}, Python {python}, {versions}, "
            f"commit {', '.join(commits)}"
        )
    return "; ".join(parts)
