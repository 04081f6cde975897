"""The operations of a join tree: which tables are multiplied, in what order, and where they lie in memory.

Every variable has a bucket, which multiplies the tables that contain it and no variable eliminated before, and sums it
out. Its result, the message, goes to the bucket of the next variable that it contains.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tinybayes._kernels.join_tree import Plan
from tinybayes.model.layout import starts, strides

Scope = tuple[int, ...]
_TILE = 256  # entries of a tile at least, where a joint table has as many
WORTH = 1024  # entries of a joint table before small tables are multiplied first
SMALL = 8  # a product of small tables has at most this part of the joint table


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


@dataclass(frozen=True)
class _Operation:
    axes: Scope
    operands: tuple[int, ...]  # numbers of tables
    variable: int  # -1: a product
    targets: tuple[tuple[int, Scope], ...] = ()  # the message (or -1) and the separator


def make_plan(
    scopes: Sequence[Scope], cards: Sequence[int] | np.ndarray, order: Sequence[int], joints: Sequence[Scope] = ()
) -> JoinPlan:
    """Lay out the elimination of the variables in an order.

    Every variable must be in a scope, and every scope of `joints`, whose joint marginals the way down computes, must
    be a scope.
    """
    sizes = [int(card) for card in cards]
    rank = {v: k for k, v in enumerate(order)}

    def arranged(variables: set[int] | Scope) -> Scope:
        return tuple(sorted(variables, key=rank.__getitem__, reverse=True))

    def entries(variables: Scope | set[int]) -> int:
        return math.prod(sizes[v] for v in variables)

    tables = [arranged(scope) for scope in scopes]
    waiting: list[list[int]] = [[] for _ in sizes]
    for table, scope in enumerate(tables):
        if scope:
            waiting[scope[-1]].append(table)
    wanted: list[list[Scope]] = [[] for _ in sizes]
    for scope in joints:
        wanted[arranged(scope)[-1]].append(arranged(scope))
    operations: list[_Operation] = []
    factors = len(tables)
    for v in order:
        members = waiting[v]
        axes = arranged(set().union(*(tables[t] for t in members)))
        targets = [(t, tables[t]) for t in members if t >= factors]
        targets += [(-1, scope) for scope in wanted[v]]
        small = _small(members, tables, entries, entries(axes))
        if small:
            scope = arranged(set().union(*(tables[t] for t in small)))
            operations.append(_Operation(scope, tuple(small), -1))
            members = [t for t in members if t not in small] + [len(tables)]
            tables.append(scope)
        # The largest is read first, into the empty tile.
        members = sorted(members, key=lambda t: (-entries(tables[t]), t))
        operations.append(_Operation(axes, tuple(members), v, tuple(targets)))
        if axes[:-1]:
            waiting[axes[-2]].append(len(tables))
        tables.append(axes[:-1])
    return _lay_out(operations, tables, factors, sizes)


def _small(members: list[int], tables: list[Scope], entries: Callable[[set[int]], int], largest: int) -> list[int]:
    """Return the small tables of a bucket that are worth multiplying first."""
    if largest < WORTH or len(members) < 3:
        return []
    chosen: list[int] = []
    together: set[int] = set()
    for table in sorted(members, key=lambda t: (entries(set(tables[t])), t)):
        if entries(together.union(tables[table])) * SMALL > largest:
            break
        chosen.append(table)
        together.update(tables[table])
    return chosen if len(chosen) > 1 else []


def _lay_out(operations: list[_Operation], tables: list[Scope], factors: int, cards: list[int]) -> JoinPlan:
    operands = [t for operation in operations for t in operation.operands]
    targets = [(target, operation) for operation in operations for target in operation.targets]
    steps: list[int] = []
    first_stride, target_stride = [], []
    for operation in operations:
        for t in operation.operands:
            first_stride.append(len(steps))
            steps += _steps(tables[t], operation.axes, cards)
    for (_, scope), operation in targets:
        target_stride.append(len(steps))
        steps += _steps(scope, operation.axes, cards)
    target_sizes = [math.prod(cards[v] for v in scope) for (_, scope), _ in targets]
    # Joint marginals stay in the scratch space, at its end; what else is there belongs to one operation at a time.
    place, places, ends = 0, [0] * len(targets), 0
    at = 0
    for operation in operations:
        place = 0
        for table, _ in operation.targets:
            if table >= 0:
                places[at], place = place, place + target_sizes[at]
            at += 1
        ends = max(ends, place)
    joints = []
    for number, ((table, scope), _) in enumerate(targets):
        if table < 0:
            places[number], ends = ends, ends + target_sizes[number]
            joints.append((places[number], scope))
    sizes = [math.prod(cards[v] for v in operation.axes) for operation in operations]
    inner = [_inner(o.axes, cards) for o in operations]
    tiles = [math.prod(cards[v] for v in o.axes[len(o.axes) - k :]) for o, k in zip(operations, inner, strict=True)]
    plan = Plan(
        states=np.array([1 if o.variable < 0 else cards[o.variable] for o in operations], dtype=np.int64),
        first_axis=starts(len(o.axes) for o in operations),
        axis_card=np.array([cards[v] for o in operations for v in o.axes], dtype=np.int64),
        inner=np.array(inner, dtype=np.int64),
        first_operand=starts(len(o.operands) for o in operations),
        operand=np.array(operands, dtype=np.int64),
        first_stride=np.array(first_stride, dtype=np.int64),
        stride=np.array(steps, dtype=np.int64),
        output=np.arange(factors, factors + len(operations)),
        first_entry=starts(math.prod(cards[v] for v in scope) for scope in tables),
        first_target=starts(len(o.targets) for o in operations),
        target_table=np.array([table for (table, _), _ in targets], dtype=np.int64),
        target_start=np.array(places, dtype=np.int64),
        target_size=np.array(target_sizes, dtype=np.int64),
        target_stride=np.array(target_stride, dtype=np.int64),
    )
    return JoinPlan(
        plan=plan,
        scopes=tuple(tables[:factors]),
        variable=np.array([o.variable for o in operations], dtype=np.int64),
        axis_variable=np.array([v for o in operations for v in o.axes], dtype=np.int64),
        sizes=tuple(sizes),
        joints=tuple(joints),
        scratch=ends,
        room=(
            max((len(o.operands) + len(o.targets) for o in operations), default=1),
            max(tiles, default=1),
            max((len(o.axes) for o in operations), default=1),
        ),
    )


def _steps(scope: Scope, axes: Scope, cards: list[int]) -> list[int]:
    """Return the stride of a table along each axis of an operation."""
    own = dict(zip(scope, strides([cards[v] for v in scope]), strict=True))
    return [own.get(v, 0) for v in axes]


def _inner(axes: Scope, cards: list[int]) -> int:
    """Return how many of the last axes a tile has."""
    size, count = 1, 0
    for v in reversed(axes):
        if size >= _TILE:
            break
        size, count = size * cards[v], count + 1
    return count
