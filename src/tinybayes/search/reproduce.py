"""Running a file of sweeps, and writing down what came out together with how."""

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tinybayes.errors import error
from tinybayes.files import atomic_path
from tinybayes.learn.training.tables import find_device
from tinybayes.search.net_sweep import NetSweep, run_net_sweep
from tinybayes.search.sweep import Sweep, read_sweeps, run_sweep


def reproduce(
    path: Path,
    output: Path,
    *,
    only: Sequence[str] = (),
    quick: bool = False,
    seconds: float = float("inf"),
    tell: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Run the sweeps of a file, taking up what is already in the output directory.

    Parameters
    ----------
    path
        A TOML file of sweeps; see `tinybayes.search.sweep.Sweep`.
    output
        A directory: ``NAME.jsonl`` holds every run, ``NAME.json`` the summary with the provenance of all runs.
    only
        Names, or beginnings of names, of the sweeps to run.
    quick
        A few settings and epochs of each, to see that everything works; kept apart under ``NAME-quick``.
    seconds
        No new part is begun after this time; 0 only sums up what is there.
    tell
        Called with a line of text now and then.
    """
    sweeps = [s for s in sweeps_of(path, quick=quick) if not only or any(s.name.startswith(name) for name in only)]
    if not sweeps:
        known = ", ".join(s.name for s in read_sweeps(path))
        raise error(f"one of the sweeps {known}", list(only), where=str(path))
    output.mkdir(parents=True, exist_ok=True)
    name = name_of(path, quick=quick)
    began, before = time.monotonic(), _lines(output / f"{name}.jsonl")
    results = []
    for sweep in sweeps:
        left = seconds - (time.monotonic() - began)
        store = output / f"{name}.jsonl"
        if isinstance(sweep, NetSweep):
            found = run_net_sweep(sweep, store, tell=tell, seconds=left)
        else:
            found = run_sweep(sweep, store, tell=tell, seconds=left)
        if found is None:
            tell(f"{sweep.name}: not finished; run again to go on")
            continue
        for line in _lines_of(found):
            tell(line)
        results.append(found)
    made = _earlier(output / f"{name}.json")
    if _lines(output / f"{name}.jsonl") > before:
        made.append(provenance(time.monotonic() - began))
    report = {"provenance": made, "file": path.name, "results": results}
    with atomic_path(output / f"{name}.json") as temporary:
        temporary.write_text(json.dumps(report, indent=1) + "\n")
    return report


def sweeps_of(path: Path, *, quick: bool = False) -> list[Sweep | NetSweep]:
    """Return the sweeps of a file as `reproduce` runs them."""
    return [_short(sweep) if quick else sweep for sweep in read_sweeps(path)]


def name_of(path: Path, *, quick: bool = False) -> str:
    """Return how the results of a file are called, without a suffix."""
    return path.stem + ("-quick" if quick else "")


def _lines_of(found: dict[str, Any]) -> list[str]:
    """Say what came out of a sweep."""
    lines = []
    for row in found.get("rows", [found]):
        name = f"{found['sweep']} {row['budget']}x {row['activation']}" if row is not found else found["sweep"]
        line = f"{name}: {100 * row['best_on_test']['error']:.2f} % chosen on the test rows"
        if "chosen_on_validation" in row:
            line += f", {100 * row['chosen_on_validation']['error']:.2f} % chosen on validation rows"
        lines.append(line)
    return lines


def _lines(store: Path) -> int:
    return len(store.read_text().splitlines()) if store.exists() else 0


def _earlier(report: Path) -> list[dict[str, Any]]:
    """Return the provenance of the runs that a report is already made of."""
    try:
        found = json.loads(report.read_text())["provenance"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return found if isinstance(found, list) else [found]


def provenance(seconds: float) -> dict[str, Any]:
    """Return when, with what and on what machine a result was made."""
    device = find_device(None)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "commit": os.environ.get("TINYBAYES_COMMIT") or _commit(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("jax", "numpy")},
        "device": f"{device.platform} {device.device_kind}",
        "cores": os.cpu_count(),
    }


def _commit() -> str | None:
    command = ["git", "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None


def _short(sweep: Sweep | NetSweep) -> Sweep | NetSweep:
    if isinstance(sweep, NetSweep):
        few = replace(sweep, weight_bits=sweep.weight_bits[-2:], layers=sweep.layers[:1], budgets=sweep.budgets[-1:])
        few = replace(few, learning_rates=(3e-3,), batch_norm=(True,), activations=sweep.activations[:1])
        return replace(few, epochs=4, short_epochs=2, finalists=1, seeds=1)
    short = min(3, sweep.short_epochs)
    return replace(sweep, settings=min(sweep.settings, 6), epochs=6, short_epochs=short, finalists=1)
