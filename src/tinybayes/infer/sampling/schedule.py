"""Schedules of bucket elimination, whole or split into mini-buckets."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tinybayes._kernels.buckets import Schedule
from tinybayes._kernels.constraints import Way
from tinybayes.model.layout import starts, strides

Scopes = Sequence[tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Units:
    """A schedule for the kernels, and the facts about it that Python needs; a unit eliminates one (mini-)bucket."""

    plan: Schedule
    variable: np.ndarray  # of each unit
    contexts: tuple[tuple[int, ...], ...]  # the context of each unit, in the order of the axes
    split: bool  # whether some bucket had to be split
    entries: int  # of all joint tables

    @property
    def tables(self) -> int:
        """The entries of all factors and messages."""
        return int(self.plan.first_entry[-1])

    @property
    def way(self) -> Way:
        """The way back along the schedule."""
        axes = [u for context, v in zip(self.contexts, self.variable.tolist(), strict=True) for u in (*context, v)]
        return Way(self.variable, self.plan.first_axis, np.array(axes, dtype=np.int64))

    def digits(self) -> np.ndarray:
        """Return scratch space for the digits of the widest unit."""
        return np.zeros(int(np.diff(self.plan.first_axis).max(initial=1)), dtype=np.int64)


def make_units(
    scopes: Scopes,
    cards: np.ndarray,
    order: Sequence[int],
    limit: float = math.inf,
    barren: frozenset[int] = frozenset(),
) -> Units:
    """Lay out the elimination of the variables in an order.

    Buckets whose joint table would have more entries than `limit` are split; a single factor may have more. The
    messages of `barren` variables are nearly constant: they are not passed on, and belong to the weights.
    """
    rank = {v: k for k, v in enumerate(order)}
    sizes, all_scopes, units = cards.tolist(), list(scopes), []
    waiting: list[list[int]] = [[] for _ in order]
    for table, scope in enumerate(scopes):
        if scope:
            waiting[min(rank[v] for v in scope)].append(table)
    for k, v in enumerate(order):
        parts = [waiting[k]] if limit == math.inf else _parts(waiting[k], all_scopes, v, sizes, limit)
        for members in parts:
            context = sorted({u for t in members for u in all_scopes[t]} - {v}, key=rank.__getitem__)
            units.append(_Unit(v, tuple(context), members, 1.0 / len(parts)))
            if context and v not in barren:
                waiting[rank[context[0]]].append(len(all_scopes))
            all_scopes.append(tuple(context))  # of the message of the unit
    return _lay_out(units, all_scopes, sizes)


def _parts(tables: list[int], scopes: Scopes, v: int, cards: list[int], limit: float) -> list[list[int]]:
    """Split a bucket into groups whose joint tables are within the limit, the largest scopes first."""
    groups: list[tuple[set[int], list[int]]] = []
    for table in sorted(tables, key=lambda t: (-len(scopes[t]), t)):
        own, best = set(scopes[table]) | {v}, -1
        most = -1
        for g, (together, _) in enumerate(groups):
            if math.prod(cards[u] for u in together | own) <= limit and len(together & own) > most:
                best, most = g, len(together & own)
        if best < 0:
            groups.append((own, [table]))
        else:
            groups[best][0].update(own)
            groups[best][1].append(table)
    return [members for _, members in groups] or [[]]


class _Unit(NamedTuple):
    variable: int
    context: tuple[int, ...]
    members: list[int]  # factors and messages that are multiplied
    share: float  # of the bucket: 1 / number of its parts


def _lay_out(units: Sequence[_Unit], scopes: Scopes, cards: list[int]) -> Units:
    """Lay out units for the kernels; `scopes` are those of the factors, then of the message of each unit."""
    axes = [(*unit.context, unit.variable) for unit in units]
    steps = []
    for unit, own_axes in zip(units, axes, strict=True):
        for table in unit.members:
            scope = scopes[table]
            own = dict(zip(scope, strides([cards[u] for u in scope]), strict=True))
            steps.append([own.get(u, 0) for u in own_axes])
    counts = [math.prod(cards[u] for u in own_axes) for own_axes in axes]
    plan = Schedule(
        states=np.array([cards[unit.variable] for unit in units], dtype=np.int64),
        share=np.array([unit.share for unit in units], dtype=np.float64),
        first_axis=starts(len(own_axes) for own_axes in axes),
        axis_card=np.array([cards[u] for own_axes in axes for u in own_axes], dtype=np.int64),
        first_joint=starts(counts),
        first_member=starts(len(unit.members) for unit in units),
        member=np.array([table for unit in units for table in unit.members], dtype=np.int64),
        first_stride=starts(len(row) for row in steps),
        stride=np.array([step for row in steps for step in row], dtype=np.int64),
        first_entry=starts(math.prod(cards[u] for u in scope) for scope in scopes),
        factors=len(scopes) - len(units),
    )
    variable = np.array([unit.variable for unit in units], dtype=np.int64)
    split = any(unit.share < 1.0 for unit in units)
    return Units(plan, variable, tuple(unit.context for unit in units), split, sum(counts))
