"""The price of decision trees: bytes of the tables as programs store them, comparisons and additions.

A *test* is what a node asks: a feature, a threshold or a set of codes, and the side of missing values. Equal tests, and
equal values of leaves, are stored once. Nodes point to them in one of two forms.

- *Nodes*: each tree is a run of numbers, the left child behind its node. A node is the number of its test and the
  length of its left branch, a leaf the number of its value. Where few nodes share a test, a node has the feature and
  the threshold instead; where few leaves share a value, a leaf has the value. All trees but a single one begin with
  their length, and those of a class end with a zero.
- *Levels*, where all nodes of a level of a tree ask the same question: the numbers of the tests, and all leaves.

Programs that take codes of complete rows have tables of this size, or smaller ones: they leave out tests that cannot
matter.
"""

from typing import NamedTuple

import numpy as np

from tinybayes.model import Cost, TreeEnsemble, Trees

LONG, LONGEST = 255, 2**16 - 1  # from here on a length in a byte, or two bytes, takes more


class Tests(NamedTuple):
    """The different tests of trees."""

    node: np.ndarray  # a node that asks each one
    number: np.ndarray  # the test of each node, -1 for leaves


def tree_ensemble_cost(model: TreeEnsemble) -> Cost:
    """Price trees as they are stored; see `model_cost`."""
    trees, classes = model.trees, model.target.cardinality
    inner = int((~trees.is_leaf).sum())
    wide = model.values.shape[1] if not model.votes else 1
    return Cost(
        bits=8 * sum(smallest_form(model)),
        parameters=2 * inner + int(trees.is_leaf.sum()) * wide,
        additions=0 if trees.count == 1 else trees.count * wide,
        lookups=trees.count * wide,
        comparisons=int(tree_depths(trees).sum()) + classes - 1,
    )


def find_tests(trees: Trees) -> Tests:
    """Return the different tests, ordered by feature and threshold; trees are immutable and keep them."""
    if "_tests" not in trees.__dict__:
        trees.__dict__["_tests"] = _find_tests(trees)
    tests: Tests = trees.__dict__["_tests"]
    return tests


def _find_tests(trees: Trees) -> Tests:
    inner = np.flatnonzero(~trees.is_leaf)
    number = np.full(len(trees.feature), -1, dtype=np.int64)
    if not len(inner):
        return Tests(inner, number)
    number_of_set = np.zeros(len(inner), dtype=np.int64)
    if len(trees.members):
        number_of_set[trees.is_set[inner]] = np.unique(trees.members, axis=0, return_inverse=True)[1].reshape(-1)
    codes, sets = int(trees.threshold[inner].max()) + 2, int(number_of_set.max()) + 1
    key = (trees.feature[inner].astype(np.int64) * codes + trees.threshold[inner] + 1) * 2 + ~trees.missing[inner]
    _, first, number[inner] = np.unique(key * sets + number_of_set, return_index=True, return_inverse=True)
    return Tests(inner[first], number)


def tree_depths(trees: Trees) -> np.ndarray:
    """Return the tests on the longest path of each tree."""
    return np.maximum.reduceat(trees.depth, trees.root)


def tree_sizes(trees: Trees) -> np.ndarray:
    """Return the nodes of each tree, leaves included."""
    return np.diff(np.append(trees.root, len(trees.feature)))


def is_symmetric(trees: Trees) -> bool:
    """Tell whether all nodes of a level of a tree ask the same question, and all leaves of it are equally deep."""
    number, tree = find_tests(trees).number, np.repeat(np.arange(trees.count), tree_sizes(trees))
    level = np.unique(tree * (int(trees.depth.max()) + 1) + trees.depth, return_inverse=True)[1].reshape(-1)
    asked = np.full(int(level.max()) + 1, -2)
    asked[level] = number  # one of the nodes of each level
    return bool((asked[level] == number).all())


class TreeBytes(NamedTuple):
    """Bytes of a form: the trees, and what all of them share, such as tests, values and the scores to start with."""

    trees: int
    shared: int


def table_bytes(model: TreeEnsemble) -> int:
    """Return the bytes of what all trees share, in the smaller form."""
    return smallest_form(model).shared


def smallest_form(model: TreeEnsemble) -> TreeBytes:
    """Return the bytes of the smaller form."""
    forms = [_nodes(model), _levels(model)]
    return min((form for form in forms if form is not None), key=sum)


def node_bytes(model: TreeEnsemble) -> int:
    """Return the bytes of the form of nodes."""
    return sum(_nodes(model))


def level_bytes(model: TreeEnsemble) -> int | None:
    """Return the bytes of the form of levels; None where trees have different questions in a level."""
    levels = _levels(model)
    return None if levels is None else sum(levels)


def _nodes(model: TreeEnsemble) -> TreeBytes:
    """Count nodes that have numbers of tests and values, or tests and values themselves."""
    sides = (True, False)
    forms = [_stream(model, direct=direct, held=held) for direct in sides for held in sides]
    return min((form for form in forms if form is not None), key=sum)


def _stream(model: TreeEnsemble, *, direct: bool, held: bool) -> TreeBytes | None:
    """Count the stream of nodes; None where tests (`direct`) or values (`held`) cannot be in it."""
    trees, tests, values = model.trees, find_tests(model.trees), _values(model)
    every, several = bool((trees.output < 0).all()), trees.count > 1
    if (direct and trees.is_set.any()) or (held and every):
        return None
    first = len(model.variables) if direct else len(tests.node)  # numbers of tests
    test = 1 + _bytes(int(trees.threshold[tests.node].max(initial=0)) + 2) if direct else 1
    leaves, size = len(values), values.size * _signed_bytes(values)
    if model.votes or held:
        leaves, size = len(model.start) if model.votes else 1, 0
    elif not every:  # the numbers of leaves are values where that takes no more
        span = int(values.max()) - int(values.min()) + 1
        leaves, size = (span, 0) if _bytes(first + span) <= _bytes(first + leaves) else (leaves, size)
    shared = size + _start_bytes(model) + (0 if direct else _test_bytes(model))
    more = several * (trees.count + (0 if every else len(model.start)))  # sizes of trees, ends of classes
    if first + leaves <= 2**8:
        numbers = _numbers(trees, test, 1 + held * _signed_bytes(values), LONG)
        if numbers.max() + 2 <= LONGEST:
            return TreeBytes(int(numbers.sum()) + more * (2 if numbers.max() + 1 > LONG else 1), shared)
    if direct or held:
        return None
    numbers = _numbers(trees, 1, 1, None)
    return TreeBytes(_bytes(max(first + leaves, int(numbers.max()) + 2)) * (int(numbers.sum()) + more), shared)


def _numbers(trees: Trees, test: int, leaf: int, long: int | None) -> np.ndarray:
    """Return how many numbers each tree takes, if tests and leaves take so many; from `long` on lengths take three."""
    size = np.full(len(trees.feature), leaf, dtype=np.int64)
    inner = np.flatnonzero(~trees.is_leaf)
    for depth in range(int(trees.depth.max()) - 1, -1, -1):
        node = inner[trees.depth[inner] == depth]
        left, right = size[trees.child[node]], size[trees.child[node] + 1]
        size[node] = test + left + right + (1 if long is None else np.where(left >= long, 3, 1))
    return np.asarray(size[trees.root])


def _levels(model: TreeEnsemble) -> TreeBytes | None:
    trees = model.trees
    if (trees.output < 0).any() or not is_symmetric(trees):
        return None
    values, depth = _values(model), int(tree_depths(trees).max())
    tests = len(find_tests(trees).node)
    listed = values.size * _signed_bytes(values)
    if len(values) <= 16:
        leaves = -(-(2**depth) // 2)
    else:
        leaves, listed = 2**depth, 0 if _signed_bytes(values) == 1 else listed
    each = _bytes(max(tests, len(values))) if len(values) > 2**8 else _bytes(tests)
    size = trees.count * (depth + leaves) * each if each > 1 else trees.count * (depth + leaves)
    counts = np.bincount(trees.output, minlength=len(model.start))
    shared = listed + _test_bytes(model)
    if len(counts) > 3 or (counts > 0).sum() > 1:
        shared += _start_bytes(model)
        shared += len(counts) * _bytes(int(counts.max()) + 1) if len(np.unique(counts)) > 1 else 0
    return TreeBytes(size, shared)


def _test_bytes(model: TreeEnsemble) -> int:
    """Return the bytes of the table of tests: features, thresholds and sets."""
    trees, tests = model.trees, find_tests(model.trees)
    if not len(tests.node):
        return 0
    sets, feature = trees.is_set[tests.node], trees.feature[tests.node]
    size = len(feature) * _bytes(int(feature.max()) + 1)
    if not sets.all():
        size += int((~sets).sum()) * _bytes(int(trees.threshold[tests.node].max()) + 2)
    widest = max((model.variables[f].cardinality for f in feature[sets].tolist()), default=0)
    return size + int(sets.sum()) * -(-widest // 8)


def _values(model: TreeEnsemble) -> np.ndarray:
    """Return the different values that leaves point to."""
    return np.unique(model.values[np.unique(model.trees.threshold[model.trees.is_leaf])], axis=0)


def _start_bytes(model: TreeEnsemble) -> int:
    """Return the bytes of the scores to start with; one number for all classes is in the code."""
    return len(model.start) * _signed_bytes(model.start) if len(np.unique(model.start)) > 1 else 0


def _bytes(count: int) -> int:
    """Return the bytes of a number below `count`."""
    return 1 if count <= 2**8 else 2 if count <= 2**16 else 4


def _signed_bytes(numbers: np.ndarray) -> int:
    low, high = int(numbers.min()), int(numbers.max())
    return next((size for size in (1, 2) if low >= -(2 ** (8 * size - 1)) and high < 2 ** (8 * size - 1)), 4)
