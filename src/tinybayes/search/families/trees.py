"""Decision trees and forests of scikit-learn, as baselines: priced, so that one sees where they win; not deployed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinybayes.model import Cost, Dataset
from tinybayes.search.families.family import Learned, Listed, Setting


@dataclass(frozen=True, eq=False)
class Baseline(Listed):
    """Trees that vote."""

    make: Callable[[Setting], Any]  # from a setting to a classifier of scikit-learn

    deployable = False

    def learn(self, rows: Dataset, setting: Setting, patience: float) -> Learned:
        """Fit on the rows with a class, and price the trees."""
        assert rows.y is not None
        rows = rows.rows(rows.y >= 0)
        assert rows.target is not None
        classifier = self.make(setting).fit(rows.X, rows.y)
        trees = getattr(classifier, "estimators_", [classifier])
        cost = sum((tree_cost(tree.tree_, rows) for tree in trees), Cost())
        return Learned(setting, None, cost, _posteriors(classifier, rows.target.cardinality))


def _tree(setting: Setting) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_leaf_nodes=setting["leaves"], random_state=0)


def _forest(setting: Setting) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(setting["trees"], max_leaf_nodes=setting["leaves"], random_state=0, n_jobs=1)


def _posteriors(classifier: Any, classes: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from codes to logarithms of posteriors; classes without a row have none."""

    def log_posteriors(X: np.ndarray) -> np.ndarray:
        p = np.zeros((len(X), classes))
        p[:, classifier.classes_] = classifier.predict_proba(X)
        return np.asarray(np.log(np.maximum(p, 1e-12)))

    return log_posteriors


def tree_cost(tree: Any, data: Dataset) -> Cost:
    """Price a decision tree that is stored node by node, the left child next to its parent.

    An inner node has a feature, a threshold and the address of its right child; a leaf has a class; one bit tells them
    apart. A prediction takes one operation a level, and a forest one more a tree for its vote.
    """
    assert data.target is not None
    inner = int((tree.children_left >= 0).sum())
    leaves = tree.node_count - inner
    widest = max(v.cardinality for v in data.variables)
    of_inner = _width(len(data.variables)) + _width(widest) + _width(tree.node_count)
    bits = inner * of_inner + leaves * _width(data.target.cardinality) + tree.node_count
    return Cost(bits=bits, parameters=3 * inner + leaves, additions=int(tree.max_depth) + 1, comparisons=tree.max_depth)


def _width(count: int) -> int:
    return max(1, (count - 1).bit_length())


LEAVES = (8, 16, 32, 64, 128, 256, 512)
TREE = Baseline("tree", {"leaves": LEAVES}, "decision tree, {leaves} leaves", _tree)
FOREST = Baseline(
    "forest",
    {"trees": (5, 10, 30), "leaves": (32, 128, 512)},
    "{trees} trees of {leaves} leaves",
    _forest,
)
