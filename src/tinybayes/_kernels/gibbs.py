"""Gibbs sampling in a network of tables and decision trees.

Most of a sweep changes nothing, so almost everything is kept until it changes: for each variable the place of its
current row (`entry`) and its full conditional (`chance`), with one bit (`stale`) that says whether a neighbour has moved
since. A move marks exactly the variables whose conditional it may change: those tested on the way to the current rows
of the variable's own table and of its children's. A variable that is not stale costs one random number.

Sums over sweeps are lazy as well: a value, or a conditional, is added with the number of sweeps it lasted when it changes.
"""

from typing import NamedTuple

import numba
import numpy as np

from tinybayes._kernels import jit

_inline = numba.njit(inline="always", nogil=True)


class Layout(NamedTuple):
    """A network as flat arrays; `n` variables, entries of all tables in one array.

    A node of a tree is a pair ``step``: the variable it tests and the place of its first child in ``goto``, or -1 and the
    number of its leaf. A path is the set of variables that lead to a row, as bits.
    """

    states: np.ndarray  # (n,) number of states
    first_state: np.ndarray  # (n + 1,) where the states of a variable begin in arrays over all states
    log_entry: np.ndarray  # log-parameters, row after row
    base: np.ndarray  # (n,) the first entry of a full table
    root: np.ndarray  # (n,) the root of the tree, -1 for a full table
    table_path: np.ndarray  # (n,) the path of every row of a full table
    first_parent: np.ndarray  # (n + 1,) into parent and parent_stride: full tables only
    parent: np.ndarray
    parent_stride: np.ndarray  # in entries
    step: np.ndarray  # (nodes, 2)
    goto: np.ndarray
    leaf_entry: np.ndarray  # (leaves,) the first entry of the leaf's row
    leaf_path: np.ndarray  # (leaves,)
    path: np.ndarray  # (paths, words) bit sets
    first_child: np.ndarray  # (n + 1,) into child and child_stride: whose distribution depends on the variable
    child: np.ndarray
    child_stride: np.ndarray  # how far apart its rows are in the child's table, 0 for a tree
    first_turn: np.ndarray  # (children + 1,) where the states of the variable begin in Chain.turn, for trees only


class Chain(NamedTuple):
    """What a chain remembers between two calls."""

    x: np.ndarray  # (n,) the current state
    entry: np.ndarray  # (n,) the first entry of the current row of each variable
    path: np.ndarray  # (n,) the path of that row
    stale: np.ndarray  # (words,) bits: the conditional has to be computed again
    moved: np.ndarray  # (words,) bits: the variable got another value the last time it was drawn
    needs: np.ndarray  # (n, words) bits: the variables that the conditional depends on, with the others as they are
    turn: np.ndarray  # for a variable, a child with a tree and a state: the first entry of the child's row
    turn_needs: np.ndarray  # (children, words) bits: the variables that lead to these rows
    turn_known: np.ndarray  # (children,) whether these rows have been looked up
    chance: np.ndarray  # (states of all variables,) full conditionals
    since: np.ndarray  # (n,) the sweep up to which sums are complete
    part: np.ndarray  # (states of all variables,) sums of the running batch
    random: np.ndarray  # (1,) state of the generator
    missed: np.ndarray  # (1,) asked variables, the last one apart, that do not have the value asked for


class Sums(NamedTuple):
    """Sums over the samples of a chain, and over its batches of squared sums divided by the batch's length."""

    samples: np.ndarray  # (1,)
    batches: np.ndarray  # (1,)
    hits: np.ndarray  # (2,)
    total: np.ndarray  # (states of all variables,), or empty when marginals are not wanted
    square: np.ndarray


@_inline
def _mix(z):
    """Scramble 64 bits (the output function of SplitMix64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@_inline
def _uniform(random):
    """Draw a number from [0, 1)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    return np.float64(_mix(random[0]) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@_inline
def _leaf(root, step, goto, v, x):
    """Return the leaf of the tree of `v` for the values `x`."""
    node = root[v]
    while step[node, 0] >= 0:
        node = goto[step[node, 1] + x[step[node, 0]]]
    return step[node, 1]


@_inline
def _find_row(net, v, x):
    """Return the first entry of the row of `v` for the values `x`, and its path."""
    if net.root[v] >= 0:
        leaf = _leaf(net.root, net.step, net.goto, v, x)
        return net.leaf_entry[leaf], net.leaf_path[leaf]
    entry = net.base[v]
    for k in range(net.first_parent[v], net.first_parent[v + 1]):
        entry += net.parent_stride[k] * x[net.parent[k]]
    return entry, net.table_path[v]


@_inline
def _has(bits, v):
    return (bits[v >> 6] >> np.uint64(v & 63)) & np.uint64(1) != np.uint64(0)


@jit
def start(net, order, evidence, seed, budget, x, random):
    """Draw a state of nonzero probability: forward sampling that goes back where the evidence leaves no way on.

    Return 1 for a state, 0 when there is none, -1 when it was not found within `budget` visits of variables. `order`
    has parents before children; `seed` is a sequence of numbers that name the chain.
    """
    random[0] = np.uint64(0)
    for k in range(len(seed)):
        random[0] = _mix(random[0] + np.uint64(0x9E3779B97F4A7C15)) ^ _mix(seed[k] + np.uint64(k + 1))
    tried = np.zeros(net.first_state[len(order)], dtype=np.bool_)
    k, fresh = 0, True
    while k < len(order):
        if budget <= 0:
            return -1
        budget -= 1
        v = order[k]
        begin, end = net.first_state[v], net.first_state[v + 1]
        if fresh:
            for s in range(begin, end):
                tried[s] = evidence[v] >= 0 and s - begin != evidence[v]
        entry, _ = _find_row(net, v, x)
        top = -np.inf
        for s in range(begin, end):
            if not tried[s]:
                top = max(top, net.log_entry[entry + s - begin])
        if top == -np.inf:  # no state is left: another one for the variable before
            if k == 0:
                return 0
            k, fresh = k - 1, False
            continue
        weight = 0.0
        for s in range(begin, end):
            if not tried[s]:
                weight += np.exp(net.log_entry[entry + s - begin] - top)
        u, chosen = _uniform(random) * weight, -1
        for s in range(begin, end):
            if not tried[s] and net.log_entry[entry + s - begin] > -np.inf:
                chosen = s
                u -= np.exp(net.log_entry[entry + s - begin] - top)
                if u < 0:
                    break
        tried[chosen] = True
        x[v] = chosen - begin
        k, fresh = k + 1, True
    return 1


@jit
def enter(net, chain, asked, last):
    """Set everything that follows from the current state."""
    for v in range(len(net.states)):
        chain.entry[v], chain.path[v] = _find_row(net, v, chain.x)
    chain.stale[:] = ~np.uint64(0)
    chain.moved[:] = np.uint64(0)
    chain.turn_known[:] = False
    chain.missed[0] = 0
    for v in range(len(asked)):
        chain.missed[0] += asked[v] >= 0 and v != last and chain.x[v] != asked[v]


@_inline
def _is_stale(moved, needs, stale, v):
    """Tell whether a conditional must be computed again: it depends on something that moved since the last time.

    Seen from a variable whose turn it is, `moved` holds the moves of this sweep for the variables before it, and those of
    the last sweep for the ones after it: just what has happened since its last turn.
    """
    found = np.uint64(0)
    for w in range(len(moved)):
        found |= moved[w] & needs[v, w]
    return found != np.uint64(0) or _has(stale, v)


@_inline
def _refresh(net, chain, v, logs):
    """Compute the full conditional of a variable, and what it depends on."""
    x, needs, words = chain.x, chain.needs[v], chain.needs.shape[1]
    log_entry, path, states, now = net.log_entry, net.path, net.states[v], x[v]
    entry, own = chain.entry[v], chain.path[v]
    for s in range(states):
        logs[s] = log_entry[entry + s]
    for w in range(words):
        needs[w] = path[own, w]
    for k in range(net.first_child[v], net.first_child[v + 1]):
        c = net.child[k]
        here, stride = chain.path[c], net.child_stride[k]
        if not _has(path[here], v):
            chain.turn_known[k] = False
            continue  # the row of the child does not depend on the variable, the others being as they are
        needs[c >> 6] |= np.uint64(1) << np.uint64(c & 63)
        if stride > 0:
            for w in range(words):
                needs[w] |= path[here, w]
            entry = chain.entry[c] + x[c]
            for s in range(states):
                logs[s] += log_entry[entry + (s - now) * stride]
            continue
        _look_ahead(net, chain, v, k)
        turn = net.first_turn[k]
        for s in range(states):
            logs[s] += log_entry[chain.turn[turn + s] + x[c]]
        for w in range(words):
            needs[w] |= chain.turn_needs[k, w]
    needs[v >> 6] &= ~(np.uint64(1) << np.uint64(v & 63))
    chain.stale[v >> 6] &= ~(np.uint64(1) << np.uint64(v & 63))
    _normalize(logs, states, chain.chance[net.first_state[v] : net.first_state[v + 1]])


@_inline
def _look_ahead(net, chain, v, k):
    """Find the row that a child with a tree would have for each state of the variable, unless it is known."""
    x, c, needs, words = chain.x, net.child[k], chain.turn_needs, chain.turn_needs.shape[1]
    if chain.turn_known[k]:
        found = np.uint64(0)
        for w in range(words):
            found |= chain.moved[w] & needs[k, w]
        if found == np.uint64(0):
            return
    here, now, turn = chain.path[c], x[v], net.first_turn[k]
    for w in range(words):
        needs[k, w] = net.path[here, w]
    for s in range(net.states[v]):
        if s == now:
            chain.turn[turn + s] = chain.entry[c]
            continue
        x[v] = s
        leaf = _leaf(net.root, net.step, net.goto, c, x)
        chain.turn[turn + s] = net.leaf_entry[leaf]
        there = net.leaf_path[leaf]
        for w in range(words):
            needs[k, w] |= net.path[there, w]
    x[v] = now
    needs[k, v >> 6] &= ~(np.uint64(1) << np.uint64(v & 63))
    chain.turn_known[k] = True


@_inline
def _normalize(logs, states, chance):
    if states == 2:
        chance[0] = 1.0 / (1.0 + np.exp(logs[1] - logs[0]))
        chance[1] = 1.0 - chance[0]
        return
    top = logs[0]
    for s in range(1, states):
        top = max(top, logs[s])
    weight = 0.0
    for s in range(states):
        chance[s] = np.exp(logs[s] - top)
        weight += chance[s]
    for s in range(states):
        chance[s] /= weight


@_inline
def _move(net, chain, v, value):
    """Give a variable another value, and its children their rows."""
    x, stale, path = chain.x, chain.stale, net.path
    step = value - x[v]
    x[v] = value
    for k in range(net.first_child[v], net.first_child[v + 1]):
        c = net.child[k]
        if not _has(path[chain.path[c]], v):
            continue
        if net.child_stride[k] > 0:
            chain.entry[c] += step * net.child_stride[k]
            continue
        leaf = _leaf(net.root, net.step, net.goto, c, x)
        chain.entry[c] = net.leaf_entry[leaf]
        after = net.leaf_path[leaf]
        chain.path[c] = after
        # The new row may depend on variables that the old one did not depend on: they do not know it yet.
        for w in range(len(stale)):
            stale[w] |= path[after, w]


@_inline
def _draw(chance, begin, end, u):
    """Return the state in which the number `u` falls."""
    s = begin
    while s < end - 1 and u >= chance[s]:
        u -= chance[s]
        s += 1
    while chance[s] == 0.0:  # the chances add up to a little less than 1
        s -= 1
    return s - begin


@_inline
def _add(chain, v, begin, end, sweep, blackwell):
    """Add what has been the case for a variable since the last time, up to a sweep."""
    lasted = sweep - chain.since[v]
    chain.since[v] = sweep
    if lasted == 0:
        return
    if blackwell:
        for s in range(begin, end):
            chain.part[s] += lasted * chain.chance[s]
    else:
        chain.part[begin + chain.x[v]] += lasted


@_inline
def _sweep(net, chain, free, asked, last, blackwell, marginals, sweeps, logs):
    """Resample each free variable in turn, `sweeps` times; return in how many all asked variables had their values.

    Blackwellised, a sweep counts with the chance that the last asked variable gets its value, if the others have theirs.
    """
    hits = 0.0
    x, chance, moved, needs, stale = chain.x, chain.chance, chain.moved, chain.needs, chain.stale
    first_state, random = net.first_state, chain.random
    for t in range(sweeps):
        for k in range(len(free)):
            v = free[k]
            begin, end = first_state[v], first_state[v + 1]
            if _is_stale(moved, needs, stale, v):
                if marginals and blackwell:
                    _add(chain, v, begin, end, t, True)
                _refresh(net, chain, v, logs)
            value = _draw(chance, begin, end, _uniform(random))
            before = x[v]
            bit = np.uint64(1) << np.uint64(v & 63)
            if value == before:
                moved[v >> 6] &= ~bit
                continue
            moved[v >> 6] |= bit
            if marginals and not blackwell:
                _add(chain, v, begin, end, t, False)
            if asked[v] >= 0 and v != last:
                chain.missed[0] += np.int64(before == asked[v]) - np.int64(value == asked[v])
            _move(net, chain, v, value)
            stale[v >> 6] &= ~bit  # a conditional does not depend on the variable's own value
        if chain.missed[0] == 0:
            if last < 0:
                hits += 1.0
            elif blackwell:
                hits += chain.chance[net.first_state[last] + asked[last]]
            elif chain.x[last] == asked[last]:
                hits += 1.0
    return hits


@jit
def burn(net, chain, free, asked, last, sweeps):
    """Let a chain run without looking at it."""
    _sweep(net, chain, free, asked, last, False, False, sweeps, np.empty(net.states.max()))


@jit
def sample(net, chain, free, asked, last, blackwell, bounds, sums):
    """Let a chain run for the batches of samples between `bounds`, and add them to the sums."""
    logs = np.empty(net.states.max())
    marginals = len(sums.total) > 0
    for b in range(len(bounds) - 1):
        length = bounds[b + 1] - bounds[b]
        hits = _sweep(net, chain, free, asked, last, blackwell, marginals, length, logs)
        sums.samples[0] += length
        sums.batches[0] += 1
        sums.hits[0] += hits
        sums.hits[1] += hits * hits / length
        if not marginals:
            continue
        for k in range(len(free)):
            v = free[k]
            begin, end = net.first_state[v], net.first_state[v + 1]
            _add(chain, v, begin, end, length, blackwell)
            chain.since[v] = 0
            for s in range(begin, end):
                sums.total[s] += chain.part[s]
                sums.square[s] += chain.part[s] * chain.part[s] / length
                chain.part[s] = 0.0
