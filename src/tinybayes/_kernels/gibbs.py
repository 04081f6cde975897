"""Gibbs sampling in a network of tables and decision trees.

Most of a sweep changes nothing, so almost everything is kept until it changes: for each variable the place of its
current row (`entry`) and its full conditional (`chance`), with one bit (`stale`) that says whether it may have changed
since. A move marks the variables tested on the way to the current rows of the variable itself and of its children. One
that is not stale costs a random number. For trees, the rows that a child would have for the other values of a
variable (`turn`) are kept as well, until a variable that the tree tests moves.

Sums over sweeps are lazy too: a value, or a conditional, is added with the number of sweeps it lasted when it changes.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import inlined, plain
from tinybayes._kernels.streams import start_stream, uniform


class Layout(NamedTuple):
    """A network as flat arrays; `n` variables, entries of all tables in one array.

    A node of a tree is a pair ``step``: the variable it tests and the place of its first child in ``goto``, or -1 and
    the number of its leaf. A path is the set of variables that lead to a row, as bits.
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
    first_stop: np.ndarray  # (leaves + 1,) into stop: the nodes from the root to the leaf
    stop: np.ndarray  # (stops, 2) the variable that a node tests, and the node
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
    leaf: np.ndarray  # (n,) the leaf that names that row, -1 for a full table
    stale: np.ndarray  # (words,) bits: the conditional has to be computed again
    version: np.ndarray  # (n,) grows with every move of a variable that the tree tests
    turn: np.ndarray  # for a variable, a child with a tree and a state: the first entry of the child's row
    turn_version: np.ndarray  # (children,) the version of the child's tree for which these rows were looked up
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


@inlined
def _descend(step, goto, node, x):
    """Return the leaf below a node for the values `x`."""
    while step[node, 0] >= 0:
        node = goto[step[node, 1] + x[step[node, 0]]]
    return step[node, 1]


@inlined
def _find_row(net, v, x):
    """Return the first entry of the row of `v` for the values `x`, its path and its leaf."""
    leaf, entry, path = np.int64(-1), net.base[v], np.int64(net.table_path[v])
    if net.root[v] >= 0:
        leaf = np.int64(_descend(net.step, net.goto, net.root[v], x))
        entry, path = net.leaf_entry[leaf], np.int64(net.leaf_path[leaf])
    for k in range(net.first_parent[v], net.first_parent[v + 1]):
        entry += net.parent_stride[k] * x[net.parent[k]]
    return entry, path, leaf


@inlined
def _has(sets, number, v):
    """Tell whether a variable is in a set."""
    return (sets[number, v >> 6] >> np.uint64(v & 63)) & np.uint64(1) != np.uint64(0)


@inlined
def _choose(log_entry, entry, begin, end, tried, random):
    """Draw a state among those not tried yet; -1 when none of them is possible."""
    top = -np.inf
    for s in range(begin, end):
        if not tried[s]:
            top = max(top, log_entry[entry + s - begin])
    chosen = -1
    if top > -np.inf:
        weight = 0.0
        for s in range(begin, end):
            if not tried[s]:
                weight += np.exp(log_entry[entry + s - begin] - top)
        u = uniform(random) * weight
        for s in range(begin, end):
            if u >= 0 and not tried[s] and log_entry[entry + s - begin] > -np.inf:
                chosen = s
                u -= np.exp(log_entry[entry + s - begin] - top)
    return chosen


@plain
def start(net, order, evidence, seed, budget, tried, x, random):
    """Draw a state of nonzero probability: forward sampling that goes back where the evidence leaves no way on.

    Return 1 for a state, 0 when there is none, -1 when it was not found within `budget` visits of variables. `order`
    has parents before children; `seed` is a sequence of numbers that name the chain.
    """
    start_stream(seed, random)
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
        entry, _, _ = _find_row(net, v, x)
        chosen = _choose(net.log_entry, entry, begin, end, tried, random)
        if chosen < 0:  # no state is left: another one for the variable before
            if k == 0:
                return 0
            k, fresh = k - 1, False
            continue
        tried[chosen] = True
        x[v] = chosen - begin
        k, fresh = k + 1, True
    return 1


@plain
def enter(net, chain, asked, last):
    """Set everything that follows from the current state."""
    for v in range(len(net.states)):
        chain.entry[v], chain.path[v], chain.leaf[v] = _find_row(net, v, chain.x)
    chain.stale[:] = ~np.uint64(0)
    chain.version[:] = 0
    chain.turn_version[:] = -1
    chain.missed[0] = 0
    for v in range(len(asked)):
        chain.missed[0] += asked[v] >= 0 and v != last and chain.x[v] != asked[v]


@inlined
def _other_leaf(net, chain, c, v):
    """Return the leaf of `c` after its parent `v` got another value: the way changes only below the test of `v`."""
    leaf, node = chain.leaf[c], net.root[c]
    for k in range(net.first_stop[leaf], net.first_stop[leaf + 1]):
        if net.stop[k, 0] == v:
            node = net.stop[k, 1]
            break
    return _descend(net.step, net.goto, node, chain.x)


@inlined
def _refresh(net, chain, v, logs):
    """Compute the full conditional of a variable."""
    x, log_entry, states = chain.x, net.log_entry, net.states[v]
    entry = chain.entry[v]
    for s in range(states):
        logs[s] = log_entry[entry + s]
    for k in range(net.first_child[v], net.first_child[v + 1]):
        c = net.child[k]
        if not _has(net.path, chain.path[c], v):
            continue  # the row of the child does not depend on the variable, the others being as they are
        stride = net.child_stride[k]
        if stride > 0:
            entry = chain.entry[c] + x[c] - x[v] * stride
            for s in range(states):
                logs[s] += log_entry[entry + s * stride]
            continue
        if chain.turn_version[k] != chain.version[c]:
            _look_ahead(net, chain, v, k)
        turn = net.first_turn[k]
        for s in range(states):
            logs[s] += log_entry[chain.turn[turn + s] + x[c]]
    _normalize(logs, states, chain.chance, net.first_state[v])


@inlined
def _look_ahead(net, chain, v, k):
    """Find the row that a child with a tree would have for each state of the variable."""
    x, c, turn = chain.x, net.child[k], net.first_turn[k]
    now = x[v]
    for s in range(net.states[v]):
        if s == now:
            chain.turn[turn + s] = chain.entry[c]
        else:
            x[v] = s
            chain.turn[turn + s] = net.leaf_entry[_other_leaf(net, chain, c, v)]
    x[v] = now
    chain.turn_version[k] = chain.version[c]


@inlined
def _normalize(logs, states, chance, begin):
    """Write the distribution that is proportional to the exponentials."""
    if states == 2:
        zero = 1.0 / (1.0 + np.exp(logs[1] - logs[0]))
        chance[begin] = zero
        chance[begin + 1] = 1.0 - zero
    else:
        top = logs[0]
        for s in range(1, states):
            top = max(top, logs[s])
        weight = 0.0
        for s in range(states):
            logs[s] = np.exp(logs[s] - top)
            weight += logs[s]
        for s in range(states):
            chance[begin + s] = logs[s] / weight


@inlined
def _mark(stale, path, number):
    """Mark the variables of a path."""
    for w in range(len(stale)):
        stale[w] |= path[number, w]


@inlined
def _move(net, chain, v, value):
    """Give a variable another value and its children their rows, and mark the conditionals that may change."""
    x, stale, path = chain.x, chain.stale, net.path
    step = value - x[v]
    x[v] = value
    _mark(stale, path, chain.path[v])
    for k in range(net.first_child[v], net.first_child[v + 1]):
        c = net.child[k]
        before = chain.path[c]
        chain.version[c] += 1
        _mark(stale, path, before)  # even if the row stays: the rows next to it may be others
        if not _has(path, before, v):
            continue
        stale[c >> 6] |= np.uint64(1) << np.uint64(c & 63)
        if net.child_stride[k] > 0:
            chain.entry[c] += step * net.child_stride[k]
        else:
            leaf = _other_leaf(net, chain, c, v)
            chain.leaf[c] = leaf
            chain.entry[c] = net.leaf_entry[leaf]
            chain.path[c] = net.leaf_path[leaf]
            _mark(stale, path, chain.path[c])
    # Its own conditional does not depend on its value.
    stale[v >> 6] &= ~(np.uint64(1) << np.uint64(v & 63))


@inlined
def _draw(chance, begin, end, u):
    """Return the state in which the number `u` falls."""
    s = begin
    while s < end - 1 and u >= chance[s]:
        u -= chance[s]
        s += 1
    while chance[s] == 0.0:  # the chances add up to a little less than 1
        s -= 1
    return s - begin


@inlined
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


@plain
def _sweep(net, chain, free, asked, last, blackwell, marginals, sweeps, logs):
    """Resample each free variable in turn, `sweeps` times; return in how many all asked variables had their values.

    Blackwellised, a sweep counts with the chance that the last asked variable gets its value, if the others have it.
    """
    hits = 0.0
    x, chance, stale, first_state = chain.x, chain.chance, chain.stale, net.first_state
    for t in range(sweeps):
        for k in range(len(free)):
            v = free[k]
            begin, end, bit = first_state[v], first_state[v + 1], np.uint64(1) << np.uint64(v & 63)
            if stale[v >> 6] & bit != np.uint64(0):
                if marginals and blackwell:
                    _add(chain, v, begin, end, t, True)
                _refresh(net, chain, v, logs)
                stale[v >> 6] &= ~bit
            value, before = _draw(chance, begin, end, uniform(chain.random)), x[v]
            if value == before:
                continue
            if marginals and not blackwell:
                _add(chain, v, begin, end, t, False)
            if asked[v] >= 0 and v != last:
                chain.missed[0] += np.int64(before == asked[v]) - np.int64(value == asked[v])
            _move(net, chain, v, value)
        if chain.missed[0] == 0:
            if last < 0:
                hits += 1.0
            elif blackwell:
                hits += chain.chance[net.first_state[last] + asked[last]]
            elif chain.x[last] == asked[last]:
                hits += 1.0
    return hits


@plain
def burn(net, chain, free, asked, last, sweeps, logs):
    """Let a chain run without looking at it."""
    _sweep(net, chain, free, asked, last, False, False, sweeps, logs)


@plain
def sample(net, chain, free, asked, last, blackwell, bounds, sums, logs):
    """Let a chain run for the batches of samples between `bounds`, and add them to the sums."""
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
