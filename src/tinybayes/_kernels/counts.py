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
    # A few rows at a time, table by table: what describes a table stays in registers, and the rows in the cache.
    for low in range(0, X.shape[0], 64):
        high = min(low + 64, X.shape[0])
        for table in range(start, stop):
            begin, end = first[table], first[table + 1]
            origin, class_step = offset[table], class_stride[table]
            if 1 <= end - begin <= 2 and class_step > 0:  # naive Bayes and trees: no loop over the features
                i, step_i = node[begin], stride[begin]
                j, step_j = node[end - 1], stride[end - 1] if end - begin == 2 else 0
                for row in range(low, high):
                    a, b, label = np.int64(X[row, i]), np.int64(X[row, j]), np.int64(y[row])
                    if a >= 0 and b >= 0 and label >= 0:
                        cell = origin + step_i * a + step_j * b + class_step * label
                        counts[cell] += 1.0 if weight is None else weight[row]
                continue
            for row in range(low, high):
                least = np.int64(y[row]) if class_step > 0 else np.int64(0)
                cell = origin + class_step * least
                for k in range(begin, end):
                    value = np.int64(X[row, node[k]])
                    least = min(least, value)
                    cell += stride[k] * value
                if least >= 0:
                    counts[cell] += 1.0 if weight is None else weight[row]
