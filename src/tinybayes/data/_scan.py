"""Finding the variables of Arrow batches: the values that `Summary` needs to see, and no more.

Columns give their distinct values, which the summary sees only when there are new ones. Of columns that are cut, a
sample of rows is kept. A column of integers is finished as soon as every number within its bounds was seen.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from tinybayes._kernels.encode import any_infinite
from tinybayes.data._arrow import TABLE, distinct, known_numbers, whole
from tinybayes.data._table import Pieces
from tinybayes.data.encode import infinity
from tinybayes.data.variables import Discretization, Summary
from tinybayes.model import State, Variable
from tinybayes.model.layout import starts


class Scanner:
    """Collects the summary of some batches; `bounds` are the ranges of columns of integers, where they are known."""

    def __init__(
        self,
        schema: pa.Schema,
        features: Sequence[str],
        target: str | None,
        discretization: Discretization,
        declared: Mapping[str, tuple[State, ...]],
        bounds: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        self.summary = Summary(discretization, dict(declared), target)
        self.features, self.target, self.bounds = tuple(features), target, bounds or {}
        self.done: set[str] = set()
        self._met: dict[str, set[bytes]] = {}
        self._samples: list[pa.Table] = []
        for name in self.names:
            if name in declared:
                self._see(name, pd.Series(declared[name]))
                self.done.add(name)
        self.sampled = self._to_sample(schema)

    @property
    def names(self) -> list[str]:
        """The columns to read."""
        return [*self.features, *([self.target] if self.target is not None else [])]

    def wanted(self, sampled: bool) -> list[str]:
        """Return the columns to read on: those not done, and where rows are sampled, the sampled ones."""
        return [name for name in self.names if name not in self.done or (sampled and name in self.sampled)]

    def add(self, table: pa.Table, rows: np.ndarray) -> None:
        """Add a batch that has at least the columns that are not done; `rows` are those to sample."""
        for name in self.names:
            if name not in self.done and name in table.column_names:
                self._look(name, table[name])
        if rows.size and self.sampled:
            self._samples.append(table.select(self.sampled).take(rows))

    def finish(self, priority: np.ndarray | None = None) -> Summary:
        """Return the summary."""
        for name in self.features:
            if name not in self.summary.states:
                self._see(name, pd.Series([np.nan]))  # nothing but gaps
        frame = pa.concat_tables(self._samples).to_pandas() if self._samples else pd.DataFrame()
        target = frame.pop(self.target) if self.target is not None and self.target in frame else None
        if self.target is not None and target is None:
            target = pd.Series(dtype=float, name=self.target)
        self.summary.sample(frame, target, None, priority if len(frame.columns) else np.empty(0))
        return self.summary

    def _to_sample(self, schema: pa.Schema) -> list[str]:
        """Return the columns that are sampled: the numbers to cut, and the class."""
        if self.summary.discretizer is None:
            return []
        most = self.summary.discretization.keep_values
        cut = {name for name in self.features if name not in self.summary.declared and _is_number(schema.field(name))}
        cut -= {name for name, (low, high) in self.bounds.items() if high - low < most}
        return [name for name in self.names if name in cut or name == self.target] if cut else []

    def _look(self, name: str, column: pa.ChunkedArray) -> None:
        summary = self.summary
        if _is_number(column) and name != self.target and summary.discretizer is not None:
            if pa.types.is_floating(column.type) and any_infinite(known_numbers(whole(column))):
                raise infinity(f"column {name!r}")
            if name in summary.cut or not summary.discretization.keep_values:
                if name not in summary.states and column.null_count < len(column):
                    self._see(name, pd.Series([0.0]))
                return
        values = distinct(column)
        key = values.to_numpy().tobytes() if values.dtype.kind in "iufb" else "\0".join(map(str, values)).encode()
        if key not in self._met.setdefault(name, set()):
            self._met[name].add(key)
            self._see(name, values)
        self._finish_column(name)

    def _see(self, name: str, values: pd.Series) -> None:
        if name == self.target:
            self.summary.see_class(values.rename(name))
        else:
            self.summary.see(name, values.rename(name))

    def _finish_column(self, name: str) -> None:
        """Leave a column of integers out of the rest of the pass when all numbers in its range were seen."""
        low, high = self.bounds.get(name, (0, TABLE))
        seen = self.summary.classes if name == self.target else self.summary.states[name]
        if high - low < TABLE and len(seen) == high - low + 1 and name not in self.summary.cut:
            self.done.add(name)


def scan_variables(
    pieces: Pieces,
    features: Sequence[str],
    target: str | None,
    discretization: Discretization,
    declared: Mapping[str, tuple[State, ...]],
) -> tuple[tuple[Variable, ...], Variable | None]:
    """Find the features and the class in one pass over the pieces, on all cores."""
    total = sum(pieces.rows)
    most = min(total, discretization.sample_rows)  # a choice of all rows, sorted, is all of them
    chosen = np.sort(np.random.default_rng(discretization.seed).choice(total, most, replace=False, shuffle=False))
    first = starts(pieces.rows)

    def work(groups: Iterator[int]) -> Summary:
        scanner = Scanner(pieces.schema, features, target, discretization, declared, pieces.bounds)
        for group in groups:
            own = chosen[slice(*np.searchsorted(chosen, first[group : group + 2]))] - first[group]
            _scan_piece(scanner, pieces, group, own)
        return scanner.finish()

    summary, *others = pieces.spread(work)
    for other in others:
        summary.merge(other)
    # In the order of the table, whichever thread saw a column first.
    summary.states = {name: summary.states[name] for name in features}
    return summary.features(), summary.class_variable()


def _scan_piece(scanner: Scanner, pieces: Pieces, group: int, sampled: np.ndarray) -> None:
    names, start = scanner.wanted(bool(sampled.size)), 0
    for table in pieces.read(group, names) if names else ():
        stop = start + table.num_rows
        scanner.add(table, sampled[slice(*np.searchsorted(sampled, [start, stop]))] - start)
        start = stop
        if not scanner.wanted(bool(sampled.size)):
            return


def _is_number(column: pa.ChunkedArray | pa.Field) -> bool:
    return bool(pa.types.is_integer(column.type) or pa.types.is_floating(column.type))
