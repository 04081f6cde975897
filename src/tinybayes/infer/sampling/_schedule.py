"""Orders and schedules of bucket elimination, whole or split into mini-buckets."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from tinybayes._kernels.buckets import Schedule
from tinybayes._kernels.orders import greedy_orders
from tinybayes.infer.elimination import DENSE, by_degree
from tinybayes.model.layout import starts, strides

Scopes = Sequence[tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Units:
    """A schedule with what Python needs to know about it.

    Parameters
    ----------
    plan
        The arrays for the kernels.
    variable
        The variable of each unit.
    contexts
        The context of each unit, in the order of the axes.
    split
        Whether some bucket had to be split.
    entries
        The entries of all joint tables.
    """

    plan: Schedule
    variable: np.ndarray
    contexts: tuple[tuple[int, ...], ...]
    split: bool
    entries: int

    @property
    def tables(self) -> int:
        """The entries of all factors and messages."""
        return int(self.plan.first_entry[-1])


def elimination_order(scopes: Scopes, cards: np.ndarray, tries: int = 64) -> tuple[int, ...]:
    """Return an order with small tables: greedy, the best of many with noise."""
    n = len(cards)
    if n == 0:
        return ()
    if n > DENSE:
        return by_degree([scope for scope in scopes if scope] + [(v,) for v in range(n)], n)
    beside = np.zeros((n, n), dtype=np.bool_)
    pairs = {pair for scope in scopes for pair in permutations(scope, 2)}
    if pairs:
        beside[tuple(np.array(list(pairs)).T)] = True
    few, noise, stop = min(4, tries), (0.05, 0.1, 0.2, 0.3), 0
    best: tuple[int, ...] = ()
    least = math.inf
    while stop < tries:
        first = stop
        # The second time not longer than the elimination itself will take.
        stop = few if first == 0 else min(tries, first + int(0.5 * math.exp(min(least, 40.0)) / n**2))
        if stop == first:
            break
        kinds = [bool(t % 2) for t in range(first, stop)]
        noises = [0.0 if t < 2 else noise[t // 2 % len(noise)] for t in range(first, stop)]
        arrays = (cards.astype(np.float64), np.zeros(n), np.array(kinds, dtype=np.bool_), np.array(noises))
        orders, sizes = greedy_orders(beside, *arrays, math.log(1.5), 2 + first)
        if sizes.min() < least:
            least, best = float(sizes.min()), tuple(orders[int(np.argmin(sizes))].tolist())
        if first:
            break
    return best


def make_units(
    scopes: Scopes,
    cards: np.ndarray,
    order: Sequence[int],
    limit: float = math.inf,
    barren: frozenset[int] = frozenset(),
) -> Units:
    """Lay out the elimination of variables in an order.

    Parameters
    ----------
    scopes
        The scopes of the factors.
    cards
        The numbers of states.
    order
        The variables; the first is eliminated first.
    limit
        Entries of a joint table; buckets that would need more are split. A single factor may have more.
    barren
        Variables whose messages are nearly constant; they are not passed on, and belong to the weights.
    """
    rank = {v: k for k, v in enumerate(order)}
    sizes = cards.tolist()
    made = _Maker(list(scopes), sizes)
    waiting: list[list[int]] = [[] for _ in order]
    for table, scope in enumerate(scopes):
        if scope:
            waiting[min(rank[v] for v in scope)].append(table)
    for k, v in enumerate(order):
        parts = [waiting[k]] if limit == math.inf else _parts(waiting[k], made.scopes, v, sizes, limit)
        for members in parts:
            context = sorted({u for t in members for u in made.scopes[t]} - {v}, key=rank.__getitem__)
            message = made.add(v, tuple(context), members, 1.0 / len(parts))
            if context and v not in barren:
                waiting[rank[context[0]]].append(message)
    return made.units(len(scopes))


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


class _Maker:
    """Units as they are made."""

    def __init__(self, scopes: list[tuple[int, ...]], cards: list[int]) -> None:
        self.scopes, self.cards = scopes, cards
        self.variable: list[int] = []
        self.contexts: list[tuple[int, ...]] = []
        self.members: list[list[int]] = []
        self.share: list[float] = []

    def add(self, v: int, context: tuple[int, ...], members: list[int], share: float) -> int:
        """Add a unit and return the number of its message."""
        self.variable.append(v)
        self.contexts.append(context)
        self.members.append(members)
        self.share.append(share)
        self.scopes.append(context)
        return len(self.scopes) - 1

    def units(self, factors: int) -> Units:
        cards, steps, counts = self.cards, [], []
        for v, context, members in zip(self.variable, self.contexts, self.members, strict=True):
            axes = (*context, v)
            for table in members:
                scope = self.scopes[table]
                own = dict(zip(scope, strides([cards[u] for u in scope]), strict=True))
                steps.append([own.get(u, 0) for u in axes])
            counts.append(math.prod(cards[u] for u in axes))
        sizes = [math.prod(cards[u] for u in scope) for scope in self.scopes]
        axes_of = [(*context, v) for context, v in zip(self.contexts, self.variable, strict=True)]
        plan = Schedule(
            states=np.array([cards[v] for v in self.variable], dtype=np.int64),
            share=np.array(self.share, dtype=np.float64),
            first_axis=starts(len(axes) for axes in axes_of),
            axis_card=np.array([cards[u] for axes in axes_of for u in axes], dtype=np.int64),
            first_joint=starts(counts),
            first_member=starts(len(members) for members in self.members),
            member=np.array([t for members in self.members for t in members], dtype=np.int64),
            first_stride=starts(len(row) for row in steps),
            stride=np.array([step for row in steps for step in row], dtype=np.int64),
            first_entry=starts(sizes),
            factors=factors,
        )
        split = any(share < 1.0 for share in self.share)
        return Units(plan, np.array(self.variable, dtype=np.int64), tuple(self.contexts), split, sum(counts))
