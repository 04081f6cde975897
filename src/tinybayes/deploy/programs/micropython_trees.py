"""Decision trees in a module for MicroPython: bytes that a loop walks over.

A tree is a run of numbers, the left child behind its node. A node is the number of its test and the length of its left
branch; a leaf is the number of its value, counted from the last test on. All trees but a single one begin with their
length. Tests with missing values on the left come first, then those with missing values on the right, then tests of
sets, so that the number of a test tells its kind.
"""

from dataclasses import replace
from functools import cached_property
from textwrap import indent

import numpy as np

from tinybayes.cost.tree_ensemble import find_tests
from tinybayes.deploy.programs.micropython_text import ByteTable, bytes_text, tuple_text
from tinybayes.deploy.programs.tree_parts import inner_nodes, split_trees
from tinybayes.deploy.programs.tree_plan import TreePlan

LEAF = '''

def _leaf(x, i):
    """Return the number of the value that a row gets from the tree at i."""
    n = {node}
    while n < {tests}:
        code = x[{feature}]
{gap}{choose}        i += 2 if {left} else 2 + {skip}
        n = {node}
    return n - {tests}
'''

GAP = """        if not 0 <= code <= {last}:
            code = -1
"""

EITHER = """        if n < {ordered}:
            left = {below}
        else:
            left = {in_set}
"""

SCORES = '''

def scores(x):
    """Return the scores of all classes for a row of states{gaps}; the largest wins."""
    sums = list(_START)
{body}    return sums
'''

ALL_CLASSES = """k = {classes} * _leaf(x, {at})
for c in range({classes}):
    sums[c] += {value}
    k += 1
"""


def tree_body(plan: TreePlan) -> str:
    """Write the constants and the function ``scores``."""
    return _Module(plan).text()


class _Module:
    """The tables of a module, and the text that reads them."""

    def __init__(self, plan: TreePlan) -> None:
        self.gaps, model = plan.features.gaps, plan.net
        if not self.gaps:  # the sides of missing values do not matter
            model = replace(model, trees=replace(model.trees, missing=np.zeros_like(model.trees.missing)))
        self.model, self.nodes, self.classes = model, model.trees, plan.classes
        self.parts = split_trees(model)
        tests = find_tests(self.nodes)
        kind = np.where(self.nodes.is_set[tests.node], 2, ~self.nodes.missing[tests.node])
        order = np.argsort(kind, kind="stable")
        self.tests, self.kinds = tests.node[order], np.bincount(kind, minlength=3).tolist()
        self.number = np.append(np.argsort(order), -1)[tests.number]  # of the test of each node
        self.lowest = 0 if model.votes else int(model.values.min())

    def text(self) -> str:
        """Write all tables and functions."""
        trees = self.parts.trees
        of_class = np.bincount(np.maximum(self.parts.output, 0), minlength=self.classes)
        every = bool((self.parts.output < 0).any())
        start = self.parts.start + self.lowest * (len(trees) if every else of_class)
        out = "# What all rows begin with.\n" + tuple_text("_START", [str(v) for v in start.tolist()])
        if trees:
            out += self._tables()
            if not every and len(trees) > 1:
                out += "# The trees of each class.\n" + tuple_text("_TREES", [str(k) for k in of_class.tolist()])
            out += self._walk()
        body = indent(self._additions(), "    ")
        return out + SCORES.format(gaps=", -1 where one is missing" if self.gaps else "", body=body)

    @cached_property
    def values(self) -> ByteTable:
        """What leaves add to a score, above the lowest one."""
        return ByteTable("_VALUES", self.model.values.astype(np.int64) - self.lowest)

    @cached_property
    def stream(self) -> ByteTable:
        """The trees as runs of numbers."""
        nodes, leaf, run = self.nodes, len(self.tests) + self._leaves(), []
        for tree in self.parts.trees:
            inner = inner_nodes(self.model, tree)
            length: dict[int, int] = {}  # of the run of each node; a leaf takes one
            for node in reversed(inner):
                child = int(nodes.child[node])
                length[node] = 2 + length.get(child, 1) + length.get(child + 1, 1)
            if len(self.parts.trees) > 1:
                run.append(length[inner[0]])
            ahead = [inner[0]]
            while ahead:
                node = ahead.pop()
                if node not in length:
                    run.append(int(leaf[node]))
                    continue
                child = int(nodes.child[node])
                run += [int(self.number[node]), length.get(child, 1)]
                ahead += [child + 1, child]
        return ByteTable("_NODES", np.array(run))

    def _leaves(self) -> np.ndarray:
        """Return the number of the value of each leaf; for votes, of its class."""
        row = np.where(self.nodes.is_leaf, self.nodes.threshold, 0)
        return np.asarray(self.model.values.argmax(axis=1)[row] if self.model.votes else row)

    def _test_tables(self) -> tuple[ByteTable, ByteTable, ByteTable]:
        """Return the features of all tests, their thresholds, and the last codes of their features."""
        feature = self.nodes.feature[self.tests]
        last = np.array([v.cardinality - 1 for v in self.model.variables])[feature]
        ordered = sum(self.kinds[:2])
        return (
            ByteTable("_FEATURE", feature),
            ByteTable("_LEFT", self.nodes.threshold[self.tests[:ordered]]),
            ByteTable("_LAST", last),
        )

    @cached_property
    def sets(self) -> np.ndarray:
        """The sets in bits: bit 0 of a missing value, then those of all codes."""
        chosen = self.tests[sum(self.kinds[:2]) :]
        rows = self.nodes.members[np.cumsum(self.nodes.is_set)[chosen] - 1]
        widest = max((self.model.variables[f].cardinality for f in self.nodes.feature[chosen].tolist()), default=0)
        bits = np.column_stack([self.nodes.missing[chosen], rows[:, :widest]])
        return np.packbits(bits, axis=1, bitorder="little")

    def _tables(self) -> str:
        feature, left, last = self._test_tables()
        out = "# Each test: its feature, and the last code that goes left.\n" + feature.text()
        out += left.text() if len(left.numbers) else ""
        if self.kinds[2]:
            out += "# The sets of codes that go left; bit 0 is that of a missing value.\n"
            out += f"_SETS = {bytes_text(self.sets.tobytes())}\n"
        if self.gaps and not last.is_constant:
            out += "# The last codes of features.\n" + last.text()
        out += "# Trees: the number of a test and the length of its left branch, or that of a leaf.\n"
        out += self.stream.text()
        return out + ("" if self.model.votes else "# What leaves add to a score.\n" + self.values.text())

    def _walk(self) -> str:
        """Write the function that walks down a tree."""
        feature, _, last = self._test_tables()
        highest = str(last.numbers[0]) if last.is_constant else last.entry("n")
        choose, left = self._goes_left()
        return LEAF.format(
            node=self.stream.entry("i"),
            tests=len(self.tests),
            feature=feature.entry("n"),
            gap=GAP.format(last=highest) if self.gaps else "",
            choose=choose,
            left=left,
            skip=self.stream.entry("(i + 1)"),
        )

    def _goes_left(self) -> tuple[str, str]:
        """Write whether a code goes left, as lines and an expression; a missing code is below all others."""
        with_gap, without, sets = self.kinds
        ordered, wide = with_gap + without, self.sets.shape[1]
        row = f"(n - {ordered})" if ordered else "n"
        row = f"{wide} * {row}" if wide > 1 else row
        in_set = f"_SETS[{row} + (code + 1 >> 3)] >> (code + 1 & 7) & 1"
        if not ordered:
            return "", in_set
        last = self._test_tables()[1].entry("n")
        below = f"0 <= code <= {last}" if self.gaps and not with_gap else f"code <= {last}"
        if with_gap and without:
            below = f"code <= {last} and (n < {with_gap} or code >= 0)"
        return (EITHER.format(ordered=ordered, below=below, in_set=in_set), "left") if sets else ("", below)

    def _additions(self) -> str:
        """Write how trees add to the sums."""
        trees, every = self.parts.trees, bool((self.parts.output < 0).any())
        if not trees:
            return ""
        at = "i + 1" if len(trees) > 1 else "0"
        if self.model.votes:
            add = f"sums[_leaf(x, {at})] += {int(self.model.values.max())}\n"
        elif every:
            add = ALL_CLASSES.format(classes=self.classes, at=at, value=self.values.entry("k"))
        else:
            c = "c" if len(trees) > 1 else self.parts.output[0]
            add = f"k = _leaf(x, {at})\nsums[{c}] += {self.values.entry('k')}\n"
        if len(trees) == 1:
            return add
        add += f"i += 1 + {self.stream.entry('i')}\n"
        loop = f"for _ in range({len(trees) if every else 'count'}):\n" + indent(add, "    ")
        return "i = 0\n" + (loop if every else "for c, count in enumerate(_TREES):\n" + indent(loop, "    "))
