"""Greedy splitting of tree distributions, with or without the circuit in the score (LearnAC).

A *part* is a node of the decision tree of one variable: a leaf while ``tested`` is -1. Every leaf owns a stretch of its
variable's permutation of the rows. Its counts are made once, when it appears, from the states that are not the most
common ones of their variables; what is left belongs to those. Where these states are many, the rows of weight one are
counted by bits (`bit_counts.py`).

A candidate is a pair (leaf, variable); its gain in likelihood is computed once. Its score is the gain minus the price
of the new parameters minus the price of the edges it costs.

Two rules find the best candidate. *Quick* supposes that costs never fall: candidates wait in a heap ordered by an upper
bound of their score, with the number of edges that was true when they were last looked at. The one on top is looked at
again; if it is still on top with the number of edges that is true now, it is taken. *Greedy* knows the edges of all
candidates at all times (`edge_costs.py`), so that the best split is found for certain.
"""

import math
from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit, plain
from tinybayes._kernels.bit_counts import count_bits_by_column
from tinybayes._kernels.circuit_graph import PARAMETER, SUM
from tinybayes._kernels.edge_costs import put_back, take_away
from tinybayes._kernels.growing_circuit import (
    LIVE,
    MOST,
    N_EDGES,
    N_NODES,
    NO_LIMIT,
    ROOT,
    STAMP,
    WORD,
    add_node,
    link,
)
from tinybayes._kernels.heap import pop, push
from tinybayes._kernels.split_cost import edge_cost
from tinybayes._kernels.splitting import split

UNKNOWN = -(2**30)  # the cost of a candidate that was never looked at
FEWEST = 32  # rows that are counted by bits
N_PARTS, N_SPLITS, N_LOOKS, LIMITED = 0, 1, 2, 3  # indices in `Trees.numbers`
SCORE, LIKELIHOOD = 0, 1  # indices in `Trees.progress`
DONE, FULL, PAUSED = 0, 1, 2  # results of `grow`


class Table(NamedTuple):
    """Distinct rows: columns of codes, weights, and for each row its states that are not the variable's default."""

    columns: np.ndarray
    weight: np.ndarray
    begin: np.ndarray
    entries: np.ndarray  # numbers of states
    default: np.ndarray  # of each variable, a number of a state
    first_state: np.ndarray
    bits: np.ndarray  # the same states as bits of each row; no words where listing them is quicker
    listed: np.ndarray  # the state of each bit


class Parts(NamedTuple):
    """The decision trees of all variables, one row a node."""

    variable: np.ndarray
    tested: np.ndarray
    first: np.ndarray  # the first of its children, which are numbered in order
    begin: np.ndarray  # of its rows
    end: np.ndarray
    parameter: np.ndarray  # its first parameter node in the circuit
    path: np.ndarray  # the variables tested above, as bits
    gain: np.ndarray  # for each variable; -inf where it cannot be tested
    cost: np.ndarray
    looked: np.ndarray  # quick: how many splits there were when the cost was counted


class Trees(NamedTuple):
    """A growth: the data, the decision trees, and the arcs between the variables that they make."""

    table: Table
    parts: Parts
    rows: np.ndarray  # for each variable, a permutation of the rows
    descendant: np.ndarray
    numbers: np.ndarray  # parts in use, splits done, candidates looked at, whether `max_edges` kept one from its split
    progress: np.ndarray  # score and log-likelihood gained
    steps: np.ndarray  # the splits, as pairs (part, variable)


class Work(NamedTuple):
    """Working memory of counting."""

    counts: np.ndarray  # (states, most states)
    buffer: np.ndarray  # (rows)
    planes: np.ndarray  # (5, words)
    sums: np.ndarray  # (64 * words)


class Rules(NamedTuple):
    """What a growth is after."""

    edge_price: float
    parameter_price: float
    smoothing: float
    bayesian: bool
    with_circuit: bool
    max_edges: int


@plain
def leaf_score(counts, smoothing, bayesian):
    """Log-likelihood of counts under their smoothed estimate, or their log marginal likelihood."""
    total = counts.sum()
    k = len(counts)
    share = smoothing / k
    score = 0.0
    if bayesian:
        score = math.lgamma(smoothing) - math.lgamma(smoothing + total)
        for n in counts:
            score += math.lgamma(share + n) - math.lgamma(share)
        return score
    for n in counts:
        if n > 0:
            score += n * math.log((n + share) / (total + smoothing))
    return score


@plain
def _count_listed(table, rows, column, counts, whole):
    """Count rows by the lists of their states that are not the default."""
    for r in rows:
        x, w = column[r], table.weight[r]
        whole[x] += w
        for e in range(table.begin[r], table.begin[r + 1]):
            counts[table.entries[e], x] += w


@jit
def count_leaf(table, rows, column, whole, work):
    """Count the rows of a leaf: ``work.counts[state, x]`` for all states but the defaults, ``whole[x]`` in all."""
    k = len(whole)
    counts = work.counts
    counts[:, :k] = 0.0
    whole[:] = 0.0
    if table.bits.shape[1] == 0 or len(rows) < FEWEST:
        _count_listed(table, rows, column, counts, whole)
        return
    end = np.zeros(k + 1, np.int64)  # of the rows with each value in the buffer; rows with other weights come last
    for r in rows:
        end[column[r] if table.weight[r] == 1.0 else k] += 1
    end = np.cumsum(end)
    next_row = np.zeros(k + 1, np.int64)
    next_row[1:] = end[:-1]
    for r in rows:
        x = column[r] if table.weight[r] == 1.0 else k
        work.buffer[next_row[x]] = r
        next_row[x] += 1
    begin = 0
    for x in range(k):
        if end[x] - begin >= FEWEST:
            done = count_bits_by_column(table.bits, work.buffer[begin : end[x]], work.planes, work.sums)
            for j in range(len(table.listed)):
                counts[table.listed[j], x] += work.sums[j]
            whole[x] += done
            begin += done
        _count_listed(table, work.buffer[begin : end[x]], column, counts, whole)
        begin = end[x]
    _count_listed(table, work.buffer[begin : len(rows)], column, counts, whole)


@jit
def find_gains(trees, part, work, smoothing, bayesian):
    """Compute the gain of testing each variable in a new leaf."""
    table, parts, counts = trees.table, trees.parts, work.counts
    i = parts.variable[part]
    k = table.first_state[i + 1] - table.first_state[i]
    whole = np.empty(k)
    count_leaf(table, trees.rows[i, parts.begin[part] : parts.end[part]], table.columns[i], whole, work)
    base = leaf_score(whole, smoothing, bayesian)
    for v in range(len(table.columns)):
        gain = -np.inf
        first, last = table.first_state[v], table.first_state[v + 1]
        tested = (parts.path[part, v // WORD] >> (v % WORD)) & 1
        if v != i and last - first > 1 and not tested and not trees.descendant[i, v]:
            usual = table.default[v]
            counts[usual, :k] = whole
            for s in range(first, last):
                if s != usual:
                    counts[usual, :k] -= counts[s, :k]
            for j in range(k):
                counts[usual, j] = max(counts[usual, j], 0.0)  # sums of fractional weights need not cancel
            gain = -base
            for s in range(first, last):
                gain += leaf_score(counts[s, :k], smoothing, bayesian)
        parts.gain[part, v] = gain
        parts.cost[part, v] = UNKNOWN
        parts.looked[part, v] = -1


@jit
def divide_rows(trees, part, v, buffer):
    """Sort the rows of a leaf by the values of a variable, and tell the new leaves where theirs are."""
    table, parts, rows = trees.table, trees.parts, trees.rows
    i = parts.variable[part]
    begin, end = parts.begin[part], parts.end[part]
    first = parts.first[part]
    position = begin
    buffer[: end - begin] = rows[i, begin:end]
    for s in range(table.first_state[v + 1] - table.first_state[v]):
        parts.begin[first + s] = position
        for r in buffer[: end - begin]:
            if table.columns[v, r] == s:
                rows[i, position] = r
                position += 1
        parts.end[first + s] = position


@jit
def new_parts(trees, part, v):
    """Make the children of a leaf that is split on a variable."""
    table, parts, numbers = trees.table, trees.parts, trees.numbers
    i = parts.variable[part]
    first = numbers[N_PARTS]
    numbers[N_PARTS] += table.first_state[v + 1] - table.first_state[v]
    parts.tested[part], parts.first[part] = v, first
    for child in range(first, numbers[N_PARTS]):
        parts.variable[child] = i
        parts.tested[child] = -1
        parts.path[child] = parts.path[part]
        parts.path[child, v // WORD] |= np.int64(1) << (v % WORD)
    return first


@plain
def add_arc(descendant, parent, child):
    """Note that the child, and all below it, are descendants of the parent and of all above it."""
    if descendant[parent, child]:
        return
    for a in range(len(descendant)):
        if a == parent or descendant[a, parent]:
            descendant[a, child] = True
            for d in range(len(descendant)):
                if descendant[child, d]:
                    descendant[a, d] = True


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


@jit
def grow(g, s, trees, work, heap, rules, pause):
    """Split until nothing improves the score, a pool is full, or `pause` candidates were looked at."""
    table, parts, numbers = trees.table, trees.parts, trees.numbers
    n_variables = len(table.columns)
    looks = 0
    while True:
        if heap.size[0] == 0:
            return DONE
        if heap.size[0] + 4 * n_variables > len(heap.key) - 64 * n_variables:
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
        place = parts.parameter[part], states, v, table.first_state[v], values
        if rules.with_circuit:
            if parts.looked[part, v] != numbers[N_SPLITS]:
                # Above this many edges the score is negative, whatever the exact number.
                least = 0 if parts.cost[part, v] == UNKNOWN else parts.cost[part, v]
                limit = int(key / rules.edge_price) + least + 1 if rules.edge_price > 0 else NO_LIMIT
                cost, _, _ = edge_cost(g, s, *place, limit)
                numbers[N_LOOKS] += 1
                looks += 1
                parts.cost[part, v] = cost
                parts.looked[part, v] = numbers[N_SPLITS]
                key = current_key(table, parts, part, v, rules)
                if key > 0:
                    push(heap, key, candidate)
                if looks >= pause:
                    return PAUSED
                continue
            if g.numbers[LIVE] + parts.cost[part, v] > rules.max_edges:
                numbers[LIMITED] = 1
                continue
            _, written, nodes = edge_cost(g, s, *place, NO_LIMIT)
        if not _room(g, trees, written, nodes + values * states, values, rules.with_circuit):
            push(heap, key, candidate)
            return FULL
        apply(g, s, trees, work, rules, part, v)
        trees.progress[SCORE] += key
        trees.progress[LIKELIHOOD] += parts.gain[part, v]
        for child in range(parts.first[part], parts.first[part] + values):
            offer(trees, child, heap, rules)
        looks += not rules.with_circuit
        if looks >= pause:
            return PAUSED


@plain
def best_split(g, trees, rules):
    """Return the split that improves the score most, of equal ones the first, and by how much; no part if none does."""
    table, parts = trees.table, trees.parts
    best, key, variable = -1, 0.0, -1
    for part in range(trees.numbers[N_PARTS]):
        if parts.tested[part] >= 0:
            continue
        i = parts.variable[part]
        for v in range(len(table.columns)):
            if trees.descendant[i, v]:
                continue
            now = current_key(table, parts, part, v, rules)  # may be above the gain: some splits save edges
            if now > key:
                if g.numbers[LIVE] + parts.cost[part, v] > rules.max_edges:
                    trees.numbers[LIMITED] = 1
                    continue
                best, variable, key = part, v, now
    return best, variable, key


@jit
def grow_greedily(g, s, trees, work, costs, rules, pause):
    """Do the best split until nothing improves the score, a pool is full, or `pause` splits were done.

    The costs of all splits must be right at the start (`edge_costs.start_costs`), and are so at the end.
    """
    table, parts, numbers = trees.table, trees.parts, trees.numbers
    for _ in range(pause):
        part, v, key = best_split(g, trees, rules)
        if part < 0:
            return DONE
        i = parts.variable[part]
        states = table.first_state[i + 1] - table.first_state[i]
        values = table.first_state[v + 1] - table.first_state[v]
        place = parts.parameter[part], states, v, table.first_state[v], values
        _, written, nodes = edge_cost(g, s, *place, NO_LIMIT)
        if not _room(g, trees, written, nodes + values * states, values, True):
            return FULL
        numbers[N_LOOKS] += 1
        n_nodes, first = g.numbers[N_NODES], numbers[N_PARTS]
        stamp = take_away(g, s, costs, parts.cost, first, table.first_state)
        apply(g, s, trees, work, rules, part, v)
        put_back(g, s, costs, parts.cost, part, first, numbers[N_PARTS], n_nodes, stamp, table.first_state)
        trees.progress[SCORE] += key
        trees.progress[LIKELIHOOD] += parts.gain[part, v]
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
    new.numbers[MOST] = g.numbers[MOST]
    for n in range(g.numbers[N_NODES]):
        m = renamed[n]
        for k in range(g.degree[n] if m >= 0 else 0):
            link(new, new.start[m] + k, m, renamed[g.child[g.start[n] + k]])
