"""Queries of Table 5 and Figure 1: python experiments/learning_arithmetic_circuits/queries.py [--only kdd] [--quick].

For each data set the circuit that models.py chose on the validation rows (quick) answers exactly; the tree-CPD network
that it chose is asked by Gibbs sampling in the four settings of the paper. The accuracy is the mean log-probability of
what the test row has in the query variables, per query variable; the time is CPU time a query.
"""

import argparse
import json
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from models import best_run, learn, read_runs

from tinybayes import datasets
from tinybayes.infer.circuit import conditional
from tinybayes.infer.gibbs import GIBBS_SETTINGS, gibbs
from tinybayes.infer.queries import Queries, random_queries
from tinybayes.learn.learn_ac import Grown
from tinybayes.search.reproduce import provenance

HERE = Path(__file__).parent


def ask(model: Grown, queries: Queries, setting: str) -> np.ndarray:
    """Return the log-probability of every query."""
    if setting == "exact":
        assert model.circuit is not None
        return np.asarray(conditional(model.circuit, queries.asked, queries.evidence, log=True))
    found = gibbs(model.net, queries, **GIBBS_SETTINGS[setting]).log_probability
    assert found is not None
    return found.value


def single(model: Grown, queries: Queries, count: int = 200) -> float:
    """Return the milliseconds of an exact query that is asked alone."""
    assert model.circuit is not None
    began = time.process_time()
    for i in range(count):
        conditional(model.circuit, queries.asked[i : i + 1], queries.evidence[i : i + 1])
    return 1000 * (time.process_time() - began) / count


def measure(
    models: dict[str, Grown], queries: Queries, setting: str, exact: np.ndarray | None
) -> tuple[dict[str, Any], np.ndarray]:
    """Ask; return what is reported, and the log-probability a variable of each query.

    Gibbs sampling is compared with the circuit on the same queries: its accuracy is that of the circuit on all queries
    plus the mean difference on those that both were asked, which is known more precisely than the accuracy itself.
    """
    model = models["circuit" if setting == "exact" else "trees"]
    if setting == "exact":
        ask(model, Queries(queries.evidence[:2], queries.asked[:2]), setting)  # compiles
    began = time.process_time()
    found = ask(model, queries, setting) / np.maximum((queries.asked >= 0).sum(axis=1), 1)
    cpu = time.process_time() - began
    result = {"setting": setting, "queries": len(queries), "cpu_ms": round(1000 * cpu / len(queries), 4)}
    spread, centre = found, float(found.mean())
    if exact is None:
        result["alone_ms"] = round(single(model, queries), 4)
    else:
        spread = found - exact[: len(found)]
        centre = float(exact.mean() + spread.mean())
    error = None if len(spread) < 2 else round(float(spread.std(ddof=1) / np.sqrt(len(spread))), 5)
    return {**result, "accuracy": round(centre, 5), "error": error}, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="a data set; may be repeated")
    parser.add_argument("--quick", action="store_true", help="few queries, results not kept")
    options = parser.parse_args()
    plan = tomllib.loads((HERE / "queries.toml").read_text())
    limit = tomllib.loads((HERE / "models.toml").read_text())["limit"]
    grown = read_runs(HERE / "results" / "models.jsonl")
    place = HERE / "results" / "queries.json"
    report: dict[str, Any] = json.loads(place.read_text()) if place.exists() else {"provenance": [], "results": []}
    done = {r["data"] for r in report["results"]}
    for name in options.only or plan["data"]:
        if name in done and not options.quick:
            continue
        results: list[dict[str, Any]] = []
        began = time.monotonic()
        split = datasets.load(name)
        models = {}
        for kind, learner in (("circuit", "quick"), ("trees", "trees")):
            best = best_run(grown, name, learner)
            assert best is not None, f"run models.py for {name} first"
            models[kind] = learn(split.train, learner, best["edge_price"], best["parameter_price"], limit)
        for share in plan["shares"]:
            wanted = plan.get("counts_of", {}).get(name, plan["counts"])
            counts = {setting: min(5, n) if options.quick else n for setting, n in wanted.items()}
            queries = random_queries(split.test.X, *share, count=counts["exact"], seed=plan["seed"])
            exact = None
            for setting, count in counts.items():
                first = Queries(queries.evidence[:count], queries.asked[:count])
                result, found = measure(models, first, setting, exact)
                exact = found if setting == "exact" else exact
                results.append({"data": name, "query": share[0], "evidence": share[1], **result})
                print(results[-1], flush=True)
        if not options.quick:  # data sets that are done are kept, and not asked again
            report["results"] += results
            report["provenance"].append(provenance(time.monotonic() - began))
            place.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
