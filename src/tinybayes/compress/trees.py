"""Few values for the leaves of trees: levels by k-means, and leaves that make up for what rounding changed.

Rounding all leaves to a few levels moves every score by a sum of small errors. So leaves are rounded tree by tree: what
the trees before have changed in the scores of its rows is added to the value of a leaf before it is rounded. The errors
then cancel instead of adding up. The scores to keep to are those of the given trees, so that nothing is learned twice.

Leaves of a forest hold a vector each, the shares of all classes. They share a few vectors, found by k-means.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tinybayes._kernels.threads import for_blocks
from tinybayes._kernels.tree_scores import find_leaves, round_leaves
from tinybayes.compress.levels import optimal_levels
from tinybayes.errors import error
from tinybayes.extras import require
from tinybayes.infer.scores import normalize_scores
from tinybayes.infer.trees import tree_scores
from tinybayes.model import Dataset, TreeEnsemble

if TYPE_CHECKING:
    import pandas as pd

PASSES = 3
BLOCK = 8  # trees a task
ROUNDS, VECTORS = 20, 4000  # of k-means, at most, and what it is fitted to
PEAK = 127  # the largest entry of a shared vector: one byte
POINTS = 20_000  # distinct numbers that levels are fitted to, at most


def tie_leaves(
    model: TreeEnsemble, levels: int, data: "Dataset | pd.DataFrame | np.ndarray", *, passes: int = PASSES
) -> TreeEnsemble:
    """Round the leaves of boosted trees or of a forest to so many levels, chosen for the rows of a table.

    Parameters
    ----------
    model
        Trees with one value in each leaf, or with one for every class.
    levels
        Different values, or vectors of values, of all leaves together, at most.
    data
        Rows that the scores are kept for: raw values, in a frame or a matrix, or codes in the encoding of the model as
        a `Dataset`. The classes are not used.
    passes
        How often all leaves are rounded again, with levels fitted to what the leaves should hold.
    """
    if levels < 1:
        raise error("at least one level", levels, where="levels")
    if not isinstance(data, Dataset):
        from tinybayes.data.encode import encode_frame, encode_matrix  # which workers of a search do without

        if isinstance(data, np.ndarray):
            data = Dataset(model.variables, None, encode_matrix(data, model.variables))
        else:
            data = Dataset(model.variables, None, encode_frame(data, model.variables))
    trees, leaf = model.trees, model.trees.is_leaf
    leaves = _leaves(model, data.X)
    if model.values.shape[1] > 1:
        weight = np.broadcast_to(1.0 if data.weight is None else data.weight, leaves.shape)
        return _shared_vectors(model, levels, np.bincount(leaves.ravel(), weight.ravel(), len(leaf)))
    scores = tree_scores(model, data.X)
    share = np.exp(normalize_scores(scores * model.scale))
    weight = share * (1.0 - share) + 1e-3  # the curvature of the log loss: where a change of the score matters
    if data.weight is not None:
        weight *= data.weight[:, None]
    value = np.where(leaf, model.values[np.where(leaf, trees.threshold, 0), 0], 0).astype(np.float64)
    behind, wanted, mass = np.zeros(scores.T.shape), value.copy(), np.ones(len(value))
    for _ in range(passes):
        fitted = _levels(wanted[leaf], mass[leaf], levels)
        round_leaves(leaves, trees.output, weight, fitted, value, behind, wanted, mass)
    nearest = fitted[np.abs(value[leaf][:, None] - fitted).argmin(axis=1)]  # of leaves without rows
    values, row = np.unique(nearest.astype(np.int64), return_inverse=True)
    threshold = trees.threshold.copy()
    threshold[leaf] = row
    return replace(model, trees=replace(trees, threshold=threshold), values=values[:, None])


def _leaves(model: TreeEnsemble, X: np.ndarray) -> np.ndarray:
    """Return the leaf of every tree, as the number of its node, that each row ends in."""
    trees = model.trees
    first_set = (np.cumsum(trees.is_set) - 1).astype(np.int32)
    nodes = trees.feature, trees.threshold, trees.child, trees.missing, trees.members, first_set
    leaves = np.empty((trees.count, len(X)), dtype=np.int32)

    def find(first: int, last: int) -> None:
        find_leaves(*nodes, trees.root[first:last], X, leaves[first:last])

    for_blocks(find, trees.count, BLOCK)
    return leaves


def _shared_vectors(model: TreeEnsemble, levels: int, mass: np.ndarray) -> TreeEnsemble:
    """Let leaves share vectors, found by k-means of their own ones, each weighted by the rows that end in its nodes."""
    require("sklearn")
    from sklearn.cluster import KMeans

    leaf, largest = model.trees.is_leaf, max(1, int(np.abs(model.values).max()))
    row = model.trees.threshold[leaf]
    weight = np.bincount(row, mass[leaf], len(model.values)) + 1e-6
    means, nearest = model.values / largest, np.arange(len(model.values))
    if len(means) > levels:
        heaviest = np.argsort(-weight, kind="stable")[:VECTORS]
        clusters = KMeans(levels, n_init=1, max_iter=ROUNDS, random_state=0)
        clusters.fit(means[heaviest], sample_weight=weight[heaviest])
        means, nearest = clusters.cluster_centers_, clusters.predict(means)
    values, kept = np.unique(np.rint(means * PEAK).astype(np.int64), axis=0, return_inverse=True)
    threshold = model.trees.threshold.copy()
    threshold[leaf] = kept.reshape(-1)[nearest[row]]
    start, scale = np.rint(model.start * PEAK / largest).astype(np.int64), model.scale * largest / PEAK
    trees = replace(model.trees, threshold=threshold)
    return replace(model, trees=trees, values=values, start=start, scale=scale)


def _levels(wanted: np.ndarray, mass: np.ndarray, levels: int) -> np.ndarray:
    """Return integer levels for the wanted values, weighted by what the rows of a leaf count."""
    points = np.rint(wanted)
    if len(points) > POINTS:  # a coarser grid has fewer points
        step = max(1.0, (points.max() - points.min()) / POINTS)
        points = np.rint(points / step) * step
    few = min(levels, len(np.unique(points)))
    return np.unique(np.rint(optimal_levels(points, few, np.maximum(mass, 1e-6))))
