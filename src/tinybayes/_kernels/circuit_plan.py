"""The order of work of a circuit's passes.

A plan has slots, one for each value that is kept: first the indicators, then the inner nodes that are needed more
than once. Slot ``v`` is a sum over its terms ``first_term[v]..first_term[v + 1]``; a term is a coefficient, the
product of its parameters, times the slots ``child[first_child[t]..first_child[t + 1]]``. A product that only one sum
needs is a term of it and has no slot, which saves most of the memory traffic; other products are sums of one term.

A pass that does not need all values at the same time keeps them in fewer homes: two slots share one when they are
never needed at the same time.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit
from tinybayes._kernels.circuit_graph import INDICATOR, PARAMETER, PRODUCT, SUM


class Terms(NamedTuple):
    """The slots and terms of a circuit, without the values of its parameters."""

    first_term: np.ndarray  # (slots + 1,)
    first_child: np.ndarray  # (terms + 1,) into child
    child: np.ndarray  # slots
    first_entry: np.ndarray  # (terms + 1,) into entry
    entry: np.ndarray  # the parameters of each term


class Plan(NamedTuple):
    """All that the passes of `circuits.py` and `circuits_log.py` need."""

    first_term: np.ndarray  # (slots + 1,)
    first_child: np.ndarray  # (terms + 1,) into child and target
    child: np.ndarray  # slots
    target: np.ndarray  # their homes
    home: np.ndarray  # (slots,)
    slots: np.ndarray  # (slots,) 0, 1, 2, ...: the homes of a pass that keeps all values
    coefficient: np.ndarray  # (terms,) in linear space, where slots may be scaled
    log_coefficient: np.ndarray  # (terms,) as they are
    first_entry: np.ndarray  # (terms + 1,) into entry
    entry: np.ndarray  # the parameters of each term
    first_state: np.ndarray  # (variables + 1,) the indicators of each variable
    state_variable: np.ndarray  # (states,) the variable of each indicator
    scale: np.ndarray  # (states,) the value of an observed indicator in linear space, a power of two
    used: np.ndarray  # (variables,) whether the circuit depends on the variable
    most_children: int  # of a term
    n_homes: int
    shift: float  # the logarithm of what the root is to be multiplied by in linear space
    watched: bool  # whether a coefficient is too small for a double, so that values are always compared with bounds


@jit
def _find_slots(graph, states):
    """Return the slot of every node (-1 without one), and the numbers of slots and terms."""
    kind, offsets, children, _ = graph
    n = len(kind)
    uses, inside = np.zeros(n, np.int32), np.zeros(n, np.bool_)
    for node in range(n):
        for e in range(offsets[node], offsets[node + 1]):
            uses[children[e]] += 1
            inside[children[e]] = kind[node] == SUM
    slot = np.full(n, -1, np.int32)
    slots, terms = states, 0
    for node in range(n):
        root = node == n - 1
        if kind[node] == SUM or root or (kind[node] == PRODUCT and not (uses[node] == 1 and inside[node])):
            slot[node] = slots
            slots += 1
            terms += offsets[node + 1] - offsets[node] if kind[node] == SUM else 1
    return slot, slots, terms


@jit
def _add_term(graph, part, slot, inline, child, n_children, entry, n_entries):
    """Write the term of a node, or of its children where it is taken apart; return how many are written in all."""
    start, stop = (graph.offsets[part], graph.offsets[part + 1]) if inline else (0, 1)
    for e in range(start, stop):
        node = graph.children[e] if inline else part
        if graph.kind[node] == PARAMETER:
            entry[n_entries] = graph.leaf[node]
            n_entries += 1
        else:
            child[n_children] = graph.leaf[node] if graph.kind[node] == INDICATOR else slot[node]
            n_children += 1
    return n_children, n_entries


@jit
def make_terms(graph, states):
    """Return the `Terms` of a circuit with so many indicators."""
    kind, offsets, children, _ = graph
    slot, slots, terms = _find_slots(graph, states)
    first_term, first_child = np.zeros(slots + 1, np.int64), np.zeros(terms + 1, np.int64)
    first_entry = np.zeros(terms + 1, np.int64)
    most = len(children) + 1  # an edge is a child or a parameter of one term at most; a root without edges is one
    child, entry = np.empty(most, np.int32), np.empty(most, np.int32)
    t = n_children = n_entries = 0
    for node in range(len(kind)):
        v = slot[node]
        if v < 0:
            continue
        count = offsets[node + 1] - offsets[node] if kind[node] == SUM else 1
        for k in range(count):
            part = children[offsets[node] + k] if kind[node] == SUM else node
            inline = kind[part] == PRODUCT and (part == node or slot[part] < 0)
            n_children, n_entries = _add_term(graph, part, slot, inline, child, n_children, entry, n_entries)
            t += 1
            first_child[t], first_entry[t] = n_children, n_entries
        first_term[v + 1] = t
    return Terms(first_term, first_child, child[:n_children].astype(np.uint32), first_entry, entry[:n_entries].copy())


@jit
def log_coefficients(first_entry, entry, log_parameters):
    """Return the sum of the log-parameters of each term."""
    out = np.zeros(len(first_entry) - 1)
    for t in range(len(out)):
        for k in range(first_entry[t], first_entry[t + 1]):
            out[t] += log_parameters[entry[k]]
    return out


@jit
def make_homes(terms, states):
    """Return the home of every slot and of every child, and the number of homes.

    A slot is needed from its own step to the last step that uses it, upwards, and the other way round downwards;
    most are needed for a short while only, so that the homes stay in the cache. Indicators have homes of their own.
    """
    first_term, first_child, child = terms.first_term, terms.first_child, terms.child
    slots = len(first_term) - 1
    home, free = np.full(slots, -1, np.int64), np.empty(slots, np.int64)
    for v in range(states):
        home[v] = v
    n_homes, n_free = states, 0
    for v in range(slots - 1, states - 1, -1):
        if home[v] < 0:  # the root, or a slot that nothing uses
            home[v] = n_homes
            n_homes += 1
        for e in range(first_child[first_term[v]], first_child[first_term[v + 1]]):
            c = child[e]
            if home[c] < 0:
                if n_free:
                    n_free -= 1
                    home[c] = free[n_free]
                else:
                    home[c] = n_homes
                    n_homes += 1
        free[n_free] = home[v]
        n_free += 1
    target = np.empty(len(child), np.uint32)
    for e in range(len(child)):
        target[e] = home[child[e]]
    return home.astype(np.uint32), target, n_homes
