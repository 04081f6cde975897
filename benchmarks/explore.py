"""What the search finds under a budget in five minutes on this machine, and what a second worker brings.

    python benchmarks/explore.py [--part "letter 16 kB" workers] [--minutes 5] [--seed 0] [-o FILE]

Rows are split two thirds to one, stratified. The search sees only the first part, and the test error is measured once.
Budgets are those of the parameters. workers: trials per minute of one and of two Dask workers with one thread each, on
the same search of letter, after a first search has filled the cache of compiled code.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from harness import provenance
from sklearn.model_selection import train_test_split

from tinybayes import Budget, explore
from tinybayes.data import named
from tinybayes.search.explore import Execution

PARTS = [("digits", 4), ("digits", 2), ("letter", 16), ("letter", 6), ("usps", 5), ("satimage", 5), ("mnist", 16)]
BUDGETS = {f"{name} {kilobytes} kB": (name, 8000 * kilobytes) for name, kilobytes in PARTS}  # in bits


def tables(name: str):
    frame, classes = named.load_raw(name)
    frame["class"] = classes
    train, test = train_test_split(np.arange(len(frame)), test_size=1 / 3, stratify=classes, random_state=0)
    return frame.iloc[np.sort(train)], frame.iloc[np.sort(test)]


def search(part: str, seconds: float, seed: int) -> dict:
    name, bits = BUDGETS[part]
    train, test = tables(name)
    with tempfile.TemporaryDirectory() as place:
        began = time.perf_counter()
        found = explore(
            train,
            "class",
            test=test,
            output=place,
            budget=Budget(bits=bits),
            seconds=seconds,
            execution=Execution(workers=len(os.sched_getaffinity(0))),
            seed=seed,
        )
        taken = time.perf_counter() - began
    front = [m for m in found.front if m["bits"] <= bits and m["file"]]
    keep = ("label", "family", "validation_error", "standard_error", "test_error", "bytes", "operations", "settings")
    return {
        "data": name,
        "budget_bits": bits,
        "seconds": round(taken, 1),
        "asked": seconds,
        "seed": seed,
        "runs": len(found.models),
        "rungs": [sum(m["steps"] == rung for m in found.models) for rung in range(4)],
        "teacher": taught(found.models),
        "failures": found.document["failures"],
        "chosen": {key: found.chosen[key] for key in keep} if found.chosen else None,
        "front": [{key: m[key] for key in keep[:-1]} for m in front],
    }


def taught(models: list[dict]) -> list[dict]:
    """Return for each family what a teacher changed: settings learned with and without it, for equally many steps."""

    def key(model: dict, with_teacher: bool) -> str:
        return json.dumps([model["steps"], {**model["settings"], "taught": with_teacher}], sort_keys=True)

    alone = {key(m, True): m for m in models if m["settings"].get("taught") is False}
    pairs = [(m, alone[k]) for m in models if m["settings"].get("taught") and (k := key(m, True)) in alone]
    lines = []
    for family in sorted({m["family"] for m, _ in pairs}):
        changes = [m["validation_error"] - other["validation_error"] for m, other in pairs if m["family"] == family]
        better = sum(change < 0 for change in changes)
        mean = round(float(np.mean(changes)), 5)
        lines.append({"family": family, "pairs": len(changes), "better": better, "mean_change": mean})
    return lines


def trials_per_minute(workers: int, seconds: float) -> float:
    """Count the runs that a search on letter finishes on so many Dask workers in its last three quarters."""
    from distributed import LocalCluster

    train, _ = tables("letter")
    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options, memory_limit=0) as cluster, tempfile.TemporaryDirectory() as place:
        seen: list = []
        explore(
            train,
            "class",
            output=place,
            budget=Budget(bits=128_000),
            seconds=seconds,
            families="dense",
            execution=Execution(dask=cluster.scheduler_address),
            report=lambda state: seen.append((state.seconds, state.runs, state.phase)),
        )
    searching = [(s, runs) for s, runs, phase in seen if phase == "searching"]
    begun = next((s, runs) for s, runs in searching if s > 0.2 * seconds)
    ended = next((s, runs) for s, runs in reversed(searching) if s <= 0.8 * seconds)
    return 60 * (ended[1] - begun[1]) / (ended[0] - begun[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=[*BUDGETS, "workers"], default=[*BUDGETS, "workers"])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    default = Path(__file__).parent / "results" / "explore.json"
    parser.add_argument("-o", "--output", type=Path, default=default)
    options = parser.parse_args()
    report = json.loads(options.output.read_text()) if options.output.exists() else {}
    for part in options.part:
        if part == "workers":
            trials_per_minute(2, 60 * options.minutes)  # fills the cache of compiled code
            rates = {n: round(trials_per_minute(n, 60 * options.minutes), 1) for n in (1, 2)}
            result = {"trials_per_minute": rates, "ratio": round(rates[2] / rates[1], 2)}
        else:
            result = search(part, 60 * options.minutes, options.seed)
        name = part if options.minutes == 5 else f"{part}, {options.minutes:g} min"
        report[name] = {
            **result,
            "provenance": provenance(["numpy", "jax", "optuna", "distributed"]),
            "load": round(os.getloadavg()[0], 1),
        }
        options.output.write_text(json.dumps(report, indent=1) + "\n")
        print(json.dumps({part: {k: v for k, v in result.items() if k != "front"}}, indent=1), flush=True)


if __name__ == "__main__":
    main()
