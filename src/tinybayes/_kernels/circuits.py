"""Passes over a circuit in linear space: one row at a time, and blocks of rows.

The arrays of a `Plan` are described in `circuit_plan.py`. Values and derivatives of a block have the rows as their last
axis, of the fixed length ROWS, so that each step is a few vector instructions on whole cache lines (`lanes.py`).
Derivatives, and a block's values that are not needed again, are kept in the slots' homes. An observed state's indicator
is not one but a power of two that makes up for its probability, so that long rows do not underflow; rows that underflow
anyway have a root outside of LEAST..MOST.

A value on the way to the root may be too small for a double and yet count, if it is multiplied by a large one.
Lost values make a root too small. Where the processor reports a result out of range, or the plan lost a coefficient,
a second pass computes an upper bound (`circuit_bounds.py`); if both roots are not equal, the row is left to log space.
So it is with derivatives where posteriors are wanted: each that is not below NOTHING is right, however small it is.
Expected counts are only checked by the derivatives of a variable's states, which add up to the root.

The passes for one row and for a block are written separately: they differ in every line that does arithmetic. The
downward passes serve derivatives and expected counts; the counts need the flow through each term.
"""

import numpy as np

from tinybayes._kernels import jit, plain
from tinybayes._kernels.circuit_bounds import down_block_bounds, root_bound, slope_bounds, up_block_bounds
from tinybayes._kernels.float_range import left_range, watch_range
from tinybayes._kernels.lanes import ROWS, add_product, add_scaled, set_product, set_row

LEAST, MOST = 1e-250, 1e250
SAME, WHOLE = 1e-12, 1e-9  # relative differences of roots, and of derivatives and their sums, that are rounding
NOTHING = 1e-280  # posteriors below may be lost


@plain
def _fill_one(plan, row, value):
    """Write the indicators of a row; return the logarithm of the scale of its observed states."""
    first_state, scale = plan.first_state, plan.scale
    log_scale = 0.0
    for v in range(len(row)):
        for i in range(first_state[v], first_state[v + 1]):
            value[i] = 1.0 if row[v] < 0 else 0.0
        if row[v] >= 0:
            observed = first_state[v] + row[v]
            value[observed] = scale[observed]
            log_scale += np.log(scale[observed])
    return log_scale


@plain
def _up_one(plan, value):
    """Write the value of every slot; those of the indicators are there."""
    first_term, first_child, child, coefficient = plan.first_term, plan.first_child, plan.child, plan.coefficient
    states = plan.first_state[-1]
    t, start = first_term[states], first_child[first_term[states]]
    for v in range(states, len(value)):
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
        value[v] = total


@jit
def _is_lost(plan, value):
    """Tell whether the root, or a value that counts, left the range of doubles since `watch_range`."""
    root = value[-1]
    if not LEAST < root < MOST:
        return True
    return (plan.watched or left_range()) and not root_bound(plan, value) < root * (1.0 + SAME)


@plain
def _down_one(plan, top, value, slope, before, flow):
    """Write the derivatives of `top` times the root in the indicators, and the flow through each term.

    The flow is the term's part of the root, times `top`; with None the code for it is not compiled. `before` is scratch
    for the children of a term. All derivatives and flows are zero before; those of other slots are zero afterwards.
    """
    first_term, first_child, child, coefficient = plan.first_term, plan.first_child, plan.child, plan.coefficient
    target, home, states = plan.target, plan.home, plan.first_state[-1]
    slope[:states] = 0.0
    slope[home[-1]] = top
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
                if flow is not None:
                    above = above * value[child[start]] * value[child[start + 1]]
            elif stop - start == 1:
                slope[target[start]] += above
                if flow is not None:
                    above *= value[child[start]]
            else:
                for e in range(start, stop):
                    before[e - start] = above
                    above *= value[child[e]]
                after = 1.0
                for e in range(stop - 1, start - 1, -1):
                    slope[target[e]] += before[e - start] * after
                    after *= value[child[e]]
            if flow is not None:
                flow[t] = above


@plain
def _fill_block(plan, X, value, log_scale):
    """Do what `_fill_one` does for up to ROWS rows; columns without a row are left without evidence."""
    first_state, scale = plan.first_state, plan.scale
    value[: first_state[-1]] = 1.0
    log_scale[:] = 0.0
    for r in range(X.shape[0]):
        for v in range(X.shape[1]):
            if X[r, v] >= 0:
                for i in range(first_state[v], first_state[v + 1]):
                    value[i, r] = 0.0
                observed = first_state[v] + X[r, v]
                value[observed, r] = scale[observed]
                log_scale[r] += np.log(scale[observed])


@plain
def _up_block(plan, child, home, value, kept):
    """Do what `_up_one` does for a block of rows, in these homes of slots and children; `kept` is scratch."""
    first_term, first_child, coefficient = plan.first_term, plan.first_child, plan.coefficient
    for v in range(plan.first_state[-1], len(home)):
        out = home[v]  # never the home of a child, which is needed until here
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


@plain
def _down_block(plan, value, slope, kept, share, flow):
    """Do what `_down_one` does for a block of rows; add to `flow`, unless it is None, each row's, times its share.

    `kept` is scratch, with room for two more than a term's children.
    """
    first_term, first_child, child, coefficient = plan.first_term, plan.first_child, plan.child, plan.coefficient
    target, home, states = plan.target, plan.home, plan.first_state[-1]
    slope[:states] = 0.0
    slope[home[-1]] = 1.0
    after = len(kept) - 1
    for v in range(len(value) - 1, states - 1, -1):
        own = home[v]  # never the home of a child
        for t in range(first_term[v], first_term[v + 1]):
            start, stop = first_child[t], first_child[t + 1]
            c = coefficient[t]
            if flow is None and stop - start == 2:
                add_product(slope, target[start], slope, own, value, child[start + 1], c)
                add_product(slope, target[start + 1], slope, own, value, child[start], c)
            elif flow is None and stop - start == 1:
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
            if flow is not None:
                for r in range(ROWS):
                    if share[r] != 0.0:  # without one the row may have left the range, and zero times infinity is nan
                        flow[t] += share[r] * kept[stop - start, r]
        set_row(slope, own, 0.0)


@plain
def _posterior(plan, row, slope, upper, root, out):
    """Write the posterior of every variable of a row; tell whether all are right.

    They are when those of each variable that the circuit has add up to one and, where there are upper bounds of the
    derivatives, each agrees with its bound.
    """
    first_state, used = plan.first_state, plan.used
    right = True
    for v in range(len(row)):
        total = 0.0
        for i in range(first_state[v], first_state[v + 1]):
            out[i] = slope[i] / root if row[v] < 0 else 0.0
            total += out[i]
        if row[v] >= 0:
            out[first_state[v] + row[v]] = 1.0
            continue
        if used[v] and not abs(total - 1.0) < WHOLE:  # also true for nan
            right = False
        for i in range(first_state[v], first_state[v + 1] if len(upper) else 0):
            bound = upper[i] / root
            if not (bound <= out[i] * (1.0 + WHOLE) or bound < NOTHING):
                right = False
    return right


@plain
def _is_whole(plan, value, slope, root):
    """Tell whether the derivatives of each variable's states, times their indicators, add up to the root of a row."""
    first_state, used = plan.first_state, plan.used
    for v in range(len(first_state) - 1):
        total = 0.0
        for i in range(first_state[v], first_state[v + 1]):
            if value[i] > 0.0:
                total += value[i] * slope[i]
        if used[v] and not abs(total - root) < WHOLE * root:
            return False
    return True


@jit
def one_row(plan, row, value, slope, posterior):
    """Return the log-probability of one row, nan when it left the range; write the posteriors if there is room.

    `value` and `slope` are scratch for the slots and the homes; the slopes are zero.
    """
    log_scale = _fill_one(plan, row, value)
    watch_range()
    _up_one(plan, value)
    small = plan.watched or left_range()
    if _is_lost(plan, value):
        return np.nan
    root = value[-1]
    if len(posterior) > 0:
        watch_range()
        _down_one(plan, 1.0, value, slope, np.empty(plan.most_children), None)
        upper = slope_bounds(plan, value) if small or left_range() else value[:0]
        if not _posterior(plan, row, slope, upper, root, posterior):
            return np.nan
    return np.log(root) - log_scale + plan.shift


@jit
def each_row(plan, X, log_evidence, posterior):
    """Do what `one_row` does for each of many rows: for circuits so large that blocks of rows take too much memory."""
    value, slope = np.empty(len(plan.home)), np.zeros(plan.n_homes if len(posterior) else 0)
    for r in range(len(X)):
        log_evidence[r] = one_row(plan, X[r], value, slope, posterior[r] if len(posterior) else value[:0])


@jit
def many_rows(plan, X, log_evidence, posterior, weight, flow):
    """Do what `one_row` does for many rows.

    Posteriors are written when that array has rows. When `flow` has entries, the flows through the terms are added to
    it, each row's as parts of its weight.
    """
    down = len(posterior) > 0 or len(flow) > 0
    child, home = (plan.child, plan.slots) if down else (plan.target, plan.home)
    rooms = len(home) if down else plan.n_homes
    value, slope = np.empty((rooms, ROWS)), np.zeros((plan.n_homes if down else 0, ROWS))
    # Bounds are seldom needed: this memory is not touched before.
    upper, upper_slope = np.empty((rooms, ROWS)), np.zeros((plan.n_homes if len(posterior) else 0, ROWS))
    kept, nothing = np.empty((plan.most_children + 2, ROWS)), np.zeros((0, ROWS))
    log_scale, share, own_flow = np.empty(ROWS), np.empty(ROWS), np.empty(len(flow))
    for start in range(0, len(X), ROWS):
        rows, logs = X[start : start + ROWS], log_evidence[start : start + ROWS]
        _fill_block(plan, rows, value, log_scale)
        watch_range()
        _up_block(plan, child, home, value, kept)
        root = value[home[-1]]
        most = root
        small = plan.watched or left_range()
        if small:
            _fill_block(plan, rows, upper, log_scale)
            up_block_bounds(plan, child, home, upper, kept)
            most = upper[home[-1]]
        for r in range(len(rows)):
            inside = LEAST < root[r] < MOST and most[r] < root[r] * (1.0 + SAME)
            logs[r] = np.log(root[r]) - log_scale[r] + plan.shift if inside else np.nan
        if not down:
            continue
        share[:] = 0.0
        for r in range(len(rows) if len(flow) else 0):
            if not np.isnan(logs[r]):
                share[r] = weight[start + r] / root[r]
        own_flow[:] = 0.0
        watch_range()
        if len(flow):
            _down_block(plan, value, slope, kept, share, own_flow)
        else:
            _down_block(plan, value, slope, kept, share, None)
        bounds = nothing
        if len(posterior) and (small or left_range()):
            if not small:
                _fill_block(plan, rows, upper, log_scale)
                up_block_bounds(plan, child, home, upper, kept)
            down_block_bounds(plan, upper, upper_slope, kept)
            bounds = upper_slope
        lost = _finish_block(plan, rows, value, slope, bounds, logs, posterior[start : start + ROWS], share)
        if lost and len(flow):  # again, without those rows
            own_flow[:] = 0.0
            _down_block(plan, value, slope, kept, share, own_flow)
        for t in range(len(flow)):
            flow[t] += own_flow[t]


@jit
def _finish_block(plan, rows, value, slope, upper, logs, posterior, share):
    """Write the posteriors of a block; tell whether rows lost a derivative, and give them nan and no share."""
    states, root = plan.first_state[-1], value[-1]
    lost = False
    for r in range(len(rows)):
        if np.isnan(logs[r]):
            continue
        own_slope, bound = slope[:states, r].copy(), upper[:states, r].copy()
        if len(posterior):
            sound = _posterior(plan, rows[r], own_slope, bound, root[r], posterior[r])
        else:
            sound = _is_whole(plan, value[:states, r].copy(), own_slope, root[r])
        if not sound:
            logs[r], share[r], lost = np.nan, 0.0, True
    return lost


@jit
def partition_and_counts(plan, parameters, value, slope, flow, counts):
    """Return the root without evidence, nan where doubles are not enough; write the expected count of every parameter.

    Other parameters than the plan's are given, not as logarithms: its coefficients are written anew. `value`, `slope`
    and `flow` are scratch for the slots, the homes and the terms; the slopes are zero.
    """
    first_term, first_entry, entry, states = plan.first_term, plan.first_entry, plan.entry, plan.first_state[-1]
    watch_range()
    for t in range(len(flow)):
        product = 1.0
        for k in range(first_entry[t], first_entry[t + 1]):
            product *= parameters[entry[k]]
        plan.coefficient[t] = product
    if left_range():  # a parameter that is still to come could have made up for it
        return np.nan
    value[:states] = 1.0
    _up_one(plan, value)
    if _is_lost(plan, value):
        return np.nan
    root = value[-1]
    flow[:] = 0.0
    _down_one(plan, 1.0 / root, value, slope, np.empty(plan.most_children), flow)
    counts[:] = 0.0
    for v in range(len(value) - 1, states - 1, -1):
        for t in range(first_term[v], first_term[v + 1]):
            for k in range(first_entry[t], first_entry[t + 1]):
                counts[entry[k]] += flow[t]
    return root if _is_whole(plan, value, slope, 1.0) else np.nan
