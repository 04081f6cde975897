"""Functions of decision trees: nested comparisons, or tables of tests and nodes with a loop.

Nested comparisons take the fewest instructions. A single tree is written so; several trees only where that takes less
flash than tables.
"""

from tinybayes.deploy.programs.program import Dialect, Sums
from tinybayes.deploy.programs.tree_layout import make_layout
from tinybayes.deploy.programs.tree_nested import nested_sums
from tinybayes.deploy.programs.tree_nodes import node_sums
from tinybayes.deploy.programs.tree_plan import TreePlan


def tree_sums(plan: TreePlan, dialect: Dialect) -> Sums:
    """Make the functions that lead from rows to scores, in the form of the plan."""
    layout = make_layout(plan)
    form = plan.form or "nested"
    if not layout.tests or form == "nested":
        return nested_sums(plan, layout, dialect)
    return node_sums(plan, layout, dialect)
