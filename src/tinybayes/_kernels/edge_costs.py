"""The edges that every possible split would cost, kept up to date while the circuit grows: the greedy rule of LearnAC.

What a split of the distribution D on the variable V costs (`split_cost.edge_cost`) is a sum over nodes n, since
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

So after a split all costs are right again if the terms of the nodes that it changed are replaced (`take_away` and
`put_back`). The new distributions inherit the costs of the split one, less the terms of unchanged nodes that only other
values of the variable lead to. Otherwise ``below`` and ``beside`` of an unchanged node stay as they are, since it is
used for the same assignments as before; ``always`` may change, and so may, then, what lies below the node.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import inlined, jit, plain
from tinybayes._kernels.circuit_graph import INDICATOR, PARAMETER, PRODUCT, SUM
from tinybayes._kernels.growing_circuit import ROOT, SIDE_V, STAMP, WORD, count_bits, list_nodes


class Costs(NamedTuple):
    """Sets of distributions (as numbers of parts) and of states, as bits, for every node.

    A split changes a few words of the first three at thousands of nodes: the same word of all nodes lies together.
    """

    below: np.ndarray
    beside: np.ndarray
    always: np.ndarray
    states: np.ndarray  # below the node
    around: np.ndarray  # below a sibling of it, or of a node above it, under a common product
    changed: np.ndarray  # of a node: the stamp of the last split that changed it
    touched: np.ndarray  # of a node: the stamp of the last split that changed a parent of it, or what is beside one
    terms: np.ndarray  # (variables)
    used: np.ndarray  # the variables whose terms are not zero
    everything: np.ndarray  # a set of distributions: all
    fresh: np.ndarray  # a set of distributions: the new ones
    some: np.ndarray  # two sets of distributions
    variable: np.ndarray  # of every state


@plain
def _find_below(g, c, n, begin, end):
    """Find these words of what lies below a node."""
    if g.kind[n] == PARAMETER:
        for w in range(begin, end):
            c.below[w, n] = np.int64(1) << (g.leaf[n] % WORD) if w == g.leaf[n] // WORD else 0
        return
    for w in range(begin, end):
        c.below[w, n] = 0
    for e in range(g.start[n], g.start[n] + g.degree[n]):
        child = g.child[e]
        for w in range(begin, end):
            c.below[w, n] |= c.below[w, child]


@plain
def _find_states(g, c, n):
    c.states[n, :] = 0
    if g.kind[n] == INDICATOR:
        c.states[n, g.leaf[n] // WORD] = np.int64(1) << (g.leaf[n] % WORD)
    for e in range(g.start[n], g.start[n] + g.degree[n]):
        child = g.child[e]
        for w in range(c.states.shape[1]):
            c.states[n, w] |= c.states[child, w]


@plain
def _find_beside(g, c, n, begin, end):
    """Find these words of what lies beside a sum or a product, sometimes and always; the sets of its parents are known.

    Nothing lies beside the root.
    """
    for w in range(begin, end):
        c.beside[w, n] = 0
        c.always[w, n] = -1 if g.head[n] >= 0 else 0
    e = g.head[n]
    while e >= 0:
        p = g.parent[e]
        e = g.later[e]
        if g.kind[p] == PRODUCT:
            for w in range(begin, end):
                siblings = c.below[w, p] & ~c.below[w, n]
                c.beside[w, n] |= c.beside[w, p] | siblings
                c.always[w, n] &= c.always[w, p] | siblings
        else:
            for w in range(begin, end):
                c.beside[w, n] |= c.beside[w, p]
                c.always[w, n] &= c.always[w, p]


@plain
def _find_around(g, c, n):
    c.around[n, :] = 0
    e = g.head[n]
    while e >= 0:
        p = g.parent[e]
        e = g.later[e]
        for w in range(c.around.shape[1]):
            c.around[n, w] |= c.around[p, w]
            if g.kind[p] == PRODUCT:
                c.around[n, w] |= c.states[p, w] & ~c.states[n, w]


@plain
def _add(cost, members, n, only, begin, end, c, length):
    """Add the terms of the used variables to the rows of the distributions in column n of `members` and in `only`."""
    variables = cost.shape[1]
    dense = 6 * length > variables
    for w in range(begin, end):
        left = members[w, n] & only[w]
        while left:
            bit = left & -left
            left ^= bit
            part = w * WORD + count_bits(bit - 1)
            if dense:
                for v in range(variables):
                    cost[part, v] += c.terms[v]
            else:
                for k in range(length):
                    v = c.used[k]
                    cost[part, v] += c.terms[v]


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
def _meet(members, n, only, begin, end):
    for w in range(begin, end):  # noqa: SIM110 - Numba has no generators here
        if members[w, n] & only[w]:
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
def _list_copies(g, c, n, sign):
    """List the edges of the copies of a node on the side of D."""
    c.terms[:] = -sign * g.degree[n]
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
            c.terms[c.variable[w * WORD + count_bits(bit - 1)]] += sign * g.degree[n]
    length = 0
    for v in range(len(c.terms)):
        if c.terms[v] != 0:
            c.used[length] = v
            length += 1
    return length


@plain
def _list_sums(g, c, first_state, n, child, sign):
    """List the edges of the sums that replace this child, above D, and another child of a mutual ancestor."""
    decided = _decided(g, c, n)
    gone = 2 if g.degree[n] == 2 else 1
    length = _list(g, c, n, child)
    for k in range(length):
        v = c.used[k]
        if v != decided:
            c.terms[v] = sign * (4 * (first_state[v + 1] - first_state[v]) - gone)
    return length


@plain
def _list_restricted(g, c, first_state, n, sign):
    """List the edges of the copies of a node on the side of V."""
    degree, decided = g.degree[n], _decided(g, c, n)
    length = _list(g, c, n, -1)
    for k in range(length):
        v = c.used[k]
        c.terms[v] = sign * degree * (first_state[v + 1] - first_state[v])
    if decided >= 0:  # a copy with a single child is replaced by it
        c.terms[decided] = sign * (degree - 1) if g.kind[n] == PRODUCT and degree > 2 else 0
    return length


@plain
def _list_gone(g, c, n, sign):
    """List the edges of a node on the side of V that disappears."""
    length = _list(g, c, n, -1)
    for k in range(length):
        c.terms[c.used[k]] = -sign * g.degree[n]
    return length


@plain
def _add_terms(g, c, cost, first_state, n, end, sign):
    """Add the terms of a sum or a product to the costs."""
    if _meet(c.below, n, c.everything, 0, end):
        _add(cost, c.below, n, c.everything, 0, end, c, _list_copies(g, c, n, sign))
        for e in range(g.start[n], g.start[n] + g.degree[n] if g.kind[n] == PRODUCT else g.start[n]):
            child = g.child[e]
            if g.kind[child] != INDICATOR and _meet(c.below, child, c.everything, 0, end):
                length = _list_sums(g, c, first_state, n, child, sign)
                _add(cost, c.below, child, c.everything, 0, end, c, length)
    if _meet(c.beside, n, c.everything, 0, end):
        _add(cost, c.beside, n, c.everything, 0, end, c, _list_restricted(g, c, first_state, n, sign))
        if _meet(c.always, n, c.everything, 0, end):
            _add(cost, c.always, n, c.everything, 0, end, c, _list_gone(g, c, n, sign))


@plain
def _take_lost(g, c, cost, first_state, n, begin, end):
    """Take the terms of an unchanged node away from new distributions that are not where the split one was.

    The sets of these, of those below and of those beside, are the columns of `some`.
    """
    if _meet(c.some, 0, c.fresh, begin, end):
        _add(cost, c.some, 0, c.fresh, begin, end, c, _list_copies(g, c, n, -1))
        for e in range(g.start[n], g.start[n] + g.degree[n] if g.kind[n] == PRODUCT else g.start[n]):
            child = g.child[e]
            if g.kind[child] != INDICATOR and _meet(c.below, child, c.fresh, begin, end):
                _add(cost, c.some, 0, c.fresh, begin, end, c, _list_sums(g, c, first_state, n, child, -1))
    if _meet(c.some, 1, c.fresh, begin, end):
        _add(cost, c.some, 1, c.fresh, begin, end, c, _list_restricted(g, c, first_state, n, -1))


@plain
def _find_beside_again(g, c, cost, n, begin, end):
    """Find these words of what lies beside an unchanged node; correct the costs, and tell whether `always` changed."""
    for w in range(begin, end):
        c.some[w, 1] = c.always[w, n]
    _find_beside(g, c, n, begin, end)
    different = False
    for w in range(begin, end):
        before, now = c.some[w, 1], c.always[w, n]
        c.some[w, 0], c.some[w, 1] = before & ~now, now & ~before
        different |= before != now
    for row, sign in ((0, -1), (1, 1)):
        if different and _meet(c.some, row, c.everything, begin, end):
            _add(cost, c.some, row, c.everything, begin, end, c, _list_gone(g, c, n, sign))
    return different


@plain
def _touch_children(g, s, c, n, stamp, listed, length):
    """Mark the children of a node; put those that were not listed in a queue, and return its length."""
    for e in range(g.start[n], g.start[n] + g.degree[n]):
        child = g.child[e]
        if g.kind[child] >= SUM and c.touched[child] != stamp:
            c.touched[child] = stamp
            if s.seen[child] != listed:
                s.side_v[length] = child
                length += 1
    return length


@plain
def _keep(g, c, cost, first_state, n, own, bit, begin, end, stamp):
    """Find the sets of an unchanged node after a split, and correct the costs; tell whether `always` changed.

    ``bit`` of the word ``own`` stands for the split distribution; the new ones have its terms, where it had any.
    """
    had_below, had_beside, had_always = c.below[own, n] & bit, c.beside[own, n] & bit, c.always[own, n] & bit
    c.always[own, n] &= ~bit
    different = False
    if had_always:
        for w in range(begin, end):
            c.always[w, n] |= c.fresh[w]
    if c.touched[n] == stamp:
        c.touched[n] = 0
        different = _find_beside_again(g, c, cost, n, 0, end)
    else:
        _find_beside_again(g, c, cost, n, begin, end)
    for w in range(begin, end):
        c.some[w, 0] = c.fresh[w] & ~c.below[w, n] if had_below else 0
        c.some[w, 1] = c.fresh[w] & ~c.beside[w, n] if had_beside else 0
    _take_lost(g, c, cost, first_state, n, begin, end)
    c.beside[own, n] &= ~bit
    c.below[own, n] &= ~bit
    return different


@inlined
def _keep_word(g, c, n, own, bit, w):
    """Do what `_keep` does where the new distributions lie in one word, and nothing is lost; else do nothing.

    Nearly all nodes are done with here. ``always`` stays as it is.
    """
    below, beside, always = c.below[w, n], np.int64(0), np.int64(-1)
    e = g.head[n]
    while e >= 0:
        p = g.parent[e]
        e = g.later[e]
        siblings = c.below[w, p] & ~below if g.kind[p] == PRODUCT else 0
        beside |= c.beside[w, p] | siblings
        always &= c.always[w, p] | siblings
    lost, before = 0, c.always[w, n]
    if c.below[own, n] & bit:
        lost |= c.fresh[w] & ~below
    if c.beside[own, n] & bit:
        lost |= c.fresh[w] & ~beside
    if c.always[own, n] & bit:
        before |= c.fresh[w]
    if w == own:
        before &= ~bit
    kept = lost == 0 and always == before and g.head[n] >= 0
    if kept:
        c.beside[w, n] = beside
        c.always[w, n] = always
        c.beside[own, n] &= ~bit
        c.below[own, n] &= ~bit
        c.always[own, n] &= ~bit
    return kept


@plain
def _list_related(g, s, c, own, bit, n_nodes, stamp):
    """List the nodes above and beside the split distribution, and the new ones, children first; return how many.

    What is left of the side of V is beside it no longer, and perhaps below none of the others.
    """
    g.numbers[STAMP] += 1
    length = _list_related_below(g, s, c, g.numbers[ROOT], own, bit, n_nodes, 0)
    for i in range(s.numbers[SIDE_V]):
        n = s.side_v[i]
        if s.asked[n] == stamp and g.above[n] > 0 and s.seen[n] != g.numbers[STAMP]:
            length = _list_related_below(g, s, c, n, own, bit, n_nodes, length)
    return length


@plain
def _list_related_below(g, s, c, top, own, bit, n_nodes, length):
    stamp = g.numbers[STAMP]
    s.seen[top], s.position[top], s.stack[0] = stamp, g.start[top], top
    depth = 1
    while depth:
        n = s.stack[depth - 1]
        e = s.position[n]
        if e < g.start[n] + g.degree[n]:
            child = g.child[e]
            s.position[n] = e + 1
            if s.seen[child] != stamp and (
                child >= n_nodes or (g.kind[child] >= SUM and (c.below[own, child] | c.beside[own, child]) & bit)
            ):
                s.seen[child], s.position[child], s.stack[depth] = stamp, g.start[child], child
                depth += 1
            continue
        depth -= 1
        s.side_d[length] = n
        length += 1
    return length


@jit
def find_sets(g, s, c, n_parts):
    """Find the sets of all nodes; the costs stay as they are."""
    end = (n_parts - 1) // WORD + 1
    count = list_nodes(g, s)
    for w in range(end):  # word by word, as they lie in memory
        for i in range(count):
            _find_below(g, c, s.side_d[i], w, w + 1)
        for i in range(count - 1, -1, -1):
            if g.kind[s.side_d[i]] >= SUM:
                _find_beside(g, c, s.side_d[i], w, w + 1)
    for i in range(count):
        _find_states(g, c, s.side_d[i])
    for i in range(count - 1, -1, -1):
        if g.kind[s.side_d[i]] >= SUM:
            _find_around(g, c, s.side_d[i])


@jit
def start_costs(g, s, c, cost, n_parts, first_state):
    """Find the sets of all nodes, and the costs of all splits."""
    cost[:n_parts] = 0
    find_sets(g, s, c, n_parts)
    end = (n_parts - 1) // WORD + 1
    count = list_nodes(g, s)
    for i in range(count):
        if g.kind[s.side_d[i]] >= SUM:
            _add_terms(g, c, cost, first_state, s.side_d[i], end, 1)


@jit
def take_away(g, s, c, cost, n_parts, first_state):
    """Take away the terms of the nodes that the split just counted will change."""
    stamp = g.numbers[STAMP]
    end = (n_parts - 1) // WORD + 1
    for group in range(3):
        for i in range(s.numbers[group]):
            n = s.side_d[i] if group == 0 else s.side_v[i] if group == 1 else s.ancestors[i, 0]
            if s.asked[n] == stamp if group == 1 else count_bits(s.values[n]) > 1:
                c.changed[n] = stamp
                _add_terms(g, c, cost, first_state, n, end, -1)
    return stamp


@plain
def put_back(g, s, c, cost, part, first, n_parts, n_nodes, stamp, first_state):
    """Find the sets anew after a part was split, and correct the costs.

    The new parts begin with `first`, the new nodes with `n_nodes`.
    """
    begin, end, own = first // WORD, (n_parts - 1) // WORD + 1, part // WORD
    bit = np.int64(1) << (part % WORD)
    c.fresh[:] = 0
    for new in range(first, n_parts):
        c.fresh[new // WORD] |= np.int64(1) << (new % WORD)
        for v in range(cost.shape[1]):
            cost[new, v] = cost[part, v]
    count, queue = _list_related(g, s, c, own, bit, n_nodes, stamp), 0
    listed = g.numbers[STAMP]
    for i in range(count):  # children first
        n = s.side_d[i]
        if n >= n_nodes:
            c.changed[n] = stamp
            _find_below(g, c, n, 0, end)
            _find_states(g, c, n)
        elif c.below[own, n] & bit:
            for e in range(g.start[n], g.start[n] + g.degree[n]):
                for w in range(begin, end):
                    c.below[w, n] |= c.below[w, g.child[e]] & c.fresh[w]
    for i in range(count - 1, -1, -1):  # parents first
        n = s.side_d[i]
        if g.kind[n] < SUM:
            continue
        if c.changed[n] == stamp:
            c.below[own, n] &= ~bit
            _find_beside(g, c, n, 0, end)
            _find_around(g, c, n)
            _add_terms(g, c, cost, first_state, n, end, 1)
            c.touched[n] = 0
        elif (begin + 1 == end and c.touched[n] != stamp and _keep_word(g, c, n, own, bit, begin)) or not _keep(
            g, c, cost, first_state, n, own, bit, begin, end, stamp
        ):
            continue
        queue = _touch_children(g, s, c, n, stamp, listed, queue)
    while queue:  # elsewhere only `always` may change
        queue -= 1
        n = s.side_v[queue]
        c.touched[n] = 0
        if _find_beside_again(g, c, cost, n, 0, end):
            queue = _touch_children(g, s, c, n, stamp, -1, queue)
