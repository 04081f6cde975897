"""Messages of a join tree over dense tables: the passes up and down, and the best assignment.

A plan is a list of operations. Each multiplies some tables over the axes of one joint table, which is never stored:
it is worked off in tiles of its last axes that fit the first level of the cache. An operation with several states sums
its variable, which is the last axis, out of the joint table: the result is the message of the variable's bucket. An
operation with one state stores the product of small tables, so that large ones meet fewer factors.

All tables have their axes in the same order, the variable that is eliminated last first. So the output of an operation
is written from the beginning to the end, and all tables of a bucket have its variable last.

Tables are in linear or in log space. In linear space tables are scaled by powers of two that are kept apart. The way
down multiplies the joint table by ``P(context) / message``, which gives the posterior of the clique, and sums that to
the separators of the buckets below (the targets). Nothing else is divided, and 0 / 0 is 0.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit, plain
from tinybayes._kernels.float_range import left_range, watch_range

SUM, LOG_SUM, LOG_MAX = range(3)
"""The arithmetic of a pass up: sums of products, the same in log space, and maxima of products in log space."""
_CONSTANT, _DENSE, _SCATTERED = range(3)  # where the entries of a table are, as a tile is worked off


class Plan(NamedTuple):
    """The operations, in the order of the way up, as flat arrays."""

    states: np.ndarray  # (operations,) of the variable that is summed out; 1: a product
    first_axis: np.ndarray  # (operations + 1,) into axis_card
    axis_card: np.ndarray
    inner: np.ndarray  # (operations,) how many of the last axes are a tile
    first_operand: np.ndarray  # (operations + 1,) into operand
    operand: np.ndarray  # the number of a table
    first_stride: np.ndarray  # (operands,) into stride: one for each axis of the operation
    stride: np.ndarray
    output: np.ndarray  # (operations,) the number of a table: the factors come first, then the outputs in their order
    first_entry: np.ndarray  # (tables + 1,) where a table is in the pool
    first_target: np.ndarray  # (operations + 1,) into the arrays of targets
    target_table: np.ndarray  # the message whose separator it is, or -1
    target_start: np.ndarray  # in the scratch space
    target_size: np.ndarray
    target_stride: np.ndarray  # (targets,) into stride


class Room(NamedTuple):
    """Space that a thread works in."""

    tile: np.ndarray  # (most entries of a tile,)
    offsets: np.ndarray  # (most operands and targets, most entries of a tile)
    kinds: np.ndarray
    bases: np.ndarray
    digits: np.ndarray


@plain
def _offsets(cards, strides, out):
    """Write where the entries of a tile are in a table, and return how they lie."""
    size, dense, constant = 1, True, True
    out[0] = 0
    for j in range(len(cards) - 1, -1, -1):
        dense &= strides[j] == size
        constant &= strides[j] == 0
        for state in range(1, cards[j]):
            for i in range(size):
                out[state * size + i] = out[i] + state * strides[j]
        size *= cards[j]
    return _CONSTANT if constant else _DENSE if dense else _SCATTERED


@plain
def _begin(plan, op, start, room, down):
    """Lay out the tile of an operation, and go to the tile with the number `start`; return the entries of a tile."""
    axes = plan.axis_card[plan.first_axis[op] : plan.first_axis[op + 1]]
    outer = len(axes) - plan.inner[op]
    size = 1
    for j in range(outer, len(axes)):
        size *= axes[j]
    rest = start
    for j in range(outer - 1, -1, -1):
        room.digits[j] = rest % axes[j]
        rest //= axes[j]
    operands = plan.first_operand[op + 1] - plan.first_operand[op]
    count = operands + (plan.first_target[op + 1] - plan.first_target[op] if down else 0)
    for m in range(count):
        if m < operands:
            at = plan.first_stride[plan.first_operand[op] + m]
        else:
            at = plan.target_stride[plan.first_target[op] + m - operands]
        strides = plan.stride[at : at + len(axes)]
        room.kinds[m] = _offsets(axes[outer:], strides[outer:], room.offsets[m])
        base = 0
        for j in range(outer):
            base += room.digits[j] * strides[j]
        room.bases[m] = base
    return size


@plain
def _advance(plan, op, room, count, operands):
    """Go on to the next tile."""
    first = plan.first_axis[op]
    j = plan.first_axis[op + 1] - first - plan.inner[op] - 1
    while j >= 0:
        room.digits[j] += 1
        wrapped = room.digits[j] == plan.axis_card[first + j]
        for m in range(count):
            if m < operands:
                at = plan.first_stride[plan.first_operand[op] + m]
            else:
                at = plan.target_stride[plan.first_target[op] + m - operands]
            step = plan.stride[at + j]
            room.bases[m] += step - (step * plan.axis_card[first + j] if wrapped else 0)
        if not wrapped:
            return
        room.digits[j] = 0
        j -= 1


@plain
def _multiply(plan, op, pool, room, size, logs):
    """Fill a tile with the product of the operands, in log space their sum."""
    tile, first = room.tile, plan.first_operand[op]
    for m in range(plan.first_operand[op + 1] - first):
        base, kind = plan.first_entry[plan.operand[first + m]] + room.bases[m], room.kinds[m]
        table, offsets = pool[base:], room.offsets[m]
        if m == 0:
            if kind == _CONSTANT:
                for t in range(size):
                    tile[t] = table[0]
            elif kind == _DENSE:
                for t in range(size):
                    tile[t] = table[t]
            else:
                for t in range(size):
                    tile[t] = table[offsets[t]]
        elif logs:
            for t in range(size):
                tile[t] += table[offsets[t]]
        elif kind == _CONSTANT:
            value = table[0]
            for t in range(size):
                tile[t] *= value
        elif kind == _DENSE:
            for t in range(size):
                tile[t] *= table[t]
        else:
            for t in range(size):
                tile[t] *= table[offsets[t]]


@plain
def _largest(values, size):
    """Return the largest of some numbers; four maxima at a time, which do not wait for each other."""
    a = b = c = d = values[0]
    for k in range(0, size - 3, 4):
        a, b = max(a, values[k]), max(b, values[k + 1])
        c, d = max(c, values[k + 2]), max(d, values[k + 3])
    for k in range(size - size % 4, size):
        a = max(a, values[k])
    return max(max(a, b), max(c, d))


@plain
def _reduce(tile, size, states, out, arithmetic):
    """Sum the last axis of a tile out, or take its maximum; return the largest result."""
    if states == 1:
        for k in range(size):
            out[k] = tile[k]
    elif arithmetic == SUM and states == 2:
        for k in range(size // 2):
            out[k] = tile[2 * k] + tile[2 * k + 1]
    elif arithmetic == SUM:
        for k in range(size // states):
            total = 0.0
            for s in range(states):
                total += tile[k * states + s]
            out[k] = total
    else:
        for k in range(size // states):
            most = -np.inf
            for s in range(states):
                most = max(most, tile[k * states + s])
            if arithmetic == LOG_SUM and most > -np.inf:
                total = 0.0
                for s in range(states):
                    total += np.exp(tile[k * states + s] - most)
                most += np.log(total)
            out[k] = most
    return _largest(out, size // states)


@plain
def up_part(plan, op, start, stop, pool, room, arithmetic):
    """Do the tiles from `start` to `stop` of an operation; return its largest result so far."""
    size, states = _begin(plan, op, start, room, False), plan.states[op]
    count = plan.first_operand[op + 1] - plan.first_operand[op]
    first, top = plan.first_entry[plan.output[op]], -np.inf
    for k in range(start, stop):
        _multiply(plan, op, pool, room, size, arithmetic != SUM)
        out = first + k * (size // states)
        top = max(top, _reduce(room.tile, size, states, pool[out : out + size // states], arithmetic))
        _advance(plan, op, room, count, count)
    return top


@plain
def rescale(plan, op, top, pool, scale, arithmetic):
    """Bring a table back to where numbers are far from the ends of their range; note the logarithm of the scale.

    In linear space scales are powers of two, so that nothing is rounded.
    """
    table = pool[plan.first_entry[plan.output[op]] : plan.first_entry[plan.output[op] + 1]]
    scale[op] = 0.0
    if arithmetic != SUM:
        if top > -np.inf and abs(top) > 1.0:
            scale[op] = np.rint(top)
            for i in range(len(table)):
                table[i] -= scale[op]
    elif top > 0.0 and not 1e-8 < top < 1e8:
        exponent = np.floor(np.log2(top))
        factor = 2.0 ** (-exponent / 2 if exponent % 2 == 0 else -(exponent - 1) / 2)
        exponent = -2.0 * np.log2(factor)
        for i in range(len(table)):
            table[i] = table[i] * factor * factor  # twice, since one power of two may be out of range
        scale[op] = exponent * np.log(2.0)


@plain
def up(plan, begin, end, pool, scale, room, arithmetic):
    """Do operations on the way up; return False when a table is zero everywhere."""
    for op in range(begin, end):
        tiles = _tiles(plan, op)
        top = up_part(plan, op, 0, tiles, pool, room, arithmetic)
        if top == (0.0 if arithmetic == SUM else -np.inf):
            return False
        rescale(plan, op, top, pool, scale, arithmetic)
    return True


@plain
def _tiles(plan, op):
    tiles = 1
    for j in range(plan.first_axis[op], plan.first_axis[op + 1] - plan.inner[op]):
        tiles *= plan.axis_card[j]
    return tiles


@jit
def up_watched(plan, begin, end, pool, scale, room, arithmetic):
    """Do operations on the way up; return whether something is possible, and whether a result left the range."""
    watch_range()
    possible = up(plan, begin, end, pool, scale, room, arithmetic)
    return possible, left_range()


@jit
def up_part_watched(plan, op, start, stop, pool, room, arithmetic):
    """Do tiles of an operation; return the largest result, and whether one left the range of doubles."""
    watch_range()
    top = up_part(plan, op, start, stop, pool, room, arithmetic)
    return top, left_range()


@plain
def down_part(plan, op, start, stop, pool, margin, scratch, shift, room, logs):
    """Add the posterior of tiles of a clique to the margin of its variable, and to its targets.

    The table of the operation's output holds ``P(context) / message``. Each target begins `shift` entries after its
    place in the scratch space, since threads may have targets of their own.
    """
    size, states = _begin(plan, op, start, room, True), plan.states[op]
    operands = plan.first_operand[op + 1] - plan.first_operand[op]
    first = plan.first_target[op]
    count = operands + plan.first_target[op + 1] - first
    tile, out = room.tile, plan.first_entry[plan.output[op]]
    for k in range(start, stop):
        _multiply(plan, op, pool, room, size, logs)
        at = out + k * (size // states)
        for c in range(size // states):
            ratio = pool[at + c]
            if logs:
                for s in range(states):
                    tile[c * states + s] = np.exp(tile[c * states + s] + ratio)
            else:
                for s in range(states):
                    tile[c * states + s] *= ratio
        for c in range(size // states):
            for s in range(states):
                margin[s] += tile[c * states + s]
        for m in range(operands, count):
            begin = plan.target_start[first + m - operands] + shift[m - operands] + room.bases[m]
            target, offsets = scratch[begin:], room.offsets[m]
            if room.kinds[m] == _DENSE:
                for t in range(size):
                    target[t] += tile[t]
            else:
                for t in range(size):
                    target[offsets[t]] += tile[t]
        _advance(plan, op, room, count, operands)


@plain
def divide(plan, op, pool, scale, scratch, logs):
    """Replace the messages into a bucket by the posteriors of their separators, divided by them."""
    for target in range(plan.first_target[op], plan.first_target[op + 1]):
        table = plan.target_table[target]
        if table < 0:
            continue
        first, start = plan.first_entry[table], plan.target_start[target]
        below = scale[table - plan.output[0]]
        unit = 1.0 if logs else np.exp(-below)
        for i in range(plan.target_size[target]):
            p, message = scratch[start + i], pool[first + i]
            if logs:
                pool[first + i] = np.log(p) - message - below if p > 0.0 else -np.inf
            else:
                pool[first + i] = p / message * unit if p > 0.0 else 0.0


@plain
def down(plan, begin, end, pool, scale, margins, first_margin, scratch, shift, room, logs):
    """Do the operations from `end` - 1 back to `begin` on the way down."""
    for op in range(end - 1, begin - 1, -1):
        if plan.states[op] == 1:
            continue
        for target in range(plan.first_target[op], plan.first_target[op + 1]):
            start = plan.target_start[target]
            scratch[start : start + plan.target_size[target]] = 0.0
        margin = margins[first_margin[op] : first_margin[op] + plan.states[op]]
        down_part(plan, op, 0, _tiles(plan, op), pool, margin, scratch, shift, room, logs)
        divide(plan, op, pool, scale, scratch, logs)


@plain
def best(plan, variable, first_axis_variable, pool, states):
    """Choose the best state of each variable on the way down, given those before; tables are in log space."""
    for op in range(len(plan.states) - 1, -1, -1):
        if plan.states[op] == 1:
            continue
        begin, end = plan.first_axis[op], plan.first_axis[op + 1]
        most, chosen = -np.inf, 0
        for s in range(plan.states[op]):
            total = 0.0
            for m in range(plan.first_operand[op], plan.first_operand[op + 1]):
                at, k = plan.first_stride[m], plan.first_entry[plan.operand[m]]
                for j in range(end - begin - 1):
                    k += plan.stride[at + j] * states[first_axis_variable[begin + j]]
                total += pool[k + s * plan.stride[at + end - begin - 1]]
            if total > most:
                most, chosen = total, s
        states[variable[op]] = chosen
