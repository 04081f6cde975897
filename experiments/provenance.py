"""When, with what and on what machine results were made."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from experiments.store import Record


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def provenance(seconds: float, *, packages: tuple[str, ...] = ("jax", "numpy")) -> Record:
    """Return when, with what and on what machine a result was made; without JAX the device is the processor."""
    device = "cpu"
    if "jax" in packages:
        from tinybayes.learn.training.engine import find_device

        used = find_device(None)
        device = f"{used.platform} {used.device_kind}"
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "commit": os.environ.get("TINYBAYES_COMMIT") or _commit(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "device": device,
        "cores": cores(),
    }


def _commit() -> str | None:
    command = ["git", "rev-parse", "HEAD"]
    try:
        here = Path(__file__).parent
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=here).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def described(report: Record) -> str:
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
