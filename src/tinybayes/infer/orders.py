"""Orders in which to eliminate variables: greedy, the best of many with noise in their choices."""

import heapq
import math
from collections.abc import Sequence

import numpy as np

from tinybayes._kernels.orders import MIN_FILL, MIN_WEIGHT, MIN_WIDTH, WEIGHTED_MIN_FILL, greedy_orders

HEURISTICS = {
    "min-fill": MIN_FILL,
    "weighted-min-fill": WEIGHTED_MIN_FILL,
    "min-weight": MIN_WEIGHT,
    "min-width": MIN_WIDTH,
}
DENSE = 10_000  # variables: above, a matrix of all pairs would be too large
MOST_STEPS = 250_000_000  # of a search: about a second
QUICK_STEPS = 10_000_000  # of a search that other work waits for
_PLAIN = np.array([MIN_FILL, WEIGHTED_MIN_FILL, MIN_WEIGHT])  # of the first orders, which have no noise
_MIXED = np.array([MIN_FILL, WEIGHTED_MIN_FILL, MIN_FILL, MIN_WEIGHT, WEIGHTED_MIN_FILL, MIN_FILL])
_NOISE = np.array([0.05, 0.1, 0.2, 0.3])  # of the choices of greedy orders
_SLACK = math.log(1.5)
_HOPELESS = 1e16  # entries of cliques that no search makes few enough to work off
_FEW_STEPS = 3000  # of the first part of a quick search: a few microseconds
_SEED = 2


def search_orders(
    scopes: Sequence[Sequence[int]],
    cards: Sequence[int] | np.ndarray,
    *,
    heuristic: str = "search",
    most: int = 1,
    steps: int = MOST_STEPS,
    tries: int = 600,
    depths: np.ndarray | None = None,
) -> list[tuple[int, ...]]:
    """Return the best orders of a search, or that of one heuristic, by the total size of their cliques.

    Parameters
    ----------
    scopes
        The variables that are beside each other in a factor, by index.
    cards
        The number of states of each variable.
    heuristic
        A name in `HEURISTICS`, or ``"search"``: all of them, and many with noise.
    most
        How many different orders to return at most.
    steps
        When to stop, in steps of a few nanoseconds; so a search gives the same orders on every machine.
    tries
        How many orders with noise to try at most.
    depths
        Of variables that are otherwise equal, the deepest goes first.
    """
    n = len(cards)
    if n > DENSE:
        return [by_degree(scopes, n)]
    kinds, noise = np.array([HEURISTICS.get(heuristic, MIN_FILL)]), np.zeros(1)
    if heuristic == "search":
        number = np.arange(min(tries, steps // (10 * n) + 1))
        kinds = np.concatenate([_PLAIN, _MIXED[number % len(_MIXED)]])
        noise = np.concatenate([np.zeros(len(_PLAIN)), _NOISE[number // len(_MIXED) % len(_NOISE)]])
    sizes = np.asarray(cards, dtype=np.float64)
    deep = np.zeros(n) if depths is None else depths
    candidates, totals = greedy_orders(*_graph(scopes, n), sizes, deep, kinds, noise, _SLACK, steps, _SEED)
    found: dict[tuple[int, ...], None] = {}
    for t in np.argsort(totals, kind="stable"):
        if not np.isfinite(totals[t]) or len(found) == most:
            break
        found[tuple(candidates[t].tolist())] = None
    return list(found)


def quick_order(
    scopes: Sequence[Sequence[int]], cards: Sequence[int] | np.ndarray, most_steps: float = QUICK_STEPS
) -> tuple[int, ...]:
    """Return an order with small tables, searched for no longer than a part of the time that filling them takes."""
    if len(cards) == 0:
        return ()
    (first,) = search_orders(scopes, cards, steps=_FEW_STEPS)
    entries = clique_entries(scopes, cards, first)
    steps = int(min(entries / 16, most_steps if entries < _HOPELESS else QUICK_STEPS))
    return search_orders(scopes, cards, steps=steps, tries=4000)[0] if steps > 20 * len(cards) else first


def steps_worth(scopes: Sequence[Sequence[int]], cards: Sequence[int] | np.ndarray) -> int:
    """Return how long to search for an order: not long where all tables will be far too large."""
    if len(cards) == 0 or len(cards) > DENSE:
        return MOST_STEPS
    (first,) = search_orders(scopes, cards, steps=_FEW_STEPS)
    return MOST_STEPS if clique_entries(scopes, cards, first) < _HOPELESS else QUICK_STEPS


def cliques(scopes: Sequence[Sequence[int]], order: Sequence[int]) -> list[frozenset[int]]:
    """Return the clique of each variable in an order: itself, and those it is then beside."""
    rank = {v: k for k, v in enumerate(order)}
    around: list[set[int]] = [{v} for v in order]
    for scope in scopes:
        if scope:
            around[min(rank[v] for v in scope)].update(scope)
    for k, v in enumerate(order):
        if rest := around[k] - {v}:
            around[min(rank[u] for u in rest)] |= rest
    return [frozenset(clique) for clique in around]


def clique_entries(scopes: Sequence[Sequence[int]], cards: Sequence[int] | np.ndarray, order: Sequence[int]) -> float:
    """Return the assignments of all cliques of an order together."""
    sizes = [float(card) for card in cards]
    return sum(math.prod(sizes[v] for v in clique) for clique in cliques(scopes, order))


def _graph(scopes: Sequence[Sequence[int]], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the neighbours of each variable begin, and the neighbours."""
    near: list[set[int]] = [set() for _ in range(n)]
    for scope in scopes:
        for v in scope:
            near[v].update(scope)
    for v, around in enumerate(near):
        around.discard(v)
    first = np.cumsum([0, *map(len, near)])
    return first, np.array([u for around in near for u in sorted(around)], dtype=np.int64)


def by_degree(scopes: Sequence[Sequence[int]], n: int) -> tuple[int, ...]:
    """Eliminate next the variable with the fewest neighbours: not as good, but quick on very large networks."""
    near: list[set[int]] = [set() for _ in range(n)]
    for scope in scopes:
        for v in scope:
            near[v].update(scope)
            near[v].discard(v)
    heap = [(len(around), v) for v, around in enumerate(near)]
    heapq.heapify(heap)
    order: dict[int, None] = {}
    while heap:
        degree, v = heapq.heappop(heap)
        if v in order or degree != len(near[v]):
            continue  # an entry from before its neighbours changed
        order[v] = None
        for a in near[v]:
            near[a] |= near[v]
            near[a] -= {a, v}
            heapq.heappush(heap, (len(near[a]), a))
    return tuple(order)
