"""Decision trees that add up to class scores: one tree, a forest, or boosted trees.

A tree tests codes. Its nodes lie in flat arrays, the children of a node next to each other. Everything is an integer:
the value of a leaf counts in units of `TreeEnsemble.scale`, and a score is a sum of integers, in Python as on a device.
Several leaves may share a value: few values are a codebook, whose entries the leaves point to.
"""

import sys
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinybayes.errors import error
from tinybayes.model.variable import Variable

LEAF = -1
LARGEST = 2**31 - 1  # of a sum


@dataclass(frozen=True, eq=False)
class Trees:
    """The nodes of all trees, and where each tree begins.

    Parameters
    ----------
    feature
        The feature that a node tests; -1 for a leaf.
    threshold
        The last code that goes left; -1 for a test of a set of codes. Of a leaf: the row of its value.
    child
        The left child; the right one follows it. -1 for a leaf.
    missing
        Whether a missing value goes left.
    members
        Of tests of sets, in the order of their nodes: which codes go left, shape (tests, most codes).
    root
        The first node of each tree.
    output
        The class whose score a tree adds to; -1 for values that have an entry for every class.
    """

    feature: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    missing: np.ndarray
    members: np.ndarray
    root: np.ndarray
    output: np.ndarray

    def __post_init__(self) -> None:
        kinds = dict.fromkeys(("feature", "threshold", "child", "root", "output"), np.int32)
        for name, dtype in (*kinds.items(), ("missing", np.bool_), ("members", np.bool_)):
            array = np.asarray(getattr(self, name))
            if array.ndim != (2 if name == "members" else 1) or array.dtype.kind not in "iub":
                got = f"{array.dtype} {array.shape}"
                raise error("integers in one axis, members in two", got, where=f"trees, {name}")
            if dtype is np.int32 and array.size and not -1 <= int(array.min()) <= int(array.max()) <= LARGEST:
                raise error(f"integers from -1 to {LARGEST}", f"{array.min()} to {array.max()}", where=f"trees, {name}")
            object.__setattr__(self, name, np.ascontiguousarray(array, dtype=dtype))
        nodes = len(self.feature)
        for name in ("threshold", "child", "missing"):
            if len(getattr(self, name)) != nodes:
                raise error(f"{nodes} entries", len(getattr(self, name)), where=f"trees, {name}")
        if len(self.output) != len(self.root):
            raise error(f"{len(self.root)} entries", len(self.output), where="trees, output")
        self._check_order()
        if int(self.is_set.sum()) != len(self.members):
            raise error(f"{int(self.is_set.sum())} sets", len(self.members), where="trees, members")

    def _check_order(self) -> None:
        """Every node but the roots is the child of one node, which comes before it in the same tree."""
        nodes, inner = len(self.feature), np.flatnonzero(self.feature >= 0)
        ends = np.append(self.root[1:], nodes)
        if not len(self.root) or self.root[0] != 0 or (ends <= self.root).any():
            raise error("trees one after another, from node 0 on", self.root[:10].tolist(), where="trees, root")
        child = self.child[inner]
        end = ends[np.searchsorted(self.root, inner, side="right") - 1]
        if (child <= inner).any() or (child + 1 >= end).any() or (self.child[self.feature < 0] != LEAF).any():
            raise error("children behind their node, in its tree, and none of leaves", "others", where="trees, child")
        below = np.bincount(np.concatenate([child, child + 1, self.root]), minlength=nodes)
        if (below != 1).any():
            got = f"{int(below[below != 1][0])} above node {int(np.flatnonzero(below != 1)[0])}"
            raise error("every node below one other", got, where="trees, child")

    @property
    def count(self) -> int:
        """The number of trees."""
        return len(self.root)

    @cached_property
    def is_leaf(self) -> np.ndarray:
        """Whether each node is a leaf."""
        return np.asarray(self.feature < 0)

    @cached_property
    def is_set(self) -> np.ndarray:
        """Whether each node tests a set of codes."""
        return np.asarray((self.feature >= 0) & (self.threshold < 0))

    @cached_property
    def depth(self) -> np.ndarray:
        """The number of tests above each node."""
        depth = np.zeros(len(self.feature), dtype=np.int32)
        for node in np.flatnonzero(~self.is_leaf).tolist():  # parents come first
            depth[self.child[node] : self.child[node] + 2] = depth[node] + 1
        return depth


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """A classifier made of decision trees over codes.

    Parameters
    ----------
    variables
        The features; rows are codes as for every other model.
    target
        The class.
    trees
        The nodes.
    values
        Values that leaves point to, integers of shape (values, 1), or (values, classes) where a leaf has one for every
        class.
    start
        Scores of all classes before any tree.
    scale
        Class scores times this are the logarithms of unnormalised probabilities.
    """

    variables: tuple[Variable, ...]
    target: Variable
    trees: Trees
    values: np.ndarray
    start: np.ndarray
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        if not isinstance(self.target, Variable):
            raise error("a class variable", repr(self.target), where="TreeEnsemble")
        names = [variable.name for variable in (*self.variables, self.target)]
        if len(set(names)) != len(names):
            raise error("distinct names", f"{names[:10]}", where="TreeEnsemble")
        if not (isinstance(self.scale, int | float | np.number) and 0 < self.scale <= sys.float_info.max):
            raise error("a finite scale above zero", self.scale, where="TreeEnsemble, scale")
        for name, ndim in (("values", 2), ("start", 1)):
            numbers = np.asarray(getattr(self, name))
            if numbers.ndim != ndim or numbers.dtype.kind not in "iu" or not numbers.size:
                got = f"{numbers.dtype} {numbers.shape}"
                raise error(f"integers in {ndim} axes", got, where=f"TreeEnsemble, {name}")
            if int(numbers.min()) < -LARGEST or int(numbers.max()) > LARGEST:
                raise error(f"magnitudes up to {LARGEST}", "larger ones", where=f"TreeEnsemble, {name}")
            object.__setattr__(self, name, np.ascontiguousarray(numbers, dtype=np.int32))
        classes, trees = self.target.cardinality, self.trees
        if len(self.start) != classes:
            raise error(f"{classes} scores", len(self.start), where="TreeEnsemble, start")
        every = bool((trees.output < 0).all())
        mixed = not every and bool((trees.output < 0).any())
        if self.values.shape[1] != (classes if every else 1) or mixed or trees.output.max() >= classes:
            expected = "a value a leaf and a class a tree, or values for all classes"
            raise error(expected, self.values.shape, where="TreeEnsemble, values")
        self._check_tests()
        if self.reach > LARGEST:
            raise error("sums below 2**31", f"{self.reach:,}", where="TreeEnsemble", remedy="use smaller values")

    def _check_tests(self) -> None:
        trees, leaf = self.trees, self.trees.is_leaf
        if trees.feature.max(initial=LEAF) >= len(self.variables):
            raise error(f"features below {len(self.variables)}", int(trees.feature.max()), where="trees, feature")
        value = trees.threshold[leaf]
        if value.min() < 0 or value.max() >= len(self.values):
            raise error(f"values below {len(self.values)}", int(value.max()), where="trees, threshold of leaves")
        states = np.array([v.cardinality for v in self.variables] or [0])
        if (trees.threshold[~leaf] >= states[trees.feature[~leaf]]).any():
            raise error("thresholds below the number of states", "others", where="trees, threshold")
        widest = int(states[trees.feature[trees.is_set]].max(initial=0))
        if len(trees.members) and trees.members.shape[1] < widest:
            raise error(f"sets of {widest} codes", trees.members.shape[1], where="trees, members")

    @cached_property
    def votes(self) -> bool:
        """Whether every leaf adds the same number to the score of one class."""
        rows = self.values[self.trees.threshold[self.trees.is_leaf]]
        if not bool((self.trees.output < 0).all()):
            return False
        return bool(((rows != 0).sum(axis=1) == 1).all() and len(np.unique(rows.max(axis=1))) == 1 and rows.max() > 0)

    @cached_property
    def reach(self) -> int:
        """The largest magnitude that a score, or a part of it, can have."""
        trees, largest = self.trees, np.abs(self.values.astype(np.int64)).max(axis=1)
        leaf = np.flatnonzero(trees.is_leaf)
        tree = np.searchsorted(trees.root, leaf, side="right") - 1
        most = np.zeros(trees.count, dtype=np.int64)
        np.maximum.at(most, tree, largest[trees.threshold[leaf]])
        each = np.zeros(len(self.start), dtype=np.int64)
        np.add.at(each, np.maximum(trees.output, 0), most)
        total = each if (trees.output >= 0).all() else each.sum()
        return int((np.abs(self.start.astype(np.int64)) + total).max())
