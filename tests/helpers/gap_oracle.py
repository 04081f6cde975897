"""Sums over missing values in integers, straight from the specification: an independent oracle for exported code."""

import math
from functools import cache

import numpy as np

from tinybayes.infer.integers import integer_levels
from tinybayes.model import Fixed

MISSING = -1


def unit(net):
    """Return the fraction of scores, and the shift of fixed-point codes."""
    form = net.cpds[0].format
    if not isinstance(form, Fixed):
        return integer_levels(net)[1], 0
    reach = sum(int(cpd.table.max()) for cpd in net.cpds)
    shift = 0
    while form.fraction + shift < max(form.fraction, 10) and reach << shift + 1 <= 2**30:
        shift += 1
    return form.fraction + shift, shift


def log_add(a, b, fraction):
    """Add two probabilities by interpolation in a table with steps of a quarter of a nat."""
    high, low = max(a, b), min(a, b)
    distance = (high - low) * 2**10 // 2**fraction if fraction >= 0 else (high - low) * 2 ** (10 - fraction)
    i = distance >> 8
    if i >= 32:
        return high
    table = [round(math.ldexp(math.log1p(math.exp(-k / 4)), fraction)) if k < 32 else 0 for k in (i, i + 1)]
    return high + table[0] - ((table[0] - table[1]) * (distance & 255) >> 8)


def scores(net, X):
    """Return the integer scores of rows in which -1 is missing, by recursion from the roots down."""
    return np.array(
        [[_score(net, row, c) for c in range(net.target.cardinality)] for row in X.tolist()], dtype=np.int64
    ).reshape(len(X), net.target.cardinality)


def _score(net, row, c):
    fraction, shift = unit(net)
    levels = None if isinstance(net.cpds[0].format, Fixed) else integer_levels(net)[0]
    above, cpds = len(net.variables), net.cpds
    states = [v.cardinality for v in net.nodes]
    ups = [next((p for p in cpd.parents if p != above), None) for cpd in cpds[:above]]

    def entry(code):
        return -(int(code) << shift) if levels is None else int(levels[code])

    @cache
    def message(i, up):
        """What feature i and all below it add when its parent has the value `up`."""
        total = None
        for value in range(states[i]) if row[i] == MISSING else (row[i],):
            context = 0
            for p in cpds[i].parents:
                context = context * states[p] + (c if p == above else up)
            term = entry(cpds[i].table[context, value]) + sum(message(j, value) for j in range(above) if ups[j] == i)
            total = term if total is None else log_add(total, term, fraction)
        return total

    return entry(cpds[above].table[0, c]) + sum(message(i, None) for i in range(above) if ups[i] is None)


def with_gaps(X, share, seed=0):
    """Return rows in which a share of all entries is missing."""
    return np.where(np.random.default_rng(seed).random(X.shape) < share, MISSING, X)


def rows_with_gaps(X, seed=0):
    """Return complete rows, and the same with a twentieth, half and all of the entries missing."""
    return np.vstack([X, *(with_gaps(X, share, seed) for share in (0.05, 0.5, 1.0))])


def codes_of(X, states, largest, seed=0):
    """Return the rows with any code that is not a state where a value is missing."""
    rng = np.random.default_rng(seed)
    other = rng.integers(np.array(states), largest + 1, X.shape)
    return np.where(X == MISSING, np.where(rng.random(X.shape) < 0.5, largest, other), X)
