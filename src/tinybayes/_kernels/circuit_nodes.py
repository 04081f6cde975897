"""Circuit nodes without duplicates, and the circuit that is made of them in the end.

While a circuit grows, products have two children, and a hash table finds a node by its kind and children. Nodes 0
and 1 are the constants zero and one, which never become children.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit, plain
from tinybayes._kernels.circuit_graph import PRODUCT, CircuitGraph

FOLLOWED = 4  # while a circuit grows: a product whose second child is one of sums
ZERO, ONE = 0, 1
N_NODES, N_EDGES = 0, 1  # indices in `counts`
MIX, SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


class Nodes(NamedTuple):
    """The nodes so far, in arrays with room for more (`with_room`)."""

    kind: np.ndarray
    start: np.ndarray  # into children
    children: np.ndarray
    counts: np.ndarray  # how many nodes and how many edges are in use
    table: np.ndarray  # open addressing, by kind and children; 0 where empty


@jit
def grow(array, size):
    """Return a longer array that starts like this one."""
    longer = np.empty(size, array.dtype)
    longer[: len(array)] = array
    return longer


@plain
def hash_code(what, below, count):
    """Return the hash of a kind, or another number, and of what comes below."""
    code = np.uint64(what)
    for i in range(count):
        code = (code ^ np.uint64(np.uint32(below[i]))) * MIX
        code ^= code >> SHIFT
    return code


@plain
def add_node(what, below, count, nodes):
    """Return the node of this kind with these children, in this order; it is made when it is new."""
    kind, start, children, counts, table = nodes
    mask = np.uint64(len(table) - 1)
    slot = hash_code(what, below, count) & mask
    while table[slot] > 0:
        node = table[slot]
        first = start[node]
        if kind[node] == what and start[node + 1] - first == count:
            i = 0
            while i < count and children[first + i] == below[i]:
                i += 1
            if i == count:
                return np.int32(node)
        slot = (slot + np.uint64(1)) & mask
    node = counts[N_NODES]
    table[slot] = node
    kind[node] = what
    for i in range(count):
        children[counts[N_EDGES] + i] = below[i]
    counts[N_NODES] += 1
    counts[N_EDGES] += count
    start[node + 1] = counts[N_EDGES]
    return np.int32(node)


@plain
def _pair(what, left, right, nodes):
    """Do what `add_node` does for two children, without an array for them: here compiling spends its time."""
    kind, start, children, counts, table = nodes
    code = (np.uint64(what) ^ np.uint64(np.uint32(left))) * MIX
    code = ((code ^ (code >> SHIFT)) ^ np.uint64(np.uint32(right))) * MIX
    mask = np.uint64(len(table) - 1)
    slot = (code ^ (code >> SHIFT)) & mask
    while table[slot] > 0:
        node = table[slot]
        first = start[node]
        if children[first] == left and children[first + 1] == right and kind[node] == what:
            return np.int32(node)
        slot = (slot + np.uint64(1)) & mask
    node, edge = counts[N_NODES], counts[N_EDGES]
    table[slot] = node
    kind[node] = what
    children[edge], children[edge + 1] = left, right
    counts[N_NODES], counts[N_EDGES] = node + 1, edge + 2
    start[node + 1] = edge + 2
    return np.int32(node)


@plain
def multiply(a, b, nodes):
    """Return the node of a product; zero and one are worked out."""
    if a == ZERO or b == ZERO:
        return np.int32(ZERO)
    if a == ONE:
        return np.int32(b)
    if b == ONE:
        return np.int32(a)
    return _pair(PRODUCT, min(a, b), max(a, b), nodes)


@plain
def append(context, total, nodes):
    """Return the product of a node that stands for a context, and of a sum that does not depend on it.

    Sums that follow each other are multiplied among themselves first, since other contexts need the same ones.
    """
    if context <= ONE or total <= ONE:
        return multiply(context, total, nodes)
    if nodes.kind[context] == FOLLOWED:
        first = nodes.start[context]
        total = multiply(nodes.children[first + 1], total, nodes)
        context = nodes.children[first]
    return _pair(FOLLOWED, context, total, nodes)


@jit
def with_room(nodes, more):
    """Return the nodes with room for `more` of them, with three children on average."""
    kind, start, children, counts, table = nodes
    if counts[N_NODES] + more + 1 > len(kind):
        size = 2 * (counts[N_NODES] + more + 1)
        kind, start = grow(kind, size), grow(start, size + 1)
    if counts[N_EDGES] + 3 * more > len(children):
        children = grow(children, 2 * (counts[N_EDGES] + 3 * more))
    if 2 * (counts[N_NODES] + more) > len(table):
        slots = len(table)
        while slots < 4 * (counts[N_NODES] + more):
            slots *= 2
        table = np.zeros(slots, np.int32)
        mask = np.uint64(slots - 1)
        for node in range(counts[N_NODES]):
            first, count = start[node], start[node + 1] - start[node]
            if count > 0:
                slot = hash_code(kind[node], children[first : first + count], count) & mask
                while table[slot] > 0:
                    slot = (slot + np.uint64(1)) & mask
                table[slot] = node
    return Nodes(kind, start, children, counts, table)


@jit
def products(left, right, nodes):
    """Return the products of two arrays of nodes, and the nodes, whose arrays may have moved."""
    nodes = with_room(nodes, len(left))
    out = np.empty(len(left), np.int32)
    for i in range(len(left)):
        out[i] = multiply(left[i], right[i], nodes)
    return out, nodes


@jit
def finish(root, nodes, leaf):
    """Return the part below `root`, children first, the root last; a product in a single product is taken apart.

    Nodes stay in the order in which they were made: a pass then goes through each factor from its start to its end.
    """
    kind, start, children, _, _ = nodes
    n = root + 1
    parents, last = np.zeros(n, np.int32), np.full(n, -1, np.int32)
    parents[root] = 1
    for node in range(root, -1, -1):
        if parents[node]:
            for e in range(start[node], start[node + 1]):
                parents[children[e]] += 1
                last[children[e]] = node
    merged = np.zeros(n, np.bool_)
    for node in range(root):
        merged[node] = parents[node] == 1 and kind[node] >= PRODUCT and kind[last[node]] >= PRODUCT
    number = np.full(n, -1, np.int32)
    new_kind, new_leaf = np.empty(n, np.uint8), np.empty(n, np.int32)
    new_start, new_children = np.zeros(n + 1, np.int64), np.empty(start[n], np.int32)
    inner = np.empty(64, np.int32)
    made, edges = 0, 0
    for node in range(n):
        if not parents[node] or merged[node]:
            continue
        depth = 1
        inner[0] = node
        while depth:
            depth -= 1
            part = inner[depth]
            if depth + start[part + 1] - start[part] > len(inner):
                inner = grow(inner, 2 * (depth + start[part + 1] - start[part]))
            for e in range(start[part + 1] - 1, start[part] - 1, -1):
                if merged[children[e]]:
                    inner[depth] = children[e]
                    depth += 1
                else:
                    new_children[edges] = number[children[e]]
                    edges += 1
        number[node] = made
        new_kind[made], new_leaf[made] = min(kind[node], PRODUCT), leaf[node]
        made += 1
        new_start[made] = edges
    return CircuitGraph(
        new_kind[:made].copy(), new_start[: made + 1].copy(), new_children[:edges].copy(), new_leaf[:made].copy()
    )
