"""Exact inference beside pyAgrum: circuits, join trees, one query, batches of a thousand, and agreement.

Run it as ``python benchmarks/circuit_inference.py`` on an idle machine, with TINYBAYES_DATA set to the directory of the
networks. A query observes each variable with probability 0.2, the values taken from one forward sample, and asks for
all posteriors. Everything is measured with one thread, by the CPU time that it takes, and again with all cores for
everybody, by the clock. Then come the networks that no circuit of 50 million edges holds, each in a process of its own
with all cores, beside their marginals to six digits.

What is measured is kept in ``circuit_inference.partial.json``: a run that was stopped goes on after the last network.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from harness import Figures, provenance
from inference_page import markdown

NETWORKS = ("asia", "cancer", "child", "alarm", "insurance", "win95pts", "hailfinder", "hepar2", "andes", "pigs")
NETWORKS += ("munin1", "water", "mildew", "diabetes", "barley", "link")
HARD = ("CSP_11", "DBN_12", "Grids_15", "linkage_14")
ENGINES = {
    "LazyPropagation": "LazyPropagation",
    "ShaferShenoy": "ShaferShenoyInference",
    "VariableElimination": "VariableElimination",
}
KINDS = ("one", "all")  # threads
OBSERVED = 0.2
BATCH = 1000
FRESH = 20  # models and engines that are asked once
SECONDS = 1.5  # for the repetitions of a measurement
LONGEST = 15.0  # seconds of a single query of a peer
clock = time.perf_counter  # of the measurements: CPU time for one thread
CALLS = 10  # of a query at least, unless they take long
EDGES = 5_000_000  # of circuits that are compiled here; larger ones answer no faster than a join tree


def main(
    networks: Annotated[list[str] | None, typer.Option(help="Networks; all there are by default.")] = None,
    hard: Annotated[list[str] | None, typer.Option(help="Networks without a circuit; all four by default.")] = None,
    threads: Annotated[
        list[str] | None, typer.Option(help="one: CPU time, also on a busy machine; all: the clock. Both by default.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="For the repetitions of a measurement.")] = None,
    one: Annotated[str | None, typer.Option(help="Print the figures of one network without a circuit.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what a stopped run has measured.")] = False,
    output: Annotated[Path | None, typer.Option(help="Folder for circuit_inference.json and .md.")] = None,
) -> None:
    """Compare circuits and join trees with pyAgrum's engines on the same networks and evidence."""
    global SECONDS
    SECONDS = seconds or SECONDS
    if one is not None:
        print(json.dumps(run_hard(one)))
        return
    place = output or Path(__file__).parent / "results"
    place.mkdir(parents=True, exist_ok=True)
    partial = place / "circuit_inference.partial.json"
    if fresh:
        partial.unlink(missing_ok=True)
    packages = ["tinybayes", "numba", "numpy", "pyagrum"]
    result: Figures = {"provenance": {**provenance(packages), "observed": OBSERVED}, "runs": [], "hard": []}
    if partial.exists():
        result |= json.loads(partial.read_text())
    done = {run["network"] for part in ("runs", "hard") for run in result[part]}
    if not done:
        warm_up()

    def keep(part: str, figures: Figures) -> None:
        result[part].append({**figures, "load": os.getloadavg()[0]})
        partial.write_text(json.dumps(result, indent=1) + "\n")
        print(json.dumps(figures), flush=True)

    for name in networks or NETWORKS:
        if not file_of(name).exists():
            print(f"{name}: left out, there is no {file_of(name).name}", flush=True)
        elif name not in done:
            keep("runs", run(name, threads or list(KINDS)))
    for name in HARD if hard is None else hard:
        if name not in done:
            command = [sys.executable, __file__, "--one", name]
            keep("hard", json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    result["provenance"]["load_after"] = os.getloadavg()[0]
    (place / "circuit_inference.json").write_text(json.dumps(result, indent=1) + "\n")
    (place / "circuit_inference.md").write_text(markdown(result, BATCH))
    partial.unlink()


def warm_up() -> None:
    """Let Numba load or compile everything, on a network of its own."""
    from tinybayes.infer import compile_circuit, marginals
    from tinybayes.infer.circuit import log_evidence, posteriors, sample

    net = read("asia")
    circuit = compile_circuit(net)
    rows = sample(circuit, 64, 0)
    for part in (rows, rows[:1]):
        log_evidence(circuit, part)
        posteriors(circuit, part)
    marginals(net, method="join-tree")


def file_of(name: str) -> Path:
    return Path(os.environ["TINYBAYES_DATA"]) / "networks" / "bif" / f"{name}.bif.gz"


def read(name: str):
    from tinybayes import load

    return load(file_of(name))


def forward(net, count: int, seed: int) -> np.ndarray:
    """Draw complete rows, parents before children."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((count, len(net.nodes)), dtype=np.int64)
    for v in net.structure.order:
        context = np.zeros(count, dtype=np.int64)
        for parent in net.cpds[v].parents:
            context = context * net.nodes[parent].cardinality + rows[:, parent]
        sums = np.exp(net.cpds[v].log_parameters[context]).cumsum(axis=1)
        rows[:, v] = (rng.random((count, 1)) * sums[:, -1:] >= sums).sum(axis=1)
    return rows


def run(name: str, kinds: list[str]) -> Figures:
    global clock
    from tinybayes import TinybayesError
    from tinybayes.infer import compile_circuit, inference_costs, marginals
    from tinybayes.infer.circuit import log_evidence, posteriors

    net = read(name)
    rows = forward(net, BATCH, 1)
    alike = np.where(np.random.default_rng(2).random(rows.shape[1]) < OBSERVED, rows, -1)
    rows = np.where(np.random.default_rng(0).random(rows.shape) < OBSERVED, rows, -1)
    costs = {cost.method: cost for cost in inference_costs(net)}
    figures: Figures = {"network": name, "variables": len(net.nodes), "width": costs["join-tree"].width}
    start = time.process_time()
    try:
        circuit = compile_circuit(net, max_edges=EDGES)
        spent = time.process_time() - start
        figures |= {"compile_s": spent, "compile_estimate_s": costs["circuit"].seconds}
        figures |= {"nodes": circuit.n_nodes, "edges": circuit.n_edges}
        expected = posteriors(circuit, rows[:20])
    except TinybayesError:
        circuit = None
        figures["refused_s"] = time.process_time() - start

    def by_tree(row: np.ndarray) -> np.ndarray:
        return np.concatenate(marginals(net, row[0], method="join-tree").probabilities)

    trees = np.stack([by_tree(rows[r : r + 1]) for r in range(20)])
    if circuit is not None:
        figures["join_tree_difference"] = float(np.abs(trees - expected).max())
    for threads in kinds:
        os.environ["TINYBAYES_THREADS"] = "1" if threads == "one" else ""  # read at every call
        clock = time.process_time if threads == "one" else time.perf_counter
        found: Figures = {"tree_ms": 1e3 * one_by_one(by_tree, rows)}
        found["first_ms"] = 1e3 * fresh_ones(lambda: replace(net), lambda model, row: marginals(model, row[0]), rows)
        whole = {cost.method: cost for cost in inference_costs(net)}
        found |= {
            "rows_ms": 1e3 * best(lambda: marginals(net, rows, method="join-tree"), 1) / len(rows),
            "alike_ms": 1e3 * best(lambda: marginals(net, alike, method="join-tree"), 1) / len(rows),
            "whole_estimate_s": whole["join-tree"].seconds,
            "whole_s": best(lambda: marginals(net, method="join-tree")),
            "sampling_estimate_s": whole["tied"].seconds,
            "sampling_s": best(lambda: marginals(net, method="tied", draw=True), 1),
        }
        if circuit is not None:
            up = best(lambda: log_evidence(circuit, rows)) / len(rows)
            both = best(lambda: posteriors(circuit, rows)) / len(rows)
            found |= {
                "one_ms": 1e3 * one_by_one(lambda row: posteriors(circuit, row), rows),
                "batch_ms": 1e3 * both,
                "up_ns_edge": 1e9 * up / circuit.n_edges,
                "down_ns_edge": 1e9 * (both - up) / circuit.n_edges,
            }
        found |= {engine: peer(net, engine, rows, trees, threads) for engine in ENGINES}
        quickest = min(found[engine]["one_ms"] for engine in ENGINES if "one_ms" in found[engine])
        found["times_tree"] = quickest / found["tree_ms"]
        first = [found[engine]["first_ms"] for engine in ENGINES if "first_ms" in found[engine]]
        found["times_first"] = min(first, default=np.nan) / found["first_ms"]
        if circuit is not None:
            found["times_one"], found["times_batch"] = quickest / found["one_ms"], quickest / found["batch_ms"]
        figures[threads] = found
    return figures


def run_hard(name: str) -> Figures:
    """Answer one of the problems that no circuit of 50 million edges holds; time includes all but reading the file."""
    from tinybayes.deploy.files.uai import read_evidence, read_uai_factors
    from tinybayes.deploy.files.uai_marginals import read_marginals
    from tinybayes.infer import inference_costs, marginals

    place = Path(os.environ["TINYBAYES_DATA"]) / "networks" / "hard"
    model, known = read_uai_factors(place / f"{name}.uai"), read_evidence(place / f"{name}.evid")[0]
    warm_up()
    cost = {each.method: each for each in inference_costs(model, known)}["join-tree"]
    start, cpu = time.perf_counter(), time.process_time()
    found = marginals(model, known)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    truth = read_marginals(place / f"{name}.MAR")
    return {
        "network": name,
        "variables": len(truth),
        "width": cost.width,
        "method": found.method,
        "seconds": seconds,
        "cpu_s": cpu,
        "estimate_s": cost.seconds,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "estimate_gigabytes": cost.bytes / 1e9,
        "largest_difference": max(float(np.abs(p - q).max()) for p, q in zip(found.probabilities, truth, strict=True)),
    }


def best(call: Callable[[], object], least: int = 3) -> float:
    """Return the least seconds of a few calls."""
    times: list[float] = []
    while len(times) < least or (sum(times) < SECONDS and len(times) < 30):
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


def one_by_one(call: Callable[[np.ndarray], object], rows: np.ndarray) -> float:
    """Return the median seconds of a query, over many different ones."""
    times: list[float] = []
    for r in range(min(200, len(rows))):
        start = clock()
        call(rows[r : r + 1])
        times.append(clock() - start)
        if sum(times) > SECONDS and (r >= CALLS or sum(times) > 5 * SECONDS):
            break
    return float(np.median(times))


def fresh_ones(make: Callable[[], object], call: Callable[[object, np.ndarray], object], rows: np.ndarray) -> float:
    """Return the median seconds of the first query to a new model or engine; making it counts."""
    times: list[float] = []
    for r in range(FRESH):
        start = clock()
        call(make(), rows[r : r + 1])
        times.append(clock() - start)
        if sum(times) > SECONDS:
            break
    return float(np.median(times))


def peer(net, engine: str, rows: np.ndarray, expected: np.ndarray, threads: str) -> Figures:
    """Build the network and the engine once; then set evidence, infer and read all posteriors."""
    import pyagrum as gum

    bn = gum.BayesNet()
    for index, node in enumerate(net.nodes):
        bn.add(gum.RangeVariable(f"v{index}", "", 0, node.cardinality - 1))
    for index, cpd in enumerate(net.cpds):
        for parent in reversed(cpd.parents):  # there the first parent runs fastest
            bn.addArc(parent, index)
    for index, cpd in enumerate(net.cpds):
        bn.cpt(index).fillWith(np.exp(cpd.log_parameters).ravel().tolist())

    def make():
        inference = getattr(gum, ENGINES[engine])(bn)
        if hasattr(inference, "setNumberOfThreads"):
            inference.setNumberOfThreads(1 if threads == "one" else len(os.sched_getaffinity(0)))
        return inference

    class SlowError(Exception):
        """A query took longer than LONGEST."""

    def ask(inference, row: np.ndarray) -> np.ndarray:
        inference.setEvidence({int(v): int(row[0, v]) for v in np.flatnonzero(row[0] >= 0)})
        inference.makeInference()
        found, start = [], time.perf_counter()
        for v in range(len(net.nodes)):
            found.append(np.atleast_1d(inference.posterior(v).toarray()))
            if time.perf_counter() - start > LONGEST:
                raise SlowError
        return np.concatenate(found)

    kept, difference, start = make(), 0.0, time.perf_counter()
    try:
        for r, posterior in enumerate(expected):
            difference = max(difference, float(np.abs(ask(kept, rows[r : r + 1]) - posterior).max()))
            if time.perf_counter() - start > SECONDS:
                break
        return {
            "one_ms": 1e3 * one_by_one(lambda row: ask(kept, row), rows),
            "first_ms": 1e3 * fresh_ones(make, ask, rows),
            "largest_difference": difference,
        }
    except SlowError:
        return {"over_ms": 1e3 * LONGEST, "largest_difference": difference}


if __name__ == "__main__":
    typer.run(main)
