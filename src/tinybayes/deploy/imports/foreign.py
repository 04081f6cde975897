"""A tree as other libraries have it: real thresholds and values, nodes in any order."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tinybayes.errors import error


@dataclass(eq=False)
class ForeignTree:
    """The nodes of a tree, the root first."""

    feature: np.ndarray  # -1 for a leaf
    cut: np.ndarray  # the lowest float32 that goes right; inf where all numbers go left, -inf where all go right
    left: np.ndarray
    right: np.ndarray
    missing: np.ndarray  # whether a missing value goes left
    value: np.ndarray  # of leaves, shape (nodes, 1), or (nodes, classes)
    output: int = -1  # the class whose score the tree adds to; -1 for a value for every class
    sets: Mapping[int, np.ndarray] = field(default_factory=dict)  # of tests of categories: the codes that go left

    def __post_init__(self) -> None:
        nodes, inner = len(self.feature), self.feature >= 0
        below = np.concatenate([self.left[inner], self.right[inner]])
        if not nodes or below.min(initial=0) < 0 or below.max(initial=0) >= nodes:
            raise error(f"children among {nodes} nodes", "others", where="tree")
        if np.isnan(self.cut[inner]).any() or not np.isfinite(self.value[~inner]).all():
            raise error("thresholds and values that are numbers", "others", where="tree")
        turned = inner & (self.cut == -np.inf)  # all numbers go right: they go left if the children change places
        self.left, self.right = np.where(turned, self.right, self.left), np.where(turned, self.left, self.right)
        self.missing = np.where(turned, ~self.missing, self.missing)
        self.cut = np.where(turned, np.inf, self.cut) + 0.0  # no negative zero

    def order(self) -> np.ndarray:
        """Return the nodes below the root, parents first and both children of a node together."""
        nodes, count = [0], len(self.feature)
        feature, left, right = self.feature.tolist(), self.left.tolist(), self.right.tolist()
        for node in nodes:  # it grows
            if feature[node] >= 0:
                nodes += [left[node], right[node]]
            if len(nodes) > count:
                raise error("a tree", "a node below itself or below two others", where="tree")
        if len(set(nodes)) < len(nodes):
            raise error("a tree", "a node below two others", where="tree")
        return np.array(nodes)


def cut_above(thresholds: np.ndarray) -> np.ndarray:
    """Return the lowest float32 above each threshold, for tests that send numbers up to the threshold left.

    So every float32 is on the side that a comparison in double precision gives it.
    """
    thresholds = np.asarray(thresholds, dtype=np.float64)
    with np.errstate(over="ignore"):
        nearest = thresholds.astype(np.float32)
        above = np.where(nearest > thresholds, nearest, np.nextafter(nearest, np.float32(np.inf)))
    return np.where(thresholds < np.finfo(np.float32).min, -np.inf, above.astype(np.float64))


def bits_set(words: np.ndarray) -> np.ndarray:
    """Return the numbers of the bits that are set in words of 32 bits, the lowest first."""
    return np.flatnonzero(np.unpackbits(np.asarray(words, dtype="<u4").view(np.uint8), bitorder="little"))
