"""From one column of raw values to its codes, and which values it has."""

import numpy as np

from tinybayes._kernels import jit


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
