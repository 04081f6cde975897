"""Two states of this project side by side: python benchmarks/before_after.py --before DIR [--part training].

DIR is another checkout, with its git history. Each part runs the benchmark of the same name in both checkouts by turns,
without other libraries, and takes the least time of each figure; learn_ac runs the benchmark of this checkout on both
packages. The ratio is time before over time after: above 1 is faster.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import provenance

HERE = Path(__file__).resolve().parent.parent
CIRCUITS = """
import sys, circuit_inference as bench
bench.SECONDS = 1.0
bench.HARD = ()
bench.peer = lambda *given: {"one_ms": 1.0, "largest_difference": 0.0}
networks = ["alarm", "insurance", "win95pts", "hailfinder", "hepar2", "andes", "pigs"]
bench.main(networks=networks, output=__import__("pathlib").Path(sys.argv[1]))
"""
PARTS: dict[str, list[str]] = {
    "closed_form": ["closed_form.py", "--quick", "--output", "{out}"],
    "training": ["training.py", "--output", "{out}/training.json"],
    "circuit_inference": ["-c", CIRCUITS, "{out}"],
    "learn_ac": ["{here}/learn_ac.py", "--output", "{out}/learn_ac.json"],
}


def figures(part: str, result: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the times of our own models by name."""
    for run in result.get("runs", result.get("results", [])):
        if part == "closed_form" and run["model"].startswith("tinybayes"):
            for step in ("fit", "predict"):
                yield f"{run['model']}, {run['data']}, {run['threads']}, {step}", run[step]["wall"]
        elif part == "training":
            name = f"{run['data']} {run['structure']}"
            yield f"{name}, whole run", run["wall_s"]
            if run["configurations"] == 1:
                yield f"{name}, CPU time of an epoch", run["cpu_s_per_epoch"]
        elif part == "circuit_inference":
            yield f"{run['network']}, compile", run["compile_s"]
            for threads in ("one", "all"):
                yield f"{run['network']}, {threads}, a query", run[threads]["one_ms"]
                yield f"{run['network']}, {threads}, a batch", run[threads]["batch_ms"]
        elif part == "learn_ac":
            yield f"{run['data']} {run['method']} {run['edge_price']} {run['parameter_price']}", run["cpu_s"]


def measure(part: str, checkout: Path, words: list[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        command = [word.replace("{out}", folder).replace("{here}", str(HERE / "benchmarks")) for word in PARTS[part]]
        command += words if part == "training" else []
        source = os.pathsep.join(map(str, [checkout / "src", checkout / "benchmarks"]))
        environment = {**os.environ, "PYTHONPATH": source}
        subprocess.run([sys.executable, *command], cwd=checkout / "benchmarks", env=environment, check=True)
        return dict(figures(part, json.loads((Path(folder) / f"{part}.json").read_text())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="the other checkout")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="may be repeated; all by default")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--epochs", default="10", help="of training")
    parser.add_argument("--configurations", default="1", help="of training")
    parser.add_argument("--output", type=Path, default=HERE / "benchmarks" / "results" / "before_after.json")
    options = parser.parse_args()
    words = ["--epochs", options.epochs, "--configurations", options.configurations]
    results: dict[str, dict[str, dict[str, float]]] = {}
    git = ["git", "-C", str(options.before), "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    made = {**provenance(["jax", "numba", "numpy"]), "before": commit}
    for part in options.part or PARTS:
        before: dict[str, float] = {}
        after: dict[str, float] = {}
        for _ in range(options.rounds):
            for checkout, least in ((options.before.resolve(), before), (HERE, after)):
                for name, seconds in measure(part, checkout, words).items():
                    least[name] = min(seconds, least.get(name, seconds))
        results[part] = {
            name: {"before": before[name], "after": after[name], "ratio": round(before[name] / after[name], 3)}
            for name in before
            if name in after and after[name] > 0
        }
        for name, figure in results[part].items():
            print(f"{part}: {name}: {figure['before']:.4g} {figure['after']:.4g} {figure['ratio']:.2f}", flush=True)
        options.output.write_text(json.dumps({**made, **results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
