"""Class scores of rows with missing values in integers, as a device without floats computes them.

Exported programs compute the same numbers: all of them fit in 32 bits, and none depends on the order of the features.
"""

import numpy as np

from tinybayes._kernels import jit
from tinybayes._kernels.scores import bounds

STEPS = 32  # of `log_add`'s table; a step is a quarter of a nat
PRECISE = 10  # bits of a distance in nats: 256 positions within a step


@jit
def log_add(a, b, fraction, table):
    """Return ``log(exp(a) + exp(b))`` of integers in units of ``2**-fraction`` nats, interpolated in a table.

    ``table[i]`` is ``log(1 + exp(-i / 4))`` in the same unit, and ``table[32]`` is zero. A smaller summand that is 8
    nats or more below changes nothing; with a negative fraction none does, since the whole table is zero.
    """
    high, low = (a, b) if a > b else (b, a)
    distance = high - low
    if fraction < 0 or distance >= 8 << fraction:  # first of all: shifted up, a large distance would overflow
        return high
    distance = distance >> fraction - PRECISE if fraction >= PRECISE else distance << PRECISE - fraction
    i = distance >> 8
    return high + table[i] - ((table[i] - table[i + 1]) * (distance & 255) >> 8)


@jit
def forest_integers(X, layout, fraction, table, out):
    """Write the scores of rows with missing values, as `scores.forest_scores` does, in integers.

    A missing feature sends its parent the `log_add` of its values, one after another in increasing order.
    """
    order, parent, states, offset, flat, prior = layout
    classes = out.shape[1]
    first = np.zeros(states.shape[0] + 1, np.int64)
    for i in range(states.shape[0]):
        first[i + 1] = first[i] + states[i]
    below = np.empty((first[-1], classes), np.int64)  # log-probability of what lies below each value of each feature
    message = np.empty(classes, np.int64)
    for row in range(X.shape[0]):
        below[:] = 0
        out[row] = prior
        for i in order:
            j = parent[i]
            own_low, own_high = bounds(X[row, i], states[i])
            up_low, up_high = bounds(X[row, j], states[j]) if j >= 0 else (0, 1)
            for up in range(up_low, up_high):
                receiver = below[first[j] + up] if j >= 0 else out[row]
                begin = offset[i] + (up * states[i] + own_low) * classes
                for c in range(classes):
                    message[c] = flat[begin + c] + below[first[i] + own_low, c]
                for x in range(own_low + 1, own_high):
                    begin += classes
                    for c in range(classes):
                        message[c] = log_add(message[c], flat[begin + c] + below[first[i] + x, c], fraction, table)
                for c in range(classes):
                    receiver[c] += message[c]
