"""Drawing assignments from a lattice of count vectors."""

import numpy as np

from tinybayes._kernels import plain
from tinybayes._kernels.draws import REFERENCE, SQUARES, TOTAL, start_stream
from tinybayes._kernels.gibbs_chain import uniform


@plain
def draw_slices(last, first_edge, source, state, upto, variables, first_state, count, seed, x, random, sums):
    """Draw a slice, then a way back through the lattice to the beginning, and add the values to the sums.

    `last` holds the cumulative chances of the nodes of the last layer; edges lie by their target, with their cumulative
    chances in `upto`.
    """
    start_stream(seed, random)
    nodes = len(first_edge) - 1
    for _ in range(count):
        u = uniform(random) * last[-1]
        node = nodes - len(last) + min(np.searchsorted(last, u, side="right"), len(last) - 1)
        for k in range(len(variables) - 1, -1, -1):
            begin, end = first_edge[node], first_edge[node + 1]
            u = uniform(random) * upto[end - 1]
            while end - begin > 1:
                middle = (begin + end) // 2
                if upto[middle - 1] > u:
                    end = middle
                else:
                    begin = middle
            x[variables[k]] = state[begin]
            node = source[begin]
        sums.weights[REFERENCE] = 0.0
        sums.weights[TOTAL] += 1.0
        sums.weights[SQUARES] += 1.0
        for v in range(len(variables)):
            drawn = first_state[v] + x[v]
            sums.first[drawn] += 1.0
            sums.second[drawn] += 1.0
            sums.third[drawn] += 1.0
