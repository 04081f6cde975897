"""Passes over a circuit in linear space: one row at a time, and blocks of rows.

The arrays of a plan are described in `circuit_plan.py`; here they come as a tuple. Values and derivatives of a block
have the rows as their last axis, of the fixed length ROWS, so that each step is a few vector instructions on whole
cache lines. Derivatives, and a block's values that are not needed again, are kept in the slots' homes: fewer places.
An observed state's indicator is not one but a power of two that makes up for its probability, so that long rows do not
underflow; rows that do all the same have a root outside of LEAST..MOST.
"""

import numpy as np

from tinybayes._kernels import jit

ROWS = 16
LEAST, MOST = 1e-250, 1e250


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
    for v in range(states, len(where)):
        total = 0.0
        for t in range(first_term[v], first_term[v + 1]):
            term = coefficient[t]
            for e in range(first_child[t], first_child[t + 1]):
                term *= value[child[e]]
            total += term
        value[where[v]] = total


@jit
def down_one(plan, states, value, slope, before):
    """Write the derivatives of the root in the indicators; `before` is scratch for the children of a term.

    All derivatives are zero before, and those of other slots afterwards.
    """
    first_term, first_child, child, coefficient, target, home, _ = plan
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
def up_block(first_term, first_child, child, coefficient, where, states, value):
    """Do what `up_one` does for a block of rows."""
    total, term = np.empty(ROWS), np.empty(ROWS)
    for v in range(states, len(where)):
        for r in range(ROWS):
            total[r] = 0.0
        for t in range(first_term[v], first_term[v + 1]):
            start, stop = first_child[t], first_child[t + 1]
            c = coefficient[t]
            if stop - start == 2:
                a, b = value[child[start]], value[child[start + 1]]
                for r in range(ROWS):
                    total[r] += c * a[r] * b[r]
            elif stop - start == 1:
                a = value[child[start]]
                for r in range(ROWS):
                    total[r] += c * a[r]
            else:
                for r in range(ROWS):
                    term[r] = c
                for e in range(start, stop):
                    a = value[child[e]]
                    for r in range(ROWS):
                        term[r] *= a[r]
                for r in range(ROWS):
                    total[r] += term[r]
        out = value[where[v]]
        for r in range(ROWS):
            out[r] = total[r]


@jit
def down_block(plan, states, value, slope, before, share, flow):
    """Do what `down_one` does for a block of rows; add to `flow`, when it has entries, what flows through each term.

    That is its part of the root, times the rows' shares of it.
    """
    first_term, first_child, child, coefficient, target, home, _ = plan
    own, above, after = np.empty(ROWS), np.empty(ROWS), np.empty(ROWS)
    slope[:states] = 0.0
    slope[home[len(home) - 1]] = 1.0
    for v in range(len(value) - 1, states - 1, -1):
        out = slope[home[v]]
        for r in range(ROWS):
            own[r] = out[r]
            out[r] = 0.0
        for t in range(first_term[v], first_term[v + 1]):
            start, stop = first_child[t], first_child[t + 1]
            c = coefficient[t]
            if len(flow):
                for r in range(ROWS):
                    above[r] = c * own[r] * share[r]
                for e in range(start, stop):
                    a = value[child[e]]
                    for r in range(ROWS):
                        above[r] *= a[r]
                flow[t] += above.sum()
            if stop - start == 2:
                a, b = value[child[start]], value[child[start + 1]]
                out_a, out_b = slope[target[start]], slope[target[start + 1]]
                for r in range(ROWS):
                    out_a[r] += c * own[r] * b[r]
                for r in range(ROWS):
                    out_b[r] += c * own[r] * a[r]
            elif stop - start == 1:
                out = slope[target[start]]
                for r in range(ROWS):
                    out[r] += c * own[r]
            else:
                for r in range(ROWS):
                    above[r] = c * own[r]
                    after[r] = 1.0
                for e in range(start, stop):
                    a, kept = value[child[e]], before[e - start]
                    for r in range(ROWS):
                        kept[r] = above[r]
                        above[r] *= a[r]
                for e in range(stop - 1, start - 1, -1):
                    a, out, kept = value[child[e]], slope[target[e]], before[e - start]
                    for r in range(ROWS):
                        out[r] += kept[r] * after[r]
                        after[r] *= a[r]


@jit
def _posterior(row, first_state, slope, root, out):
    """Write the posterior of every variable of a row."""
    for v in range(len(row)):
        for i in range(first_state[v], first_state[v + 1]):
            out[i] = slope[i] / root if row[v] < 0 else 0.0
        if row[v] >= 0:
            out[first_state[v] + row[v]] = 1.0


@jit
def one_row(plan, widest, row, first_state, scale, value, slope, posterior, want):
    """Return the log-probability of one row, nan when it left the range; write the posteriors when wanted."""
    first_term, first_child, child, coefficient, _, _, slots = plan
    states = first_state[len(first_state) - 1]
    log_scale = fill_one(row, first_state, scale, value)
    up_one(first_term, first_child, child, coefficient, slots, states, value)
    root = value[len(value) - 1]
    if not LEAST < root < MOST:
        return np.nan
    if want:
        down_one(plan, states, value, slope, np.empty(widest))
        _posterior(row, first_state, slope, root, posterior)
    return np.log(root) - log_scale


@jit
def each_row(plan, widest, places, X, first_state, scale, log_evidence, posterior):
    """Do what `one_row` does for each of many rows: for circuits so large that blocks of rows leave the cache."""
    want = len(posterior) > 0
    value, slope = np.empty(len(plan[6])), np.zeros(places if want else 0)
    for r in range(len(X)):
        place = posterior[r] if want else value
        log_evidence[r] = one_row(plan, widest, X[r], first_state, scale, value, slope, place, want)


@jit
def many_rows(plan, widest, places, X, first_state, scale, log_evidence, posterior, weight, flow):
    """Do what `one_row` does for many rows.

    Posteriors are written when that array has rows, flows added up when that array has entries.
    """
    first_term, first_child, child, coefficient, target, home, slots = plan
    states = first_state[len(first_state) - 1]
    down = len(posterior) > 0 or len(flow) > 0
    where = slots if down else home
    value, log_scale, share = np.empty((len(slots) if down else places, ROWS)), np.empty(ROWS), np.empty(ROWS)
    slope, before = np.zeros((places if down else 0, ROWS)), np.empty((widest, ROWS))
    column = np.empty(states)
    for start in range(0, len(X), ROWS):
        rows = min(ROWS, len(X) - start)
        fill_block(X[start : start + rows], first_state, scale, value, log_scale)
        up_block(first_term, first_child, child if down else target, coefficient, where, states, value)
        root = value[where[len(where) - 1]]
        share[:] = 0.0
        for r in range(rows):
            inside = LEAST < root[r] < MOST
            log_evidence[start + r] = np.log(root[r]) - log_scale[r] if inside else np.nan
            if inside and len(flow):
                share[r] = weight[start + r] / root[r]
        if not down:
            continue
        down_block(plan, states, value, slope, before, share, flow)
        for r in range(rows if len(posterior) else 0):
            if LEAST < root[r] < MOST:
                column[:] = slope[:states, r]
                _posterior(X[start + r], first_state, column, root[r], posterior[start + r])
