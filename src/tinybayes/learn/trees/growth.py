"""What all learners of trees share: the table as columns, limits and prices, and the model from grown trees."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tinybayes._kernels.threads import for_blocks
from tinybayes._kernels.tree_growth import Columns, Limits, Prices, Tree, as_columns
from tinybayes.errors import error
from tinybayes.learn.trees.options import TreeOptions
from tinybayes.model import Categories, Dataset, TreeEnsemble, Trees, Variable

BLOCK = 4096  # rows a task
VALUE_BITS = 12  # of the values of leaves, as they are learned
LEAST_SECOND = 1e-3  # sum of second derivatives of a leaf, as LightGBM and scikit-learn have it


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that trees are grown from: those with a class and a weight."""

    columns: Columns
    index: np.ndarray  # of each row in the table
    label: np.ndarray
    weight: np.ndarray
    classes: int

    def __len__(self) -> int:
        return len(self.label)


def as_rows(data: Dataset) -> Rows:
    """Return a table as columns of codes; missing values get the last code of their feature."""
    if data.target is None or data.y is None:
        raise error("rows with a class", "none", where="data")
    known = data.y >= 0 if data.weight is None else (data.y >= 0) & (data.weight > 0)
    if not known.any():
        raise error("rows with a known class and a weight", "none", where="data")
    states = np.array([v.cardinality for v in data.variables], dtype=np.int64)
    index = np.flatnonzero(known)
    dtype = np.uint8 if states.max(initial=0) < 2**8 else np.uint16 if states.max() < 2**16 else np.int32
    codes = np.empty((len(states), len(index)), dtype=dtype)
    for_blocks(lambda first, last: as_columns(data.X, index, states, first, last, codes), len(index), BLOCK)
    begin = np.concatenate([[0], np.cumsum(states + 1)])
    ordered = np.array([is_ordered(v) for v in data.variables], dtype=np.bool_)
    weight = np.ones(len(index)) if data.weight is None else data.weight[known].astype(np.float64)
    columns = Columns(codes, begin, ordered)
    return Rows(columns, index, data.y[known].astype(np.int64), weight, data.target.cardinality)


def is_ordered(variable: Variable) -> bool:
    """Return whether the codes of a variable have an order; two categories are as good as ordered."""
    return not isinstance(variable.encoding, Categories) or variable.cardinality <= 2


def limits_of(options: TreeOptions, features: int, ridge: float, second: float) -> Limits:
    """Return the limits of a tree; a gain is twice the nats that it stands for."""
    looked_at = max(1, round(options.feature_share * features))
    depth = 2**31 - 1 if options.depth is None else options.depth
    return Limits(
        options.leaves,
        depth,
        float(options.leaf_rows),
        second,
        ridge,
        2.0 * options.node_price,
        min(looked_at, features),
    )


def prices_of(options: TreeOptions, columns: Columns, relative: np.ndarray | None = None) -> Prices:
    """Return the prices of all features and thresholds as long as none is used; `relative` ones multiply the option."""
    features = len(columns.begin) - 1
    own = np.ones(features) if relative is None else np.asarray(relative, dtype=np.float64)
    test = np.full(int(columns.begin[-1]), 2.0 * options.threshold_price)
    return Prices(2.0 * options.feature_price * own, test)


def empty_tree(leaves: int, outputs: int, columns: Columns) -> Tree:
    """Return room for a tree."""
    nodes, most = 2 * leaves - 1, int(np.diff(columns.begin).max(initial=1))

    def zeros(kind: type, *more: int) -> np.ndarray:
        return np.zeros((nodes, *more), dtype=kind)

    return Tree(
        feature=zeros(np.int32),
        threshold=zeros(np.int32),
        child=zeros(np.int32),
        missing=zeros(np.bool_),
        members=zeros(np.bool_, most),
        start=zeros(np.int64),
        stop=zeros(np.int64),
        value=zeros(np.float64, outputs),
        second=zeros(np.float64),
        depth=zeros(np.int32),
    )


@dataclass(eq=False)
class Ensemble:
    """Trees as they come, and the tests that they use."""

    prices: Prices
    begin: np.ndarray
    most_tests: int | None = None  # different thresholds of all trees
    trees: list[tuple[int, Tree]] = field(default_factory=list)  # with the class whose score each adds to, or -1

    def __post_init__(self) -> None:
        self.used = np.zeros(int(self.begin[-1]), dtype=np.bool_)
        self.node_bytes, self.largest = 0, 0  # of all trees as nodes, and the nodes of the largest one

    def add(self, output: int, tree: Tree, nodes: int) -> None:
        """Keep a copy of a grown tree, of so many nodes; what it uses is free from now on."""
        kept = Tree(*(array[:nodes].copy() for array in tree))
        self.trees.append((output, kept))
        self.node_bytes += 3 * nodes // 2 + 1
        self.largest = max(self.largest, nodes)
        inner = kept.feature >= 0
        self.prices.feature[kept.feature[inner]] = 0.0
        ordered = inner & (kept.threshold >= 0)
        self.prices.test[self.begin[kept.feature[ordered]] + kept.threshold[ordered]] = 0.0
        self.used[self.begin[kept.feature[ordered]] + kept.threshold[ordered]] = True
        if self.most_tests is not None and self.used.sum() >= self.most_tests:
            self.prices.test[~self.used] = np.inf

    def bytes(self, *, symmetric: bool) -> int:
        """Return the bytes of tests and nodes, roughly: those of levels for symmetric trees, see the price of trees."""
        tests = 3 * int(self.used.sum())
        if not symmetric:
            return tests + self.node_bytes
        depth = self.largest.bit_length() - 1
        return tests + len(self.trees) * (depth + 2**depth // 2)

    def model(self, data: Dataset, start: np.ndarray, count: int | None = None) -> TreeEnsemble:
        """Return the model of the first trees, or of all, in integers; equal values of leaves are stored once.

        Trees that are a leaf are part of the scores to start with.
        """
        assert data.target is not None
        start = start.astype(np.float64)
        chosen = self.trees[:count]
        for output, tree in chosen:
            if len(tree.feature) == 1:
                start[slice(output, output + 1) if output >= 0 else slice(None)] += tree.value[0]
        tested = [(output, tree) for output, tree in chosen if len(tree.feature) > 1]
        if not tested:
            output, tree = chosen[0]
            tested = [(output, tree._replace(value=np.zeros_like(tree.value)))]
        outputs, grown = [o for o, _ in tested], [tree for _, tree in tested]
        sizes = [len(tree.feature) for tree in grown]
        root = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        feature, child, missing = (_joined(grown, name) for name in ("feature", "child", "missing"))
        child = np.where(feature >= 0, child + np.repeat(root, sizes), -1)
        leaf = feature < 0
        value = np.concatenate([tree.value for tree in grown])[leaf]
        largest = max(float(np.abs(value).max()), float(np.abs(start).max()) * 2.0**-8, 2.0**-16)
        scale = largest / (2 ** (VALUE_BITS - 1) - 1)
        values, row = np.unique(np.rint(value / scale).astype(np.int64), axis=0, return_inverse=True)
        threshold = _joined(grown, "threshold").astype(np.int64)
        threshold[leaf] = row.reshape(-1)
        widest = max((v.cardinality for v in data.variables), default=0)
        members = _joined(grown, "members")[~leaf & (threshold < 0)][:, :widest]
        trees = Trees(feature, threshold, child, missing & ~leaf, members, root, np.array(outputs))
        started = np.rint(start / scale).astype(np.int64)
        return TreeEnsemble(data.variables, data.target, trees, values, started, scale)


def _joined(trees: Sequence[Tree], name: str) -> np.ndarray:
    return np.concatenate([getattr(tree, name) for tree in trees])


def drawn_rows(generator: np.random.Generator, count: int, share: float) -> np.ndarray:
    """Return the numbers of rows, all of them or a share drawn without replacement, in their order."""
    if share >= 1:
        return np.arange(count, dtype=np.int32)
    drawn = generator.choice(count, max(1, math.ceil(share * count)), replace=False)
    return np.sort(drawn).astype(np.int32)
