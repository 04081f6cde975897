"""Scores of rows under an ensemble of decision trees."""

import numpy as np

from tinybayes._kernels import jit


@jit
def goes_left(threshold, missing, members, first_set, node, code):
    """Tell whether a code goes left at a node; a code below zero is missing."""
    if code < 0:
        return missing[node]
    if threshold[node] >= 0:
        return code <= threshold[node]
    return members[first_set[node], code]


@jit
def leaf_of(feature, threshold, child, missing, members, first_set, node, x):
    """Return the leaf that a row of codes falls into, from a node on."""
    while feature[node] >= 0:
        left = goes_left(threshold, missing, members, first_set, node, x[feature[node]])
        node = child[node] if left else child[node] + 1
    return node


@jit
def add_trees(feature, threshold, child, missing, members, first_set, root, output, values, X, scores):
    """Add the values of the leaves that rows of codes fall into, tree by tree.

    `first_set` has, for each node, the row of its members.
    """
    for i in range(len(X)):
        for t in range(len(root)):
            node = leaf_of(feature, threshold, child, missing, members, first_set, root[t], X[i])
            if output[t] >= 0:
                scores[i, output[t]] += values[threshold[node], 0]
            else:
                for c in range(scores.shape[1]):
                    scores[i, c] += values[threshold[node], c]


@jit
def find_leaves(feature, threshold, child, missing, members, first_set, root, X):
    """Return the leaf of every tree that each row falls into, shape (trees, rows)."""
    leaves = np.empty((len(root), len(X)), dtype=np.int32)
    for i in range(len(X)):
        for t in range(len(root)):
            leaves[t, i] = leaf_of(feature, threshold, child, missing, members, first_set, root[t], X[i])
    return leaves


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
