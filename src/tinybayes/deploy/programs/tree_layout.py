"""Decision trees as a program needs them: branches of numbered tests, and leaves that point to rows of values.

Tests that decide nothing are gone: all rows that reach them go the same way, or their leaves are equal. Equal tests and
equal values have one number.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tinybayes.deploy.programs.tree_plan import TreePlan


class Test(NamedTuple):
    """A question: whether the code of a feature is at most `threshold`, or one of `members`, where there are some."""

    feature: int
    threshold: int
    missing: bool  # whether a missing value goes left; True where no value is missing
    members: tuple[bool, ...] = ()  # of all codes


class Leaf(NamedTuple):
    """The end of a tree: the number of a row of values."""

    row: int
    depth: int = 0


class Branch(NamedTuple):
    """A test with a tree on either side."""

    test: int
    left: "Tree"
    right: "Tree"
    depth: int  # tests on the longest path


Tree = Branch | Leaf


@dataclass(frozen=True, eq=False)
class Layout:
    """All trees of a program."""

    tests: tuple[Test, ...]  # thresholds first, sets last; among thresholds those where gaps go left first
    rows: np.ndarray  # different values that leaves point to, shape (rows, classes), or (rows, 1)
    trees: tuple[tuple[int, tuple[Tree, ...]], ...]  # the trees of each class, by class; -1 for all classes at once

    @cached_property
    def every(self) -> bool:
        """Whether a leaf has values for all classes."""
        return self.trees[0][0] < 0

    @cached_property
    def all_trees(self) -> list[Tree]:
        """The trees in the order of the classes."""
        return [tree for _, trees in self.trees for tree in trees]

    @cached_property
    def tested(self) -> tuple[int, ...]:
        """The features that are tested."""
        return tuple(sorted({test.feature for test in self.tests}))

    @cached_property
    def thresholds(self) -> int:
        """The number of tests that are not tests of sets."""
        return sum(not test.members for test in self.tests)

    @cached_property
    def gaps_right(self) -> int:
        """The first of the thresholds where a missing value goes right; they are the last thresholds."""
        return sum(not test.members and test.missing for test in self.tests)


def make_layout(plan: TreePlan) -> Layout:
    """Make branches of flat nodes, from the last node to the first: children come behind their parents."""
    trees, rows, row_of = plan.net.trees, *value_rows(plan)
    tests = _decided(plan, node_tests(plan))
    number: dict[Test, int] = {}
    made: list[Tree | None] = [None] * len(trees.feature)
    feature, child = trees.feature.tolist(), trees.child.tolist()
    for node in range(len(feature) - 1, -1, -1):
        if feature[node] < 0:
            made[node] = Leaf(int(row_of[trees.threshold[node]]))
            continue
        left, right, test = made[child[node]], made[child[node] + 1], tests[node]
        assert left is not None
        assert right is not None
        if (isinstance(left, Leaf) and left == right) or isinstance(test, bool):
            made[node] = right if test is False else left
        else:
            key = number.setdefault(test, len(number))
            made[node] = Branch(key, left, right, 1 + max(left.depth, right.depth))
    roots = [made[root] for root in trees.root.tolist()]
    used = {branch.test for root in roots for branch in branches(root)}
    kept = ordered({test for test, key in number.items() if key in used})
    final = {number[test]: i for i, test in enumerate(kept)}
    groups: dict[int, list[Tree]] = defaultdict(list)
    for output, root in zip(trees.output.tolist(), roots, strict=True):
        groups[output].append(renumbered(root, final))
    return Layout(kept, rows, tuple((c, tuple(group)) for c, group in sorted(groups.items())))


def ordered(tests: set[Test]) -> tuple[Test, ...]:
    """Return tests in the order of their numbers."""
    return tuple(sorted(tests, key=lambda test: (bool(test.members), not test.missing, *test)))


def value_rows(plan: TreePlan) -> tuple[np.ndarray, np.ndarray]:
    """Return the different values that leaves point to, and the number of each row of the model among them."""
    trees, values = plan.net.trees, plan.net.values
    used = np.unique(trees.threshold[trees.is_leaf])
    rows, inverse = np.unique(values[used], axis=0, return_inverse=True)
    number = np.zeros(len(values), dtype=np.int64)
    number[used] = inverse.reshape(-1)
    return rows.astype(np.int64), number


def node_tests(plan: TreePlan) -> list[Test | bool]:
    """Return the test of each node; True or False where all rows of the program go left or right."""
    trees, gaps = plan.net.trees, plan.features.gaps
    members = iter(trees.members.tolist())
    tests: list[Test | bool] = []
    nodes = zip(trees.feature.tolist(), trees.threshold.tolist(), trees.missing.tolist(), strict=True)
    for feature, threshold, missing in nodes:
        if feature < 0:
            tests.append(True)
            continue
        states, left = plan.variables[feature].cardinality, missing or not gaps
        if threshold < 0:
            chosen = tuple(next(members)[:states])
            test: Test | bool = Test(feature, -1, left, chosen)
            if all(chosen):
                test = left or Test(feature, states - 1, False)
            elif not any(chosen) and not (gaps and missing):
                test = False
        else:
            test = left if left and threshold == states - 1 else Test(feature, threshold, left)
        tests.append(test)
    return tests


def _decided(plan: TreePlan, tests: list[Test | bool]) -> list[Test | bool]:
    """Replace tests by their answer, where those above leave one only.

    A set of values is an integer with a bit for each code, and the last bit for a missing value.
    """
    trees, gaps = plan.net.trees, plan.features.gaps
    child, states = trees.child.tolist(), [v.cardinality for v in plan.variables]
    above: dict[int, tuple[int, int, int]] = {}  # of a node: its parent, the feature tested there, values that remain
    for node, test in enumerate(tests):
        if trees.feature[node] < 0:
            continue
        feature = int(trees.feature[node])
        values, up = (1 << states[feature] + gaps) - 1, node
        while up in above:
            up, asked, known = above[up]
            if asked == feature:
                values = known
                break
        if isinstance(test, Test):
            left = (1 << test.threshold + 1) - 1
            if test.members:
                left = sum(1 << code for code, member in enumerate(test.members) if member)
            left |= (1 << states[feature]) if gaps and test.missing else 0
            sides = values & left, values & ~left
            if not all(sides):
                tests[node] = bool(sides[0])
        else:
            sides = values, values
        for i, side in enumerate(sides):
            above[child[node] + i] = node, feature, side or values  # nothing reaches the other one
    return tests


def branches(tree: Tree) -> Iterator[Branch]:
    """Yield all branches of a tree, the first ones first, left before right."""
    waiting: list[Tree] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Branch):
            yield node
            waiting += [node.right, node.left]


def leaves(tree: Tree) -> Iterator[Leaf]:
    """Yield all leaves of a tree from left to right."""
    waiting: list[Tree] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Leaf):
            yield node
        else:
            waiting += [node.right, node.left]


def renumbered(tree: Tree, test: dict[int, int], row: dict[int, int] | None = None) -> Tree:
    """Give other numbers to tests and, if any are given, to the rows of leaves; tests between equal leaves vanish."""
    order = list(all_nodes(tree))
    made: dict[int, Tree] = {}
    for node in reversed(order):  # children first
        if isinstance(node, Leaf):
            made[id(node)] = Leaf(row[node.row]) if row is not None else node
            continue
        left, right = made[id(node.left)], made[id(node.right)]
        same = isinstance(left, Leaf) and left == right
        made[id(node)] = left if same else Branch(test[node.test], left, right, 1 + max(left.depth, right.depth))
    return made[id(tree)]


def all_nodes(tree: Tree) -> Iterator[Tree]:
    """Yield all nodes, each one before those below it."""
    waiting: list[Tree] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Branch):
            waiting += [node.right, node.left]
