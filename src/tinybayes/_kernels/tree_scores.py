"""Scores of rows under an ensemble of decision trees."""

import numpy as np

from tinybayes._kernels import jit, plain


@plain
def goes_left(threshold, missing, members, first_set, node, code):
    """Tell whether a code goes left at a node; a code below zero is missing."""
    if code < 0:
        return missing[node]
    if threshold[node] >= 0:
        return code <= threshold[node]
    return members[first_set[node], code]


@plain
def leaf_of(feature, threshold, child, missing, members, first_set, node, X, i):
    """Return the leaf that a row of codes falls into, from a node on."""
    at, row = np.uint64(node), np.uint64(i)
    while feature[at] >= 0:
        code = X[row, np.uint64(feature[at])]
        left = goes_left(threshold, missing, members, first_set, at, code)
        at = np.uint64(child[at] + (0 if left else 1))
    return at


@plain
def add_trees(feature, threshold, child, missing, members, first_set, root, output, values, X, scores):
    """Add the values of the leaves that rows of codes fall into, tree by tree: a tree and a block of rows are cached.

    `first_set` has, for each node, the row of its members.
    """
    for t in range(len(root)):
        for i in range(len(X)):
            node = leaf_of(feature, threshold, child, missing, members, first_set, root[t], X, i)
            if output[t] >= 0:
                scores[i, output[t]] += values[threshold[node], 0]
            else:
                for c in range(scores.shape[1]):
                    scores[i, c] += values[threshold[node], c]


@plain
def find_leaves(feature, threshold, child, missing, members, first_set, root, X, leaves):
    """Write the leaf of every tree that each row falls into, shape (trees, rows)."""
    for t in range(len(root)):
        for i in range(len(X)):
            leaves[t, i] = leaf_of(feature, threshold, child, missing, members, first_set, root[t], X, i)


@jit
def round_leaves(leaves, output, weight, levels, value, behind, wanted, mass):
    """Round the values of leaves to the closest levels, tree by tree.

    `behind`, shape (classes, rows), is what the scores lack; it is kept up to date. A leaf should hold its value plus
    the mean of what its rows lack: that is written to `wanted`, and the weight of the rows to `mass`.
    """
    mass[:] = 0.0
    lack = np.zeros(len(value))
    for t in range(len(leaves)):
        c, low, high = output[t], len(value), -1
        for i in range(leaves.shape[1]):
            leaf = leaves[t, i]
            mass[leaf] += weight[i, c]
            lack[leaf] += weight[i, c] * behind[c, i]
            low, high = min(low, leaf), max(high, leaf)
        for leaf in range(low, high + 1):
            if mass[leaf] > 0.0:
                wanted[leaf] = value[leaf] + lack[leaf] / mass[leaf]
                lack[leaf] = value[leaf]
                value[leaf] = levels[np.argmin(np.abs(levels - wanted[leaf]))]
        for i in range(leaves.shape[1]):
            leaf = leaves[t, i]
            behind[c, i] += lack[leaf] - value[leaf]
