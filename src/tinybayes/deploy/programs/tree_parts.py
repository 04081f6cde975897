"""What programs of decision trees share: trees without tests are constants, trees of a class are neighbours."""

from typing import NamedTuple

import numpy as np

from tinybayes.model import TreeEnsemble


class TreeParts(NamedTuple):
    """The trees that have tests, and what all rows begin with."""

    start: np.ndarray  # scores of all classes, with the values of trees that are single leaves
    trees: list[int]  # the others, ordered by class
    output: np.ndarray  # their classes, -1 for all


def split_trees(model: TreeEnsemble) -> TreeParts:
    """Add the values of trees that are single leaves to the scores that all rows begin with."""
    nodes, start = model.trees, model.start.astype(np.int64)
    alone = nodes.is_leaf[nodes.root]
    for tree in np.flatnonzero(alone).tolist():
        value, output = model.values[nodes.threshold[nodes.root[tree]]], int(nodes.output[tree])
        if output < 0:
            start = start + value
        else:
            start[output] += int(value[0])
    trees = [tree for tree in np.argsort(nodes.output, kind="stable").tolist() if not alone[tree]]
    return TreeParts(start, trees, nodes.output[trees])


def inner_nodes(model: TreeEnsemble, tree: int) -> list[int]:
    """Return the nodes of a tree that have tests, parents first."""
    nodes = model.trees
    end = int(nodes.root[tree + 1]) if tree + 1 < nodes.count else len(nodes.feature)
    return [node for node in range(int(nodes.root[tree]), end) if nodes.feature[node] >= 0]
