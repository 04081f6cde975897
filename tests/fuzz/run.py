"""Give every reader of the package millions of damaged inputs, and write down what came of it.

    python tests/fuzz/run.py --processes 16 --count 1000000 -o tests/fuzz/results.json

Only our own error may escape; anything else, a hang, a crash or a gigabyte of memory is a finding, which is kept
beside the results with its input. Every input can be made again: `--reader NAME --seed S --first NUMBER --count 1`.
"""

import argparse
import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# The last is for the readers of experiments/.
sys.path[:0] = [str(HERE), str(HERE.parent / "helpers"), str(HERE.parent.parent)]
for threads in ("TINYBAYES_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_IO_THREADS"):
    os.environ.setdefault(threads, "1")

from fuzz_harness import Tally, counts_by_kind, fuzz  # noqa: E402
from fuzz_readers import READERS  # noqa: E402

import tinybayes  # noqa: E402

PACKAGES = ("numpy", "numba", "pandas", "pyarrow", "safetensors")


def say(text: str) -> None:
    """Write a line at once: runs are long."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def machine() -> dict[str, Any]:
    """Return what the run was made on."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "versions": {"tinybayes": tinybayes.__version__} | {name: _version(name) for name in PACKAGES},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def read_results(path: Path) -> dict[str, Any]:
    """Return the results that are there already, so that readers can be run one by one."""
    return json.loads(path.read_text()) if path.exists() else {"readers": {}}


def write_results(path: Path, results: dict[str, Any]) -> None:
    path.write_text(json.dumps(results, indent=1) + "\n")


def entry(tally: Tally, seed: int, processes: int) -> dict[str, Any]:
    """Return what is written down of a reader."""
    return {
        "inputs": tally.inputs,
        "accepted": tally.accepted,
        "refused": tally.refused,
        "findings": counts_by_kind(tally),
        "seconds": round(tally.seconds, 1),
        "inputs_per_second": round(tally.inputs / max(tally.seconds, 1e-9)),
        "slowest_ms": round(1000 * tally.slowest, 1),
        "seed": seed,
        "processes": processes,
    }


def keep(tally: Tally, name: str, directory: Path) -> None:
    """Write the inputs of the findings beside the results."""
    for found in tally.findings:
        directory.mkdir(parents=True, exist_ok=True)
        place = directory / f"{name}-{found.index}"
        place.with_suffix(".input").write_bytes(found.data)
        place.with_suffix(".txt").write_text(f"{found.kind}\n\n{found.text}\n", errors="backslashreplace")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", action="append", choices=sorted(READERS), help="only this one; may be repeated")
    parser.add_argument("--count", type=int, default=10_000, help="inputs of each reader")
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="the most that a reader may take")
    parser.add_argument("-o", "--output", type=Path, help="a JSON file; readers in it that are not run are kept")
    return parser.parse_args()


def main() -> int:
    options = parse()
    results = read_results(options.output) if options.output else {"readers": {}}
    bad = 0
    for name in options.reader or READERS:
        tally = fuzz(
            name,
            count=options.count,
            seed=options.seed,
            first=options.first,
            processes=options.processes,
            seconds=options.seconds,
        )
        if tally.skipped:
            say(f"{name:14} skipped: {tally.skipped}")
            continue
        found = entry(tally, options.seed, options.processes)
        bad += sum(found["findings"].values())
        say(
            f"{name:14} {tally.inputs:>9,} inputs, {tally.accepted:>8,} accepted, {found['inputs_per_second']:>6,}/s, "
            f"slowest {found['slowest_ms']} ms, findings: {found['findings'] or 'none'}",
        )
        results["readers"][name] = found | {"machine": machine()}
        if options.output:
            write_results(options.output, results)
            keep(tally, name, options.output.with_suffix("").with_name(f"{options.output.stem}_findings"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
