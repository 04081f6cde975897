"""Learn the models of Tables 3 and 4: python experiments/learning_arithmetic_circuits/models.py [--only kdd] [--quick].

Every growth is appended to results/models.jsonl and not repeated; `--sum-up` only writes results/models.json: for each
data set and learner the prices with the best log-likelihood on the validation rows, and what that model is like.
"""

import argparse
import json
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tinybayes import TinybayesError, datasets
from tinybayes.infer.circuit import log_evidence
from tinybayes.infer.compile_circuit import compile_circuit
from tinybayes.infer.elimination import estimate
from tinybayes.learn.learn_ac import Grown, learn_ac, learn_tree_cpds
from tinybayes.model import BayesNet, Dataset
from tinybayes.search.reproduce import provenance

HERE = Path(__file__).parent
COMPILED = 2_000_000  # edges at which compiling the network alone is given up


def runs(plan: dict[str, Any], name: str) -> Iterator[tuple[str, float | None, float]]:
    """List the growths of a data set: learner, price of an edge, price of a parameter."""
    for learner in ("trees", "quick", "greedy"):
        options = plan[learner]
        if name in options.get("data", [name]):
            for edge_price in options.get("edge_prices", [None]):
                for parameter_price in options["parameter_prices"]:
                    yield learner, edge_price, parameter_price


def learn(data: Dataset, learner: str, edge_price: float | None, parameter_price: float, limit: float) -> Grown:
    if edge_price is None:
        return learn_tree_cpds(data, parameter_price=parameter_price, seconds=limit)
    prices = {"edge_price": edge_price, "parameter_price": parameter_price}
    return learn_ac(data, **prices, method=learner, seconds=limit)


def read_runs(store: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []


def best_run(done: list[dict[str, Any]], name: str, learner: str) -> dict[str, Any] | None:
    """Return the growth of a learner that was best on the validation rows."""
    own = [run for run in done if (run["data"], run["learner"]) == (name, learner)]
    return {**max(own, key=lambda run: run["valid"]), "tried": len(own)} if own else None


def log_likelihood(net: BayesNet, X: np.ndarray) -> float:
    """Return the mean log-likelihood of rows, by walking down the trees."""
    total = np.zeros(len(X))
    for column, cpd in enumerate(net.cpds):
        row = np.zeros(len(X), dtype=int)
        if cpd.tree is not None:
            place = np.zeros(len(X), dtype=int)
            while (inner := cpd.tree.split[place] >= 0).any():
                tested = X[inner, cpd.tree.split[place[inner]]]
                place[inner] = cpd.tree.children[cpd.tree.first[place[inner]] + tested]
            row = cpd.tree.row[place]
        total += cpd.log_parameters[row, X[:, column]]
    return float(total.mean())


def describe(found: Grown, split: Any) -> dict[str, Any]:
    """Return what Table 4 tells of a model."""
    parents = [len(cpd.parents) for cpd in found.net.cpds]
    return {
        "valid": round(log_likelihood(found.net, split.valid.X), 5),
        "test": round(log_likelihood(found.net, split.test.X), 5),
        "edges": None if found.circuit is None else found.circuit.n_edges,
        "leaves": sum(len(cpd.table) for cpd in found.net.cpds),
        "splits": len(found.splits),
        "mean_parents": round(float(np.mean(parents)), 2),
        "most_parents": max(parents),
        "seconds": round(found.growth.seconds, 2),
        "complete": found.complete,
        "score": round(found.growth.score, 3),
    }


def compiled(net: BayesNet) -> dict[str, Any]:
    """Return the width of a network, and the size of a circuit compiled from it alone."""
    width = estimate(net, "min-fill").treewidth
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="a data set; may be repeated")
    parser.add_argument("--sum-up", action="store_true")
    parser.add_argument("--quick", action="store_true", help="nltcs only, a few seconds a growth, results not kept")
    options = parser.parse_args()
    plan = tomllib.loads((HERE / "models.toml").read_text())
    names = options.only or (["nltcs"] if options.quick else plan["data"])
    store = HERE / "results" / ("models-quick.jsonl" if options.quick else "models.jsonl")
    began = time.monotonic()
    done = read_runs(store)
    known = {(r["data"], r["learner"], r["edge_price"], r["parameter_price"]) for r in done}
    for name in [] if options.sum_up else names:
        split = datasets.load(name)
        for run in runs(plan, name):
            if (name, *run) in known:
                continue
            found = learn(split.train, *run, 5.0 if options.quick else plan["limit"])
            keys = dict(zip(("learner", "edge_price", "parameter_price"), run, strict=True))
            done.append({"data": name, **keys, **describe(found, split)})
            print(done[-1], flush=True)
            with store.open("a") as file:
                file.write(json.dumps(done[-1]) + "\n")
    if not options.quick:
        sum_up(plan, done, began)


def sum_up(plan: dict[str, Any], done: list[dict[str, Any]], began: float) -> None:
    results, tables = [], []
    for name in plan["data"]:
        split = datasets.load(name)
        tables.append(table3(name, split))
        for learner in ("quick", "greedy", "trees"):
            best = best_run(done, name, learner)
            if best is None:
                continue
            prices = best["edge_price"], best["parameter_price"]
            found = learn(split.train, learner, *prices, plan["limit"])
            if found.circuit is not None:  # the circuit and the network must agree
                together = log_evidence(found.circuit, split.test.X).mean()
                assert abs(together - log_likelihood(found.net, split.test.X)) < 1e-8
            results.append({**best, **compiled(found.net)})
            print(results[-1], flush=True)
    report = {"provenance": provenance(time.monotonic() - began), "table3": tables, "table4": results}
    (HERE / "results" / "models.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
