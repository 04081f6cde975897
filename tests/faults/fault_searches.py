"""What may happen to a search: lost workers, a store restarted or cut off, a clock that jumps, a second search."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fault_data import table
from fault_harness import Child, Ended, Result, command_line, in_child, run
from fault_studies import study_problems, trials_of

LISTED = "closed-form,tied,tree"
JUMP = 86_400  # seconds, forward and back


def _explore(data: Path, out: Path, *options: Any, families: str = f"{LISTED},naive", seconds: int = 3) -> list[Any]:
    return ["explore", data, "--target", "label", "--families", families, "--time", f"{seconds}s", *options, "-o", out]


def torn_journal(work: Path, kills: int, seed: int) -> Result:
    """The journal of a search ends within a line, as after a power cut, at random bytes of its last records

    the same command goes on; the whole records are there unchanged, no trial doubled
    """
    result, generator = Result(), random.Random(seed)
    data, first = table(work / "table.csv", 600), work / "first"
    ended = run(work / "run", _explore(data, first, "--workers", "1"))
    if ended.code:
        raise RuntimeError(ended.err)
    size = (first / "search.journal").stat().st_size
    for _ in range(min(kills, 10)):
        out = work / "torn"
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(first, out)
        end = generator.randrange(size // 2, size)
        os.truncate(out / "search.journal", end)
        before = in_child(trials_of, str(out))
        again = run(work / "run", _explore(data, out, "--workers", "1"))
        result.tried += 1
        problems = [f"exit code {again.code}: {again.err.strip()[-300:]}"] if again.code else []
        result.blame(f"byte {end} of {size}", problems or in_child(study_problems, str(out), before))
    return result


def two_searches(work: Path, kills: int, seed: int) -> Result:
    """Two searches on one storage at once (journal and SQLite), begun at the same time and a moment apart

    both finish; no trial is stored twice; the fronts hold what both found
    """
    result = Result()
    data = table(work / "table.csv", 600)
    run(work / "warm", _explore(data, work / "warm" / "out", "--workers", "1"))  # compiles
    for store in ("journal", "sqlite"):
        for apart in (0.0, 0.3, 1.0):
            out = work / f"{store}{apart}"
            out.mkdir()
            storage = ["--storage", f"sqlite:///{out}/study.db"] if store == "sqlite" else []
            command = _explore(data, out, "--workers", "1", *storage, seconds=6)
            one = Child(work / "one", [command])
            time.sleep(apart)
            two = Child(work / "two", [command])
            ended = [one.end(), two.end()]
            result.tried += 1
            problems = [f"exit code {e.code}: {e.err.strip()[-300:]}" for e in ended if e.code]
            problems += [f"took {e.seconds:.0f} s of 6" for e in ended if e.seconds > 20]
            last = run(work / "last", _explore(data, out, "--workers", "1", *storage, families="tree"))
            problems += [f"exit code {last.code}: {last.err.strip()[-300:]}"] if last.code else []
            result.blame(f"{store}, {apart} s apart", problems or in_child(study_problems, str(out), None))
    return result


def worker_lost(work: Path, kills: int, seed: int) -> Result:
    """A process of `explore --workers 2` is killed (`kill -9`) at a random moment

    the search goes on with a new one and ends with exit code 0; no trial lost or doubled
    """
    result, generator = Result(), random.Random(seed)
    data = table(work / "table.csv", 600)
    for turn in range(2):
        out = work / f"out{turn}"
        words = _explore(data, out, "--workers", "2", families=f"{LISTED},forest,dense", seconds=16)
        search = _started(work, words)
        try:
            victim = _wait_for(partial(_workers_of, search.pid), 30)
            time.sleep(generator.random() * 6)
            os.kill(generator.choice(_workers_of(search.pid) or victim), signal.SIGKILL)
            ended = _ended(search, work)
        finally:
            search.kill()
        result.tried += 1
        problems = [f"exit code {ended.code}: {ended.err.strip()[-300:]}"] if ended.code else []
        result.blame(f"turn {turn}", problems or in_child(study_problems, str(out), None))
    return result


def dask_worker_lost(work: Path, kills: int, seed: int) -> Result:
    """One of two Dask workers is killed (`kill -9`) while it works for `explore --dask`

    its work goes to the other one, exit code 0; no trial lost or doubled
    """
    result = Result()
    data, file = table(work / "table.csv", 600), work / "scheduler.json"
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--scheduler-file", str(file), "--port", "0"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": work}
    started = [subprocess.Popen([*dask, "--no-dashboard", "--host", "127.0.0.1"], **quiet)]
    try:
        _wait_for(file.exists, 60)
        started += [subprocess.Popen([*worker, "--no-nanny", "--no-dashboard"], **quiet) for _ in range(2)]
        out = work / "out"
        words = _explore(data, out, "--dask", file, families=f"{LISTED},forest,dense", seconds=20)
        search = _started(work, words)
        started.append(search)
        _wait_for(lambda: (out / "trials").exists(), 60)
        started[1].kill()
        ended = _ended(search, work)
        result.tried += 1
        problems = [f"exit code {ended.code}: {ended.err.strip()[-300:]}"] if ended.code else []
        result.blame("dask", problems or in_child(study_problems, str(out), None))
    finally:
        for process in started:
            process.kill()
            process.wait()
    return result


def server_restarted(work: Path, kills: int, seed: int) -> Result:
    """A PostgreSQL server that holds the study is stopped at once (`immediate`) during `explore`, and started again

    the search goes on, or ends with exit code 2 and one line; the same command then completes, no trial lost or doubled
    """
    result, generator = Result(), random.Random(seed)
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = str(programs[-1]) if programs else shutil.which("initdb")
    if found is None:
        return Result(skipped="no PostgreSQL here")
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return Result(skipped="no driver for PostgreSQL here")
    data = table(work / "table.csv", 600)
    with _server(Path(found).parent, work / "server") as (url, control):
        for turn in range(3):
            out = work / f"out{turn}"
            words = _explore(data, out, "--workers", "1", "--storage", url, families=f"{LISTED},naive", seconds=15)
            search = _started(work, words)
            _wait_for(lambda place=out: (place / "trials").exists(), 60)
            time.sleep(generator.random() * 4)
            before = in_child(trials_of, str(out), url)
            control("stop", "-m", "immediate")
            time.sleep(0.5)
            control("start")
            ended = _ended(search, work)
            result.tried += 1
            result.saw("went on" if ended.code == 0 else "ended with an error")
            problems = [] if ended.code == 0 else ended.clean_error()
            again = run(work / "again", words)
            problems += [f"not resumed: {again.err.strip()[-300:]}"] if again.code else []
            result.blame(f"turn {turn}", problems or in_child(study_problems, str(out), before, url))
    return result


def clock_jump(work: Path, kills: int, seed: int) -> Result:
    """The clock of the machine jumps a day forward, or back, five seconds after the start of `explore --time 15s`

    the time limit does not notice: the command ends after 10 to 45 s, its start included
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return Result(skipped="no C compiler here, to make the clock jump")
    shim = work / "clock.so"
    source = Path(__file__).with_name("clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
    result = Result()
    data = table(work / "table.csv", 600)
    for jump in (JUMP, -JUMP):
        environment = os.environ | {"LD_PRELOAD": str(shim), "CLOCK_JUMP": str(jump), "CLOCK_JUMP_AFTER": "5"}
        script = "import time; a = time.time(); time.sleep(6); print(round(time.time() - a))"
        told = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
        if abs(int(told.stdout) - jump - 6) > 2:
            return Result(skipped="the clock could not be made to jump")
        for store in ("journal", "sqlite"):
            out = work / f"out{jump}{store}"
            storage = ["--storage", f"sqlite:///{out}/study.db"] if store == "sqlite" else []
            began = time.monotonic()
            words = _explore(data, out, "--workers", "1", *storage, families=f"{LISTED},naive", seconds=15)
            done = subprocess.run(command_line(*words), env=environment, capture_output=True, text=True, timeout=120)
            seconds = time.monotonic() - began
            result.tried += 1
            problems = [f"exit code {done.returncode}: {done.stderr[-300:]}"] if done.returncode else []
            problems += [] if 10 < seconds < 45 else [f"took {seconds:.0f} s of 15"]
            result.blame(f"{jump} s, {store}", problems or in_child(study_problems, str(out), None))
    return result


def _started(work: Path, words: list[Any]) -> "subprocess.Popen[bytes]":
    """Begin a command in a process of its own."""
    with open(work / "search.out", "wb") as out, open(work / "search.err", "wb") as err:
        return subprocess.Popen(command_line(*words), stdout=out, stderr=err)


def _ended(search: "subprocess.Popen[bytes]", work: Path, limit: float = 120.0) -> Ended:
    code = search.wait(limit)
    return Ended(code, (work / "search.out").read_text(), (work / "search.err").read_text(), 0.0)


def _wait_for(condition: Any, limit: float) -> Any:
    until = time.monotonic() + limit
    while time.monotonic() < until:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise RuntimeError("what was waited for did not come")


def _workers_of(parent: int) -> list[int]:
    """Return the processes that carry out runs for a search."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            above = int((entry / "stat").read_text().rpartition(")")[2].split()[1]) if entry.name.isdigit() else 0
            if above == parent and b"spawn_main" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@contextmanager
def _server(programs: Path, place: Path):
    """Run a PostgreSQL server, as another user where this one is root."""
    place.mkdir()
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if user:
        shutil.chown(place, "postgres")
        for parent in place.parents[:2]:
            parent.chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = place / "data"
    quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": place}
    subprocess.run([*user, programs / "initdb", "-D", data, "-A", "trust", "-U", "search"], **quiet)
    options = f"-p {port} -k {place} -c listen_addresses=127.0.0.1"

    def control(*words: str) -> None:
        subprocess.run(
            [*user, programs / "pg_ctl", "-D", data, "-w", "-o", options, "-l", place / "log", *words], **quiet
        )

    control("start")
    try:
        yield f"postgresql+psycopg://search@127.0.0.1:{port}/postgres", control
    finally:
        control("stop", "-m", "immediate")
