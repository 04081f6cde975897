"""Whether a circuit is decomposable, smooth and deterministic, by sets of bits."""

import numpy as np

from tinybayes._kernels import jit
from tinybayes._kernels.circuit_graph import INDICATOR, PRODUCT, SUM


@jit
def check_scopes(graph, variable, words, what):
    """Return the first node, and two of its children, where `what` (SUM: smooth, PRODUCT: decomposable) fails.

    Smooth: the children of a sum have the same variables. Decomposable: those of a product have none in common.
    """
    kind, offsets, children, leaf = graph
    scope = np.zeros((len(kind), words), np.uint64)
    for node in range(len(kind)):
        if kind[node] == INDICATOR:
            v = variable[leaf[node]]
            scope[node, v // 64] = np.uint64(1) << np.uint64(v % 64)
        for e in range(offsets[node], offsets[node + 1]):
            part = scope[children[e]]
            for w in range(words):
                shared = scope[node, w] & part[w]
                differs = part[w] != scope[node, w] and e > offsets[node]
                if (kind[node] == what == PRODUCT and shared) or (kind[node] == what == SUM and differs):
                    return node, e
            for w in range(words):
                scope[node, w] |= part[w]
    return -1, -1


@jit
def possible_states(graph, low, masks):
    """Return for each node the states from `low` on with which it can be other than zero, as words of bits.

    `masks` has for each variable the bits of its states, in as many words.
    """
    kind, offsets, children, leaf = graph
    variables, words = masks.shape
    bits = np.zeros((len(kind), words), np.uint64)
    for node in range(len(kind)):
        if kind[node] == PRODUCT or kind[node] < SUM:
            for m in range(variables):
                bits[node] |= masks[m]
        if kind[node] == INDICATOR and low <= leaf[node] < low + 64 * words:
            word, own = (leaf[node] - low) // 64, np.uint64(1) << np.uint64((leaf[node] - low) % 64)
            for m in range(variables):
                if masks[m, word] & own:
                    bits[node] &= ~masks[m]
                    bits[node, word] |= own
        for e in range(offsets[node], offsets[node + 1]):
            for w in range(words):
                if kind[node] == SUM:
                    bits[node, w] |= bits[children[e], w]
                else:
                    bits[node, w] &= bits[children[e], w]
    return bits


@jit
def one_tells_apart(graph, masks, bits, sizes):
    """Set the sizes of those sums to zero of which some variable has another set of states for every child."""
    kind, offsets, children, _ = graph
    words = masks.shape[1]
    seen = np.zeros(words, np.uint64)
    for node in range(len(kind)):
        for m in range(len(masks) if sizes[node] > 1 else 0):
            seen[:] = np.uint64(0)
            apart = True
            for e in range(offsets[node], offsets[node + 1]):
                for w in range(words):
                    own = bits[children[e], w] & masks[m, w]
                    apart = apart and not (own & seen[w])
                    seen[w] |= own
                if not apart:
                    break
            if apart:
                sizes[node] = 0
                break


@jit
def tell_apart(graph, masks, bits, first_pair, apart):
    """Mark the pairs of children of sums that no state of some variable allows together."""
    kind, offsets, children, _ = graph
    for node in range(len(kind)):
        if kind[node] != SUM or first_pair[node + 1] == first_pair[node]:
            continue
        pair = first_pair[node]
        for i in range(offsets[node], offsets[node + 1]):
            for j in range(offsets[node], i):
                for m in range(0 if apart[pair] else len(masks)):
                    together = np.uint64(0)
                    for w in range(masks.shape[1]):
                        together |= bits[children[i], w] & bits[children[j], w] & masks[m, w]
                    if not together:
                        apart[pair] = True
                        break
                pair += 1
