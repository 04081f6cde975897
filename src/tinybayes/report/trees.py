"""Decision trees for people: their sizes, the words of a test and of a leaf, and a tree as a graph."""

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from tinybayes.cost.tree_ensemble import find_tests, is_symmetric, tree_depths
from tinybayes.errors import error
from tinybayes.model import Integers, TreeEnsemble, Variable
from tinybayes.model.encoding import Intervals

NODES = 60  # of a tree that are drawn, from the root down
STATES = 4  # of a set that are named


class TreeNode(NamedTuple):
    """A node of a tree that is drawn."""

    name: str  # of the feature; empty for a leaf
    rest: str  # of the question, or what the leaf adds
    parent: int  # among the drawn ones, -1 for the root
    is_leaf: bool
    is_cut: bool  # whether its children are not drawn

    @property
    def text(self) -> str:
        """The question or the answer."""
        return f"{self.name} {self.rest}" if self.name else self.rest

    def short(self, longest: int) -> str:
        """Return the text in about so many characters: the name is cut before the rest."""
        room = max(3, longest - len(self.rest) - 1)
        name = self.name if len(self.name) <= room else f"{self.name[: room - 1]}…"
        text = f"{name} {self.rest}" if name else self.rest
        return text if len(text) <= longest else f"{text[: longest - 1]}…"


def describe_trees(model: TreeEnsemble) -> dict[str, Any]:
    """Return the sizes of trees in plain values."""
    trees, tests = model.trees, find_tests(model.trees)
    return {
        "trees": trees.count,
        "leaves": int(trees.is_leaf.sum()),
        "depth": int(tree_depths(trees).max()),
        "tests": int((~trees.is_leaf).sum()),
        "different_tests": len(tests.node),
        "tests_of_sets": int(trees.is_set[tests.node].sum()),
        "values": len(model.values),
        "used_features": len(np.unique(trees.feature[tests.node])),
        "symmetric": is_symmetric(trees),
        "missing": "left" if _all_left(model) else "learned sides",
        "adds": "votes" if model.votes else "all classes" if (trees.output < 0).all() else "one class",
    }


def family_of(model: TreeEnsemble) -> str:
    """Return the family that trees look like."""
    return "boosted" if (model.trees.output >= 0).all() else "tree" if model.trees.count == 1 else "forest"


def question(model: TreeEnsemble, node: int) -> str:
    """Write what a node asks about its feature; yes goes left."""
    trees = model.trees
    variable, threshold = model.variables[trees.feature[node]], int(trees.threshold[node])
    left = np.arange(variable.cardinality) <= threshold
    if threshold < 0:
        left = trees.members[int(trees.is_set[:node].sum())][: variable.cardinality]
    if left.all() or not left.any():
        known, missing = ("any", "known") if left.all() else ("missing", "nothing")
        return f"is {known if trees.missing[node] else missing}"
    if threshold >= 0 and isinstance(variable.encoding, Intervals):
        text = f"< {variable.encoding.cuts[threshold]:.6g}"
    elif threshold >= 0 and isinstance(variable.encoding, Integers):
        text = f"<= {variable.encoding.low + threshold}"
    else:
        text = _set_text(variable, left)
    return text + ", or missing" if trees.missing[node] and not _all_left(model) else text


def _all_left(model: TreeEnsemble) -> bool:
    """Tell whether missing values go left everywhere, as where there were none."""
    return bool(model.trees.missing[~model.trees.is_leaf].all())


def _set_text(variable: Variable, members: np.ndarray) -> str:
    """Name the states of a set, or those that are not in it where they are fewer."""
    chosen, others = np.flatnonzero(members), np.flatnonzero(~members)
    few, words = (chosen, ("=", "in")) if len(chosen) <= len(others) else (others, ("is not", "not in"))
    names = [str(variable.states[code]) for code in few[:STATES]]
    listed = ", ".join(names) + (f" and {len(few) - STATES} more" if len(few) > STATES else "")
    return f"{words[len(few) > 1]} {listed}"


def leaf_text(model: TreeEnsemble, node: int, output: int) -> str:
    """Write what a leaf adds: the class that it favours most, or nats for the class of its tree."""
    row = model.values[model.trees.threshold[node]]
    if output < 0:
        return str(model.target.states[int(row.argmax())])
    return f"{row[0] * model.scale:+.3g} for {model.target.states[output]}"


def tree_nodes(model: TreeEnsemble, tree: int = 0, limit: int = NODES) -> list[TreeNode]:
    """Return the nodes of a tree near its root, level by level, the left child first."""
    trees = model.trees
    if not 0 <= tree < trees.count:
        raise error(f"the number of a tree, 1 to {trees.count:,}", tree + 1, where="tree")
    output = int(trees.output[tree])
    drawn: list[TreeNode] = []
    queue, room = deque([(int(trees.root[tree]), -1)]), limit - 1
    while queue:
        node, parent = queue.popleft()
        leaf = bool(trees.is_leaf[node])
        shown = not leaf and room >= 2
        if shown:
            room -= 2
            queue += [(int(trees.child[node]) + side, len(drawn)) for side in (0, 1)]
        name = "" if leaf else model.variables[trees.feature[node]].name
        rest = leaf_text(model, node, output) if leaf else question(model, node)
        drawn.append(TreeNode(name, rest, parent, leaf, not leaf and not shown))
    return drawn


def tree_size(model: TreeEnsemble, tree: int) -> int:
    """Return the nodes of a tree, leaves included."""
    ends = np.append(model.trees.root[1:], len(model.trees.feature))
    return int(ends[tree] - model.trees.root[tree])
