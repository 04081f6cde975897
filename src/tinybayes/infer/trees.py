"""Scores of tree ensembles, as a device adds them up."""

import numpy as np

from tinybayes._kernels.threads import for_blocks
from tinybayes._kernels.tree_scores import add_trees
from tinybayes.errors import error
from tinybayes.model import Float, TreeEnsemble

BLOCK = 1024  # rows a task


def tree_scores(model: TreeEnsemble, X: np.ndarray) -> np.ndarray:
    """Return the scores of all classes: the values of the leaves, added up tree by tree.

    A missing value (-1) goes to the side that was learned for it. In a `Float` format the sums are 32-bit floats, in
    other formats integers: the stored codes of `Fixed`, the indices of a `Codebook` replaced by their levels.

    Parameters
    ----------
    model
        The trees.
    X
        Codes, shape (rows, features).

    Returns
    -------
    ndarray of float64, shape (rows, classes)
        In nats for boosted trees; shares of votes for forests.
    """
    X = np.ascontiguousarray(X)
    if X.ndim != 2 or X.shape[1] != len(model.variables) or X.dtype.kind not in "iu":
        raise error(f"codes of {len(model.variables)} features", f"{X.dtype} {X.shape}", where="X")
    states = np.array([v.cardinality for v in model.variables], dtype=np.int64)
    if len(X) and (X.max(axis=0) >= states).any():
        raise error("codes below the number of states", int(X.max()), where="X")
    dtype = np.float32 if isinstance(model.format, Float) else np.float64
    table, trees = model.values.astype(dtype), model.trees
    scores = np.tile(model.format.decode(model.start).astype(dtype), (len(X), 1))
    first_set = (np.cumsum(trees.is_set) - 1).astype(np.int32)
    nodes = (trees.feature, trees.threshold, trees.child, trees.missing, trees.members, first_set)

    def work(start: int, stop: int) -> None:
        add_trees(*nodes, trees.root, trees.output, table, X[start:stop], scores[start:stop])

    for_blocks(work, len(X), BLOCK)
    return scores.astype(np.float64)
