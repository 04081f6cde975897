"""How time and memory grow: python benchmarks/scaling.py [--quick] [--only NAME] [--page-only].

Rows, features, states and classes grow one at a time, for learning, prediction and export. Every point is measured in a
process of its own, a fork of this one, which has compiled everything by small calls: the process makes its table and
its model, then notes the peak of its memory above what it holds by then during the first call, and the time of the best
of a few. A point that takes more than --limit seconds, or a table that does not fit in memory, ends its axis.

The figures go to results/scaling.json; `scaling_page.py` writes docs/scaling.md from them alone. About a quarter of an
hour on two idle cores.
"""

import argparse
import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import Figures, provenance
from scaling_cases import AXES, CASES, COPIES, Case, Copy, quick
from scaling_page import write_page
from scaling_work import Size, Work

REPEATS, ENOUGH = 5, 1.5  # calls, and seconds of calls, after which a point is not repeated
PREPARE = 60.0  # seconds in which a table and a model must be made
ROOM = 0.4  # share of the machine's memory that a table may take
SMALL = (Size(256, 4, 3, 3), Size(1_000, 4, 200, 2), Size(1_000, 4, 2, 200), Size(100_000, 4, 3, 3))
RESULTS = Path(__file__).parent / "results" / "scaling.json"


def measure(make: Callable[[Size], Work], size: Size, limit: float) -> Figures:
    """Measure a call in a process of its own; say so where it took too long or failed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        status = 1
        with contextlib.suppress(BaseException):  # a child never returns into the loop of its parent
            _report(write, _work(make, size, write))
            status = 0
        os._exit(status)
    os.close(write)
    try:
        return _answer(read, limit)
    finally:
        os.close(read)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _answer(pipe: int, limit: float) -> Figures:
    """Read two lines: the table is made, the call is measured."""
    lines: list[str] = []
    for wait in (PREPARE, 2 * limit + 5):
        line = ""
        until = time.monotonic() + wait
        while not line.endswith("\n"):
            ready, _, _ = select.select([pipe], [], [], max(until - time.monotonic(), 0))
            if not ready:
                return {"over": wait, "step": ("prepare", "call")[len(lines)]}
            part = os.read(pipe, 2**16).decode()
            if not part:
                return {"failed": "the process ended without an answer"}
            line += part
        lines += line.splitlines()
        if "failed" in (last := json.loads(lines[-1])) or len(lines) == 2:
            return last
    return json.loads(lines[-1])


def _report(pipe: int, figures: Figures) -> None:
    os.write(pipe, json.dumps(figures).encode() + b"\n")


def _work(make: Callable[[Size], Work], size: Size, pipe: int) -> Figures:
    try:
        work = make(size)
        _report(pipe, {"made": True})
        gc.collect()
        _give_back()
        before = _reset_peak()
        times = [_seconds(work.call)]
        peak = _memory("VmHWM") - before
        while len(times) < REPEATS and sum(times) < ENOUGH:
            times.append(_seconds(work.call))
    except Exception as problem:  # the point says why it has no figures
        return {"failed": f"{type(problem).__name__}: {problem}"[:300]}
    return {"seconds": min(times), "calls": len(times), "peak": max(peak, 0), "table": work.table}


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()  # the result dies here: its memory belongs to the peak, its freeing to the time
    return time.perf_counter() - start


def _give_back() -> None:
    """Return freed memory to the system, else a call could use it unseen."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _reset_peak() -> int:
    """Begin a new peak and return the bytes held now."""
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _memory(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"the system does not tell {field}")


def warm_up(cases: list[Case], copies: list[Copy]) -> None:
    """Compile, or load, what the cases run."""
    for make in dict.fromkeys([*(case.make for case in cases), *(copy.make for copy in copies)]):
        for size in SMALL:
            with contextlib.suppress(Exception):  # refused sizes are told where they are measured
                make(size).call()


def sweep(case: Case, axis: str, limit: float) -> Figures:
    """Measure the points of an axis, up to the first that takes too long."""
    points: list[Figures] = []
    ended = None
    for size in case.sizes(axis):
        if size.rows * size.features * (1 if size.states <= 128 else 2) > ROOM * _machine():
            ended = f"{getattr(size, axis):,} {axis} would take more than {ROOM:.0%} of the memory"
            break
        found = measure(case.make, size, limit)
        points.append({axis: getattr(size, axis), **found})
        print(case.name, axis, json.dumps(points[-1]), flush=True)
        if "seconds" not in found:
            ended = found.get("failed", f"{getattr(size, axis):,} {axis}: over {found.get('over', 0):.0f} s")
            break
        if found["seconds"] > limit:
            ended = f"{getattr(size, axis):,} {axis} took more than {limit:.0f} s"
            break
    base = {name: value for name, value in case.sizes(axis)[0]._asdict().items() if name != axis}
    return {
        "case": case.name,
        "group": case.group,
        "why": case.why,
        "axis": axis,
        "base": base,
        "theory": case.theory[axis],
        "memory_theory": case.memory.get(axis, max(case.theory[axis], 1)),
        "note": case.note.get(axis),
        "points": points,
        "ended": ended,
    }


def compare(copy: Copy, limit: float, *, small: bool) -> Figures:
    """Measure the memory of a call beside its table."""
    size = copy.size._replace(rows=copy.size.rows // 4) if small else copy.size
    found = measure(copy.make, size, limit)
    print(copy.name, copy.kind, json.dumps(found), flush=True)
    about = {"name": copy.name, "kind": copy.kind, "expected": copy.expected, "limit": copy.limit}
    return {**about, "rows": size.rows, "features": size.features, **found}


def _machine() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def run(options: argparse.Namespace) -> Figures:
    about = provenance(["tinybayes", "numba", "numpy", "pandas", "scikit-learn"])
    chosen = [case for case in CASES if not options.only or case.name in options.only]
    copies = [copy for copy in COPIES if not options.only or copy.name in options.only]
    cases = [quick(case) for case in chosen] if options.quick else chosen
    began = time.monotonic()
    warm_up(cases, copies)
    sweeps = [sweep(case, axis, options.limit) for case in cases for axis in AXES if axis in case.theory]
    shares = [compare(copy, options.limit, small=options.quick) for copy in copies]
    ends: dict[str, Any] = {"load_after": os.getloadavg()[0], "seconds": time.monotonic() - began}
    return {**about, **ends, "quick": options.quick, "limit": options.limit, "sweeps": sweeps, "copies": shares}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: a proof that everything runs")
    parser.add_argument("--only", action="append", help="a case by name; may be repeated")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of a call after which its axis ends")
    parser.add_argument("--page-only", action="store_true", help="write the page from the results that are there")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=Path(__file__).parent.parent / "docs" / "scaling.md")
    options = parser.parse_args()
    if not options.page_only:
        options.output.write_text(json.dumps(run(options), indent=1) + "\n")
    write_page(json.loads(options.output.read_text()), options.page)


if __name__ == "__main__":
    sys.exit(main())
