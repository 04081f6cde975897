"""Signals at random moments: every file is whole afterwards, and the same command brings the work to its end."""

import gc
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fault_data import states, table
from fault_harness import Child, Ended, Result, in_child, leftovers, run, visible
from fault_studies import front_problems, study_problems, trials_of

TARGETS = ("c", "cpp", "arduino", "micropython", "onnx", "verilog", "verilog-pipelined", "javascript")
LOST = {  # Python cannot raise in these: the user asks again
    "Exception ignored in: <function _xla_gc_callback": "not heard, in JAX's callback of the garbage collector",
    "<function ExecutionEngine._raw_object_cache_notify": "not heard, in a callback of Numba's compiler",
}
STEPS = 40  # kills at steps of the file system, at most


@dataclass
class Case:
    """A command to kill.

    Parameters
    ----------
    commands
        What is run, given the directory for its output.
    same
        Whether the result of a resumed run must be that of an uninterrupted one, byte by byte.
    whole
        Tells what is wrong with the files, given the directory and those of an uninterrupted run.
    remember, resumed
        What is known of the directory before it is resumed, and what is wrong with it afterwards.
    """

    name: str
    commands: Callable[[Path], list[list[Any]]]
    same: bool
    whole: Callable[[Path, dict[str, bytes]], list[str]]
    remember: Callable[[Path], Any] = lambda place: None
    resumed: Callable[[Path, Any], list[str]] = lambda place, before: []
    reference: dict[str, bytes] | None = None
    seconds: float = 0.0

    def rehearse(self, work: Path) -> None:
        """Run it twice without a fault: the first run fills caches, the second one is timed and is the reference."""
        for name in ("first", "reference"):
            place = fresh(work / name)
            ended = run(place, *self.commands(place / "out"))
            if ended.code:
                ending = f"exit code {ended.code} after {ended.seconds:.0f} s: {ended.err[-500:]}"
                raise RuntimeError(f"{self.name} does not run even without a fault: {ending}")
        self.reference, self.seconds = visible(place / "out"), ended.seconds

    def judge(self, work: Path, ended: Ended, result: Result, where: str) -> None:
        """Look at the files, resume, and look again."""
        out, problems = work / "out", []
        before = None
        if out.exists():
            problems += self.whole(out, self.reference or {})
            if leftovers(out):
                result.saw("left a temporary file")
            before = self.remember(out)
        again = patiently(work, self.commands(out), result)
        if again.code:
            problems.append(f"not resumed, exit code {again.code}: {again.err.strip()[-300:]}")
        else:
            problems += self.whole(out, self.reference or {}) + self.resumed(out, before)
            found = visible(out)
            expected = self.reference or {}
            differing = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
            differing = [name for name in differing if not name.endswith(".ckpt")]  # holds when what was counted
            if self.same and differing:
                problems.append(f"resumed to other bytes of {', '.join(differing)}")
            if leftovers(out):
                problems.append(f"temporary files are still there after the next run: {leftovers(out)[:3]}")
        result.blame(where, problems)


def patiently(work: Path, commands: list[list[Any]], result: Result) -> Ended:
    """Resume; on a busy machine a search may need its few seconds again before a first run is finished."""
    for _ in range(3):
        ended = run(work, *commands)
        if ended.code == 0 or "give it more time" not in ended.err:
            break
        result.saw("needed its time again to finish a run")
    return ended


def fresh(place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    (place / "out").mkdir(parents=True)
    return place


def kill_at_random(case: Case, work: Path, count: int, seed: int) -> Result:
    """Kill a command at moments spread evenly at random over its run time; every other time old files are there."""
    case.rehearse(work)
    result, generator = Result(), random.Random(seed)
    while result.seen.get("killed", 0) < count and result.tried < 2 * count:  # some are done sooner than the rehearsal
        moment = generator.random() * case.seconds
        place = fresh(work / "killed")
        if result.tried % 2 and case.same:
            old_files(place / "out", case.reference)
        ended = Child(place, case.commands(place / "out")).after(moment, signal.SIGKILL)
        result.tried += 1
        result.saw("killed" if ended.code == -signal.SIGKILL else "had ended before")
        case.judge(place, ended, result, f"{moment:.3f} s")
    return result


def kill_at_steps(case: Case, work: Path, count: int, seed: int) -> Result:
    """Kill a command just before it opens, renames, changes or removes one of its files."""
    case.rehearse(work)
    place = fresh(work / "counted")
    tally = work / "tally"
    run(place, *case.commands(place / "out"), before=partial(watch_steps, place / "out", None, tally))
    steps = tally.stat().st_size
    result, generator = Result(), random.Random(seed)
    wanted = range(1, steps + 1) if steps <= count else sorted(generator.sample(range(1, steps + 1), count))
    for step in wanted:
        place = fresh(work / "killed")
        if step % 2 and case.same:
            old_files(place / "out", case.reference)
        ended = run(place, *case.commands(place / "out"), before=partial(watch_steps, place / "out", step, None))
        result.tried += 1
        result.saw("killed" if ended.code == -signal.SIGKILL else "had ended before")
        case.judge(place, ended, result, f"step {step} of {steps}")
    return result


def signal_at_random(case: Case, work: Path, number: int, count: int, seed: int) -> Result:
    """Ask a command to end at random moments."""
    case.rehearse(work)
    result, generator = Result(), random.Random(seed)
    allowed = (0, 130) if number == signal.SIGINT else (0, -number)
    for _ in range(count):
        moment = generator.random() * case.seconds
        place = fresh(work / "asked")
        jax = case.name in ("fit", "explore")  # the others do not load it; here it is loaded for all
        ended = Child(place, case.commands(place / "out"), None if jax else gc.callbacks.clear).after(moment, number)
        result.tried += 1
        result.saw(f"exit code {ended.code}")
        problems = [] if ended.code in allowed else [f"exit code {ended.code}: {ended.err.strip()[-300:]}"]
        lost = [what for sign, what in LOST.items() if sign in ended.err]
        if lost:
            result.saw(lost[0])
        elif "Traceback" in ended.err:
            problems.append(f"a traceback: {ended.err.strip()[-300:]}")
        if number == signal.SIGINT and leftovers(place / "out"):
            problems.append(f"left {leftovers(place / 'out')}")
        result.blame(f"{case.name}, {moment:.3f} s", problems)
        case.judge(place, ended, result, f"{case.name}, {moment:.3f} s")
    return result


def watch_steps(place: Path, fatal: int | None, tally: Path | None) -> None:
    """Count what is done to the files below a directory, and kill this process before one of these steps."""
    root, done = str(place), 0
    log = os.open(tally, os.O_CREAT | os.O_TRUNC | os.O_WRONLY) if tally is not None else None

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal done
        if event not in ("open", "os.rename", "os.remove", "os.chmod", "os.mkdir", "os.truncate"):
            return
        if not any(str(value).startswith(root) for value in arguments if isinstance(value, str | Path)):
            return
        done += 1
        if log is not None:
            os.write(log, b".")
        if done == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def old_files(out: Path, reference: dict[str, bytes] | None) -> None:
    """Put files there that an earlier run may have left; not checkpoints, which belong to one run."""
    for name in reference or {}:
        if not name.endswith(".ckpt"):
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_bytes(OLD)


OLD = b"old"


def models_whole(place: Path, reference: dict[str, bytes]) -> list[str]:
    """Say which files are neither the old ones, nor whole: models and checkpoints can be read, pages have an end."""
    return in_child(_models_whole, str(place))


def _models_whole(place: str) -> list[str]:
    from safetensors import safe_open

    from tinybayes import load

    problems = []
    for name, content in visible(Path(place)).items():
        path = Path(place, name)
        try:
            if content == OLD:
                continue
            if name.endswith(".tb"):
                load(path)
            elif name.endswith(".ckpt"):
                with safe_open(path, framework="numpy") as file:
                    for key in file.keys():  # noqa: SIM118
                        file.get_tensor(key)
            elif name.endswith(".html") and not content.rstrip().endswith(b"</html>"):
                problems.append(f"{name} has no end")
        except Exception as problem:  # whatever a reader says, the file is not whole
            problems.append(f"{name} cannot be read: {problem}")
    return problems


def bytes_whole(place: Path, reference: dict[str, bytes]) -> list[str]:
    """Say which files are neither the old ones, nor those of an uninterrupted run."""
    return [f"{name} is not whole" for name, content in visible(place).items() if content not in (OLD, reference[name])]


def fit_case(work: Path) -> Case:
    data = table(work / "table.csv", 800)

    def commands(out: Path) -> list[list[Any]]:
        options = ["--structure", "chow-liu", "--training", "hybrid", "--epochs", "40", "--bits", "6"]
        return [["fit", data, "--target", "label", *options, "--report", out / "page.html", "-o", out / "model.tb"]]

    def same_model(place: Path, before: Any) -> list[str]:
        assert case.reference is not None
        differs = (place / "model.tb").read_bytes() != case.reference["model.tb"]
        return ["another model than without the kill"] if differs else []

    case = Case("fit", commands, False, models_whole, resumed=same_model)
    return case


def circuit_case(work: Path) -> Case:
    data = states(work / "states.csv", 12000, 24)

    def commands(out: Path) -> list[list[Any]]:
        return [["learn-circuit", data, "--checkpoint", out / "growth.ckpt", "-o", out / "circuit.tb"]]

    return Case("learn-circuit", commands, True, models_whole)


def export_case(work: Path) -> Case:
    data = table(work / "table.csv", 3000)
    made = run(work, ["fit", data, "--target", "label", "-o", work / "model.tb", "--bits", "4", "--training", "hybrid"])
    if made.code:
        raise RuntimeError(made.err)

    def commands(out: Path) -> list[list[Any]]:
        return [["export", work / "model.tb", "--to", target, "-o", out / target] for target in TARGETS]

    return Case("export", commands, True, bytes_whole)


def explore_case(work: Path, storage: bool = False) -> Case:
    data = table(work / "table.csv", 600)

    def commands(out: Path) -> list[list[Any]]:
        options = ["--families", "closed-form,tied,tree,naive", "--workers", "1", "--time", "3s"]
        options += ["--storage", f"sqlite:///{out}/study.db"] if storage else []
        return [["explore", data, "--target", "label", *options, "-o", out]]

    def whole(place: Path, reference: dict[str, bytes]) -> list[str]:
        return models_whole(place, reference) + in_child(front_problems, str(place))

    def remember(place: Path) -> Any:
        return in_child(trials_of, str(place))

    def resumed(place: Path, before: Any) -> list[str]:
        return in_child(study_problems, str(place), before)

    return Case("explore", commands, False, whole, remember, resumed)


CASES: dict[str, Callable[[Path], Case]] = {
    "fit": fit_case,
    "learn-circuit": circuit_case,
    "export": export_case,
    "explore": explore_case,
}
