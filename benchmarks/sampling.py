"""Approximate marginals: python benchmarks/sampling.py [--part grids|networks] [--seconds 1 10 60] [--only fs-04].

Grids: directed 10 x 10 networks with tied tables, and undirected ones with tied couplings. The time until the mean
Hellinger distance to the exact marginals is below 0.003: a method is called with growing budgets, each half as long
again as the one before, until the median over the seeds is below it; the time is that of the call.

Networks: those of the UAI competitions with the evidence given, at 1, 10 and 60 s a call: the default (`tied`), the
same with `draw` (it samples even where it could be exact), our Gibbs, MC-SAT and likelihood weighting, and pyAgrum's
samplers, each in a process of its own. One thread for everybody. Peers that failed, or took far longer than they were
given, are named so. To save hours, of ours and of the peers' only the best after 10 s, besides the default, is run for
60 s.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import provenance

from tinybayes import marginals, tie
from tinybayes.deploy.files.uai import read_evidence, read_uai
from tinybayes.deploy.files.uai_marginals import read_marginals
from tinybayes.errors import TinybayesError
from tinybayes.infer import hellinger
from tinybayes.model import CPD, BayesNet, Factor, Float, LogLinear, Variable

GOAL = 0.003
SIDE = 10
LEVELS = 8
CASES = [
    ("students_03_02-0000", "rand20"),
    ("students_03_02-0000", "sinks"),
    ("fs-04", "rand20"),
    ("fs-04", "sinks"),
    ("50-14-1", "rand20"),
    ("50-14-1", "sinks"),
    ("75-18-1", "rand20"),
    ("90-20-1", "rand20"),
]
OURS: dict[str, dict[str, Any]] = {
    "tied": {"method": "tied"},
    "tied, drawn": {"method": "tied", "draw": True},
    "gibbs": {"method": "gibbs"},
    "mcsat": {"method": "mcsat"},
    "lw": {"method": "lw"},
}
PEERS = [
    "GibbsSampling",
    "ImportanceSampling",
    "WeightedSampling",
    "LoopyGibbsSampling",
    "LoopyImportanceSampling",
    "LoopyWeightedSampling",
]
GRID_METHODS = {
    "tied": {"method": "tied"},
    "tied, drawn": {"method": "tied", "draw": True},
    "gibbs": {"method": "gibbs"},
    "gibbs, 100 sweeps of burn-in": {"method": "gibbs", "burn_in": 100},
    "lw": {"method": "lw"},
}
Record = dict[str, Any]


def directed(seed: int) -> BayesNet:
    """Make a grid whose nodes depend on those above and to the left, tied to a few levels."""
    rng, cpds = np.random.default_rng(seed), []
    for r in range(SIDE):
        for c in range(SIDE):
            parents = ([(r - 1) * SIDE + c] if r else []) + ([r * SIDE + c - 1] if c else [])
            one = rng.beta(0.6, 0.6, 2 ** len(parents)).clip(0.01, 0.99)
            cpds.append(CPD(tuple(parents), np.log(np.stack([1 - one, one], axis=1)), Float(64)))
    net = BayesNet(tuple(Variable(f"x{k}", (0, 1)) for k in range(SIDE**2)), None, tuple(cpds))
    return tie(net, LEVELS).model


def undirected(seed: int) -> LogLinear:
    """Make a grid with couplings and fields from a few tied weights."""
    rng = np.random.default_rng(seed)
    factors: list[Factor] = []
    for v in range(SIDE**2):
        factors.append(Factor((v,), np.array([-1, len(factors)])))
        for u in ([v + 1] if (v + 1) % SIDE else []) + ([v + SIDE] if v + SIDE < SIDE**2 else []):
            factors.append(Factor((v, u), np.array([len(factors), -1, -1, len(factors)])))
    ties = rng.integers(0, LEVELS, len(factors))
    variables = tuple(Variable(f"x{k}", (0, 1)) for k in range(SIDE**2))
    return LogLinear(variables, tuple(factors), rng.normal(0, 0.8, LEVELS), ties)


def time_to_goal(model: BayesNet | LogLinear, options: Record, seeds: int, longest: float) -> Record:
    """Return the least time of a call with which the median distance is below the goal."""
    truth = marginals(model, method="exact").probabilities
    for _ in range(2):
        marginals(model, seconds=0.05, **options)  # compiles, and lays the model out
    budget = 0.002
    while budget < longest:
        times, distances = [], []
        for seed in range(seeds):
            began = time.perf_counter()
            answer = marginals(model, seconds=budget, seed=seed, **options)
            times.append(time.perf_counter() - began)
            distances.append(hellinger(answer.probabilities, truth))
        if np.median(distances) < GOAL:
            took = float(np.median(times))
            return {"seconds": round(took, 5), "hellinger": float(np.median(distances)), "exact": answer.exact}
        budget *= 1.5
    return {"seconds": None, "over": longest, "hellinger": float(np.median(distances))}


def grids(seeds: int, longest: float) -> list[Record]:
    results = []
    for kind, make in (("directed", directed), ("undirected", undirected)):
        for seed in range(5):
            model = make(seed)
            found = {name: time_to_goal(model, options, seeds, longest) for name, options in GRID_METHODS.items()}
            results.append({"grid": kind, "seed": seed, **found})
            print(json.dumps(results[-1]), flush=True)
    return results


def network_case(name: str, case: str, budgets: list[float], peers: bool) -> list[Record]:
    """Run everybody on one network with one set of observations."""
    place = Path(os.environ["TINYBAYES_DATA"]) / "networks"
    net = read_uai(place / f"{name}.uai")
    truth = read_marginals(place / "truth" / f"{name}.{case}.MAR")
    known = read_evidence(place / "truth" / f"{name}.{case}.evid")[0]
    over = [v for v in range(len(truth)) if v not in known]
    results: list[Record] = []
    left = {"ours": list(OURS), "peers": list(PEERS) if peers else []}
    for seconds in budgets:
        for kind, methods in left.items():
            done = []
            for method in methods:
                if kind == "ours":
                    found = ours(net, known, OURS[method], seconds, truth, over)
                else:
                    found = peer(method, name, case, seconds)
                if "hellinger" in found:
                    done.append((found["hellinger"], method))
                label = method if kind == "ours" else f"pyAgrum {method}"
                results.append({"network": name, "case": case, "method": label, "budget": seconds, **found})
                print(json.dumps(results[-1]), flush=True)
            left[kind] = [method for _, method in done]  # who failed is not asked again
            if len(budgets) > 2 and seconds == budgets[-2]:  # the default and the best of the others go on
                best = [method for _, method in sorted(done) if method != "tied"][:1]
                left[kind] = ["tied", *best] if kind == "ours" else best
    return results


def ours(net: BayesNet, known: dict[int, int], options: Record, seconds: float, truth: Any, over: list[int]) -> Record:
    with contextlib.suppress(TinybayesError):  # compiles; none of a few samples may agree with the evidence
        marginals(net, known, samples=1024, **options)
    try:
        answer = marginals(net, known, seconds=seconds, **options)
    except TinybayesError as problem:
        return {"failed": str(problem)[:200]}
    distance = hellinger(answer.probabilities, truth, over)
    return {
        "hellinger": float(f"{distance:.4g}"),
        "seconds": round(answer.seconds, 4),
        "samples": answer.samples,
        "exact": answer.exact,
    }


def peer(engine: str, name: str, case: str, seconds: float) -> Record:
    """Run a sampler of pyAgrum in a process of its own."""
    command = [sys.executable, __file__, "--peer", json.dumps([engine, name, case, seconds])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * seconds + 30, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"over {2 * seconds + 30:.0f} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:200]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_peer(engine: str, name: str, case: str, seconds: float) -> None:
    import pyagrum as gum

    place = Path(os.environ["TINYBAYES_DATA"]) / "networks"
    net = read_uai(place / f"{name}.uai")
    truth = read_marginals(place / "truth" / f"{name}.{case}.MAR")
    known = read_evidence(place / "truth" / f"{name}.{case}.evid")[0]
    gum.setNumberOfThreads(1)
    bn = gum.BayesNet()
    for node in net.nodes:
        bn.add(gum.LabelizedVariable(node.name, node.name, node.cardinality))
    for v, cpd in enumerate(net.cpds):
        for parent in cpd.parents:
            bn.addArc(net.nodes[parent].name, net.nodes[v].name)
        sizes = [net.nodes[p].cardinality for p in cpd.parents]
        for row, values in enumerate(np.ndindex(*sizes)):
            where = {net.nodes[p].name: value for p, value in zip(cpd.parents, values, strict=True)}
            bn.cpt(net.nodes[v].name)[where] = np.exp(cpd.log_parameters[row]).tolist()
    sampler = getattr(gum, engine)(bn)
    sampler.setEvidence({net.nodes[v].name: state for v, state in known.items()})
    sampler.setEpsilon(1e-300)
    sampler.setMinEpsilonRate(1e-300)
    sampler.setMaxIter(2**31 - 1)
    sampler.setMaxTime(seconds)
    began = time.perf_counter()
    sampler.makeInference()
    took = time.perf_counter() - began
    found = [np.asarray(sampler.posterior(node.name).tolist()) for node in net.nodes]
    found = [np.nan_to_num(part, nan=1.0 / len(part)) for part in found]
    distance = hellinger(found, truth, [v for v in range(len(truth)) if v not in known])
    samples = sampler.nbrIterations()
    print(json.dumps({"hellinger": float(f"{distance:.4g}"), "seconds": round(took, 3), "samples": samples}))


def page(report: Record) -> str:
    """Write what was measured as tables."""
    lines = ["# Approximate marginals", "", "Written by `benchmarks/sampling.py` from `sampling.json`. One thread."]
    if "grids" in report:
        lines += ["", "## Time to a Hellinger distance of 0.003, 10 x 10 grids", "", *_about(report["grids"])]
        lines += [
            "Seconds of a call; median over the seeds. *x* is the time of Gibbs divided by that of the default.",
            "",
        ]
        lines += [f"| grid | {' | '.join(GRID_METHODS)} | x |", "|---|" + "---:|" * (len(GRID_METHODS) + 1)]
        for run in report["grids"]["results"]:
            cells = [_seconds(run[name]) for name in GRID_METHODS]
            times = [run[name]["seconds"] or run[name]["over"] for name in GRID_METHODS if name.startswith("gibbs")]
            ratio = f"{min(times) / run['tied']['seconds']:.1f}"
            lines.append(f"| {run['grid']} {run['seed']} | {' | '.join(cells)} | {ratio} |")
    if "networks" in report:
        results = report["networks"]["results"]
        budgets = sorted({run["budget"] for run in results})
        lines += ["", "## Networks with evidence", "", *_about(report["networks"])]
        lines += [
            "Mean Hellinger distance over the variables not observed, after so many seconds (in brackets: the call "
        ]
        lines[-1] += "took less, since the answer was exact)."
        lines += [
            "",
            f"| network | method | {' | '.join(f'{b:g} s' for b in budgets)} |",
            "|---|---|" + "---:|" * len(budgets),
        ]
        cells_of: dict[tuple[str, str], dict[float, str]] = {}
        for run in results:
            cell = run.get("failed") or f"{run['hellinger']:.2g}"
            if run.get("exact"):
                cell += f" ({run['seconds']:.3f} s)"
            cells_of.setdefault((f"{run['network']}.{run['case']}", run["method"]), {})[run["budget"]] = cell
        for (network, method), cells in cells_of.items():
            lines.append(f"| {network} | {method} | {' | '.join(cells.get(b, '') for b in budgets)} |")
    return "\n".join(lines) + "\n"


def _about(part: Record) -> list[str]:
    versions = ", ".join(f"{name} {number}" for name, number in part["packages"].items())
    machine = f"{part['cpu']}, {part['cores']} cores, {part['system']}"
    load = f"load {part['load_before']:.2f} before and {part['load_after']:.2f} after"
    return [
        f"- {part['date']}, `{part['command']}`, commit {part['commit']}",
        f"- {machine}, {load}",
        f"- Python {part['python']}, {versions}",
        "",
    ]


def _seconds(found: Record) -> str:
    return f"over {found['over']:g}" if found["seconds"] is None else f"{found['seconds']:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=["grids", "networks"], help="only one of the two")
    parser.add_argument("--seconds", type=float, nargs="+", default=[1.0, 10.0, 60.0])
    parser.add_argument("--only", nargs="+", help="networks")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--longest", type=float, default=20.0, help="seconds after which a grid is given up")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "sampling.json")
    options = parser.parse_args()
    os.environ["TINYBAYES_THREADS"] = "1"
    if options.peer:
        run_peer(*json.loads(options.peer))
        return
    report: Record = json.loads(options.output.read_text()) if options.output.exists() else {}
    peers = importlib.util.find_spec("pyagrum") is not None
    about = provenance(["tinybayes", "pyagrum", "numba", "numpy"])
    if options.part != "networks":
        report["grids"] = {**about, "results": grids(options.seeds, options.longest)}
        report["grids"]["load_after"] = os.getloadavg()[0]
        options.output.write_text(json.dumps(report, indent=1) + "\n")
    for name, case in CASES if options.part != "grids" else []:
        earlier = report.setdefault("networks", {"results": []})
        if (options.only and name not in options.only) or any(
            (run["network"], run["case"]) == (name, case) for run in earlier["results"]
        ):
            continue  # cases that are done are kept, and not run again
        results = earlier["results"] + network_case(name, case, options.seconds, peers)
        report["networks"] = {**about, "load_after": os.getloadavg()[0], "results": results}
        options.output.write_text(json.dumps(report, indent=1) + "\n")
        options.output.with_suffix(".md").write_text(page(report))
    options.output.with_suffix(".md").write_text(page(report))


if __name__ == "__main__":
    main()
