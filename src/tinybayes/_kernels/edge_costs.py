"""The edges that every possible split would cost, kept up to date while the circuit grows: the greedy rule of LearnAC.

What a split of the distribution D on the variable V costs (`growing_circuit.edge_cost`) is a sum over nodes n, since
whether and how n is copied depends on V by its scope alone, and on D by three sets of distributions:

- ``below[n]``: those with parameters below n. If V is not in the scope of n, then n is on the side of D, and is copied
  once for each value of V *around* it, that is, below a sibling of n, or of a node above n, under a common product;
- ``beside[n]``: those below a sibling of n, or of a node above n, under a common product. If V is in the scope of n,
  then n is on the side of V, and is copied for each value of V;
- ``always[n]``: those that are so on every path from n up to the root. Then the original disappears.

A product with D, but not V, below one of its children, and V below another, is a mutual ancestor.

A sum decides one variable: each of its children is a product that has one value of this variable as a child. Such a
product has only sums as parents, and below any other node lie either all the values of a variable or none. These
statements hold at the start, and every split preserves them.

So after a split all costs are right again if the terms of the nodes that it changed are replaced, and the terms that
belong to the new distributions are added. Of an unchanged node, ``below`` and ``beside`` change only by the new
distributions that take the place of the split one: it is still used for the same assignments. ``always`` may change.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit, plain
from tinybayes._kernels.circuit_graph import INDICATOR, PARAMETER, PRODUCT, SUM
from tinybayes._kernels.growing_circuit import STAMP, WORD, count_bits, list_nodes


class Costs(NamedTuple):
    """Sets of distributions (as numbers of parts) and of states, as bits, for every node; a row each when not used."""

    below: np.ndarray
    beside: np.ndarray
    always: np.ndarray
    states: np.ndarray  # below the node
    around: np.ndarray  # below a sibling of it, or of a node above it, under a common product
    changed: np.ndarray  # of a node: the last stamp under which its terms were taken away
    before: np.ndarray  # one row of `always`
    terms: np.ndarray  # (variables)
    used: np.ndarray  # the variables whose terms are not zero
    everything: np.ndarray  # a set of distributions: all
    fresh: np.ndarray  # a set of distributions: the new ones
    variable: np.ndarray  # of every state


@plain
def _find_below(g, c, n, words, state_words):
    if g.kind[n] == PARAMETER:
        c.below[n, :words] = 0
        c.below[n, g.leaf[n] // WORD] = np.int64(1) << (g.leaf[n] % WORD)
        return
    if g.kind[n] == INDICATOR:
        c.states[n, :state_words] = 0
        c.states[n, g.leaf[n] // WORD] = np.int64(1) << (g.leaf[n] % WORD)
        return
    for w in range(words):
        c.below[n, w] = 0
    for w in range(state_words):
        c.states[n, w] = 0
    for e in range(g.start[n], g.start[n] + g.degree[n]):
        child = g.child[e]
        if g.kind[child] != INDICATOR:
            for w in range(words):
                c.below[n, w] |= c.below[child, w]
        if g.kind[child] != PARAMETER:
            for w in range(state_words):
                c.states[n, w] |= c.states[child, w]


@plain
def _find_beside(g, c, n, words, state_words):
    """Find what lies beside a sum or a product, whose parents are known, and whether it always does."""
    for w in range(words):
        c.beside[n, w] = 0
        c.always[n, w] = -1 if g.head[n] >= 0 else 0
    for w in range(state_words):
        c.around[n, w] = 0
    e = g.head[n]
    while e >= 0:
        p = g.parent[e]
        if g.kind[p] == PRODUCT:
            for w in range(words):
                siblings = c.below[p, w] & ~c.below[n, w]
                c.beside[n, w] |= c.beside[p, w] | siblings
                c.always[n, w] &= c.always[p, w] | siblings
            for w in range(state_words):
                c.around[n, w] |= c.around[p, w] | (c.states[p, w] & ~c.states[n, w])
        else:
            for w in range(words):
                c.beside[n, w] |= c.beside[p, w]
                c.always[n, w] &= c.always[p, w]
            for w in range(state_words):
                c.around[n, w] |= c.around[p, w]
        e = g.later[e]


@plain
def _add(cost, members, others, c, length, sign):
    """Add the terms of the first `length` used variables to the rows of the distributions that are in both sets."""
    variables = cost.shape[1]
    dense = 4 * length > variables
    for w in range(len(members)):
        left = members[w] & others[w]
        while left:
            bit = left & -left
            left ^= bit
            row = cost[w * WORD + count_bits(bit - 1)]
            if dense:
                for v in range(variables):
                    row[v] += sign * c.terms[v]
            else:
                for k in range(length):
                    row[c.used[k]] += sign * c.terms[c.used[k]]


@plain
def _list(g, c, n, without):
    """List the variables in the scope of a node that are not in that of another (-1: of none); clear all terms."""
    length = 0
    c.terms[:] = 0
    for w in range(g.scope.shape[1]):
        left = g.scope[n, w] if without < 0 else g.scope[n, w] & ~g.scope[without, w]
        while left:
            bit = left & -left
            left ^= bit
            c.used[length] = w * WORD + count_bits(bit - 1)
            length += 1
    return length


@plain
def _meet(a, b):
    for w in range(len(b)):
        if a[w] & b[w]:
            return True
    return False


@plain
def _decided(g, c, n):
    """Return the variable that a sum decides, or of which a product has a value; -1 if there is none."""
    if g.kind[n] == SUM:
        n = g.child[g.start[n]]
    for e in range(g.start[n], g.start[n] + g.degree[n]):
        if g.kind[g.child[e]] == INDICATOR:
            return c.variable[g.leaf[g.child[e]]]
    return -1


@plain
def _add_terms(g, c, cost, first_state, n, only, sign):
    """Add the terms of a sum or a product to the costs, for the distributions in the set `only`."""
    degree, words = g.degree[n], len(only)
    below, beside, always = c.below[n, :words], c.beside[n, :words], c.always[n, :words]
    has_below, has_beside = _meet(below, only), _meet(beside, only)
    if not has_below and not has_beside:
        return
    decided = _decided(g, c, n)
    if has_below:
        c.terms[:] = -degree
        for w in range(g.scope.shape[1]):
            left = g.scope[n, w]
            while left:
                bit = left & -left
                left ^= bit
                c.terms[w * WORD + count_bits(bit - 1)] = 0
        for w in range(c.around.shape[1]):
            left = c.around[n, w]
            while left:
                bit = left & -left
                left ^= bit
                c.terms[c.variable[w * WORD + count_bits(bit - 1)]] += degree
        length = 0
        for v in range(len(c.terms)):
            if c.terms[v] != 0:
                c.used[length] = v
                length += 1
        _add(cost, below, only, c, length, sign)
        if g.kind[n] == PRODUCT:
            for e in range(g.start[n], g.start[n] + degree):
                child = g.child[e]
                if g.kind[child] == INDICATOR or not _meet(c.below[child, :words], only):
                    continue
                length = _list(g, c, n, child)
                for k in range(length):
                    v = c.used[k]
                    if v != decided:
                        c.terms[v] = 4 * (first_state[v + 1] - first_state[v]) - (2 if degree == 2 else 1)
                _add(cost, c.below[child, :words], only, c, length, sign)
    if has_beside:
        length = _list(g, c, n, -1)
        for k in range(length):
            v = c.used[k]
            c.terms[v] = degree * (first_state[v + 1] - first_state[v])
        if decided >= 0:
            c.terms[decided] = degree - 1 if g.kind[n] == PRODUCT and degree > 2 else 0
        _add(cost, beside, only, c, length, sign)
        if _meet(always, only):
            for k in range(length):
                c.terms[c.used[k]] = -degree
            _add(cost, always, only, c, length, sign)


@plain
def _correct_always(g, c, cost, n, words):
    """Account for a change of `always` of a node; `before` has its former value."""
    different = False
    for w in range(words):
        different |= ((c.before[w] ^ c.always[n, w]) & ~c.fresh[w]) != 0
    if not different:
        return
    length = _list(g, c, n, -1)
    for k in range(length):
        c.terms[c.used[k]] = g.degree[n]
    for w in range(words):
        c.before[w] &= ~c.fresh[w]
    _add(cost, c.before[:words], c.everything, c, length, 1)
    for w in range(words):
        c.before[w] = c.always[n, w] & ~c.fresh[w]
    _add(cost, c.before[:words], c.everything, c, length, -1)


@jit
def start_costs(g, s, c, cost, n_parts, first_state):
    """Count the costs of all splits."""
    words, state_words = (n_parts - 1) // WORD + 1, c.states.shape[1]
    cost[:n_parts] = 0
    find_sets(g, s, c, n_parts)
    count = list_nodes(g, s)
    for i in range(count):
        if g.kind[s.side_d[i]] >= SUM:
            _add_terms(g, c, cost, first_state, s.side_d[i], c.everything[:words], 1)


@jit
def find_sets(g, s, c, n_parts):
    """Find the sets of all nodes; the costs stay as they are."""
    words, state_words = (n_parts - 1) // WORD + 1, c.states.shape[1]
    count = list_nodes(g, s)
    for i in range(count):
        _find_below(g, c, s.side_d[i], words, state_words)
    for i in range(count - 1, -1, -1):
        if g.kind[s.side_d[i]] >= SUM:
            _find_beside(g, c, s.side_d[i], words, state_words)


@jit
def take_away(g, s, c, cost, n_parts, first_state):
    """Take away the terms of the nodes that the split just counted will change."""
    stamp = g.numbers[STAMP]
    only = c.everything[: (n_parts - 1) // WORD + 1]
    for group in range(3):
        for i in range(s.numbers[group]):
            n = s.side_d[i] if group == 0 else s.side_v[i] if group == 1 else s.ancestors[i, 0]
            if group == 1 and s.asked[n] != stamp:
                continue
            c.changed[n] = stamp
            _add_terms(g, c, cost, first_state, n, only, -1)
    return stamp


@jit
def put_back(g, s, c, cost, part, first, n_parts, n_nodes, stamp, first_state):
    """Find the sets anew after a part was split, and correct the costs.

    The new parts begin with `first`, the new nodes with `n_nodes`.
    """
    words, state_words = (n_parts - 1) // WORD + 1, c.states.shape[1]
    c.fresh[:] = 0
    for new in range(first, n_parts):
        c.fresh[new // WORD] |= np.int64(1) << (new % WORD)
    cost[first:n_parts] = 0
    count = list_nodes(g, s)
    for i in range(count):
        _find_below(g, c, s.side_d[i], words, state_words)
    for i in range(count - 1, -1, -1):
        n = s.side_d[i]
        if g.kind[n] < SUM:
            continue
        old = n < n_nodes and c.changed[n] != stamp
        if old:
            c.before[:words] = c.always[n, :words]
            c.before[part // WORD] &= ~(np.int64(1) << (part % WORD))
        _find_beside(g, c, n, words, state_words)
        if old:
            _correct_always(g, c, cost, n, words)
        _add_terms(g, c, cost, first_state, n, c.fresh[:words] if old else c.everything[:words], 1)
