"""The Chow-Liu tree given the class: the TAN of Friedman, Geiger and Goldszmidt (1997).

The counts of all pairs of a wide table would not fit in memory. So groups of pairs are counted and reduced to their
mutual information, in at most 256 MiB.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tinybayes._kernels.pairs import add_bit_counts, add_row_counts, block_information, set_bits, xlogx_table
from tinybayes._kernels.threads import for_blocks
from tinybayes.errors import error
from tinybayes.learn.closed_form.counts import Data, count_tables, labels, total
from tinybayes.learn.closed_form.joint_counts import FEW, ROOM
from tinybayes.learn.closed_form.structures import augmented
from tinybayes.model import Dataset, Structure, Variable
from tinybayes.model.dataset import Columns

PAIR_CELLS = 2**25  # counts held at once (256 MiB); more pairs than fit take further passes over the data
PIECE = 2**17  # rows of a data set that are prepared for counting at once: the sets of all features stay in the cache
BIT_STATES = 12  # up to this many states on average, sets of rows are faster than counting row by row


def chow_liu(data: Data) -> Structure:
    """Maximise the likelihood over trees: maximum spanning tree of the conditional mutual information.

    Without a class this is the plain Chow-Liu tree. The root is the first feature.
    """
    # Rounded, so that the last bits do not choose between equal pairs (a constant column is equal to all).
    information = np.round(conditional_mutual_information(data), 12)
    return augmented(maximum_spanning_tree(information), has_class=data.target is not None)


def conditional_mutual_information(data: Data) -> np.ndarray:
    """Return the matrix ``I(X_i; X_j | C)`` in nats, from unsmoothed counts.

    Rows with a gap in a pair or in the class are left out of that pair. Memory is bounded: the counts of a group
    of pairs are turned into information before the next group is counted.
    """
    states = np.array([variable.cardinality for variable in data.variables], dtype=np.int64)
    classes = data.target.cardinality if data.target is not None else 1
    first = np.concatenate([[0], np.cumsum(states)])
    information = np.zeros((len(states), len(states)))
    table = xlogx_table(2**12)

    def inform(task: Task, block: np.ndarray) -> None:
        own, start, stop = task
        block_information(block, first[start : stop + 1] - first[start], table, information[own, start:stop])

    if isinstance(data, Dataset) and len(data) <= PIECE:
        add = _counter(Columns(data.X.T, labels(data), data.weight), first, classes)

        def at_once(task: Task) -> None:  # the block never leaves the cache
            block = np.zeros(_shape(task, first, classes))
            add(task, block)
            inform(task, block)

        for group in _groups(data.variables, classes):
            for_blocks(lambda index, _, group=group: at_once(group[index]), len(group), 1)  # type: ignore[misc]
        return information + information.T

    cells = classes * int(states.sum() ** 2 - (states**2).sum()) // 2  # of all pairs
    if not isinstance(data, Dataset) and len(states) <= FEW and cells <= ROOM:  # one pass counts them all
        last = () if data.target is None else (len(states),)
        pairs = [(own, other, *last) for own in range(len(states)) for other in range(own + 1, len(states))]
        for (own, other, *_), counts in zip(pairs, count_tables(data, pairs), strict=True):
            block = counts.reshape(*counts.shape[:2], classes).transpose(0, 2, 1)
            inform((own, other, other + 1), np.ascontiguousarray(block))
        return information + information.T

    for group in _groups(data.variables, classes):
        count = _PairCount(tuple(group), first, classes)
        counts = count(_pieces(data)) if isinstance(data, Dataset) else total(data, count)
        _each(inform, group, count.blocks(counts))
    return information + information.T


def _pieces(data: Dataset) -> Iterator[Columns]:
    """Yield parts of the rows, so that what counting makes of them stays small beside the table."""
    y = labels(data)
    for start in range(0, len(data), PIECE):
        part = slice(start, start + PIECE)
        yield Columns(data.X[part].T, y[part], None if data.weight is None else data.weight[part])


@dataclass(frozen=True)
class _PairCount:
    """Counts the pairs of a group of tasks, batch by batch."""

    group: "tuple[Task, ...]"
    first: np.ndarray
    classes: int

    def __call__(self, pieces: Iterable[Columns]) -> np.ndarray:
        counts = np.zeros(self._offset[-1])
        blocks = self.blocks(counts)
        for X, y, weight in pieces:
            labels = np.zeros(X.shape[1], dtype=np.int8) if y is None else y
            _each(_counter(Columns(X, labels, weight), self.first, self.classes), list(self.group), blocks)
        return counts

    def blocks(self, counts: np.ndarray) -> list[np.ndarray]:
        """See the flat counts as the blocks of the tasks."""
        parts = zip(np.split(counts, self._offset[1:-1]), self.group, strict=True)
        return [part.reshape(_shape(task, self.first, self.classes)) for part, task in parts]

    @property
    def _offset(self) -> np.ndarray:
        return np.cumsum([0] + [math.prod(_shape(task, self.first, self.classes)) for task in self.group])


def maximum_spanning_tree(weight: np.ndarray) -> list[int]:
    """Prim's algorithm on a dense matrix: the parent of each node, -1 for the root 0.

    Dense because every pair has a weight, and because sparse routines take a weight of zero for a missing edge.
    """
    size = len(weight)
    parent = np.full(size, -1)
    best = np.where(np.arange(size) == 0, -np.inf, weight[0]) if size else np.empty(0)
    closest = np.zeros(size, dtype=np.int64)
    for _ in range(size - 1):
        node = int(np.argmax(best))
        parent[node] = closest[node]
        best[node] = -np.inf
        better = (weight[node] > best) & (best > -np.inf)
        best[better] = weight[node][better]
        closest[better] = node
    return [int(p) for p in parent]


Task = tuple[int, int, int]  # a feature, and the first and past the last of some features after it
Step = Callable[[Task, np.ndarray], None]


def _each(step: Step, group: list[Task], blocks: list[np.ndarray]) -> None:
    """Take a step for each task and its block of counts, on all cores."""
    for_blocks(lambda index, _: step(group[index], blocks[index]), len(group), 1)


def _shape(task: Task, first: np.ndarray, classes: int) -> tuple[int, int, int]:
    own, start, stop = task
    return int(first[own + 1] - first[own]), classes, int(first[stop] - first[start])


def _groups(variables: Sequence[Variable], classes: int) -> Iterator[list[Task]]:
    """Cut the pairs of features into tasks, and the tasks into groups that fit in memory."""
    states = np.array([variable.cardinality for variable in variables], dtype=np.int64)
    group: list[Task] = []
    room = PAIR_CELLS
    for own in range(len(states) - 1):
        start = own + 1
        while start < len(states):
            cells = np.cumsum(states[start:] * states[own] * classes)
            if cells[0] > PAIR_CELLS:
                expected = f"at most {PAIR_CELLS:,} joint counts for a pair of features"
                where = f"features {variables[own].name!r} and {variables[start].name!r}"
                remedy = "merge rare states, drop a column, or use naive Bayes"
                raise error(expected, f"{cells[0]:,}", where=where, remedy=remedy)
            taken = int(np.searchsorted(cells, room, side="right"))
            if taken == 0:
                yield group
                group, room = [], PAIR_CELLS
                continue
            group.append((own, start, start + taken))
            room -= int(cells[taken - 1])
            start += taken
    if group:
        yield group


def _counter(batch: Columns, first: np.ndarray, classes: int) -> Step:
    """Return the step that adds a batch to the block of a task."""
    X, y, weight = batch
    assert y is not None
    size = np.bincount(y[y >= 0], minlength=classes)
    class_first = np.concatenate([[0], np.cumsum(-(-size // 64))])  # every class begins with a word of its own
    (features, rows), slots = X.shape, int(first[-1])
    work = 64 * int(class_first[-1]) * slots**2
    if weight is None and work <= rows * (BIT_STATES * features) ** 2:
        words = np.zeros((class_first[-1], slots), dtype=np.uint64)
        set_bits(np.ascontiguousarray(X.T), _places(y, size, class_first), first, words)
        return lambda task, block: add_bit_counts(words, class_first, first[task[0]], first[task[1]], block)
    columns = np.ascontiguousarray(X)

    def add(task: Task, block: np.ndarray) -> None:
        own, start, stop = task
        add_row_counts(columns, y, weight, own, start, first[start : stop + 1] - first[start], block)

    return add


def _places(y: np.ndarray, size: np.ndarray, class_first: np.ndarray) -> np.ndarray:
    """Return the bit of each row when the rows are sorted by class; -1 for a row without a class."""
    places = np.full(len(y), -1)
    known = np.flatnonzero(y >= 0)
    order = known[np.argsort(y[known], kind="stable")]
    before = np.cumsum(size) - size
    places[order] = np.arange(len(order)) + np.repeat(64 * class_first[:-1] - before, size)
    return places
