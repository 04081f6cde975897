"""Sums over missing values in integers, straight from the specification: an independent oracle for exported code."""

import math

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
    """Return the integer scores of rows in which -1 is missing; sums go down from the roots by recursion."""
    fraction, shift = unit(net)
    levels = None if isinstance(net.cpds[0].format, Fixed) else integer_levels(net)[0]
    above = len(net.variables)
    states = [v.cardinality for v in net.variables]
    children = {j: [i for i in range(above) if j in net.cpds[i].parents] for j in range(above)}
    cpds = net.cpds

    def entry(code):
        return -(int(code) << shift) if levels is None else int(levels[code])

    def known(row, i):
        return range(states[i]) if row[i] == MISSING else (row[i],)

    def message(row, c, i, up):
        """What feature i adds when its parent has the value `up` (none without parent)."""
        total = None
        for value in known(row, i):
            index = {above: c, **{p: up for p in cpds[i].parents if p != above}}
            context = 0
            for p in cpds[i].parents:
                context = context * (net.target.cardinality if p == above else states[p]) + index[p]
            term = entry(cpds[i].table[context, value]) + sum(message(row, c, j, value) for j in children[i])
            total = term if total is None else log_add(total, term, fraction)
        return total

    roots = [i for i in range(above) if not [p for p in cpds[i].parents if p != above]]
    return np.array(
        [
            [
                entry(cpds[above].table[0, c]) + sum(message(row, c, i, None) for i in roots)
                for c in range(net.target.cardinality)
            ]
            for row in X.tolist()
        ],
        dtype=np.int64,
    ).reshape(len(X), net.target.cardinality)


def with_gaps(X, share, seed=0):
    """Return rows in which a share of all entries is missing, after the complete ones."""
    holes = np.random.default_rng(seed).random(X.shape) < share
    return np.where(holes, MISSING, X)
