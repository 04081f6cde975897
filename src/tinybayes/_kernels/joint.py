"""Counting several features and the class at once: one step a row for a whole block of variables.

A block is a table over some features and the class in which every variable has one place more, the first, for a
missing value. The counts of any subset of its variables are sums over it, so a few blocks hold the counts of many
pairs. Places in a block are 16-bit numbers, so that 32 of them are computed by an instruction.
"""

import numpy as np

from tinybayes._kernels import jit

CELLS = 2**16  # places of a block
ROWS = 8192  # rows at a time: their places and columns stay in the cache


@jit
def add_blocks(columns, y, weight, first, node, stride, offset, counts):
    """Add the rows to the blocks.

    Block ``b`` covers the features ``node[first[b]:first[b + 1]]`` with these strides, begins at ``counts[offset[b]]``,
    and has the class as its last axis. `columns` holds a variable a row; codes are -1 where missing.
    """
    place = np.empty(ROWS, np.uint16)
    for low in range(0, y.shape[0], ROWS):
        high = min(low + ROWS, y.shape[0])
        places = place[: high - low]
        for block in range(offset.shape[0]):
            begin, end = first[block], first[block + 1]
            _start(places, y[low:high])
            for k in range(begin, end - 1, 2):
                _add_two(places, columns[node[k], low:high], stride[k], columns[node[k + 1], low:high], stride[k + 1])
            if (end - begin) % 2:
                _add_one(places, columns[node[end - 1], low:high], stride[end - 1])
            if weight is None:
                _count(places, counts[offset[block] :])
            else:
                _weigh(places, weight[low:high], counts[offset[block] :])


@jit
def _start(places, y):
    for row in range(places.shape[0]):
        places[row] = y[row] + 1


@jit
def _add_one(places, values, stride):
    step = np.uint16(stride)
    for row in range(places.shape[0]):
        places[row] += np.uint16(step * np.uint16(values[row] + 1))


@jit
def _add_two(places, values, stride, others, other_stride):
    step, other_step = np.uint16(stride), np.uint16(other_stride)
    for row in range(places.shape[0]):
        places[row] += np.uint16(step * np.uint16(values[row] + 1)) + np.uint16(other_step * np.uint16(others[row] + 1))


@jit
def _count(places, counts):
    one = counts.dtype.type(1)
    for row in range(places.shape[0]):
        counts[places[row]] += one


@jit
def _weigh(places, weight, counts):
    for row in range(places.shape[0]):
        counts[places[row]] += weight[row]
