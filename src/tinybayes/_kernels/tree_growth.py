"""One decision tree, grown leaf by leaf from histograms of codes.

Codes lie in columns, one byte or two each; the last code of a feature is that of missing values. A *bin* is a pair of
a feature and a code. A histogram has a row for each bin: how many rows of the table there are, the sum of their second
derivatives, and the sums of their gradients, one for each output of a leaf. With the rows' classes as outputs and a
second derivative of one, the gain of a split is that of the Gini index: decision trees and forests are grown like
boosted trees.

The leaf with the largest gain is split next. Its histogram is counted for the smaller side only; the larger side is
what is left of it. The gain of a split is reduced by its price, which is less where the same test stands in the tables
of the program already.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit, plain
from tinybayes._kernels.streams import uniform

COUNT, SECOND, FIRST = 0, 1, 2  # columns of a histogram: the gradients are the last ones
SUPPORT = 10.0  # added to the second derivatives of a category before categories are sorted by their gradients
NO_SPLIT = -1


class Columns(NamedTuple):
    """A table as columns of codes."""

    codes: np.ndarray  # shape (features, rows)
    begin: np.ndarray  # the first bin of each feature, and the number of bins
    ordered: np.ndarray  # whether the codes of a feature have an order


class Limits(NamedTuple):
    """What a tree must keep to."""

    leaves: int
    depth: int
    rows: float  # of a leaf, at least
    second: float  # sum of second derivatives of a leaf, at least
    ridge: float  # added to the second derivatives
    gain: float  # of a split, at least: the price of a node
    features: int  # that are looked at for each split


class Prices(NamedTuple):
    """What a split costs beyond a node, in units of the gain."""

    feature: np.ndarray  # of each feature
    test: np.ndarray  # of a threshold after each bin


class Tree(NamedTuple):
    """The nodes of a tree, room for as many as it may have; the children of a node are next to each other."""

    feature: np.ndarray  # -1 for a leaf
    threshold: np.ndarray  # the last code on the left; of sorted categories -1
    child: np.ndarray  # the left one; the right one follows
    missing: np.ndarray  # whether missing values go left
    members: np.ndarray  # shape (nodes, most codes): which categories go left
    start: np.ndarray  # its rows, as a stretch of their order
    stop: np.ndarray
    value: np.ndarray  # shape (nodes, outputs): sums of gradients
    second: np.ndarray  # sums of second derivatives
    depth: np.ndarray


@plain
def count_gradients(columns, rows, start, stop, gradient, second, own, histogram):
    """Count the rows of a leaf with their derivatives; `own` is scratch for them, in the order of the leaf."""
    for i in range(start, stop):
        own[i - start, 0], own[i - start, 1] = second[rows[i]], gradient[rows[i]]
    for f in range(len(columns.begin) - 1):
        codes, begin = columns.codes[f], columns.begin[f]
        for i in range(start, stop):
            b = begin + codes[rows[i]]
            histogram[b, COUNT] += 1.0
            histogram[b, SECOND] += own[i - start, 0]
            histogram[b, FIRST] += own[i - start, 1]


@plain
def _count_classes(columns, rows, start, stop, label, weight, histogram):
    """Count the rows of a leaf by class; a gradient of minus its weight is that of its class."""
    for f in range(len(columns.begin) - 1):
        codes, begin = columns.codes[f], columns.begin[f]
        for i in range(start, stop):
            row = rows[i]
            b = begin + codes[row]
            histogram[b, COUNT] += 1.0
            histogram[b, SECOND] += weight[row]
            histogram[b, FIRST + label[row]] -= weight[row]


@plain
def score_of(total, ridge):
    """Return what the best value of a leaf gains; nothing without rows."""
    square = 0.0
    for k in range(FIRST, len(total)):
        square += total[k] * total[k]
    second = total[SECOND] + ridge
    return square / second if second > 0.0 else 0.0


@plain
def _gain(total, left, limits):
    """Return the gain of a split over a leaf without any value, or less than nothing where a side is too small."""
    count, second = total[COUNT] - left[COUNT], total[SECOND] - left[SECOND]
    if left[COUNT] < limits.rows or count < limits.rows or left[SECOND] < limits.second or second < limits.second:
        return -1.0
    return score_of_sides(total, left, limits.ridge)


@plain
def score_of_sides(total, left, ridge):
    """Return what the best values of both sides gain."""
    on_left, on_right = 0.0, 0.0
    for k in range(FIRST, len(total)):
        other = total[k] - left[k]
        on_left += left[k] * left[k]
        on_right += other * other
    below, above = left[SECOND] + ridge, total[SECOND] - left[SECOND] + ridge
    return (on_left / below if below > 0.0 else 0.0) + (on_right / above if above > 0.0 else 0.0)


@plain
def _best_threshold(histogram, begin, end, total, limits, price, test, left, best):
    """Look for a better threshold of an ordered feature; `best` has its gain, bin, and whether gaps go left."""
    gaps = end - 1
    for side in range(2 if histogram[gaps, COUNT] > 0.0 else 1):
        for k in range(len(left)):
            left[k] = histogram[gaps, k] if side else 0.0
        for b in range(begin, gaps):
            if histogram[b, COUNT] == 0.0:
                continue  # the same rows as one bin earlier
            for k in range(len(left)):
                left[k] += histogram[b, k]
            if left[COUNT] == total[COUNT]:
                break  # nothing is left for the right
            gain = _gain(total, left, limits) - price - test[b]
            if gain > best[0]:
                best[0], best[1], best[2] = gain, b, side


@jit
def _best_subset(histogram, begin, end, total, limits, price, left, best, chosen):
    """Look for a better set of categories: the first ones in the order of their gradients. Gaps are a category."""
    present = np.flatnonzero(histogram[begin:end, COUNT] > 0.0)
    outputs = histogram.shape[1] - FIRST
    for k in range(1 if outputs <= 2 else outputs):  # two classes have the same order backwards
        key = histogram[begin:end, FIRST + k][present] / (histogram[begin:end, SECOND][present] + SUPPORT)
        order = present[np.argsort(key, kind="mergesort")]
        left[:] = 0.0
        for i in range(len(order) - 1):
            left += histogram[begin + order[i]]
            gain = _gain(total, left, limits) - price
            if gain > best[0]:
                best[0], best[1], best[2] = gain, NO_SPLIT, 0.0
                chosen[:] = False
                for j in range(i + 1):
                    chosen[order[j]] = True


@jit
def _best_split(columns, histogram, total, limits, prices, drawn, left, split, members):
    """Write the best split of a leaf: gain, feature, threshold, side of gaps; a gain of zero where there is none."""
    split[0], split[1] = 0.0, -1.0
    whole, best = score_of(total, limits.ridge), np.empty(3)
    chosen = np.zeros(members.shape[0], dtype=np.bool_)
    for f in drawn:
        begin, end = columns.begin[f], columns.begin[f + 1]
        price = whole + limits.gain + prices.feature[f]
        best[0] = split[0]
        if columns.ordered[f]:
            _best_threshold(histogram, begin, end, total, limits, price, prices.test, left, best)
        else:
            _best_subset(histogram, begin, end, total, limits, price, left, best, chosen)
        if best[0] > split[0]:
            split[0], split[1], split[2] = best[0], f, best[1] - begin if best[1] >= 0 else -1.0
            split[3] = best[2] if histogram[end - 1, COUNT] > 0.0 else 1.0  # left is the cheaper side of gaps
            if best[1] < 0:
                members[:] = chosen
                split[3] = 1.0 if chosen[end - begin - 1] else 0.0


@plain
def partition(columns, rows, start, stop, feature, threshold, missing, members, moved):
    """Put the rows that go left before the others, both in their order; return where the others start."""
    codes = columns.codes[feature]
    last = columns.begin[feature + 1] - columns.begin[feature] - 1
    middle, others = start, 0
    for i in range(start, stop):
        code = codes[rows[i]]
        if code == last:
            left = missing
        elif threshold >= 0:
            left = code <= threshold
        else:
            left = members[code]
        if left:
            rows[middle] = rows[i]
            middle += 1
        else:
            moved[others] = rows[i]
            others += 1
    for i in range(others):
        rows[middle + i] = moved[i]
    return middle


@jit
def grow_tree(columns, rows, gradient, second, label, limits, prices, random, tree, pool):
    """Grow a tree over some rows; return its number of nodes. `rows` ends in the order of the leaves.

    With a `label` the outputs are the classes and `second` holds the weights of the rows; without one there is a single
    output. `random` is a stream, `pool` scratch for a histogram a leaf. Prices of what the tree uses are set to zero.
    """
    features = len(columns.begin) - 1
    scratch = np.empty(pool.shape[2])
    own, moved = np.empty((len(rows), 2)), np.empty_like(rows)
    splits = np.zeros((len(tree.feature), 4))
    slot = np.zeros(len(tree.feature), dtype=np.int64)
    drawn = np.arange(features)
    tree.feature[0], tree.child[0], tree.depth[0] = -1, -1, 0
    tree.start[0], tree.stop[0] = 0, len(rows)
    pool[0] = 0.0
    if len(label):
        _count_classes(columns, rows, 0, len(rows), label, second, pool[0])
    else:
        count_gradients(columns, rows, 0, len(rows), gradient, second, own, pool[0])
    total = pool[0, columns.begin[0] : columns.begin[1]].sum(axis=0)
    tree.value[0], tree.second[0] = total[FIRST:], total[SECOND]
    nodes, leaves, free = 1, 1, 1
    _look(columns, pool[0], total, limits, prices, drawn, random, scratch, tree, splits, 0)
    while leaves < limits.leaves:
        node = np.argmax(splits[:nodes, 0])
        if not splits[node, 0] > 0.0:
            break
        feature = int(splits[node, 1])
        tree.feature[node], tree.threshold[node] = feature, int(splits[node, 2])
        tree.missing[node], tree.child[node] = splits[node, 3] > 0.0, nodes
        splits[node, 0] = 0.0
        prices.feature[feature] = 0.0
        if tree.threshold[node] >= 0:
            prices.test[columns.begin[feature] + tree.threshold[node]] = 0.0
        start, stop = tree.start[node], tree.stop[node]
        middle = partition(
            columns, rows, start, stop, feature, tree.threshold[node], tree.missing[node], tree.members[node], moved
        )
        left, right = nodes, nodes + 1
        tree.start[left], tree.stop[left], tree.start[right], tree.stop[right] = start, middle, middle, stop
        small, large = (left, right) if middle - start <= stop - middle else (right, left)
        slot[large], slot[small] = slot[node], free
        free += 1
        counted, rest = pool[slot[small]], pool[slot[large]]
        counted[:] = 0.0
        if len(label):
            _count_classes(columns, rows, tree.start[small], tree.stop[small], label, second, counted)
        else:
            count_gradients(columns, rows, tree.start[small], tree.stop[small], gradient, second, own, counted)
        for b in range(len(rest)):
            for k in range(rest.shape[1]):
                rest[b, k] -= counted[b, k]
        for child in (left, right):
            tree.feature[child], tree.child[child], tree.depth[child] = -1, -1, tree.depth[node] + 1
            total = pool[slot[child], columns.begin[0] : columns.begin[1]].sum(axis=0)
            tree.value[child], tree.second[child] = total[FIRST:], total[SECOND]
            if tree.depth[child] < limits.depth:
                _look(columns, pool[slot[child]], total, limits, prices, drawn, random, scratch, tree, splits, child)
        nodes += 2
        leaves += 1
    return nodes


@jit
def shuffled(drawn, count, random):
    """Return so many features in random order; all of them in their order."""
    features = len(drawn)
    if count < features:
        for i in range(count):
            j = i + int(uniform(random) * (features - i))
            drawn[i], drawn[j] = drawn[j], drawn[i]
    return drawn[: min(count, features)]


@jit
def _look(columns, histogram, total, limits, prices, drawn, random, left, tree, splits, node):
    """Find the best split of a leaf among some of the features, in random order."""
    looked = shuffled(drawn, limits.features, random)
    _best_split(columns, histogram, total, limits, prices, looked, left, splits[node], tree.members[node])


@jit
def softmax_derivatives(scores, label, weight, start, stop, gradient, second):
    """Write the derivatives of the log loss of some rows in the scores of all classes, shape (classes, rows)."""
    classes = scores.shape[0]
    p = np.empty(classes)
    for i in range(start, stop):
        top = scores[0, i]
        for c in range(1, classes):
            top = max(top, scores[c, i])
        total = 0.0
        for c in range(classes):
            p[c] = np.exp(scores[c, i] - top)
            total += p[c]
        for c in range(classes):
            share = p[c] / total
            gradient[c, i] = weight[i] * (share - (1.0 if label[i] == c else 0.0))
            second[c, i] = weight[i] * share * (1.0 - share)


@jit
def set_values(tree, nodes, ridge, rate):
    """Replace the sums of every node by the value that lowers the loss most, times a rate."""
    for node in range(nodes):
        below = tree.second[node] + ridge
        for k in range(tree.value.shape[1]):
            tree.value[node, k] = -rate * tree.value[node, k] / below if below > 0.0 else 0.0


@jit
def add_leaves(tree, nodes, rows, scores):
    """Add the value of every leaf to the scores of the rows that it was grown from."""
    for node in range(nodes):
        if tree.feature[node] < 0:
            for i in range(tree.start[node], tree.stop[node]):
                scores[rows[i]] += tree.value[node, 0]


@jit
def add_tree(columns, tree, scores):
    """Add the value of the leaf that each row of the table falls into to its score."""
    for i in range(columns.codes.shape[1]):
        node = 0
        while tree.feature[node] >= 0:
            f = tree.feature[node]
            code = columns.codes[f, i]
            if code == columns.begin[f + 1] - columns.begin[f] - 1:
                left = tree.missing[node]
            elif tree.threshold[node] >= 0:
                left = code <= tree.threshold[node]
            else:
                left = tree.members[node, code]
            node = tree.child[node] if left else tree.child[node] + 1
        scores[i] += tree.value[node, 0]
