"""Decision trees as a stream of numbers that a loop follows: little code, and a few bytes for a node.

The left branch of a node lies behind it. A node is the number of its test, and how many numbers its left branch takes;
a leaf is a number above those of all tests. A tree begins with its size, unless it is the only one; the trees of a
class end with a zero.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinybayes.deploy.programs.program import Array, Dialect, Function, Sums, block, indent, loop, narrow
from tinybayes.deploy.programs.tree_layout import Branch, Layout, Tree
from tinybayes.deploy.programs.tree_plan import TreePlan
from tinybayes.deploy.programs.tree_tests import Questions

FIND = "Follows a tree to the number of a leaf."
ADD_UP = "Adds up all trees; the largest sum wins."


def node_sums(plan: TreePlan, layout: Layout, dialect: Dialect) -> Sums:
    """Make the function that follows the stream."""
    nodes = Nodes(plan, layout, dialect)
    parameters = (f"const {plan.row} *{plan.row_name}", "int32_t *sum")
    add_up = Function("add_up", "void", parameters, tuple(nodes.body), ADD_UP, nodes.arrays)
    return Sums((*nodes.questions.functions, nodes.walk, add_up), "int32_t")


def visits(layout: Layout) -> float:
    """Return how many tests a row is asked, about: a little less than the depth of each tree."""
    return sum(0.8 * tree.depth for tree in layout.all_trees)


@dataclass(frozen=True, eq=False)
class Nodes:
    """The stream of a program, and the loop."""

    plan: TreePlan
    layout: Layout
    dialect: Dialect

    @cached_property
    def questions(self) -> Questions:
        """The tests."""
        return Questions(self.plan, self.layout, self.dialect, visits(self.layout))

    @cached_property
    def values(self) -> np.ndarray:
        """What leaves point to: numbers of one class, rows of all classes, or nothing but the class of a vote."""
        return self.layout.rows if self.layout.every else self.layout.rows[:, 0]

    @cached_property
    def lowest(self) -> int | None:
        """The value of the first number of leaves, where numbers of leaves are values; None where values have a table.

        That takes no more bytes for a number.
        """
        if self.plan.net.votes or self.layout.every:
            return None
        low, high = int(self.values.min()), int(self.values.max())
        tests = len(self.layout.tests)
        direct, listed = (narrow([tests + count - 1]).itemsize for count in (high - low + 1, len(self.values)))
        return low if direct <= listed else None

    def _leaf(self, row: int) -> int:
        """Return the number of a leaf, from zero on."""
        if self.plan.net.votes:
            return int(self.layout.rows[row].argmax())
        return row if self.lowest is None else int(self.values[row]) - self.lowest

    def _stream(self, tree: Tree) -> list[int]:
        """Return the numbers of a tree."""
        tests, out = len(self.layout.tests), []
        waiting: list[Tree | tuple[int]] = [tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Branch):
                at = len(out)
                out += [node.test, 0]
                waiting += [node.right, (at + 1,), node.left]
            elif len(node) == 1 and not hasattr(node, "row"):
                out[node[0]] = len(out) - node[0] - 1  # the left branch is complete
            else:
                out.append(tests + self._leaf(node.row))
        return out

    @property
    def single(self) -> bool:
        """Whether there is one tree only."""
        return len(self.layout.all_trees) == 1

    @cached_property
    def stream(self) -> np.ndarray:
        """All numbers."""
        numbers: list[int] = []
        groups = dict(self.layout.trees)
        for c in [-1] if self.layout.every else range(self.plan.classes):
            for tree in groups.get(c, ()):
                own = self._stream(tree)
                numbers += own if self.single else [len(own) + 1, *own]
            numbers += [] if self.layout.every or self.single else [0]
        return narrow(numbers)

    @cached_property
    def arrays(self) -> tuple[Array, ...]:
        """All tables."""
        tables = [Array("node", self.stream)]
        if not self.plan.net.votes and self.lowest is None:
            tables.append(Array("leaf_value", narrow(self.values, signed=True)))
        return (*self._start[1], *self.questions.before_tables, *tables)

    @cached_property
    def _start(self) -> tuple[str, tuple[Array, ...]]:
        """The first score of class ``c``, and the table that it reads."""
        start = self.plan.net.start
        if len(np.unique(start)) == 1:
            return str(int(start[0])), ()
        return "start[c]", (Array("start", narrow(start, signed=True)),)

    @property
    def walk(self) -> Function:
        """The function that leads from the first number of a tree to the number of a leaf.

        It is not inlined: loops around it would take its registers.
        """
        row = "at" if self.questions.converted else self.plan.row_name
        kind = self.questions.element if self.questions.converted else self.plan.row
        step = [*block(f"if ({self.questions.right()})", ["p += *p;"]), "++p;"]
        lines = block(f"while ((k = *p++) < {len(self.layout.tests)}U)", step)
        parameters = (f"{self.pointer}p", f"const {kind} *{row}")
        body = ("unsigned k;", *lines, "return k;")
        return Function("find_leaf", "unsigned", parameters, body, FIND, self.questions.tables, noinline=True)

    @property
    def body(self) -> list[str]:
        """The lines of the function."""
        row = "at" if self.questions.converted else self.plan.row_name
        counters = ["c", *(["i"] if self.questions.before else [])]
        head = [*self.questions.before[:1], *([] if self.single else [f"{self.pointer}p = node;"])]
        head += [f"unsigned {', '.join(counters)};", *self.questions.before[1:]]
        tree = f"const unsigned k = find_leaf({'node' if self.single else 'p + 1'}, {row});"
        after = [] if self.single else ["p += *p;"]
        first = loop("c", self.plan.classes, [f"sum[c] = {self._start[0]};"])
        if self.layout.every:
            lines = [tree, *self._add_all(), *after]
            if self.single:
                return [*head, *first, *block("", lines)]
            return [*head, *first, "do {", *indent(lines), f"}} while (p < node + {len(self.stream)});"]
        if self.single:
            c = self.layout.trees[0][0]
            return [*head, *first, *block("", [tree, f"sum[{c}] += {self._value};"])]
        lines = [f"int32_t s = {self._start[0]};", *block("while (*p)", [tree, f"s += {self._value};", *after])]
        return [*head, *loop("c", self.plan.classes, [*lines, "++p;", "sum[c] = s;"])]

    @property
    def pointer(self) -> str:
        """The type of a pointer into the stream."""
        return self.dialect.pointer(f"{self.stream.dtype.name}_t")

    @property
    def _value(self) -> str:
        """The value of leaf ``k``."""
        tests = len(self.layout.tests)
        if self.lowest is None:
            return f"leaf_value[k - {tests}U]"
        less = tests - self.lowest
        return f"(int32_t)k - {less}" if less >= 0 else f"(int32_t)k + {-less}"

    def _add_all(self) -> list[str]:
        leaf = f"k - {len(self.layout.tests)}U"
        if self.plan.net.votes:
            return [f"sum[{leaf}] += {int(self.layout.rows.max())};"]
        return loop("c", self.plan.classes, [f"sum[c] += leaf_value[{leaf}][c];"])
