"""Decision trees that grow: the rows of their leaves, and what splitting a leaf gains.

A *part* is a node of the decision tree of one variable: a leaf while ``tested`` is -1. Every leaf owns a stretch of its
variable's permutation of the rows. Its counts are made once, when it appears, from the states that are not the most
common ones of their variables; what is left belongs to those.
"""

import math
from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit
from tinybayes._kernels.growing_circuit import WORD

UNKNOWN = -(2**30)  # the cost of a candidate that was never looked at


class Table(NamedTuple):
    """Distinct rows: columns of codes, weights, and for each row its states that are not the variable's default."""

    columns: np.ndarray
    weight: np.ndarray
    begin: np.ndarray
    entries: np.ndarray  # numbers of states
    default: np.ndarray  # of each variable, a number of a state
    first_state: np.ndarray


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


@jit
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


@jit
def find_gains(table, rows, parts, part, descendant, smoothing, bayesian, counts):
    """Compute the gain of testing each variable in a new leaf; `counts` is scratch (states, most states)."""
    i = parts.variable[part]
    k = table.first_state[i + 1] - table.first_state[i]
    column = table.columns[i]
    whole = np.zeros(k)
    counts[:, :k] = 0.0
    for r in rows[i, parts.begin[part] : parts.end[part]]:
        x, w = column[r], table.weight[r]
        whole[x] += w
        for e in range(table.begin[r], table.begin[r + 1]):
            counts[table.entries[e], x] += w
    base = leaf_score(whole, smoothing, bayesian)
    for v in range(len(table.columns)):
        gain = -np.inf
        first, last = table.first_state[v], table.first_state[v + 1]
        tested = (parts.path[part, v // WORD] >> (v % WORD)) & 1
        if v != i and last - first > 1 and not tested and not descendant[i, v]:
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
def divide_rows(table, rows, parts, part, v, buffer):
    """Sort the rows of a leaf by the values of a variable, and tell the new leaves where theirs are."""
    i = parts.variable[part]
    begin, end = parts.begin[part], parts.end[part]
    first = parts.first[part]
    place = begin
    buffer[: end - begin] = rows[i, begin:end]
    for s in range(table.first_state[v + 1] - table.first_state[v]):
        parts.begin[first + s] = place
        for r in buffer[: end - begin]:
            if table.columns[v, r] == s:
                rows[i, place] = r
                place += 1
        parts.end[first + s] = place


@jit
def new_parts(table, parts, part, v, numbers):
    """Make the children of a leaf that is split on a variable."""
    i = parts.variable[part]
    first = numbers[0]
    numbers[0] += table.first_state[v + 1] - table.first_state[v]
    parts.tested[part], parts.first[part] = v, first
    for child in range(first, numbers[0]):
        parts.variable[child] = i
        parts.tested[child] = -1
        parts.path[child] = parts.path[part]
        parts.path[child, v // WORD] |= np.int64(1) << (v % WORD)
    return first


@jit
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
