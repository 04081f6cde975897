"""Noise in the codes that tables are trained on; that of neural networks is in `net_steps.py`.

With probability p an entry of a mini-batch moves, to a state drawn from a kernel ``Q[state, other]``: for
codes with an order the neighbours, half each (at the ends half of the moves stay), or all states by their distance; for
codes without an order the marginal of the training rows. Nothing changes at prediction. A missing value stays missing.

What it is: let ``K = (1 - p) I + p Q``. The generative part of the hybrid loss is linear in the tables, so that its
expectation over the noise is the loss of counts that are smoothed by K along every axis: a prior that neighbouring bins
are alike. The margin loss is convex in the scores. Its expectation is at least the loss of the expected scores, by an
amount that grows with the variance of the scores under the noise: tables whose neighbouring entries differ pay for it.
"""

from typing import Any, NamedTuple

import numpy as np

from tinybayes.errors import error
from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.net_inputs import has_order
from tinybayes.model import Dataset, Variable
from tinybayes.model.encoding import Intervals

Array = jax.Array
BLOCK = 2**22  # probabilities that are worked off at once
MOST = 2**28  # the most of them that a feature may have
FULL = 2**22  # the largest full table of them; it is faster than a search in each range


class Moves(NamedTuple):
    """The kernels as cumulative probabilities, only where these are neither zero nor one.

    A state has `length` numbers from `start` on in `cumulative`, which may be those of other states, too. A level that
    is at least as large as k of them moves a code to the state `first` + k. The first three have the shape (features,
    most states).
    """

    first: Any
    start: Any
    length: Any
    cumulative: Any


def moves(data: Dataset, reach: float = 0.0) -> Moves:
    """Return where the codes of each feature move to.

    Parameters
    ----------
    data
        The training rows.
    reach
        Of codes with an order: 0 for the neighbours; else the standard deviation of the moves, in mean widths of a bin.
    """
    most = max((variable.cardinality for variable in data.variables), default=1)
    ranges = np.zeros((3, len(data.variables), most), dtype=np.int32)
    cumulative: list[np.ndarray] = []
    used = 0
    for f, variable in enumerate(data.variables):
        if not has_order(variable):
            own = _marginal(data.X[:, f], variable.cardinality)
        elif reach > 0:
            own = _by_distance(_centres(variable), reach)
        else:
            own = _neighbours(variable.cardinality)
        ranges[:, f, : variable.cardinality] = own.first, own.start + used, own.length
        cumulative.append(own.cumulative)
        used += len(own.cumulative)
    first, start, length = ranges
    return Moves(first, start, length, np.concatenate([*cumulative, [2.0]]).astype(np.float32))


def _neighbours(states: int) -> Moves:
    code = np.arange(states)
    first = np.maximum(code - 1, 0)
    return Moves(first, np.zeros_like(code), np.minimum(code + 1, states - 1) - first, np.array([0.5, 0.5]))


def _by_distance(centre: np.ndarray, reach: float) -> Moves:
    """Return a Gaussian of the distance to all other states; a single state stays."""
    states = len(centre)
    if states == 1:
        return _neighbours(1)
    width = np.abs(np.diff(centre)).mean()
    first, length, parts = np.zeros(states, dtype=np.int64), np.zeros(states, dtype=np.int64), []
    step = max(1, BLOCK // states)
    for begin in range(0, states, step):
        code = np.arange(begin, min(begin + step, states))
        distance = np.abs(centre[code, None] - centre) / width
        exponent = np.where(code[:, None] == np.arange(states), -np.inf, -((distance / reach) ** 2) / 2)
        weight = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        below = np.cumsum(weight / weight.sum(axis=1, keepdims=True), axis=1)[:, :-1].astype(np.float32)
        inside = (below > 0) & (below < 1)
        first[code], length[code] = (below == 0).sum(axis=1), inside.sum(axis=1)
        parts.append(below[inside])
        if length.sum() > MOST:
            got = f"{states:,} states and moves by {reach:g} bins"
            raise error(
                f"at most {MOST:,} probabilities of moves", got, where="noise_reach", remedy="take less, or fewer bins"
            )
    return Moves(first, np.cumsum(length) - length, length, np.concatenate(parts))


def _centres(variable: Variable) -> np.ndarray:
    """Return the middle of every bin; the outer bins are as wide as those next to them."""
    encoding, states = variable.encoding, variable.cardinality
    cuts = np.asarray(encoding.cuts, dtype=float) if isinstance(encoding, Intervals) else np.empty(0)
    if len(cuts) != states - 1 or states < 3:
        return np.arange(states, dtype=float)
    widths = np.diff(cuts)
    edges = np.concatenate([[cuts[0] - widths[0]], cuts, [cuts[-1] + widths[-1]]])
    return np.asarray((edges[1:] + edges[:-1]) / 2)


def _marginal(column: np.ndarray, states: int) -> Moves:
    counts = np.bincount(column[column >= 0], minlength=states) + 1e-9
    none = np.zeros(states, dtype=np.int64)
    return Moves(none, none, none + states - 1, np.cumsum(counts / counts.sum())[:-1])


def full(where: Moves) -> np.ndarray | None:
    """Return the whole table, shape (features, most states, most states), with 2 for what is one, if it is small."""
    features, most = where.first.shape
    if features * most * most > FULL:
        return None
    state = np.arange(most) - where.first[:, :, None]
    inside = (state >= 0) & (state < where.length[:, :, None])
    table = np.where(state < 0, 0.0, 2.0).astype(np.float32)
    table[inside] = where.cumulative[(where.start[:, :, None] + state)[inside]]
    return table


def jitter(key: Array, X: Array, noise: Array, where: Moves | Array) -> Array:
    """Move each code with probability `noise`; those below zero are missing and stay. `where` may be the full table."""
    moving, level = jax.random.uniform(key, (2, *X.shape))
    if isinstance(where, Moves):
        other = _found(level, X, where)
    else:
        rows = where[jnp.arange(X.shape[1]), jnp.maximum(X, 0)]  # (batch, features, states)
        other = (level[:, :, None] >= rows).sum(axis=2).astype(X.dtype)
    return jnp.where((moving < noise) & (X >= 0), other, X)


def _found(level: Array, X: Array, where: Moves) -> Array:
    """Return the states that levels lead to, by bisection of the range of each code."""
    at = jnp.arange(X.shape[1]), jnp.maximum(X, 0)
    start = low = where.start[at]
    high = start + where.length[at]
    for _ in range((where.first.shape[1] - 1).bit_length()):  # halves each range
        middle = (low + high) // 2
        above = (low < high) & (level >= where.cumulative[middle])
        low, high = jnp.where(above, middle + 1, low), jnp.where(above, high, middle)
    return (where.first[at] + low - start).astype(X.dtype)
