"""Decision diagrams over circuit nodes, and the elimination of a variable from a product of them.

A diagram is a table of circuit nodes in which equal parts are stored once. Node ``d`` tests the variable at
``level[d]`` and goes on, for state ``s``, at ``child[first[d] + s]``. A reference that is not negative is a circuit
node, a negative one ``-1 - d`` the diagram node ``d``. Levels grow from the root down, and the variable that is
eliminated next has the largest of those that are left, so that it is always at the bottom.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit, plain
from tinybayes._kernels.circuit_graph import SUM
from tinybayes._kernels.circuit_nodes import N_EDGES, ZERO, add_node, append, grow, hash_code, multiply, with_room

LEAF = 2**30  # the level of a circuit node: below all variables
TESTS, CHILDREN = 0, 1  # indices in `Growing.size`


class Diagram(NamedTuple):
    """The nodes of a diagram; its root is kept beside it."""

    level: np.ndarray
    first: np.ndarray  # into child
    child: np.ndarray


class Growing(NamedTuple):
    """A diagram in arrays with room for more nodes."""

    level: np.ndarray
    first: np.ndarray
    child: np.ndarray
    size: np.ndarray  # how many tests and how many children are in use
    table: np.ndarray  # open addressing, by level and children; -1 where empty


class Memory(NamedTuple):
    """Tuples of references that were combined before, and their results."""

    keys: np.ndarray  # tuple after tuple
    results: np.ndarray
    table: np.ndarray  # open addressing; -1 where empty
    size: np.ndarray  # (1,) how many there are


class Frames(NamedTuple):
    """The way down from the root: one frame for each level."""

    refs: np.ndarray  # (depth, width) the references to combine
    split: np.ndarray  # (depth,) the level at which they branch, -1 when not looked at yet
    state: np.ndarray  # (depth,) the next state of its variable
    below: np.ndarray  # (depth, states) the results of the states before


class Work(NamedTuple):
    """Working memory of `_sum_out`."""

    terms: np.ndarray  # (width + 1, states)
    outside: np.ndarray  # (width,)
    varies: np.ndarray  # (width,)


@plain
def _level(ref, level):
    return LEAF if ref >= 0 else level[-1 - ref]


@plain
def _add_test(z, refs, count, made):
    """Return the diagram node with these children, which is made when it is new; equal children need none."""
    level, first, child, size, table = made
    same = True
    for s in range(count):
        same &= refs[s] == refs[0]
    if same:
        return refs[0]
    mask = np.uint64(len(table) - 1)
    slot = hash_code(z + 1, refs, count) & mask
    while table[slot] >= 0:
        d = table[slot]
        if level[d] == z:
            start, s = first[d], 0
            while s < count and child[start + s] == refs[s]:
                s += 1
            if s == count:
                return np.int32(-1 - d)
        slot = (slot + np.uint64(1)) & mask
    d = size[TESTS]
    table[slot] = d
    level[d] = z
    first[d] = size[CHILDREN]
    for s in range(count):
        child[size[CHILDREN] + s] = refs[s]
    size[TESTS] += 1
    size[CHILDREN] += count
    return np.int32(-1 - d)


@jit
def _rehash_tests(level, first, child, count, cards, slots):
    table = np.full(slots, -1, np.int32)
    mask = np.uint64(slots - 1)
    for d in range(count):
        slot = hash_code(level[d] + 1, child[first[d] :], cards[level[d]]) & mask
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
    """Turn a full table, the deepest level running fastest, into a diagram; return its root and its nodes."""
    room = 16 + len(levels) * len(refs)
    level, first, child = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int32)
    made = Growing(level, first, child, np.zeros(2, np.int64), np.full(_slots(2 * room), -1, np.int32))
    now = refs.copy()
    for axis in range(len(levels) - 1, -1, -1):
        z = levels[axis]
        count = cards[z]
        rows = len(now) // count
        for row in range(rows):
            now[row] = _add_test(z, now[row * count : (row + 1) * count], count, made)
        now = now[:rows]
    return now[0], _finished(made)


@jit
def _finished(made):
    tests, children = made.size[TESTS], made.size[CHILDREN]
    return Diagram(made.level[:tests].copy(), made.first[:tests].copy(), made.child[:children].copy())


@plain
def _find(key, width, keys, table):
    """Return the slot of a tuple in an open-addressing table: its own, or the empty one where it belongs."""
    mask = np.uint64(len(table) - 1)
    slot = hash_code(np.uint64(0x2545F4914F6CDD1D), key, width) & mask
    while table[slot] >= 0:
        start, j = table[slot] * np.int64(width), 0
        while j < width and keys[start + j] == key[j]:
            j += 1
        if j == width:
            break
        slot = (slot + np.uint64(1)) & mask
    return slot


@plain
def _sum_out(refs, width, count, merges, joined, work, nodes):
    """Return the circuit node of ``sum_s prod_j refs_j(s)`` where nothing is above the variable of the states `s`.

    What does not depend on the state, among the states that are possible at all, goes before the sum. The factors are
    multiplied in the pairs of `merges`.
    """
    first, child, factors, outside, varies = joined.first, joined.child, work.terms, work.outside, work.varies
    terms = factors[width]
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
                    factors[j, s] = child[base + s]
                    varies[j] |= shared >= 0 and shared != factors[j, s]
                    shared = factors[j, s]
            if shared < 0:
                return np.int32(ZERO)
            outside[j] = 1 if varies[j] else shared
    for m in range(len(merges)):
        i, j = merges[m, 0], merges[m, 1]
        outside[i] = multiply(outside[i], outside[j], nodes)
        if varies[j]:
            for s in range(count):
                if terms[s] != ZERO:
                    other = factors[i, s] if varies[i] else np.int32(1)
                    factors[i, s] = multiply(other, factors[j, s], nodes)
            varies[i] = True
    if width == 0 or not varies[0]:
        # No factor tells the states apart, not even the one that holds the indicators: only one is possible.
        return np.int32(1) if width == 0 else outside[0]
    possible = 0
    for s in range(count):
        if terms[s] != ZERO:
            terms[possible] = factors[0, s]
            possible += 1
    return append(outside[0], add_node(SUM, terms, possible, nodes), nodes)


@plain
def _lowest(refs, width, level):
    """Return the level at which references branch next, and whether one of them is zero."""
    lowest, zero = np.int64(LEAF), False
    for j in range(width):
        zero |= refs[j] == ZERO
        lowest = min(lowest, np.int64(_level(refs[j], level)))
    return lowest, zero


@plain
def _branch(refs, width, z, state, joined, out):
    """Write where references go on when the variable at level `z` has a state; -1: each has its own, by its number."""
    for j in range(width):
        inner = _level(refs[j], joined.level) == z
        s = state if state >= 0 else j
        out[j] = joined.child[joined.first[-1 - refs[j]] + s] if inner else refs[j]


@jit
def _remember(refs, width, result, memory):
    """Keep the result for a tuple of references; return the memory with room for the next."""
    keys, results, table, size = memory
    known = size[0]
    table[_find(refs, width, keys, table)] = known
    keys[known * width : (known + 1) * width] = refs[:width]
    results[known] = result
    known += 1
    size[0] = known
    if 2 * known > len(table):
        table = np.full(4 * len(table), -1, np.int32)
        for m in range(known):
            table[_find(keys[m * width : (m + 1) * width], width, keys, table)] = m
    if known == len(results):
        results, keys = grow(results, 2 * known), grow(keys, 2 * known * max(width, 1))
    return Memory(keys, results, table, size)


@jit
def _started(diagram, tests, children, cards, states):
    """Return a growing diagram that begins with some nodes of another."""
    level, first = grow(diagram.level[:tests], 2 * tests + 1024), grow(diagram.first[:tests], 2 * tests + 1024)
    child = grow(diagram.child[:children], 2 * children + 1024 * states)
    table = _rehash_tests(level, first, child, tests, cards, _slots(4 * len(level)))
    return Growing(level, first, child, np.array([tests, children]), table)


@jit
def _with_test_room(made, cards, states):
    """Return a growing diagram with room for another node."""
    level, first, child, size, table = made
    if size[TESTS] + 2 > len(level):
        level, first = grow(level, 2 * len(level)), grow(first, 2 * len(first))
    if size[CHILDREN] + 2 * states > len(child):
        child = grow(child, 2 * len(child))
    if 2 * size[TESTS] > len(table):
        table = _rehash_tests(level, first, child, size[TESTS], cards, 4 * len(table))
    return Growing(level, first, child, size, table)


@jit
def combine(roots, merges, joined, cards, z, depth, most, nodes):
    """Multiply diagrams and sum the variable at level `z`, the deepest, out; or choose among them by it.

    Parameters
    ----------
    roots
        The diagrams to multiply, all in the `Diagram` `joined`.
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
    nodes
        The circuit so far.

    Returns
    -------
    complete, root, diagram, nodes
        Whether it stayed within `most`, the result, and the circuit, whose arrays may have moved.
    """
    width, room, states = len(roots), max(len(roots), 1), cards.max()
    choose = len(merges) == width
    # When choosing, what lies below goes into the new diagram as it is.
    made = _started(joined, len(joined.level) if choose else 0, len(joined.child) if choose else 0, cards, states)
    memory = Memory(
        np.empty(1024 * room, np.int32), np.empty(1024, np.int32), np.full(4096, -1, np.int32), np.zeros(1, np.int64)
    )
    refs_of, split = np.empty((depth, room), np.int32), np.full(depth, -1, np.int64)
    frames = Frames(refs_of, split, np.zeros(depth, np.int64), np.empty((depth, states), np.int32))
    terms = np.empty((width + 1, max(states, width)), np.int32)
    work = Work(terms, np.empty(room, np.int32), np.empty(room, np.bool_))
    frames.refs[0, :width] = roots
    top = 0
    while True:
        refs, now, new = frames.refs[top], frames.split[top], True
        if now < 0:  # not looked at yet
            now, zero = _lowest(refs, width, joined.level)
            frames.split[top], frames.state[top] = now, 0
            known = memory.table[_find(refs, width, memory.keys, memory.table)]
            if zero and not choose:
                result, new = np.int32(ZERO), False
            elif known >= 0:
                result, new = memory.results[known], False
            elif now < z:
                continue
            elif choose:
                _branch(refs, width, z, -1, joined, terms[0])
                result = _add_test(z, terms[0], width, made)
            else:
                nodes = with_room(nodes, (width + 2) * (states + 1))
                result = _sum_out(refs, width, cards[z], merges, joined, work, nodes)
        elif frames.state[top] < cards[now]:
            _branch(refs, width, now, frames.state[top], joined, frames.refs[top + 1])
            frames.state[top] += 1
            top += 1
            frames.split[top] = -1
            continue
        else:
            result = _add_test(now, frames.below[top], cards[now], made)
        if new:
            memory = _remember(refs, width, result, memory)
            made = _with_test_room(made, cards, states)
            if max(nodes.counts[N_EDGES], made.size[CHILDREN]) > most or memory.size[0] * width > 2 * most:
                return False, result, _finished(made), nodes
        if top == 0:
            return True, result, _finished(made), nodes
        top -= 1
        frames.below[top, frames.state[top] - 1] = result
