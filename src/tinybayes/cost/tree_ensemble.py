"""The price of decision trees: bytes of the tables as programs store them, comparisons and additions.

A *test* is what a node asks: a feature, a threshold or a set of codes, and the side of missing values. Equal tests, and
equal values of leaves, are stored once. Nodes point to them in one of two forms.

- *Nodes*: each tree is a run of numbers, the left child behind its node. A node is the number of its test and the
  length of its left branch, a leaf the number of its value. All trees but a single one begin with their length.
- *Levels*, where all nodes of a level of a tree ask the same question: the numbers of the tests, and all leaves.
"""

from typing import NamedTuple

import numpy as np

from tinybayes.model import Cost, TreeEnsemble, Trees


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
        bits=8 * min(node_bytes(model), level_bytes(model) or node_bytes(model)),
        parameters=2 * inner + int(trees.is_leaf.sum()) * wide,
        additions=0 if trees.count == 1 else trees.count * wide,
        lookups=trees.count * wide,
        comparisons=int(tree_depths(trees).sum()) + classes - 1,
    )


def find_tests(trees: Trees) -> Tests:
    """Return the different tests, ordered by feature and threshold."""
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


def table_bytes(model: TreeEnsemble) -> int:
    """Return the bytes of what both forms share: tests, values, scores to start with, and trees of each class."""
    trees, tests = model.trees, find_tests(model.trees)
    sets = trees.is_set[tests.node]
    codes = max((v.cardinality for v in model.variables), default=1)
    widest = max((model.variables[f].cardinality for f in trees.feature[tests.node][sets].tolist()), default=0)
    size = len(tests.node) * (_bytes(len(model.variables)) + _bytes(codes)) + int(sets.sum()) * -(-widest // 8)
    if not model.votes:
        size += model.values.size * _signed_bytes(model.values)
    if model.start.any():
        size += len(model.start) * _signed_bytes(model.start)
    return size + (len(model.start) * _bytes(trees.count + 1) if (trees.output >= 0).all() else 0)


def node_bytes(model: TreeEnsemble) -> int:
    """Return the bytes of the form of nodes."""
    trees, sizes = model.trees, tree_sizes(model.trees)
    numbers = len(find_tests(trees).node) + len(model.values)
    inner = int((~trees.is_leaf).sum())
    longest = int((sizes + (sizes - 1) // 2).max())
    total = 2 * inner + int(trees.is_leaf.sum()) + (trees.count if trees.count > 1 else 0)
    return table_bytes(model) + total * _bytes(max(numbers, longest + 1))


def is_symmetric(trees: Trees) -> bool:
    """Tell whether all nodes of a level of a tree ask the same question, and all leaves of it are equally deep."""
    number, tree = find_tests(trees).number, np.repeat(np.arange(trees.count), tree_sizes(trees))
    level = np.unique(tree * (int(trees.depth.max()) + 1) + trees.depth, return_inverse=True)[1].reshape(-1)
    asked = np.full(int(level.max()) + 1, -2)
    asked[level] = number  # one of the nodes of each level
    return bool((asked[level] == number).all())


def level_bytes(model: TreeEnsemble) -> int | None:
    """Return the bytes of the form of levels; None where trees have different questions in a level."""
    trees = model.trees
    if model.values.shape[1] != 1 or not is_symmetric(trees):
        return None
    depth, bits = int(tree_depths(trees).max()), 4 if len(model.values) <= 16 else 8 * _bytes(len(model.values))
    tests = len(find_tests(trees).node)
    return table_bytes(model) + trees.count * (depth * _bytes(tests) + -(-(2**depth) * bits // 8))


def _bytes(count: int) -> int:
    """Return the bytes of a number below `count`."""
    return 1 if count <= 2**8 else 2 if count <= 2**16 else 4


def _signed_bytes(numbers: np.ndarray) -> int:
    low, high = int(numbers.min()), int(numbers.max())
    return next((size for size in (1, 2) if low >= -(2 ** (8 * size - 1)) and high < 2 ** (8 * size - 1)), 4)
