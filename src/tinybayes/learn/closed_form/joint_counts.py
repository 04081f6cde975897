"""Many tables in one pass over batches: as blocks of variables that are counted together, or as pairs by sets of rows.

A row is counted once for each block instead of once for each table. Nothing is lost: every variable of a block
has a place for missing values, so a table that is read off has the rows that are known in its own variables. Where many
pairs of few states are asked for, sets of rows given the class are faster.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinybayes._kernels.counts import CELLS, add_blocks, add_counts
from tinybayes._kernels.pairs import add_pairs, has_wide_popcount
from tinybayes.errors import error
from tinybayes.model.dataset import Columns
from tinybayes.model.layout import strides

ROOM = 2**23  # counts of all blocks, so that every thread and worker can have its own
FEW = 64  # features of batches up to which all pairs are counted in one pass
MANY = 512  # features beyond which the search for blocks would take longer than it saves
FLUSH = 2**31  # rows after which 32-bit counts are added to the others

Layout = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Blocks:
    """Counts rows into blocks of features, each with the class, and into some tables that are too large for a block."""

    states: tuple[int, ...]  # of each feature
    classes: int | None  # None for data without a class
    blocks: tuple[tuple[int, ...], ...]  # the features of each block
    large: tuple[tuple[int, ...], ...]  # families that are counted one by one
    shapes: tuple[tuple[int, ...], ...]  # of their tables

    @cached_property
    def offset(self) -> np.ndarray:
        """Where the blocks begin; the last entry is where the large tables do."""
        return np.cumsum([0] + [_cells(block, self.states, self.classes) for block in self.blocks])

    @cached_property
    def large_offset(self) -> np.ndarray:
        """Where the large tables begin, and where the last one ends."""
        return self.offset[-1] + np.cumsum([0] + [math.prod(shape) for shape in self.shapes])

    def __call__(self, pieces: Iterable[Columns]) -> np.ndarray:
        """Count the rows of all pieces."""
        result = np.zeros(self.large_offset[-1])
        small, blocks = result[: self.offset[-1]], self._block_layout()
        tables = table_layout(self.shapes, self.large, len(self.states), self.large_offset[:-1])
        narrow = np.zeros(len(small), dtype=np.uint32)  # half the memory, and twice the speed, of wide counts
        rows = 0
        for X, y, weight in pieces:
            if y is None and self.classes is not None:
                raise error("class codes to learn from", "rows without a class", where="data")
            labels = np.full(X.shape[1], -1, dtype=np.int8) if y is None or self.classes is None else y
            add_blocks(X, labels, weight, *blocks, narrow if weight is None else small)
            rows += X.shape[1]
            if rows > FLUSH:
                small += narrow
                narrow[:], rows = 0, 0
            if self.large:
                labels = np.zeros(X.shape[1], dtype=np.int8) if y is None else y
                add_counts(X.T, labels, weight, 0, len(self.large), *tables, result)
        small += narrow
        return result

    def covers(self, family: Sequence[int]) -> bool:
        """Tell whether the table of a family can be read off."""
        return tuple(family) in self.large or self._home(family) is not None

    def table(self, counts: np.ndarray, family: Sequence[int]) -> np.ndarray:
        """Read the table of a family off the counts: one axis for each of its nodes, without missing values."""
        if tuple(family) in self.large:
            number = self.large.index(tuple(family))
            begin, end = self.large_offset[number : number + 2]
            return counts[begin:end].reshape(self.shapes[number])
        home = self._home(family)
        assert home is not None
        axes = (*self.blocks[home], len(self.states))
        shape = [self.states[node] + 1 for node in axes[:-1]] + [1 if self.classes is None else self.classes + 1]
        block = counts[self.offset[home] : self.offset[home + 1]].reshape(shape)
        kept = [node for node in axes if node in family]
        summed = block.sum(axis=tuple(k for k, node in enumerate(axes) if node not in family))
        known = summed[(slice(1, None),) * len(kept)]
        return np.ascontiguousarray(known.transpose([kept.index(node) for node in family]))

    def _home(self, family: Sequence[int]) -> int | None:
        features = set(family) - {len(self.states)}
        return next((number for number, block in enumerate(self.blocks) if features <= set(block)), None)

    def _block_layout(self) -> Layout:
        """Describe the blocks for the kernel: first, node, stride, offset."""
        node = [feature for block in self.blocks for feature in block]
        stride: list[int] = []
        for block in self.blocks:
            # Every variable has one more state, for missing values; the class, if there is one, runs fastest.
            stride += strides([self.states[i] + 1 for i in block], 1 if self.classes is None else self.classes + 1)
        first = np.concatenate([[0], np.cumsum([len(block) for block in self.blocks])])
        return tuple(np.array(array, dtype=np.int64) for array in (first, node, stride, self.offset[:-1]))


def covering(
    families: Iterable[Sequence[int]], states: Sequence[int], classes: int | None, limit: int = CELLS
) -> list[list[int]]:
    """Find blocks of at most `limit` cells that contain every family that is small enough to be in one.

    Pairs and single features are packed greedily: a block takes the feature that adds most pairs that no block has yet.
    """
    sets = {tuple(sorted(set(family) - {len(states)})) for family in families}
    fitting = sorted(s for s in sets if _cells(s, states, classes) <= limit)
    blocks = [list(s) for s in fitting if len(s) > 2]
    wanted = np.zeros((len(states), len(states)), dtype=np.int64)
    for s in fitting:
        if len(s) in (1, 2):
            wanted[s[0], s[-1]] = wanted[s[-1], s[0]] = 1
    for block in blocks:
        wanted[np.ix_(block, block)] = 0
    sizes, left = np.array(states) + 1, wanted.sum(axis=1)
    while left.any():
        block = [int(np.argmax(left))]
        gain = wanted[block[0]] + wanted.diagonal()
        while True:
            room = sizes <= limit // _cells(block, states, classes)
            room[block] = False
            # Of equal gains take the feature with most pairs left, so that none is left alone at the end.
            score = np.where(room & (gain > 0), gain * (len(states) + 1) + left, -1)
            best = int(np.argmax(score))
            if score[best] < 0:
                break
            block.append(best)
            gain = gain + wanted[best]
        left[block] -= wanted[np.ix_(block, block)].sum(axis=1)
        wanted[np.ix_(block, block)] = 0
        blocks.append(sorted(block))
    return blocks or [[]]


def plan_blocks(families: Sequence[Sequence[int]], states: Sequence[int], classes: int | None) -> Blocks:
    """Choose the blocks for a set of families: as large as fit the cache, smaller where they would take much memory."""
    blocks: list[list[int]] = [[]]
    for limit in () if len(states) > MANY else (CELLS, CELLS >> 3, CELLS >> 6, CELLS >> 9):
        blocks = covering(families, states, classes, limit)
        if sum(_cells(block, states, classes) for block in blocks) <= ROOM:
            break
    held = [set(block) for block in blocks]
    large = tuple(tuple(f) for f in families if not any(set(f) - {len(states)} <= block for block in held))
    shapes = tuple(tuple((classes or 1) if i == len(states) else states[i] for i in family) for family in large)
    return Blocks(tuple(states), classes, tuple(map(tuple, blocks)), large, shapes)


def table_layout(
    shapes: Sequence[Sequence[int]], families: Sequence[Sequence[int]], features: int, offset: np.ndarray
) -> Layout:
    """Describe tables in C order for the counting kernel: first, node, stride, offset, class stride."""
    first, class_stride = [0], []
    node: list[int] = []
    stride: list[int] = []
    for shape, family in zip(shapes, families, strict=True):
        steps = dict(zip(family, strides(shape), strict=True))
        class_stride.append(steps.pop(features, 0))
        node += reversed(steps)  # the variable that runs fastest first, as the kernel prefers
        stride += reversed(steps.values())
        first.append(len(node))
    return tuple(np.asarray(array, dtype=np.int64) for array in (first, node, stride, offset, class_stride))


def _cells(features: Iterable[int], states: Sequence[int], classes: int | None) -> int:
    """Return the size of a block: every variable of it has a place for missing values."""
    return (1 if classes is None else classes + 1) * math.prod(states[feature] + 1 for feature in features)


@dataclass(frozen=True)
class Pairs:
    """Counts pairs of features, single features and the class; `states` and `classes` are those of `Blocks`."""

    states: tuple[int, ...]
    classes: int | None
    pairs: tuple[tuple[int, int], ...]  # each in order

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
