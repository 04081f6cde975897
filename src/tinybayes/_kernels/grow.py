"""Greedy splitting of tree distributions, with or without the circuit in the score (LearnAC).

A candidate is a pair (leaf, variable); its gain in likelihood is computed once (`tree_parts.py`). Candidates wait in a
heap ordered by an upper bound of their score: the gain minus the price of the new parameters minus the price of the
edges they cost when last looked at. The one on top is looked at again; if it is still on top with the number of edges
that is true now, it is the best.

Two rules say when a number of edges must be counted anew. *Quick*: when the candidate comes to the top, supposing that
costs never fall. *Greedy*: when a node changed that lies above the distribution and not above the variable, or the
other way round; such a candidate goes back to its bound without edges, so that the best split is found for certain.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit, plain
from tinybayes._kernels.circuit_graph import PARAMETER, SUM
from tinybayes._kernels.growing_circuit import (
    LIVE,
    N_EDGES,
    N_NODES,
    NO_LIMIT,
    ROOT,
    STAMP,
    WORD,
    add_node,
    edge_cost,
    link,
    list_nodes,
    split,
)
from tinybayes._kernels.heap import pop, push
from tinybayes._kernels.tree_parts import (
    LIKELIHOOD,
    LIMITED,
    N_LOOKS,
    N_PARTS,
    N_SPLITS,
    SCORE,
    UNKNOWN,
    add_arc,
    divide_rows,
    find_gains,
    new_parts,
)

DONE, FULL, PAUSED = 0, 1, 2


class Greedy(NamedTuple):
    """Working memory of the greedy rule; a single row each where it is not used."""

    sets: np.ndarray  # the distributions below every node, as bits
    inside: np.ndarray
    outside: np.ndarray


@plain
def offer(trees, part, heap, rules):
    """Put the candidates of a leaf on the heap that may have a positive score."""
    n_variables = len(trees.table.columns)
    for v in range(n_variables):
        key = current_key(trees.table, trees.parts, part, v, rules)
        if key > 0:
            push(heap, key, part * n_variables + v)


@plain
def current_key(table, parts, part, v, rules):
    """Return the bound of a candidate's score with the number of edges counted last."""
    i = parts.variable[part]
    more = table.first_state[v + 1] - table.first_state[v] - 1
    more *= table.first_state[i + 1] - table.first_state[i] - 1
    key = parts.gain[part, v] - rules.parameter_price * more
    return key if parts.cost[part, v] == UNKNOWN else key - rules.edge_price * parts.cost[part, v]


@plain
def below(g, s, sets):
    """Find the distributions below every node, as bits in `sets`."""
    for i in range(list_nodes(g, s)):  # children first
        n = s.side_d[i]
        sets[n] = 0
        if g.kind[n] == PARAMETER:
            sets[n, g.leaf[n] // WORD] = np.int64(1) << (g.leaf[n] % WORD)
        for e in range(g.start[n], g.start[n] + g.degree[n]):
            for w in range(sets.shape[1]):
                sets[n, w] |= sets[g.child[e], w]


@plain
def forget_costs(g, s, trees, greedy, heap, rules):
    """Greedy: send back to their bounds all candidates whose cost the split just looked at may change.

    A changed node that is above the distribution but not above the variable, or the other way round, may do so.
    ``inside`` is, for each distribution, the scope common to all changed nodes above it; ``outside`` the union of the
    scopes of all others.
    """
    table, parts, count = trees.table, trees.parts, trees.numbers[N_PARTS]
    _changed_scopes(g, s, parts, count, greedy.sets, greedy.inside, greedy.outside)
    for part in range(count):
        if parts.tested[part] >= 0:
            continue
        for v in range(len(table.columns)):
            w, b = v // WORD, v % WORD
            touched = not (greedy.inside[part, w] >> b) & 1 or (greedy.outside[part, w] >> b) & 1
            if touched and parts.looked[part, v] == 1:
                parts.looked[part, v] = 0
                parts.cost[part, v] = UNKNOWN
                key = current_key(table, parts, part, v, rules)
                if key > 0:
                    push(heap, key, part * len(table.columns) + v)


@plain
def _changed_scopes(g, s, parts, count, sets, inside, outside):
    words = g.scope.shape[1]
    stamp = g.numbers[STAMP]
    inside[:count] = -1
    outside[:count] = 0
    for group in range(3):
        for i in range(s.numbers[group]):
            n = s.side_d[i] if group == 0 else s.side_v[i] if group == 1 else s.ancestors[i, 0]
            if group == 1 and s.asked[n] != stamp:
                continue
            for part in range(count):
                if parts.tested[part] >= 0:
                    continue
                if (sets[n, part // WORD] >> (part % WORD)) & 1:
                    for w in range(words):
                        inside[part, w] &= g.scope[n, w]
                else:
                    for w in range(words):
                        outside[part, w] |= g.scope[n, w]


@jit
def grow(g, s, trees, work, greedy, heap, rules, pause):
    """Split until nothing improves the score, a pool is full, or `pause` candidates were looked at."""
    table, parts, numbers = trees.table, trees.parts, trees.numbers
    n_variables = len(table.columns)
    known = 1  # what `looked` says of a cost that is right; quick: the number of splits so far
    looks = 0
    while True:
        if heap.size[0] == 0:
            return DONE
        most = 4 * numbers[N_PARTS] * rules.greedy * n_variables + 4 * n_variables
        if heap.size[0] + most > len(heap.key) - 64 * n_variables:
            return FULL
        key, candidate = pop(heap)
        part, v = candidate // n_variables, candidate % n_variables
        i = parts.variable[part]
        if parts.tested[part] >= 0 or trees.descendant[i, v]:
            continue
        now = current_key(table, parts, part, v, rules)
        if key > now + 1e-9 * (1 + abs(now)) or key < now - 1e-9 * (1 + abs(now)):
            continue  # an old entry
        states = table.first_state[i + 1] - table.first_state[i]
        values = table.first_state[v + 1] - table.first_state[v]
        written, nodes = 0, 0
        if rules.with_circuit:
            if not rules.greedy:
                known = numbers[N_SPLITS]
            if parts.looked[part, v] != known:
                # Above this many edges the score is negative, whatever the exact number.
                least = 0 if parts.cost[part, v] == UNKNOWN else parts.cost[part, v]
                limit = int(key / rules.edge_price) + least + 1 if rules.edge_price > 0 else NO_LIMIT
                cost, _, _ = edge_cost(g, s, parts.parameter[part], states, v, table.first_state[v], limit)
                numbers[N_LOOKS] += 1
                looks += 1
                parts.cost[part, v] = cost
                parts.looked[part, v] = known
                key = current_key(table, parts, part, v, rules)
                if key > 0:
                    push(heap, key, candidate)
                if looks >= pause:
                    return PAUSED
                continue
            if g.numbers[LIVE] + parts.cost[part, v] > rules.max_edges:
                numbers[LIMITED] = 1
                continue
            if rules.greedy:
                below(g, s, greedy.sets)  # before the region is found, which uses the same scratch
            _, written, nodes = edge_cost(g, s, parts.parameter[part], states, v, table.first_state[v], NO_LIMIT)
        if not _room(g, trees, written, nodes + values * states, values, rules.with_circuit):
            push(heap, key, candidate)
            return FULL
        if rules.with_circuit and rules.greedy:
            forget_costs(g, s, trees, greedy, heap, rules)
        apply(g, s, trees, work, rules, part, v)
        trees.progress[SCORE] += key
        trees.progress[LIKELIHOOD] += parts.gain[part, v]
        for child in range(parts.first[part], parts.first[part] + values):
            offer(trees, child, heap, rules)
        looks += not rules.with_circuit
        if looks >= pause:
            return PAUSED


@plain
def _room(g, trees, written, nodes, values, with_circuit):
    if trees.numbers[N_PARTS] + values > len(trees.parts.variable) or trees.numbers[N_SPLITS] >= len(trees.steps):
        return False
    if not with_circuit:
        return True
    return g.numbers[N_EDGES] + written + 64 <= len(g.child) and g.numbers[N_NODES] + nodes + 64 <= len(g.kind)


@jit
def apply(g, s, trees, work, rules, part, v):
    """Do a split: in the tree, in the circuit (after `edge_cost`), in the graph of the network."""
    table, parts, numbers = trees.table, trees.parts, trees.numbers
    i = parts.variable[part]
    states = table.first_state[i + 1] - table.first_state[i]
    values = table.first_state[v + 1] - table.first_state[v]
    first = new_parts(trees, part, v)
    divide_rows(trees, part, v, work.buffer)
    if rules.with_circuit:
        fresh = np.empty(values, np.int32)
        none = np.empty(0, np.int32)
        for value in range(values):
            fresh[value] = g.numbers[N_NODES]
            parts.parameter[first + value] = g.numbers[N_NODES]
            for _ in range(states):
                add_node(g, PARAMETER, first + value, none)
        split(g, s, parts.parameter[part], states, v, table.first_state[v], values, fresh)
    add_arc(trees.descendant, v, i)
    for child in range(first, first + values):
        find_gains(trees, child, work, rules.smoothing, rules.bayesian)
    trees.steps[numbers[N_SPLITS], 0], trees.steps[numbers[N_SPLITS], 1] = part, v
    numbers[N_SPLITS] += 1


@jit
def compact(g, new, parts, n_parts, n_states, cardinality):
    """Copy what is alive into other pools."""
    renamed = np.full(g.numbers[N_NODES], -1, np.int32)
    count = n_states
    for n in range(n_states):
        renamed[n] = n
    for part in range(n_parts):
        if parts.tested[part] < 0:
            k = cardinality[parts.variable[part]]
            for j in range(k):
                renamed[parts.parameter[part] + j] = count + j
            parts.parameter[part] = count
            count += k
    for n in range(n_states, g.numbers[N_NODES]):
        if g.kind[n] >= SUM and (g.above[n] > 0 or n == g.numbers[ROOT]):
            renamed[n] = count
            count += 1
    edge = 0
    for n in range(g.numbers[N_NODES]):
        m = renamed[n]
        if m < 0:
            continue
        new.kind[m], new.leaf[m], new.above[m], new.head[m] = g.kind[n], g.leaf[n], 0, -1
        new.scope[m] = g.scope[n]
        new.start[m], new.degree[m] = edge, g.degree[n]
        edge += g.degree[n]
    new.numbers[N_NODES], new.numbers[N_EDGES] = count, edge
    new.numbers[ROOT], new.numbers[STAMP] = renamed[g.numbers[ROOT]], g.numbers[STAMP]
    for n in range(g.numbers[N_NODES]):
        m = renamed[n]
        for k in range(g.degree[n] if m >= 0 else 0):
            link(new, new.start[m] + k, m, renamed[g.child[g.start[n] + k]])
