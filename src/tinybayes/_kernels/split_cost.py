"""What a split of a growing circuit costs: the edges that it adds, found by listing what it would copy.

Going up from the parameters of D gives the nodes on its side and the mutual ancestors; going down from each mutual
ancestor gives the side of V. See `growing_circuit.py` for the names.
"""

import numpy as np

from tinybayes._kernels import plain
from tinybayes._kernels.circuit_graph import INDICATOR, PRODUCT, SUM
from tinybayes._kernels.growing_circuit import (
    ANCESTORS,
    MOST,
    NO_LIMIT,
    SIDE_D,
    SIDE_V,
    STAMP,
    count_bits,
    find_child,
    has,
)


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
