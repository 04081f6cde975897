"""Where the entries of all candidate tables lie in one array ``theta[entry, class]``.

A *group* is one parent context of one candidate table: an entry for each state of its feature. Groups of features with
about as many states form a *bucket*, a block ``[state, group]``: groups shorter than its longest are filled up. With
one bucket for everything, features of few states would be filled up to the largest of all (mnist: 2.2 times the
entries); with a bucket for each number of states nothing would be, but every bucket costs kernels of its own.

All configurations that are trained together have the same buckets, since they go through the same compiled code.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np

from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.candidates import Candidates

Array = jax.Array
MOST = 8  # buckets
WASTE = 0.01  # share of the entries that one bucket less may cost
WORTH = 0.7  # share of the entries of a single bucket below which several are used: on a CPU each of theirs costs more
# Numbers in the tables of one configuration: below, compiled code that fits many structures is worth more than their
# padding. How many configurations are trained together does not count: a layout of its own draws other first tables.
SMALL = 2**17
ALIGNED = 32  # groups: a multiple fills all vector loads; on a GPU an odd number of groups costs half the speed


@dataclass(frozen=True)
class Layout:
    """Buckets as pairs (states, groups), by ascending numbers of states."""

    buckets: tuple[tuple[int, int], ...]

    @property
    def entries(self) -> int:
        """The number of entries, filled up."""
        return sum(states * groups for states, groups in self.buckets)

    @property
    def groups(self) -> int:
        """The number of groups."""
        return sum(groups for _, groups in self.buckets)

    @cached_property
    def starts(self) -> tuple[np.ndarray, np.ndarray]:
        """The first entry and the first group of each bucket."""
        states, groups = np.array(self.buckets).T
        return np.cumsum(states * groups) - states * groups, np.cumsum(groups) - groups

    def bucket_of(self, states: np.ndarray) -> np.ndarray:
        """Return the bucket of features with so many states."""
        return np.searchsorted([most for most, _ in self.buckets], states)

    def exists(self, states: Array) -> Array:
        """Tell which entries exist, of groups with so many states."""
        parts = [jnp.arange(most)[:, None] < of for (most, _), of in zip(self.buckets, self._cut(states), strict=True)]
        return jnp.concatenate([part.reshape(-1) for part in parts])

    def shaped(self, values: Array) -> Array:
        """Return ``[entry, class]`` as ``[state, group, class]`` if there is a single bucket, otherwise as it is.

        What the states of a group share is then broadcast along an axis. In a flat array, code for a CPU divides for
        every entry to find its group.
        """
        if len(self.buckets) > 1:
            return values
        return values.reshape(*self.buckets[0], -1)

    def over_states(self, values: Array) -> Array:
        """Add up the entries of each group, of shaped values, to ``[group, class]``."""
        if len(self.buckets) == 1:
            return _sum_first(values)
        sums, first = [], 0
        for states, groups in self.buckets:
            block = values[first : first + states * groups].reshape(states, groups, -1)
            sums.append(_sum_first(block))
            first += states * groups
        return jnp.concatenate(sums)

    def to_entries(self, values: Array) -> Array:
        """Give every entry the value of its group: from ``[group, class]`` to what shaped values broadcast with."""
        if len(self.buckets) == 1:
            return values[None]
        parts = []
        for (states, groups), part in zip(self.buckets, self._cut(values), strict=True):
            shape = states, groups, part.shape[1]
            parts.append(jnp.broadcast_to(part, shape).reshape(-1, shape[2]))
        return jnp.concatenate(parts)

    def _cut(self, values: Array) -> list[Array]:
        """Cut an array with an axis of groups into its buckets."""
        first = self.starts[1].tolist()
        return [values[start : start + groups] for start, (_, groups) in zip(first, self.buckets, strict=True)]

    @classmethod
    def of(cls, candidates: Sequence[Candidates], states: np.ndarray, classes: int, *, one: bool = False) -> Self:
        """Lay out the tables of configurations that are trained together; `one` asks for a single bucket."""
        distinct, kind = np.unique(states, return_inverse=True)
        needed = np.zeros((len(candidates), len(distinct)), dtype=np.int64)
        for run, own in enumerate(candidates):
            np.add.at(needed[run], kind, contexts(own, states).sum(axis=1))
        upto = np.pad(np.cumsum(needed, axis=1), ((0, 0), (1, 0)))

        def bucket(first: int, last: int) -> tuple[int, int]:
            most = int((upto[:, last] - upto[:, first]).max())
            return int(distinct[last - 1]), -(-most // ALIGNED) * ALIGNED

        whole = bucket(0, len(distinct))
        if one or whole[0] * whole[1] * classes < SMALL:
            return cls((whole,))
        ends = _merged(len(distinct), lambda first, last: math.prod(bucket(first, last)))
        several = cls(tuple(bucket(a, b) for a, b in pairwise(ends)))
        return several if several.entries < WORTH * math.prod(whole) else cls((whole,))


def _merged(count: int, entries: Callable[[int, int], int]) -> list[int]:
    """Return where buckets end: neighbours are merged, the cheapest first; `entries` says what a bucket takes."""
    ends = list(range(count + 1))
    sizes = [entries(a, b) for a, b in pairwise(ends)]

    def cost(i: int) -> int:
        return entries(ends[i], ends[i + 2]) - sizes[i] - sizes[i + 1]

    costs = [cost(i) for i in range(count - 1)]
    while costs:
        least = int(np.argmin(costs))
        if len(sizes) <= MOST and costs[least] > WASTE * sum(sizes):
            break
        del ends[least + 1], costs[least]
        sizes[least : least + 2] = [entries(ends[least], ends[least + 1])]
        for i in (least - 1, least):  # only the costs beside the new bucket change
            if 0 <= i < len(costs):
                costs[i] = cost(i)
    return ends


def contexts(candidates: Candidates, states: np.ndarray) -> np.ndarray:
    """Return the parent contexts of each candidate table, 0 where there is none."""
    parent = candidates.parent
    return np.where(candidates.allowed, np.where(parent >= 0, states[parent], 1), 0)


def _sum_first(values: Array) -> Array:
    """Sum over the first axis. Written out when it is short: XLA's reduction is several times slower on a CPU."""
    if values.shape[0] > 64:
        return values.sum(axis=0)
    total = values[0]
    for k in range(1, values.shape[0]):
        total = total + values[k]
    return total
