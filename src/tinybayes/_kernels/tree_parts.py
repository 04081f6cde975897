"""Decision trees that grow: the rows of their leaves, and what splitting a leaf gains.

A *part* is a node of the decision tree of one variable: a leaf while ``tested`` is -1. Every leaf owns a stretch of its
variable's permutation of the rows. Its counts are made once, when it appears, from the states that are not the most
common ones of their variables; what is left belongs to those. Where these states are many, the rows of weight one are
counted by bits (`bit_counts.py`).
"""

import math
from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit, plain
from tinybayes._kernels.bit_counts import count_bits_by_column
from tinybayes._kernels.growing_circuit import WORD

UNKNOWN = -(2**30)  # the cost of a candidate that was never looked at
FEWEST = 32  # rows that are counted by bits
N_PARTS, N_SPLITS, N_LOOKS, LIMITED = 0, 1, 2, 3  # indices in `Trees.numbers`
SCORE, LIKELIHOOD = 0, 1  # indices in `Trees.progress`


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
    looked: np.ndarray  # when the cost was counted; greedy: 1 while it is known to be right


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
    greedy: bool
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
