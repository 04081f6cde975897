"""Pairs of features given the class, counted by sets of rows: where many pairs of few states are asked for."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinybayes._kernels.counts import add_counts
from tinybayes._kernels.pair_bits import add_pairs, has_wide_popcount
from tinybayes.errors import error
from tinybayes.learn.closed_form.joint_counts import FEW, ROOM, Blocks, plan_blocks, table_layout
from tinybayes.model.dataset import Columns


@dataclass(frozen=True)
class Pairs:
    """Counts pairs of features, single features and the class.

    Parameters
    ----------
    states
        The number of states of each feature.
    classes
        The number of classes; None for data without a class.
    pairs
        The pairs, each in order.
    """

    states: tuple[int, ...]
    classes: int | None
    pairs: tuple[tuple[int, int], ...]

    @cached_property
    def families(self) -> list[tuple[int, ...]]:
        """The tables that are counted, in their order: pairs, features, class."""
        features = len(self.states)
        every = [*self.pairs, *((feature,) for feature in range(features)), ()]
        return [(*family, features) for family in every]

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the tables."""
        return [tuple((*self.states, self.classes or 1)[node] for node in family) for family in self.families]

    @cached_property
    def offset(self) -> np.ndarray:
        """Where the tables begin, and where the last one ends."""
        return np.cumsum([0] + [math.prod(shape) for shape in self.shapes])

    def __call__(self, pieces: Iterable[Columns]) -> np.ndarray:
        """Count the rows of all pieces."""
        counts, many, features = np.zeros(self.offset[-1]), len(self.pairs), len(self.states)
        layout = table_layout(self.shapes, self.families, features, self.offset[:-1])
        first, second = np.array(self.pairs, dtype=np.int64).reshape(-1, 2).T.copy()
        offsets = self.offset[:many], self.offset[many : many + features]
        states, classes = np.array(self.states, dtype=np.int64), self.classes or 1
        for X, y, weight in pieces:
            if y is None and self.classes is not None:
                raise error("class codes to learn from", "rows without a class", where="data")
            labels = np.zeros(X.shape[1], dtype=np.int8) if y is None else y
            if weight is None and X.dtype == np.int8:
                add_pairs(X, labels, states, classes, first, second, *offsets, counts)
                counts[self.offset[-2] :] += np.bincount(labels[labels >= 0], minlength=classes)
            else:
                add_counts(X.T, labels, weight, 0, len(self.families), *layout, counts)
        return counts

    def covers(self, family: Sequence[int]) -> bool:
        """Tell whether the table of a family can be read off."""
        return self._sorted(family) in self.families and (self.classes is None or len(self.states) in family)

    def table(self, counts: np.ndarray, family: Sequence[int]) -> np.ndarray:
        """Read the table of a family off the counts."""
        stored = self._sorted(family)
        number = self.families.index(stored)
        table = counts[self.offset[number] : self.offset[number + 1]].reshape(self.shapes[number])
        if self.classes is None:
            table, stored = table[..., 0], stored[:-1]
        return np.ascontiguousarray(table.transpose([stored.index(node) for node in family]))

    def _sorted(self, family: Sequence[int]) -> tuple[int, ...]:
        return (*sorted(node for node in family if node < len(self.states)), len(self.states))


def plan_counts(families: Sequence[Sequence[int]], states: Sequence[int], classes: int | None) -> Blocks | Pairs:
    """Choose the faster way to count a set of families."""
    blocks = plan_blocks(families, states, classes)
    features = len(states)
    sets = {tuple(sorted(set(family) - {features})) for family in families}
    if features > FEW or max(states, default=0) > 127 or not all(_usual(f, features, classes) for f in families):
        return blocks
    pairs = tuple((s[0], s[1]) for s in sorted(sets) if len(s) == 2)
    cells = sum(states[i] * states[j] for i, j in pairs)
    if cells * (classes or 1) > ROOM:
        return blocks
    # Nanoseconds a row, as measured; classes of few rows leave words half empty.
    step = 0.7 if has_wide_popcount() else 3.5
    by_sets = 0.5 * features + step * max(1.0, (classes or 1) / 8) * cells / 512
    by_blocks = 1.6 * len(blocks.blocks) + 1.6 * len(blocks.large)
    return Pairs(tuple(states), classes, pairs) if by_sets < by_blocks else blocks


def _usual(family: Sequence[int], features: int, classes: int | None) -> bool:
    """Tell whether a family has one or two features and, where there is one, the class."""
    own = [node for node in family if node < features]
    return len(own) <= 2 and (classes is None or len(own) < len(family))
