"""Try faults for real, and write what became of them; see ``python tests/faults/run.py --help``."""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before NumPy starts threads, which would not survive a fork
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from fault_harness import Result, import_everything  # noqa: E402

PAGE = HERE.parents[1] / "docs" / "faults.md"
RESULTS = HERE / "results.json"


def main() -> int:
    """Try the faults that were asked for; the exit code is 1 when one of them did harm."""
    from fault_list import FAULTS
    from fault_page import page

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=FAULTS, help=f"some of {', '.join(FAULTS)}")
    parser.add_argument("--kills", type=int, default=100, help="random moments at which each command is killed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "-o", "--output", type=Path, default=RESULTS, help="the page is written for the usual file only"
    )
    given = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="faults"))
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(scratch / "jax")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    import_everything()
    harmed = False
    try:
        for name in given.only or FAULTS:
            found = tried(FAULTS[name], name, scratch, given.kills, given.seed)
            harmed = harmed or bool(found["problems"])
            known = json.loads(given.output.read_text())["faults"] if given.output.exists() else {}
            known[name] = after(known.get(name), found)  # the others stay as they were described when they ran
            document = about() | {"faults": {n: known[n] for n in FAULTS if n in known}}
            given.output.write_text(json.dumps(document, indent=1) + "\n")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if given.output == RESULTS:
        PAGE.write_text(page(document))
    return int(harmed)


def after(earlier: dict | None, found: dict) -> dict:
    """Return what is known of a fault with what came of it before; a fault that was skipped tells nothing new."""
    if earlier is None or (found["outcome"].startswith("skipped") and not earlier["outcome"].startswith("skipped")):
        return earlier or found
    same = {key: earlier.get(key, "") for key in ("tried", "outcome", "date", "seed", "commit")}
    return found | {"before": [*earlier.get("before", []), same]}


def tried(fault, name: str, scratch: Path, kills: int, seed: int) -> dict:
    """Try one fault and tell of it."""
    work = scratch / name
    work.mkdir()
    began = time.monotonic()
    try:
        result = fault(work, kills, seed)
    except PermissionError as reason:
        result = Result(skipped=str(reason))
    seconds = time.monotonic() - began
    problems = [text.replace(str(scratch), "") for text in result.problems]
    outcome = f"skipped: {result.skipped}" if result.skipped else "failed" if problems else "held"
    say(f"{name}: {outcome}, tried {result.tried} times in {seconds:.0f} s, {result.seen}")
    for text in problems[:20]:
        say(f"  {text}")
    return described(fault) | {
        "outcome": outcome,
        "tried": result.tried,
        "seen": result.seen,
        "problems": problems,
        "seconds": round(seconds, 1),
        "seed": seed,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": commit(),
    }


def commit() -> str:
    """Return the commit that was tested, as Git shortens it; nothing outside of a clone."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=HERE, capture_output=True, text=True).stdout.strip()


def described(fault) -> dict:
    """Return what a fault's docstring says is done and expected."""
    what, expected = (" ".join(part.split()) for part in fault.__doc__.strip().split("\n\n")[:2])
    return {"what": what, "expected": expected}


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def about() -> dict:
    """Return what the results depend on."""
    from importlib.metadata import version

    packages = ("tinybayes", "jax", "numba", "numpy", "optuna", "pyarrow", "distributed")
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": {name: version(name) for name in packages},
    }


if __name__ == "__main__":
    sys.exit(main())
