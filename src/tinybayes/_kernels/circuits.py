"""Passes over a circuit in linear space: one row at a time, and blocks of rows.

The arrays of a plan are described in `circuit_plan.py`; here they come as a tuple. Values and derivatives of a block
have the rows as their last axis, of the fixed length ROWS, so that each step is a few vector instructions on whole
cache lines (`lanes.py`). Derivatives, and a block's values that are not needed again, are kept in the slots' homes:
fewer places. An observed state's indicator is not one but a power of two that makes up for its probability, so that
long rows do not underflow; rows that do all the same have a root outside of LEAST..MOST.

A value on the way to the root may be too small for a double and yet count, if what it is multiplied with is large.
Lost values make a root too small. Where the processor says that one was lost, a second pass rounds all values that are
smaller than FLOOR up to it, which makes the root too large; both roots are equal, or the row is left to log space. A
derivative that was lost shows in the derivatives of a variable's states, which add up to the root.
"""

import numpy as np

from tinybayes._kernels import jit
from tinybayes._kernels.lanes import ROWS, add_product, add_scaled, at_least, set_product, set_row
from tinybayes._kernels.underflow import clear_underflow, underflow

LEAST, MOST = 1e-250, 1e250
FLOOR = 1e-300  # more than all that sums of products below the smallest double, 1e-308, lose
SAME, WHOLE = 1e-12, 1e-9  # relative differences of the roots, and of the sum of derivatives, that are rounding


@jit
def fill_one(row, first_state, scale, value):
    """Write the indicators of a row; return the logarithm of the scale of its observed states."""
    log_scale = 0.0
    for v in range(len(row)):
        for i in range(first_state[v], first_state[v + 1]):
            value[i] = 1.0 if row[v] < 0 else 0.0
        if row[v] >= 0:
            observed = first_state[v] + row[v]
            value[observed] = scale[observed]
            log_scale += np.log(scale[observed])
    return log_scale


@jit
def up_one(first_term, first_child, child, coefficient, where, states, value):
    """Write the value of every slot `v` to ``where[v]``; those of the indicators are there."""
    t, start = first_term[states], first_child[first_term[states]]
    for v in range(states, len(where)):
        total = 0.0
        last = first_term[v + 1]
        while t < last:
            stop = first_child[t + 1]
            if stop - start == 2:  # nearly always: a loop takes twice as long
                total += coefficient[t] * value[child[start]] * value[child[start + 1]]
            elif stop - start == 1:
                total += coefficient[t] * value[child[start]]
            else:
                term = coefficient[t]
                for e in range(start, stop):
                    term *= value[child[e]]
                total += term
            t, start = t + 1, stop
        value[where[v]] = total


@jit
def bound_one(first_term, first_child, target, coefficient, home, states, value):
    """Do what `up_one` does in the slots' homes, with what is smaller than FLOOR rounded up; return the root."""
    for v in range(states, len(home)):
        total = 0.0
        for t in range(first_term[v], first_term[v + 1]):
            term = 1.0
            for e in range(first_child[t], first_child[t + 1]):
                term = max(term * value[target[e]], FLOOR)
            total += max(coefficient[t], FLOOR) * term
        value[home[v]] = max(total, FLOOR)
    return value[home[len(home) - 1]]


@jit
def down_one(plan, states, value, slope, before):
    """Write the derivatives of the root in the indicators; `before` is scratch for the children of a term.

    All derivatives are zero before, and those of other slots afterwards.
    """
    first_term, first_child, child, coefficient, target, home, _, _ = plan
    slope[:states] = 0.0
    slope[home[len(home) - 1]] = 1.0
    for v in range(len(value) - 1, states - 1, -1):
        own = slope[home[v]]
        slope[home[v]] = 0.0
        if own == 0.0:
            continue
        for t in range(first_term[v], first_term[v + 1]):
            start, stop = first_child[t], first_child[t + 1]
            above = own * coefficient[t]
            if stop - start == 2:
                slope[target[start]] += above * value[child[start + 1]]
                slope[target[start + 1]] += above * value[child[start]]
            elif stop - start == 1:
                slope[target[start]] += above
            else:
                for e in range(start, stop):
                    before[e - start] = above
                    above *= value[child[e]]
                after = 1.0
                for e in range(stop - 1, start - 1, -1):
                    slope[target[e]] += before[e - start] * after
                    after *= value[child[e]]


@jit
def fill_block(X, first_state, scale, value, log_scale):
    """Do what `fill_one` does for up to ROWS rows; the places of missing rows are left without evidence."""
    value[: first_state[len(first_state) - 1]] = 1.0
    log_scale[:] = 0.0
    for r in range(X.shape[0]):
        for v in range(X.shape[1]):
            if X[r, v] >= 0:
                for i in range(first_state[v], first_state[v + 1]):
                    value[i, r] = 0.0
                observed = first_state[v] + X[r, v]
                value[observed, r] = scale[observed]
                log_scale[r] += np.log(scale[observed])


@jit
def up_block(first_term, first_child, child, coefficient, where, states, value, kept):
    """Do what `up_one` does for a block of rows; `kept` is scratch."""
    for v in range(states, len(where)):
        out = where[v]  # never the place of a child, which is needed until here
        set_row(value, out, 0.0)
        for t in range(first_term[v], first_term[v + 1]):
            start, stop = first_child[t], first_child[t + 1]
            c = coefficient[t]
            if stop - start == 2:
                add_product(value, out, value, child[start], value, child[start + 1], c)
            elif stop - start == 1:
                add_scaled(value, out, value, child[start], c)
            else:
                set_row(kept, 0, 1.0)
                for e in range(start, stop):
                    set_product(kept, 0, kept, 0, value, child[e])
                add_scaled(value, out, kept, 0, c)


@jit
def bound_block(first_term, first_child, target, coefficient, home, states, value, kept):
    """Do what `bound_one` does for a block of rows."""
    for v in range(states, len(home)):
        out = home[v]
        set_row(value, out, 0.0)
        for t in range(first_term[v], first_term[v + 1]):
            set_row(kept, 0, 1.0)
            for e in range(first_child[t], first_child[t + 1]):
                set_product(kept, 0, kept, 0, value, target[e])
                at_least(kept, 0, FLOOR)
            add_scaled(value, out, kept, 0, max(coefficient[t], FLOOR))
        at_least(value, out, FLOOR)


@jit
def down_block(plan, states, value, slope, kept):
    """Do what `down_one` does for a block of rows; `kept` is scratch, with room for two more than a term's children."""
    first_term, first_child, child, coefficient, target, home, _, _ = plan
    slope[:states] = 0.0
    slope[home[len(home) - 1]] = 1.0
    after = len(kept) - 1
    for v in range(len(value) - 1, states - 1, -1):
        own = home[v]  # never the place of a child
        for t in range(first_term[v], first_term[v + 1]):
            start, stop = first_child[t], first_child[t + 1]
            c = coefficient[t]
            if stop - start == 2:
                add_product(slope, target[start], slope, own, value, child[start + 1], c)
                add_product(slope, target[start + 1], slope, own, value, child[start], c)
            elif stop - start == 1:
                add_scaled(slope, target[start], slope, own, c)
            else:
                set_row(kept, 0, c)
                set_product(kept, 0, kept, 0, slope, own)
                for e in range(start, stop):
                    set_product(kept, e - start + 1, kept, e - start, value, child[e])
                set_row(kept, after, 1.0)
                for e in range(stop - 1, start - 1, -1):
                    add_product(slope, target[e], kept, e - start, kept, after, 1.0)
                    set_product(kept, after, kept, after, value, child[e])
        set_row(slope, own, 0.0)


@jit
def flow_block(plan, states, value, slope, kept, share, flow):
    """Do what `down_block` does, and add to `flow` what flows through each term.

    That is its part of the root, times the rows' shares of it.
    """
    first_term, first_child, child, coefficient, target, home, _, _ = plan
    slope[:states] = 0.0
    slope[home[len(home) - 1]] = 1.0
    for v in range(len(value) - 1, states - 1, -1):
        own = home[v]
        for t in range(first_term[v], first_term[v + 1]):
            start, stop = first_child[t], first_child[t + 1]
            set_row(kept, 0, coefficient[t])
            set_product(kept, 0, kept, 0, slope, own)
            for e in range(start, stop):
                set_product(kept, e - start + 1, kept, e - start, value, child[e])
            for r in range(ROWS):
                if share[r] != 0.0:  # without one the row may have left the range, and nothing times infinity is nan
                    flow[t] += share[r] * kept[stop - start, r]
            after = len(kept) - 1
            set_row(kept, after, 1.0)
            for e in range(stop - 1, start - 1, -1):
                add_product(slope, target[e], kept, e - start, kept, after, 1.0)
                set_product(kept, after, kept, after, value, child[e])
        set_row(slope, own, 0.0)


@jit
def _posterior(row, first_state, used, slope, root, out):
    """Write the posterior of every variable of a row; tell whether each that the circuit has adds up to one."""
    whole = True
    for v in range(len(row)):
        total = 0.0
        for i in range(first_state[v], first_state[v + 1]):
            out[i] = slope[i] / root if row[v] < 0 else 0.0
            total += out[i]
        if row[v] >= 0:
            out[first_state[v] + row[v]] = 1.0
        elif used[v] and not abs(total - 1.0) < WHOLE:  # so that nan is none, either
            whole = False
    return whole


@jit
def whole(first_state, used, value, slope, root):
    """Tell whether the derivatives of each variable's states, times their indicators, add up to the root of a row."""
    for v in range(len(first_state) - 1):
        total = 0.0
        for i in range(first_state[v], first_state[v + 1]):
            if value[i] > 0.0:
                total += value[i] * slope[i]
        if used[v] and not abs(total - root) < WHOLE * root:
            return False
    return True


@jit
def one_row(plan, widest, places, row, first_state, scale, value, slope, posterior, want):
    """Return the log-probability of one row, nan when it left the range; write the posteriors when wanted."""
    first_term, first_child, child, coefficient, target, home, slots, used = plan
    states = first_state[len(first_state) - 1]
    log_scale = fill_one(row, first_state, scale, value)
    clear_underflow()
    up_one(first_term, first_child, child, coefficient, slots, states, value)
    root = value[len(value) - 1]
    if not LEAST < root < MOST:
        return np.nan
    if underflow():
        bound = np.empty(places)
        bound[:states] = value[:states]
        if not bound_one(first_term, first_child, target, coefficient, home, states, bound) < root * (1.0 + SAME):
            return np.nan
    if want:
        down_one(plan, states, value, slope, np.empty(widest))
        if not _posterior(row, first_state, used, slope, root, posterior):
            return np.nan
    return np.log(root) - log_scale


@jit
def each_row(plan, widest, places, X, first_state, scale, log_evidence, posterior):
    """Do what `one_row` does for each of many rows: for circuits so large that blocks of rows take too much memory."""
    want = len(posterior) > 0
    value, slope = np.empty(len(plan[6])), np.zeros(places if want else 0)
    for r in range(len(X)):
        place = posterior[r] if want else value
        log_evidence[r] = one_row(plan, widest, places, X[r], first_state, scale, value, slope, place, want)


@jit
def many_rows(plan, widest, places, X, first_state, scale, log_evidence, posterior, weight, flow):
    """Do what `one_row` does for many rows.

    Posteriors are written when that array has rows, flows added up when that array has entries.
    """
    first_term, first_child, child, coefficient, target, home, slots, used = plan
    states = first_state[len(first_state) - 1]
    down = len(posterior) > 0 or len(flow) > 0
    where = slots if down else home
    value, log_scale, share = np.empty((len(slots) if down else places, ROWS)), np.empty(ROWS), np.empty(ROWS)
    slope, kept = np.zeros((places if down else 0, ROWS)), np.empty((widest + 2, ROWS))
    column, own = np.empty((2, states)), np.zeros(len(flow))
    upper = np.empty((0, ROWS))
    for start in range(0, len(X), ROWS):
        rows = min(ROWS, len(X) - start)
        fill_block(X[start : start + rows], first_state, scale, value, log_scale)
        clear_underflow()
        up_block(first_term, first_child, child if down else target, coefficient, where, states, value, kept)
        root = value[where[len(where) - 1]]
        most = root
        if underflow():
            if len(upper) == 0:
                upper = np.empty((places, ROWS))
            fill_block(X[start : start + rows], first_state, scale, upper, log_scale)
            bound_block(first_term, first_child, target, coefficient, home, states, upper, kept)
            most = upper[home[len(home) - 1]]
        share[:] = 0.0
        for r in range(rows):
            inside = LEAST < root[r] < MOST and most[r] < root[r] * (1.0 + SAME)
            log_evidence[start + r] = np.log(root[r]) - log_scale[r] if inside else np.nan
            if inside and len(flow):
                share[r] = weight[start + r] / root[r]
        if not down:
            continue
        if len(flow):
            flow_block(plan, states, value, slope, kept, share, own)
        else:
            down_block(plan, states, value, slope, kept)
        lost = False
        for r in range(rows):
            if np.isnan(log_evidence[start + r]):
                continue
            column[0], column[1] = slope[:states, r], value[:states, r]
            if len(posterior):
                sound = _posterior(X[start + r], first_state, used, column[0], root[r], posterior[start + r])
            else:
                sound = whole(first_state, used, column[1], column[0], root[r])
            if not sound:
                log_evidence[start + r], share[r], lost = np.nan, 0.0, True
        if lost and len(flow):  # once more, without those rows
            own[:] = 0.0
            flow_block(plan, states, value, slope, kept, share, own)
        for t in range(len(flow)):
            flow[t] += own[t]
            own[t] = 0.0
