"""Functions of decision trees: nested comparisons, or tables of tests and trees with a loop.

Nested comparisons take the fewest instructions, tables the least flash. A single tree is nested; of several trees the
smallest form is taken.
"""

from tinybayes.deploy.programs.program import Dialect, Sums, narrow
from tinybayes.deploy.programs.tree_layout import Layout, branches, make_layout
from tinybayes.deploy.programs.tree_levels import level_sums, level_trees
from tinybayes.deploy.programs.tree_nested import nested_sums
from tinybayes.deploy.programs.tree_nodes import node_sums
from tinybayes.deploy.programs.tree_plan import TreePlan
from tinybayes.errors import error

LOOPS = 130  # bytes of code that follows tables, about
TEST = {"codes": 8, "int": 10, "float": 16}  # bytes of code of a comparison on a Cortex-M0+, about
LEAF, WIDE = 5, 10  # of a leaf, and of one with a large value
DEEPEST = 100  # comparisons that all compilers nest


def tree_sums(plan: TreePlan, dialect: Dialect) -> Sums:
    """Make the functions that lead from rows to scores, in the form of the plan or the one that fits best."""
    layout, form = make_layout(plan), plan.form
    levels = level_trees(plan) if form in (None, "levels") else None
    if form == "levels" and levels is None:
        expected = "symmetric trees with one value in a leaf"
        raise error(expected, "others", where="form", remedy="take nodes or nested")
    deepest = max(tree.depth for tree in layout.all_trees)
    if form == "nested" and deepest > DEEPEST:
        raise error(f"trees of at most {DEEPEST} comparisons", deepest, where="form", remedy="take nodes")
    if not layout.tests or form == "nested" or (form is None and len(layout.all_trees) == 1 and deepest <= DEEPEST):
        return nested_sums(plan, layout, dialect)
    tables = []
    if form != "levels":
        tables.append(node_sums(plan, layout, dialect))
    if levels is not None:
        tables.append(level_sums(plan, levels, dialect))
    smallest = min(tables, key=_bytes)
    if form is None and _nested_bytes(plan, layout) < _bytes(smallest) + LOOPS and deepest <= DEEPEST:
        return nested_sums(plan, layout, dialect)
    return smallest


def _bytes(sums: Sums) -> int:
    return sum(array.values.nbytes for function in sums.functions for array in function.arrays)


def _nested_bytes(plan: TreePlan, layout: Layout) -> int:
    """Return the bytes of code of nested comparisons, about."""
    tests, trees = sum(1 for tree in layout.all_trees for _ in branches(tree)), len(layout.all_trees)
    leaf = LEAF if layout.every or abs(layout.rows).max() < 2**8 else WIDE
    gaps = LEAF if plan.given == "float" and plan.features.gaps else 0
    table = narrow(layout.rows, signed=True).nbytes if layout.every and not plan.net.votes else 0
    return tests * (TEST[plan.given] + gaps) + (tests + trees) * leaf + table
