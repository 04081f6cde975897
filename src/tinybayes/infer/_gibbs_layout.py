"""A network laid out for the kernels of Gibbs sampling."""

import numpy as np

from tinybayes._kernels.gibbs import Layout
from tinybayes.model import CPD, BayesNet

MOST_WORDS = 2**25  # of all path sets: 256 MiB


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
            strides = _strides(cpd, states)
            parent += cpd.parents
            parent_stride += strides
            root.append(-1)
            table_path.append(paths.add(sum(1 << p for p in cpd.parents)))
            tested = dict(zip(cpd.parents, strides, strict=True))
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
        path=paths.array(words),
        first_child=np.cumsum([0] + [len(family) for family in children]),
        child=pairs[:, 0].astype(np.int32),
        child_stride=pairs[:, 1].copy(),
        first_turn=np.concatenate([[0], np.cumsum(np.where(pairs[:, 1] > 0, 0, states[whose]))]).astype(np.int64),
    )


def _strides(cpd: CPD, states: np.ndarray) -> list[int]:
    """Return how far apart, in entries, the rows for neighbouring values of each parent are."""
    strides, step = [], int(cpd.table.shape[1])
    for parent in reversed(cpd.parents):
        strides.append(step)
        step *= int(states[parent])
    return strides[::-1]


class _Trees:
    """The trees of all distributions in one set of arrays."""

    def __init__(self, paths: _Paths, fine: bool) -> None:
        self.paths, self.fine = paths, fine
        self.step: list[tuple[int, int]] = []
        self.goto: list[int] = []
        self.leaf_entry: list[int] = []
        self.leaf_path: list[int] = []

    def add(self, cpd: CPD, base: int, states: np.ndarray) -> list[int]:
        """Add a tree and return the variables that it tests."""
        tree = cpd.tree
        assert tree is not None
        root, columns = len(self.step), cpd.table.shape[1]
        split, first, row = tree.split.tolist(), tree.first.tolist(), tree.row.tolist()
        # Children come after their node. Several ways to a node of a decision graph: the union of their variables.
        above: list[int | None] = [0] + [None] * (len(split) - 1)
        for node, variable in enumerate(split):
            before = above[node]
            if variable >= 0 and before is not None:
                for child in tree.children[first[node] : first[node] + states[variable]].tolist():
                    above[child] = (above[child] or 0) | before | 1 << variable
        everything = 0
        for bits in above:
            everything |= bits or 0
        for node, variable in enumerate(split):
            if variable >= 0:
                self.step.append((variable, len(self.goto)))
                self.goto += (root + tree.children[first[node] : first[node] + states[variable]]).tolist()
            else:
                self.step.append((-1, len(self.leaf_entry)))
                self.leaf_entry.append(base + row[node] * columns)
                self.leaf_path.append(self.paths.add((above[node] or 0) if self.fine else everything))
        return [parent for parent in cpd.parents if everything >> parent & 1]
