"""The sum over all assignments of a circuit, and what each of its parameters has in it: one pass up and one down.

The arrays are those of a plan (`circuit_plan.py`); the coefficients are made from the weights in each call, so that the
plan stays as it is while the weights change.
"""

import numpy as np

from tinybayes._kernels import jit
from tinybayes._kernels.circuits import LEAST, MOST, SAME, bound_one, whole
from tinybayes._kernels.underflow import clear_underflow, underflow


@jit
def partition_and_counts(plan, first_state, first_entry, entry, factor, coefficient, value, slope, counts):
    """Return the root without evidence, nan where doubles do not do; write the expected count of every parameter.

    Parameters are `factor`, not logarithms; `coefficient`, `value` and `slope` are scratch, of the terms, the slots and
    the places. Nothing is written when the root leaves the range of doubles. See `circuits.py` on what is lost on the
    way.
    """
    first_term, first_child, child, target, home, used, states = plan
    clear_underflow()
    for t in range(len(coefficient)):
        product = 1.0
        for k in range(first_entry[t], first_entry[t + 1]):
            product *= factor[entry[k]]
        coefficient[t] = product
    value[:states] = 1.0
    for v in range(states, len(home)):
        total = 0.0
        for t in range(first_term[v], first_term[v + 1]):
            term = coefficient[t]
            for e in range(first_child[t], first_child[t + 1]):
                term *= value[child[e]]
            total += term
        value[v] = total
    root = value[len(home) - 1]
    if not LEAST < root < MOST:
        return np.nan
    if underflow():
        bound = np.empty(len(slope))
        bound[:states] = 1.0
        if not bound_one(first_term, first_child, target, coefficient, home, states, bound) < root * (1.0 + SAME):
            return np.nan
    counts[:] = 0.0
    slope[:] = 0.0
    slope[home[len(home) - 1]] = 1.0 / root
    for v in range(len(home) - 1, states - 1, -1):
        own = slope[home[v]]
        slope[home[v]] = 0.0
        if own == 0.0:
            continue
        for t in range(first_term[v], first_term[v + 1]):
            start, stop = first_child[t], first_child[t + 1]
            above = own * coefficient[t]
            if stop - start == 2:  # by far the most
                a, b = value[child[start]], value[child[start + 1]]
                slope[target[start]] += above * b
                slope[target[start + 1]] += above * a
                flow = above * a * b
            elif stop - start == 1:
                slope[target[start]] += above
                flow = above * value[child[start]]
            else:
                flow = above
                for e in range(start, stop):
                    others = above
                    for other in range(start, stop):
                        if other != e:
                            others *= value[child[other]]
                    slope[target[e]] += others
                    flow *= value[child[e]]
            for k in range(first_entry[t], first_entry[t + 1]):
                counts[entry[k]] += flow
    return root if whole(first_state, used, value, slope, 1.0) else np.nan
