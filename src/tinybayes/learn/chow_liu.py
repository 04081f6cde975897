"""The Chow-Liu tree given the class: the TAN of Friedman, Geiger and Goldszmidt (1997)."""

from collections.abc import Iterator

import numpy as np

from tinybayes._kernels.counts import add_pair_counts, conditional_information
from tinybayes._kernels.threads import for_blocks
from tinybayes.errors import error
from tinybayes.learn.counts import Data, batches, labels
from tinybayes.learn.structures import augmented
from tinybayes.model import Dataset, Structure

PAIR_CELLS = 2**25  # counts held at once (256 MiB); more pairs than fit take further passes over the data


def chow_liu(data: Data) -> Structure:
    """Maximise the likelihood over trees: maximum spanning tree of the conditional mutual information.

    Without a class this is the plain Chow-Liu tree. The root is the first feature.
    """
    return augmented(maximum_spanning_tree(conditional_mutual_information(data)), has_class=data.target is not None)


def conditional_mutual_information(data: Data) -> np.ndarray:
    """Return the matrix ``I(X_i; X_j | C)`` in nats, from unsmoothed counts.

    Rows with a gap in a pair or in the class are left out of that pair. Memory is bounded: the counts of a group
    of pairs are turned into information before the next group is counted.
    """
    states = np.array([variable.cardinality for variable in data.variables], dtype=np.int64)
    classes = data.target.cardinality if data.target is not None else 1
    information = np.zeros((len(states), len(states)))
    for group in _groups(states, classes):
        offsets, total = _offsets(group, states, classes)
        counts = np.zeros(total)
        for batch in batches(data):
            _count_pairs(batch, group, offsets, states, classes, counts)
        _inform(group, offsets, states, classes, counts, information)
    return information


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


Task = tuple[int, int, int]  # child, first parent, past the last parent


def _groups(states: np.ndarray, classes: int) -> Iterator[list[Task]]:
    """Cut the pairs (child, parent < child) into tasks, and the tasks into groups that fit in memory."""
    group: list[Task] = []
    room = PAIR_CELLS
    for child in range(1, len(states)):
        first = 0
        while first < child:
            cells = np.cumsum(states[first:child] * states[child] * classes)
            if cells[0] > PAIR_CELLS:
                raise error(
                    f"at most {PAIR_CELLS:,} joint counts for a pair of features",
                    f"{cells[0]:,}",
                    where=f"features {first} and {child}",
                    remedy="merge rare states or drop the column",
                )
            taken = int(np.searchsorted(cells, room, side="right"))
            if taken == 0:
                yield group
                group, room = [], PAIR_CELLS
                continue
            group.append((child, first, first + taken))
            room -= int(cells[taken - 1])
            first += taken
    if group:
        yield group


def _offsets(group: list[Task], states: np.ndarray, classes: int) -> tuple[list[np.ndarray], int]:
    """Return where the table of each pair begins, task by task, and the size of all of them."""
    offsets, total = [], 0
    for child, first, last in group:
        ends = np.cumsum(states[first:last] * states[child] * classes)
        offsets.append(np.concatenate([[total], total + ends[:-1]]).astype(np.int64))
        total += int(ends[-1])
    return offsets, total


def _count_pairs(
    batch: Dataset, group: list[Task], offsets: list[np.ndarray], states: np.ndarray, classes: int, counts: np.ndarray
) -> None:
    columns, y = np.ascontiguousarray(batch.X.T), labels(batch)

    def work(start: int, stop: int) -> None:
        for task in range(start, stop):
            child, first, last = group[task]
            tables = (child, first, last, states[child], states, classes, offsets[task], counts)
            add_pair_counts(columns, y, batch.weight, *tables)

    for_blocks(work, len(group), 1)


def _inform(
    group: list[Task],
    offsets: list[np.ndarray],
    states: np.ndarray,
    classes: int,
    counts: np.ndarray,
    information: np.ndarray,
) -> None:
    """Turn the counts of a group into information, both triangles of the matrix."""

    def work(start: int, stop: int) -> None:
        for task in range(start, stop):
            child, first, last = group[task]
            for parent in range(first, last):
                table = counts[offsets[task][parent - first] :]
                value = conditional_information(table, states[parent], states[child], classes)
                information[child, parent] = information[parent, child] = value

    for_blocks(work, len(group), 1)
