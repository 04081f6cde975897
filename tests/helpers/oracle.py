"""Slow, plain implementations that share no code with the package: what the tests compare against."""

import itertools
import math

import numpy as np

from tinybayes.model import BayesNet, Circuit, Dataset


def log_parameter(net: BayesNet, node: int, row: list[int]) -> float:
    """Look one entry up by hand: ``row`` holds a value for every node, the class last."""
    cpd = net.cpds[node]
    if cpd.tree is None:
        line = 0
        for parent in cpd.parents:
            line = line * net.nodes[parent].cardinality + row[parent]
    else:
        place = 0
        while cpd.tree.split[place] >= 0:
            place = cpd.tree.children[cpd.tree.first[place] + row[cpd.tree.split[place]]]
        line = cpd.tree.row[place]
    return float(cpd.format.decode(cpd.table)[line, row[node]])


def log_joint(net: BayesNet, row: list[int]) -> float:
    return sum(log_parameter(net, node, row) for node in range(len(net.nodes)))


def class_scores(net: BayesNet, X: np.ndarray) -> np.ndarray:
    """Enumerate every completion of the missing values."""
    out = np.empty((len(X), net.target.cardinality))
    for r, known in enumerate(X.tolist()):
        choices = [[v] if v >= 0 else range(net.variables[i].cardinality) for i, v in enumerate(known)]
        for c in range(net.target.cardinality):
            terms = [log_joint(net, [*values, c]) for values in itertools.product(*choices)]
            top = max(terms)
            out[r, c] = top if top == -math.inf else top + math.log(sum(math.exp(t - top) for t in terms))
    return out


def counts(data: Dataset, family: tuple[int, ...]) -> np.ndarray:
    """Count one table row by row."""
    table = np.zeros([data.nodes[v].cardinality for v in family])
    for r in range(len(data)):
        row = [*data.X[r].tolist(), data.y[r] if data.y is not None else 0]
        cell = tuple(row[v] for v in family)
        if min(cell) >= 0:
            table[cell] += 1.0 if data.weight is None else data.weight[r]
    return table


def conditional_information(joint: np.ndarray) -> float:
    """I(A; B | C) in nats from a table of counts with the axes A, B, C, by the definition."""
    p = joint / joint.sum()
    total = 0.0
    for a, b, c in itertools.product(*map(range, p.shape)):
        if p[a, b, c] > 0:
            total += p[a, b, c] * math.log(p[a, b, c] * p[:, :, c].sum() / (p[a, :, c].sum() * p[:, b, c].sum()))
    return total


def best_tree_weight(weight: np.ndarray) -> float:
    """The weight of a maximum spanning tree, by trying every tree (Prüfer sequences)."""
    n = len(weight)
    if n < 2:
        return 0.0
    if n == 2:
        return float(weight[0, 1])
    best = -math.inf
    for sequence in itertools.product(range(n), repeat=n - 2):
        degree = [1 + sequence.count(v) for v in range(n)]
        total = 0.0
        for v in sequence:
            leaf = degree.index(1)
            total += weight[leaf, v]
            degree[leaf] -= 1
            degree[v] -= 1
        a, b = [v for v in range(n) if degree[v] == 1]
        best = max(best, total + weight[a, b])
    return best


def joint(net: BayesNet) -> tuple[np.ndarray, np.ndarray]:
    """Every assignment of all nodes with its log-probability."""
    rows = list(itertools.product(*(range(node.cardinality) for node in net.nodes)))
    return np.array(rows), np.array([log_joint(net, list(row)) for row in rows])


def log_sum(terms: np.ndarray) -> float:
    top = max(terms, default=-math.inf)
    return top if top == -math.inf else top + math.log(sum(math.exp(t - top) for t in terms))


def agreeing(rows: np.ndarray, evidence: np.ndarray) -> np.ndarray:
    """Which assignments agree with a row of evidence, -1 where nothing was observed."""
    return ((rows == evidence) | (np.asarray(evidence) < 0)).all(axis=1)


def circuit_value(circuit: Circuit, row: list[int]) -> list[float]:
    """The value of every node of a circuit for a row of evidence, by the definition."""
    kinds, values = circuit.kind.tolist(), []
    indicators = [
        1.0 if known < 0 or state == known else 0.0
        for node, known in zip(circuit.nodes, row, strict=True)
        for state in range(node.cardinality)
    ]
    for n, kind in enumerate(kinds):
        below = [values[c] for c in circuit.children[circuit.offsets[n] : circuit.offsets[n + 1]]]
        leaf = int(circuit.leaf[n])
        if kind == 0:
            values.append(math.exp(circuit.format.decode(circuit.table)[leaf]))
        else:
            values.append(indicators[leaf] if kind == 1 else sum(below) if kind == 2 else math.prod(below))
    return values
