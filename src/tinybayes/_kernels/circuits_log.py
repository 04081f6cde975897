"""Passes over a circuit in log space, row by row: the reference, and what rows that underflow fall back to.

The arrays are those of `circuits.py` with the logarithms of the coefficients.
"""

import numpy as np

from tinybayes._kernels import jit


@jit
def fill_log(row, first_state, value):
    """Write the logarithms of a row's indicators."""
    for v in range(len(row)):
        for i in range(first_state[v], first_state[v + 1]):
            value[i] = 0.0 if row[v] < 0 or i - first_state[v] == row[v] else -np.inf


@jit
def _log_add(a, b):
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


@jit
def _log_term(t, first_child, child, log_coefficient, value):
    term = log_coefficient[t]
    for e in range(first_child[t], first_child[t + 1]):
        term += value[child[e]]
    return term


@jit
def up_log(plan, states, value):
    """Write the logarithm of the value of every slot."""
    first_term, first_child, child, log_coefficient = plan
    for v in range(states, len(value)):
        top = -np.inf
        for t in range(first_term[v], first_term[v + 1]):
            top = max(top, _log_term(t, first_child, child, log_coefficient, value))
        if top == -np.inf or first_term[v + 1] - first_term[v] == 1:
            value[v] = top
            continue
        total = 0.0
        for t in range(first_term[v], first_term[v + 1]):
            total += np.exp(_log_term(t, first_child, child, log_coefficient, value) - top)
        value[v] = top + np.log(total)


@jit
def down_log(plan, states, value, slope, before):
    """Write the logarithm of the derivative of the root in every slot."""
    first_term, first_child, child, log_coefficient = plan
    slope[:] = -np.inf
    slope[len(slope) - 1] = 0.0
    for v in range(len(value) - 1, states - 1, -1):
        if slope[v] == -np.inf:
            continue
        for t in range(first_term[v], first_term[v + 1]):
            start, stop = first_child[t], first_child[t + 1]
            above, after = slope[v] + log_coefficient[t], 0.0
            for e in range(start, stop):
                before[e - start] = above
                above += value[child[e]]
            for e in range(stop - 1, start - 1, -1):
                slope[child[e]] = _log_add(slope[child[e]], before[e - start] + after)
                after += value[child[e]]


@jit
def rows_log(plan, widest, X, first_state, log_evidence, posterior, weight, flow):
    """Do what `many_rows` of `circuits.py` does, in log space; impossible rows have minus infinity and no more."""
    first_term, first_child, child, log_coefficient = plan
    states, slots = first_state[len(first_state) - 1], len(first_term) - 1
    value, slope, before = np.empty(slots), np.empty(slots), np.empty(widest)
    for r in range(len(X)):
        fill_log(X[r], first_state, value)
        up_log(plan, states, value)
        root = value[slots - 1]
        log_evidence[r] = root
        if root == -np.inf or (len(posterior) == 0 and len(flow) == 0):
            continue
        down_log(plan, states, value, slope, before)
        for v in range(X.shape[1] if len(posterior) else 0):
            for i in range(first_state[v], first_state[v + 1]):
                observed = 1.0 if i - first_state[v] == X[r, v] else 0.0
                posterior[r, i] = np.exp(slope[i] - root) if X[r, v] < 0 else observed
        for v in range(states, slots if len(flow) else 0):
            for t in range(first_term[v], first_term[v + 1]):
                term = slope[v] + _log_term(t, first_child, child, log_coefficient, value)
                flow[t] += weight[r] * np.exp(term - root)


@jit
def _walk(chosen, first_child, child, states, stack, top, state_variable, first_state, row):
    """Go to the children of a chosen term: set the variables of indicators, and put the others on the stack."""
    for e in range(first_child[chosen], first_child[chosen + 1]):
        c = child[e]
        if c < states:
            row[state_variable[c]] = c - first_state[state_variable[c]]
        else:
            stack[top] = c
            top += 1
    return top


@jit
def best_rows(plan, X, first_state, state_variable, out, log_probability):
    """Complete each row in the most probable way: maxima instead of sums on the way up, then their traces down."""
    first_term, first_child, child, log_coefficient = plan
    states, slots = first_state[len(first_state) - 1], len(first_term) - 1
    value, stack, best = np.empty(slots), np.empty(slots, np.int32), np.empty(slots, np.int64)
    for r in range(len(X)):
        fill_log(X[r], first_state, value)
        for v in range(states, slots):
            top = -np.inf
            best[v] = first_term[v]
            for t in range(first_term[v], first_term[v + 1]):
                term = _log_term(t, first_child, child, log_coefficient, value)
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
            top = _walk(best[v], first_child, child, states, stack, top - 1, state_variable, first_state, out[r])


@jit
def draw_rows(plan, value, first_state, state_variable, seed, out):
    """Draw rows from the distribution whose logarithms of values are given."""
    first_term, first_child, child, log_coefficient = plan
    states, slots = first_state[len(first_state) - 1], len(first_term) - 1
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
                part = np.exp(_log_term(t, first_child, child, log_coefficient, value) - value[v])
                if part > 0.0:
                    chosen = t
                    left -= part
                    if left < 0.0:
                        break
            top = _walk(chosen, first_child, child, states, stack, top - 1, state_variable, first_state, out[r])
