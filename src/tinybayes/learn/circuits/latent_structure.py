"""The tree of hidden variables: the Chow-Liu tree of the observed ones, rooted at its centre.

A hidden variable stands beside every observed one that is not a leaf of the Chow-Liu tree. A leaf hangs on the hidden
variable of its neighbour: a hidden variable of its own would only be summed out into the same table.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinybayes.learn.closed_form.chow_liu import conditional_mutual_information, maximum_spanning_tree
from tinybayes.model import Dataset


@dataclass(frozen=True)
class Tree:
    """A rooted tree of hidden variables, and where the observed variables hang on it.

    Parameters
    ----------
    parent
        Of each node, -1 for node 0, the root. Nodes are numbered by their depth.
    home
        The node on which each observed variable hangs.
    """

    parent: tuple[int, ...]
    home: tuple[int, ...]

    @cached_property
    def levels(self) -> list[tuple[int, int]]:
        """The first node of each level, and the one after its last."""
        depth = np.zeros(len(self.parent), dtype=int)
        for node in range(1, len(depth)):
            depth[node] = depth[self.parent[node]] + 1
        ends = np.cumsum(np.bincount(depth)).tolist()
        return list(zip([0, *ends[:-1]], ends, strict=True))

    def parents_of(self, level: int) -> np.ndarray:
        """Return the parents of a level's nodes, numbered from the first node of the level above."""
        start, stop = self.levels[level]
        return np.array(self.parent[start:stop]) - self.levels[level - 1][0]


def latent_structure(data: Dataset) -> tuple[Tree, list[int]]:
    """Return the tree for data whose class, if there is one, is its last variable; and the variable of each node."""
    # Rounded, so that the last bits do not choose between equal pairs, as in `chow_liu`.
    return rooted_at_centre(maximum_spanning_tree(np.round(conditional_mutual_information(data), 12)))


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
