"""Counting kernels: how often each cell of a table occurs in the rows.

A set of tables over features and class is described by flat arrays, as in `scores.py`: table ``t`` covers the
features ``node[first[t]:first[t + 1]]``, its cell is ``offset[t] + sum(stride * value) + class_stride[t] * class``.
A table without the class has ``class_stride[t] == 0``.
"""

import numpy as np

from tinybayes._kernels import jit


@jit
def add_counts(X, y, weight, start, stop, first, node, stride, offset, class_stride, counts):
    """Add the weight of each row to its cell of the tables ``start..stop``; rows with a gap skip that table."""
    for row in range(X.shape[0]):
        label = y[row]
        for table in range(start, stop):
            if class_stride[table] > 0 and label < 0:
                continue
            cell = offset[table] + class_stride[table] * label if class_stride[table] > 0 else offset[table]
            complete = True
            for k in range(first[table], first[table + 1]):
                value = X[row, node[k]]
                if value < 0:
                    complete = False
                    break
                cell += stride[k] * value
            if complete:
                counts[cell] += 1.0 if weight is None else weight[row]


@jit
def add_pair_counts(columns, y, weight, child, start, stop, child_states, parent_states, classes, offset, counts):
    """Count (parent value, child value, class) for one child and the parents ``start..stop``.

    `columns` holds a variable a row, so that the rows of the data lie next to each other; the table of parent
    ``start + k`` begins at ``offset[k]``.
    """
    rows = columns.shape[1]
    inner = np.empty(rows, np.int64)  # cell within one parent value, or -1
    for row in range(rows):
        value, label = columns[child, row], y[row]
        inner[row] = value * classes + label if value >= 0 and label >= 0 else -1
    width = child_states * classes
    for parent in range(start, stop):
        base = offset[parent - start]
        values = columns[parent]
        table = counts[base : base + parent_states[parent] * width]
        for row in range(rows):
            if inner[row] >= 0 and values[row] >= 0:
                table[values[row] * width + inner[row]] += 1.0 if weight is None else weight[row]


@jit
def conditional_information(table, parent_states, child_states, classes):
    """Mutual information of parent and child given the class, in nats, from a table of counts.

    With N log N sums: ``N I = H(parent, child, class) + H(class) - H(parent, class) - H(child, class)`` where
    ``H(.) = sum n log n`` over the cells of that marginal.
    """
    by_parent = np.zeros(parent_states * classes)
    by_child = np.zeros(child_states * classes)
    by_class = np.zeros(classes)
    total, value = 0.0, 0.0
    for p in range(parent_states):
        for x in range(child_states):
            for c in range(classes):
                n = table[(p * child_states + x) * classes + c]
                if n > 0:
                    value += n * np.log(n)
                    by_parent[p * classes + c] += n
                    by_child[x * classes + c] += n
                    by_class[c] += n
                    total += n
    if total <= 0:
        return 0.0
    return max(0.0, (value + _sum_xlogx(by_class) - _sum_xlogx(by_parent) - _sum_xlogx(by_child)) / total)


@jit
def _sum_xlogx(values):
    total = 0.0
    for n in values:
        if n > 0:
            total += n * np.log(n)
    return total
