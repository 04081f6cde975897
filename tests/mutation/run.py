"""Plant small faults in the parts listed below, run the tests that reach them, and count the faults that are found.

    python tests/mutation/run.py --processes 2

The tests are collected and run once in this process, which says what each of them reaches and fills all caches. A
mutant is a fork of it, where the code of one function is exchanged; the tests that reach the changed lines run there,
the fastest first, until one fails. Results go to results.json beside this file, with the names of the survivors.
Mutants that nothing can tell from the original are listed with the reason in equivalent.json.

A mutant costs no start and no compilation, because it is a fork of a warm process. Where tests train with JAX, whose
threads do not survive a fork, it is a fork of a process that has collected the tests and run none: see forks.py. Tools
that rewrite modules were tried, and do not work with the current pytest.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SOURCE = ROOT / "src" / "tinybayes"
sys.path[:0] = [str(HERE), str(HERE.parent / "helpers")]
for threads in ("TINYBAYES_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # a fork takes no threads along

import pytest  # noqa: E402
from forks import Tests, run_mutants  # noqa: E402
from mutants import Mutant, mutants, sample  # noqa: E402

BOARDS = ("deploy/_boards/", "deploy/measure.py")
CODE = ("deploy/programs/", "deploy/export.py")
PRICE = ("deploy/_price/", "deploy/price.py")
EXACT = tuple(f"infer/{name}" for name in ("join/", "choose", "circuit", "compile_circuit", "elimination", "orders"))
WHOLE_NUMBERS = tuple(f"infer/{name}" for name in ("alarm", "density_layout", "integer", "tree_shares", "trees"))
TREES = ["tests/estimators/test_tree_estimator.py", "tests/cost/test_tree_ensemble_cost.py"]
LATENT = ("tree", "mixture", "levels", "rounds", "conditional")
QUICK = ["-m", "not exhaustive"]
TRAINS = "tests/deploy/programs/test_verilog_net.py::test_a_network_that_learned_digits"


@dataclass(frozen=True)
class Part:
    """Files that are looked at by the same tests, and the share of their mutants that is drawn."""

    share: float
    tests: list[str]
    files: tuple[str, ...]  # how their names begin
    but: tuple[str, ...] = ()
    trains: bool = False  # whether the tests train with JAX


PARTS = {
    "model": Part(1 / 6, ["tests/model", "tests/cost", "tests/infer/test_neural_net.py"], ("model/",)),
    "cost": Part(1.0, ["tests/model", "tests/cost", "tests/infer/test_neural_net.py"], ("cost/",)),
    "deploy: files": Part(
        1 / 19,
        [
            "tests/deploy/files",
            "tests/deploy/test_from_sklearn.py",
            "tests/deploy/programs/test_edges.py",
            "tests/fuzz/test_findings.py",
        ],
        ("deploy/",),
        BOARDS + CODE + PRICE,
    ),
    "deploy: code": Part(
        1 / 19,
        # A process that has trained a net holds threads of JAX, and its forks wait for them.
        ["tests/deploy/programs", "tests/cli/test_cli_export.py", "--deselect", TRAINS],
        CODE,
    ),
    "deploy: price": Part(1 / 19, ["tests/deploy/_price", "tests/deploy/test_price.py"], PRICE),
    "deploy: boards": Part(
        1 / 19,
        [
            "tests/deploy/test_measure.py",
            "tests/deploy/programs/test_edges.py",
            "tests/deploy/files/test_file_edges.py",
        ],
        BOARDS,
    ),
    "infer: exact": Part(
        1 / 12,
        [
            *(f"tests/infer/test_{name}.py" for name in ("join_rows", "join_tree", "small_numbers")),
            *(f"tests/infer/test_{name}.py" for name in ("circuit_queries", "compile_circuit", "marginals", "queries")),
            *(f"tests/infer/test_{name}.py" for name in ("circuit_classes", "fast_paths", "likelihood", "elimination")),
            *(f"tests/infer/test_exact_{name}.py" for name in ("paths", "work")),
            *QUICK,
        ],
        EXACT,
    ),
    "infer: integers": Part(
        1 / 6,
        [
            *(f"tests/infer/test_{name}.py" for name in ("integer_circuit", "integer_density", "integers")),
            *(f"tests/infer/test_{name}.py" for name in ("tree_shares", "scores", "circuit_classes")),
            "tests/deploy/programs/test_density_c.py",
            *QUICK,
        ],
        WHOLE_NUMBERS,
    ),
    "learn: trees": Part(1 / 6, ["tests/learn/trees", "tests/model/test_tree_ensemble.py", *TREES], ("learn/trees/",)),
    "learn: latent trees": Part(
        1 / 36,
        [
            *(f"tests/learn/circuits/test_latent_{name}.py" for name in LATENT),
            *QUICK,
        ],
        ("learn/circuits/latent_",),
        trains=True,
    ),
    "data": Part(1 / 19, ["tests/data", "--ignore", "tests/data/test_dask.py", *QUICK], ("data/",), ("data/dask.py",)),
}
KILLED = ("killed", "timeout")


def drawn(part: Part, share: float, seed: int) -> tuple[list[Mutant], int]:
    """Return mutants of a share of every file, compiled, in random order, and how many there are in all."""
    chosen: list[Mutant] = []
    total = 0
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith(part.files) and not name.startswith(part.but or ("?",)):
            found = list(mutants(path, name))
            keys = {mutant.key for mutant in sample(found, math.ceil(share * len(found)), seed)}
            chosen += [mutant for mutant in mutants(path, name, keys) if mutant.key in keys]
            total += len(found)
    return sample(chosen, len(chosen), seed), total


def tally(names: list[str], outcomes: dict[str, str], equivalent: dict[str, str]) -> dict[str, Any]:
    """Count outcomes; a mutant that is known to be equivalent counts as such, unless a test fails on it after all."""
    counts = Counter(
        "killed" if outcomes[name] in KILLED else "equivalent" if name in equivalent else "survived" for name in names
    )
    judged = counts["killed"] + counts["survived"]
    percent = round(100 * counts["killed"] / judged, 1) if judged else None
    return {key: counts[key] for key in ("killed", "survived", "equivalent")} | {"killed_percent": percent}


def summary(drawn_of: dict[str, list[str]], possible: dict[str, int], outcomes: dict[str, str]) -> dict[str, Any]:
    """Return what is written down; `drawn_of` holds the keys of the mutants of each part that were tried."""
    equivalent = json.loads((HERE / "equivalent.json").read_text(encoding="utf-8"))
    everything = [name for names in drawn_of.values() for name in names]
    files: dict[str, list[str]] = {}
    for name in sorted(everything):
        files.setdefault(name.split(":")[0], []).append(name)
    alive = [name for name in sorted(everything) if outcomes[name] not in KILLED]
    parts = {
        part: {"possible": possible[part], "drawn": len(names)} | tally(names, outcomes, equivalent)
        for part, names in drawn_of.items()
    }
    whole = {"possible": sum(possible.values()), "drawn": len(everything)} | tally(everything, outcomes, equivalent)
    return {
        "all": whole,
        "timeouts": sum(outcomes[name] == "timeout" for name in everything),
        "parts": parts,
        "files": {file: tally(names, outcomes, equivalent) for file, names in files.items()},
        "survivors": [f"{name} ({outcomes[name]})" for name in alive if name not in equivalent],
        "equivalent": {name: equivalent[name] for name in alive if name in equivalent},
    }


def commit() -> str:
    """Return the commit whose code is mutated, as Git shortens it."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown commit"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS), help="the others keep their results")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of mutants")
    parser.add_argument("--again", action="store_true", help="keep what was killed before, and try the others again")
    parser.add_argument("--go-on", action="store_true", help="keep all outcomes, and try what has none")
    parser.add_argument("--tests", nargs="*", help="other tests than those of the parts")
    parser.add_argument("-o", "--output", type=Path, default=HERE / "results.json")
    return parser.parse_args()


def run_part(name: str, asked: argparse.Namespace, chosen: list[Mutant], results: dict[str, Any]) -> None:
    """Run the mutants of a part; every outcome is written down at once, so that a run can be taken up again."""
    outcomes = results["outcomes"]
    kept = outcomes.keys() if asked.go_on else {key for key in outcomes if outcomes[key] in KILLED and asked.again}
    todo = [mutant for mutant in chosen if mutant.key not in kept]
    if not todo:
        return
    started, before = time.monotonic(), results["seconds"].get(name, 0) if asked.again or asked.go_on else 0
    for mutant in todo:
        outcomes.pop(mutant.key, None)

    def judge(tests: Tests) -> None:
        results["tests"][name] = len(tests.seconds)
        share = f", share {asked.share:g}" if asked.share != 1 else ""
        results["when"][name] = f"{datetime.now(UTC):%Y-%m-%d}, {commit()}{share}"
        for key, outcome in run_mutants(todo, tests):
            outcomes[key] = outcome
            results["seconds"][name] = before + round(time.monotonic() - started)
            asked.save()

    tests = Tests(SOURCE, asked.processes, judge, trains=PARTS[name].trains)
    paths = asked.tests or PARTS[name].tests
    code = pytest.main(["-q", "-s", "-m", "", "-p", "no:cacheprovider", "-p", "no:cov", *paths], plugins=[tests])
    if code not in (0, 5) or not tests.ran:
        raise SystemExit(f"the tests could not be run: pytest ended with {code}")


def main() -> None:
    """Run the mutants of some parts, and write down what is known of all."""
    asked = arguments()
    asked.output = asked.output.resolve()
    os.chdir(ROOT)
    shares = {name: asked.share if name in asked.parts else 1.0 for name in PARTS}  # the others keep all they have
    found = {name: drawn(part, part.share * shares[name], asked.seed) for name, part in PARTS.items()}
    results: dict[str, Any] = {"seconds": {}, "tests": {}, "when": {}, "outcomes": {}}
    if asked.output.exists():
        before = json.loads(asked.output.read_text(encoding="utf-8"))
        results = {key: before.get(key, {}) for key in results}

    def save() -> None:
        tried = {name: [m.key for m in chosen if m.key in results["outcomes"]] for name, (chosen, _) in found.items()}
        possible = {name: total for name, (_, total) in found.items()}
        text = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "seed": asked.seed,
            **summary({name: keys for name, keys in tried.items() if keys}, possible, results["outcomes"]),
            **results,
        }
        written = json.dumps(text, indent=1, ensure_ascii=False) + "\n"
        asked.output.write_text(written, encoding="utf-8")

    asked.save = save
    for name in asked.parts:
        run_part(name, asked, found[name][0], results)
    known = {mutant.key for chosen, _ in found.values() for mutant in chosen}
    results["outcomes"] = {key: outcome for key, outcome in sorted(results["outcomes"].items()) if key in known}
    save()


if __name__ == "__main__":
    main()
