"""Exact inference by circuits beside pyAgrum: time to compile, one query, batches of a thousand, and agreement.

Run it as ``python benchmarks/circuit_inference.py`` with TINYBAYES_DATA set to the directory of the networks. A query
observes each variable with probability 0.2, the values taken from one forward sample, and asks for all posteriors.
Everything is measured with one thread, and again with all cores for everybody.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from harness import Figures, provenance

NETWORKS = ("alarm", "insurance", "win95pts", "hailfinder", "hepar2", "andes", "pigs", "munin1")
ENGINES = {"LazyPropagation": "LazyPropagation", "ShaferShenoy": "ShaferShenoyInference"}
OBSERVED = 0.2
BATCH = 1000
SECONDS = 4.0  # for the repetitions of a measurement


def main(
    networks: Annotated[list[str] | None, typer.Option(help="Networks; all eight by default.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder for circuit_inference.json and .md.")] = None,
) -> None:
    """Compare circuits with pyAgrum's LazyPropagation and ShaferShenoy on the same networks and evidence."""
    packages = ["tinybayes", "numba", "numpy", "pyagrum"]
    result: Figures = {"provenance": {**provenance(packages), "observed": OBSERVED}, "runs": []}
    warm_up()
    for name in networks or NETWORKS:
        result["runs"].append(run(name))
        print(json.dumps(result["runs"][-1]), flush=True)
    result["provenance"]["load_after"] = os.getloadavg()[0]
    place = output or Path(__file__).parent / "results"
    place.mkdir(parents=True, exist_ok=True)
    (place / "circuit_inference.json").write_text(json.dumps(result, indent=1) + "\n")
    (place / "circuit_inference.md").write_text(markdown(result))


def warm_up() -> None:
    """Let Numba load or compile everything, on a network of its own."""
    from tinybayes.infer import compile_circuit
    from tinybayes.infer.circuit import log_evidence, posteriors, sample

    circuit = compile_circuit(read("asia"))
    rows = sample(circuit, 64, 0)
    for part in (rows, rows[:1]):
        log_evidence(circuit, part)
        posteriors(circuit, part)


def read(name: str):
    from tinybayes import load

    return load(Path(os.environ["TINYBAYES_DATA"]) / "networks" / "bif" / f"{name}.bif.gz")


def run(name: str) -> Figures:
    from tinybayes.infer import compile_circuit, estimate_width
    from tinybayes.infer.circuit import log_evidence, posteriors, sample

    net = read(name)
    start = time.perf_counter()
    circuit = compile_circuit(net)
    compiling = time.perf_counter() - start
    rng = np.random.default_rng(0)
    rows = sample(circuit, BATCH, 1)
    rows = np.where(rng.random(rows.shape) < OBSERVED, rows, -1)
    batch = rows if circuit.n_edges < 5_000_000 else rows[:96]  # one of the networks has very many edges
    figures: Figures = {
        "network": name,
        "variables": len(net.nodes),
        "width": estimate_width(net).treewidth,
        "compile_s": compiling,
        "nodes": circuit.n_nodes,
        "edges": circuit.n_edges,
        "batch_rows": len(batch),
    }
    posterior = posteriors(circuit, rows[:20])
    for threads in ("one", "all"):
        os.environ["TINYBAYES_THREADS"] = "1" if threads == "one" else ""  # read at every call
        up = best(lambda: log_evidence(circuit, batch)) / len(batch)
        both = best(lambda: posteriors(circuit, batch)) / len(batch)
        found: Figures = {
            "one_ms": 1e3 * one_by_one(lambda row: posteriors(circuit, row), rows),
            "batch_ms": 1e3 * both,
            "up_ns_edge": 1e9 * up / circuit.n_edges,
            "down_ns_edge": 1e9 * (both - up) / circuit.n_edges,
        }
        for engine in ENGINES:
            found[engine] = peer(net, engine, rows, posterior, threads)
        quickest = min(found[engine]["one_ms"] for engine in ENGINES)
        found["times_one"], found["times_batch"] = quickest / found["one_ms"], quickest / found["batch_ms"]
        figures[threads] = found
    return figures


def best(call: Callable[[], object]) -> float:
    """Return the least seconds of a few calls."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < SECONDS and len(times) < 30):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def one_by_one(call: Callable[[np.ndarray], object], rows: np.ndarray) -> float:
    """Return the median seconds of a query, over many different ones."""
    times: list[float] = []
    for r in range(min(200, len(rows))):
        start = time.perf_counter()
        call(rows[r : r + 1])
        times.append(time.perf_counter() - start)
        if r >= 10 and sum(times) > SECONDS:
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

    ask(rows[:1])
    difference = max(float(np.abs(ask(rows[r : r + 1]) - expected[r]).max()) for r in range(len(expected)))
    return {"one_ms": 1e3 * one_by_one(ask, rows), "largest_difference": difference}


def markdown(result: Figures) -> str:
    about = result["provenance"]
    lines = [
        "# Exact inference by circuits",
        "",
        "Written by `benchmarks/circuit_inference.py` from `circuit_inference.json`. Every query observes 20 % of the",
        "variables, with values from a forward sample, and asks for the posteriors of all. Milliseconds a query; ours",
        f"one at a time and in batches of {BATCH:,} rows (munin1: 96), pyAgrum's engines built once. Nanoseconds an",
        "edge, row and pass are those of the batches.",
        "",
        f"- {about['date']}, `{about['command']}`, commit {about['commit']}",
        f"- {about['cpu']}, {about['cores']} cores, {about['system']}, load {about['load_before']:.2f} before and "
        f"{about['load_after']:.2f} after",
        f"- Python {about['python']}, {', '.join(f'{k} {v}' for k, v in about['packages'].items())}",
    ]
    for threads, title in (("one", "One thread"), ("all", "All cores")):
        lines += [
            "",
            f"## {title}",
            "",
            "| network | width | edges | compile s | one ms | Lazy ms | Shafer ms | times | batch ms | times | up ns "
            "| down ns | largest difference |",
            "|---|" + "---:|" * 12,
            *(row(run, run[threads]) for run in result["runs"]),
        ]
    return "\n".join(lines) + "\n"


def row(run: Figures, found: Figures) -> str:
    lazy, shafer = found["LazyPropagation"], found["ShaferShenoy"]
    difference = max(lazy["largest_difference"], shafer["largest_difference"])
    return (
        f"| {run['network']} | {run['width']} | {run['edges']:,} | {run['compile_s']:.2f} | {found['one_ms']:.3f} "
        f"| {lazy['one_ms']:.2f} | {shafer['one_ms']:.2f} | {found['times_one']:.1f} | {found['batch_ms']:.4f} "
        f"| {found['times_batch']:.0f} | {found['up_ns_edge']:.3f} | {found['down_ns_edge']:.3f} | {difference:.1e} |"
    )


if __name__ == "__main__":
    typer.run(main)
