"""Running a file of sweeps, and writing down the results together with how they were made."""

import time
from collections.abc import Sequence
from pathlib import Path

from experiments.provenance import provenance
from experiments.store import Record, Tell, pack, read_report, read_text, write_report
from experiments.sweep import Sweep, read_sweeps, run_sweep
from tinybayes.errors import error


def reproduce(
    path: Path,
    output: Path,
    *,
    only: Sequence[str] = (),
    quick: bool = False,
    seconds: float = float("inf"),
    together: int | None = None,
    tell: Tell = lambda line: None,
) -> Record:
    """Run the sweeps of a file, resuming from the output directory.

    Parameters
    ----------
    path
        A TOML file of sweeps; see `experiments.sweep.read_sweeps`.
    output
        A directory: ``NAME.jsonl`` holds every run, ``NAME.json`` the summary with the provenance of all runs; large
        files are compressed.
    only
        Names, or beginnings of names, of the sweeps to run; the report keeps its results of the others.
    quick
        A few settings and epochs of each, to see that everything works; kept apart under ``NAME-quick``.
    seconds
        No new part is begun after this time; 0 only sums up the stored runs.
    together
        The most runs that are trained together; see `experiments.sweep.run_sweep`.
    tell
        Called with a line of text now and then.
    """
    planned = sweeps_of(path, quick=quick)
    sweeps = [s for s in planned if not only or any(s.name.startswith(name) for name in only)]
    if not sweeps:
        known = ", ".join(s.name for s in read_sweeps(path))
        raise error(f"one of the sweeps {known}", list(only), where=str(path))
    output.mkdir(parents=True, exist_ok=True)
    store = output / f"{name_of(path, quick=quick)}.jsonl"
    began, before = time.monotonic(), _lines(store)
    earlier = _earlier(store.with_suffix(".json"))
    results = {one["sweep"]: one for one in earlier["results"]} if only else {}  # of sweeps that are not run now
    for sweep in sweeps:
        left = seconds - (time.monotonic() - began)
        summary = run_sweep(sweep, store, tell=tell, seconds=left, together=together)
        if summary is None:
            tell(f"{sweep.name}: not finished; run again to go on")
            results.pop(sweep.name, None)
            continue
        for line in _outcome(summary):
            tell(line)
        results[sweep.name] = summary
    made = earlier["provenance"]
    if _lines(store) > before:
        made.append(provenance(time.monotonic() - began))
    pack(store)
    in_order = [results[sweep.name] for sweep in planned if sweep.name in results]
    report = {"provenance": made, "file": path.name, "results": in_order}
    write_report(store.with_suffix(".json"), report)
    return report


def sweeps_of(path: Path, *, quick: bool = False) -> list[Sweep]:
    """Return the sweeps of a file as `reproduce` runs them."""
    return [sweep.quick() if quick else sweep for sweep in read_sweeps(path)]


def name_of(path: Path, *, quick: bool = False) -> str:
    """Return the name of the results of a file, without a suffix."""
    return path.stem + ("-quick" if quick else "")


def _outcome(summary: Record) -> list[str]:
    """Return a line for each budget of a sweep, or for all of it."""
    lines = []
    for row in summary.get("rows", [summary]):
        name = summary["sweep"] if row is summary else f"{summary['sweep']} {row['budget']}x {row['activation']}"
        line = f"{name}: {100 * row['best_on_test']['error']:.2f} % chosen on the test rows"
        if "chosen_on_validation" in row:
            line += f", {100 * row['chosen_on_validation']['error']:.2f} % chosen on validation rows"
        lines.append(line)
    return lines


def _lines(store: Path) -> int:
    return len(read_text(store).splitlines())


def _earlier(path: Path) -> dict[str, list[Record]]:
    """Return the results of an earlier report, and the provenance of its runs; empty lists if there is none."""
    try:
        report = read_report(path) or {}
        made = report.get("provenance", [])
        results = [one for one in report.get("results", []) if "sweep" in one]
    except (OSError, ValueError, AttributeError, TypeError):
        return {"provenance": [], "results": []}
    return {"provenance": made if isinstance(made, list) else [made], "results": results}
