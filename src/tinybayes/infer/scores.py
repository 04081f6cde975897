"""Class scores and labels of classifiers, block by block on all cores.

Rows are scored in blocks, so that nothing copies the table. Missing values are summed out by one upward pass over the
forest of features for each class. A structure with several feature parents refuses rows with missing values; compiled
to a circuit, any structure answers them.
"""

from collections.abc import Iterator

import numpy as np

from tinybayes._kernels.scores import (
    ForestLayout,
    TableLayout,
    TreeLayout,
    forest_scores,
    table_labels,
    table_scores,
    tree_scores,
)
from tinybayes._kernels.threads import for_blocks
from tinybayes.errors import error
from tinybayes.infer.circuit import log_joint_with_class
from tinybayes.infer.neural_net import net_scores
from tinybayes.model import BayesNet, Circuit, Fixed, Float, NeuralNet
from tinybayes.model.layout import check_codes, starts, strides

Classifier = BayesNet | Circuit | NeuralNet

BLOCK = 4096  # rows of a unit of work: their scores stay in the cache
ROWS = 64  # rows that are scored together when only their labels are wanted


def class_scores(net: Classifier, X: np.ndarray) -> np.ndarray:
    """Return ``log p(x, c)`` for each row and class; for a neural net ``log p(c | x)`` up to a constant per row.

    Missing values (-1) are summed out exactly, which gives the class posterior and not the most probable
    completion. Networks quantised to one `Fixed` format are added up in integers, so that the scores are exact.

    Parameters
    ----------
    net
        A network or a circuit with a class, or a neural net.
    X
        Codes, shape (rows, features).

    Returns
    -------
    ndarray of float64, shape (rows, classes)
    """
    if isinstance(net, Circuit):
        return _circuit_scores(net, X)
    if isinstance(net, NeuralNet):
        return net_scores(net, X) * net.scale
    score = scorer(net)
    X = score.check(X)
    out = np.empty((len(X), score.classes))
    for_blocks(lambda start, stop: score.into(X[start:stop], out[start:stop]), len(X), BLOCK)
    return out


def predict_codes(net: Classifier, X: np.ndarray) -> np.ndarray:
    """Return the code of the most probable class of each row, the first one in case of a tie.

    Only the labels are kept: memory does not grow with the number of classes.
    """
    labels = np.empty(len(X), dtype=np.int32)
    if isinstance(net, NeuralNet | Circuit):
        for start in range(0, max(len(X), 1), BLOCK):  # once also without rows, for the checks
            rows = X[start : start + BLOCK]
            scores = net_scores(net, rows) if isinstance(net, NeuralNet) else _circuit_scores(net, rows)
            labels[start : start + BLOCK] = scores.argmax(axis=1)
        return labels
    score = scorer(net)
    X = score.check(X)
    for_blocks(lambda start, stop: score.labels(X[start:stop], labels[start:stop]), len(X), BLOCK)
    return labels


def _circuit_scores(circuit: Circuit, X: np.ndarray) -> np.ndarray:
    """Ask for all classes at once, a block of rows at a time."""
    if circuit.target is None:
        raise error("a circuit with a class variable", "none", where="class scores", remedy="learn it with a target")
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != len(circuit.variables):
        raise error(f"integer codes with {len(circuit.variables)} columns", f"shape {X.shape}", where="X")
    scores = np.empty((len(X), circuit.target.cardinality))
    for start in range(0, len(X), BLOCK):
        scores[start : start + BLOCK] = log_joint_with_class(circuit, X[start : start + BLOCK])
    return scores


def normalize_scores(scores: np.ndarray) -> np.ndarray:
    """Turn log-joint scores into log-posteriors; a row that is impossible under every class becomes uniform."""
    top = scores.max(axis=1, keepdims=True)
    shifted = np.where(top == -np.inf, 0.0, scores - np.where(top == -np.inf, 0.0, top))
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def score_blocks(net: BayesNet, X: np.ndarray, rows: int = 2**16) -> Iterator[tuple[int, np.ndarray]]:
    """Yield ``(first row, scores)`` for consecutive blocks, for data whose scores do not fit in memory."""
    for start in range(0, len(X), rows):
        yield start, class_scores(net, X[start : start + rows])


def integer_scores(net: BayesNet, X: np.ndarray) -> np.ndarray:
    """Return the sums of the integer codes of a network in one `Fixed` format; the smallest sum wins.

    The score in nats is ``-sum / 2**fraction``. Rows must be complete.
    """
    score = scorer(net)
    if score.fixed is None:
        raise error("one Fixed format in all tables", "other formats", where="integer scores")
    return score.integers(X, score.layout)


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
        """Write the most probable class of each row of a block."""
        if self.fixed is None and not self.has_trees and not _has_gaps(X):
            # Scores are needed for a few rows at a time only: they stay in the nearest cache.
            table_labels(X, self.layout, np.empty((ROWS, self.classes)), out)
            return
        scores = np.empty((len(X), self.classes))
        self.into(X, scores)
        out[:] = scores.argmax(axis=1)

    def into(self, X: np.ndarray, out: np.ndarray) -> None:
        """Write the scores of a block in nats."""
        gaps = (X < 0).any(axis=1) if _has_gaps(X) else None
        if gaps is None and self.fixed is None:
            self.kernel(X, self.layout, out)
            return
        complete = slice(None) if gaps is None else ~gaps
        scores = np.empty((len(X[complete]), self.classes), dtype=np.float64 if self.fixed is None else np.int64)
        self.kernel(X[complete], self.layout, scores)
        out[complete] = scores if self.fixed is None else self.fixed.decode(scores)
        if gaps is not None:
            incomplete = np.empty((int(gaps.sum()), self.classes))
            forest_scores(X[gaps], _forest_layout(self.net), incomplete)
            out[gaps] = incomplete

    def integers(self, X: np.ndarray, layout: TableLayout | TreeLayout) -> np.ndarray:
        """Return the sums for complete rows over the layout of tables that hold integers."""
        X = self.check(X)
        if _has_gaps(X):
            raise error("complete rows", "missing values (-1)", where="integer scores")
        out = np.empty((len(X), self.classes), dtype=np.int64)
        for_blocks(lambda start, stop: self.kernel(X[start:stop], layout, out[start:stop]), len(X), BLOCK)
        return out


def _has_gaps(X: np.ndarray) -> bool:
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


def _forest_layout(net: BayesNet) -> ForestLayout:
    """Lay out a class with a forest of features below it, for summing out missing values."""
    features = len(net.variables)
    parent = []
    for cpd in net.cpds[:features]:
        others = [p for p in cpd.parents if p != features]
        if cpd.tree is not None or len(others) > 1 or features not in cpd.parents or net.cpds[features].parents:
            raise error(
                "features with the class and at most one feature as parents",
                "another structure",
                where="rows with missing values",
                remedy="fill the gaps, or use a naive Bayes or TAN classifier",
            )
        parent.append(others[0] if others else -1)
    order = [v for v in reversed(net.structure.order) if v < features]
    # Full tables of such a network, class fastest, have the axes (parent, own value, class).
    tables = _table_layout(net, [cpd.log_parameters for cpd in net.cpds])
    index = (_int64(order), _int64(parent), _int64([v.cardinality for v in net.variables]))
    return ForestLayout(*index, tables.offset[:features], tables.entries, net.cpds[features].log_parameters[0])


def _int64(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts).astype(np.int64)
