"""Splits of rows into parts: stratified by class; by groups that stay together; or by time.

Rows of one patient, machine or place are alike, so a model that has seen some of them is tested on others too easily:
with groups no group is in two parts. Where a model is for the future, it is tested on the latest rows.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tinybayes.errors import error

if TYPE_CHECKING:
    import pandas as pd  # what reads columns loads it; workers get parts of rows, and do without

FOLDS = 3, 20  # parts that groups are put into, at least and at most


@dataclass(frozen=True, eq=False)
class Order:
    """What keeps rows together: the numbers of their groups, or their places in time, equal for equal times."""

    groups: np.ndarray | None = None
    times: np.ndarray | None = None

    def rows(self, index: np.ndarray) -> "Order":
        """Return the order of some rows."""
        return Order(*(None if part is None else part[index] for part in (self.groups, self.times)))

    def share(self, y: np.ndarray, fraction: float, generator: np.random.Generator) -> np.ndarray:
        """Mark about a share of the rows; of times the latest."""
        if self.times is not None:
            return self.times >= _boundary(self.times, 1 - fraction)
        if self.groups is not None:
            return _share_of_groups(y, self.groups, fraction, generator)
        return _share(y, fraction, generator)

    def parts(self, y: np.ndarray, count: int, generator: np.random.Generator) -> list[np.ndarray]:
        """Cut rows into so many parts of about the same size, or fewer: groups whole, times in blocks."""
        if self.times is not None:
            order = np.argsort(self.times, kind="stable")
            return [np.sort(part) for part in np.array_split(order, count) if len(part)]
        if self.groups is not None:
            fold = _folds(y, self.groups, count, generator)
            return [part for f in range(count) if len(part := np.flatnonzero(fold == f))]
        order = generator.permutation(len(y))
        order = order[np.argsort(y[order], kind="stable")]  # neighbours are of one class
        return [np.sort(order[part::count]) for part in range(count)]


NO_ORDER = Order()


def order_of(frame: "pd.DataFrame", groups: str | None, time_order: str | None) -> Order:
    """Read the column of the groups, or that of the times."""
    import pandas as pd

    if groups is not None:
        column = _known(frame[groups], "group")
        return Order(groups=pd.factorize(column.astype(str) if column.dtype == object else column)[0])
    if time_order is not None:
        column = _times(_known(frame[time_order], "time"))
        return Order(times=np.unique(column.to_numpy(), return_inverse=True)[1])
    return Order()


def _known(column: "pd.Series", what: str) -> "pd.Series":
    gaps = int(column.isna().sum())
    if gaps:
        remedy = "fill them in, or leave these rows out"
        raise error(f"a {what} in every row", f"{gaps:,} gaps", where=f"column {column.name!r}", remedy=remedy)
    return column


def _times(column: "pd.Series") -> "pd.Series":
    """Return a column that can be ordered: numbers as they are, texts as dates of ISO 8601."""
    import pandas as pd

    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if numeric or pd.api.types.is_datetime64_any_dtype(column):
        return column
    try:
        return pd.to_datetime(column.astype(str), format="ISO8601", utc=True)
    except (ValueError, TypeError, OverflowError) as problem:
        remedy = "write times as numbers or as 2024-01-31 or 2024-01-31T12:00:00"
        where = f"column {column.name!r}"
        raise error("numbers or dates of ISO 8601", repr(column.iloc[0])[:40], where=where, remedy=remedy) from problem


def _share(y: np.ndarray, fraction: float, generator: np.random.Generator) -> np.ndarray:
    """Mark a share of the rows of every class, but never all of them."""
    marked = np.zeros(len(y), dtype=bool)
    for c in np.unique(y):
        drawn = generator.permutation(np.flatnonzero(y == c))
        marked[drawn[: min(round(fraction * len(drawn)), len(drawn) - 1)]] = True
    if not marked.any():
        got = f"{len(y)} rows of {len(np.unique(y))} classes"
        raise error("enough rows to set some aside", got, where="table", remedy="add rows: 10 of each class or more")
    return marked


def _boundary(times: np.ndarray, share: float) -> int:
    """Return the time before which about a share of the rows lies, and after which some do."""
    values, counts = np.unique(times, return_counts=True)
    if len(values) < 2:
        remedy = "name a column that tells early rows from late ones"
        raise error("rows of different times in each part", "too few times", where="time order", remedy=remedy)
    before = np.cumsum(counts)[:-1] / len(times)
    return int(values[1:][np.abs(before - share).argmin()])


def _share_of_groups(y: np.ndarray, groups: np.ndarray, fraction: float, generator: np.random.Generator) -> np.ndarray:
    """Mark the groups of one of several like parts: the one of the right size whose classes are elsewhere, too."""
    if len(np.unique(groups)) < 2:
        remedy = "name a column with at least 3 groups, 2 with a test table"
        raise error("groups for each part", "too few groups", where="groups", remedy=remedy)
    fold = _folds(y, groups, int(np.clip(round(1 / fraction), *FOLDS)), generator)
    best = None
    for f in np.unique(fold):
        lost = len(np.setdiff1d(y[fold == f], y[fold != f]))
        new = lost, abs(float((fold == f).mean()) - fraction), int(f)
        best = new if best is None or new < best else best
    assert best is not None
    return fold == best[2]


def _folds(y: np.ndarray, groups: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """Put groups into parts so that the classes are spread evenly, the most uneven groups first.

    As scikit-learn's StratifiedGroupKFold: each group goes to where the shares of the classes vary least.
    """
    _, classes = np.unique(y, return_inverse=True)
    names, group = np.unique(groups, return_inverse=True)
    table = np.zeros((len(names), classes.max() + 1))
    np.add.at(table, (group, classes), 1.0)
    table /= table.sum(axis=0)
    order = generator.permutation(len(names))
    order = order[np.argsort(-table[order].std(axis=1), kind="stable")]
    filled, fold_of = np.zeros((count, table.shape[1])), np.zeros(len(names), dtype=np.int64)
    each = np.eye(count)[:, :, None]
    for g in order:
        tried = filled + each * table[g]  # fold that takes it, fold, class
        spread = tried.std(axis=1).mean(axis=1)
        least = np.flatnonzero(spread <= spread.min() + 1e-12)
        fold = int(least[filled[least].sum(axis=1).argmin()])
        filled[fold] += table[g]
        fold_of[g] = fold
    return fold_of[group]
