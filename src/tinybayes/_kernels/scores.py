"""Class scores ``log p(x, c)`` of a Bayesian network for rows of codes.

Tables are laid out flat with the class index running fastest, so that the inner loop over the classes is a plain
vector addition; `counts.py` describes the layout. Integer tables are added in integers.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit


class TableLayout(NamedTuple):
    """Full tables, the class (if it is in the table) last; table ``t`` has the features ``first[t]:first[t + 1]``."""

    first: np.ndarray
    feature: np.ndarray
    stride: np.ndarray  # of each of these features
    offset: np.ndarray  # of each table
    has_class: np.ndarray
    entries: np.ndarray


class TreeLayout(NamedTuple):
    """Tables, some of them reached through decision trees; the class is the last node.

    Node ``v`` has the parents ``parent[first[v]:first[v + 1]]``. A full table (``root[v] < 0``) finds its row by
    `stride`, the others by a path from the root of their tree.
    """

    first: np.ndarray
    parent: np.ndarray
    stride: np.ndarray
    root: np.ndarray
    split: np.ndarray  # the node that a tree node tests, -1 for a leaf
    first_child: np.ndarray
    children: np.ndarray
    leaf_row: np.ndarray
    offset: np.ndarray  # of each table
    states: np.ndarray
    entries: np.ndarray


class ForestLayout(NamedTuple):
    """A class with a forest of features below it.

    Feature ``i`` has at most one feature ``parent[i]`` (-1: none) besides the class; its table begins at ``offset[i]``
    with the axes (parent value, own value, class).
    """

    order: np.ndarray  # children before parents
    parent: np.ndarray
    states: np.ndarray
    offset: np.ndarray
    entries: np.ndarray
    prior: np.ndarray


@jit
def table_scores(X, layout, out):
    """Add up full tables; every row must be complete."""
    first, feature, stride, offset, has_class, flat = layout
    classes = out.shape[1]
    for row in range(X.shape[0]):
        scores = out[row]
        for c in range(classes):
            scores[c] = 0
        for table in range(offset.shape[0]):
            cell = offset[table]
            for k in range(first[table], first[table + 1]):
                cell += stride[k] * X[row, feature[k]]
            if has_class[table]:
                entries = flat[cell : cell + classes]
                for c in range(classes):
                    scores[c] += entries[c]
            else:
                for c in range(classes):
                    scores[c] += flat[cell]


@jit
def table_labels(X, layout, scores, labels):
    """Write the class of the largest sum, the first one in case of a tie; `scores` is scratch for a few rows."""
    for start in range(0, X.shape[0], scores.shape[0]):
        rows = min(scores.shape[0], X.shape[0] - start)
        table_scores(X[start : start + rows], layout, scores[:rows])
        for row in range(rows):
            best = 0
            for c in range(1, scores.shape[1]):
                if scores[row, c] > scores[row, best]:
                    best = c
            labels[start + row] = best


@jit
def tree_scores(X, layout, out):
    """Add up tables, some of them reached through decision trees; every row must be complete."""
    first, parent, stride, root, split, first_child, children, leaf_row, offset, states, flat = layout
    features = X.shape[1]
    nodes = offset.shape[0]
    for row in range(X.shape[0]):
        for c in range(out.shape[1]):
            out[row, c] = 0
            total = out[row, c]  # of the type of the output, whatever the memory held
            for v in range(nodes):
                line = 0
                if root[v] < 0:
                    for k in range(first[v], first[v + 1]):
                        line += stride[k] * (X[row, parent[k]] if parent[k] < features else c)
                else:
                    n = root[v]
                    while split[n] >= 0:
                        n = children[first_child[n] + (X[row, split[n]] if split[n] < features else c)]
                    line = leaf_row[n]
                total += flat[offset[v] + line * states[v] + (X[row, v] if v < features else c)]
            out[row, c] = total


@jit
def forest_scores(X, layout, out):
    """Write the scores of rows with missing values, which are summed out exactly.

    A missing feature sends the logarithm of the sum over its values to its parent.
    """
    order, parent, states, offset, flat, prior = layout
    classes = out.shape[1]
    first = np.zeros(states.shape[0] + 1, np.int64)
    for i in range(states.shape[0]):
        first[i + 1] = first[i] + states[i]
    below = np.empty((first[-1], classes))  # log-probability of what lies below each value of each feature
    for row in range(X.shape[0]):
        below[:] = 0.0
        for c in range(classes):
            out[row, c] = prior[c]
        for i in order:
            j = parent[i]
            own_low, own_high = bounds(X[row, i], states[i])
            up_low, up_high = bounds(X[row, j], states[j]) if j >= 0 else (0, 1)
            for up in range(up_low, up_high):
                for c in range(classes):
                    top = -np.inf
                    for x in range(own_low, own_high):
                        term = flat[offset[i] + (up * states[i] + x) * classes + c] + below[first[i] + x, c]
                        top = max(top, term)
                    message = top
                    if own_high - own_low > 1 and top > -np.inf:
                        total = 0.0
                        for x in range(own_low, own_high):
                            term = flat[offset[i] + (up * states[i] + x) * classes + c] + below[first[i] + x, c]
                            total += np.exp(term - top)
                        message = top + np.log(total)
                    if j >= 0:
                        below[first[j] + up, c] += message
                    else:
                        out[row, c] += message


@jit
def bounds(value, states):
    return (value, value + 1) if value >= 0 else (0, states)
