"""Pools and results of `learn_circuit`: arrays for the kernels on one side, a network and a circuit on the other."""

from dataclasses import dataclass

import numpy as np

from tinybayes._kernels.grow import Greedy
from tinybayes._kernels.growing_circuit import (
    N_NODES,
    ROOT,
    WORD,
    Graph,
    Scratch,
    add_node,
    list_nodes,
)
from tinybayes._kernels.tree_parts import Parts, Table, Work, leaf_score
from tinybayes.errors import error
from tinybayes.model import CPD, BayesNet, Circuit, Dataset, DecisionTree, Float
from tinybayes.model.circuit import INDICATOR, PARAMETER, PRODUCT, SUM


@dataclass(frozen=True)
class Rows:
    """The distinct rows of a data set, with the class as the last variable."""

    table: Table


def distinct_rows(data: Dataset) -> Rows:
    """Collapse equal rows to one with their weight, and list the states that are not a variable's most common one."""
    if data.target is not None and data.y is None:
        raise error("the classes of the rows", "none", where=f"target {data.target.name!r}")
    columns = data.X if data.y is None else np.column_stack([data.X, data.y])
    weight = np.ones(len(columns)) if data.weight is None else data.weight
    known = weight > 0
    columns, weight = columns[known], weight[known].astype(float)
    if not len(columns):
        raise error("at least one row", "none", where="data")
    if (columns < 0).any():
        row, variable = np.argwhere(columns < 0)[0]
        place = f"row {np.flatnonzero(known)[row]}, variable {data.nodes[variable].name!r}"
        remedy = "leave out the rows with missing values, or fill them in"
        raise error("rows without missing values", f"one in {place}", where="data", remedy=remedy)
    cardinality = np.array([node.cardinality for node in data.nodes])
    if cardinality.max() > WORD - 1:
        wide = data.nodes[int(cardinality.argmax())]
        raise error(f"at most {WORD - 1} states", wide.cardinality, where=f"variable {wide.name!r}")
    columns = np.ascontiguousarray(columns, dtype=np.uint8)
    key = columns.view(np.dtype((np.void, columns.shape[1]))).ravel()
    _, index, inverse = np.unique(key, return_index=True, return_inverse=True)
    rows = columns[index]
    total = np.bincount(inverse.ravel(), weights=weight)
    first_state = np.concatenate([[0], np.cumsum(cardinality)])
    counts = [np.bincount(rows[:, i], weights=total, minlength=k) for i, k in enumerate(cardinality)]
    usual = np.array([c.argmax() for c in counts])
    other = rows != usual
    begin = np.concatenate([[0], np.cumsum(other.sum(axis=1))])
    entries = (rows.astype(np.int64) + first_state[:-1])[other].astype(np.int32)
    default = (usual + first_state[:-1]).astype(np.int64)
    listed = np.setdiff1d(np.arange(first_state[-1]), default)
    bits = bits_of(rows, first_state, listed if _dense(other, total == 1, len(listed)) else listed[:0])
    return Rows(Table(np.ascontiguousarray(rows.T), total, begin, entries, default, first_state, bits, listed))


def _dense(other: np.ndarray, single: np.ndarray, states: int) -> bool:
    """Tell whether leaves are counted faster by bits than by lists of states.

    Only rows of weight one are counted by bits. A word then costs as much as one state of a list, and sorting the rows
    as much as four (`benchmarks/leaf_counts.py`).
    """
    words = -(-states // 64)
    return bool(other[single].sum() > (words + 4) * len(other))


def bits_of(rows: np.ndarray, first_state: np.ndarray, listed: np.ndarray) -> np.ndarray:
    """Return, for every row, a bit for each of the listed states that says whether the row has it."""
    variable = np.searchsorted(first_state, listed, side="right") - 1
    value = (listed - first_state[variable]).astype(rows.dtype)
    bits = np.zeros((len(rows), -(-len(listed) // 64) * 8), np.uint8)
    for begin in range(0, len(rows), 4096):  # not all at once, for the sake of memory
        block = rows[begin : begin + 4096, variable] == value
        bits[begin : begin + 4096, : -(-len(listed) // 8)] = np.packbits(block, axis=1, bitorder="little")
    return bits.view("<u8").astype(np.uint64, copy=False)


def parts(variables: int, room: int) -> Parts:
    """Make trees of one leaf for each variable."""
    return Parts(
        variable=np.full(room, -1, np.int32),
        tested=np.full(room, -1, np.int32),
        first=np.full(room, -1, np.int32),
        begin=np.zeros(room, np.int32),
        end=np.zeros(room, np.int32),
        parameter=np.zeros(room, np.int32),
        path=np.zeros((room, -(-variables // WORD)), np.int64),
        gain=np.full((room, variables), -np.inf),
        cost=np.zeros((room, variables), np.int32),
        looked=np.zeros((room, variables), np.int32),
    )


def enlarged_parts(old: Parts, room: int) -> Parts:
    """Return the same trees with more room."""
    new = parts(old.gain.shape[1], room)
    for before, after in zip(old, new, strict=True):
        after[: len(before)] = before
    return new


def graph(nodes: int, edges: int, words: int) -> Graph:
    """Make empty pools."""
    return Graph(
        kind=np.zeros(nodes, np.int8),
        start=np.zeros(nodes, np.int32),
        degree=np.zeros(nodes, np.int32),
        head=np.zeros(nodes, np.int32),
        above=np.zeros(nodes, np.int32),
        leaf=np.zeros(nodes, np.int32),
        scope=np.zeros((nodes, words), np.int64),
        child=np.zeros(edges, np.int32),
        parent=np.zeros(edges, np.int32),
        later=np.zeros(edges, np.int32),
        earlier=np.zeros(edges, np.int32),
        numbers=np.zeros(5, np.int64),
    )


def scratch(g: Graph, most: int) -> Scratch:
    """Make the working memory for pools of this size."""
    nodes = len(g.kind)
    return Scratch(
        mark=np.zeros(nodes, np.int32),
        seen=np.zeros(nodes, np.int32),
        values=np.zeros(nodes, np.int64),
        position=np.zeros(nodes, np.int32),
        asked=np.zeros(nodes, np.int32),
        dead=np.zeros(nodes, np.int32),
        stack=np.zeros(nodes + 64, np.int32),
        side_d=np.zeros(nodes + 64, np.int32),
        side_v=np.zeros(nodes + 64, np.int32),
        ancestors=np.zeros((nodes, 3), np.int32),
        numbers=np.zeros(4, np.int64),
        copies=np.zeros(nodes * most, np.int32),
        via=np.zeros(nodes, np.int32),
        hint=np.full(2**18, -1, np.int32),
    )


def work(rows: Rows) -> Work:
    """Make the working memory of counting."""
    states, most = int(rows.table.first_state[-1]), int(np.diff(rows.table.first_state).max())
    count, words = rows.table.bits.shape
    return Work(
        counts=np.empty((states, most)),
        buffer=np.empty(count, np.int32),
        planes=np.zeros((5, words), np.uint64),
        sums=np.zeros(64 * words, np.int32),
    )


def greedy_work(room: int, nodes: int, words: int) -> Greedy:
    """Make the working memory of the greedy rule, for so many parts and nodes and words of a scope."""
    sets = np.zeros((nodes, -(-room // WORD)), np.int64)
    return Greedy(sets, np.zeros((room, words), np.int64), np.zeros((room, words), np.int64))


def independent(rows: Rows, trees: Parts) -> Graph:
    """Build the circuit of independent variables: a product of sums over (indicator times parameter)."""
    first = rows.table.first_state
    variables, states = len(first) - 1, int(first[-1])
    g = graph(64 * states + 4096, 256 * states + 4096, -(-variables // WORD))
    none = np.empty(0, np.int32)
    for v in range(variables):
        for s in range(first[v], first[v + 1]):
            n = add_node(g, INDICATOR, s, none)
            g.scope[n, v // WORD] = np.int64(1) << np.int64(v % WORD)
    sums = []
    for v in range(variables):
        trees.parameter[v] = g.numbers[N_NODES]
        own = [add_node(g, PARAMETER, v, none) for _ in range(first[v], first[v + 1])]
        terms = [
            add_node(g, PRODUCT, -1, np.array([s, p], np.int32))
            for s, p in zip(range(first[v], first[v + 1]), own, strict=True)
        ]
        sums.append(terms[0] if len(terms) == 1 else add_node(g, SUM, -1, np.array(terms, np.int32)))
    g.numbers[ROOT] = sums[0] if len(sums) == 1 else add_node(g, PRODUCT, -1, np.array(sums, np.int32))
    return g


def independent_score(rows: Rows, smoothing: float, bayesian: bool) -> float:
    """Return the log-likelihood, or the log marginal likelihood, of independent variables."""
    table = rows.table
    total = 0.0
    for v, column in enumerate(table.columns):
        k = int(table.first_state[v + 1] - table.first_state[v])
        counts = np.bincount(column, weights=table.weight, minlength=k)
        total += leaf_score(counts, smoothing, bayesian)
    return total


def network(
    data: Dataset, rows: Rows, trees: Parts, order: np.ndarray, smoothing: float
) -> tuple[BayesNet, dict[int, int]]:
    """Turn the trees into a network; also return, for each leaf, its first entry in the tables put end to end."""
    cpds, offsets, entry = [], {}, 0
    for root, node in enumerate(data.nodes):
        tree, leaves = _decision_tree(rows, trees, root)
        k = node.cardinality
        counts = np.empty((len(leaves), k))
        for row, part in enumerate(leaves):
            own = order[root, trees.begin[part] : trees.end[part]]
            counts[row] = np.bincount(rows.table.columns[root, own], weights=rows.table.weight[own], minlength=k)
            offsets[part] = entry + k * row
        log_parameters = np.log((counts + smoothing / k) / (counts.sum(axis=1, keepdims=True) + smoothing))
        parents = tuple(sorted({int(v) for v in tree.split if v >= 0}))
        storage = Float(64)
        cpds.append(CPD(parents, storage.encode(log_parameters), storage, tree if parents else None))
        entry += counts.size
    return BayesNet(data.variables, data.target, tuple(cpds)), offsets


def _decision_tree(rows: Rows, trees: Parts, root: int) -> tuple[DecisionTree, list[int]]:
    """Return the tree of a variable, and its leaves in the order of their rows."""
    first_state = rows.table.first_state
    order = [root]
    for part in order:  # breadth first, so that children come after their node
        v = trees.tested[part]
        if v >= 0:
            order.extend(range(trees.first[part], trees.first[part] + int(first_state[v + 1] - first_state[v])))
    place = {part: i for i, part in enumerate(order)}
    split, first, row = (np.full(len(order), -1) for _ in range(3))
    children: list[int] = []
    leaves: list[int] = []
    for i, part in enumerate(order):
        v = split[i] = trees.tested[part]
        if v < 0:
            row[i] = len(leaves)
            leaves.append(part)
            continue
        first[i] = len(children)
        children += [place[trees.first[part] + s] for s in range(int(first_state[v + 1] - first_state[v]))]
    return DecisionTree(split, first, np.array(children, dtype=np.int32), row), leaves


def circuit(net: BayesNet, offsets: dict[int, int], g: Graph, s: Scratch, trees: Parts) -> Circuit:
    """Copy the live circuit, children first; its parameters are the tables of the network put end to end."""
    order = s.side_d[: list_nodes(g, s)].copy()
    name = np.full(len(g.kind), -1)
    name[order] = np.arange(len(order))
    counts = np.where(g.kind[order] >= SUM, g.degree[order], 0)
    begin = np.concatenate([[0], np.cumsum(counts)])
    within = np.arange(begin[-1]) - np.repeat(begin[:-1], counts)
    children = name[g.child[np.repeat(g.start[order], counts) + within]]
    leaf = np.where(g.kind[order] == INDICATOR, g.leaf[order], -1)
    own = np.flatnonzero(g.kind[order] == PARAMETER)
    part = g.leaf[order[own]]
    leaf[own] = np.array([offsets[p] for p in part.tolist()]) + order[own] - trees.parameter[part]
    entries = np.concatenate([cpd.table.ravel() for cpd in net.cpds])
    kind = g.kind[order].astype(np.uint8)
    return Circuit(net.variables, net.target, kind, begin, children, leaf, entries, net.cpds[0].format)
