"""A circuit that grows by splits (SplitAC of learning_arithmetic_circuits): its nodes and edges, and lists of them.

`split_cost.py` counts what a split costs, and `splitting.py` does it.

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
from tinybayes._kernels.circuit_graph import SUM

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
def count_bits(bits):
    """Return how many bits are set."""
    return np.int64(ones(np.uint64(bits)))


@plain
def list_nodes(g, s):
    """List all nodes below the root in ``side_d``, children first; return how many there are."""
    g.numbers[STAMP] += 1
    return list_below(g, s, g.numbers[ROOT], 0, g.numbers[STAMP], True)


@plain
def list_below(g, s, top, length, stamp, everything):
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
