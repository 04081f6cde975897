"""Timing in a process of its own, under a wall limit for each step, and where the figures come from.

The parent starts ``python harness.py SPEC`` and reads one line of JSON for each finished step, so that a model that
was fitted in time keeps its figure when predicting takes too long.
"""

import contextlib
import datetime
import json
import os
import platform
import queue
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

LEAST, MOST = 5, 50  # repetitions of what is fast
LONG = 10.0  # seconds: a call that takes longer is not repeated
THREADS = ("TINYBAYES_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")

Figures = dict[str, Any]


def measure(contender: str, rows: Path, *, threads: str, limit: float, cache: Path, repeat: bool = True) -> Figures:
    """Run one contender on one data set; a step over the limit, or one that failed, says so in its place."""
    spec = {"contender": contender, "rows": str(rows), "one_thread": threads == "one", "repeat": repeat}
    environment = {k: v for k, v in os.environ.items() if k not in THREADS} | {"NUMBA_CACHE_DIR": str(cache)}
    if threads == "one":
        environment |= dict.fromkeys(THREADS, "1")
    result: Figures = {}
    with tempfile.TemporaryFile("w+") as log:
        command = [sys.executable, __file__, json.dumps(spec)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, env=environment, text=True, start_new_session=True
        )
        try:
            for event in _events(process, limit):
                result |= event
        except queue.Empty:
            result[_next_step(result)] = {"over": limit}
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a group of its own: what it started ends with it
            code = process.wait()
        if "save" not in result and not any("over" in step for step in result.values() if isinstance(step, dict)):
            log.seek(0)
            lines = log.read().strip().splitlines() or [f"exit code {code}"]
            message = re.sub(r"(/[\w.-]+)+/", "", lines[-1])[:300]  # paths of this machine say nothing elsewhere
            result[_next_step(result)] = {"failed": message}
    return result


def _events(process: subprocess.Popen[str], limit: float) -> Iterator[Figures]:
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while (line := lines.get(timeout=limit)) is not None:
        yield json.loads(line)


def _next_step(result: Figures) -> str:
    return next(step for step in ("import", "fit", "predict", "save", "end") if step not in result)


def work(spec: Figures) -> None:
    """Do the work of one process."""
    from peers import CONTENDERS, OTHERS, Rows

    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the libraries print is not ours to parse
    contender = (CONTENDERS | OTHERS)[spec["contender"]]
    with np.load(spec["rows"]) as file:
        rows = Rows(**file)

    def tell(step: str, **figures: Any) -> None:
        print(json.dumps({step: figures}), file=out)

    tell("import", **_once(contender.load, contender.settle))
    contender.prepare(rows, spec["one_thread"])
    tell("fit", **_timed(contender.fit, contender.settle, spec["repeat"]))
    labels: list[np.ndarray] = []
    figures = _timed(lambda: labels.append(contender.predict()), contender.settle, spec["repeat"])
    tell("predict", **figures, error=float(np.mean(labels[-1] != rows.y_test)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model.{contender.file}"
        sizes = contender.save(path)
        tell("save", file=contender.file, bytes=path.stat().st_size, **sizes)


def _timed(call: Callable[[], None], settle: Callable[[], None], repeat: bool) -> Figures:
    """Time the first call, which may load or compile code, apart; of the others take the best."""
    first = _once(call, settle)
    if not repeat or first["wall"] > LONG:
        return {**first, "repetitions": 1, "first": first}
    times: list[dict[str, float]] = []
    while len(times) < MOST and (len(times) < LEAST or sum(t["wall"] for t in times) < 1.0):
        times.append(_once(call, settle))
        if sum(t["wall"] for t in times) > LONG:
            break
    best = {clock: min(t[clock] for t in times) for clock in ("wall", "cpu")}
    return {**best, "repetitions": len(times), "first": first}


def _once(call: Callable[[], None], settle: Callable[[], None]) -> dict[str, float]:
    """Return wall and CPU seconds; CPU counts all threads, and processes that have ended."""
    cpu = _cpu()
    start = time.perf_counter()
    call()
    wall = time.perf_counter() - start
    settle()
    return {"wall": wall, "cpu": _cpu() - cpu}


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def provenance(packages: list[str]) -> Figures:
    """Say what was run, on what, with which versions."""
    arguments = [Path(a).name if Path(a).is_absolute() else a for a in sys.argv]
    return {
        "command": " ".join(["python", *arguments]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in packages},
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_before": os.getloadavg()[0],
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Return the commit, marked where files differ from it; a copy of a checkout names it in TINYBAYES_COMMIT."""
    if known := os.environ.get("TINYBAYES_COMMIT"):
        return known
    here = Path(__file__).parent
    git = ["git", "-C", str(here)]
    try:
        commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*git, "status", "--porcelain", "../src"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit.stdout.strip() + (" with changes in src" if changed.stdout.strip() else "")


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


if __name__ == "__main__":
    work(json.loads(sys.argv[1]))
