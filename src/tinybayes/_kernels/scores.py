"""Class scores ``log p(x, c)`` of a Bayesian network for rows of codes.

Tables are laid out flat with the class index running fastest, so that the inner loop over the classes is a plain
vector addition; `counts.py` describes the layout. Integer tables are added in integers.
"""

import numpy as np

from tinybayes._kernels import jit


@jit
def table_scores(X, first, node, stride, offset, has_class, flat, out):
    """Add up full tables; every row must be complete."""
    classes = out.shape[1]
    for row in range(X.shape[0]):
        scores = out[row]
        for c in range(classes):
            scores[c] = 0
        for table in range(offset.shape[0]):
            cell = offset[table]
            for k in range(first[table], first[table + 1]):
                cell += stride[k] * X[row, node[k]]
            if has_class[table]:
                entries = flat[cell : cell + classes]
                for c in range(classes):
                    scores[c] += entries[c]
            else:
                for c in range(classes):
                    scores[c] += flat[cell]


@jit
def table_labels(X, first, node, stride, offset, has_class, flat, scores, labels):
    """Write the class of the largest sum, of equal ones the first; `scores` is scratch for a few rows."""
    for start in range(0, X.shape[0], scores.shape[0]):
        rows = min(scores.shape[0], X.shape[0] - start)
        table_scores(X[start : start + rows], first, node, stride, offset, has_class, flat, scores[:rows])
        for row in range(rows):
            best = 0
            for c in range(1, scores.shape[1]):
                if scores[row, c] > scores[row, best]:
                    best = c
            labels[start + row] = best


@jit
def tree_scores(
    X, parent_first, parent, stride, root, split, child_first, children, leaf_row, offset, states, flat, out
):
    """Add up tables of which some are reached through decision trees; every row must be complete.

    Node ``v`` of the network has the parents ``parent[parent_first[v]:parent_first[v + 1]]``, of which a full
    table (``root[v] < 0``) finds its row by `stride` and a tree from its root. The class is the last node.
    """
    features = X.shape[1]
    nodes = offset.shape[0]
    for row in range(X.shape[0]):
        for c in range(out.shape[1]):
            out[row, c] = 0
            total = out[row, c]  # of the type of the output, whatever the memory held
            for v in range(nodes):
                line = 0
                if root[v] < 0:
                    for k in range(parent_first[v], parent_first[v + 1]):
                        line += stride[k] * (X[row, parent[k]] if parent[k] < features else c)
                else:
                    n = root[v]
                    while split[n] >= 0:
                        n = children[child_first[n] + (X[row, split[n]] if split[n] < features else c)]
                    line = leaf_row[n]
                total += flat[offset[v] + line * states[v] + (X[row, v] if v < features else c)]
            out[row, c] = total


@jit
def forest_scores(X, order, parent, states, offset, flat, prior, out):
    """Scores of rows with missing values, summed out exactly, for a forest of features below the class.

    Feature ``i`` has at most one feature ``parent[i]`` (-1: none) beside the class; its table begins at
    ``offset[i]`` with the axes (parent value, own value, class). `order` lists children before parents. A missing
    feature sends to its parent the logarithm of the sum over its values.
    """
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
            own_low, own_high = _range(X[row, i], states[i])
            up_low, up_high = _range(X[row, j], states[j]) if j >= 0 else (0, 1)
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
def _range(value, states):
    return (value, value + 1) if value >= 0 else (0, states)
