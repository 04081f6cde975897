"""Counting kernels: how often each cell of a table occurs in the rows.

A set of tables over features and class is described by flat arrays, as in `scores.py`: table ``t`` covers the
features ``node[first[t]:first[t + 1]]``, its cell is ``offset[t] + sum(stride * value) + class_stride[t] * class``.
A table without the class has ``class_stride[t] == 0``.

A block is a table over some features and the class in which every variable has one cell more, the first, for a missing
value. The counts of any subset of its variables are sums over it, so a few blocks hold the counts of many pairs, and a
row takes one step for a whole block. Cells of a block have 16-bit indices, so that 32 of them are computed by an
instruction.
"""

import numpy as np

from tinybayes._kernels import jit

CELLS = 2**16  # of a block
ROWS = 8192  # rows at a time: their cells and columns stay in the cache


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


@jit
def add_blocks(columns, y, weight, first, node, stride, offset, counts):
    """Add the rows to the blocks.

    Block ``b`` covers the features ``node[first[b]:first[b + 1]]`` with these strides, begins at ``counts[offset[b]]``,
    and has the class as its last axis. `columns` holds a variable a row; codes are -1 where missing.
    """
    cell = np.empty(ROWS, np.uint16)
    for low in range(0, y.shape[0], ROWS):
        high = min(low + ROWS, y.shape[0])
        cells = cell[: high - low]
        for block in range(offset.shape[0]):
            begin, end = first[block], first[block + 1]
            _start(cells, y[low:high])
            for k in range(begin, end - 1, 2):
                _add_two(cells, columns[node[k], low:high], stride[k], columns[node[k + 1], low:high], stride[k + 1])
            if (end - begin) % 2:
                _add_one(cells, columns[node[end - 1], low:high], stride[end - 1])
            if weight is None:
                _count(cells, counts[offset[block] :])
            else:
                _weigh(cells, weight[low:high], counts[offset[block] :])


@jit
def _start(cells, y):
    for row in range(cells.shape[0]):
        cells[row] = y[row] + 1


@jit
def _add_one(cells, values, stride):
    step = np.uint16(stride)
    for row in range(cells.shape[0]):
        cells[row] += np.uint16(step * np.uint16(values[row] + 1))


@jit
def _add_two(cells, values, stride, others, other_stride):
    step, other_step = np.uint16(stride), np.uint16(other_stride)
    for row in range(cells.shape[0]):
        cells[row] += np.uint16(step * np.uint16(values[row] + 1)) + np.uint16(other_step * np.uint16(others[row] + 1))


@jit
def _count(cells, counts):
    one = counts.dtype.type(1)
    for row in range(cells.shape[0]):
        counts[cells[row]] += one


@jit
def _weigh(cells, weight, counts):
    for row in range(cells.shape[0]):
        counts[cells[row]] += weight[row]
