"""Figure 2: python -m experiments.parameter_tying.figure2.

Rows are drawn from a network, its tables learned again (zeros known), tied to k levels and relearned. Then every
sampler gets the same wall time, on one thread, to estimate all marginals of the tied model. The distance is the
Hellinger distance to the exact marginals **of the model that was sampled**, averaged over all variables; how far these
are from the marginals of the network that the rows came from is kept beside it (`to_network`).

``tied`` is the default of `infer.marginals`, which is exact where its tables fit the time; ``tied, drawn`` draws all
the same; ``tied, plain`` draws without looking ahead, tables in topological order. The printed Algorithm 1 is not among
them: `log_acceptance` is the logarithm of the share of its samples that do not have the weight zero. Relearning is
named approximate where its expectations come from samples.
"""

import argparse
import os
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from experiments.parameter_tying.learning import circuit_of, forward, learned
from experiments.provenance import provenance
from experiments.store import Record, read_report, write_report
from tinybayes import TinybayesError, marginals, relearn, tie
from tinybayes.deploy.files.uai import read_uai
from tinybayes.infer import hellinger
from tinybayes.learn.ties.relearn import MAX_RELEARN_EDGES
from tinybayes.model import BayesNet, Dataset, LogLinear

HERE = Path(__file__).parent
OPTIONS: dict[str, dict[str, Any]] = {
    "tied": {"method": "tied"},
    "tied, drawn": {"method": "tied", "draw": True},
    "tied, plain": {"method": "tied", "lookahead": None},
}


def models(true: BayesNet, plan: Record, levels: list[int]) -> list[tuple[int, str, BayesNet]]:
    """Learn once; tie and relearn for each number of levels."""
    X = forward(true, plan["train"], plan["seed"])
    counts = LogLinear.from_bayes_net(true).counts(X)
    first, data = learned(true, counts, "known"), Dataset(true.variables, None, X)
    circuit = circuit_of(first)
    tied_models = []
    for k in levels:
        tied = tie(first, k).model
        tied_models.append((k, "quantised", tied))
        again = relearn(tied, data, circuit=circuit, max_edges=MAX_RELEARN_EDGES if circuit else 1)
        tied_models.append((k, f"relearned, {again.method}", again.model))
    return tied_models


def measure(model: BayesNet, method: str, plan: Record, truth: tuple[np.ndarray, ...], runs: int) -> Record:
    """Run a method several times."""
    distances, samples, effective = [], [], []
    for run in range(runs):
        options = OPTIONS.get(method, {"method": method})
        try:
            answer = marginals(model, seconds=plan["seconds"], seed=plan["seed"] + run, **options)
        except TinybayesError as problem:
            return {"method": method, "failed": str(problem)}
        distances.append(hellinger(answer.probabilities, truth))
        samples.append(answer.samples)
        effective.append(answer.effective)
        if answer.exact:
            break  # every run would be the same
    spread = float(np.std(distances, ddof=1)) if len(distances) > 1 else 0.0
    return {
        "method": method,
        "exact": answer.exact,
        "runs": len(distances),
        "hellinger": float(f"{np.mean(distances):.4g}"),
        "spread": float(f"{spread:.3g}"),
        "samples": round(float(np.mean(samples))),
        "effective": None if answer.exact else round(float(np.mean(effective)), 1),
        "seconds": round(answer.seconds, 3),
        "notes": list(answer.notes),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="a network; may be repeated")
    parser.add_argument("--quick", action="store_true", help="one run, first levels; results not kept")
    options = parser.parse_args()
    os.environ["TINYBAYES_THREADS"] = "1"
    plan = tomllib.loads((HERE / "figure2.toml").read_text())
    path = HERE / "results" / "figure2.json"
    report = read_report(path) or {"provenance": [], "results": []}
    done = {r["network"] for r in report["results"]}
    for name in options.only or plan["networks"]:
        if name in done and not options.quick:
            continue
        began, network = time.monotonic(), plan["networks"][name]
        true = read_uai(Path(os.environ["TINYBAYES_DATA"]) / "networks" / network["file"])
        truth = marginals(true, method="exact").probabilities
        results: list[Record] = []
        for k, kind, model in models(true, plan, network["levels"][:1] if options.quick else network["levels"]):
            answer = marginals(model, method="exact")
            exact, features = answer.probabilities, LogLinear.from_bayes_net(model).feature_weights
            accepted = answer.log_z - float(np.logaddexp(0.0, features).sum())
            base = {"network": name, "levels": k, "model": kind, "log_acceptance": round(accepted, 1)}
            base["to_network"] = round(hellinger(exact, truth), 6)
            for method in plan["methods"]:
                measured = measure(model, method, plan, exact, 1 if options.quick else plan["runs"])
                results.append({**base, **measured})
                print(results[-1], flush=True)
        if not options.quick:  # networks that are done are kept, and not run again
            report["results"] += results
            report["settings"] = {key: plan[key] for key in ("seconds", "runs", "train", "seed")}
            report["provenance"].append(provenance(time.monotonic() - began))
            write_report(path, report)


if __name__ == "__main__":
    main()
