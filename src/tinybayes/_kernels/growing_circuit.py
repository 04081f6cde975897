"""A circuit that grows by splits (SplitAC of learning_arithmetic_circuits): what a split costs, and doing it.

Nodes and edges lie in pools. The children of a node are a stretch of the edge pool; all edges that lead to a node form
a linked list, so that its parents are found. Indicators come first and are numbered by state; parameters, sums and
products follow. A node knows its *scope*: the variables whose indicators lie below it, as a set of bits.

A split of the distribution D on the variable V copies, for each value v of V, what lies between D or V and their mutual
ancestors. Scopes make these sets easy to find: going up from the parameters of D, the nodes without V in their scope
are what must be copied on the side of D, and the first nodes with V in their scope are the mutual ancestors. On the
side of V, everything below a mutual ancestor that has V in its scope is copied, restricted to one value.

No node has a single child: a copy that would have one is replaced by that child.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit, plain
from tinybayes._kernels.bit_counts import ones
from tinybayes._kernels.circuit_graph import INDICATOR, PARAMETER, PRODUCT, SUM

WORD = 63  # bits used of a word
NO_LIMIT = 2**60
FEW = 6  # children that are looked through without a hint
N_NODES, N_EDGES, LIVE, ROOT, STAMP, MOST = 0, 1, 2, 3, 4, 5  # indices in `Graph.numbers`
SIDE_D, SIDE_V, ANCESTORS = 0, 1, 2  # indices in `Scratch.numbers`


class Graph(NamedTuple):
    """The pools.

    ``numbers`` holds the used nodes, the used edges, the live edges, the root, the last stamp given out, and the most
    states that a variable has.
    """

    kind: np.ndarray
    start: np.ndarray
    degree: np.ndarray
    head: np.ndarray  # the first edge that leads here, -1 for none
    above: np.ndarray  # how many edges lead here
    leaf: np.ndarray  # of an indicator its state; of a parameter its part
    scope: np.ndarray
    child: np.ndarray
    parent: np.ndarray
    later: np.ndarray
    earlier: np.ndarray
    numbers: np.ndarray


class Scratch(NamedTuple):
    """Working memory; ``mark`` and ``seen`` hold stamps, so that nothing has to be cleared."""

    mark: np.ndarray  # on the side of D, and mutual ancestors
    seen: np.ndarray  # on the side of V, or listed
    values: np.ndarray  # of a node on the side of V: its values of V; on the side of D: those it is copied for
    position: np.ndarray  # in the list of its side
    asked: np.ndarray  # stamped where a node on the side of V is to be copied
    dead: np.ndarray  # edges to it that will go
    stack: np.ndarray
    side_d: np.ndarray
    side_v: np.ndarray
    ancestors: np.ndarray  # rows: mutual ancestor, its child above D, its child above V
    numbers: np.ndarray  # lengths of the three lists
    copies: np.ndarray
    via: np.ndarray  # of a product on the side of V: its child there
    hint: np.ndarray  # edges that `find_child` found; its length is a power of two


@jit
def add_node(g, kind, leaf, children):
    """Add a node whose children are given; return its number. Its scope is left empty for leaves."""
    n = g.numbers[N_NODES]
    g.numbers[N_NODES] += 1
    g.kind[n] = kind
    g.leaf[n] = leaf
    g.head[n] = -1
    g.above[n] = 0
    g.scope[n, :] = 0
    set_children(g, n, children)
    return n


@jit
def set_children(g, n, children):
    """Give a node without children these ones, in fresh room of the pool."""
    g.start[n] = g.numbers[N_EDGES]
    g.degree[n] = len(children)
    for c in children:
        e = g.numbers[N_EDGES]
        g.numbers[N_EDGES] += 1
        link(g, e, n, c)
        for w in range(g.scope.shape[1]):
            g.scope[n, w] |= g.scope[c, w]


@plain
def link(g, e, parent, child):
    g.parent[e], g.child[e] = parent, child
    first = g.head[child]
    g.later[e], g.earlier[e] = first, -1
    if first >= 0:
        g.earlier[first] = e
    g.head[child] = e
    g.above[child] += 1
    g.numbers[LIVE] += 1


@plain
def unlink(g, e):
    before, after, child = g.earlier[e], g.later[e], g.child[e]
    if before >= 0:
        g.later[before] = after
    else:
        g.head[child] = after
    if after >= 0:
        g.earlier[after] = before
    g.above[child] -= 1
    g.numbers[LIVE] -= 1


@plain
def replace(g, e, parent, child):
    """Let an edge lead to another child."""
    if g.child[e] != child:
        unlink(g, e)
        link(g, e, parent, child)


@plain
def has(g, n, variable):
    """Tell whether a node has indicators of the variable below it."""
    return (g.scope[n, variable // WORD] >> (variable % WORD)) & 1


@plain
def find_child(g, s, n, variable):
    """Return the child of a product that has the variable in its scope.

    Where there are many children, the edge that was found last is tried first; it cannot be wrong, since in a
    decomposable circuit only one child has the variable.
    """
    start, degree = g.start[n], g.degree[n]
    slot = 0
    if degree > FEW:
        slot = (n * 40503 + variable * 9176) & (len(s.hint) - 1)
        e = s.hint[slot]
        if start <= e < start + degree and has(g, g.child[e], variable):
            return g.child[e]
    for e in range(start, start + degree):
        if has(g, g.child[e], variable):
            if degree > FEW:
                s.hint[slot] = e
            return g.child[e]
    return -1


@plain
def _ancestor_values(g, s, m, n, variable, first_state, cardinality):
    """List a mutual ancestor with its children above D (`n`) and above V; note the values of V that lie below it.

    Below the other child lie all values, or it is an indicator (`edge_costs.py` says why).
    """
    v, a = find_child(g, s, m, variable), s.numbers[ANCESTORS]
    s.ancestors[a, 0], s.ancestors[a, 1], s.ancestors[a, 2] = m, n, v
    s.numbers[ANCESTORS] += 1
    if g.kind[v] == INDICATOR:
        s.values[m] = np.int64(1) << (g.leaf[v] - first_state)
    else:
        s.values[m] = (np.int64(1) << cardinality) - 1


@plain
def find_upper_region(g, s, first_parameter, states, variable, first_state, cardinality, least, claim, limit):
    """List the nodes on the side of the distribution with these parameters, parents first, and the mutual ancestors.

    Afterwards ``values`` tells for which values of the variable each of them would be copied: a node on the side of D
    has the values of its parents, so each is finished when they are. To `least` the edges that this adds are added,
    less the `claim` on each mutual ancestor (`edge_cost`); returns it, and the edges and the nodes that are written.
    The walk ends early once `least` is above `limit`.
    """
    g.numbers[STAMP] += 1
    stamp = g.numbers[STAMP]
    s.numbers[SIDE_D], s.numbers[SIDE_V], s.numbers[ANCESTORS] = 0, 0, 0
    written, nodes = 0, 0
    for j in range(states):
        s.stack[0], depth = first_parameter + j, 1
        s.position[first_parameter + j] = g.head[first_parameter + j]  # the next edge to look at, until listed
        while depth:
            n = s.stack[depth - 1]
            e = s.position[n]
            if e >= 0:
                s.position[n] = g.later[e]
                p = g.parent[e]
                if s.mark[p] != stamp:
                    s.mark[p] = stamp
                    if not has(g, p, variable):
                        s.values[p], s.position[p], s.stack[depth] = 0, g.head[p], p
                        depth += 1
                        continue
                    _ancestor_values(g, s, p, n, variable, first_state, cardinality)
                    times = count_bits(s.values[p])
                    if times > 1:  # with a single value nothing on the side of V needs to be restricted
                        # The mutual ancestor becomes the sum itself where it has no other children.
                        least += 4 * times - (2 if g.degree[p] == 2 else 1) - claim
                        written += 4 * times
                        nodes += times + 1
                s.values[n] |= s.values[p]
                continue
            depth -= 1
            if depth:  # else it is a parameter
                s.values[s.stack[depth - 1]] |= s.values[n]
                s.position[n] = s.numbers[SIDE_D]
                s.side_d[s.numbers[SIDE_D]] = n
                s.numbers[SIDE_D] += 1
                times = count_bits(s.values[n])
                least += g.degree[n] * (times - 1)
                written += g.degree[n] * times
                nodes += times
                if least > limit:
                    return least, written, nodes
    return least, written, nodes


@plain
def _list_side_v(g, s, top_node, variable, first_state, cardinality, stamp, least, claim, limit):
    """Walk down from a node along the variable; list every node once, children first, with its values.

    ``least`` bounds the edges that the split adds, without those of nodes that are not listed yet. Returns it with the
    nodes that were, less the `claim` of each sum over V; the walk ends early if it is above `limit`.
    """
    if s.seen[top_node] == stamp:
        return least
    s.seen[top_node] = stamp
    s.values[top_node] = 0
    s.dead[top_node] = 0
    s.stack[0] = top_node
    s.position[top_node] = g.start[top_node]  # the next edge to look at, until the node is listed
    depth = 1
    while depth:
        n = s.stack[depth - 1]
        e = s.position[n]
        if e < g.start[n] + g.degree[n]:
            if g.kind[n] == SUM:  # every child has the variable
                c = g.child[e]
                s.position[n] = e + 1
            else:  # only one child has it
                c = find_child(g, s, n, variable)
                s.via[n] = c
                s.position[n] = g.start[n] + g.degree[n]
            if g.kind[c] == INDICATOR:
                s.values[n] |= np.int64(1) << (g.leaf[c] - first_state)
            elif s.seen[c] == stamp:
                s.values[n] |= s.values[c]
            else:
                s.seen[c] = stamp
                s.values[c] = 0
                s.dead[c] = 0
                s.position[c] = g.start[c]
                s.stack[depth] = c
                depth += 1
            continue
        depth -= 1
        if depth:
            s.values[s.stack[depth - 1]] |= s.values[n]
        s.position[n] = s.numbers[SIDE_V]
        s.side_v[s.numbers[SIDE_V]] = n
        s.numbers[SIDE_V] += 1
        if not _decides(g, s, n):
            least += g.degree[n] * (cardinality - 1)
            if least > limit:
                return least
        elif g.kind[n] == SUM:
            least -= claim
    return least


@plain
def _decides(g, s, n):
    """Tell whether a node on the side of V is a sum over V, or a product with one of its values."""
    if g.kind[n] == SUM:
        n = g.child[g.start[n]]
    return g.kind[n] == PRODUCT and g.kind[s.via[n]] == INDICATOR


@plain
def count_bits(bits):
    """Return how many bits are set."""
    return np.int64(ones(np.uint64(bits)))


@plain
def _copy_edges(g, s, n, bit):
    """Edges of the copy of a node on the side of V for one value; 0 where it is replaced by its only child."""
    if g.kind[n] == PRODUCT:
        kept = g.degree[n] - (g.kind[s.via[n]] == INDICATOR)
    else:
        kept = 0
        for e in range(g.start[n], g.start[n] + g.degree[n]):
            kept += (s.values[g.child[e]] & bit) != 0
    return kept if kept > 1 else 0


@plain
def _most_taken_away(g, first_state, cardinality):
    """Return how many edges copying the side of V can take away: those of sums over V, and two of each of their terms.

    Every sum over V has one term with the first value.
    """
    sums = 0
    e = g.head[first_state]
    while e >= 0:
        sums += g.above[g.parent[e]]
        e = g.later[e]
    return 3 * cardinality * sums


@plain
def edge_cost(g, s, first_parameter, states, variable, first_state, cardinality, limit):
    """Return the edges that a split adds, and the edges and the nodes that it writes at most.

    Counting ends early once the first number is sure to be above `limit`; then it is a lower bound. Otherwise the lists
    of both sides (that of V with children first) and of the mutual ancestors are filled.

    The bound needs to know what the side of V may take away. It takes edges away only where a sum over V disappears: k
    of its own, and up to two of each of its k terms. If no variable has more states than V, then no node on this side
    takes away more than 3k, with all below it:

    - a product adds 2(k - 1) edges or more, and leaves k + 2 at most of the 3k of its child;
    - a sum over another variable adds k - 1 or more for each of its children, and leaves 3 of each: 3k at most.

    What is shared disappears with the last node above it, and counts there alone. A mutual ancestor adds 4k - 2 edges,
    which is no less. So each mutual ancestor holds back a `claim` of 3k until what is below it was listed.
    """
    start, claim = 0, 0
    if limit < NO_LIMIT:
        if cardinality == g.numbers[MOST]:
            claim = 3 * cardinality
        else:
            start = -_most_taken_away(g, first_state, cardinality)
    of_split = first_parameter, states, variable, first_state, cardinality
    least, written, nodes = find_upper_region(g, s, *of_split, start, claim, limit)
    stamp, added = g.numbers[STAMP], least - start
    for a in range(s.numbers[ANCESTORS]):
        if least > limit:
            return least, written, nodes
        v = s.ancestors[a, 2]
        if g.kind[v] != INDICATOR:
            added += claim
            least = _list_side_v(g, s, v, variable, first_state, cardinality, stamp, least, claim, limit)
            if least > limit:
                return least, written, nodes
            least += claim
            s.dead[v] += 1
            s.asked[v] = stamp
    if least > limit:
        return least, written, nodes
    for i in range(s.numbers[SIDE_V] - 1, -1, -1):  # parents first
        n = s.side_v[i]
        if s.asked[n] != stamp:
            continue
        dying = s.dead[n] == g.above[n]
        if g.kind[n] == SUM:
            for e in range(g.start[n], g.start[n] + g.degree[n]):
                s.asked[g.child[e]] = stamp
                s.dead[g.child[e]] += dying
        elif g.kind[s.via[n]] >= SUM:
            s.asked[s.via[n]] = stamp
            s.dead[s.via[n]] += dying
        left = s.values[n]
        while left:
            bit = left & -left
            left ^= bit
            edges = _copy_edges(g, s, n, bit)
            added += edges
            written += edges
            nodes += 1
        if dying:
            added -= g.degree[n]
    return added, written, nodes


@plain
def list_nodes(g, s):
    """List all nodes below the root in ``side_d``, children first; return how many there are."""
    g.numbers[STAMP] += 1
    return _list_below(g, s, g.numbers[ROOT], 0, g.numbers[STAMP], True)


@plain
def _list_below(g, s, top, length, stamp, everything):
    """List a node and all nodes below it, or those on the side of D, children first; return the new length."""
    s.seen[top] = stamp
    s.position[top] = g.start[top]
    s.stack[0] = top
    depth = 1
    while depth:
        n = s.stack[depth - 1]
        e = s.position[n]
        if e < g.start[n] + g.degree[n]:
            c = g.child[e]
            s.position[n] = e + 1
            if s.seen[c] != stamp and (everything or (g.kind[c] >= SUM and s.mark[c] == stamp)):
                s.seen[c] = stamp
                s.position[c] = g.start[c]
                s.stack[depth] = c
                depth += 1
            continue
        depth -= 1
        s.position[n] = length
        s.side_d[length] = n
        length += 1
    return length


@jit
def split(g, s, first_parameter, states, variable, first_state, cardinality, new_parameters):
    """Split a distribution on a variable; `new_parameters[v]` is the first parameter node of the part with value v.

    `edge_cost` must have been called for the same split just before, and the pools must have room for what it said.
    """
    stamp = g.numbers[STAMP]
    length = 0  # the side of D is listed anew, children first
    for a in range(s.numbers[ANCESTORS]):
        top = s.ancestors[a, 1]
        if g.kind[top] != PARAMETER and s.seen[top] != stamp:
            length = _list_below(g, s, top, length, stamp, False)
    _copy_side_d(g, s, first_parameter, states, cardinality, new_parameters, stamp)
    _copy_side_v(g, s, variable, cardinality, stamp)
    for a in range(s.numbers[ANCESTORS]):
        _join(g, s, a, first_parameter, first_state, cardinality, new_parameters)
    for i in range(s.numbers[SIDE_D] - 1, -1, -1):
        if count_bits(s.values[s.side_d[i]]) > 1:
            _cut_off(g, s.side_d[i])
    for i in range(s.numbers[SIDE_V] - 1, -1, -1):
        if g.above[s.side_v[i]] == 0:
            _cut_off(g, s.side_v[i])


@jit
def _copy_side_d(g, s, first_parameter, states, cardinality, new_parameters, stamp):
    for i in range(s.numbers[SIDE_D]):
        n = s.side_d[i]
        single = count_bits(s.values[n]) == 1
        for v in range(cardinality):
            if not (s.values[n] >> v) & 1:
                continue
            if single:  # the node stays; only its children may be replaced
                _replace_children(g, s, n, v, first_parameter, states, cardinality, new_parameters, stamp)
                s.copies[i * cardinality + v] = n
                continue
            children = s.stack[: g.degree[n]]
            for k in range(g.degree[n]):
                c = g.child[g.start[n] + k]
                if first_parameter <= c < first_parameter + states:
                    c = new_parameters[v] + c - first_parameter
                elif g.kind[c] >= SUM and s.mark[c] == stamp:
                    c = s.copies[s.position[c] * cardinality + v]
                children[k] = c
            s.copies[i * cardinality + v] = add_node(g, g.kind[n], -1, children)


@jit
def _replace_children(g, s, n, v, first_parameter, states, cardinality, new_parameters, stamp):
    for e in range(g.start[n], g.start[n] + g.degree[n]):
        c = g.child[e]
        if first_parameter <= c < first_parameter + states:
            replace(g, e, n, new_parameters[v] + c - first_parameter)
        elif g.kind[c] >= SUM and s.mark[c] == stamp:
            replace(g, e, n, s.copies[s.position[c] * cardinality + v])


@jit
def _copy_side_v(g, s, variable, cardinality, stamp):
    base = s.numbers[SIDE_D] * cardinality
    for i in range(s.numbers[SIDE_V]):
        n = s.side_v[i]
        if s.asked[n] != stamp:
            continue
        for v in range(cardinality):
            if not (s.values[n] >> v) & 1:
                continue
            kept = 0
            for e in range(g.start[n], g.start[n] + g.degree[n]):
                c = g.child[e]
                if not has(g, c, variable):
                    s.stack[kept] = c
                    kept += 1
                elif g.kind[c] != INDICATOR and (s.values[c] >> v) & 1:
                    s.stack[kept] = s.copies[base + s.position[c] * cardinality + v]
                    kept += 1
            made = s.stack[0] if kept == 1 else add_node(g, g.kind[n], -1, s.stack[:kept])
            s.copies[base + i * cardinality + v] = made


@jit
def _join(g, s, a, first_parameter, first_state, cardinality, new_parameters):
    """Put a sum over the values of the variable in the place of the two children of a mutual ancestor."""
    m, d, v_node = s.ancestors[a, 0], s.ancestors[a, 1], s.ancestors[a, 2]
    values = s.values[m]
    single = count_bits(values) == 1
    terms = 0
    base = s.numbers[SIDE_D] * cardinality
    below = 0
    products = np.empty(cardinality, np.int32)
    three = np.empty(3, np.int32)
    for v in range(cardinality):
        if not (values >> v) & 1:
            continue
        if g.kind[d] == PARAMETER:
            below = new_parameters[v] + d - first_parameter
        else:
            below = s.copies[s.position[d] * cardinality + v]
        if not single:
            three[0], three[1] = first_state + v, s.copies[base + s.position[v_node] * cardinality + v]
            three[2] = below
            products[terms] = add_node(g, PRODUCT, -1, three)
            terms += 1
    if not single and g.degree[m] == 2:
        for e in range(g.start[m], g.start[m] + 2):
            unlink(g, e)
        g.kind[m] = SUM
        set_children(g, m, products[:terms])
        return
    joined = below if single else add_node(g, SUM, -1, products[:terms])
    last = g.start[m] + g.degree[m] - 1
    for e in range(g.start[m], last + 1):
        if g.child[e] == d:
            replace(g, e, m, joined)
            break
    if single:
        return
    for e in range(g.start[m], last + 1):
        if g.child[e] == v_node:
            unlink(g, e)
            if e != last:
                moved = g.child[last]
                unlink(g, last)
                link(g, e, m, moved)
            g.degree[m] -= 1
            break


@jit
def _cut_off(g, n):
    """Take away the edges to the children of a node that nothing leads to any more."""
    for e in range(g.start[n], g.start[n] + g.degree[n]):
        unlink(g, e)
    g.degree[n] = 0
