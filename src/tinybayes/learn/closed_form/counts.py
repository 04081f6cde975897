"""Sufficient statistics: how often each cell of a table occurs, from memory or batch by batch.

Everything closed-form learning needs from the data is a set of counts, and counts add up. So data larger than
memory works by passing a source that yields one `Dataset` after another each time it is iterated.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from tinybayes._kernels.counts import add_counts
from tinybayes._kernels.threads import for_blocks, thread_count
from tinybayes.errors import error
from tinybayes.learn.closed_form.joint_counts import Blocks, Pairs, plan_counts, table_layout
from tinybayes.model import Dataset, Variable
from tinybayes.model.dataset import Columns

THREADED = 2**20  # rows times tables
MAX_CELLS = 2**27  # 1 GiB of counts: beyond it a table is refused before anything is allocated


class Batches(Protocol):
    """Data in pieces: the variables, and a fresh iterator over data sets for every pass."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The features."""

    @property
    def target(self) -> Variable | None:
        """The class variable, if any."""

    @property
    def nodes(self) -> tuple[Variable, ...]:
        """The features, then the class."""

    def __iter__(self) -> Iterator[Dataset]: ...


Data = Dataset | Batches
Count = Callable[[Iterable[Columns]], np.ndarray]


def batches(data: Data) -> Iterator[Dataset]:
    """Yield the data set itself, or the pieces of the source one after another."""
    if isinstance(data, Dataset):
        yield data
    else:
        yield from data


def labels(batch: Dataset) -> np.ndarray:
    """Return the class codes; all zero for a table without a class, an error where the class is not known."""
    if batch.y is not None:
        return batch.y
    if batch.target is None:
        return np.zeros(len(batch), dtype=np.int8)
    raise error("class codes to learn from", "a data set without y", where=f"target {batch.target.name!r}")


def count_tables(data: Data, families: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """Count the cells of one table for each family of nodes.

    Parameters
    ----------
    data
        A data set, or batches of one. Rows weigh as much as their weight says; a row with a missing value in a
        family is left out of that family's table, and of no other.
    families
        Tuples of node indices, the axes of the tables; the class is the last node.

    Returns
    -------
    list of ndarray
        For each family the (weighted) counts, with one axis for each of its nodes.
    """
    nodes = data.nodes
    shapes = [tuple(nodes[node].cardinality for node in family) for family in families]
    sizes = [_cells(shape, family, nodes) for shape, family in zip(shapes, families, strict=True)]
    offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if offset[-1] > MAX_CELLS:
        where, remedy = f"{len(sizes)} tables", "merge rare states, or use fewer parents"
        raise error(f"at most {MAX_CELLS:,} counts", f"{offset[-1]:,}", where=where, remedy=remedy)
    if not isinstance(data, Dataset):
        plan, known = (data if isinstance(data, Remembered) else Remembered(data)).counted(families)
        return [plan.table(known, family) for family in families]
    layout = table_layout(shapes, families, len(data.variables), offset)
    y, counts = labels(data), np.zeros(offset[-1])

    def count(start: int, stop: int) -> None:
        add_counts(data.X, y, data.weight, start, stop, *layout, counts)

    # Each thread takes some of the tables, so that no two write to the same counts. Threads take longer to start than
    # a small batch takes to count.
    threads = thread_count() if len(families) * len(data) > THREADED else 1
    for_blocks(count, len(families), max(1, -(-len(families) // threads)))
    return [counts[a:b].reshape(shape) for a, b, shape in zip(offset, offset[1:], shapes, strict=False)]


class Remembered:
    """Batches whose counts are kept, since every pass over them is costly.

    The pairs that Chow-Liu has counted give the tables of every tree, and of naive Bayes, without another pass.
    """

    def __init__(self, data: Batches) -> None:
        self._data = data
        self._counted: tuple[Blocks | Pairs, np.ndarray] | None = None
        self.variables, self.target, self.nodes = data.variables, data.target, data.nodes

    def __iter__(self) -> Iterator[Dataset]:
        return iter(self._data)

    def total(self, count: Count) -> np.ndarray:
        """Return the sum of what `count` makes of the rows."""
        return total(self._data, count)

    def counted(self, families: Sequence[Sequence[int]]) -> tuple[Blocks | Pairs, np.ndarray]:
        """Return blocks that cover the families, and their counts."""
        if self._counted is None or not all(map(self._counted[0].covers, families)):
            states = [variable.cardinality for variable in self.variables]
            plan = plan_counts(families, states, None if self.target is None else self.target.cardinality)
            self._counted = plan, total(self._data, plan)
        return self._counted


def remember(data: Data) -> Data:
    """Keep the counts of batches, for learners that ask more than once; a data set is fast enough as it is."""
    return data if isinstance(data, Dataset | Remembered) else Remembered(data)


def total(data: Data, count: Count) -> np.ndarray:
    """Return the sum of what `count` makes of the rows of the data, wherever they are.

    If the data has a method `total`, it does the sum: it may give parts of the rows to several threads or machines,
    since counts add up. Other batches are taken one after another.
    """
    spread = getattr(data, "total", None)
    if spread is not None:
        return np.asarray(spread(count))
    return count(Columns(np.ascontiguousarray(b.X.T), labels(b), b.weight) for b in batches(data))


def _cells(shape: Sequence[int], family: Sequence[int], nodes: Sequence[Variable]) -> int:
    cells = math.prod(shape)
    if cells > MAX_CELLS:
        where = f"table of {', '.join(nodes[node].name for node in family)}"
        remedy = "merge rare states, or use a structure with fewer parents"
        raise error(f"at most {MAX_CELLS:,} cells", f"{cells:,}", where=where, remedy=remedy)
    return cells
