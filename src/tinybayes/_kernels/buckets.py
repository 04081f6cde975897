"""Bucket elimination over flat arrays: supports, backward messages, counting.

A schedule is a list of units. A unit belongs to a variable, which it eliminates: its joint table runs over the unit's
context and, fastest, over the variable. It is the product of its members, which are factors or messages of units
before, and summing the variable out of it gives its message. The units of one variable follow each other; when there
are several, the bucket was split, and their messages together only bound the exact one.

Schedules are made once, in Python. The kernels fill them with weights (messages), with ones and zeros (supports) or
with counts (uniform draws under constraints). For sampling, joint tables are divided by their messages, so a draw
reads one row of probabilities and only split buckets enter a weight.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import inlined, jit, plain


class Schedule(NamedTuple):
    """The units as flat arrays."""

    states: np.ndarray  # (units,) states of the variable
    share: np.ndarray  # (units,) one over the number of units of its variable
    first_axis: np.ndarray  # (units + 1,) into axis_card: the context, then the variable
    axis_card: np.ndarray
    first_joint: np.ndarray  # (units + 1,) where the joint table is in the pool of joint tables
    first_member: np.ndarray  # (units + 1,) into member
    member: np.ndarray  # the number of a table
    first_stride: np.ndarray  # (members + 1,) into stride
    stride: np.ndarray  # of the member along each axis of the unit, in entries
    first_entry: np.ndarray  # (tables + 1,) where a table is in the pool of tables: factors, then messages
    factors: int


@jit
def propagate(first_scope, scope, first_entry, possible, cards, first_state, domain, waiting):
    """Take away states that no factor supports, until nothing changes; return False when a variable has none left.

    `waiting` says which factors to look at first, and is used up.
    """
    count = len(first_scope) - 1
    seen, digits = np.empty(len(domain), np.bool_), np.empty(max(len(scope), 1), np.int64)
    changed = True
    while changed:
        changed = False
        for f in range(count):
            if not waiting[f]:
                continue
            waiting[f] = False
            begin, width = first_scope[f], first_scope[f + 1] - first_scope[f]
            for j in range(width):
                digits[j] = 0
                v = scope[begin + j]
                seen[first_state[v] : first_state[v + 1]] = False
            for e in range(first_entry[f], first_entry[f + 1]):
                fits = possible[e]
                for j in range(width):
                    if not fits:
                        break
                    fits = domain[first_state[scope[begin + j]] + digits[j]]
                if fits:
                    for j in range(width):
                        seen[first_state[scope[begin + j]] + digits[j]] = True
                j = width - 1
                while j >= 0:
                    digits[j] += 1
                    if digits[j] < cards[scope[begin + j]]:
                        break
                    digits[j] = 0
                    j -= 1
            for j in range(width):
                v, lost = scope[begin + j], False
                left = 0
                for s in range(first_state[v], first_state[v + 1]):
                    lost |= domain[s] and not seen[s]
                    domain[s] = domain[s] and seen[s]
                    left += domain[s]
                if left == 0:
                    return False
                if lost:
                    changed = True
                    for g in range(count):
                        for k in range(first_scope[g], first_scope[g + 1]):
                            waiting[g] |= scope[k] == v
    return True


@plain
def _next(digits, cards, strides):
    """Go on to the next assignment, the last axis running fastest; return how far that is in a table."""
    moved = 0
    for j in range(len(cards) - 1, -1, -1):
        digits[j] += 1
        moved += strides[j]
        if digits[j] < cards[j]:
            break
        moved -= strides[j] * cards[j]
        digits[j] = 0
    return moved


@inlined
def _join(plan, u, tables, joint, digits, logs):
    """Fill the joint table of a unit with the product of its members, with `logs` the sum; return it."""
    out = joint[plan.first_joint[u] : plan.first_joint[u + 1]]
    out[:] = 0.0 if logs else 1.0
    cards = plan.axis_card[plan.first_axis[u] : plan.first_axis[u + 1]]
    for m in range(plan.first_member[u], plan.first_member[u + 1]):
        strides = plan.stride[plan.first_stride[m] : plan.first_stride[m + 1]]
        k = plan.first_entry[plan.member[m]]
        digits[: len(cards)] = 0
        for i in range(len(out)):
            if logs:
                out[i] += tables[k]
            else:
                out[i] *= tables[k]
            k += _next(digits, cards, strides)
    return out


@plain
def _match(plan, unit, stop, joint, margin):
    """Let the units of a split bucket agree about their variable; their product stays what it is."""
    states = plan.states[unit]
    margin[: (stop - unit + 1) * states] = -np.inf
    mean = (stop - unit) * states
    for s in range(states):
        margin[mean + s] = 0.0
    for u in range(unit, stop):
        at = (u - unit) * states
        begin, end, power = plan.first_joint[u], plan.first_joint[u + 1], 1.0 / plan.share[u]
        for s in range(states):
            top = -np.inf
            for e in range(begin + s, end, states):
                top = max(top, joint[e])
            if top > -np.inf:
                total = 0.0
                for e in range(begin + s, end, states):
                    total += np.exp(power * (joint[e] - top))
                margin[at + s] = power * top + np.log(total)
            margin[mean + s] += plan.share[u] * margin[at + s]
    for u in range(unit, stop):
        at = (u - unit) * states
        for s in range(states):
            if margin[mean + s] > -np.inf:
                shift = plan.share[u] * (margin[mean + s] - margin[at + s])
                for e in range(plan.first_joint[u] + s, plan.first_joint[u + 1], states):
                    joint[e] += shift


@plain
def _sum_out(plan, u, joint, message):
    """Write the message of a unit, and divide its joint table by it.

    A split bucket takes power means, whose product is never below the exact message (Hölder's inequality).
    """
    states, share, begin = plan.states[u], plan.share[u], plan.first_joint[u]
    contexts = (plan.first_joint[u + 1] - begin) // states
    for c in range(contexts):
        at, top = begin + c * states, -np.inf
        for s in range(states):
            top = max(top, joint[at + s])
        value = -np.inf
        if top > -np.inf:
            total = 0.0
            for s in range(states):
                joint[at + s] = np.exp(joint[at + s] - top)
                total += joint[at + s] if share == 1.0 else joint[at + s] ** (1.0 / share)
            norm = total if share == 1.0 else total**share
            value = top + np.log(norm)
            for s in range(states):
                joint[at + s] /= norm
        else:
            for s in range(states):
                joint[at + s] = 0.0
        message[c] = value


@plain
def eliminate(plan, tables, joint, digits, margin):
    """Fill the messages in the pool of tables, which holds log-factors, and the joint tables divided by them."""
    unit = 0
    while unit < len(plan.states):
        parts = np.int64(np.rint(1.0 / plan.share[unit]))
        for u in range(unit, unit + parts):
            _join(plan, u, tables, joint, digits, True)
        if parts > 1:
            _match(plan, unit, unit + parts, joint, margin)
        for u in range(unit, unit + parts):
            table = plan.factors + u
            _sum_out(plan, u, joint, tables[plan.first_entry[table] : plan.first_entry[table + 1]])
        unit += parts


@plain
def supports(plan, tables, joint, digits):
    """As `eliminate` for zeros alone, with ones and zeros in the pool: the joint tables say what can be completed."""
    for u in range(len(plan.states)):
        out = _join(plan, u, tables, joint, digits, False)
        states, message = plan.states[u], plan.first_entry[plan.factors + u]
        for c in range(len(out) // states):
            some = 0.0
            for s in range(states):
                some = max(some, out[c * states + s])
            tables[message + c] = some


@plain
def count_up(plan, tables, joint, digits):
    """As `eliminate` in linear space, for tables of ones and zeros; return the logarithm of the number of solutions.

    Messages are divided by their largest entry, so that they stay in range. Minus infinity: there is no solution.
    """
    log_count = 0.0
    for u in range(len(plan.states)):
        out = _join(plan, u, tables, joint, digits, False)
        states, begin = plan.states[u], plan.first_entry[plan.factors + u]
        top, contexts = 0.0, len(out) // states
        for c in range(contexts):
            total = 0.0
            for s in range(states):
                total += out[c * states + s]
            tables[begin + c] = total
            top = max(top, total)
            if total > 0.0:
                for s in range(states):
                    out[c * states + s] /= total
        if top == 0.0:
            return -np.inf
        log_count += np.log(top)
        for c in range(contexts):
            tables[begin + c] /= top
    return log_count
