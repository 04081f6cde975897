"""A network and a Gibbs chain as arrays, and the first state of a chain."""

from functools import partial
from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit, plain

# Nothing is allocated here. Without Numba's reference counts, and with the small functions written into the large ones,
# a tuple of arrays costs nothing to pass; with them a sweep takes several times as long.
inlined = partial(jit, _nrt=False, inline="always")


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


@inlined
def mix(z):
    """Scramble 64 bits (the output function of SplitMix64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def uniform(random):
    """Draw a number from [0, 1)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    return np.float64(mix(random[0]) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inlined
def descend(step, goto, node, x):
    """Return the leaf below a node for the values `x`."""
    while step[node, 0] >= 0:
        node = goto[step[node, 1] + x[step[node, 0]]]
    return step[node, 1]


@inlined
def find_row(net, v, x):
    """Return the first entry of the row of `v` for the values `x`, its path and its leaf."""
    leaf, entry, path = np.int64(-1), net.base[v], np.int64(net.table_path[v])
    if net.root[v] >= 0:
        leaf = np.int64(descend(net.step, net.goto, net.root[v], x))
        entry, path = net.leaf_entry[leaf], np.int64(net.leaf_path[leaf])
    for k in range(net.first_parent[v], net.first_parent[v + 1]):
        entry += net.parent_stride[k] * x[net.parent[k]]
    return entry, path, leaf


@inlined
def has(sets, number, v):
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
    random[0] = np.uint64(0)
    for k in range(len(seed)):
        random[0] = mix(random[0] + np.uint64(0x9E3779B97F4A7C15)) ^ mix(seed[k] + np.uint64(k + 1))
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
        entry, _, _ = find_row(net, v, x)
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
        chain.entry[v], chain.path[v], chain.leaf[v] = find_row(net, v, chain.x)
    chain.stale[:] = ~np.uint64(0)
    chain.version[:] = 0
    chain.turn_version[:] = -1
    chain.missed[0] = 0
    for v in range(len(asked)):
        chain.missed[0] += asked[v] >= 0 and v != last and chain.x[v] != asked[v]
