"""Passes over a circuit in log space, row by row: the reference, and what rows that underflow fall back to."""

import numpy as np

from tinybayes._kernels import jit, plain


@plain
def fill_log(plan, row, value):
    """Write the logarithms of a row's indicators."""
    first_state = plan.first_state
    for v in range(len(row)):
        for i in range(first_state[v], first_state[v + 1]):
            value[i] = 0.0 if row[v] < 0 or i - first_state[v] == row[v] else -np.inf


@plain
def _log_add(a, b):
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


@plain
def _log_term(plan, t, value):
    term = plan.log_coefficient[t]
    for e in range(plan.first_child[t], plan.first_child[t + 1]):
        term += value[plan.child[e]]
    return term


@plain
def up_log(plan, value):
    """Write the logarithm of the value of every slot."""
    first_term = plan.first_term
    for v in range(plan.first_state[-1], len(value)):
        top = -np.inf
        for t in range(first_term[v], first_term[v + 1]):
            top = max(top, _log_term(plan, t, value))
        if top == -np.inf or first_term[v + 1] - first_term[v] == 1:
            value[v] = top
            continue
        total = 0.0
        for t in range(first_term[v], first_term[v + 1]):
            total += np.exp(_log_term(plan, t, value) - top)
        value[v] = top + np.log(total)


@plain
def _down_log(plan, value, slope, before):
    """Write the logarithm of the derivative of the root in every slot."""
    first_term, first_child, child = plan.first_term, plan.first_child, plan.child
    slope[:] = -np.inf
    slope[len(slope) - 1] = 0.0
    for v in range(len(value) - 1, plan.first_state[-1] - 1, -1):
        if slope[v] == -np.inf:
            continue
        for t in range(first_term[v], first_term[v + 1]):
            start, stop = first_child[t], first_child[t + 1]
            above, after = slope[v] + plan.log_coefficient[t], 0.0
            for e in range(start, stop):
                before[e - start] = above
                above += value[child[e]]
            for e in range(stop - 1, start - 1, -1):
                slope[child[e]] = _log_add(slope[child[e]], before[e - start] + after)
                after += value[child[e]]


@jit
def rows_log(plan, X, log_evidence, posterior, weight, flow):
    """Do what `many_rows` of `circuits.py` does, in log space; impossible rows have minus infinity and no more."""
    first_term, first_state = plan.first_term, plan.first_state
    states, slots = first_state[-1], len(first_term) - 1
    value, slope, before = np.empty(slots), np.empty(slots), np.empty(plan.most_children)
    for r in range(len(X)):
        fill_log(plan, X[r], value)
        up_log(plan, value)
        root = value[slots - 1]
        log_evidence[r] = root
        if root == -np.inf or (len(posterior) == 0 and len(flow) == 0):
            continue
        _down_log(plan, value, slope, before)
        for v in range(X.shape[1] if len(posterior) else 0):
            for i in range(first_state[v], first_state[v + 1]):
                observed = 1.0 if i - first_state[v] == X[r, v] else 0.0
                posterior[r, i] = np.exp(slope[i] - root) if X[r, v] < 0 else observed
        for v in range(states, slots if len(flow) else 0):
            for t in range(first_term[v], first_term[v + 1]):
                term = slope[v] + _log_term(plan, t, value)
                flow[t] += weight[r] * np.exp(term - root)


@plain
def _walk(plan, chosen, stack, top, row):
    """Go to the children of a chosen term: set the variables of indicators, and put the others on the stack."""
    states = plan.first_state[-1]
    for e in range(plan.first_child[chosen], plan.first_child[chosen + 1]):
        c = plan.child[e]
        if c < states:
            v = plan.state_variable[c]
            row[v] = c - plan.first_state[v]
        else:
            stack[top] = c
            top += 1
    return top


@jit
def best_rows(plan, X, out, log_probability):
    """Complete each row in the most probable way: maxima instead of sums on the way up, then their traces down."""
    first_term = plan.first_term
    states, slots = plan.first_state[-1], len(first_term) - 1
    value, stack, best = np.empty(slots), np.empty(slots, np.int32), np.empty(slots, np.int64)
    for r in range(len(X)):
        fill_log(plan, X[r], value)
        for v in range(states, slots):
            top = -np.inf
            best[v] = first_term[v]
            for t in range(first_term[v], first_term[v + 1]):
                term = _log_term(plan, t, value)
                if term > top:
                    top, best[v] = term, t
            value[v] = top
        log_probability[r] = value[slots - 1]
        out[r] = X[r]
        if log_probability[r] == -np.inf:
            continue
        stack[0], top = slots - 1, 1
        if slots == states:
            continue
        while top > 0:
            v = stack[top - 1]
            top = _walk(plan, best[v], stack, top - 1, out[r])


@jit
def draw_rows(plan, value, seed, out):
    """Draw rows from the distribution whose logarithms of values are given."""
    first_term = plan.first_term
    slots = len(first_term) - 1
    stack = np.empty(slots, np.int32)
    # Inside a kernel this is the thread's own generator of Numba; NumPy's global one is not touched.
    np.random.seed(seed)  # noqa: NPY002
    for r in range(len(out)):
        stack[0], top = slots - 1, 1
        while top > 0:
            v = stack[top - 1]
            chosen = first_term[v]
            left = np.random.random()  # noqa: NPY002
            for t in range(first_term[v], first_term[v + 1]):
                part = np.exp(_log_term(plan, t, value) - value[v])
                if part > 0.0:
                    chosen = t
                    left -= part
                    if left < 0.0:
                        break
            top = _walk(plan, chosen, stack, top - 1, out[r])
