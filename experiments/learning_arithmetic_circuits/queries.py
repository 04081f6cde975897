"""Queries of Table 5 and Figure 1: python -m experiments.learning_arithmetic_circuits.queries.

For each data set the circuit that models.py chose on the validation rows (quick) answers exactly; the tree-CPD network
that it chose is asked by Gibbs sampling in the four settings of the paper. The accuracy is the mean log-probability of
what the test row has in the query variables, per query variable; the time is CPU time a query. What was measured is
appended to results/queries.jsonl and not repeated, unless more queries are wanted; results/queries.json sums it up.
"""

import argparse
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from experiments.learning_arithmetic_circuits.models import PACKAGES, best_run, learn
from experiments.learning_arithmetic_circuits.random_queries import GIBBS_SETTINGS, random_queries
from experiments.provenance import provenance
from experiments.store import append_line, pack, read_lines, read_report, write_report
from tinybayes import datasets
from tinybayes.infer.circuit import conditional
from tinybayes.infer.gibbs import Queries, gibbs
from tinybayes.learn.circuits.learn_ac import Grown, learn_circuit
from tinybayes.model import Dataset

HERE = Path(__file__).parent


def ask(model: Grown, queries: Queries, setting: str) -> np.ndarray:
    """Return the log-probability of every query."""
    if setting == "exact":
        assert model.circuit is not None
        return np.asarray(conditional(model.circuit, queries.asked, queries.evidence, log=True))
    estimates = gibbs(model.net, queries, **GIBBS_SETTINGS[setting]).log_probability
    assert estimates is not None
    return estimates.value


def per_variable(model: Grown, queries: Queries, setting: str) -> np.ndarray:
    """Return the log-probability of every query, divided by the number of variables it asks for."""
    return ask(model, queries, setting) / np.maximum((queries.asked >= 0).sum(axis=1), 1)


def single(model: Grown, queries: Queries, count: int) -> float:
    """Return the milliseconds of an exact query that is asked alone."""
    assert model.circuit is not None
    began = time.process_time()
    for i in range(count):
        conditional(model.circuit, queries.asked[i : i + 1], queries.evidence[i : i + 1])
    return 1000 * (time.process_time() - began) / count


def measure(models: dict[str, Grown], queries: Queries, setting: str, count: int) -> dict[str, Any]:
    """Ask the first `count` queries, and return what is reported.

    Gibbs sampling is compared with the circuit on the same queries: its accuracy is that of the circuit on all queries
    plus the mean difference on those that both were asked, which is known more precisely than the accuracy itself.
    """
    exact = per_variable(models["circuit"], queries, "exact")  # compiles, too
    first = Queries(queries.evidence[:count], queries.asked[:count])
    began = time.process_time()
    answers = per_variable(models["circuit" if setting == "exact" else "trees"], first, setting)
    cpu = time.process_time() - began
    result = {"setting": setting, "queries": count, "cpu_ms": round(1000 * cpu / count, 4)}
    if setting == "exact":
        result["alone_ms"] = round(single(models["circuit"], first, min(count, 200)), 4)
        spread, centre = answers, answers.mean()
    else:
        spread = answers - exact[:count]
        centre = exact.mean() + spread.mean()
    error = None if count < 2 else round(float(spread.std(ddof=1) / np.sqrt(count)), 5)
    return {**result, "accuracy": round(float(centre), 5), "error": error}


def circuit_of(name: str, data: Dataset, best: dict[str, Any], limit: float, keep: bool) -> Grown:
    """Learn the circuit; its splits are kept, so that a growth that the time ended is the same the next time."""
    path = HERE / "results" / f"{name}-splits.npy"
    prices = {"edge_price": best["edge_price"], "parameter_price": best["parameter_price"]}
    about = np.array([[round(1e6 * price) for price in prices.values()]])  # the first line says what they belong to
    if path.exists() and (known := np.load(path))[:1].tolist() == about.tolist():
        return learn_circuit(data, **prices, splits=known[1:], max_edges=1, seconds=1e-9)  # no split more
    grown = learn(data, "quick", *prices.values(), limit)
    if keep:
        np.save(path, np.concatenate([about, grown.splits]))
    return grown


def wanted(plan: dict[str, Any], name: str, full: bool) -> list[tuple[str, list[float], int]]:
    """List the measurements of a data set, fast ones first: setting, shares, number of queries."""
    counts = {**plan["full" if full else "counts"], **plan["full_of" if full else "counts_of"].get(name, {})}
    jobs = []
    for setting, count in counts.items():
        shares = plan["shares"] if full else plan["few_shares"].get(setting, plan["shares"])
        jobs += [(setting, share, count) for share in shares]
    return jobs


def sum_up(store: Path, seconds: float, before: list[dict[str, Any]]) -> None:
    """Write the report: of each measurement the one with the most queries, and the provenance of all runs."""
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    for result in read_lines(store):
        key = tuple(result[field] for field in ("data", "query", "evidence", "setting"))
        if key not in best or result["queries"] >= best[key]["queries"]:
            best[key] = result
    report = {"provenance": [*before, provenance(seconds, packages=PACKAGES)], "results": list(best.values())}
    pack(store)
    write_report(store.with_suffix(".json"), report)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="a data set; may be repeated")
    parser.add_argument("--full", action="store_true", help="every setting for all shares, five hours of CPU time")
    parser.add_argument("--setting", action="append", help="exact, fast, medium, slow or very slow; may be repeated")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no measurement after this time")
    parser.add_argument("--quick", action="store_true", help="few queries, results not kept")
    options = parser.parse_args()
    plan = tomllib.loads((HERE / "queries.toml").read_text())
    limit = tomllib.loads((HERE / "models.toml").read_text())["limit"]
    grown = read_lines(HERE / "results" / "models.jsonl")
    store = HERE / "results" / "queries.jsonl"
    began, asked = time.monotonic(), 0
    before = (read_report(store.with_suffix(".json")) or {"provenance": []})["provenance"]
    done = {(r["data"], r["query"], r["evidence"], r["setting"]): r["queries"] for r in read_lines(store)}
    for name in options.only or plan["data"]:
        left = wanted(plan, name, options.full)
        if options.quick:
            left = [(setting, share, 5) for setting, share, _ in left if setting in ("exact", "fast", "medium")]
        else:
            left = [job for job in left if done.get((name, *job[1], job[0]), 0) < job[2]]
        left = [job for job in left if options.setting is None or job[0] in options.setting]
        if not left or time.monotonic() - began > options.seconds:
            continue
        split = datasets.load(name)
        best = {learner: best_run(grown, name, learner) for learner in ("quick", "trees")}
        assert all(best.values()), f"run models.py for {name} first"
        models = {
            "circuit": circuit_of(name, split.train, best["quick"], limit, not options.quick),
            "trees": learn(split.train, "trees", None, best["trees"]["parameter_price"], limit),
        }
        about = {learner: [run["edge_price"], run["parameter_price"]] for learner, run in best.items() if run}
        for setting, share, count in left:
            if time.monotonic() - began > options.seconds:
                break
            queries = random_queries(split.test.X, *share, count=plan["counts"]["exact"], seed=plan["seed"])
            result = {"data": name, "query": share[0], "evidence": share[1], "models": about}
            result |= measure(models, queries, setting, count)
            print(result, flush=True)
            asked += 1
            if not options.quick:
                append_line(store, result)
    if asked and not options.quick:
        sum_up(store, time.monotonic() - began, before)


if __name__ == "__main__":
    main()
