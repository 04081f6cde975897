"""What each feature contributes to a score of decision trees: Shapley values, exactly.

A feature's Shapley value is the mean change of the score when its value becomes known, over all orders in which the
features of the row become known; Lundberg et al. (2020), *From local explanations to global understanding with
explainable AI for trees*. Until then, it has the value of another row: of each row of a background in turn
("interventional" values), or all known states of all features are equally likely. Trees hold no counts of training
rows, so the values that depend on those ("path-dependent") are not defined here.
"""

import numpy as np

from tinybayes._kernels.tree_shares import add_shares, link_nodes, pass_tests, share_codes
from tinybayes.model import TreeEnsemble
from tinybayes.model.layout import check_codes


def tree_odds(
    model: TreeEnsemble, row: np.ndarray, label: int, other: int, background: np.ndarray | None
) -> np.ndarray:
    """Return what each feature of a row adds to the log-odds of two classes, then their mean in the background."""
    trees, states = model.trees, np.array([v.cardinality for v in model.variables], dtype=np.int64)
    first_set = (np.cumsum(trees.is_set) - 1).astype(np.int32)
    parent, above = link_nodes(trees.feature, trees.child)
    nodes = trees.feature, trees.threshold, trees.child, trees.missing, trees.members, first_set, above
    known, share = np.ones(len(trees.feature)), np.ones(len(trees.feature))
    points, weights = np.polynomial.legendre.leggauss(max(1, (int(trees.depth.max()) + 1) // 2))
    quadrature = (points + 1.0) / 2.0, weights / 2.0
    worth, odds = _worth(model, label, other), np.zeros(len(states))
    pass_tests(*nodes, check_codes(row[None], states)[0], known)
    if background is None:
        share_codes(*nodes[:3], trees.members, first_set, parent, above, states, share)
        mean = add_shares(trees.feature, parent, above, known, share, worth, *quadrature, odds)
    else:
        rows, mean = check_codes(background, states, where="background"), 0.0
        for one in rows:
            pass_tests(*nodes, one, share)
            mean += add_shares(trees.feature, parent, above, known, share, worth, *quadrature, odds)
        mean, odds = mean / len(rows), odds / len(rows)
    start = model.start.astype(np.float64)
    return np.append(odds, start[label] - start[other] + mean) * model.scale


def _worth(model: TreeEnsemble, label: int, other: int) -> np.ndarray:
    """Return what each leaf adds to the score of the label less that of the other class."""
    trees, values = model.trees, model.values.astype(np.float64)
    row = np.where(trees.is_leaf, trees.threshold, 0)
    if values.shape[1] > 1:
        return np.where(trees.is_leaf, values[row, label] - values[row, other], 0.0)
    output = np.repeat(trees.output, np.diff(np.append(trees.root, len(trees.feature))))
    sign = (output == label).astype(np.float64) - (output == other)
    return np.where(trees.is_leaf, sign * values[row, 0], 0.0)
