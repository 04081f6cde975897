"""A network laid out for the kernels of Gibbs sampling."""

import numpy as np

from tinybayes._kernels.gibbs_chain import Layout
from tinybayes.model import CPD, BayesNet
from tinybayes.model.layout import strides

MOST_WORDS = 2**25  # of all path sets: 256 MiB
MOST_STOPS = 2**22  # nodes on the ways to leaves; beyond, and in decision graphs, ways are followed from the root


class _Paths:
    """Sets of variables, numbered."""

    def __init__(self) -> None:
        self.number: dict[int, int] = {}

    def add(self, bits: int) -> int:
        return self.number.setdefault(bits, len(self.number))

    def array(self, words: int) -> np.ndarray:
        packed = b"".join(bits.to_bytes(8 * words, "little") for bits in self.number)
        return np.frombuffer(packed, dtype="<u8").astype(np.uint64).reshape(-1, words)


def layout(net: BayesNet) -> Layout:
    """Return the network as flat arrays; they are kept with the network, which never changes."""
    kept = net.__dict__.get("_gibbs_layout")
    if kept is None:
        kept = net.__dict__["_gibbs_layout"] = _lay_out(net)
    return kept


def _lay_out(net: BayesNet) -> Layout:
    states = np.array([node.cardinality for node in net.nodes], dtype=np.int64)
    words = (len(states) + 63) // 64
    leaves = sum(len(cpd.tree.split) for cpd in net.cpds if cpd.tree is not None)
    # Where one set for each leaf would take too much memory, one for each tree serves: more work, the same samples.
    paths, fine = _Paths(), leaves * words <= MOST_WORDS
    base = np.cumsum([0] + [cpd.table.size for cpd in net.cpds])
    root, table_path, first_parent = [], [], [0]
    parent: list[int] = []
    parent_stride: list[int] = []
    trees = _Trees(paths, fine)
    children: list[list[tuple[int, int]]] = [[] for _ in states]
    for node, cpd in enumerate(net.cpds):
        if cpd.tree is None:
            steps = strides([states[p] for p in cpd.parents], cpd.table.shape[1])
            parent += cpd.parents
            parent_stride += steps
            root.append(-1)
            table_path.append(paths.add(sum(1 << p for p in cpd.parents)))
            tested = dict(zip(cpd.parents, steps, strict=True))
        else:
            root.append(len(trees.step))
            table_path.append(0)
            tested = dict.fromkeys(trees.add(cpd, int(base[node]), states), 0)
        first_parent.append(len(parent))
        for variable, stride in tested.items():
            children[variable].append((node, stride))
    pairs = np.array([pair for family in children for pair in family], dtype=np.int64).reshape(-1, 2)
    whose = np.repeat(np.arange(len(states)), [len(family) for family in children])
    return Layout(
        states=states,
        first_state=np.concatenate([[0], states.cumsum()]),
        log_entry=np.concatenate([cpd.log_parameters.ravel() for cpd in net.cpds]),
        base=base[:-1].astype(np.int64),
        root=np.array(root, dtype=np.int32),
        table_path=np.array(table_path, dtype=np.int32),
        first_parent=np.array(first_parent, dtype=np.int64),
        parent=np.array(parent, dtype=np.int32),
        parent_stride=np.array(parent_stride, dtype=np.int64),
        step=np.array(trees.step, dtype=np.int32).reshape(-1, 2),
        goto=np.array(trees.goto, dtype=np.int32),
        leaf_entry=np.array(trees.leaf_entry, dtype=np.int64),
        leaf_path=np.array(trees.leaf_path, dtype=np.int32),
        first_stop=np.array(trees.first_stop, dtype=np.int64),
        stop=np.array(trees.stop, dtype=np.int32).reshape(-1, 2),
        path=paths.array(words),
        first_child=np.cumsum([0] + [len(family) for family in children]),
        child=pairs[:, 0].astype(np.int32),
        child_stride=pairs[:, 1].copy(),
        first_turn=np.concatenate([[0], np.cumsum(np.where(pairs[:, 1] > 0, 0, states[whose]))]).astype(np.int64),
    )


class _Trees:
    """The trees of all distributions in one set of arrays."""

    def __init__(self, paths: _Paths, fine: bool) -> None:
        self.paths, self.fine = paths, fine
        self.step: list[tuple[int, int]] = []
        self.goto: list[int] = []
        self.leaf_entry: list[int] = []
        self.leaf_path: list[int] = []
        self.first_stop = [0]
        self.stop: list[tuple[int, int]] = []

    def add(self, cpd: CPD, base: int, states: np.ndarray) -> list[int]:
        """Add a tree and return the variables that it tests."""
        tree = cpd.tree
        assert tree is not None
        root, columns = len(self.step), cpd.table.shape[1]
        split, first, row = tree.split.tolist(), tree.first.tolist(), tree.row.tolist()
        below = [tree.children[f : f + states[v]].tolist() if v >= 0 else [] for v, f in zip(split, first, strict=True)]
        # Children come after their node. Several ways to a node of a decision graph: the union of their variables.
        above, before = [0] * len(split), [-1] * len(split)
        ways = np.zeros(len(split), dtype=np.int64)
        for node, variable in enumerate(split):
            for child in set(below[node]) if node == 0 or before[node] >= 0 else ():
                above[child] |= above[node] | 1 << variable
                before[child] = node
                ways[child] += 1
        everything = 0
        for bits in above:
            everything |= bits
        for node, variable in enumerate(split):
            if variable >= 0:
                self.step.append((variable, len(self.goto)))
                self.goto += [root + child for child in below[node]]
                continue
            self.step.append((-1, len(self.leaf_entry)))
            self.leaf_entry.append(base + row[node] * columns)
            self.leaf_path.append(self.paths.add(above[node] if self.fine else everything))
            if ways.max() <= 1 and len(self.stop) < MOST_STOPS:
                self.stop += [(split[n], root + n) for n in _way(before, node)]
            self.first_stop.append(len(self.stop))
        return [parent for parent in cpd.parents if everything >> parent & 1]


def _way(before: list[int], node: int) -> list[int]:
    """Return the nodes from the root to a node, without it."""
    way = []
    while (node := before[node]) >= 0:
        way.append(node)
    return way[::-1]
