"""Learn the models of Tables 3 and 4: python -m experiments.learning_arithmetic_circuits.models.

Every growth is appended to results/models.jsonl and not repeated, unless the time ended it and more is allowed now;
`--sum-up` only writes results/models.json: for each data set and learner the prices with the best log-likelihood on the
validation rows, what that model is like, and the test log-likelihood of a model learned with the same prices on the
training and the validation rows together (`--retrain`). Growths run side by side, one a core, and their times are CPU
seconds of compiled code: they hold on a machine that others use, too.
"""

import argparse
import time
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from experiments.provenance import cores, provenance
from experiments.store import append_line, pack, read_lines, read_report, write_report
from tinybayes import TinybayesError, datasets
from tinybayes.infer.circuit import log_evidence
from tinybayes.infer.compile_circuit import compile_circuit
from tinybayes.infer.elimination import estimate_width
from tinybayes.infer.likelihood import log_likelihood
from tinybayes.learn.circuits.learn_ac import Grown, learn_circuit, learn_tree_cpds
from tinybayes.model import BayesNet, Dataset

Run = tuple[str, float | None, float]  # learner, price of an edge, price of a parameter
HERE = Path(__file__).parent
RETRAINED = HERE / "results" / "retrained.jsonl"
PACKAGES = ("numba", "numpy")
LEARNERS = ("trees", "quick", "greedy")
KEYS = ("data", "learner", "edge_price", "parameter_price")
COMPILED = 2_000_000  # edges at which compiling the network alone is given up


def runs(plan: dict[str, Any], name: str) -> Iterator[Run]:
    """List the growths of a data set."""
    for learner in LEARNERS:
        options = plan[learner]
        if name not in options.get("data", [name]):
            continue
        edge_prices = options.get("edge_prices", [None]) + options.get("more_edge_prices", {}).get(name, [])
        for edge_price in edge_prices:
            for parameter_price in options["parameter_prices"]:
                yield learner, edge_price, parameter_price
        for edge_price, parameter_price in options.get("more", {}).get(name, []):
            yield learner, edge_price, parameter_price


def learn(data: Dataset, learner: str, edge_price: float | None, parameter_price: float, limit: float) -> Grown:
    if edge_price is None:
        return learn_tree_cpds(data, parameter_price=parameter_price, seconds=limit)
    prices = {"edge_price": edge_price, "parameter_price": parameter_price}
    return learn_circuit(data, **prices, method=learner, seconds=limit)


def best_run(done: list[dict[str, Any]], name: str, learner: str) -> dict[str, Any] | None:
    """Return the growth of a learner that was best on the validation rows."""
    last = {tuple(run[key] for key in KEYS): run for run in done}
    own = [run for key, run in last.items() if key[:2] == (name, learner)]
    return {**max(own, key=lambda run: run["valid"]), "tried": len(own)} if own else None


def timed(data: Dataset, run: Run, limit: float) -> tuple[Grown, float]:
    """Learn a model; return it with the CPU seconds that this took, without those of compiling."""
    learn(data.rows(slice(0, 100)), *run, limit)
    began = time.process_time()
    grown = learn(data, *run, limit)
    return grown, time.process_time() - began


def describe(grown: Grown, seconds: float, split: Any) -> dict[str, Any]:
    """Return what Table 4 tells of a model."""
    parents = [len(cpd.parents) for cpd in grown.net.cpds]
    return {
        "valid": round(float(log_likelihood(grown.net, split.valid.X).mean()), 5),
        "test": round(float(log_likelihood(grown.net, split.test.X).mean()), 5),
        "edges": None if grown.circuit is None else grown.circuit.n_edges,
        "leaves": sum(len(cpd.table) for cpd in grown.net.cpds),
        "splits": len(grown.splits),
        "mean_parents": round(float(np.mean(parents)), 2),
        "most_parents": max(parents),
        "seconds": round(seconds, 2),
        "elapsed": round(grown.growth.seconds, 2),
        "complete": grown.complete,
        "score": round(grown.growth.score, 3),
    }


def compiled(net: BayesNet) -> dict[str, Any]:
    """Return the width of a network, and the size of a circuit compiled from it alone."""
    width = estimate_width(net, "min-fill").treewidth
    try:
        return {"treewidth": width, "compiled_edges": compile_circuit(net, max_edges=COMPILED).n_edges}
    except TinybayesError:
        return {"treewidth": width, "compiled_edges": f"over {COMPILED:,}"}


def table3(name: str, split: Any) -> dict[str, Any]:
    rows = {part: len(getattr(split, part)) for part in ("train", "valid", "test")}
    distinct = len(np.unique(split.train.X, axis=0))
    density = float(np.mean(split.train.X != 0))
    return {
        "data": name,
        "variables": split.train.X.shape[1],
        **rows,
        "distinct": distinct,
        "density": round(density, 4),
    }


@lru_cache(maxsize=1)
def load(name: str) -> Any:
    """Load a data set; a process asks for the same one many times in a row."""
    return datasets.load(name)


def grow(name: str, run: Run, limit: float) -> dict[str, Any]:
    """Learn one model, and say what it is like."""
    split = load(name)
    grown, seconds = timed(split.train, run, limit)
    keys = dict(zip(("learner", "edge_price", "parameter_price"), run, strict=True))
    return {"data": name, **keys, **describe(grown, seconds, split)}


def look_closer(name: str, best: dict[str, Any], limit: float) -> dict[str, Any]:
    """Learn the best model of a learner again, check it, and compile its network alone."""
    split = load(name)
    grown = learn(split.train, best["learner"], best["edge_price"], best["parameter_price"], limit)
    if grown.circuit is not None:  # the circuit and the network must agree
        both = log_evidence(grown.circuit, split.test.X), log_likelihood(grown.net, split.test.X)
        assert np.abs(both[0] - both[1]).max() < 1e-8
    return {**best, **compiled(grown.net)}


def retrain(name: str, best: dict[str, Any], limit: float) -> dict[str, Any]:
    """Learn a model with the same prices from the training and the validation rows, and test it."""
    split = load(name)
    both = replace(split.train, X=np.concatenate([split.train.X, split.valid.X]))
    grown = learn(both, best["learner"], best["edge_price"], best["parameter_price"], limit)
    test = round(float(log_likelihood(grown.net, split.test.X).mean()), 5)
    keys = {key: best[key] for key in KEYS}
    return {**keys, "test": test, "edges": grown.growth.edges, "complete": grown.complete}


def side_by_side(function: Any, jobs: Iterable[tuple[Any, ...]], processes: int) -> Iterator[dict[str, Any]]:
    """Call a function for each job, some at a time; return results as they come."""
    jobs = list(jobs)
    if not jobs:
        return
    with ProcessPoolExecutor(min(processes, len(jobs)), get_context("spawn")) as pool:
        for future in as_completed([pool.submit(function, *job) for job in jobs]):
            yield future.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="a data set; may be repeated")
    parser.add_argument("--learner", action="append", choices=LEARNERS, help="may be repeated")
    parser.add_argument("--sum-up", action="store_true")
    parser.add_argument("--retrain", action="store_true", help="learn the best models with the validation rows, too")
    parser.add_argument("--processes", type=int, default=cores(), help="growths side by side")
    parser.add_argument("--grow-only", action="store_true", help="leave summing up to a later run")
    parser.add_argument("--quick", action="store_true", help="nltcs only, a few seconds a growth, results not kept")
    options = parser.parse_args()
    plan = tomllib.loads((HERE / "models.toml").read_text())
    names = options.only or (["nltcs"] if options.quick else plan["data"])
    store = HERE / "results" / ("models-quick.jsonl" if options.quick else "models.jsonl")
    limit = 5.0 if options.quick else plan["limit"]
    began = time.monotonic()
    done = read_lines(store)
    known = {tuple(r[key] for key in KEYS) for r in done if r["complete"] or r["elapsed"] >= limit}
    learners = options.learner or LEARNERS
    jobs = [
        (name, run, limit)
        for name in names
        for run in runs(plan, name)
        if (name, *run) not in known and run[0] in learners
    ]
    for result in side_by_side(grow, [] if options.sum_up else jobs, options.processes):
        print(result, flush=True)
        done.append(result)
        append_line(store, result)
    if options.retrain:
        retrain_best(plan, names, learners, done, options.processes)
    if not options.quick and not options.grow_only:
        sum_up(plan, done, began, bool(jobs) and not options.sum_up, options.processes)


def retrain_best(plan: dict[str, Any], names: Any, learners: Any, done: list[dict[str, Any]], processes: int) -> None:
    """Retrain the chosen models that were not yet; they are appended to results/retrained.jsonl."""
    best = filter(None, (best_run(done, name, learner) for name in names for learner in learners))
    known = {tuple(r[key] for key in KEYS) for r in read_lines(RETRAINED) if r["complete"]}
    jobs = [(run["data"], run, plan["limit"]) for run in best if tuple(run[key] for key in KEYS) not in known]
    for result in side_by_side(retrain, jobs, processes):
        print(result, flush=True)
        append_line(RETRAINED, result)


def sum_up(plan: dict[str, Any], done: list[dict[str, Any]], began: float, grown: bool, processes: int) -> None:
    """Write the report; models that it had before, with the same prices, are not looked at again.

    A run that neither grew nor looked at any leaves no trace.
    """
    path = HERE / "results" / "models.json"
    before = read_report(path) or {"provenance": [], "table4": []}
    kept = {tuple(r[key] for key in KEYS): r for r in before["table4"]}
    best = [best_run(done, name, learner) for name in plan["data"] for learner in ("quick", "greedy", "trees")]
    described: dict[tuple[str, str], dict[str, Any]] = {}
    jobs = []
    for run in filter(None, best):
        old = kept.get((run["data"], run["learner"], run["edge_price"], run["parameter_price"]))
        if old is not None and old["score"] == run["score"]:
            described[run["data"], run["learner"]] = {**old, **run}
        else:
            jobs.append((run["data"], run, plan["limit"]))
    for result in side_by_side(look_closer, jobs, processes):
        print(result, flush=True)
        described[result["data"], result["learner"]] = result
    results = [described[run["data"], run["learner"]] for run in filter(None, best)]
    again = {tuple(r[key] for key in KEYS): r for r in read_lines(RETRAINED)}
    for result in results:
        found = again.get(tuple(result[key] for key in KEYS))
        result["retrained"] = found and {key: found[key] for key in ("test", "edges", "complete")}
    earlier = before["provenance"] if isinstance(before["provenance"], list) else [before["provenance"]]
    tables = [table3(name, datasets.load(name)) for name in plan["data"]]
    runs_made = [*earlier, provenance(time.monotonic() - began, packages=PACKAGES)] if grown or jobs else earlier
    report = {"provenance": runs_made, "table3": tables, "table4": results}
    pack(path.with_suffix(".jsonl"))
    write_report(path, report)


if __name__ == "__main__":
    main()
