"""What a join tree may take, what it will take, and the variables to condition on when that is too much."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinybayes._kernels.join_layout import SMALL, WORTH
from tinybayes._kernels.threads import thread_count
from tinybayes.errors import TinybayesError, error
from tinybayes.infer.join.messages import COPIES
from tinybayes.infer.join.plan import Scope
from tinybayes.infer.orders import cliques, quick_order, search_orders

MAX_SECONDS = 600.0
AT_ONCE = 2**21  # entries of all cliques up to which one kernel does all work; more are worked off on all cores
_NANOSECONDS, _NANOSECONDS_STATE = 3.0, 28.0  # for an entry of a clique; more where variables have few states
_AT_LEAST, _PER_CLIQUE = 3e-4, 3e-5  # seconds to find an order and to lay the tables out
_NANOSECONDS_AT_ONCE, _AT_LEAST_AT_ONCE, _PER_CLIQUE_AT_ONCE = 5.0, 1.6e-5, 1.1e-6  # in one kernel, the order known
_MOST_CUT = 12  # variables to condition on
_STEPS = 120_000_000  # of the search for an order: half a second
_CUT_STEPS = 10_000_000  # of the search for an order after each of them


class TooLargeError(TinybayesError):
    """A join tree would take more memory or time than the limits."""


@dataclass(frozen=True)
class Size:
    """What the cliques of an order take.

    Parameters
    ----------
    width
        The variables of the largest clique, less one.
    entries
        The assignments of all cliques together.
    bytes
        The memory of their messages.
    cliques
        The number of cliques.
    states
        The mean number of states of the variables of the largest clique: few make tables slower to work off.
    cases
        How often, because of the variables that are conditioned on.
    """

    width: int
    entries: float
    bytes: float
    cliques: int
    states: float
    cases: float = 1.0

    @property
    def seconds(self) -> float:
        """The time that it takes, roughly; for small tables, that of a model which was asked before."""
        if self.cases == 1 and self.entries <= AT_ONCE:
            filling = 1e-9 * _NANOSECONDS_AT_ONCE * self.entries
            return filling + _PER_CLIQUE_AT_ONCE * self.cliques + _AT_LEAST_AT_ONCE
        speed = min(thread_count(), 2) if self.entries > 2**22 else 1
        filling = 1e-9 * (_NANOSECONDS + _NANOSECONDS_STATE / self.states) / speed * self.entries
        return self.cases * (filling + _PER_CLIQUE * self.cliques + _AT_LEAST)


def size_of(
    scopes: Sequence[Scope], cards: Sequence[int] | np.ndarray, order: Sequence[int], cases: float = 1.0
) -> Size:
    """Return what the cliques of an order take."""
    sizes = [float(card) for card in cards]
    around = cliques(scopes, order)
    entries = [math.prod(sizes[v] for v in clique) for clique in around]
    separators = [size / sizes[v] for size, v in zip(entries, order, strict=True)]
    rank = {v: k for k, v in enumerate(order)}
    into = [0.0] * len(around)  # the messages into each clique, whose posteriors the way down has side by side
    for v, clique, separator in zip(order, around, separators, strict=True):
        if len(clique) > 1:
            into[min(rank[u] for u in clique if u != v)] += separator
    factors = sum(math.prod(sizes[v] for v in scope) for scope in scopes)
    products = sum(size for size in entries if size >= WORTH) / SMALL
    memory = 8 * (sum(separators) + factors + products + max(into, default=0.0) + COPIES)
    largest = max(range(len(around)), key=entries.__getitem__, default=0)
    states = entries[largest] ** (1 / len(around[largest])) if around else 2.0
    return Size(max(map(len, around), default=1) - 1, sum(entries), memory, len(around), states, cases)


def choose(
    scopes: Sequence[Scope],
    cards: np.ndarray,
    max_bytes: float,
    max_seconds: float,
    order: tuple[int, ...] | None = None,
) -> tuple[tuple[int, ...], tuple[int, ...], Size]:
    """Return an order, variables to condition on so that memory suffices, mostly none, and the size of the work.

    A given `order` is taken; else one is searched for.

    Raises
    ------
    TinybayesError
        When the work would take more than the limits.
    """
    if order is None:
        order = quick_order(scopes, cards, min(_STEPS, max_seconds * _STEPS / 2))
    whole = size = size_of(scopes, cards, order)
    cut: list[int] = []
    sizes = np.array(cards, dtype=np.int64)
    while size.bytes > max_bytes:
        if len(cut) == min(_MOST_CUT, len(cards)) or size.seconds > 1000 * max_seconds:
            raise too_large(whole, max_bytes, max_seconds)
        v = _next_cut(scopes, sizes, order)
        cut.append(v)
        sizes[v] = 1
        left = [tuple(u for u in scope if sizes[u] > 1) for scope in scopes]
        found = search_orders(left, sizes, steps=_CUT_STEPS)[0]
        order = min((order, found), key=lambda each: size_of(left, sizes, each).entries)
        size = size_of(left, sizes, order, float(np.prod(cards[cut].astype(np.float64))))
    if size.seconds > max_seconds:
        raise too_large(whole if cut else size, max_bytes, max_seconds)
    return tuple(v for v in order if v not in cut), tuple(cut), size


def _next_cut(scopes: Sequence[Scope], cards: np.ndarray, order: Sequence[int]) -> int:
    """Return the variable without which the cliques are smallest, for the number of its states."""
    left = [tuple(v for v in scope if cards[v] > 1) for scope in scopes]
    gain = np.zeros(len(cards))
    for clique in cliques(left, [v for v in order if cards[v] > 1]):
        entries = math.prod(float(cards[v]) for v in clique)
        for v in clique:
            gain[v] += entries * (1 - 1 / cards[v]) / math.log(cards[v])
    return int(np.argmax(gain))


def too_large(size: Size, max_bytes: float, max_seconds: float) -> TinybayesError:
    """Return the error for work that takes more than the limits."""
    return error(
        f"work within {max_bytes / 2**30:.3g} GiB and {max_seconds:,.3g} s",
        f"a model of width {size.width} that needs {size.bytes / 2**30:.3g} GiB and about {size.seconds:,.3g} s",
        where="join tree",
        remedy="raise the limits, observe more variables, or ask a sampler: method='tied'",
        kind=TooLargeError,
    )
