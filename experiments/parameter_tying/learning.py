"""Table 1 and Figure 1: python -m experiments.parameter_tying.learning.

Rows are drawn from a network, its tables are learned again from them, tied to k levels and relearned. Each set of rows
is appended to results/learning.jsonl and not repeated; at the end results/learning.json sums up.

Sets are drawn ten at a time for every network and every way of dealing with zeros, so that a run that is ended early
leaves about as many of each. `--exact` goes through the levels of one set after the other.

Every model is one vector of weights, one a feature (an entry of a table), and the counts of the features in the rows
are taken once, so that a mean log-likelihood is a scalar product less ``log Z``. One circuit for each network and each
way of dealing with zeros gives ``log Z`` of all of them.
"""

import argparse
import os
import time
import tomllib
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from experiments.parameter_tying.friends import friends_and_smokers
from experiments.provenance import provenance
from experiments.store import Record, append_line, pack, read_lines, read_report, write_report
from tinybayes import TinybayesError, relearn, tie
from tinybayes.deploy.files.uai import read_uai
from tinybayes.infer import compile_circuit
from tinybayes.infer.circuit_passes import ExpectedCounts
from tinybayes.learn.ties.relearn import MAX_RELEARN_EDGES
from tinybayes.model import CPD, BayesNet, Circuit, Dataset, Float, LogLinear

HERE = Path(__file__).parent
ZEROS = ("smoothed", "tuned", "known")
EXACT = "smoothed, exact"  # smoothed, on fewer sets, since its circuit is large
LARGE = 1_000_000  # edges of a circuit for which exact relearning takes minutes
BLOCK = 10  # sets of one network and one way of dealing with zeros, before the next has its turn
METHODS = ("quantised", "quantised rows", "relearned", "relearned rows")


def forward(net: BayesNet, n: int, seed: int) -> np.ndarray:
    """Draw rows, parents before children."""
    rng, X = np.random.default_rng(seed), np.zeros((n, len(net.nodes)), dtype=np.int32)
    for node in net.structure.order:
        cpd, row = net.cpds[node], np.zeros(n, dtype=np.int64)
        for parent in cpd.parents:
            row = row * net.nodes[parent].cardinality + X[:, parent]
        edges = np.cumsum(np.exp(cpd.log_parameters), axis=1)[row]
        X[:, node] = (rng.random((n, 1)) * edges[:, -1:] >= edges[:, :-1]).sum(axis=1)
    return X


def learned(net: BayesNet, counts: np.ndarray, zeros: str, smoothing: float = 1.0) -> BayesNet:
    """Learn the tables from counts, `smoothing` added to each entry; if zeros are known, to each that is not zero."""
    cpds, start = [], 0
    for cpd in net.cpds:
        table = counts[start : start + cpd.table.size].reshape(cpd.table.shape) + smoothing
        start += cpd.table.size
        if zeros == "known":
            table = table * np.isfinite(cpd.log_parameters)
        with np.errstate(divide="ignore"):
            logs = np.log(table / table.sum(axis=1, keepdims=True))
        cpds.append(CPD(cpd.parents, logs.astype(np.float32), Float()))
    return BayesNet(net.variables, net.target, tuple(cpds))


class Judge:
    """Likelihoods and errors of models of one structure, given as weights of features."""

    def __init__(
        self, true: BayesNet, counts: dict[str, np.ndarray], rows: dict[str, int], exact: ExpectedCounts | None
    ):
        self.widths = np.repeat([c.table.shape[1] for c in true.cpds], [c.table.shape[0] for c in true.cpds])
        self.first = np.cumsum(self.widths) - self.widths
        self.truth = np.exp(flat(true))
        self.counts, self.rows, self.exact = counts, rows, exact

    def normalized(self, weights: np.ndarray) -> np.ndarray:
        """Divide every row of the tables by its sum."""
        sums = np.log(np.add.reduceat(np.exp(weights), self.first))
        return weights - np.repeat(sums, self.widths)

    def record(self, weights: np.ndarray) -> Record | None:
        """Return the mean log-likelihoods of a model, and the mean error of its conditional probabilities.

        None when its rows do not sum to one and ``log Z`` is out of reach.
        """
        p, log_z = np.exp(weights), 0.0
        if not np.allclose(np.add.reduceat(p, self.first), 1.0, rtol=0, atol=1e-5):
            if self.exact is None:
                return None
            log_z, expected = self.exact(weights)
            # P(x | parents) of the distribution; where the parents cannot be so, that of the row itself.
            used = np.repeat(np.add.reduceat(expected, self.first), self.widths)
            row = np.exp(self.normalized(weights))
            p = np.where(used > 1e-12, expected / np.maximum(used, 1e-300), row)
        figures = {"error": round(float(np.abs(p - self.truth).mean()), 7)}
        return figures | {part: round(self.likelihood(weights, part) - log_z, 6) for part in self.counts}

    def likelihood(self, weights: np.ndarray, part: str) -> float:
        """Return the mean log-likelihood of rows but for ``log Z``."""
        seen = self.counts[part] > 0
        return float(self.counts[part][seen] @ weights[seen]) / self.rows[part]


def flat(net: BayesNet) -> np.ndarray:
    return np.concatenate([cpd.log_parameters.reshape(-1) for cpd in net.cpds])


def one_set(
    true: BayesNet, zeros: str, number: int, levels: list[int], plan: Record, circuit: Circuit | None
) -> Record:
    """Draw a set, learn, tie and relearn."""
    began = time.perf_counter()
    parts = ("train", "valid", "test")
    X = np.split(forward(true, sum(plan[p] for p in parts), number), np.cumsum([plan[p] for p in parts])[:-1])
    features = LogLinear.from_bayes_net(true)
    counts = {part: features.counts(rows) for part, rows in zip(parts, X, strict=True)}
    judge = Judge(true, counts, plan, None if circuit is None else ExpectedCounts(circuit))
    tried = [learned(true, counts["train"], zeros, one) for one in (plan["smoothing"] if zeros == "tuned" else [1.0])]
    first = max(tried, key=lambda net: judge.likelihood(flat(net), "valid"))
    data = Dataset(true.variables, None, X[0])
    record: Record = {"true": judge.record(flat(true)), "mle": judge.record(flat(first)), "ties": []}
    distinct = len(np.unique(flat(first)))
    for k in levels:
        if k <= distinct:
            record["ties"].append(one_tie(first, k, data, circuit, judge))
    return {**record, "distinct": distinct, "seconds": round(time.perf_counter() - began, 2)}


def one_tie(first: BayesNet, k: int, data: Dataset, circuit: Circuit | None, judge: Judge) -> Record:
    tied = tie(first, k)
    rows = relearn(tied.model, data, normalized=True)
    record: Record = {
        "levels": k,
        "bound": tied.bound,
        "table_bound": tied.table_bound,
        "quantised": judge.record(flat(tied.model)),
        "quantised rows": judge.record(judge.normalized(flat(tied.model))),
        "relearned rows": judge.record(flat(rows.model)),
        "rows": {"steps": rows.steps, "converged": rows.converged, "seconds": round(rows.seconds, 3)},
        "relearned": None,
    }
    if circuit is not None:
        again = relearn(tied.model, data, circuit=circuit)
        record["relearned"] = judge.record(flat(again.model))
        record["exact"] = {"steps": again.steps, "converged": again.converged, "seconds": round(again.seconds, 3)}
    return record


def circuit_of(net: BayesNet) -> Circuit | None:
    """Compile a network for all weights of its features, or give up."""
    try:
        return compile_circuit(LogLinear.from_bayes_net(net), by="feature", max_edges=MAX_RELEARN_EDGES)
    except TinybayesError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="a network; may be repeated")
    parser.add_argument("--quick", action="store_true", help="two sets and few levels, results not kept")
    parser.add_argument("--zeros", action="append", choices=ZEROS, help="a way to deal with zeros; may be repeated")
    parser.add_argument(
        "--exact", action="store_true", help="relearn with smoothed zeros by circuits of millions of edges"
    )
    parser.add_argument("--sum-up", action="store_true", help="write the report of what is done")
    options = parser.parse_args()
    plan = tomllib.loads((HERE / "learning.toml").read_text())
    folder = Path(os.environ["TINYBAYES_DATA"]) / "networks"
    store = HERE / "results" / ("learning-quick.jsonl" if options.quick else "learning.jsonl")
    done = read_lines(store)
    if not options.sum_up:
        names = options.only or list(plan["networks"])
        if options.exact:
            relearn_smoothed(plan, folder, names, done, store)
        else:
            draw_sets(plan, folder, names, done, store, options.zeros or ZEROS, quick=options.quick)
    if not options.quick:
        sum_up(plan, folder, done)


def network(plan: Record, name: str, folder: Path) -> BayesNet:
    """Return a network of the plan: read from its file, or generated."""
    own = plan["networks"][name]
    return friends_and_smokers(own["people"]) if "people" in own else read_uai(folder / own["file"])


def draw_sets(
    plan: Record, folder: Path, names: list[str], done: list[Record], store: Path, kinds: Sequence[str], *, quick: bool
) -> None:
    """Do the sets that the store lacks; circuits of millions of edges are left to `relearn_smoothed`."""
    known = {(r["network"], r["zeros"], r["set"]) for r in done}
    sets, nets = 2 if quick else plan["sets"], {name: network(plan, name, folder) for name in names}
    circuits = cache(lambda name, zeros: circuit_for(nets[name], zeros))
    for block, name, zeros in product(range(0, sets, BLOCK), names, kinds):
        todo = [s for s in range(block, min(block + BLOCK, sets)) if (name, zeros, s) not in known]
        if not todo:
            continue
        true, levels = nets[name], plan["networks"][name]["levels"]
        levels = [] if zeros == "tuned" else levels[::4] if quick else levels
        circuit = None if zeros == "tuned" else circuits(name, zeros)
        for number in todo:
            record = one_set(true, zeros, number, levels, plan, circuit)
            append(store, done, {"network": name, "zeros": zeros, "set": number, **record})


def circuit_for(true: BayesNet, zeros: str) -> Circuit | None:
    """Compile a network with its zeros known or smoothed; with smoothed zeros only if the circuit stays small."""
    circuit = circuit_of(learned(true, np.zeros(flat(true).size), zeros))
    return None if circuit is not None and zeros == "smoothed" and circuit.n_edges > LARGE else circuit


def relearn_smoothed(plan: Record, folder: Path, names: list[str], done: list[Record], store: Path) -> None:
    """Relearn exactly with smoothed zeros by large circuits, one level after the other on the first sets."""
    nets = {name: network(plan, name, folder) for name in names}
    circuits = {name: circuit_of(learned(true, np.zeros(flat(true).size), "smoothed")) for name, true in nets.items()}
    large = [name for name, circuit in circuits.items() if circuit is not None and circuit.n_edges > LARGE]
    for number, name in product(range(plan["exact"]["smoothed_sets"]), large):
        own = [r for r in done if (r["network"], r["zeros"], r["set"]) == (name, EXACT, number)]
        known = {t["levels"] for r in own for t in r["ties"]}
        for k in plan["networks"][name]["levels"]:
            if k not in known:
                record = one_set(nets[name], "smoothed", number, [k], plan, circuits[name])
                append(store, done, {"network": name, "zeros": EXACT, "set": number, **record})


def merged(records: list[Record]) -> list[Record]:
    """Put together what was learned of one set level by level."""
    sets: dict[int, Record] = {}
    for r in records:
        first = sets.setdefault(r["set"], {**r, "ties": [], "seconds": 0.0})
        first["ties"] = sorted([*first["ties"], *r["ties"]], key=lambda t: t["levels"])
        first["seconds"] += r["seconds"]
    return list(sets.values())


def append(store: Path, done: list[Record], record: Record) -> None:
    made = provenance(record["seconds"])
    record = {**record, "commit": made["commit"], "date": made["date"]}
    done.append(record)
    append_line(store, record)
    print(record["network"], record["zeros"], record["set"], record["seconds"], flush=True)


def sum_up(plan: Record, folder: Path, done: list[Record]) -> None:
    """Write means over the sets, and for each method the levels that the validation rows choose."""
    results = []
    for name, zeros in dict.fromkeys((r["network"], r["zeros"]) for r in done):
        runs = merged([r for r in done if (r["network"], r["zeros"]) == (name, zeros)])
        true = network(plan, name, folder)
        values = np.exp(flat(true))
        table = {
            "network": name,
            "zeros": zeros,
            "sets": len(runs),
            "seconds": round(sum(r["seconds"] for r in runs), 1),
            "rows": sum(len(c.table) for c in true.cpds),
            "entries": len(values),
            "true levels": len(np.unique(values)),
            "true": means([r["true"] for r in runs]),
            "mle": {**means([r["mle"] for r in runs]), "max error": max(r["mle"]["error"] for r in runs)},
            "methods": {m: summary(runs, m) for m in METHODS if any(t[m] for r in runs for t in r["ties"])},
        }
        results.append(table)
    path, command = HERE / "results" / "learning.json", "python -m experiments.parameter_tying.learning"
    report = {"command": command, "provenance": _made(read_report(path), done), "plan": plan, "results": results}
    pack(path.with_suffix(".jsonl"))
    write_report(path, report)


def _made(before: Record | None, done: list[Record]) -> list[Record]:
    """Return the provenance of all runs, one for each commit: those before, and those that lines of the store name."""
    runs: dict[str, list[Record]] = {}
    for r in done:
        if "commit" in r:
            runs.setdefault(r["commit"], []).append(r)
    known = (before or {"provenance": []})["provenance"]
    known = known if isinstance(known, list) else [known]
    made = {p["commit"]: p for p in known}  # a run keeps its machine, also when another one adds sets to the report
    for commit, own in runs.items():
        run = made.get(commit) or provenance(0.0)
        seconds, date = round(sum(r["seconds"] for r in own), 1), max(r["date"] for r in own)
        made[commit] = {**run, "commit": commit, "seconds": seconds, "date": date}
        made[commit].pop("command", None)  # that of the report
    return list(made.values())


def summary(runs: list[Record], method: str) -> Record:
    """Return a method's mean figures for each number of levels, and at the levels chosen on the validation rows."""
    chosen = []
    for run in runs:
        ties = [t for t in run["ties"] if t[method]]
        best = max(ties, key=lambda t: (t[method]["valid"], -t["levels"]))
        gain = best[method]["test"] - run["mle"]["test"]
        chosen.append({**best[method], "levels": best["levels"], "gain": gain})
    levels = sorted({t["levels"] for r in runs for t in r["ties"]})
    path = []
    for k in levels:
        own = [(r, t[method]) for r in runs for t in r["ties"] if t["levels"] == k and t[method]]
        gains = [figures["test"] - run["mle"]["test"] for run, figures in own]
        spread = float(np.std(gains, ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else None
        better = sum(gain > 0 for gain in gains)
        path.append({"levels": k, **means([f for _, f in own]), "gain": float(np.mean(gains)), "spread": spread})
        path[-1] |= {"better": better, "sets": len(own)}
    return {
        "chosen levels": float(np.median([c["levels"] for c in chosen])),
        "chosen": {**means(chosen), "gain": float(np.mean([c["gain"] for c in chosen]))},
        "max error": max(c["error"] for c in chosen),
        "path": path,
    }


def means(records: list[Record]) -> Record:
    return {key: float(np.mean([r[key] for r in records])) for key in ("train", "valid", "test", "error")}


if __name__ == "__main__":
    main()
