"""Decision diagrams over circuit nodes, and the elimination of a variable from a product of them.

A diagram is a table of circuit nodes in which equal parts are stored once. It is held in three arrays: node ``d``
tests the variable at ``level[d]`` and goes on, for state ``s``, at ``child[first[d] + s]``. A reference that is not
negative is a circuit node, a negative one ``-1 - d`` the diagram node ``d``. Levels grow from the root down, and
the variable that is eliminated next has the largest of those that are left, so that it is always at the bottom.
"""

import numpy as np

from tinybayes._kernels import jit
from tinybayes._kernels.circuit_graph import SUM
from tinybayes._kernels.circuit_nodes import MIX, SHIFT, ZERO, add_node, append, grow, grown_nodes, multiply

LEAF = 2**30  # the level of a circuit node: below all variables
DONE, TOO_LARGE = 0, 1


@jit
def _level(ref, level):
    return LEAF if ref >= 0 else level[-1 - ref]


@jit
def _add_test(z, refs, count, level, first, child, size, table):
    """Return the diagram node with these children, which is made when it is new; equal children need none."""
    same = True
    code = np.uint64(z + 1)
    for s in range(count):
        same &= refs[s] == refs[0]
        code = (code ^ np.uint64(np.uint32(refs[s]))) * MIX
        code ^= code >> SHIFT
    if same:
        return refs[0]
    mask = np.uint64(len(table) - 1)
    slot = code & mask
    while table[slot] >= 0:
        d = table[slot]
        if level[d] == z:
            start, s = first[d], 0
            while s < count and child[start + s] == refs[s]:
                s += 1
            if s == count:
                return np.int32(-1 - d)
        slot = (slot + np.uint64(1)) & mask
    d = size[0]
    table[slot] = d
    level[d] = z
    first[d] = size[1]
    for s in range(count):
        child[size[1] + s] = refs[s]
    size[0] += 1
    size[1] += count
    return np.int32(-1 - d)


@jit
def _rehash_tests(level, first, child, count, cards, slots):
    table = np.full(slots, -1, np.int32)
    mask = np.uint64(slots - 1)
    for d in range(count):
        code = np.uint64(level[d] + 1)
        for s in range(cards[level[d]]):
            code = (code ^ np.uint64(np.uint32(child[first[d] + s]))) * MIX
            code ^= code >> SHIFT
        slot = code & mask
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = d
    return table


@jit
def _slots(least):
    """Return a power of two that is not smaller."""
    slots = 16
    while slots < least:
        slots *= 2
    return slots


@jit
def table_diagram(refs, levels, cards):
    """Turn a full table, the deepest level running fastest, into a diagram: its root and three arrays."""
    size = np.zeros(2, np.int64)
    room = spread = 16 + len(levels) * len(refs)
    level, first = np.empty(room, np.int32), np.empty(room, np.int64)
    child, table = np.empty(spread, np.int32), np.full(_slots(2 * room), -1, np.int32)
    now = refs.copy()
    for axis in range(len(levels) - 1, -1, -1):
        z = levels[axis]
        count = cards[z]
        rows = len(now) // count
        for row in range(rows):
            now[row] = _add_test(z, now[row * count : (row + 1) * count], count, level, first, child, size, table)
        now = now[:rows]
    return now[0], level[: size[0]].copy(), first[: size[0]].copy(), child[: size[1]].copy()


@jit
def _find(key, width, keys, table):
    """Return the slot of a tuple in an open-addressing table: its place, or the empty one where it belongs."""
    code = np.uint64(0x2545F4914F6CDD1D)
    for j in range(width):
        code = (code ^ np.uint64(np.uint32(key[j]))) * MIX
        code ^= code >> SHIFT
    mask = np.uint64(len(table) - 1)
    slot = code & mask
    while table[slot] >= 0:
        start, j = table[slot] * np.int64(width), 0
        while j < width and keys[start + j] == key[j]:
            j += 1
        if j == width:
            break
        slot = (slot + np.uint64(1)) & mask
    return slot


@jit
def _sum_out(refs, width, count, merges, first, child, work, outside, varies, kind, start, children, counts, table):
    """Return the circuit node of ``sum_s prod_j refs_j(s)`` where nothing is above the variable of the states `s`.

    What does not depend on the state, among the states that are possible at all, goes before the sum. The factors are
    multiplied in the pairs of `merges`.
    """
    terms = work[width]
    for s in range(count):
        terms[s] = 1
        for j in range(width):
            if refs[j] < 0 and child[first[-1 - refs[j]] + s] == ZERO:
                terms[s] = ZERO
    for j in range(width):
        outside[j], varies[j] = refs[j], False
        if refs[j] < 0:
            base, shared = first[-1 - refs[j]], np.int32(-1)
            for s in range(count):
                if terms[s] != ZERO:
                    work[j, s] = child[base + s]
                    varies[j] |= shared >= 0 and shared != work[j, s]
                    shared = work[j, s]
            if shared < 0:
                return np.int32(ZERO)
            outside[j] = 1 if varies[j] else shared
    for m in range(len(merges)):
        i, j = merges[m]
        outside[i] = multiply(outside[i], outside[j], kind, start, children, counts, table)
        if varies[j]:
            for s in range(count):
                if terms[s] != ZERO:
                    both = varies[i]
                    other = work[i, s] if both else np.int32(1)
                    work[i, s] = multiply(other, work[j, s], kind, start, children, counts, table)
            varies[i] = True
    if width == 0 or not varies[0]:
        # No factor tells the states apart, not even the one that holds the indicators: only one is possible.
        return np.int32(1) if width == 0 else outside[0]
    found = 0
    for s in range(count):
        if terms[s] != ZERO:
            terms[found] = work[0, s]
            found += 1
    inside = add_node(SUM, terms, found, kind, start, children, counts, table)
    return append(outside[0], inside, kind, start, children, counts, table)


@jit
def _lowest(refs, width, level):
    """Return the level at which references branch next, and whether one of them is zero."""
    lowest, zero = np.int64(LEAF), False
    for j in range(width):
        zero |= refs[j] == ZERO
        lowest = min(lowest, np.int64(_level(refs[j], level)))
    return lowest, zero


@jit
def _branch(refs, width, z, s, level, first, child, out):
    """Write where references go on when the variable at level `z` has the state `s`."""
    for j in range(width):
        inner = _level(refs[j], level) == z
        out[j] = child[first[-1 - refs[j]] + s] if inner else refs[j]


@jit
def _choose(refs, width, z, level, first, child, out):
    """Write for each state of the variable at level `z` where its own reference goes on."""
    for s in range(width):
        inner = _level(refs[s], level) == z
        out[s] = child[first[-1 - refs[s]] + s] if inner else refs[s]


@jit
def _remember(refs, width, result, known, keys, results, seen):
    """Keep the result for a tuple of references, and return arrays with room for the next."""
    seen[_find(refs, width, keys, seen)] = known
    keys[known * width : (known + 1) * width] = refs[:width]
    results[known] = result
    known += 1
    if 2 * known > len(seen):
        seen = np.full(4 * len(seen), -1, np.int32)
        for m in range(known):
            seen[_find(keys[m * width : (m + 1) * width], width, keys, seen)] = m
    if known == len(results):
        results, keys = grow(results, 2 * known), grow(keys, 2 * known * max(width, 1))
    return known, keys, results, seen


@jit
def _with_room(level, first, child, size, tests, cards, states):
    """Return the arrays of a diagram with room for another node."""
    if size[0] + 2 > len(level):
        level, first = grow(level, 2 * len(level)), grow(first, 2 * len(first))
    if size[1] + 2 * states > len(child):
        child = grow(child, 2 * len(child))
    if 2 * size[0] > len(tests):
        tests = _rehash_tests(level, first, child, size[0], cards, 4 * len(tests))
    return level, first, child, tests


@jit
def combine(roots, merges, level, first, child, cards, z, depth, most, kind, start, children, counts, table):
    """Multiply diagrams and sum the variable at level `z`, the deepest, out; or choose among them by it.

    Parameters
    ----------
    roots
        The diagrams to multiply, all in the arrays `level`, `first`, `child`.
    merges
        The pairs of diagrams to multiply, one after the other, each time into the first of the pair; the last goes
        into diagram 0. When there are as many as diagrams, nothing is multiplied: the result is the diagram that goes
        on at ``roots[s]`` where the variable has the state ``s``.
    cards
        The number of states of the variable at each level.
    z, depth
        The level of the variable, and one more than the number of levels that are involved, or a larger number.
    most
        Stop when the circuit has more edges, or the diagram more children, than this.
    kind, start, children, counts, table
        The circuit so far.

    Returns
    -------
    status, root, level, first, child, and the circuit, whose arrays may have moved.
    """
    width = len(roots)
    states = cards.max()
    choose = len(merges) == width
    # The diagram that is made. When choosing, what lies below goes into it as it is.
    size = np.array([len(level), len(child)]) if choose else np.zeros(2, np.int64)
    new_level, new_first = grow(level[: size[0]], 2 * size[0] + 1024), grow(first[: size[0]], 2 * size[0] + 1024)
    new_child = grow(child[: size[1]], 2 * size[1] + 1024 * states)
    tests = _rehash_tests(new_level, new_first, new_child, size[0], cards, _slots(4 * len(new_level)))
    # What was computed before: tuples of references and their results.
    keys, results, known = np.empty(1024 * max(width, 1), np.int32), np.empty(1024, np.int32), 0
    seen = np.full(4096, -1, np.int32)
    # One frame for each level on the way down: its references, its level (-1: not looked at), state and results.
    frames, split = np.empty((depth, max(width, 1)), np.int32), np.full(depth, -1, np.int64)
    state, below = np.zeros(depth, np.int64), np.empty((depth, states), np.int32)
    work = np.empty((width + 1, max(states, width)), np.int32)
    outside, varies = np.empty(max(width, 1), np.int32), np.empty(max(width, 1), np.bool_)
    frames[0, :width] = roots
    top = 0
    while True:
        refs = frames[top]
        if split[top] < 0:
            split[top], zero = _lowest(refs, width, level)
            state[top] = 0
            slot = _find(refs, width, keys, seen)
            if zero and not choose:
                result, new = np.int32(ZERO), False
            elif seen[slot] >= 0:
                result, new = results[seen[slot]], False
            elif split[top] < z:
                continue
            elif choose:
                _choose(refs, width, z, level, first, child, work[0])
                result, new = _add_test(z, work[0], width, new_level, new_first, new_child, size, tests), True
            else:
                more = (width + 2) * (states + 1)
                kind, start, children, table = grown_nodes(kind, start, children, counts, table, more)
                nodes = (kind, start, children, counts, table)
                result = _sum_out(refs, width, cards[z], merges, first, child, work, outside, varies, *nodes)
                new = True
        elif state[top] < cards[split[top]]:
            _branch(refs, width, split[top], state[top], level, first, child, frames[top + 1])
            state[top] += 1
            top += 1
            split[top] = -1
            continue
        else:
            now = split[top]
            result = _add_test(now, below[top], cards[now], new_level, new_first, new_child, size, tests)
            new = True
        if new:
            known, keys, results, seen = _remember(refs, width, result, known, keys, results, seen)
            arrays = (new_level, new_first, new_child, size, tests, cards, states)
            new_level, new_first, new_child, tests = _with_room(*arrays)
            if counts[1] > most or size[1] > most or known * width > 2 * most:
                return TOO_LARGE, result, new_level, new_first, new_child, kind, start, children, table
        if top == 0:
            break
        top -= 1
        below[top, state[top] - 1] = result
    made = (new_level[: size[0]].copy(), new_first[: size[0]].copy(), new_child[: size[1]].copy())
    return DONE, result, made[0], made[1], made[2], kind, start, children, table
