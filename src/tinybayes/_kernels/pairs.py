"""Counting all pairs of features given the class, and what one says about the other.

The counts of one feature with the features after it form a block with the axes (value of the feature, class, slot):
each of the other features has as many slots, next to each other, as it has states.

Unweighted rows are counted as bits: with the rows sorted by class, a slot is a set of rows, and a count is the size of
the intersection of two of them, 64 rows an instruction or more.
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from tinybayes._kernels import jit


@intrinsic
def ones(typing_context, word):
    """Return the number of ones in a 64-bit word."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@jit
def set_bits(X, place, first, words):
    """Mark row after row in the sets of its slots; row ``r`` is bit ``place[r]``, or nowhere if that is negative.

    Feature ``j`` has the slots from ``first[j]`` on. `words` has the shape (words, slots), so that one word of all
    slots lies together.
    """
    for row in range(X.shape[0]):
        if place[row] < 0:
            continue
        bit = np.uint64(1) << np.uint64(place[row] & 63)
        word = words[place[row] >> 6]
        for j in range(X.shape[1]):
            if X[row, j] >= 0:
                word[first[j] + X[row, j]] |= bit


@jit
def add_bit_counts(words, class_first, own, start, block):
    """Add to a block the sizes of the intersections of the slots from `own` on with those from `start` on.

    Class ``c`` has the words ``class_first[c]..class_first[c + 1]``.
    """
    for value in range(block.shape[0]):
        for c in range(block.shape[1]):
            counts = block[value, c]
            for w in range(class_first[c], class_first[c + 1]):
                mine = words[w, own + value]
                if mine != 0:
                    others = words[w, start : start + counts.shape[0]]
                    for slot in range(counts.shape[0]):
                        counts[slot] += ones(mine & others[slot])


@jit
def add_row_counts(columns, y, weight, own, start, first, block):
    """Add to a block the rows one by one, with their weights.

    `columns` holds a variable a row, so that the rows of the data lie next to each other; ``first[k]`` is where the
    slots of the feature ``start + k`` begin in the block.
    """
    _, classes, slots = block.shape
    counts = block.reshape(-1)
    rows = columns.shape[1]
    line = np.empty(rows, np.int64)  # where the slots of the row's value and class begin, or -1
    for row in range(rows):
        value, label = columns[own, row], y[row]
        line[row] = (value * classes + label) * slots if value >= 0 and label >= 0 else -1
    for k in range(first.shape[0] - 1):
        values = columns[start + k]
        begin = first[k]
        for row in range(rows):
            if line[row] >= 0 and values[row] >= 0:
                counts[line[row] + begin + values[row]] += 1.0 if weight is None else weight[row]


@jit
def block_information(block, first, table, out):
    """Mutual information, given the class and in nats, of a feature and each of those in its block.

    With ``f(n) = n log n`` summed over the cells of a marginal, ``N I = f(own, other, class) + f(class) -
    f(own, class) - f(other, class)``. `table` holds the first values of ``f``.
    """
    values, classes, slots = block.shape
    others = first.shape[0] - 1
    by_other = np.zeros((classes, slots))
    by_class = np.zeros((classes, others))
    out[:] = 0.0
    for value in range(values):
        for c in range(classes):
            for k in range(others):
                own, terms = 0.0, 0.0
                for slot in range(first[k], first[k + 1]):
                    n = block[value, c, slot]
                    own += n
                    terms += _xlogx(n, table)
                    by_other[c, slot] += n
                out[k] += terms - _xlogx(own, table)
                by_class[c, k] += own
    for k in range(others):
        total = 0.0
        for c in range(classes):
            total += by_class[c, k]
            out[k] += _xlogx(by_class[c, k], table)
            for slot in range(first[k], first[k + 1]):
                out[k] -= _xlogx(by_other[c, slot], table)
        out[k] = max(0.0, out[k] / total) if total > 0 else 0.0


@jit
def xlogx_table(size):
    """Return ``n log n`` for the integers below `size`."""
    table = np.zeros(size)
    for n in range(1, size):
        table[n] = n * np.log(n)
    return table


@jit
def _xlogx(n, table):
    whole = np.int64(n)
    if whole == n and whole < table.shape[0]:
        return table[whole]
    return n * np.log(n)
