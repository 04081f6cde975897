"""Posteriors of rows of evidence by join trees: all work of a row in one kernel, for tables that are not large.

A row goes through four steps: the states that its evidence and the zeros of the model leave, the parts of the factors
that agree with them, the layout of the tree, and both passes. Rows that leave the same states share the layout.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit, plain
from tinybayes._kernels.float_range import left_range, watch_range
from tinybayes._kernels.join_layout import lay_out
from tinybayes._kernels.join_tree import SUM, Room, down, up

DONE, IMPOSSIBLE, LARGE, OUT_OF_RANGE = range(4)
"""What became of a row: answered; without any assignment; beyond the limit; with products that no double holds."""


class Model(NamedTuple):
    """A model as flat arrays, without evidence."""

    cards: np.ndarray  # (variables,)
    first_state: np.ndarray  # (variables + 1,)
    domain: np.ndarray  # (states,) which ones the zeros of the model leave
    first_scope: np.ndarray  # (factors + 1,) into scope
    scope: np.ndarray
    stride: np.ndarray  # beside scope: the stride of its table along each variable
    first_entry: np.ndarray  # (factors + 1,) into value
    value: np.ndarray  # entries of the factors, divided by the largest of each
    first_hard: np.ndarray  # (variables + 1,) into hard
    hard: np.ndarray  # the factors with zeros that a variable is in
    shift: float  # the sum of the logarithms that factors were divided by


class _Left(NamedTuple):
    """The states that are left."""

    domain: np.ndarray  # (states,) flags
    number: np.ndarray  # (variables,) how many
    state: np.ndarray  # (states,) from the first state of each variable, those that are left


class _Factors(NamedTuple):
    """The parts of the factors that are left, over the places of open variables."""

    first_scope: np.ndarray
    scope: np.ndarray
    value: np.ndarray  # of all tables, one after the other
    log: float  # of those that are constant


@plain
def _list(model, v, left):
    """List the states that are left of a variable; return how many."""
    first, count = model.first_state[v], 0
    for s in range(model.cards[v]):
        if left.domain[first + s]:
            left.state[first + count] = s
            count += 1
    left.number[v] = count
    return count


@plain
def _support(model, f, left, digits, seen, shrunk):
    """Take away states that a factor supports no more; return how many variables lost some, -1 when one has none."""
    begin, end = model.first_scope[f], model.first_scope[f + 1]
    missing, at = 0, model.first_entry[f]
    for j in range(begin, end):
        v = model.scope[j]
        first = model.first_state[v]
        digits[j - begin] = 0
        at += left.state[first] * model.stride[j]
        missing += left.number[v]
        for i in range(left.number[v]):
            seen[first + left.state[first + i]] = False
    while missing > 0:
        if model.value[at] > 0.0:
            for j in range(begin, end):
                first = model.first_state[model.scope[j]]
                s = first + left.state[first + digits[j - begin]]
                if not seen[s]:
                    seen[s] = True
                    missing -= 1
        j = end - 1
        while j >= begin:
            v = model.scope[j]
            own, d = left.state[model.first_state[v] :], digits[j - begin]
            if d + 1 < left.number[v]:
                digits[j - begin] = d + 1
                at += (own[d + 1] - own[d]) * model.stride[j]
                break
            digits[j - begin] = 0
            at += (own[0] - own[d]) * model.stride[j]
            j -= 1
        if j < begin:
            break
    count = 0
    if missing > 0:
        for j in range(begin, end):
            v, before = model.scope[j], left.number[model.scope[j]]
            first = model.first_state[v]
            for i in range(before):
                s = first + left.state[first + i]
                left.domain[s] &= seen[s]
            after = _list(model, v, left)
            if after == 0:
                return -1
            if after < before:
                shrunk[count] = v
                count += 1
    return count


@jit
def _close(model, row, left):
    """Note what a row observes, and take away states that zeros rule out; return False when nothing is left."""
    n, factors = len(model.cards), len(model.first_scope) - 1
    waiting, queued = np.empty(factors + 1, np.int64), np.zeros(factors, np.bool_)
    begin = end = 0  # of a ring of factors to look at
    left.domain[:] = model.domain
    for v in range(n):
        if row[v] >= 0:
            first = model.first_state[v]
            possible = left.domain[first + row[v]]
            left.domain[first : first + model.cards[v]] = False
            left.domain[first + row[v]] = possible
        before = model.cards[v]
        if _list(model, v, left) == 0:
            return False
        if row[v] >= 0 and before > 1:
            for i in range(model.first_hard[v], model.first_hard[v + 1]):
                f = model.hard[i]
                if not queued[f]:
                    queued[f], waiting[end] = True, f
                    end = (end + 1) % len(waiting)
    widest = 1
    for f in range(factors):
        widest = max(widest, model.first_scope[f + 1] - model.first_scope[f])
    digits, shrunk = np.empty(widest, np.int64), np.empty(widest, np.int64)
    seen = np.empty(len(left.domain), np.bool_)
    while begin != end:
        f = waiting[begin]
        begin, queued[f] = (begin + 1) % len(waiting), False
        count = _support(model, f, left, digits, seen, shrunk)
        if count < 0:
            return False
        for k in range(count):
            for i in range(model.first_hard[shrunk[k]], model.first_hard[shrunk[k] + 1]):
                g = model.hard[i]
                if g != f and not queued[g]:
                    queued[g], waiting[end] = True, g
                    end = (end + 1) % len(waiting)
    return True


@plain
def _copy(model, f, left, scope, width, at_open, column, steps, digits, out):
    """Write the part of a factor that is left, the axes of its open variables by their places; return if it varies."""
    base, size = model.first_entry[f], 1
    for j in range(model.first_scope[f], model.first_scope[f + 1]):
        v = model.scope[j]
        base += left.state[model.first_state[v]] * model.stride[j]
        if at_open[v] >= 0:
            i = 0
            while scope[i] != at_open[v]:
                i += 1
            column[i], steps[i] = v, model.stride[j]
            digits[i] = 0
            size *= left.number[v]
    least = most = model.value[base]
    last = width - 1
    inner, step = left.number[column[last]], steps[last]
    own = left.state[model.first_state[column[last]] :]
    k = 0
    while True:
        for s in range(inner):
            value = model.value[base + (own[s] - own[0]) * step]
            out[k + s] = value
            least, most = min(least, value), max(most, value)
        k += inner
        if k == size:
            return least != most
        i = last - 1
        while True:
            states, d = left.state[model.first_state[column[i]] :], digits[i]
            if d + 1 < left.number[column[i]]:
                digits[i] = d + 1
                base += (states[d + 1] - states[d]) * steps[i]
                break
            digits[i] = 0
            base += (states[0] - states[d]) * steps[i]
            i -= 1


@jit
def _absorb(model, left, at_open, n_open):
    """Return what is left of the factors; those that evidence makes constant are only a number."""
    factors = len(model.first_scope) - 1
    entries = widest = 0
    for f in range(factors):
        size = 1
        for j in range(model.first_scope[f], model.first_scope[f + 1]):
            size *= left.number[model.scope[j]]
        entries += size
        widest = max(widest, model.first_scope[f + 1] - model.first_scope[f])
    for v in range(len(model.cards)):
        entries += left.number[v]
    value, scope = np.empty(entries), np.empty(len(model.scope) + n_open, np.int64)
    first_scope = np.zeros(factors + n_open + 1, np.int64)
    column, steps, digits = np.empty(widest, np.int64), np.empty(widest, np.int64), np.empty(widest, np.int64)
    covered = np.zeros(n_open, np.bool_)
    log, at, number = model.shift, 0, 0
    for f in range(factors):
        own, width, size = scope[first_scope[number] :], 0, 1
        for j in range(model.first_scope[f], model.first_scope[f + 1]):
            place = at_open[model.scope[j]]
            if place >= 0:
                size *= left.number[model.scope[j]]
                i = width
                while i > 0 and own[i - 1] > place:
                    own[i] = own[i - 1]
                    i -= 1
                own[i] = place
                width += 1
        if width > 0 and _copy(model, f, left, own, width, at_open, column, steps, digits, value[at : at + size]):
            for i in range(width):
                covered[own[i]] = True
            at += size
            number += 1
            first_scope[number] = first_scope[number - 1] + width
        else:
            base = model.first_entry[f]
            for j in range(model.first_scope[f], model.first_scope[f + 1]):
                base += left.state[model.first_state[model.scope[j]]] * model.stride[j]
            log += np.log(model.value[base]) if model.value[base] > 0.0 else -np.inf
    for v in range(len(model.cards)):
        place = at_open[v]
        if place >= 0 and not covered[place]:
            value[at : at + left.number[v]] = 1.0
            at += left.number[v]
            scope[first_scope[number]] = place
            number += 1
            first_scope[number] = first_scope[number - 1] + 1
    return _Factors(first_scope[: number + 1], scope[: first_scope[number]], value[:at], log)


@plain
def _same(a, b):
    """Tell whether two arrays hold the same numbers."""
    same, i = len(a) == len(b), 0
    while same and i < len(a):
        same = a[i] == b[i]
        i += 1
    return same


@jit
def _calibrate(layout, factors, cards, margins):
    """Do both passes; write the margins of all places, one after the other, and return what became of it and log Z."""
    plan = layout.plan
    operations = len(plan.states)
    pool = np.empty(plan.first_entry[-1])
    pool[: len(factors.value)] = factors.value
    room = Room(
        np.empty(layout.tile),
        np.empty((layout.tables, layout.tile), np.int64),
        np.empty(layout.tables, np.int64),
        np.empty(layout.tables, np.int64),
        np.empty(layout.axes, np.int64),
    )
    scale = np.zeros(operations)
    watch_range()
    possible = up(plan, 0, operations, pool, scale, room, SUM)
    if left_range():
        return OUT_OF_RANGE, 0.0
    if not possible:
        return IMPOSSIBLE, 0.0
    log_z, most = factors.log, 1
    first_place, first_margin = np.zeros(len(cards) + 1, np.int64), np.zeros(operations, np.int64)
    for p in range(len(cards)):
        first_place[p + 1] = first_place[p] + cards[p]
    for op in range(operations):
        log_z += scale[op]
        most = max(most, plan.first_target[op + 1] - plan.first_target[op])
        if layout.variable[op] >= 0:
            first_margin[op] = first_place[layout.variable[op]]
            if plan.first_axis[op + 1] - plan.first_axis[op] == 1:
                at = plan.first_entry[plan.output[op]]
                log_z += np.log(pool[at])
                pool[at] = np.exp(-scale[op]) / pool[at]
    margins[:] = 0.0
    scratch, shift = np.empty(layout.scratch), np.zeros(most, np.int64)
    down(plan, 0, operations, pool, scale, margins, first_margin, scratch, shift, room, False)
    return DONE, log_z


@jit
def answer_rows(model, last_first, rows, limit, posterior, logs, status):
    """Write the posteriors of all variables given each row, log Z, and what became of it.

    Parameters
    ----------
    model
        The model.
    last_first
        All variables, the one that is eliminated last first.
    rows
        Codes; a negative one was not observed.
    limit
        Entries of the joint tables of a row together; a row with more is not answered.
    posterior
        (rows, states of all variables) the posteriors.
    logs, status
        (rows,) the logarithms of the sums over assignments, and `DONE` or why not.
    """
    n = len(model.cards)
    left = _Left(np.empty(len(model.domain), np.bool_), np.empty(n, np.int64), np.empty(len(model.domain), np.int64))
    at_open, none = np.empty(n, np.int64), np.empty(0, np.int64)
    kept_cards, kept_first, kept_scope = none, none, none
    layout = lay_out(np.zeros(1, np.int64), none, none, np.zeros(1, np.int64), none, np.inf)
    for r in range(len(rows)):
        posterior[r] = 0.0
        if not _close(model, rows[r], left):
            status[r] = IMPOSSIBLE
            continue
        n_open = 0
        for v in last_first:
            at_open[v] = -1
            if left.number[v] > 1:
                at_open[v] = n_open
                n_open += 1
        cards = np.empty(n_open, np.int64)
        for v in range(n):
            if at_open[v] >= 0:
                cards[at_open[v]] = left.number[v]
        factors = _absorb(model, left, at_open, n_open)
        if factors.log == -np.inf:
            status[r] = IMPOSSIBLE
            continue
        same = _same(cards, kept_cards) and _same(factors.first_scope, kept_first)
        if r == 0 or not (same and _same(factors.scope, kept_scope)):
            kept_cards, kept_first, kept_scope = cards, factors.first_scope, factors.scope
            layout = lay_out(factors.first_scope, factors.scope, cards, np.zeros(1, np.int64), none, limit)
        if layout.entries == np.inf:
            status[r] = LARGE
            continue
        margins = np.empty(cards.sum())
        status[r], logs[r] = _calibrate(layout, factors, cards, margins)
        if status[r] != DONE:
            continue
        first_place = np.zeros(n_open + 1, np.int64)
        for p in range(n_open):
            first_place[p + 1] = first_place[p] + cards[p]
        for v in range(n):
            first = model.first_state[v]
            if at_open[v] < 0:
                posterior[r, first + left.state[first]] = 1.0
                continue
            margin = margins[first_place[at_open[v]] : first_place[at_open[v] + 1]]
            total = margin.sum()
            for s in range(len(margin)):
                posterior[r, first + left.state[first + s]] = margin[s] / total
