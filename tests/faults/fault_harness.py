"""What all faults share: commands in forked children of a process that has everything imported, and how they end.

Importing takes seconds and a command on small data less than that, so hundreds of commands are only affordable when
they start from a fork. The parent never runs JAX, Numba or Arrow: threads do not survive a fork. Whatever needs them,
the checks too, is done in a child of its own.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

TEMPORARY = "."  # how the names of files begin that are not complete
HANGS = 600.0  # seconds after which a command hangs: the first ones compile, maybe on a busy machine


@dataclass
class Result:
    """How often a fault was tried, what was seen, and what was not as it should be."""

    tried: int = 0
    seen: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    skipped: str = ""

    def saw(self, what: str) -> None:
        self.seen[what] = self.seen.get(what, 0) + 1

    def blame(self, where: object, problems: Sequence[str]) -> None:
        self.problems += [f"{where}: {problem}" for problem in problems]


@dataclass
class Ended:
    """How a command ended: its exit code (or minus a signal), what it said, how long it took."""

    code: int
    out: str
    err: str
    seconds: float

    def clean_error(self) -> list[str]:
        """Say what is wrong with it as the refusal of a command: exit code 2, one line, no traceback."""
        found = []
        if self.code != 2:
            found.append(f"exit code {self.code} instead of 2: {self.err.strip()[-300:]}")
        if "Traceback" in self.err + self.out:
            found.append(f"a traceback: {self.err.strip()[-300:]}")
        elif self.code == 2 and not self.err.strip().splitlines()[-1].startswith("error: "):
            found.append(f"no line that begins with 'error:': {self.err.strip()[-300:]}")
        return found


def import_everything() -> None:
    """Load all modules a command may need, without starting a thread."""
    for name in ("jax", "onnx", "sklearn.ensemble", "sklearn.tree"):
        import_module(name)
    ours = (
        "cli deploy.export learn.circuits.checkpoint learn.training.tables learn.circuits.learn_ac "
        "report.html report.progress search.explore"
    )
    for name in (*ours.split(), "search.trials"):
        import_module(f"tinybayes.{name}")


class Child:
    """Commands of tinybayes, one after another, in a forked process."""

    def __init__(self, place: Path, commands: Sequence[Sequence[object]], before: Callable[[], None] | None = None):
        self.place, self.began = place, time.monotonic()
        place.mkdir(parents=True, exist_ok=True)
        for name in ("stdout", "stderr"):
            (place / name).write_bytes(b"")
        self.pid = os.fork()
        if self.pid == 0:
            _child(place, commands, before)

    def after(self, seconds: float, number: int) -> "Ended":
        """Send a signal that many seconds after the start, unless the commands are done by then."""
        while time.monotonic() - self.began < seconds:
            if self.done():
                return self.end()
            time.sleep(max(0.0, min(0.01, seconds - (time.monotonic() - self.began))))
        if not self.done():
            os.kill(self.pid, number)
        return self.end()

    def seconds_gone(self) -> float:
        return time.monotonic() - self.began

    def done(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def end(self, limit: float = HANGS) -> Ended:
        """Wait for the end; what takes longer than the limit hangs, and is killed."""
        while not self.done():
            time.sleep(0.005)
            if time.monotonic() - self.began > limit:
                os.kill(self.pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        texts = [(self.place / name).read_text(errors="replace") for name in ("stdout", "stderr")]
        return Ended(code, *texts, time.monotonic() - self.began)


def _child(place: Path, commands: Sequence[Sequence[object]], before: Callable[[], None] | None) -> None:
    """Run commands as the command line does, and end the process."""
    code = 70
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for name, target in (("stdout", 1), ("stderr", 2)):
            os.dup2(os.open(place / name, os.O_WRONLY | os.O_APPEND), target)
        if before is not None:
            before()
        from tinybayes.cli import main

        for command in commands:
            sys.argv = ["tinybayes", *map(str, command)]
            try:
                main()
            except SystemExit as ending:
                code = ending.code if isinstance(ending.code, int) else 1
            if code:
                break
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as problem:  # what the interpreter would print
        code = 1
        if isinstance(problem, KeyboardInterrupt) and problem.__traceback__ and problem.__traceback__.tb_next is None:
            code = 130  # raised in this function, between two commands
        else:
            traceback.print_exc()
            sys.stderr.flush()
    finally:
        os._exit(code)


def run(place: Path, *commands: Sequence[object], before: Callable[[], None] | None = None) -> Ended:
    """Run commands to their end in a forked process."""
    return Child(place, commands, before).end()


def in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a forked process and return its result, which JSON can hold."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            try:
                answer = {"result": function(*arguments)}
            except Exception:  # whatever it is, the parent tells it
                answer = {"problem": traceback.format_exc()}
            with os.fdopen(writer, "w") as stream:
                json.dump(answer, stream)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    answer = json.loads(text)
    if "problem" in answer:
        raise RuntimeError(answer["problem"])
    return answer["result"]


def command_line(*words: object) -> list[str]:
    """Return the command line of a process of its own, for what a forked one cannot show."""
    return [sys.executable, "-m", "tinybayes", *map(str, words)]


def process(*words: object, limit: float = 180.0, **options: Any) -> Ended:
    """Run a command in a process of its own."""
    began = time.monotonic()
    done = subprocess.run(command_line(*words), capture_output=True, text=True, timeout=limit, **options)
    return Ended(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


@contextmanager
def mounted(place: Path, size: str):
    """Give a small file system in memory; who may not mount gets a `PermissionError`."""
    place.mkdir(parents=True, exist_ok=True)
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        raise PermissionError("only root can mount a small file system here")
    done = subprocess.run([mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True)
    if done.returncode:
        raise PermissionError("mounting a small file system is not allowed here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def read_only(place: Path, wanted: bool) -> None:
    """Make a mounted file system read-only, or writable again."""
    subprocess.run(["mount", "-o", f"remount,{'ro' if wanted else 'rw'}", str(place)], check=True)


def visible(place: Path) -> dict[str, bytes]:
    """Return the files below a directory that bear a lasting name, with their bytes."""
    files = (path for path in sorted(place.rglob("*")) if path.is_file())
    return {str(path.relative_to(place)): path.read_bytes() for path in files if not _hidden(path, place)}


def leftovers(place: Path) -> list[str]:
    """Return the files below a directory that bear a temporary name."""
    files = (path for path in sorted(place.rglob("*")) if path.is_file())
    return [str(path.relative_to(place)) for path in files if _hidden(path, place)]


def _hidden(path: Path, place: Path) -> bool:
    return any(part.startswith(TEMPORARY) for part in path.relative_to(place).parts)
