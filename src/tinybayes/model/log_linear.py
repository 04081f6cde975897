"""Log-linear models: weights on features, with the classes of features that share a weight."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinybayes.errors import error
from tinybayes.model.bayes_net import BayesNet, DecisionTree
from tinybayes.model.layout import cells, check_codes
from tinybayes.model.number_format import Codebook
from tinybayes.model.record import Record, indices, integers
from tinybayes.model.variable import Variable

NONE = -1
"""Stands for no feature, which adds nothing."""


@dataclass(frozen=True, eq=False)
class Factor(Record):
    """A map from the values of some variables to the one feature that is then true, or to none.

    Parameters
    ----------
    scope
        The variables, by index.
    feature
        Features by number, `NONE` (-1) for none. Without a tree one entry for each assignment of the scope, the last
        variable running fastest; the same feature may stand in several places.
    tree
        A decision tree over the scope; then its rows are the entries of `feature`.
    """

    scope: tuple[int, ...]
    feature: np.ndarray
    tree: DecisionTree | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scope", indices(self.scope, "factor, scope"))
        feature = integers(self.feature, np.int32, "factor, feature")
        if not feature.size or feature.min() < NONE:
            raise error("numbers of features from -1, on one axis", f"shape {feature.shape}", where="factor")
        object.__setattr__(self, "feature", feature)

    def find(self, X: np.ndarray, cards: Sequence[int]) -> np.ndarray:
        """Return the feature that is true in each complete row, -1 for none."""
        if self.tree is None:
            return self.feature[cells(X, self.scope, cards)]
        tree, node = self.tree, np.zeros(len(X), dtype=np.int64)
        inner = np.flatnonzero(tree.split[node] >= 0)
        while inner.size:
            here = node[inner]
            node[inner] = tree.children[tree.first[here] + X[inner, tree.split[here]]]
            inner = inner[tree.split[node[inner]] >= 0]
        return self.feature[tree.row[node]]


@dataclass(frozen=True, eq=False)
class LogLinear(Record):
    """A distribution ``P(x) = exp(sum of the weights of the features true in x) / Z``.

    Parameters
    ----------
    variables
        The variables.
    factors
        Each says, for every assignment of its variables, which of its features is true.
    weights
        One weight for each tie class; minus infinity forbids the assignments that have the feature.
    ties
        The tie class of each feature; by default every feature has a class, and so a weight, of its own.
    """

    variables: tuple[Variable, ...]
    factors: tuple[Factor, ...]
    weights: np.ndarray
    ties: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        object.__setattr__(self, "factors", tuple(self.factors))
        names = [variable.name for variable in self.variables]
        if not names or len(set(names)) != len(names):
            raise error("variables with distinct names, one at least", f"{names[:10]}", where="log-linear model")
        weights = np.array(self.weights, dtype=np.float64)
        if weights.ndim != 1 or not (weights < np.inf).all():
            raise error("weights below infinity, on one axis", f"shape {weights.shape}", where="weights")
        ties = np.arange(len(weights)) if self.ties is None else np.asarray(self.ties)
        if ties.ndim != 1 or (ties.size and (ties.dtype.kind not in "iu" or ties.min() < 0)):
            raise error("the class of each feature, from 0", f"{ties.dtype} {ties.shape}", where="ties")
        if ties.size and ties.max() >= len(weights):
            raise error(f"classes from 0 to {len(weights) - 1}, which have a weight", int(ties.max()), where="ties")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "ties", np.ascontiguousarray(ties, dtype=np.int32))
        for number, factor in enumerate(self.factors):
            self._check_factor(factor, f"factor {number}")

    def _check_factor(self, factor: Factor, where: str) -> None:
        scope, count = factor.scope, len(self.variables)
        if len(set(scope)) != len(scope) or any(not 0 <= v < count for v in scope):
            raise error(f"distinct variables among 0..{count - 1}", scope, where=where)
        if factor.feature.max() >= self.n_features:
            raise error(f"features from 0 to {self.n_features - 1}", int(factor.feature.max()), where=where)
        cardinality = {v: self.variables[v].cardinality for v in scope}
        if factor.tree is not None:
            factor.tree.check(scope, cardinality, len(factor.feature), where)
        elif len(factor.feature) != (entries := math.prod(cardinality.values())):
            raise error(f"{entries} entries, one an assignment of the scope", len(factor.feature), where=where)

    @property
    def classes(self) -> np.ndarray:
        """The tie class of each feature."""
        assert self.ties is not None
        return self.ties

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.classes)

    @cached_property
    def feature_weights(self) -> np.ndarray:
        """The weight of each feature."""
        return self.weights[self.classes]

    @cached_property
    def cardinalities(self) -> tuple[int, ...]:
        """The number of states of each variable."""
        return tuple(variable.cardinality for variable in self.variables)

    @classmethod
    def from_bayes_net(cls, net: BayesNet) -> "LogLinear":
        """See a Bayesian network as a log-linear model: a feature for each entry of its tables.

        Features are numbered through the tables, one after the other, row by row; the class variable is the last.
        Entries stored in a `Codebook` are tied: those of equal codebooks with the same level are one class.
        """
        if not net.nodes:
            raise error("a network with variables", "none", where="log-linear model")
        values = np.concatenate([cpd.log_parameters.reshape(-1) for cpd in net.cpds])
        keys = np.arange(len(values))  # entries with the same key are tied
        first_key, next_key = dict[Codebook, int](), len(values)
        factors, start = [], 0
        for node, cpd in enumerate(net.cpds):
            stop = start + cpd.table.size
            tree = None if cpd.tree is None else _with_state(cpd.tree, node, cpd.table.shape[1])
            factors.append(Factor((*cpd.parents, node), np.arange(start, stop), tree))
            if isinstance(cpd.format, Codebook):
                if cpd.format not in first_key:
                    first_key[cpd.format], next_key = next_key, next_key + len(cpd.format.values)
                keys[start:stop] = first_key[cpd.format] + cpd.table.reshape(-1).astype(np.int64)
            start = stop
        _, where, ties = np.unique(keys, return_index=True, return_inverse=True)
        return cls(net.nodes, tuple(factors), values[where], ties.reshape(-1))

    def untied(self) -> "LogLinear":
        """Return the same distribution with a weight for every feature."""
        return LogLinear(self.variables, self.factors, self.feature_weights)

    def features(self, X: np.ndarray) -> np.ndarray:
        """Return the features true in complete rows, shape (rows, factors); -1 where a factor has none."""
        X = self._complete(X)
        true_features = np.empty((len(X), len(self.factors)), dtype=np.int32)
        for number, factor in enumerate(self.factors):
            true_features[:, number] = factor.find(X, self.cardinalities)
        return true_features

    def log_weights(self, X: np.ndarray) -> np.ndarray:
        """Return ``log(Z P(x))`` for complete rows: the sum of the weights of the features that are true."""
        X = self._complete(X)
        weights = np.append(self.feature_weights, 0.0)  # the last is that of no feature
        total = np.zeros(len(X))
        for factor in self.factors:
            total += weights[factor.find(X, self.cardinalities)]
        return total

    def counts(self, X: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        """Return how often each feature is true in complete rows, weighted if weights are given."""
        X = self._complete(X)
        total = np.zeros(self.n_features + 1)
        for factor in self.factors:
            low = int(factor.feature.min())
            part = np.bincount(factor.find(X, self.cardinalities) - low, weight)
            total[low + 1 : low + 1 + len(part)] += part
        return total[1:]

    def class_counts(self, X: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        """Return how often the features of each tie class are true in complete rows."""
        return np.bincount(self.classes, self.counts(X, weight), len(self.weights))

    def _complete(self, X: np.ndarray) -> np.ndarray:
        remedy = "compile the model to a circuit, which sums out missing values"
        return check_codes(X, self.cardinalities, where="rows", complete=True, remedy=remedy)


def _with_state(tree: DecisionTree, node: int, states: int) -> DecisionTree:
    """Let each leaf of a tree go on to a test of the variable itself: from rows of a table to its entries."""
    leaves = np.flatnonzero(tree.split < 0)
    nodes, edges = len(tree.split), len(tree.children)
    split, first = tree.split.copy(), tree.first.copy()
    split[leaves] = node
    first[leaves] = edges + states * np.arange(len(leaves))
    entries = (tree.row[leaves][:, None] * states + np.arange(states)).reshape(-1)
    made = len(entries)
    return DecisionTree(
        np.concatenate([split, np.full(made, -1)]),
        np.concatenate([first, np.zeros(made)]),
        np.concatenate([tree.children, nodes + np.arange(made)]),
        np.concatenate([np.zeros(nodes), entries]),
    )
