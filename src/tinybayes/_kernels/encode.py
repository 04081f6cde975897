"""From numbers to codes."""

import numpy as np

from tinybayes._kernels import jit


@jit
def encode_numbers(X, first, keys, exact, start, stop, out):
    """Encode the rows ``start..stop`` of a matrix of numbers.

    Column ``j`` has the increasing keys ``keys[first[j]:first[j + 1]]``. Where ``exact[j]``, they are the values of
    the states and any other number is missing (-1); else they are cut points and the code is the number of those
    not above the value. NaN is missing.
    """
    for row in range(start, stop):
        for j in range(X.shape[1]):
            value = X[row, j]
            if value != value:
                out[row, j] = -1
                continue
            low, high = first[j], first[j + 1]
            while low < high:
                middle = (low + high) // 2
                if keys[middle] <= value:
                    low = middle + 1
                else:
                    high = middle
            code = low - first[j]
            if exact[j]:
                code = code - 1 if code > 0 and keys[low - 1] == value else -1
            out[row, j] = code


@jit
def look_up(X, lowest, table, start, stop, out):
    """Encode the rows ``start..stop`` of a matrix of small integers: ``table[column, value - lowest]``."""
    for row in range(start, stop):
        for j in range(X.shape[1]):
            out[row, j] = table[j, np.int64(X[row, j]) - lowest]


@jit
def mark_values(X, weight, lowest, seen):
    """Set ``seen[column, value - lowest]`` for every value in a row of positive weight."""
    for row in range(X.shape[0]):
        if weight is None or weight[row] > 0:
            for j in range(X.shape[1]):
                seen[j, np.int64(X[row, j]) - lowest] = True
