"""When, with what and on what machine results were made."""

import contextlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

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
        "command": _command(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "commit": os.environ.get("TINYBAYES_COMMIT") or _commit(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "device": device,
        "machine": f"{_processor()}, {cores()} cores",
        "cores": cores(),
    }


def origins(report: Any, command: str | None = None) -> list[Record]:
    """Return the runs that a report came from, each with command, commit, date and machine; None where one is missing.

    A run is any part of the report with a date and a commit. What it does not name itself, it has from the top of the
    report or its part ``about``, such as the machine; `command` is that of runs without one.
    """
    top = {"command": command, **(report if isinstance(report, dict) else {})}
    top |= top.get("about", {})
    return [_origin({key: top[key] for key in _NAMES if key in top} | run) for run in _runs(report)]


_NAMES = ("command", "machine", "device", "cpu", "cores")


def _origin(run: Record) -> Record:
    machine, processor = run.get("machine"), run.get("cpu") or run.get("device")
    if machine is None and processor and run.get("cores"):
        machine = f"{processor}, {run['cores']} cores"
    return {"command": run.get("command"), "commit": run["commit"], "date": run["date"], "machine": machine}


def _runs(value: Any) -> Iterator[Record]:
    """Yield the parts of a report that have a date and a commit."""
    if isinstance(value, dict) and {"date", "commit"} <= value.keys():
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _runs(part)


def _command() -> str:
    """Return the command that is running, without paths of this machine."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    here = Path(__file__).parent.parent
    words = [os.path.relpath(word, here) if Path(word).is_absolute() else word for word in sys.argv]
    if spec is not None:
        words[0] = f"-m {spec.name.removesuffix('.__main__')}"
    return " ".join(["python", *words])


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


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
