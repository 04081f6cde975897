"""Shapley values of decision trees, exactly, in a time polynomial in the depth.

Let a row be known and the other row be drawn from a distribution, with all features independent. A leaf is worth `v`.
If only the features in a set S have the values of the known row, it is reached with the probability
``prod(known[f] for f in S) * prod(share[f] for f not in S)`` over the features f that its path tests: `known` is 1 or
0, whether the known row passes all tests of f on the path, and `share` the probability that the other row does.

The Shapley value of f is the mean gain of adding f, over all orders of the features. Draw for each feature a time in
[0, 1] independently; those before the time t of f are known. So it is ``v * (known[f] - share[f])`` times the integral
over t of ``prod(t * known[g] + (1 - t) * share[g] for g != f)``. This is a polynomial in t, whose degree is below the
number of features on the path: Gauss-Legendre quadrature with half as many points is exact. All terms are positive, so
that nothing cancels.
"""

import numpy as np

from tinybayes._kernels import jit
from tinybayes._kernels.tree_scores import goes_left


@jit
def link_nodes(feature, child):
    """Return the parent of each node, and above it the closest node whose parent tests the same feature; or -1.

    Children come after their parents.
    """
    parent = np.full(len(feature), -1, dtype=np.int32)
    above = np.full(len(feature), -1, dtype=np.int32)
    for node in range(len(feature)):
        if feature[node] >= 0:
            parent[child[node]] = parent[child[node] + 1] = node
        if parent[node] < 0:
            continue
        other = parent[node]
        while parent[other] >= 0 and feature[parent[other]] != feature[parent[node]]:
            other = parent[other]
        if parent[other] >= 0:
            above[node] = other
    return parent, above


@jit
def pass_tests(feature, threshold, child, missing, members, first_set, above, x, passed):
    """Set for each node whether a row passes all tests, on the path to it, of the feature that its parent tests."""
    for node in range(len(feature)):
        if feature[node] < 0:
            continue
        left = goes_left(threshold, missing, members, first_set, node, x[feature[node]])
        for side in range(2):
            c = child[node] + side
            before = passed[above[c]] if above[c] >= 0 else 1.0
            passed[c] = before if left == (side == 0) else 0.0


@jit
def share_codes(feature, threshold, child, members, first_set, parent, above, states, share):
    """Set for each node what `pass_tests` sets, for a row whose codes are all equally likely: a probability."""
    most = 1
    for f in range(len(states)):
        most = max(most, states[f])
    allowed = np.empty(most, dtype=np.bool_)
    for node in range(len(feature)):
        if feature[node] < 0:
            continue
        count = states[feature[node]]
        for side in range(2):
            allowed[:count] = True
            c = child[node] + side
            while c >= 0:  # all tests of the feature on the path, from below
                test = parent[c]
                for code in range(count):
                    left = code <= threshold[test] if threshold[test] >= 0 else members[first_set[test], code]
                    allowed[code] = allowed[code] and left == (c == child[test])
                c = above[c]
            share[child[node] + side] = allowed[:count].sum() / count


@jit
def add_shares(feature, parent, above, known, share, worth, points, weights, shares):
    """Add the Shapley values of all features to `shares`, and return the mean of the drawn row.

    `worth` is the value of each leaf. `points` and `weights` are those of a quadrature over [0, 1], exact up to the
    degree of the longest path. Only leaves that either row can reach are looked at.
    """
    reached = np.empty(len(feature), dtype=np.bool_)
    path = np.empty(len(feature), dtype=np.int32)  # of a leaf: a node for each feature, with its last test
    last = np.full(len(shares), -1, dtype=np.int32)  # the leaf that a feature was met for
    factor = np.empty(len(points))
    mean = 0.0
    for node in range(len(feature)):
        reached[node] = parent[node] < 0 or (reached[parent[node]] and (known[node] > 0.0 or share[node] > 0.0))
        if feature[node] >= 0 or not reached[node] or worth[node] == 0.0:
            continue
        count, c, drawn = 0, node, 1.0
        while parent[c] >= 0:
            f = feature[parent[c]]
            if last[f] != node:
                last[f] = node
                drawn *= share[c]
                if known[c] != 1.0 or share[c] != 1.0:
                    path[count] = c
                    count += 1
            c = parent[c]
        mean += worth[node] * drawn
        factor[:] = weights
        for k in range(count):
            for q in range(len(points)):
                factor[q] *= points[q] * known[path[k]] + (1.0 - points[q]) * share[path[k]]
        for k in range(count):
            c, total = path[k], 0.0
            for q in range(len(points)):
                total += factor[q] / (points[q] * known[c] + (1.0 - points[q]) * share[c])
            shares[feature[parent[c]]] += worth[node] * (known[c] - share[c]) * total
    return mean
