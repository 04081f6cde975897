"""Speed of Gibbs sampling: python benchmarks/gibbs.py [--queries 200].

Random networks of binary variables with decision trees, and networks learned from density sets (greedy trees over a
random order of the variables, a split for each gain of 5 nats; needs TINYBAYES_DATA). Queries ask for 30 % of the
variables given 30 %, in the fast setting of the paper: one chain, 100 sweeps of burn-in, 1000 of samples. One thread,
CPU time. The peer is pyAgrum's GibbsSampling on the same networks as full tables: all marginals for one row of
evidence, as many sweeps. Libra's Gibbs sampler (OCaml) needs 6 / 44 / 146 / 78 ms a query on networks that it learned
from nltcs / kdd / msweb / plants with the same penalty, measured elsewhere.
"""

import argparse
import importlib.util
import json
import os
import time
from pathlib import Path

import numpy as np
from harness import provenance

from tinybayes.infer import Queries, gibbs
from tinybayes.model import CPD, BayesNet, DecisionTree, Float, Variable

SIZES = {64: 1200, 294: 3000, 500: 5000}  # variables and leaves
SETS = ["nltcs", "kdd", "plants", "msweb"]


def tree_cpd(split: list[int], first: list[int], children: list[int], rows: list[float]) -> CPD:
    """Make the distribution of a binary variable from a tree and the probability of 1 at each leaf, in their order."""
    row = np.where(np.array(split) < 0, np.cumsum(np.array(split) < 0) - 1, 0)
    parents = tuple(sorted({v for v in split if v >= 0}))
    one = np.array(rows)
    tree = DecisionTree(split, first, children, row) if parents else None
    return CPD(parents, np.log(np.stack([1 - one, one], axis=1)), Float(64), tree)


def random_net(n: int, leaves: int, seed: int = 0, most_parents: int = 8) -> BayesNet:
    """Make trees that test a few of the 40 variables before them; probabilities are mostly near 0 or 1."""
    rng = np.random.default_rng(seed)
    cpds = []
    for v in range(n):
        near = np.arange(max(0, v - 40), v)
        pool = rng.choice(near, min(len(near), most_parents), replace=False).tolist()
        wanted = min(int(rng.geometric(n / leaves)), 4 * leaves // n)
        split, first, children, open_leaves = [-1], [0], [], [(0, frozenset())]
        while len(open_leaves) < wanted and open_leaves:
            node, used = open_leaves.pop(int(rng.integers(len(open_leaves))))
            free = [p for p in pool if p not in used]
            if not free:
                open_leaves.append((node, used))
                break
            split[node], first[node] = int(rng.choice(free)), len(children)
            for _ in range(2):
                children.append(len(split))
                open_leaves.append((len(split), used | {split[node]}))
                split.append(-1)
                first.append(0)
        cpds.append(tree_cpd(split, first, children, rng.beta(0.4, 0.6, split.count(-1)).clip(1e-3, 1 - 1e-3)))
    return BayesNet(tuple(Variable(f"v{i}", (0, 1)) for i in range(n)), None, tuple(cpds))


def learned_net(X: np.ndarray, penalty: float = 5.0) -> BayesNet:
    """Grow a tree for each variable over those before it in a random order."""
    from sklearn.tree import DecisionTreeClassifier

    order = np.random.default_rng(0).permutation(X.shape[1])
    cpds: list[CPD | None] = [None] * X.shape[1]
    for k, v in enumerate(order.tolist()):
        y = X[:, v]
        if k == 0 or y.min() == y.max():
            cpds[v] = tree_cpd([-1], [0], [], [(y.sum() + 1) / (len(y) + 2)])
            continue
        least = penalty / (len(X) * np.log(2))  # scikit-learn counts in bits a row
        learner = DecisionTreeClassifier(criterion="entropy", min_impurity_decrease=least, random_state=0)
        tree = learner.fit(X[:, order[:k]], y).tree_
        inner = tree.children_left >= 0
        split = np.where(inner, order[tree.feature], -1)
        children = np.stack([tree.children_left, tree.children_right], axis=1)[inner].ravel()
        count = tree.weighted_n_node_samples
        rows = ((tree.value[:, 0, 1] * count + 1) / (count + 2))[~inner]
        first = np.where(inner, 2 * (inner.cumsum() - 1), 0)
        cpds[v] = tree_cpd(split.tolist(), first.tolist(), children.tolist(), rows.tolist())
    return BayesNet(tuple(Variable(f"v{i}", (0, 1)) for i in range(X.shape[1])), None, tuple(cpds))


def rows_of(net: BayesNet, count: int) -> np.ndarray:
    """Draw rows from a network whose parents come first."""
    rng = np.random.default_rng(1)
    rows = np.zeros((count, len(net.nodes)), dtype=np.int64)
    for row in rows:
        for v, cpd in enumerate(net.cpds):
            line = 0 if cpd.tree is None else cpd.tree.find(dict(enumerate(row.tolist())))
            row[v] = rng.random() < np.exp(cpd.log_parameters[line, 1])
    return rows


def ours(net: BayesNet, queries: Queries) -> dict[str, object]:
    gibbs(net, Queries(queries.evidence[:1], queries.asked[:1]))  # compiles, and lays the network out
    figures: dict[str, object] = {}
    updates = 1100 * int((queries.evidence < 0).sum())
    for what, asked in (("query", queries), ("marginals", queries.evidence)):
        began = time.process_time()
        gibbs(net, asked)
        cpu = time.process_time() - began
        figures[f"{what}_ms"] = round(1e3 * cpu / len(queries), 3)
        figures[f"{what}_ns_a_variable_and_sweep"] = round(1e9 * cpu / updates, 1)
        figures[f"{what}_sweeps_a_second"] = round(1100 * len(queries) / cpu)
    return figures


def pyagrum(net: BayesNet, evidence: np.ndarray) -> dict[str, object]:
    import pyagrum as gum

    bn = gum.BayesNet()
    for node in net.nodes:
        bn.add(gum.LabelizedVariable(node.name, node.name, 2))
    for v, cpd in enumerate(net.cpds):
        for parent in cpd.parents:
            bn.addArc(net.nodes[parent].name, net.nodes[v].name)
        for values in np.ndindex(*(2,) * len(cpd.parents)):
            line = 0 if cpd.tree is None else cpd.tree.find(dict(zip(cpd.parents, values, strict=True)))
            where = {net.nodes[p].name: value for p, value in zip(cpd.parents, values, strict=True)}
            bn.cpt(net.nodes[v].name)[where] = np.exp(cpd.log_parameters[line]).tolist()
    engine = gum.GibbsSampling(bn)
    engine.setEvidence({net.nodes[v].name: int(value) for v, value in enumerate(evidence) if value >= 0})
    free = int((evidence < 0).sum())
    engine.setNbrDrawnVar(free)
    engine.setDrawnAtRandom(False)
    engine.setBurnIn(100)
    engine.setMaxIter(1000)
    engine.setEpsilon(1e-300)
    engine.setMinEpsilonRate(1e-300)
    engine.setMaxTime(600)
    gum.setNumberOfThreads(1)
    began = time.process_time()
    engine.makeInference()
    engine.posterior(net.nodes[0].name)
    cpu = time.process_time() - began
    sweeps = engine.nbrIterations() + 100
    return {
        "version": gum.__version__,
        "sweeps": sweeps,
        "ms_for_1100_sweeps": round(1e3 * cpu * 1100 / sweeps, 1),
        "sweeps_a_second": round(sweeps / cpu),
    }


def draw_queries(rows: np.ndarray, count: int) -> Queries:
    """Ask for 30 % of the values of a row, given another 30 %."""
    generator = np.random.default_rng(0)
    chosen = np.concatenate([generator.permutation(len(rows)) for _ in range(-(-count // len(rows)))])[:count]
    taken, share = rows[chosen], round(0.3 * rows.shape[1])
    rank = generator.random(taken.shape).argsort(axis=1).argsort(axis=1)
    evidence = np.where(rank >= rows.shape[1] - share, taken, -1)
    return Queries(evidence=evidence, asked=np.where(rank < share, taken, -1))


def case(name: str, net: BayesNet, rows: np.ndarray, queries: int, peer: bool) -> dict[str, object]:
    chosen = draw_queries(rows, queries)
    leaves = sum(len(cpd.table) for cpd in net.cpds)
    result = {"network": name, "variables": len(net.nodes), "leaves": leaves, "tinybayes": ours(net, chosen)}
    if peer and importlib.util.find_spec("pyagrum"):
        result["pyagrum"] = pyagrum(net, chosen.evidence[0])
    print(json.dumps(result), flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "gibbs.json")
    options = parser.parse_args()
    os.environ["TINYBAYES_THREADS"] = "1"
    about = provenance(["tinybayes", "pyagrum", "numba", "numpy"])
    results = []
    for n, leaves in SIZES.items():
        net = random_net(n, leaves)
        results.append(case(f"random {n}", net, rows_of(net, options.queries), options.queries, peer=True))
    place = Path(os.environ.get("TINYBAYES_DATA", "")) / "density"
    for name in SETS if "TINYBAYES_DATA" in os.environ else []:
        train, test = (
            np.loadtxt(place / f"{name}.{part}.data.gz", np.int8, delimiter=",") for part in ("train", "test")
        )
        results.append(case(name, learned_net(train), test.astype(np.int64), options.queries, peer=False))
    options.output.write_text(json.dumps({**about, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
