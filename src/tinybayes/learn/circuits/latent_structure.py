"""The tree of hidden variables: the Chow-Liu tree of the observed ones, rooted at its centre.

A hidden variable stands beside every observed one that is not a leaf of the Chow-Liu tree. A leaf hangs on the hidden
variable of its neighbour: a hidden variable of its own would only be summed out into the same table.

Several trees over the same variables are a mixture. They stand side by side as one structure with several roots.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinybayes.learn.closed_form.chow_liu import conditional_mutual_information, maximum_spanning_tree
from tinybayes.model import Dataset


@dataclass(frozen=True)
class Tree:
    """A rooted tree of hidden variables, and where the observed variables hang on it; or several such trees.

    Parameters
    ----------
    parent
        Of each node, -1 for the roots. Nodes are numbered by their depth, so the roots come first.
    home
        The node on which each observed variable hangs; of several trees, all variables for each tree in turn.
    """

    parent: tuple[int, ...]
    home: tuple[int, ...]

    @cached_property
    def roots(self) -> int:
        """How many trees there are."""
        return self.parent.count(-1)

    @cached_property
    def tree_of(self) -> np.ndarray:
        """The number of each node's tree."""
        number = np.arange(len(self.parent))
        for node in range(self.roots, len(number)):
            number[node] = number[self.parent[node]]
        return number

    @cached_property
    def levels(self) -> list[tuple[int, int]]:
        """The first node of each level, and the one after its last."""
        ends = np.cumsum(np.bincount(self.depth)).tolist()
        return list(zip([0, *ends[:-1]], ends, strict=True))

    @cached_property
    def depth(self) -> np.ndarray:
        """How far each node is from its root."""
        depth = np.zeros(len(self.parent), dtype=int)
        for node in range(self.roots, len(depth)):
            depth[node] = depth[self.parent[node]] + 1
        return depth

    def parents_of(self, level: int) -> np.ndarray:
        """Return the parents of a level's nodes, numbered from the first node of the level above."""
        start, stop = self.levels[level]
        return np.array(self.parent[start:stop]) - self.levels[level - 1][0]


def latent_structure(data: Dataset) -> tuple[Tree, list[int]]:
    """Return the tree for data whose class, if there is one, is its last variable; and the variable of each node."""
    # Rounded, so that the last bits do not choose between equal pairs, as in `chow_liu`.
    return rooted_at_centre(maximum_spanning_tree(np.round(conditional_mutual_information(data), 12)))


def side_by_side(trees: Sequence[tuple[Tree, list[int]]]) -> tuple[Tree, list[int]]:
    """Return several trees, with the variables of their nodes, as one structure."""
    order = node_order([tree for tree, _ in trees])
    number = {of_tree: i for i, of_tree in enumerate(order)} | {(t, -1): -1 for t in range(len(trees))}
    parent = tuple(number[t, trees[t][0].parent[node]] for t, node in order)
    home = tuple(number[t, node] for t, (tree, _) in enumerate(trees) for node in tree.home)
    return Tree(parent, home), [trees[t][1][node] for t, node in order]


def node_order(trees: Sequence[Tree]) -> list[tuple[int, int]]:
    """Return the tree and the node in it of each node, as they stand side by side: by their depth."""
    order = sorted((int(d), t, node) for t, tree in enumerate(trees) for node, d in enumerate(tree.depth))
    return [(t, node) for _, t, node in order]


def rooted_at_centre(parents: list[int]) -> tuple[Tree, list[int]]:
    """Root a tree of observed variables at its centre; return its inner nodes as a tree, and their variables.

    The centre is the middle of a longest path: no root makes the tree less deep, hence its messages slower.
    """
    neighbours: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents):
        if parent >= 0:
            neighbours[node].append(parent)
            neighbours[parent].append(node)
    end = _walk(neighbours, 0)[0][-1]
    order, above = _walk(neighbours, end)
    path = [order[-1]]
    while above[path[-1]] >= 0:
        path.append(above[path[-1]])
    root = path[len(path) // 2]
    order, above = _walk(neighbours, root)
    inner = [node for node in order if node == root or len(neighbours[node]) > 1]
    number = {node: i for i, node in enumerate(inner)}
    home = tuple(number[node] if node in number else number[above[node]] for node in range(len(parents)))
    return Tree(tuple(number.get(above[node], -1) for node in inner), home), inner


def _walk(neighbours: list[list[int]], start: int) -> tuple[list[int], list[int]]:
    """Return the nodes by their distance from one of them, and the node before each on the way."""
    above, order = [-2] * len(neighbours), [start]
    above[start] = -1
    for node in order:
        for other in neighbours[node]:
            if above[other] == -2:
                above[other] = node
                order.append(other)
    return order, above
