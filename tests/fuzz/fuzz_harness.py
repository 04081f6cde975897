"""Running a reader on many inputs: only our own error may come out, in time, within memory, without a crash.

An input is a function of the seed and its number, so that a finding can be made again even when the process died. The
readers run in child processes; the parent watches them, and goes on after the input at which one has died or stands.
"""

import ctypes
import gc
import json
import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from fuzz_readers import READERS, Reader

from tinybayes.errors import TinybayesError

SECONDS = 5.0  # of the processor: an input that takes more hangs
PATIENCE = 10  # times as long, once: the machine may be busy
SILENCE = 300.0  # seconds after which the parent ends a process that waits, or stands in native code
GROWTH = 1 << 30  # bytes of memory that an input may take
SPACE = 6 << 30  # bytes of address space beyond those at the start
QUICK = 0.02  # seconds in which nobody can fill a gigabyte; asking for the memory takes as long as many inputs
NOTES = ".findings"
KEPT = 3  # inputs that are kept of a finding


class Hang(BaseException):
    """Raised in the middle of an input that takes too long."""


@dataclass
class Finding:
    """What went wrong: the kind with its place in the code, an example, and how often."""

    kind: str
    text: str
    index: int
    data: bytes = b""
    count: int = 1


@dataclass
class Tally:
    """What a run of one reader came to."""

    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    slowest: float = 0.0
    skipped: str = ""

    def add(self, found: Finding) -> None:
        same = [one for one in self.findings if one.kind == found.kind]
        if len(same) < KEPT:
            self.findings.append(found)
        else:
            same[0].count += 1


def make_input(reader: Reader, seed: int, index: int) -> bytes:
    """Return an input by its number."""
    return reader.mutant(Random(seed * 1_000_003 + index))


def place() -> Path:
    """Return a new directory for the inputs, in memory where there is one."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="tinybayes-fuzz-", dir=memory if os.access(memory, os.W_OK) else None))


def peak_bytes() -> int:
    """Return the most memory that this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def limit_space() -> None:
    """Bound the address space, so that a claim of memory fails and does not swap."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPACE, resource.getrlimit(resource.RLIMIT_AS)[1]))


class Memory:
    """The most memory that this process had, and how much that has grown."""

    def __init__(self) -> None:
        self._peak = peak_bytes()

    def grown(self) -> int:
        before, self._peak = self._peak, peak_bytes()
        return self._peak - before


def try_input(reader: Reader, data: bytes, directory: Path, memory: Memory) -> str | Finding:
    """Give one input to a reader: "accepted", "refused", or what went wrong."""
    found = _try(reader, data, directory, memory, SECONDS)
    if isinstance(found, Finding) and found.kind == "hang":
        found = _try(reader, data, directory, memory, PATIENCE * SECONDS)
        if not isinstance(found, Finding):
            found = _try(reader, data, directory, memory, SECONDS)
    return found


def _try(reader: Reader, data: bytes, directory: Path, memory: Memory, seconds: float) -> str | Finding:
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)
    began = time.perf_counter()
    outcome: str | Finding = "accepted"
    try:
        reader.run(data, directory)
    except TinybayesError as problem:
        outcome = "refused"
        if "MemoryError" in str(problem):
            outcome = Finding("memory", str(problem), -1)
    except Hang:
        outcome = Finding("hang", traceback.format_exc(), -1)
    except BaseException as problem:  # whatever escapes is what is looked for
        outcome = Finding(_kind(problem), traceback.format_exc(), -1)
    finally:
        _no_alarm()
    if time.perf_counter() - began > QUICK:
        grown = memory.grown()
        if grown > GROWTH and not isinstance(outcome, Finding):
            outcome = Finding("memory", f"{outcome}, and {grown >> 20} MiB more than before", -1)
    return outcome


def _no_alarm() -> None:
    """Stop the clock; an alarm that comes in this very moment is too late."""
    while True:
        try:
            signal.setitimer(signal.ITIMER_PROF, 0)
        except Hang:
            continue
        return


def _kind(problem: BaseException) -> str:
    """Name a problem by its type and the last line of the package that it went through."""
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if "tinybayes" in frame.filename] or list(frames)
    return f"{type(problem).__name__} at {Path(ours[-1].filename).name}:{ours[-1].lineno}"


def _alarm(_: int, frame: FrameType | None) -> None:
    """End an input that takes too long; but not while Numba compiles, which is the fault of no input."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in ("numba", "llvmlite"):
            return
        frame = frame.f_back
    raise Hang


@dataclass
class Share:
    """The numbers [start, stop) of the inputs of one process, and counters that the parent sees."""

    start: int
    stop: int
    counters: Any  # the index, accepted, refused, the longest in microseconds

    @classmethod
    def of(cls, start: int, stop: int) -> "Share":
        return cls(start, stop, multiprocessing.get_context("fork").RawArray(ctypes.c_longlong, [start, 0, 0, 0]))


def work(reader: Reader, seed: int, share: Share, directory: Path) -> None:
    """Go through a share of the inputs in a directory; findings go to a file beside it, a line each."""
    signal.signal(signal.SIGPROF, _alarm)
    warnings.simplefilter("ignore")
    directory.mkdir(exist_ok=True)
    limit_space()
    memory = Memory()
    gc.freeze()
    for index in range(share.counters[0], share.stop):
        share.counters[0] = index
        data = make_input(reader, seed, index)
        began = time.process_time()
        found = try_input(reader, data, directory, memory)
        share.counters[3] = max(share.counters[3], int(1e6 * (time.process_time() - began)))
        if isinstance(found, Finding):
            with directory.with_suffix(NOTES).open("a") as file:
                file.write(json.dumps([found.kind, found.text[-6000:], index]) + "\n")
        else:
            share.counters[1 if found == "accepted" else 2] += 1
    share.counters[0] = share.stop


def fuzz(
    name: str, *, count: int, seed: int = 0, first: int = 0, processes: int = 1, seconds: float = float("inf")
) -> Tally:
    """Run a reader on `count` inputs in so many processes; after `seconds` none is begun."""
    tally, context = Tally(), multiprocessing.get_context("fork")
    reader = READERS[name]
    if missing := reader.missing():
        return Tally(skipped=missing)
    base = place()
    reader.prepare()
    began = time.monotonic()
    step = -(-count // processes)
    ends = [first + min(count, i * step) for i in range(processes + 1)]
    shares = [Share.of(start, stop) for start, stop in pairwise(ends)]
    running = {i: _start(context, reader, seed, share, base / f"{i}") for i, share in enumerate(shares)}
    seen = {i: (share.start, began) for i, share in enumerate(shares)}
    while running:
        time.sleep(0.02)
        now = time.monotonic()
        for i, process in list(running.items()):
            at = shares[i].counters[0]
            if seen[i][0] != at:
                seen[i] = at, now
            stands = now - seen[i][1] > SILENCE
            if stands or now - began > seconds:
                process.kill()
            if process.exitcode is None and not stands and now - began <= seconds:
                continue
            process.join()
            if at < shares[i].stop and now - began <= seconds:
                kind = "hang, waiting or in native code" if stands else f"crash, exit code {process.exitcode}"
                tally.add(Finding(kind, kind, at, make_input(reader, seed, at)))
                shares[i].counters[0] = at + 1
                seen[i] = at + 1, now
                running[i] = _start(context, reader, seed, shares[i], base / f"{i}")
            else:
                del running[i]
    _collect(tally, reader, seed, shares, base)
    tally.seconds = time.monotonic() - began
    shutil.rmtree(base, ignore_errors=True)
    return tally


def _start(context: Any, reader: Reader, seed: int, share: Share, directory: Path) -> Any:
    process = context.Process(target=work, args=(reader, seed, share, directory), daemon=True)
    process.start()
    return process


def _collect(tally: Tally, reader: Reader, seed: int, shares: list[Share], base: Path) -> None:
    for share in shares:
        done, accepted, refused, longest = share.counters
        tally.inputs += done - share.start
        tally.accepted += accepted
        tally.refused += refused
        tally.slowest = max(tally.slowest, longest / 1e6)
    for file in sorted(base.glob(f"*{NOTES}")):
        for line in file.read_text().splitlines():
            kind, text, index = json.loads(line)
            tally.add(Finding(kind, text, index, make_input(reader, seed, index)))


def counts_by_kind(tally: Tally) -> dict[str, int]:
    """Return how often each kind of finding occurred."""
    counts: Counter[str] = Counter()
    for found in tally.findings:
        counts[found.kind] += found.count
    return dict(counts)
