"""Symmetric trees: all nodes of a level ask the same question, the one that gains most for all leaves together.

Such a tree of depth d is stored as d questions and 2**d leaves. A leaf without rows has the value zero.
"""

import numpy as np

from tinybayes._kernels import jit, plain
from tinybayes._kernels.tree_growth import (
    COUNT,
    FIRST,
    SECOND,
    SUPPORT,
    count_gradients,
    gather,
    partition,
    score_of,
    score_of_sides,
    shuffled,
)


@jit
def _begin_leaf(columns, pool, slot, node, depth, tree):
    """Write the sums of a leaf; what is left of a difference is no number of rows."""
    tree.feature[node], tree.child[node], tree.depth[node] = -1, -1, depth
    total = pool[slot, columns.begin[0] : columns.begin[1]].sum(axis=0)
    tree.value[node], tree.second[node] = total[FIRST:], total[SECOND]
    if tree.start[node] == tree.stop[node]:
        tree.value[node], tree.second[node] = 0.0, 0.0


@jit
def grow_symmetric(columns, rows, gradient, second, limits, prices, random, tree, pool):
    """Grow a symmetric tree over some rows; return its number of nodes. `rows` ends in the order of the leaves.

    Arguments are those of `grow_tree` without labels; `pool` has room for the histograms of all leaves. Nodes lie level
    by level, the children of a node next to each other.
    """
    features, bins = len(columns.begin) - 1, int(columns.begin[-1])
    own, moved = np.empty((len(rows), 2)), np.empty_like(rows)
    drawn, gappy = np.arange(features), np.empty(features, dtype=np.bool_)
    gains, left = np.empty((bins, 2)), np.empty(pool.shape[2])
    chosen = np.zeros(tree.members.shape[1], dtype=np.bool_)
    tree.start[0], tree.stop[0] = 0, len(rows)
    pool[0] = 0.0
    gather(rows, 0, len(rows), gradient, second, own, 0)
    count_gradients(columns, 0, features, rows, 0, len(rows), own, pool[0])
    _begin_leaf(columns, pool, 0, 0, 0, tree)
    for f in range(features):
        gappy[f] = pool[0, columns.begin[f + 1] - 1, COUNT] > 0.0
    first, leaves, depth = 0, 1, 0  # the nodes of the lowest level
    slots = np.zeros(limits.leaves, dtype=np.int64)
    while 2 * leaves <= limits.leaves and depth < limits.depth:
        looked = shuffled(drawn, limits.features, random)
        asked = looked, gappy, gains, left, chosen
        gain, threshold, gaps_left, feature = _best_question(
            columns, pool, slots[:leaves].copy(), limits, prices, *asked
        )
        if not gain > 0.0:
            break
        prices.feature[feature] = 0.0
        if threshold >= 0:
            prices.test[columns.begin[feature] + threshold] = 0.0
        below, free = first + leaves, leaves
        after = np.empty(2 * leaves, dtype=np.int64)
        for i in range(leaves):
            node, child = first + i, below + 2 * i
            tree.feature[node], tree.threshold[node], tree.child[node] = feature, threshold, child
            tree.missing[node], tree.members[node] = gaps_left, chosen
            start, stop = tree.start[node], tree.stop[node]
            middle = partition(columns, rows, start, stop, feature, threshold, gaps_left, chosen, moved)
            tree.start[child], tree.stop[child] = start, middle
            tree.start[child + 1], tree.stop[child + 1] = middle, stop
            small = 0 if middle - start <= stop - middle else 1
            after[2 * i + small], after[2 * i + 1 - small] = free, slots[i]
            counted, rest, s = pool[free], pool[slots[i]], child + small
            free += 1
            counted[:] = 0.0
            gather(rows, tree.start[s], tree.stop[s], gradient, second, own, 0)
            count_gradients(columns, 0, features, rows, tree.start[s], tree.stop[s], own, counted)
            for b in range(len(rest)):
                for k in range(rest.shape[1]):
                    rest[b, k] -= counted[b, k]
        first, leaves, depth = below, 2 * leaves, depth + 1
        slots[:leaves] = after
        for i in range(leaves):
            _begin_leaf(columns, pool, slots[i], first + i, depth, tree)
    return first + leaves


@jit
def _best_question(columns, pool, slots, limits, prices, looked, gappy, gains, left, chosen):
    """Return the best question for all leaves: gain less price, threshold, side of missing values, and feature.

    The threshold is -1 for a set of categories, which is written to `chosen`.
    """
    best, best_threshold, gaps_left, best_feature = 0.0, -1, True, -1
    whole, totals, filled = limits.gain * len(slots), np.empty((len(slots), len(left))), 0
    for slot in slots:
        totals[filled] = pool[slot, columns.begin[0] : columns.begin[1]].sum(axis=0)
        whole += score_of(totals[filled], limits.ridge)
        if totals[filled, COUNT] > 0.5:  # a leaf without rows gains nothing
            slots[filled] = slot
            filled += 1
    slots = slots[:filled]
    for f in looked:
        begin, gaps = columns.begin[f], columns.begin[f + 1] - 1
        gains[begin : gaps + 1] = 0.0
        price = whole + prices.feature[f]
        if not columns.ordered[f]:
            order = _add_gains_of_sets(pool, slots, totals, begin, gaps + 1, limits.ridge, gains, left)
            for i in range(len(order) - 1):
                if gains[begin + i, 0] - price > best:
                    best, best_threshold, best_feature = gains[begin + i, 0] - price, -1, f
                    chosen[:] = False
                    for j in range(i + 1):
                        chosen[order[j]] = True
                    gaps_left = chosen[gaps - begin] or not gappy[f]
            continue
        for i in range(len(slots)):
            for side in range(2 if gappy[f] else 1):
                _add_gains(pool[slots[i]], totals[i], begin, gaps, side, limits.ridge, gains, left)
        for side in range(2 if gappy[f] else 1):
            for b in range(begin, gaps):
                gain = gains[b, side] - price - prices.test[b]
                if gain > best:
                    best, best_threshold, best_feature = gain, b - begin, f
                    gaps_left = side == 1 or not gappy[f]
    return best, best_threshold, gaps_left, best_feature


@plain
def _add_gains(histogram, total, begin, gaps, side, ridge, gains, left):
    """Add what the thresholds of a feature gain in one leaf, with missing values on one side."""
    for k in range(len(left)):
        left[k] = histogram[gaps, k] if side else 0.0
    for b in range(begin, gaps):
        for k in range(len(left)):
            left[k] += histogram[b, k]
        gains[b, side] += score_of_sides(total, left, ridge)


@jit
def _add_gains_of_sets(pool, slots, totals, begin, end, ridge, gains, left):
    """Add what sets of categories gain in all leaves; return the categories in the order of their gradients.

    A set is the first categories of the order, that of the gradients of all leaves together. Gaps are a category.
    """
    whole = np.zeros((end - begin, pool.shape[2]))
    for slot in slots:
        whole += pool[slot, begin:end]
    present = np.flatnonzero(whole[:, COUNT] > 0.0)
    order = present[np.argsort(whole[present, FIRST] / (whole[present, SECOND] + SUPPORT), kind="mergesort")]
    for s in range(len(slots)):
        left[:] = 0.0
        for i in range(len(order) - 1):
            left += pool[slots[s], begin + order[i]]
            gains[begin + i, 0] += score_of_sides(totals[s], left, ridge)
    return order
