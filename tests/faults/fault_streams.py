"""Output that nobody takes, and input that goes away while it is read."""

import os
import random
import subprocess
from pathlib import Path
from typing import Any

from fault_data import table
from fault_harness import Child, Ended, Result, command_line, run

READS = 8  # moments at which an input goes away, for each command


def closed_pipe(work: Path, kills: int, seed: int) -> Result:
    """Nobody takes the output: a pipe whose reader is gone (`| head -0`), closed stdout, closed stderr, a full device

    no traceback, no signal; a requested file is still written
    """
    result = Result()
    data = table(work / "table.csv", 20000)
    net = work / "net.tb"
    made = run(work / "made", ["fit", data, "--target", "label", "-o", net])
    if made.code:
        raise RuntimeError(made.err)
    commands: dict[str, list[Any]] = {
        "info": ["info", net],
        "evaluate --json": ["evaluate", net, data, "--json"],
        "predict": ["predict", net, data, "--proba"],
        "query": ["query", net, "label=a"],
        "fit": ["fit", data, "--target", "label", "-o", work / "out.tb"],
    }
    for name, words in commands.items():
        for how in ("reader gone", "stdout closed", "stderr closed", "device full"):
            (work / "out.tb").unlink(missing_ok=True)
            ended = _unheard(words, how)
            result.tried += 1
            result.saw(f"exit code {ended.code}")
            problems = [f"ended by signal {-ended.code}"] if ended.code < 0 else []
            if "Traceback" in ended.err or "Exception ignored" in ended.err:
                problems.append(f"a traceback: {ended.err.strip()[-300:]}")
            if name == "fit" and not (work / "out.tb").exists():
                problems.append("no model was written")
            result.blame(f"{name}, {how}", problems)
    return result


def _unheard(words: list[Any], how: str) -> Ended:
    """Run a command whose output goes nowhere."""
    shell = {"stdout closed": '"$@" >&-', "stderr closed": '"$@" 2>&-', "device full": '"$@" >/dev/full'}.get(
        how, '"$@"'
    )
    line = ["sh", "-c", shell, "sh", *command_line(*words)]
    if how != "reader gone":
        done = subprocess.run(line, capture_output=True, text=True, timeout=120)
        return Ended(done.returncode, done.stdout, done.stderr, 0.0)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(line, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=120)
    os.close(writer)
    return Ended(done.returncode, "", done.stderr, 0.0)


def in_blocks() -> None:
    """Have tables read as large ones are: in blocks, several times."""
    from tinybayes.data import _table

    _table.SMALL, _table.BLOCK = 1 << 16, 1 << 17


def _going_away(work: Path, seed: int, harm: Any) -> Result:
    """Harm the table at random moments while it is read, for the ways in which tables are read."""
    result, generator = Result(), random.Random(seed)
    for suffix in (".csv", ".parquet"):
        kept = table(work / f"kept{suffix}", 40_000)
        path = work / f"table{suffix}"
        for name, options, before in (
            ("ml", [], None),
            ("ml in blocks", [], in_blocks),
            ("hybrid in blocks", ["--training", "hybrid", "--epochs", "1"], in_blocks),
        ):
            command = ["fit", path, "--target", "label", *options, "-o", work / "out.tb"]
            path.write_bytes(kept.read_bytes())
            seconds = min(run(work / "run", command, before=before).seconds for _ in range(2))
            for _ in range(READS):
                path.write_bytes(kept.read_bytes())
                (work / "out.tb").unlink(missing_ok=True)
                moment = generator.random() * seconds
                child = Child(work / "run", [command], before)
                while child.seconds_gone() < moment and not child.done():
                    pass
                harm(path)
                ended = child.end()
                result.tried += 1
                result.saw("learned" if ended.code == 0 else "refused")
                problems = [] if ended.code == 0 else ended.clean_error()
                if (ended.code == 0) != (work / "out.tb").exists():
                    problems.append("the model's file and the exit code tell different things")
                result.blame(f"{name} from {suffix}, {moment:.2f} s", problems)
    return result


def input_gone(work: Path, kills: int, seed: int) -> Result:
    """The table is removed at a random moment while `fit` reads it (CSV and Parquet, at once and in blocks)

    a model, or exit code 2 and one line and no model; no crash
    """
    return _going_away(work, seed, lambda path: path.unlink())


def input_cut(work: Path, kills: int, seed: int) -> Result:
    """The table is cut to half of its length at a random moment while `fit` reads it

    a model (of the rows left, where the cut cannot be seen), or exit code 2 and one line and no model; no crash
    """
    return _going_away(work, seed, lambda path: os.truncate(path, path.stat().st_size // 2))
