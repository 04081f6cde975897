"""Exact inference beside pyAgrum: circuits, join trees, one query, batches of a thousand, and agreement.

Run it as ``python benchmarks/circuit_inference.py`` with TINYBAYES_DATA set to the directory of the networks. A query
observes each variable with probability 0.2, the values taken from one forward sample, and asks for all posteriors. A
join tree is made for every query: evidence, order, tables and passes are in its time. Everything is measured with one
thread, by the CPU time that it takes, and again with all cores for everybody, by the clock. Then come the networks that
no circuit of 50 million edges holds, each in a process of its own with all cores, beside their marginals to six digits.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from harness import Figures, provenance

NETWORKS = ("asia", "cancer", "child", "alarm", "insurance", "win95pts", "hailfinder", "hepar2", "andes", "pigs")
NETWORKS += ("munin1", "water", "mildew", "diabetes", "barley")
HARD = ("CSP_11", "DBN_12", "Grids_15", "linkage_14")
ENGINES = {
    "LazyPropagation": "LazyPropagation",
    "ShaferShenoy": "ShaferShenoyInference",
    "VariableElimination": "VariableElimination",
}
TITLES = {"one": "One thread, CPU time", "all": "All cores, by the clock"}
FEW = 100  # variables of a network that VariableElimination is asked about
OBSERVED = 0.2
BATCH = 1000
SECONDS = 4.0  # for the repetitions of a measurement
clock = time.perf_counter  # of the measurements: CPU time for one thread
CALLS = 10  # of a query at least, unless they take long
EDGES = 5_000_000  # of circuits that are compiled here; larger ones answer no faster than a join tree


def main(
    networks: Annotated[list[str] | None, typer.Option(help="Networks; all fifteen by default.")] = None,
    hard: Annotated[list[str] | None, typer.Option(help="Networks without a circuit; all four by default.")] = None,
    threads: Annotated[
        list[str] | None, typer.Option(help="one: CPU time, also on a busy machine; all: the clock. Both by default.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="For the repetitions of a measurement.")] = None,
    one: Annotated[str | None, typer.Option(help="Print the figures of one network without a circuit.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder for circuit_inference.json and .md.")] = None,
) -> None:
    """Compare circuits and join trees with pyAgrum's engines on the same networks and evidence."""
    global SECONDS
    SECONDS = seconds or SECONDS
    if one is not None:
        print(json.dumps(run_hard(one)))
        return
    packages = ["tinybayes", "numba", "numpy", "pyagrum"]
    result: Figures = {"provenance": {**provenance(packages), "observed": OBSERVED}, "runs": [], "hard": []}
    warm_up()
    for name in networks or NETWORKS:
        result["runs"].append(run(name, threads or list(TITLES)))
        print(json.dumps(result["runs"][-1]), flush=True)
    for name in hard or HARD:
        done = subprocess.run([sys.executable, __file__, "--one", name], capture_output=True, text=True, check=True)
        result["hard"].append(json.loads(done.stdout))
        print(done.stdout, end="", flush=True)
    result["provenance"]["load_after"] = os.getloadavg()[0]
    place = output or Path(__file__).parent / "results"
    place.mkdir(parents=True, exist_ok=True)
    (place / "circuit_inference.json").write_text(json.dumps(result, indent=1) + "\n")
    (place / "circuit_inference.md").write_text(markdown(result))


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


def read(name: str):
    from tinybayes import load

    return load(Path(os.environ["TINYBAYES_DATA"]) / "networks" / "bif" / f"{name}.bif.gz")


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
    from tinybayes.infer import compile_circuit, estimate_width, inference_costs, marginals
    from tinybayes.infer.circuit import log_evidence, posteriors

    net = read(name)
    rows = forward(net, BATCH, 1)
    rows = np.where(np.random.default_rng(0).random(rows.shape) < OBSERVED, rows, -1)
    figures: Figures = {"network": name, "variables": len(net.nodes), "width": estimate_width(net).treewidth}
    start = time.perf_counter()
    try:
        circuit = compile_circuit(net, max_edges=EDGES)
        figures |= {"compile_s": time.perf_counter() - start, "nodes": circuit.n_nodes, "edges": circuit.n_edges}
        expected = posteriors(circuit, rows[:20])
    except TinybayesError:
        circuit = None
        figures["refused_s"] = time.perf_counter() - start

    def by_tree(row: np.ndarray) -> np.ndarray:
        return np.concatenate(marginals(net, row[0], method="join-tree").probabilities)

    trees = np.stack([by_tree(rows[r : r + 1]) for r in range(20)])
    if circuit is not None:
        figures["join_tree_difference"] = float(np.abs(trees - expected).max())
    for threads in kinds:
        os.environ["TINYBAYES_THREADS"] = "1" if threads == "one" else ""  # read at every call
        clock = time.process_time if threads == "one" else time.perf_counter
        found: Figures = {"tree_ms": 1e3 * one_by_one(by_tree, rows)}
        whole = inference_costs(net)[1]
        found |= {"whole_estimate_s": whole.seconds, "whole_s": best(lambda: marginals(net, method="join-tree"))}
        if circuit is not None:
            up = best(lambda: log_evidence(circuit, rows)) / len(rows)
            both = best(lambda: posteriors(circuit, rows)) / len(rows)
            found |= {
                "one_ms": 1e3 * one_by_one(lambda row: posteriors(circuit, row), rows),
                "batch_ms": 1e3 * both,
                "up_ns_edge": 1e9 * up / circuit.n_edges,
                "down_ns_edge": 1e9 * (both - up) / circuit.n_edges,
            }
        engines = [engine for engine in ENGINES if engine != "VariableElimination" or len(net.nodes) <= FEW]
        found |= {engine: peer(net, engine, rows, trees, threads) for engine in engines}
        quickest = min(found[engine]["one_ms"] for engine in engines)
        found["times_tree"] = quickest / found["tree_ms"]
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
    cost = inference_costs(model, known)[1]
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


def best(call: Callable[[], object]) -> float:
    """Return the least seconds of a few calls."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < SECONDS and len(times) < 30):
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
    inference = getattr(gum, ENGINES[engine])(bn)
    if hasattr(inference, "setNumberOfThreads"):
        inference.setNumberOfThreads(1 if threads == "one" else len(os.sched_getaffinity(0)))

    def ask(row: np.ndarray) -> np.ndarray:
        inference.setEvidence({int(v): int(row[0, v]) for v in np.flatnonzero(row[0] >= 0)})
        inference.makeInference()
        return np.concatenate([np.atleast_1d(inference.posterior(v).toarray()) for v in range(len(net.nodes))])

    difference, start = 0.0, time.perf_counter()
    for r, posterior in enumerate(expected):
        difference = max(difference, float(np.abs(ask(rows[r : r + 1]) - posterior).max()))
        if time.perf_counter() - start > SECONDS:
            break
    return {"one_ms": 1e3 * one_by_one(ask, rows), "largest_difference": difference}


def markdown(result: Figures) -> str:
    about = result["provenance"]
    lines = [
        "# Exact inference by circuits and join trees",
        "",
        "Written by `benchmarks/circuit_inference.py` from `circuit_inference.json`. Every query observes 20 % of the",
        "variables, with values from a forward sample, and asks for the posteriors of all. Milliseconds a query: a",
        "*tree* is made for each query; a *circuit* is compiled once, where it has at most 5,000,000 edges, and asked",
        f"one at a time and in batches of {BATCH:,} rows; pyAgrum's engines are built once, VariableElimination for up",
        f"to {FEW} variables, since it takes seconds a query for more. *Times*: how many times as fast as the fastest",
        "engine of pyAgrum. Nanoseconds an edge, row and pass are those of the batches.",
        "",
        f"- {about['date']}, `{about['command']}`, commit {about['commit']}",
        f"- {about['cpu']}, {about['cores']} cores, {about['system']}, load {about['load_before']:.2f} before and "
        f"{about['load_after']:.2f} after",
        f"- Python {about['python']}, {', '.join(f'{k} {v}' for k, v in about['packages'].items())}",
    ]
    for threads, title in TITLES.items():
        if threads not in result["runs"][0]:
            continue
        lines += [
            "",
            f"## {title}",
            "",
            "| network | width | edges | compile s | tree ms | circuit ms | Lazy ms | Shafer ms | Elimination ms "
            "| times, tree | times, circuit | batch ms | times, batch | up ns | down ns | largest difference |",
            "|---|" + "---:|" * 15,
            *(row(run, run[threads]) for run in result["runs"]),
        ]
    lines += [
        "",
        "## Networks that no circuit of 50,000,000 edges holds",
        "",
        "The time of `marginals`, which makes and calibrates the join tree on all cores: by the clock, and CPU time",
        "of all threads. The estimate is by the clock of an idle machine. The truth has six digits.",
        "",
        "| network | variables | width | method | s | CPU s | estimate s | peak GB | estimate GB "
        "| largest difference |",
        "|---|---:|---:|---|" + "---:|" * 6,
        *(
            f"| {run['network']} | {run['variables']} | {run['width']} | {run['method']} | {run['seconds']:.1f} "
            f"| {run['cpu_s']:.1f} "
            f"| {run['estimate_s']:.1f} | {run['gigabytes']:.2f} | {run['estimate_gigabytes']:.2f} "
            f"| {run['largest_difference']:.1e} |"
            for run in result["hard"]
        ),
        "",
        "## Estimates",
        "",
        "All marginals without evidence, by one join tree: estimated and measured seconds, with the threads above.",
        "",
        "| network | estimate s | s |",
        "|---|---:|---:|",
        *(
            f"| {run['network']} | {run[threads]['whole_estimate_s']:.4f} | {run[threads]['whole_s']:.4f} |"
            for run in result["runs"]
            for threads in TITLES
            if threads in run
        ),
    ]
    return "\n".join(lines) + "\n"


def row(run: Figures, found: Figures) -> str:
    engines = [found.get(engine) for engine in ENGINES]
    difference = max(engine["largest_difference"] for engine in engines if engine)
    edges, compiled = (f"{run['edges']:,}", f"{run['compile_s']:.2f}") if "edges" in run else ("-", "-")
    circuit = dict.fromkeys(("one_ms", "times_one", "batch_ms", "times_batch", "up_ns_edge", "down_ns_edge"), "-")
    digits = {"one_ms": 3, "times_one": 1, "batch_ms": 4, "times_batch": 0, "up_ns_edge": 3, "down_ns_edge": 3}
    circuit |= {key: f"{found[key]:.{places}f}" for key, places in digits.items() if key in found}
    times = " | ".join(f"{engine['one_ms']:.2f}" if engine else "-" for engine in engines)
    return (
        f"| {run['network']} | {run['width']} | {edges} | {compiled} | {found['tree_ms']:.2f} | {circuit['one_ms']} "
        f"| {times} | {found['times_tree']:.1f} | {circuit['times_one']} | {circuit['batch_ms']} "
        f"| {circuit['times_batch']} | {circuit['up_ns_edge']} | {circuit['down_ns_edge']} | {difference:.1e} |"
    )


if __name__ == "__main__":
    typer.run(main)
