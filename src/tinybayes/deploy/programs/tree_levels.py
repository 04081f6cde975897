"""Symmetric trees as levels: all nodes of a level ask the same question, so that the answers are the number of a leaf.

A tree is the numbers of its tests and then its leaves, of four bits where there are few values. All trees have the same
depth: others ask some question again, and do not care for the answer.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinybayes.cost.tree_ensemble import is_symmetric
from tinybayes.deploy.programs.program import Array, Dialect, Function, Sums, block, indent, loop, narrow
from tinybayes.deploy.programs.tree_layout import Layout, Test, node_tests, ordered, value_rows
from tinybayes.deploy.programs.tree_plan import TreePlan
from tinybayes.deploy.programs.tree_tests import Questions

ADD_UP = "Adds up all trees; the largest sum wins."
VALUE = "The value of the leaf of a tree."
ANSWER, READ = 10, 4  # instructions, about: a test is answered, or its answer is read
MOST_ANSWERS = 512  # bytes of stack


@dataclass(frozen=True)
class LevelTree:
    """A symmetric tree: its tests, and the rows of its leaves; the first test is the highest bit of their number."""

    output: int
    tests: tuple[Test, ...]
    rows: np.ndarray


def level_trees(plan: TreePlan) -> list[LevelTree] | None:
    """Return symmetric trees by class; None for others, and where leaves have values for all classes."""
    trees = plan.net.trees
    if (trees.output < 0).any() or not is_symmetric(trees):
        return None
    asked, (_, row_of) = node_tests(plan), value_rows(plan)
    made = []
    for root, output in zip(trees.root.tolist(), trees.output.tolist(), strict=True):
        level, tests = [root], []
        while trees.feature[level[0]] >= 0:
            tests.append(asked[level[0]])
            level = [child for node in level for child in (int(trees.child[node]), int(trees.child[node]) + 1)]
        rows = row_of[trees.threshold[level]].reshape((2,) * len(tests))
        rows = rows[tuple(slice(None) if isinstance(test, Test) else 0 if test else 1 for test in tests)]
        made.append(LevelTree(output, tuple(test for test in tests if isinstance(test, Test)), rows.reshape(-1)))
    return sorted(made, key=lambda tree: tree.output)


def level_sums(plan: TreePlan, trees: list[LevelTree], dialect: Dialect) -> Sums:
    """Make the functions that add up symmetric trees."""
    levels = Levels(plan, tuple(trees), dialect)
    parameters = (f"const {plan.row} *{plan.row_name}", "int32_t *sum")
    add_up = Function("add_up", "void", parameters, tuple(levels.body), ADD_UP, levels.arrays)
    return Sums((*levels.questions.functions, levels.value, add_up), "int32_t")


@dataclass(frozen=True, eq=False)
class Levels:
    """The tables of a program, and its loops."""

    plan: TreePlan
    trees: tuple[LevelTree, ...]
    dialect: Dialect

    @cached_property
    def layout(self) -> Layout:
        """The tests of all trees."""
        tests = ordered({test for tree in self.trees for test in tree.tests})
        return Layout(tests, value_rows(self.plan)[0], ())

    @cached_property
    def depth(self) -> int:
        """The tests of every tree."""
        return max(len(tree.tests) for tree in self.trees)

    @cached_property
    def first_answers(self) -> bool:
        """Whether all tests are answered before the first tree."""
        tests, asked = len(self.layout.tests), len(self.trees) * self.depth
        return tests <= MOST_ANSWERS and tests * ANSWER < asked * (ANSWER - READ)

    @cached_property
    def questions(self) -> Questions:
        """The tests, as loops ask them."""
        asked = len(self.layout.tests) if self.first_answers else len(self.trees) * self.depth
        return Questions(self.plan, self.layout, self.dialect, asked)

    @property
    def packed(self) -> bool:
        """Whether a leaf takes four bits."""
        return len(self.layout.rows) <= 16

    @cached_property
    def values(self) -> np.ndarray | None:
        """The values that leaves point to; None where leaves hold them."""
        values = self.layout.rows[:, 0]
        small = not self.packed and values.min() >= -128 and values.max() < 128
        return None if small else narrow(values, signed=True)

    @cached_property
    def stream(self) -> np.ndarray:
        """All trees, one in a row."""
        number = {test: i for i, test in enumerate(self.layout.tests)}
        rows = []
        for tree in self.trees:
            more = self.depth - len(tree.tests)
            leaves = np.repeat(tree.rows, 2**more)
            if self.packed:
                leaves = leaves[::2] | leaves[1::2] << 4
            elif self.values is None:
                leaves = self.layout.rows[leaves, 0] % 256
            rows.append([*(number[test] for test in tree.tests), *[0] * more, *leaves.tolist()])
        return narrow(np.array(rows))

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The tables of the function that adds up."""
        listed = () if self._one else (*self.plan.start[1], *self._counts[1])
        answers = self.questions.tables if self.first_answers else ()
        return (*listed, *answers, *self.questions.before_tables, Array("tree", self.stream.reshape(-1)))

    @property
    def _one(self) -> bool:
        """Whether trees add to one of few classes only, so that no loop over classes is needed."""
        return self.plan.classes <= 3 and len({tree.output for tree in self.trees}) == 1

    @cached_property
    def _counts(self) -> tuple[str, tuple[Array, ...]]:
        """The trees of class ``c``, and the table that has them."""
        counts = np.bincount([tree.output for tree in self.trees], minlength=self.plan.classes)
        if len(np.unique(counts)) == 1:
            return str(counts[0]), ()
        return "tree_count[c]", (Array("tree_count", narrow(counts)),)

    @property
    def _answers(self) -> tuple[str, str]:
        """The type and the name of what trees read: answers, converted features, or the row."""
        if self.first_answers:
            return "uint8_t", "answer"
        return self.questions.row

    @property
    def pointer(self) -> str:
        """The type of a pointer into the trees."""
        return self.dialect.pointer(f"{self.stream.dtype.name}_t")

    @property
    def value(self) -> Function:
        """The function of one tree; it is not inlined, since loops around it would take its registers."""
        kind, name = self._answers
        leaves = 2**self.depth
        step = ["i = 2U * i + answer[*p++];"]
        if not self.first_answers:
            step = ["const unsigned k = *p++;", f"i = 2U * i + {_flag(self.questions.right())};"]
        loops = ["do {", *indent(step), f"}} while (i < {leaves}U);"] if self.depth > 1 else step
        leaf = f"p[i - {leaves}U]"
        if self.packed:
            leaf = f"(p[(i - {leaves}U) >> 1] >> ((i & 1U) * 4U)) & 15"
        leaf = f"(int8_t){leaf}" if self.values is None else f"leaf_value[{leaf}]"
        tables = () if self.first_answers else self.questions.tables
        tables += () if self.values is None else (Array("leaf_value", self.values),)
        body = ("unsigned i = 1;", *loops, f"return {leaf};")
        parameters = (f"{self.pointer}p", f"const {kind} *{name}")
        return Function("tree_value", "int32_t", parameters, body, VALUE, tables, noinline=True, prices="walk")

    @property
    def body(self) -> list[str]:
        """The lines of the function that adds up."""
        before, tests = self.questions.before, len(self.layout.tests)
        counters = [
            *([] if self._one else ["c"]),
            "n",
            *(["i"] if before else []),
            *(["k"] if self.first_answers else []),
        ]
        head = [*before[:1], *([f"uint8_t answer[{tests}];"] if self.first_answers else [])]
        head += [f"{self.pointer}p = tree;", f"unsigned {', '.join(counters)};", *before[1:]]
        if self.first_answers:
            head += loop("k", tests, [f"answer[k] = {_flag(self.questions.right())};"])
        width = self.stream.shape[1]
        lines = [f"s += tree_value(p, {self._answers[1]});", f"p += {width};"]
        if self._one:
            start, own = self.plan.net.start.tolist(), self.trees[0].output
            others = [f"sum[{c}] = {start[c]};" for c in range(self.plan.classes) if c != own]
            trees = loop("n", len(self.trees), lines)
            return [*head, *others, *block("", [f"int32_t s = {start[own]};", *trees, f"sum[{own}] = s;"])]
        trees = block(f"for (n = {self._counts[0]}; n; --n)", lines)
        return [*head, *loop("c", self.plan.classes, [f"int32_t s = {self.plan.start[0]};", *trees, "sum[c] = s;"])]


def _flag(condition: str) -> str:
    """Write a condition as zero or one."""
    return f"({condition} ? 1U : 0U)" if "?" not in condition else f"(({condition}) ? 1U : 0U)"
