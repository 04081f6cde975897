"""From raw values to codes, and which values there are: of a matrix, or of one column."""

import numpy as np

from tinybayes._kernels import jit


@jit
def encode_numbers(X, first, keys, exact, rounded, start, stop, out):
    """Encode the rows ``start..stop`` of a matrix of numbers.

    Column ``j`` has the increasing keys ``keys[first[j]:first[j + 1]]``. Where ``exact[j]``, they are the values of
    the states and any other number is missing (-1); else they are cut points and the code is the number of those
    not above the value. Where ``rounded[j]``, values are rounded to float32 first. NaN is missing.
    """
    for row in range(start, stop):
        for j in range(X.shape[1]):
            value = np.float64(np.float32(X[row, j])) if rounded[j] else np.float64(X[row, j])
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


@jit
def count_cuts(values, edges, out):
    """Write the number of cut points that are not above a value, -1 for NaN; tell whether a value is infinite."""
    infinite = False
    for low in range(0, values.shape[0], 4096):  # in blocks, since every cut point goes over them once
        block, codes = values[low : low + 4096], out[low : low + 4096]
        infinite |= _start(block, codes)
        for k in range(edges.shape[0]):
            _step(block, edges[k], codes)
    return infinite


@jit
def _start(values, codes):
    infinite = False
    for row in range(values.shape[0]):
        infinite |= np.abs(values[row]) == np.inf
        codes[row] = -1 if values[row] != values[row] else 0
    return infinite


@jit
def _step(values, edge, codes):
    for row in range(values.shape[0]):
        codes[row] += values[row] >= edge


@jit
def any_infinite(values):
    """Tell whether a value is infinite."""
    infinite = False
    for row in range(values.shape[0]):
        infinite |= np.abs(values[row]) == np.inf
    return infinite


@jit
def shift(values, lowest, out):
    """Write ``values - lowest``."""
    low = values.dtype.type(lowest)
    for row in range(values.shape[0]):
        out[row] = values[row] - low


@jit
def look_up_column(values, lowest, table, out):
    """Write ``table[values - lowest]``."""
    for row in range(values.shape[0]):
        out[row] = table[np.uint64(np.int64(values[row]) - lowest)]


@jit
def mark_column(values, lowest, seen):
    """Set ``seen[values - lowest]``."""
    for row in range(values.shape[0]):
        seen[np.uint64(np.int64(values[row]) - lowest)] = True


@jit
def find_neighbours(values, cuts, below, above):
    """Lower `above` and raise `below` to the values that are next to each cut point, on either side; NaN is skipped."""
    for row in range(values.shape[0]):
        value = values[row]
        if value != value:
            continue
        low, high = 0, cuts.shape[0]
        while low < high:
            middle = (low + high) // 2
            if cuts[middle] <= value:
                low = middle + 1
            else:
                high = middle
        if low > 0 and value < above[low - 1]:
            above[low - 1] = value
        if low < cuts.shape[0] and value > below[low]:
            below[low] = value
