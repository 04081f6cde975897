"""Figure 2 with untied models and a minute a method: python -m experiments.parameter_tying.figure2_long.

Rows are drawn from a network and its tables learned again with one count added to every entry. The *untied* model is
that one, the *relearned* one is tied to k levels and relearned. Every sampler gets the same wall time on one thread.
Distances are those to the exact marginals of the sampled model, as in `figure2`. The processor time that the
process had is kept beside the wall time (`cpu`): on a busy machine it tells how much of the minute was worked.

Each finished run is appended to results/figure2_long.jsonl and not repeated.
"""

import argparse
import os
import time
import tomllib
from pathlib import Path

import numpy as np

from experiments.parameter_tying.figure2 import OPTIONS
from experiments.parameter_tying.learning import circuit_of, forward, learned
from experiments.provenance import provenance
from experiments.store import Record, append_line, pack, read_lines, write_report
from tinybayes import TinybayesError, marginals, relearn, tie
from tinybayes.deploy.files.uai import read_uai
from tinybayes.infer import hellinger
from tinybayes.learn.ties.relearn import MAX_RELEARN_EDGES
from tinybayes.model import BayesNet, Dataset, LogLinear

HERE = Path(__file__).parent
Named = tuple[str, int | None, BayesNet]  # kind, levels, model


def models(true: BayesNet, plan: Record, levels: list[int]) -> list[Named]:
    """Learn with smoothed zeros; tie and relearn for each number of levels."""
    X = forward(true, plan["train"], plan["seed"])
    counts = LogLinear.from_bayes_net(true).counts(X)
    first, data = learned(true, counts, "smoothed"), Dataset(true.variables, None, X)
    circuit = circuit_of(first)
    made: list[Named] = [("untied", None, first)]
    for k in levels:
        again = relearn(tie(first, k).model, data, circuit=circuit, max_edges=MAX_RELEARN_EDGES if circuit else 1)
        made.append((f"relearned, {again.method}", k, again.model))
    return made


def measure(model: BayesNet, method: str, seconds: float, seed: int, truth: tuple[np.ndarray, ...]) -> Record:
    """Run a method once."""
    began = time.process_time()
    try:
        answer = marginals(model, seconds=seconds, seed=seed, **OPTIONS.get(method, {"method": method}))
    except TinybayesError as problem:
        return {"failed": str(problem)}
    return {
        "exact": answer.exact,
        "hellinger": float(f"{hellinger(answer.probabilities, truth):.4g}"),
        "samples": answer.samples,
        "effective": None if answer.exact else round(answer.effective, 1),
        "zero": answer.zero,
        "seconds": round(answer.seconds, 2),
        "cpu": round(time.process_time() - began, 2),
        "notes": list(answer.notes),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run of a second; results not kept")
    parser.add_argument("--sum-up", action="store_true", help="write the report of what is done")
    options = parser.parse_args()
    os.environ["TINYBAYES_THREADS"] = "1"
    plan = tomllib.loads((HERE / "figure2_long.toml").read_text())
    if options.quick:
        plan |= {"seconds": 1.0, "runs": 1}
    store = HERE / "results" / "figure2_long.jsonl"
    done = [] if options.quick else read_lines(store)
    kept: dict[str, list[tuple[Named, tuple[np.ndarray, ...], float]]] = {}
    for run in range(0 if options.sum_up else plan["runs"]):
        for name, network in plan["networks"].items():
            todo = [m for m in plan["methods"] if not _known(done, name, run, m, 1 + len(network["levels"]))]
            if todo and name not in kept:
                true = read_uai(Path(os.environ["TINYBAYES_DATA"]) / "networks" / network["file"])
                truth = marginals(true, method="exact").probabilities
                kept[name] = [
                    (one, exact := _exact(one[2]), hellinger(exact, truth))
                    for one in models(true, plan, network["levels"])
                ]
            for (kind, levels, model), exact, distance in kept.get(name, []):
                for method in todo:
                    head = {"network": name, "model": kind, "levels": levels, "method": method, "run": run}
                    if any(head.items() <= r.items() for r in done):
                        continue
                    record = {**head, "to_network": round(distance, 6), "commit": provenance(0.0)["commit"]}
                    record |= measure(model, method, plan["seconds"], plan["seed"] + run, exact)
                    done.append(record)
                    if not options.quick:
                        append_line(store, record)
                    print(record, flush=True)
    if not options.quick:
        seconds = sum(r.get("seconds", 0.0) for r in done)
        report = {"command": "python -m experiments.parameter_tying.figure2_long", "provenance": provenance(seconds)}
        pack(store)
        write_report(store.with_suffix(".json"), {**report, "plan": plan, "results": done})


def _known(done: list[Record], name: str, run: int, method: str, models: int) -> bool:
    """Say whether a run of a method is done on all models of a network."""
    return sum((r["network"], r["run"], r["method"]) == (name, run, method) for r in done) >= models


def _exact(model: BayesNet) -> tuple[np.ndarray, ...]:
    return marginals(model, method="exact").probabilities


if __name__ == "__main__":
    main()
