"""Results of sweeps for the pages: settings after their full training, summaries, and the names that the pages show."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from experiments.store import Record, Runs, read_store
from experiments.sweep import Sweep, TableSweep, read_sweeps

DATA = ("letter", "satimage", "usps", "mnist")
LABELS = {
    "naive": "naive Bayes",
    "chow-liu": "Chow-Liu",
    "random": "TAN Random",
    "subset": "TAN Subset",
    "all": "TAN All",
    "heuristic": "TAN Heuristic",
    "order-free": "order-free TAN",
    "pseudo": "pseudo-TAN",
}


def label(row: str) -> str:
    """Return the name of a row; what follows a comma says how it departs from its structure."""
    structure, comma, variant = row.partition(",")
    return LABELS.get(structure, structure) + comma + variant


def order(data: str, row: str) -> tuple[int, int, str]:
    """Return a sort key: data sets and structures in their order, variants after their structure."""
    structure = row.partition(",")[0]
    known = tuple(LABELS)
    return (
        DATA.index(data) if data in DATA else len(DATA),
        known.index(structure) if structure in known else len(known),
        row,
    )


@dataclass(frozen=True)
class Point:
    """One setting after its full training, averaged over the folds; the error is a test error in percent."""

    sweep: TableSweep
    setting: Record
    error: float
    parameters: float

    @property
    def row(self) -> str:
        return self.sweep.title


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
        return f"python -m experiments experiments/{self.file.parent.name}/{self.file.name}"

    @cached_property
    def sweeps(self) -> list[Sweep]:
        return read_sweeps(self.file) if self.file.exists() else []

    @property
    def tables(self) -> list[TableSweep]:
        return [sweep for sweep in self.sweeps if isinstance(sweep, TableSweep)]

    @cached_property
    def runs(self) -> dict[str, Runs]:
        return read_store(self.store)

    def points(self, folds: int = 0) -> list[Point]:
        """Return the settings that were trained in full on all their folds, or on the first so many of them."""
        points = []
        for sweep in self.tables:
            wanted = min(folds or sweep.n_folds, sweep.n_folds)
            runs = {key: run for key, run in self.runs.get(sweep.name, {}).items() if key[1] < wanted}
            done = Counter(run // sweep.seeds for stage, _, run in runs if stage == 2)
            errors, sizes = (sweep.means(runs, 2, field) for field in ("test_error", "parameters"))
            points += [
                Point(sweep, sweep.setting(index), 100 * errors[index], sizes[index])
                for index, count in sorted(done.items())
                if count == wanted * sweep.seeds
            ]
        return points


def on_folds_of(like: Experiment, other: Experiment) -> list[Point]:
    """Return the points of another experiment on the folds that this one was run on, so that they can be compared."""
    folds = {sweep.data: sweep.n_folds for sweep in like.sweeps}
    return [
        point
        for count in sorted(set(folds.values()))
        for point in other.points(folds=count)
        if folds.get(point.sweep.data) == count
    ]


def merged(results: Iterable[Record]) -> dict[tuple[str, str], Record]:
    """Merge the summaries of sweeps of the same data and row.

    The runs are summed. The number chosen on test rows is the least of all; the one chosen on validation rows is that
    with the least validation error, whatever its test error.
    """
    rows: dict[tuple[str, str], Record] = {}
    for result in results:
        row = rows.setdefault((result["data"], result.get("row") or result["structure"]), {"runs": 0})
        row["runs"] += result["runs"]
        row["test"] = min(row.get("test", 100.0), 100 * result["best_on_test"]["error"])
        chosen = result.get("chosen_on_validation")
        if chosen is not None:
            validation = chosen.get("validation_error", float("inf"))
            if "validation" not in row or validation < row["validation_error"]:
                row |= {"validation": 100 * chosen["error"], "validation_error": validation}
    return rows


def trained_on(points: Iterable[Point]) -> str:
    """Say what was trained, by data set, from the sweeps and the stored runs."""
    points, parts = list(points), []
    for data in DATA:
        inside = [p for p in points if p.sweep.data == data]
        sweeps = {p.sweep.name: p.sweep for p in inside}
        if not sweeps:
            continue
        epochs = " or ".join(str(e) for e in sorted({s.epochs for s in sweeps.values()}))
        where = " (first fold only)" if data == "satimage" and {s.n_folds for s in sweeps.values()} == {1} else ""
        parts.append(f"{data}{where} {len(inside):,} settings for {epochs} epochs")
    return f"Trained: {'; '.join(parts)}."
