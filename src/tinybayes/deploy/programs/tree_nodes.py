"""Decision trees as a stream of numbers that a loop follows: little code, and a few bytes for a node.

The left branch of a node lies behind it. A node is the number of its test, and how many numbers its left branch takes;
a leaf is a number above those of all tests. Where few nodes share a test, a node is the number of its feature and the
bytes of its cut instead; where few leaves share a value, its bytes follow the leaf. A tree begins with its size, unless
it is the only one; the trees of a class end with a zero.

Numbers are bytes wherever there are at most 256. A length of more than a byte is `LONG` and two bytes.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinybayes.deploy.programs.program import Array, Dialect, Function, Sums, block, indent, loop, narrow
from tinybayes.deploy.programs.tree_layout import Layout, Leaf, Tree, all_nodes
from tinybayes.deploy.programs.tree_plan import TreePlan
from tinybayes.deploy.programs.tree_tests import Questions

FIND = "Follows a tree to the number of a leaf."
FIND_VALUE = "Follows a tree to the value of a leaf."
ADD_UP = "Adds up all trees; the largest sum wins."
LONG = 255
LONGEST = 2**16 - 1


def node_sums(plan: TreePlan, layout: Layout, dialect: Dialect) -> Sums:
    """Make the functions that follow the stream, with tests and values in tables or in the nodes: what takes less."""
    held = (False,) if layout.every else (False, True)
    streams = [Nodes(plan, layout, dialect, direct, hold) for direct in (True, False) for hold in held]
    nodes = min((nodes for nodes in streams if nodes.fits), key=lambda nodes: nodes.bytes)
    parameters = (f"const {plan.row} *{plan.row_name}", "int32_t *sum")
    add_up = Function("add_up", "void", parameters, tuple(nodes.body), ADD_UP, nodes.arrays)
    return Sums((*nodes.questions.functions, nodes.find_leaf, add_up), "int32_t")


@dataclass(frozen=True, eq=False)
class Nodes:
    """The stream of a program, and the loop."""

    plan: TreePlan
    layout: Layout
    dialect: Dialect
    direct: bool  # whether tests are in the nodes, instead of a table
    held: bool = False  # whether values are in the leaves, instead of a table

    @cached_property
    def questions(self) -> Questions:
        """The tests."""
        visits = sum(0.8 * tree.depth for tree in self.layout.all_trees)  # a little less than the depth
        return Questions(self.plan, self.layout, self.dialect, visits)

    @cached_property
    def fits(self) -> bool:
        """Whether numbers and lengths can be bytes, or tests and values are in tables, which works in any case."""
        if not self.direct and not self.held:
            return True
        return not (self.direct and self.questions.sets) and self.short

    @cached_property
    def bytes(self) -> int:
        """The bytes of all tables."""
        arrays = (*self.arrays, *self.find_leaf.arrays)
        return sum(array.values.nbytes for array in arrays)

    # Numbers

    @cached_property
    def first_leaf(self) -> int:
        """The lowest number of a leaf: there are as many tests, or features, and these twice where gaps go right."""
        if not self.direct:
            return len(self.layout.tests)
        return self._slots * (2 if self._both_sides else 1)

    @cached_property
    def _slots(self) -> int:
        return len(self.layout.tested) if self.questions.converted else len(self.plan.variables)

    @cached_property
    def _both_sides(self) -> bool:
        """Whether missing values go right at some of the tests, and left at others."""
        return self.questions.some_right and self.layout.gaps_right > 0

    @cached_property
    def values(self) -> np.ndarray:
        """The values that leaves point to: rows of them where leaves have values for all classes."""
        return self.layout.rows if self.layout.every else self.layout.rows[:, 0]

    @cached_property
    def _narrow_values(self) -> np.ndarray:
        return narrow(self.values, signed=True)

    @cached_property
    def lowest(self) -> int | None:
        """The value of the first number of leaves, where these are values; None where a table has the values."""
        if self.held or self.layout.every:
            return None
        low, high = int(self.values.min()), int(self.values.max())
        sizes = [narrow([self.first_leaf + count]).itemsize for count in (high - low, len(self.values) - 1)]
        return low if sizes[0] <= sizes[1] else None

    @property
    def _leaves(self) -> int:
        """How many numbers leaves have."""
        if self.plan.net.votes:
            return self.plan.classes
        if self.held:
            return 1
        return len(self.values) if self.lowest is None else int(self.values.max()) - self.lowest + 1

    def _leaf(self, row: int) -> list[int]:
        """Return the numbers of a leaf."""
        if self.plan.net.votes:
            return [self.first_leaf + int(self.layout.rows[row].argmax())]
        if self.held:
            return [self.first_leaf, *self._narrow_values[row].tobytes()]
        return [self.first_leaf + (row if self.lowest is None else int(self.values[row]) - self.lowest)]

    def _test(self, number: int) -> list[int]:
        """Return the numbers of a test."""
        if not self.direct:
            return [number]
        side = self._slots if self._both_sides and number >= self.layout.gaps_right else 0
        return [int(self.questions.features[number]) + side, *self.questions.cuts[number].tobytes()]

    # The stream

    def _numbers(self, tree: Tree, *, short: bool) -> tuple[list[int], bool]:
        """Return the numbers of a tree, and whether a length takes more than a byte; with `short` numbers are bytes."""
        made: dict[int, list[int]] = {}
        long = False
        for node in reversed(list(all_nodes(tree))):  # children first
            if isinstance(node, Leaf):
                made[id(node)] = self._leaf(node.row)
                continue
            left, right = made[id(node.left)], made[id(node.right)]
            long |= len(left) >= LONG
            size = [len(left)] if not short or len(left) < LONG else [LONG, *_two(len(left))]
            made[id(node)] = [*self._test(node.test), *size, *left, *right]
        return made[id(tree)], long

    @cached_property
    def _made(self) -> tuple[list[list[int]], bool, bool]:
        """The numbers of each tree, whether they are bytes, and whether lengths take more than a byte."""
        if self.first_leaf + self._leaves <= 2**8:
            made = [self._numbers(tree, short=True) for tree in self.layout.all_trees]
            if max(len(numbers) for numbers, _ in made) + 2 <= LONGEST:
                return [numbers for numbers, _ in made], True, any(long for _, long in made)
        return [self._numbers(tree, short=False)[0] for tree in self.layout.all_trees], False, False

    @property
    def _trees(self) -> list[list[int]]:
        return self._made[0]

    @property
    def short(self) -> bool:
        """Whether the numbers of the stream are bytes."""
        return self._made[1]

    @property
    def _long_branches(self) -> bool:
        return self._made[2]

    @property
    def _long_sizes(self) -> bool:
        """Whether the size of a tree takes two bytes."""
        return self.short and max(map(len, self._trees)) + 1 > LONG

    @property
    def single(self) -> bool:
        """Whether there is one tree only."""
        return len(self.layout.all_trees) == 1

    @cached_property
    def stream(self) -> np.ndarray:
        """All numbers."""
        if self.single:
            return narrow(self._trees[0])
        trees, groups, head = iter(self._trees), dict(self.layout.trees), 2 if self._long_sizes else 1
        numbers: list[int] = []
        for c in [-1] if self.layout.every else range(self.plan.classes):
            for _ in groups.get(c, ()):
                own = next(trees)
                size = len(own) + head
                numbers += [*(_two(size) if head == 2 else [size]), *own]
            numbers += [] if self.layout.every else [0] * head
        return narrow(numbers)

    @property
    def pointer(self) -> str:
        """The type of a pointer into the stream."""
        return self.dialect.pointer(f"{self.stream.dtype.name}_t")

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The tables of the function that adds up."""
        rows = self.layout.every and not self.plan.net.votes
        tables = [Array("leaf_value", narrow(self.values, signed=True))] if rows else []
        return (*self.plan.start[1], *self.questions.before_tables, Array("node", self.stream), *tables)

    # Functions

    @property
    def find_leaf(self) -> Function:
        """The function that leads from the first number of a tree to the number of a leaf.

        It is not inlined: loops around it would take its registers.
        """
        kind, row = self.questions.row
        read, right = self._direct_test() if self.direct else ([], self.questions.right())
        if self._long_branches:
            size = ["unsigned n = *p++;", *block(f"if (n == {LONG}U)", [f"n = {_READ_TWO};", "p += 2;"])]
            step = [*read, *size, *block(f"if ({right})", ["p += n;"])]
        else:
            step = [*read, *block(f"if ({right})", ["p += *p;"]), "++p;"]
        lines = ("unsigned k;", *block(f"while ((k = *p++) < {self.first_leaf}U)", step))
        parameters = (f"{self.pointer}p", f"const {kind} *{row}")
        tables = () if self.direct else self.questions.tables
        if self.layout.every:
            return Function(
                "find_leaf", "unsigned", parameters, (*lines, "return k;"), FIND, tables, noinline=True, prices="walk"
            )
        value, more = self._value
        body = (*lines, f"return {value};")
        return Function(
            "find_value", "int32_t", parameters, body, FIND_VALUE, (*tables, *more), noinline=True, prices="walk"
        )

    def _direct_test(self) -> tuple[list[str], str]:
        """Write lines that read the cut of a node, and the condition to go right."""
        cuts = self.questions.cuts
        kind, size = f"{cuts.dtype.name}_t", cuts.itemsize
        read = [f"const {kind} cut = {_read(cuts.dtype) if size > 1 else f'({kind})*p++'};"]
        read += [f"p += {size};"] if size > 1 else []
        if not self._both_sides:
            return read, f"{self.questions.value('k')} >= cut"
        slots = self._slots
        side = [f"const uint32_t side = k >= {slots}U ? 1U : 0U;", *block("if (side)", [f"k -= {slots}U;"])]
        return [*read, *side], f"{self.questions.value('k', 'side')} >= cut"

    @property
    def body(self) -> list[str]:
        """The lines of the function that adds up."""
        before, classes = self.questions.before, self.plan.classes
        counters = ["c", *(["i"] if before else [])]
        head = [*before[:1], *([] if self.single else [f"{self.pointer}p = node;"])]
        head += [f"unsigned {', '.join(counters)};", *before[1:]]
        first = self.plan.start_lines
        row, size = self.questions.row[1], 2 if self._long_sizes else 1
        if self.single:
            add = [f"sum[{self.layout.trees[0][0]}] += find_value(node, {row});"]
            if self.layout.every:
                add = block("", [f"const unsigned k = find_leaf(node, {row});", *self._add_all()])
            return [*head, *first, *add]
        if self.layout.every:
            after = f"p += {_READ_TWO};" if size == 2 else "p += *p;"
            lines = indent([f"const unsigned k = find_leaf(p + {size}, {row});", *self._add_all(), after])
            return [*head, *first, "do {", *lines, f"}} while (p < node + {len(self.stream)});"]
        until = f"while ((n = {_READ_TWO}))" if size == 2 else "while (*p)"
        trees = [f"s += find_value(p + {size}, {row});", "p += n;" if size == 2 else "p += *p;"]
        lines = [f"int32_t s = {self.plan.start[0]};", *(["unsigned n;"] if size == 2 else [])]
        return [*head, *loop("c", classes, [*lines, *block(until, trees), f"p += {size};", "sum[c] = s;"])]

    @property
    def _value(self) -> tuple[str, tuple[Array, ...]]:
        """The value of leaf ``k``, and the table that has it."""
        values = narrow(self.values, signed=True)
        if self.held:
            return _read(values.dtype), ()
        if self.lowest is None:
            return f"leaf_value[k - {self.first_leaf}U]", (Array("leaf_value", values),)
        less = self.first_leaf - self.lowest
        return f"(int32_t)k - {less}" if less >= 0 else f"(int32_t)k + {-less}", ()

    def _add_all(self) -> list[str]:
        leaf = f"k - {self.first_leaf}U"
        if self.plan.net.votes:
            return [f"sum[{leaf}] += {int(self.layout.rows.max())};"]
        return loop("c", self.plan.classes, [f"sum[c] += leaf_value[{leaf}][c];"])


def _read(dtype: np.dtype) -> str:
    """Write the number that the next bytes are."""
    bytes_of = [f"(uint32_t)p[{i}] << {8 * i}" if i else "p[0]" for i in range(dtype.itemsize)]
    return f"({dtype.name}_t)({' | '.join(bytes_of)})" if dtype.itemsize > 1 else f"({dtype.name}_t)*p"


_READ_TWO = "p[0] | (unsigned)p[1] << 8"


def _two(number: int) -> list[int]:
    """Return the two bytes of a number, the lower one first."""
    return [number & 255, number >> 8]
