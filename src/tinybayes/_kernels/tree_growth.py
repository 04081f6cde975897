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


class Growth(NamedTuple):
    """A tree that is being grown: scratch, and how far it is."""

    splits: np.ndarray  # shape (nodes, 4): the best split of each leaf, see `_best_split`
    slot: np.ndarray  # of each node: where its histogram lies in the pool
    drawn: np.ndarray  # the features, in the order in which they were drawn last
    own: np.ndarray  # shape (rows, 2): second derivatives and gradients in the order of a leaf
    moved: np.ndarray  # rows that change their place
    left: np.ndarray  # sums of the left side of a split
    size: np.ndarray  # nodes, leaves, the leaf whose histogram comes next, and whether it is counted already


NODES, LEAVES, NEXT, COUNTED = 0, 1, 2, 3  # entries of `Growth.size`


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
def as_columns(X, index, states, start, stop, codes):
    """Write some rows of a table as columns of codes; a missing value gets the code after the last state."""
    for f in range(len(codes)):
        for i in range(start, stop):
            code = X[index[i], f]
            codes[f, i] = states[f] if code < 0 else code


@plain
def gather(rows, start, stop, gradient, second, own, at):
    """Copy the derivatives of the rows of a leaf to `own`, from an index on, in the order of the leaf."""
    for i in range(start, stop):
        own[at + i - start, 0], own[at + i - start, 1] = second[rows[i]], gradient[rows[i]]


@plain
def count_gradients(columns, first, last, rows, start, stop, own, histogram):
    """Count the rows of a leaf with their derivatives, for some of the features."""
    for f in range(first, last):
        codes, bins = columns.codes[f], histogram[columns.begin[f] : columns.begin[f + 1]]
        for i in range(stop - start):
            b = np.uint64(codes[np.uint64(rows[start + i])])  # an index that may be negative takes twice as long
            bins[b, COUNT] += 1.0
            bins[b, SECOND] += own[i, 0]
            bins[b, FIRST] += own[i, 1]


@plain
def _count_classes(columns, rows, start, stop, label, weight, histogram):
    """Count the rows of a leaf by class; a gradient of minus its weight is that of its class."""
    for f in range(len(columns.begin) - 1):
        codes, bins = columns.codes[f], histogram[columns.begin[f] : columns.begin[f + 1]]
        for i in range(start, stop):
            row = np.uint64(rows[i])
            b = np.uint64(codes[row])
            bins[b, COUNT] += 1.0
            bins[b, SECOND] += weight[row]
            bins[b, np.uint64(FIRST + label[row])] -= weight[row]


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


@jit
def partition(columns, rows, start, stop, feature, threshold, missing, members, moved):
    """Put the rows that go left before the others, both in their order; return where the others start."""
    codes = columns.codes[feature]
    last = columns.begin[feature + 1] - columns.begin[feature] - 1
    left = np.empty(last + 1, dtype=np.uint64)  # of each code, a number: a branch that cannot be foretold takes longer
    for code in range(last):
        left[code] = code <= threshold if threshold >= 0 else members[code]
    left[last] = missing
    middle, others = np.uint64(start), np.uint64(0)
    for i in range(np.uint64(start), np.uint64(stop)):
        row = rows[i]
        goes = left[np.uint64(codes[np.uint64(row)])]
        rows[middle] = row
        moved[others] = row
        middle += goes
        others += np.uint64(1) - goes
    rows[middle:stop] = moved[:others]
    return np.int64(middle)


def begin_growth(columns: Columns, rows: np.ndarray, tree: Tree, pool: np.ndarray) -> Growth:
    """Return what `grow_tree` starts with: a root with these rows, whose histogram is to be counted."""
    nodes = len(tree.feature)
    tree.feature[0], tree.child[0], tree.depth[0] = -1, -1, 0
    tree.start[0], tree.stop[0] = 0, len(rows)
    return Growth(
        splits=np.zeros((nodes, 4)),
        slot=np.zeros(nodes, dtype=np.int64),
        drawn=np.arange(len(columns.begin) - 1),
        own=np.empty((len(rows), 2)),
        moved=np.empty_like(rows),
        left=np.empty(pool.shape[2]),
        size=np.array([1, 1, 0, 0]),
    )


@jit
def grow_tree(columns, rows, gradient, second, label, limits, prices, random, tree, pool, growth, most):
    """Grow a tree over some rows; return its number of nodes. `rows` ends in the order of the leaves.

    With a `label` the outputs are the classes and `second` holds the weights of the rows; without one there is a single
    output. `random` is a stream, `pool` scratch for a histogram a leaf. Prices of what the tree uses are set to zero.

    A histogram of more than `most` rows is left to the caller, who has more threads: the function returns -1, and goes
    on when it is called again with the histogram counted.
    """
    size, slot, splits = growth.size, growth.slot, growth.splits
    while True:
        node = size[NEXT]
        start, stop, histogram = tree.start[node], tree.stop[node], pool[slot[node]]
        if not size[COUNTED]:
            histogram[:] = 0.0
            if len(label):
                _count_classes(columns, rows, start, stop, label, second, histogram)
            elif stop - start > most:
                size[COUNTED] = 1
                return -1
            else:
                gather(rows, start, stop, gradient, second, growth.own, 0)
                count_gradients(columns, 0, len(columns.codes), rows, start, stop, growth.own, histogram)
        size[COUNTED] = 0
        if node == 0:
            _open_leaf(columns, limits, prices, random, tree, pool, growth, 0)
        else:
            first = node - 1 if node % 2 == 0 else node  # children lie side by side, and the root is the node 0
            rest = pool[slot[first if node != first else first + 1]]
            for b in range(len(rest)):
                for k in range(rest.shape[1]):
                    rest[b, k] -= histogram[b, k]
            _open_leaf(columns, limits, prices, random, tree, pool, growth, first)
            _open_leaf(columns, limits, prices, random, tree, pool, growth, first + 1)
        if size[LEAVES] >= limits.leaves:
            break
        node = np.argmax(splits[: size[NODES], 0])
        if not splits[node, 0] > 0.0:
            break
        size[NEXT] = _split(columns, rows, prices, tree, growth, node)
    return size[NODES]


@jit
def _split(columns, rows, prices, tree, growth, node):
    """Split a leaf as was found best; return the child with fewer rows, whose histogram is to be counted."""
    size, splits = growth.size, growth.splits
    nodes, feature = size[NODES], int(splits[node, 1])
    tree.feature[node], tree.threshold[node] = feature, int(splits[node, 2])
    tree.missing[node], tree.child[node] = splits[node, 3] > 0.0, nodes
    splits[node, 0] = 0.0
    prices.feature[feature] = 0.0
    if tree.threshold[node] >= 0:
        prices.test[columns.begin[feature] + tree.threshold[node]] = 0.0
    start, stop = tree.start[node], tree.stop[node]
    asked = feature, tree.threshold[node], tree.missing[node], tree.members[node]
    middle = partition(columns, rows, start, stop, *asked, growth.moved)
    left, right = nodes, nodes + 1
    tree.start[left], tree.stop[left], tree.start[right], tree.stop[right] = start, middle, middle, stop
    small, large = (left, right) if middle - start <= stop - middle else (right, left)
    growth.slot[large], growth.slot[small] = growth.slot[node], size[LEAVES]
    for child in (left, right):
        tree.feature[child], tree.child[child], tree.depth[child] = -1, -1, tree.depth[node] + 1
    size[NODES] += 2
    size[LEAVES] += 1
    return small


@jit
def _open_leaf(columns, limits, prices, random, tree, pool, growth, node):
    """Write the sums of a leaf, and find its best split among some of the features, in random order."""
    histogram = pool[growth.slot[node]]
    total = histogram[columns.begin[0] : columns.begin[1]].sum(axis=0)
    tree.value[node], tree.second[node] = total[FIRST:], total[SECOND]
    if tree.depth[node] < limits.depth:
        looked = shuffled(growth.drawn, limits.features, random)
        split = growth.splits[node]
        _best_split(columns, histogram, total, limits, prices, looked, growth.left, split, tree.members[node])


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
