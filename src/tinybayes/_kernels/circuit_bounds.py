"""Upper bounds of a circuit's values and derivatives: what doubles may have lost on the way is at most this.

A product below FLOOR is rounded up to it, unless one of its factors is zero, which nothing was lost from. A value in
the range of doubles that equals its bound was computed without loss.
"""

import numpy as np

from tinybayes._kernels import jit, plain
from tinybayes._kernels.lanes import add_scaled, set_product_up, set_row

FLOOR = 1e-300  # more than sums of products below the smallest double, 1e-308, can lose


@plain
def _times(a, b):
    return 0.0 if a == 0.0 or b == 0.0 else max(a * b, FLOOR)


@plain
def _coefficient(plan, t):
    return max(plan.coefficient[t], FLOOR) if plan.log_coefficient[t] > -np.inf else 0.0


@plain
def _up_one(plan, child, home, value):
    """Write the bounds of the slots' values to these homes; those of the indicators are there."""
    first_term, first_child = plan.first_term, plan.first_child
    for v in range(plan.first_state[-1], len(home)):
        total = 0.0
        for t in range(first_term[v], first_term[v + 1]):
            term = _coefficient(plan, t)
            for e in range(first_child[t], first_child[t + 1]):
                term = _times(term, value[child[e]])
            total += term
        value[home[v]] = total


@plain
def _down_one(plan, value, slope, before):
    """Write the bounds of the root's derivatives in the indicators; all are zero before."""
    first_term, first_child, child, target = plan.first_term, plan.first_child, plan.child, plan.target
    home, states = plan.home, plan.first_state[-1]
    slope[home[-1]] = 1.0
    for v in range(len(value) - 1, states - 1, -1):
        own = slope[home[v]]
        slope[home[v]] = 0.0
        for t in range(first_term[v], first_term[v + 1]):
            start, stop = first_child[t], first_child[t + 1]
            above, after = _times(own, _coefficient(plan, t)), 1.0
            for e in range(start, stop):
                before[e - start] = above
                above = _times(above, value[child[e]])
            for e in range(stop - 1, start - 1, -1):
                slope[target[e]] += _times(before[e - start], after)
                after = _times(after, value[child[e]])


@jit
def root_bound(plan, value):
    """Return the bound of a row's root; of `value` only the indicators are read."""
    states = plan.first_state[-1]
    upper = np.empty(plan.n_homes)
    upper[:states] = value[:states]
    _up_one(plan, plan.target, plan.home, upper)
    return upper[plan.home[-1]]


@jit
def slope_bounds(plan, value):
    """Return the bounds of the derivatives in a row's indicators, which are all that is read of `value`."""
    states = plan.first_state[-1]
    upper, slope = np.empty(len(plan.home)), np.zeros(plan.n_homes)
    upper[:states] = value[:states]
    _up_one(plan, plan.child, plan.slots, upper)
    _down_one(plan, upper, slope, np.empty(plan.most_children))
    return slope[:states]


@plain
def up_block_bounds(plan, child, home, value, kept):
    """Do what `_up_one` does for a block of rows; `kept` is scratch."""
    first_term, first_child = plan.first_term, plan.first_child
    for v in range(plan.first_state[-1], len(home)):
        out = home[v]
        set_row(value, out, 0.0)
        for t in range(first_term[v], first_term[v + 1]):
            set_row(kept, 0, _coefficient(plan, t))
            for e in range(first_child[t], first_child[t + 1]):
                set_product_up(kept, 0, kept, 0, value, child[e], FLOOR)
            add_scaled(value, out, kept, 0, 1.0)


@plain
def down_block_bounds(plan, value, slope, kept):
    """Do what `_down_one` does for a block of rows; `kept` is scratch, two rows longer than a term has children."""
    first_term, first_child, child, target = plan.first_term, plan.first_child, plan.child, plan.target
    home, states = plan.home, plan.first_state[-1]
    slope[:states] = 0.0
    set_row(slope, home[-1], 1.0)
    last = len(kept) - 1
    for v in range(len(value) - 1, states - 1, -1):
        own = home[v]
        for t in range(first_term[v], first_term[v + 1]):
            start, stop = first_child[t], first_child[t + 1]
            set_row(kept, 0, _coefficient(plan, t))
            set_product_up(kept, 0, kept, 0, slope, own, FLOOR)
            for e in range(start, stop):
                set_product_up(kept, e - start + 1, kept, e - start, value, child[e], FLOOR)
            set_row(kept, last, 1.0)
            for e in range(stop - 1, start - 1, -1):
                set_product_up(kept, e - start, kept, e - start, kept, last, FLOOR)
                add_scaled(slope, target[e], kept, e - start, 1.0)
                set_product_up(kept, last, kept, last, value, child[e], FLOOR)
        set_row(slope, own, 0.0)
