"""A Bayesian network laid out for the scoring kernels."""

from functools import cached_property

import numpy as np

from tinybayes._kernels.scores import (
    ForestLayout,
    TableLayout,
    TreeLayout,
    table_labels,
    table_scores,
    tree_scores,
)
from tinybayes._kernels.threads import for_blocks
from tinybayes.errors import error
from tinybayes.model import BayesNet, Fixed, Float
from tinybayes.model.layout import check_codes, starts, strides

BLOCK = 4096  # rows of a unit of work: their scores stay in the cache
ROWS = 64  # rows that are scored together when only their labels are wanted


def scorer(net: BayesNet) -> "Scorer":
    """Return the network laid out for the kernels; it is cached on the network, which is immutable."""
    kept = net.__dict__.get("_scorer")
    if kept is None:
        kept = net.__dict__["_scorer"] = Scorer(net)
    return kept


class Scorer:
    """A network laid out for the scoring kernels."""

    def __init__(self, net: BayesNet) -> None:
        if net.target is None:
            raise error("a network with a class variable", "none", where="class scores", remedy="name a target")
        self.net = net
        self.classes, self.states = net.target.cardinality, [v.cardinality for v in net.variables]
        formats = {cpd.format for cpd in net.cpds}
        only = formats.pop() if len(formats) == 1 else None
        self.fixed = only if isinstance(only, Fixed) else None
        # Codes of one format are added as they are; anything else is decoded first.
        self.tables = [cpd.table if isinstance(only, Fixed | Float) else cpd.log_parameters for cpd in net.cpds]
        self.has_trees = any(cpd.tree is not None for cpd in net.cpds)
        self.kernel = tree_scores if self.has_trees else table_scores
        self.layout = self.lay_out(self.tables)

    def lay_out(self, tables: list[np.ndarray]) -> TableLayout | TreeLayout:
        """Lay out tables of the shapes of the network's for the kernel."""
        return (_tree_layout if self.has_trees else _table_layout)(self.net, tables)

    def check(self, X: np.ndarray) -> np.ndarray:
        """Check shape and range, so that no kernel reads beyond a table."""
        return np.ascontiguousarray(check_codes(X, self.states))

    def labels(self, X: np.ndarray, out: np.ndarray) -> None:
        """Write the most probable class of each row of a complete block."""
        if self.fixed is None and not self.has_trees:
            # Scores are needed for a few rows at a time only: they stay in the nearest cache.
            table_labels(X, self.layout, np.empty((ROWS, self.classes)), out)
            return
        scores = np.empty((len(X), self.classes))
        self.into(X, scores)
        out[:] = scores.argmax(axis=1)

    def into(self, X: np.ndarray, out: np.ndarray) -> None:
        """Write the scores of a complete block in nats."""
        if self.fixed is None:
            self.kernel(X, self.layout, out)
            return
        sums = np.empty(out.shape, dtype=np.int64)
        self.kernel(X, self.layout, sums)
        out[:] = self.fixed.decode(sums)

    @cached_property
    def forest(self) -> ForestLayout:
        """The decoded tables laid out for summing out missing values."""
        return self.lay_out_forest([cpd.log_parameters for cpd in self.net.cpds])

    def lay_out_forest(self, tables: list[np.ndarray]) -> ForestLayout:
        """Lay out tables of the shapes of the network's, for a class with a forest of features below it."""
        net, parent = self.net, forest_parents(self.net)
        if parent is None:
            raise error(
                "features with the class and at most one feature as parents",
                "another structure",
                where="rows with missing values",
                remedy="fill the gaps, or use a naive Bayes or TAN classifier",
            )
        features = len(net.variables)
        order = [v for v in reversed(net.structure.order) if v < features]
        # Full tables of such a network, class fastest, have the axes (parent, own value, class).
        layout = _table_layout(net, tables)
        index = (_int64(order), _int64(parent), _int64(self.states))
        return ForestLayout(*index, layout.offset[:features], layout.entries, tables[features][0])

    def integers(self, X: np.ndarray, layout: TableLayout | TreeLayout) -> np.ndarray:
        """Return the sums for complete rows over the layout of tables that hold integers."""
        X = self.check(X)
        if has_gaps(X):
            raise error("complete rows", "missing values (-1)", where="integer scores")
        out = np.empty((len(X), self.classes), dtype=np.int64)
        for_blocks(lambda start, stop: self.kernel(X[start:stop], layout, out[start:stop]), len(X), BLOCK)
        return out


def forest_parents(net: BayesNet) -> list[int] | None:
    """Return the one feature that is a parent of each feature, or -1; None for all but forests below a class.

    Only in a forest of full tables a single pass sums out missing values.
    """
    features, parent = len(net.variables), []
    if net.target is None or net.cpds[features].parents:
        return None
    for cpd in net.cpds[:features]:
        others = [p for p in cpd.parents if p != features]
        if cpd.tree is not None or len(others) > 1 or features not in cpd.parents:
            return None
        parent.append(others[0] if others else -1)
    return parent


def has_gaps(X: np.ndarray) -> bool:
    """Tell whether any value is missing."""
    return bool(X.size and X.min() < 0)


def _table_layout(net: BayesNet, tables: list[np.ndarray]) -> TableLayout:
    """Lay out full tables flat, the class index fastest."""
    features = len(net.variables)
    states = [node.cardinality for node in net.nodes]
    feature: list[int] = []
    stride: list[int] = []
    first, has_class, parts = [0], [], []
    for family, table in zip(net.structure.families, tables, strict=True):
        array = table.reshape([states[v] for v in family])
        others = [v for v in family if v != features]
        has_class.append(features in family)
        if has_class[-1]:
            array = np.moveaxis(array, family.index(features), -1)
        feature += others
        stride += strides([states[v] for v in others], states[features] if has_class[-1] else 1)
        first.append(len(feature))
        parts.append(array.reshape(-1))
    offset = starts(len(part) for part in parts)[:-1]
    index = (_int64(first), _int64(feature), _int64(stride))
    return TableLayout(*index, offset, np.array(has_class), np.concatenate(parts))


def _tree_layout(net: BayesNet, tables: list[np.ndarray]) -> TreeLayout:
    """Lay out networks in which some tables are reached through trees."""
    cards = [node.cardinality for node in net.nodes]
    trees = [cpd.tree for cpd in net.cpds if cpd.tree is not None]
    first_node, first_edge = starts(len(tree.split) for tree in trees), starts(len(tree.children) for tree in trees)
    roots = iter(first_node.tolist())
    return TreeLayout(
        first=starts(len(cpd.parents) for cpd in net.cpds),
        parent=_int64([p for cpd in net.cpds for p in cpd.parents]),
        stride=_int64([s for cpd in net.cpds for s in strides([cards[p] for p in cpd.parents])]),
        root=_int64([-1 if cpd.tree is None else next(roots) for cpd in net.cpds]),
        split=_joined([tree.split for tree in trees]),
        first_child=_joined([tree.first + edge for tree, edge in zip(trees, first_edge, strict=False)]),
        children=_joined([tree.children + node for tree, node in zip(trees, first_node, strict=False)]),
        leaf_row=_joined([tree.row for tree in trees]),
        offset=starts(table.size for table in tables)[:-1],
        states=_int64(cards),
        entries=np.concatenate([table.reshape(-1) for table in tables]),
    )


def _int64(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts).astype(np.int64)
