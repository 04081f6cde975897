"""The order of work of a circuit's passes.

A plan has slots, one for each value that is kept: first the indicators, then the inner nodes that are needed more
than once. Slot ``v`` is a sum over its terms ``first_term[v]..first_term[v + 1]``; a term is a coefficient, the
product of its parameters, times the slots ``child[first_child[t]..first_child[t + 1]]``. A product that only one sum
needs is a term of it and has no slot, which saves most of the memory traffic; other products are sums of one term.
"""

import numpy as np

from tinybayes._kernels import jit

PARAMETER, INDICATOR, SUM, PRODUCT = 0, 1, 2, 3


@jit
def plan_sizes(kind, offsets, children, states):
    """Return the slot of every node (-1 without one), the numbers of slots and terms, and a bound on the children."""
    n = len(kind)
    uses, inside = np.zeros(n, np.int32), np.zeros(n, np.bool_)
    for node in range(n):
        for e in range(offsets[node], offsets[node + 1]):
            uses[children[e]] += 1
            inside[children[e]] = kind[node] == SUM
    slot = np.full(n, -1, np.int32)
    slots = states
    for node in range(n):
        root = node == n - 1
        if kind[node] == SUM or root or (kind[node] == PRODUCT and not (uses[node] == 1 and inside[node])):
            slot[node] = slots
            slots += 1
    terms = below = 0
    for node in range(n):
        if slot[node] < 0:
            continue
        terms += offsets[node + 1] - offsets[node] if kind[node] == SUM else 1
        if kind[node] == SUM:
            for e in range(offsets[node], offsets[node + 1]):
                part = children[e]
                if kind[part] == PRODUCT and slot[part] < 0:
                    below += offsets[part + 1] - offsets[part]
                else:
                    below += 1
        else:
            below += max(offsets[node + 1] - offsets[node], 1)
    return slot, slots, terms, below


@jit
def _term(part, kind, offsets, children, leaf, slot, inline, t, marks, child, entry):
    """Write the term of a node, or of its children where it is taken apart."""
    start, stop = (offsets[part], offsets[part + 1]) if inline else (0, 1)
    for e in range(start, stop):
        node = children[e] if inline else part
        if kind[node] == PARAMETER:
            entry[marks[1]] = leaf[node]
            marks[1] += 1
        else:
            child[marks[0]] = leaf[node] if kind[node] == INDICATOR else slot[node]
            marks[0] += 1


@jit
def make_plan(kind, offsets, children, leaf, states, slot, slots, terms, below):
    """Return first_term, first_child, child, and likewise first_entry, entry: the parameters of each term."""
    first_term, first_child = np.zeros(slots + 1, np.int64), np.zeros(terms + 1, np.int64)
    first_entry = np.zeros(terms + 1, np.int64)
    child, entry = np.empty(below, np.int32), np.empty(below, np.int32)
    marks = np.zeros(2, np.int64)
    t = 0
    for node in range(len(kind)):
        v = slot[node]
        if v < 0:
            continue
        count = offsets[node + 1] - offsets[node] if kind[node] == SUM else 1
        for k in range(count):
            part = children[offsets[node] + k] if kind[node] == SUM else node
            inline = kind[part] == PRODUCT and (part == node or slot[part] < 0)
            _term(part, kind, offsets, children, leaf, slot, inline, t, marks, child, entry)
            t += 1
            first_child[t], first_entry[t] = marks[0], marks[1]
        first_term[v + 1] = t
    return first_term, first_child, child[: marks[0]].astype(np.uint32), first_entry, entry[: marks[1]].copy()


@jit
def log_coefficients(first_entry, entry, log_parameters):
    """Return the sum of the log-parameters of each term."""
    out = np.zeros(len(first_entry) - 1)
    for t in range(len(out)):
        for k in range(first_entry[t], first_entry[t + 1]):
            out[t] += log_parameters[entry[k]]
    return out


@jit
def make_homes(first_term, first_child, child, states):
    """Return a place for every slot such that two share one only when they are never needed at the same time.

    A slot is needed from its own step to the last step that uses it, upwards, and the other way round downwards;
    most are needed for a short while only, so that the places stay in the cache. Indicators have places of their own.
    """
    slots = len(first_term) - 1
    home, free = np.full(slots, -1, np.int64), np.empty(slots, np.int64)
    for v in range(states):
        home[v] = v
    places, left = states, 0
    for v in range(slots - 1, states - 1, -1):
        if home[v] < 0:  # the root, or a slot that nothing uses
            home[v] = places
            places += 1
        for e in range(first_child[first_term[v]], first_child[first_term[v + 1]]):
            c = child[e]
            if home[c] < 0:
                if left:
                    left -= 1
                    home[c] = free[left]
                else:
                    home[c] = places
                    places += 1
        free[left] = home[v]
        left += 1
    target = np.empty(len(child), np.uint32)
    for e in range(len(child)):
        target[e] = home[child[e]]
    return home.astype(np.uint32), target, places
