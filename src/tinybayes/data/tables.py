"""From a table to a data set: in memory, or batch by batch for data larger than memory."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

from tinybayes.data._table import Pieces
from tinybayes.data.checks import check_classes, check_features, check_rows, weight_scale, weight_sums
from tinybayes.data.encode import encode_frame, encode_rows, row_weights
from tinybayes.data.readers import Table, as_table
from tinybayes.data.variables import Discretization, Part, learn_variables
from tinybayes.errors import error, near
from tinybayes.model import Dataset, Variable
from tinybayes.model.dataset import Columns, concatenate
from tinybayes.model.record import Nodes


class Variables(Protocol):
    """Anything that defines how a table is encoded: a model, a data set."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The features."""

    @property
    def target(self) -> Variable | None:
        """The class variable, if any."""


@dataclass(frozen=True)
class EncodedTable(Nodes):
    """A table seen through variables: each iteration yields its batches as data sets."""

    table: Table  # the source of the rows
    variables: tuple[Variable, ...]  # the features
    target: Variable | None = None  # the class; a table without its column yields data sets without `y`
    weight: str | None = None  # the name of a column of row weights
    weight_scale: float = 1.0  # the factor of these weights

    def __iter__(self) -> Iterator[Dataset]:
        pieces = self.table.pieces
        if pieces is not None:
            for columns in self._columns(pieces, range(len(pieces.rows))):
                yield Dataset(self.variables, self.target, columns.X.T, columns.y, columns.weight)
            return
        for frame in self.table.batches():
            X, y, weight = encode_rows(frame, self.variables, self.target, self.weight)
            yield Dataset(self.variables, self.target, X, y, self._scaled(weight))

    def total(self, count: Callable[[Iterator[Columns]], np.ndarray]) -> np.ndarray:
        """Return the sum of `count` over the rows, which are shared out to all cores."""
        pieces = self.table.pieces
        if pieces is None:
            return count(Columns(np.ascontiguousarray(b.X.T), b.y, b.weight) for b in self)
        first, *others = pieces.spread(lambda groups: count(self._columns(pieces, groups)))
        for part in others:
            first += part
        return first

    def _columns(self, pieces: Pieces, groups: Iterable[int]) -> Iterator[Columns]:
        from tinybayes.data._arrow import ArrowEncoder  # such a table has come through Arrow

        encoder = ArrowEncoder(self.variables, self.target, self.weight)
        absent = [name for name in encoder.columns if name not in self.table.columns]
        names = [name for name in encoder.columns if name not in absent]
        if set(absent) - {self.target.name if self.target is not None else None}:
            encode_frame(pd.DataFrame(columns=names), self.variables)  # raises, naming the absent columns
        for group in groups:
            for batch in pieces.read(group, names):
                columns = encoder(batch)
                yield columns._replace(weight=self._scaled(columns.weight))

    def _scaled(self, weight: np.ndarray | None) -> np.ndarray | None:
        return weight if weight is None or self.weight_scale == 1 else weight * self.weight_scale

    def in_memory(self) -> Dataset:
        """Return all rows as one data set."""
        return concatenate(list(self))


def open_dataset(
    source: object,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    discretization: Discretization | None = None,
) -> EncodedTable:
    """Open a table of any size: one pass finds its variables, later passes encode batch after batch.

    Parameters
    ----------
    source
        A path (CSV, TSV, Parquet, ARFF, npz, ``.data``; text also gzipped), a pandas DataFrame, a pyarrow Table, a
        NumPy array, a scikit-learn Bunch, or a function that returns an iterator of DataFrames.
    target
        Name of the class column; None for a table without a class.
    features
        Names of the feature columns; by default all others.
    weight
        Name of a column of row weights, which is then not a feature. Integers count as repetitions of the row; other
        weights are scaled to a mean of 1, so that weights that sum to 1 mean the same as unscaled ones.
    discretization
        How columns become variables.

    Returns
    -------
    EncodedTable
    """
    table = as_table(source)
    chosen = choose_features(table.columns, target, features, weight, table.name)

    rows, sums = 0, np.zeros(3)

    def parts() -> Iterator[Part]:
        nonlocal rows, sums
        for frame in table.batches():
            if not rows:  # the first batch has enough rows to show what a column holds
                check_features(frame[chosen])
            rows += len(frame)
            of_class = None if target is None else frame[target]
            weights = None if weight is None else row_weights(frame[weight])
            sums = sums if weights is None else sums + weight_sums(weights)
            yield frame[chosen], of_class, weights

    discretization = discretization or Discretization()
    if table.pieces is not None and weight is None:
        from tinybayes.data._scan import scan_variables

        next(parts(), None)
        rows = sum(table.pieces.rows)
        variables, class_variable = scan_variables(table.pieces, chosen, target, discretization, table.declared)
    else:
        variables, class_variable = learn_variables(parts(), discretization, table.declared)
    scale = weight_scale(sums)
    rows = max(rows, int(scale * sums[0]))
    if class_variable is None:
        check_rows(rows)
    else:
        declared = class_variable.name in table.declared
        check_classes(class_variable.states, rows, f"target {class_variable.name!r}", declared=declared)
    return EncodedTable(table, variables, class_variable, weight, scale)


def choose_features(
    columns: Sequence[str], target: str | None, features: Sequence[str] | None, weight: str | None, where: str
) -> list[str]:
    """Check the names of target, weight and features against the columns; return those of the features."""
    named = [n for n in (target, weight) if n is not None] + list(features or ())
    if len(set(named)) < len(named):
        twice = [name for name, count in Counter(named).items() if count > 1]
        raise error("each column once, as target, weight or feature", f"{twice[:10]} again", where=where)
    for name in named:
        if name not in columns:
            shown = ", ".join(map(str, columns[:10])) + (", ..." if len(columns) > 10 else "")
            raise error(f"a column {name!r}", f"the columns {shown}", where=where, remedy=near(name, columns))
    chosen = [c for c in columns if c not in (target, weight)] if features is None else list(features)
    if not chosen:
        raise error("at least one feature column", f"only {list(columns)}", where=where)
    return chosen


def read_dataset(
    source: object,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    discretization: Discretization | None = None,
    like: Variables | None = None,
) -> Dataset:
    """Read a table into memory as a `Dataset`.

    Parameters
    ----------
    source, target, features, weight, discretization
        As for `open_dataset`.
    like
        A model or a data set whose variables to read the table with, instead of finding new ones: a table to test a
        model on must be coded as the one it was learned from. The class may be missing in the table.
    """
    if like is None:
        return open_dataset(
            source, target=target, features=features, weight=weight, discretization=discretization
        ).in_memory()
    if not (target is None and features is None and discretization is None):
        raise error("either like, or target, features and discretization", "both", where="read_dataset")
    table = as_table(source)
    if weight is not None and weight not in table.columns:
        remedy = near(weight, table.columns)
        raise error(f"a column {weight!r}", "a table without it", where=table.name, remedy=remedy)
    return EncodedTable(table, like.variables, like.target, weight).in_memory()
