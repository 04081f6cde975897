"""Pools and results of `learn_circuit`: arrays for the kernels on one side, a network and a circuit on the other."""

import numpy as np

from tinybayes._kernels.edge_costs import Costs
from tinybayes._kernels.grow import Parts, Table, Work, leaf_score
from tinybayes._kernels.growing_circuit import MOST, N_NODES, ROOT, WORD, Graph, Scratch, add_node, list_nodes
from tinybayes.errors import error
from tinybayes.model import CPD, BayesNet, Circuit, Dataset, DecisionTree, Float
from tinybayes.model.circuit import INDICATOR, PARAMETER, PRODUCT, SUM


def distinct_rows(data: Dataset) -> Table:
    """Collapse equal rows to one with their weight, and list the states that are not a variable's most common one.

    The class, if there is one, is the last variable.
    """
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
        got = f"one in row {np.flatnonzero(known)[row]}, variable {data.nodes[variable].name!r}"
        remedy = "leave out the rows with missing values, or fill them in"
        raise error("rows without missing values", got, where="data", remedy=remedy)
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
    return Table(np.ascontiguousarray(rows.T), total, begin, entries, default, first_state, bits, listed)


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
    for begin in range(0, len(rows), 4096):  # in chunks, to save memory
        block = rows[begin : begin + 4096, variable] == value
        bits[begin : begin + 4096, : -(-len(listed) // 8)] = np.packbits(block, axis=1, bitorder="little")
    return bits.view("<u8").astype(np.uint64, copy=False)


def parts(variables: int, room: int, old: Parts | None = None) -> Parts:
    """Make room for trees; those of `old` are copied into it."""
    new = Parts(
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
    if old is not None:
        for before, after in zip(old, new, strict=True):
            after[: len(before)] = before
    return new


def graph(nodes: int, edges: int, words: int) -> Graph:
    """Make empty pools."""
    of_nodes = {name: np.zeros(nodes, np.int32) for name in ("start", "degree", "head", "above", "leaf")}
    of_edges = {name: np.zeros(edges, np.int32) for name in ("child", "parent", "later", "earlier")}
    scope, numbers = np.zeros((nodes, words), np.int64), np.zeros(6, np.int64)
    return Graph(kind=np.zeros(nodes, np.int8), scope=scope, numbers=numbers, **of_nodes, **of_edges)


def scratch(g: Graph, most: int) -> Scratch:
    """Make the working memory for pools of this size."""
    nodes = len(g.kind)
    of_nodes = {name: np.zeros(nodes, np.int32) for name in ("mark", "seen", "position", "asked", "dead", "via")}
    lists = {name: np.zeros(nodes + 64, np.int32) for name in ("stack", "side_d", "side_v")}
    return Scratch(
        values=np.zeros(nodes, np.int64),
        ancestors=np.zeros((nodes, 3), np.int32),
        numbers=np.zeros(4, np.int64),
        copies=np.zeros(nodes * most, np.int32),
        hint=np.full(2**18, -1, np.int32),
        **of_nodes,
        **lists,
    )


def work(table: Table) -> Work:
    """Make the working memory of counting."""
    states, most = int(table.first_state[-1]), int(np.diff(table.first_state).max())
    count, words = table.bits.shape
    return Work(
        counts=np.empty((states, most)),
        buffer=np.empty(count, np.int32),
        planes=np.zeros((5, words), np.uint64),
        sums=np.zeros(64 * words, np.int32),
    )


def costs(g: Graph, room: int, first_state: np.ndarray) -> Costs:
    """Make room for the costs of all splits, for so many parts."""
    nodes, words, variables = len(g.kind), -(-room // WORD), len(first_state) - 1
    # Rows a power of two long would compete for the same lines of the cache.
    of_nodes = {name: np.zeros((words, nodes + 24), np.int64) for name in ("below", "beside", "always")}
    of_states = {name: np.zeros((nodes, -(-int(first_state[-1]) // WORD)), np.int64) for name in ("states", "around")}
    return Costs(
        changed=np.zeros(nodes, np.int64),
        touched=np.zeros(nodes, np.int64),
        some=np.zeros((words, 2), np.int64),
        terms=np.zeros(variables, np.int32),
        used=np.zeros(variables, np.int32),
        everything=np.full(words, -1, np.int64),
        fresh=np.zeros(words, np.int64),
        variable=np.repeat(np.arange(variables), np.diff(first_state)),
        **of_nodes,
        **of_states,
    )


def independent(first: np.ndarray, trees: Parts) -> Graph:
    """Build the circuit of independent variables: a product of sums over (indicator times parameter)."""
    variables, states = len(first) - 1, int(first[-1])
    g = graph(64 * states + 4096, 256 * states + 4096, -(-variables // WORD))
    g.numbers[MOST] = np.diff(first).max()
    none = np.empty(0, np.int32)
    for v in range(variables):
        for s in range(first[v], first[v + 1]):
            n = add_node(g, INDICATOR, s, none)
            g.scope[n, v // WORD] = np.int64(1) << np.int64(v % WORD)
    sums = []
    for v in range(variables):
        trees.parameter[v] = g.numbers[N_NODES]
        own = [add_node(g, PARAMETER, v, none) for _ in range(first[v], first[v + 1])]
        terms = [add_node(g, PRODUCT, -1, np.array([s, p], np.int32)) for s, p in enumerate(own, first[v])]
        sums.append(terms[0] if len(terms) == 1 else add_node(g, SUM, -1, np.array(terms, np.int32)))
    g.numbers[ROOT] = sums[0] if len(sums) == 1 else add_node(g, PRODUCT, -1, np.array(sums, np.int32))
    return g


def independent_score(table: Table, smoothing: float, bayesian: bool) -> float:
    """Return the log-likelihood, or the log marginal likelihood, of independent variables."""
    total = 0.0
    for column, k in zip(table.columns, np.diff(table.first_state), strict=True):
        total += leaf_score(np.bincount(column, weights=table.weight, minlength=k), smoothing, bayesian)
    return total


def network(
    data: Dataset, table: Table, trees: Parts, order: np.ndarray, smoothing: float
) -> tuple[BayesNet, dict[int, int]]:
    """Turn the trees into a network; also return, for each leaf, its first entry in the concatenated tables."""
    cpds, offsets, entry = [], {}, 0
    for root, node in enumerate(data.nodes):
        tree, leaves = _decision_tree(table.first_state, trees, root)
        k = node.cardinality
        counts = np.empty((len(leaves), k))
        for row, part in enumerate(leaves):
            own = order[root, trees.begin[part] : trees.end[part]]
            counts[row] = np.bincount(table.columns[root, own], weights=table.weight[own], minlength=k)
            offsets[part] = entry + k * row
        log_parameters = np.log((counts + smoothing / k) / (counts.sum(axis=1, keepdims=True) + smoothing))
        parents = tuple(sorted({int(v) for v in tree.split if v >= 0}))
        storage = Float(64)
        cpds.append(CPD(parents, storage.encode(log_parameters), storage, tree if parents else None))
        entry += counts.size
    return BayesNet(data.variables, data.target, tuple(cpds)), offsets


def _decision_tree(first_state: np.ndarray, trees: Parts, root: int) -> tuple[DecisionTree, list[int]]:
    """Return the tree of a variable, and its leaves in the order of their rows."""

    def children_of(part: int) -> range:
        v, begin = trees.tested[part], trees.first[part]
        return range(begin, begin + int(first_state[v + 1] - first_state[v])) if v >= 0 else range(0)

    order = [root]
    for part in order:  # breadth first, so that children come after their node
        order.extend(children_of(part))
    position = {part: i for i, part in enumerate(order)}
    split, first, row = (np.full(len(order), -1) for _ in range(3))
    children: list[int] = []
    leaves: list[int] = []
    for i, part in enumerate(order):
        split[i] = trees.tested[part]
        if split[i] < 0:
            row[i] = len(leaves)
            leaves.append(part)
            continue
        first[i] = len(children)
        children += [position[child] for child in children_of(part)]
    return DecisionTree(split, first, np.array(children, dtype=np.int32), row), leaves


def circuit(net: BayesNet, offsets: dict[int, int], g: Graph, s: Scratch, trees: Parts) -> Circuit:
    """Copy the live circuit, children first; its parameters are the concatenated tables of the network."""
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
