"""Decision trees as nested comparisons: few instructions for each test, but every node takes code."""

from collections.abc import Callable

import numpy as np

from tinybayes.deploy.programs.program import Array, Dialect, Function, Sums, block, loop, narrow
from tinybayes.deploy.programs.tree_conditions import Conditions
from tinybayes.deploy.programs.tree_layout import Branch, Layout, Leaf, Tree, leaves, renumbered
from tinybayes.deploy.programs.tree_plan import TreePlan

ADD_UP = "Adds up all trees; the largest sum wins."


def nested_sums(plan: TreePlan, layout: Layout, dialect: Dialect) -> Sums:
    """Make the functions of nested comparisons; a single tree leads to a label without any sums."""
    if len(layout.all_trees) == 1:
        return _one_tree(plan, layout, dialect)
    conditions = Conditions(plan, dialect)
    write = _Writer(layout, conditions)
    body: list[str] = []
    arrays: list[Array] = []
    functions: list[Function] = []
    start = plan.net.start.tolist()
    if not layout.every:
        body += ["int32_t s;"]
        for c, trees in layout.trees:
            lines = [line for tree in trees for line in write.sides(tree, lambda row: _adds("s", layout.rows[row, 0]))]
            body += [f"s = {start[c]};", *lines, f"sum[{c}] = s;"]
        body += [f"sum[{c}] = {value};" for c, value in enumerate(start) if c not in dict(layout.trees)]
    else:
        body, arrays, functions = _all_classes(plan, layout, write)
    unused = [f"(void){plan.row_name};"] if not layout.tests else []
    parameters = (f"const {plan.row} *{plan.row_name}", "int32_t *sum")
    arrays += conditions.arrays
    body = [*conditions.variables, *body, *unused]
    add_up = Function("add_up", "void", parameters, tuple(body), ADD_UP, tuple(arrays), prices="nested")
    return Sums((*conditions.functions, *functions, add_up), "int32_t")


def _all_classes(plan: TreePlan, layout: Layout, write: "_Writer") -> tuple[list[str], list[Array], list[Function]]:
    """Write trees whose leaves have a value for every class: one of them for votes, else a row of a table."""
    body: list[str] = []
    first, arrays, trees = plan.start_lines, list(plan.start[1]), layout.all_trees
    if plan.net.votes:
        voted, value = layout.rows.argmax(axis=1).tolist(), int(layout.rows.max())
        lines = [line for tree in trees for line in write.sides(tree, lambda row: _adds(f"sum[{voted[row]}]", value))]
        return ["unsigned c;", *first, *lines], arrays, []
    add = loop("c", plan.classes, ["sum[c] += row_value[row][c];"])
    table = Array("row_value", narrow(layout.rows, signed=True))
    parameters = ("unsigned row", "int32_t *sum")
    add_row = Function("add_row", "void", parameters, ("unsigned c;", *add), "", (table,), noinline=True)
    for tree in trees:
        body += [*write.sides(tree, lambda row: [f"row = {row};"]), "add_row(row, sum);"]
    return ["unsigned c, row;", *first, *body], arrays, [add_row]


def _adds(target: str, value: int) -> list[str]:
    return [f"{target} {'-' if value < 0 else '+'}= {abs(int(value))};"] if value else []


def _one_tree(plan: TreePlan, layout: Layout, dialect: Dialect) -> Sums:
    """Return labels from the leaves; scores are those of the label, unless leaves of one label have different ones."""
    conditions, tree = Conditions(plan, dialect), layout.all_trees[0]
    scores = plan.net.start.astype(np.int64)[None, :].repeat(len(layout.rows), axis=0)
    scores[:, slice(None) if layout.every else [layout.trees[0][0]]] += layout.rows
    labels, used = scores.argmax(axis=1).tolist(), sorted({leaf.row for leaf in leaves(tree)})
    unasked = {i: i for i in range(len(layout.tests))}
    predict = _find(plan, renumbered(tree, unasked, dict(enumerate(labels))), layout, conditions)
    functions: tuple[Function, ...] = ()
    row = {labels[r]: r for r in used}  # by what is called
    call = f"{dialect.prefix}{plan.predict_name}({plan.row_name})"
    if len(row) < len(used):
        other = Conditions(plan, dialect, "row_member")
        find = _find(plan, tree, layout, other)
        functions = (*other.functions, find)
        row, call = {r: r for r in used}, f"find_row({plan.row_name})"
    head = f"const unsigned row = {call};"
    if plan.net.votes and not plan.net.start.any() and all(key == labels[r] for key, r in row.items()):
        lines, tables = [f"scores[c] = c == row ? {int(layout.rows.max())} : 0;"], []
    else:
        table = np.array([scores[row.get(i, 0)] for i in range(1 + max(row))])
        lines, tables = ["scores[c] = row_score[row][c];"], [Array("row_score", narrow(table, signed=True))]
    body = (head, "unsigned c;", *loop("c", plan.classes, lines))
    functions = functions or conditions.functions
    return Sums(
        functions, "int32_t", predict=predict, scores=Function("scores", "void", (), body, arrays=tuple(tables))
    )


def _find(plan: TreePlan, tree: Tree, layout: Layout, conditions: Conditions) -> Function:
    """Make a function that returns the row of the leaf."""
    body = _Writer(layout, conditions).ends(tree)
    unused = [f"(void){plan.row_name};"] if isinstance(tree, Leaf) else []
    parameters = (f"const {plan.row} *{plan.row_name}",)
    doc = "The row of values of a leaf."
    body = [*conditions.variables, *unused, *body]
    return Function("find_row", "unsigned", parameters, tuple(body), doc, conditions.arrays, prices="nested")


class _Writer:
    """Writes one tree after another."""

    def __init__(self, layout: Layout, conditions: Conditions) -> None:
        self.layout, self.conditions = layout, conditions

    def ends(self, tree: Tree) -> list[str]:
        """Write a tree whose leaves return their rows; what follows a branch that returned is the other one."""
        lines: list[str] = []
        while isinstance(tree, Branch):
            left = self.conditions.left(self.layout.tests[tree.test])
            lines += block(f"if ({left})", self.ends(tree.left))
            tree = tree.right
        return [*lines, f"return {tree.row};"]

    def sides(self, tree: Tree, lines_of: Callable[[int], list[str]]) -> list[str]:
        """Write a tree whose leaves do something, if only nothing."""
        if isinstance(tree, Leaf):
            return lines_of(tree.row)
        condition = self.conditions.left(self.layout.tests[tree.test])
        left, right = self.sides(tree.left, lines_of), self.sides(tree.right, lines_of)
        if not left:
            return block(f"if (!({condition}))", right)
        after = [*block("} else", right)] if right else ["}"]
        return [*block(f"if ({condition})", left)[:-1], *after]
