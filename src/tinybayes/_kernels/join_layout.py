"""The operations of a join tree: which tables are multiplied, in what order, and where they lie in memory.

Every variable has a bucket, which multiplies the tables that contain it and no variable eliminated before, and sums it
out. Its result, the message, goes to the bucket of the next variable that it contains. Variables go by their places:
the variable that is eliminated last has the place 0. So the axes of every table are ascending numbers, and the last one
is the variable of the bucket.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit, plain
from tinybayes._kernels.join_tree import Plan

TILE = 256  # entries of a tile at least, where a joint table has as many
WORTH = 1024  # entries of a joint table before small tables are multiplied first
SMALL = 8  # a product of small tables has at most this part of the joint table


class Layout(NamedTuple):
    """A plan, and the facts about it that its callers need."""

    plan: Plan
    variable: np.ndarray  # (operations,) the place of the variable that is summed out, -1 for a product
    axis: np.ndarray  # the place of each axis
    size: np.ndarray  # (operations,) the entries of the joint table
    joint: np.ndarray  # (wanted scopes,) where their joint marginals begin in the scratch space
    scratch: int  # entries of the scratch space
    tables: int  # most operands and targets of an operation
    tile: int  # most entries of a tile
    axes: int  # most axes of an operation
    entries: float  # of all joint tables of buckets; infinite when they exceeded the limit, and nothing was laid out


@jit
def _grown(array, used, more):
    """Return an array that has room for more numbers after those in use."""
    if used + more <= len(array):
        return array
    out = np.empty(2 * (used + more), np.int64)
    out[:used] = array[:used]
    return out


@plain
def _sort(numbers, count):
    """Sort the first of some numbers; they are few."""
    for i in range(1, count):
        number, j = numbers[i], i
        while j > 0 and numbers[j - 1] > number:
            numbers[j] = numbers[j - 1]
            j -= 1
        numbers[j] = number


@plain
def _sort_by(keys, numbers, count):
    """Sort the first of some numbers by their keys, equal keys by the numbers."""
    for i in range(1, count):
        number, j = numbers[i], i
        key = keys[number]
        while j > 0 and (keys[numbers[j - 1]] > key or (keys[numbers[j - 1]] == key and numbers[j - 1] > number)):
            numbers[j] = numbers[j - 1]
            j -= 1
        numbers[j] = number


@plain
def _union(members, count, first, scope, marked, out):
    """Write the places that some tables have together, ascending; return how many."""
    size = 0
    for m in range(count):
        for i in range(first[members[m]], first[members[m] + 1]):
            if not marked[scope[i]]:
                marked[scope[i]] = True
                out[size] = scope[i]
                size += 1
    for i in range(size):
        marked[out[i]] = False
    _sort(out, size)
    return size


@plain
def _volume(axes, count, cards):
    volume = 1.0
    for i in range(count):
        volume *= cards[axes[i]]
    return volume


@plain
def _strides(scope, begin, end, axes, count, cards, out, at):
    """Write the stride of a table along each axis of an operation."""
    step, i = 1, end - 1
    for j in range(count - 1, -1, -1):
        if i >= begin and scope[i] == axes[j]:
            out[at + j] = step
            step *= cards[axes[j]]
            i -= 1
        else:
            out[at + j] = 0


@plain
def _few(members, count, first, scope, cards, volumes, marked, small, largest):
    """Order the tables of a bucket by size; return how many of the smallest are worth multiplying first."""
    _sort_by(volumes, members, count)
    if largest < WORTH or count < 3:
        return 0
    few = 0
    while few < count:
        width = _union(members, few + 1, first, scope, marked, small)
        if _volume(small, width, cards) * SMALL > largest:
            break
        few += 1
    return few if few > 1 else 0


class _Buckets(NamedTuple):
    """Which tables each operation multiplies."""

    first: np.ndarray  # (tables + 1,) into held
    held: np.ndarray  # the places of all tables: factors, then the output of each operation
    variable: np.ndarray  # (operations,)
    first_operand: np.ndarray
    operand: np.ndarray
    first_target: np.ndarray
    target: np.ndarray  # a message, or -1 less the number of a wanted scope
    entries: float


@jit
def _fill_buckets(first_scope, scope, cards, first_wanted, wanted, limit):
    n, factors, asked = len(cards), len(first_scope) - 1, len(first_wanted) - 1
    most = 2 * n  # operations: a product and a bucket for each variable
    first, held = np.zeros(factors + most + 1, np.int64), np.empty(2 * len(scope) + 8 * n, np.int64)
    first[: factors + 1], held[: len(scope)] = first_scope, scope
    volumes, head, follow = np.ones(factors + most), np.full(n, -1, np.int64), np.empty(factors + most, np.int64)
    for t in range(factors):
        volumes[t] = _volume(scope[first[t] :], first[t + 1] - first[t], cards)
        if first[t + 1] > first[t]:
            last = scope[first[t + 1] - 1]
            follow[t], head[last] = head[last], t
    asked_head, asked_follow = np.full(n, -1, np.int64), np.empty(asked, np.int64)
    for w in range(asked):
        last = wanted[first_wanted[w + 1] - 1]
        asked_follow[w], asked_head[last] = asked_head[last], w
    variable, first_operand, first_target = (
        np.empty(most, np.int64),
        np.zeros(most + 1, np.int64),
        np.zeros(most + 1, np.int64),
    )
    operand, target = np.empty(factors + most, np.int64), np.empty(n + asked, np.int64)
    members, axes, few_axes = np.empty(factors + most, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    marked, tables, op, entries = np.zeros(n, np.bool_), factors, 0, 0.0
    for p in range(n - 1, -1, -1):
        count, t = 0, head[p]
        targets = first_target[op]
        while t >= 0:
            members[count] = t
            count += 1
            if t >= factors:
                target[targets] = t
                targets += 1
            t = follow[t]
        w = asked_head[p]
        while w >= 0:
            target[targets] = -1 - w
            targets += 1
            w = asked_follow[w]
        width = _union(members, count, first, held, marked, axes)
        largest = _volume(axes, width, cards)
        entries += largest
        if entries > limit:
            return _Buckets(first, held, variable[:0], first_operand[:1], operand, first_target[:1], target, np.inf)
        few = _few(members, count, first, held, cards, volumes, marked, few_axes, largest)
        operands = first_operand[op]
        if few > 0:
            size = _union(members, few, first, held, marked, few_axes)
            held = _grown(held, first[tables], size)
            held[first[tables] : first[tables] + size] = few_axes[:size]
            first[tables + 1] = first[tables] + size
            volumes[tables] = _volume(few_axes, size, cards)
            operand[operands : operands + few] = members[:few]
            operands += few
            variable[op], first_operand[op + 1], first_target[op + 1] = -1, operands, first_target[op]
            members[few - 1] = tables
            members[: count - few + 1] = members[few - 1 : count].copy()
            count -= few - 1
            _sort_by(volumes, members, count)
            op += 1
            tables += 1
        for m in range(count):  # the largest is read first, into the empty tile
            operand[operands + m] = members[count - 1 - m]
        variable[op], first_operand[op + 1], first_target[op + 1] = p, operands + count, targets
        held = _grown(held, first[tables], width)
        held[first[tables] : first[tables] + width - 1] = axes[: width - 1]
        first[tables + 1] = first[tables] + width - 1
        volumes[tables] = largest / cards[p]
        if width > 1:
            follow[tables], head[axes[width - 2]] = head[axes[width - 2]], tables
        op += 1
        tables += 1
    return _Buckets(
        first[: tables + 1],
        held,
        variable[:op],
        first_operand[: op + 1],
        operand,
        first_target[: op + 1],
        target,
        entries,
    )


@jit
def lay_out(first_scope, scope, cards, first_wanted, wanted, limit):
    """Lay out the elimination of all variables, the one with the highest place first.

    Parameters
    ----------
    first_scope, scope
        The places that each factor has, ascending. Every place must be in a factor.
    cards
        The number of states at each place.
    first_wanted, wanted
        Scopes of factors whose joint marginals the way down leaves in the scratch space.
    limit
        Joint tables with more entries together are not laid out.
    """
    buckets = _fill_buckets(first_scope, scope, cards, first_wanted, wanted, limit)
    first, held, variable, first_operand, operand, first_target, target, entries = buckets
    factors, operations = len(first_scope) - 1, len(variable)
    states, inner, sizes = np.ones(operations, np.int64), np.zeros(operations, np.int64), np.empty(operations, np.int64)
    first_axis = np.zeros(operations + 1, np.int64)
    steps = 0
    for op in range(operations):
        width = first[factors + op + 1] - first[factors + op] + (1 if variable[op] >= 0 else 0)
        first_axis[op + 1] = first_axis[op] + width
        steps += width * (first_operand[op + 1] - first_operand[op] + first_target[op + 1] - first_target[op])
    axis, axis_card = np.empty(first_axis[operations], np.int64), np.empty(first_axis[operations], np.int64)
    stride = np.empty(steps, np.int64)
    first_stride = np.empty(first_operand[operations], np.int64)
    targets = first_target[operations]
    target_table, target_start = np.full(targets, -1, np.int64), np.empty(targets, np.int64)
    target_size, target_stride = np.empty(targets, np.int64), np.empty(targets, np.int64)
    first_entry = np.zeros(len(first), np.int64)
    for t in range(len(first) - 1 if operations else 0):
        size = 1
        for i in range(first[t], first[t + 1]):
            size *= cards[held[i]]
        first_entry[t + 1] = first_entry[t] + size
    at, scratch, most_tables, most_tile, most_axes = 0, 0, 1, 1, 1
    for op in range(operations):
        begin, width = first_axis[op], first_axis[op + 1] - first_axis[op]
        own = axis[begin : begin + width]
        table = factors + op
        for i in range(first[table + 1] - first[table]):
            own[i] = held[first[table] + i]
        sizes[op] = first_entry[table + 1] - first_entry[table]
        if variable[op] >= 0:
            own[width - 1] = variable[op]
            states[op] = cards[variable[op]]
            sizes[op] *= states[op]
        tile = 1
        for j in range(width):
            axis_card[begin + j] = cards[own[j]]
        for j in range(width - 1, -1, -1):
            if tile >= TILE:
                break
            tile *= cards[own[j]]
            inner[op] += 1
        for m in range(first_operand[op], first_operand[op + 1]):
            t, first_stride[m] = operand[m], at
            _strides(held, first[t], first[t + 1], own, width, cards, stride, at)
            at += width
        place = 0
        for k in range(first_target[op], first_target[op + 1]):
            t, target_stride[k] = target[k], at
            if t >= 0:
                _strides(held, first[t], first[t + 1], own, width, cards, stride, at)
                target_table[k], target_start[k] = t, place
                target_size[k] = first_entry[t + 1] - first_entry[t]
                place += target_size[k]
            else:
                w = -1 - t
                _strides(wanted, first_wanted[w], first_wanted[w + 1], own, width, cards, stride, at)
                target_size[k] = np.int64(
                    _volume(wanted[first_wanted[w] :], first_wanted[w + 1] - first_wanted[w], cards)
                )
            at += width
        scratch = max(scratch, place)
        count = first_operand[op + 1] - first_operand[op] + first_target[op + 1] - first_target[op]
        most_tables, most_tile, most_axes = max(most_tables, count), max(most_tile, tile), max(most_axes, width)
    # Joint marginals stay in the scratch space, at its end; what else is there belongs to one operation at a time.
    joint = np.zeros(len(first_wanted) - 1, np.int64)
    for k in range(targets):
        if target_table[k] < 0:
            target_start[k] = joint[-1 - target[k]] = scratch
            scratch += target_size[k]
    plan = Plan(
        states,
        first_axis,
        axis_card,
        inner,
        first_operand,
        operand[: first_operand[operations]],
        first_stride,
        stride,
        np.arange(factors, factors + operations),
        first_entry,
        first_target,
        target_table,
        target_start,
        target_size,
        target_stride,
    )
    return Layout(plan, variable, axis, sizes, joint, scratch, most_tables, most_tile, most_axes, entries)
