"""Our networks as networks of pyAgrum and pgmpy, what these say of evidence, and networks to ask about.

Nodes are called ``x0, x1, ...`` and states ``0, 1, ...``, since each library has names of its own that it cannot take.
Evidence is a row of codes, -1 where nothing was observed.
"""

import gzip
import itertools
import warnings
from pathlib import Path

import numpy as np

import oracle
import zoo
from tinybayes import compile_circuit, load, marginals
from tinybayes.deploy.files.uai import read_evidence, read_uai
from tinybayes.infer import posteriors, sample

BIF = ("alarm", "andes", "asia", "cancer", "child", "hailfinder", "hepar2", "insurance", "munin1", "pigs", "win95pts")
# Evidence for the UAI networks: what takes pyAgrum seconds, so for the widest only values for 20 % of the variables.
UAI = {
    "50-14-1": ("prior", "rand20", "sinks"),
    "75-18-1": ("rand20",),
    "90-20-1": ("rand20",),
    "BN_0": ("rand20",),
    "bn2o-30-15-150-1a": ("rand20",),
    "bn2o-30-20-200-1a": ("rand20",),
    "fs-04": ("prior", "rand20", "sinks"),
    "mastermind1": ("rand20",),
    "students_03_02-0000": ("prior", "rand20"),
}


def small_networks():
    """Networks that need no file: worked by hand, random ones with single-state variables, zeros and decision trees."""
    nets = {"sprinkler": zoo.sprinkler(), "naive Bayes": zoo.naive_bayes(), "TAN": zoo.tan(), "tree": zoo.tree_tan()}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        nets[f"random {seed}"] = zoo.random_net(rng, 7, max_parents=3, target=seed % 2 == 0, trees=seed % 3 == 0)
    return nets


def bif_file(data_dir: Path, name: str, folder: Path) -> Path:
    """Unpack a network of the public repository: the libraries read plain text."""
    file = folder / f"{name}.bif"
    file.write_bytes(gzip.decompress((data_dir / "networks" / "bif" / f"{name}.bif.gz").read_bytes()))
    return file


def bif_answers(data_dir: Path, name: str):
    """Return a network, rows of evidence (none; three times a fifth of the nodes) and our posteriors of all nodes."""
    net = load(data_dir / "networks" / "bif" / f"{name}.bif.gz")
    return net, *answers(net, 4)


def answers(net, rows: int):
    circuit = compile_circuit(net)
    X = sample(circuit, rows, 1)
    hidden = np.random.default_rng(0).random(X.shape) > 0.2
    hidden[0] = True
    X = np.where(hidden, -1, X)
    return X, [np.split(p, circuit.first_state[1:-1]) for p in posteriors(circuit, X)]


def uai_answers(data_dir: Path, name: str, kind: str):
    """Return a network, its row of evidence and our exact posteriors of all nodes."""
    net = read_uai(data_dir / "networks" / f"{name}.uai")
    (case,) = read_evidence(data_dir / "networks" / "truth" / f"{name}.{kind}.evid")
    row = np.full(len(net.nodes), -1)
    row[list(case)] = list(case.values())
    return net, row, marginals(net, row, method="exact").probabilities


def table(net, node: int) -> np.ndarray:
    """The probabilities of a node, one row for each assignment of its parents, the last parent fastest."""
    cpd = net.cpds[node]
    if cpd.tree is None:
        return np.exp(np.asarray(cpd.log_parameters, dtype=np.float64))
    rows = []
    for values in itertools.product(*(range(net.nodes[p].cardinality) for p in cpd.parents)):
        row = [0] * len(net.nodes)
        for parent, value in zip(cpd.parents, values, strict=True):
            row[parent] = value
        states = range(net.nodes[node].cardinality)
        rows.append([np.exp(oracle.log_parameter(net, node, [*row[:node], s, *row[node + 1 :]])) for s in states])
    return np.array(rows)


def to_pyagrum(net):
    import pyagrum

    bn = pyagrum.BayesNet()
    for index, node in enumerate(net.nodes):
        bn.add(pyagrum.RangeVariable(f"x{index}", "", 0, node.cardinality - 1))
    for index, cpd in enumerate(net.cpds):
        for parent in reversed(cpd.parents):  # there the first parent runs fastest
            bn.addArc(parent, index)
    for index in range(len(net.nodes)):
        bn.cpt(index).fillWith(table(net, index).ravel().tolist())
    return bn


def to_pgmpy(net):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what its next version will do
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork()
    model.add_nodes_from(f"x{i}" for i in range(len(net.nodes)))
    model.add_edges_from((f"x{p}", f"x{i}") for i, cpd in enumerate(net.cpds) for p in cpd.parents)
    for i, cpd in enumerate(net.cpds):
        parents, sizes = [f"x{p}" for p in cpd.parents], [net.nodes[p].cardinality for p in cpd.parents]
        model.add_cpds(TabularCPD(f"x{i}", net.nodes[i].cardinality, table(net, i).T, parents or None, sizes or None))
    return model


def largest_difference(ours, theirs) -> float:
    return max(float(np.abs(np.asarray(p) - np.asarray(q)).max()) for p, q in zip(ours, theirs, strict=True))
