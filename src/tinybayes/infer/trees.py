"""Scores of tree ensembles in integers: the meaning that exported code must have."""

import numpy as np

from tinybayes._kernels.threads import for_blocks
from tinybayes._kernels.tree_scores import add_trees
from tinybayes.model import TreeEnsemble
from tinybayes.model.layout import check_codes

BLOCK = 1024  # rows a task


def tree_scores(model: TreeEnsemble, X: np.ndarray) -> np.ndarray:
    """Return the integer scores of all classes, shape (rows, classes); the largest wins.

    A missing value (-1) goes to the side that was learned for it.
    """
    X = check_codes(X, [v.cardinality for v in model.variables])
    trees, scores = model.trees, np.tile(model.start.astype(np.int64), (len(X), 1))
    first_set = (np.cumsum(trees.is_set) - 1).astype(np.int32)
    nodes = (trees.feature, trees.threshold, trees.child, trees.missing, trees.members, first_set)

    def work(start: int, stop: int) -> None:
        add_trees(*nodes, trees.root, trees.output, model.values, X[start:stop], scores[start:stop])

    for_blocks(work, len(X), BLOCK)
    return scores
