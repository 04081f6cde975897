"""The plan of a join tree: which tables are multiplied, in what order, and where they lie in memory."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinybayes._kernels.join_layout import lay_out
from tinybayes._kernels.join_tree import Plan
from tinybayes.model.layout import starts

Scope = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class JoinPlan:
    """A plan for the kernels, and the facts about it that Python needs."""

    plan: Plan
    scopes: tuple[Scope, ...]  # of the factors, in the order of the axes of their tables
    variable: np.ndarray  # that each operation sums out, -1 for a product
    axis_variable: np.ndarray  # the variable of each axis
    sizes: tuple[int, ...]  # the entries of the joint table of each operation
    joints: tuple[tuple[int, Scope], ...]  # where the joint marginals are in the scratch space, and their axes
    scratch: int  # entries of the scratch space
    room: tuple[int, int, int]  # most tables of an operation, entries of a tile, and axes

    @property
    def bytes(self) -> int:
        """The memory of all tables and messages, and of the targets of the way down."""
        return 8 * (int(self.plan.first_entry[-1]) + self.scratch)


def make_plan(
    scopes: Sequence[Scope], cards: Sequence[int] | np.ndarray, order: Sequence[int], joints: Sequence[Scope] = ()
) -> JoinPlan:
    """Lay out the elimination of the variables in an order.

    Every variable must be in a scope, and every scope of `joints`, whose joint marginals the way down computes, must
    be a scope.
    """
    last_first = np.array(order[::-1], dtype=np.int64)
    place = np.empty(len(last_first), dtype=np.int64)
    place[last_first] = np.arange(len(last_first))
    places = place.tolist()

    def arranged(scope: Scope) -> Scope:
        return tuple(sorted(scope, key=places.__getitem__))

    def flat(tables: Sequence[Scope]) -> tuple[np.ndarray, np.ndarray]:
        return starts(map(len, tables)), place[np.array([v for scope in tables for v in scope], dtype=np.int64)]

    tables, wanted = [arranged(scope) for scope in scopes], [arranged(scope) for scope in joints]
    sizes = np.asarray(cards, dtype=np.int64)[last_first]
    layout = lay_out(*flat(tables), sizes, *flat(wanted), math.inf)
    return JoinPlan(
        plan=layout.plan,
        scopes=tuple(tables),
        variable=np.where(layout.variable < 0, -1, last_first[layout.variable]),
        axis_variable=last_first[layout.axis],
        sizes=tuple(layout.size.tolist()),
        joints=tuple(zip(layout.joint.tolist(), wanted, strict=True)),
        scratch=layout.scratch,
        room=(layout.tables, layout.tile, layout.axes),
    )
