"""Arrow tables to codes without a detour: integers and cut points by kernels, everything else by its distinct values.

The meaning of a value is defined in `encode.py` alone: codes are looked up in tables that `encode_column` made.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tinybayes._kernels.encode import count_cuts, look_up_column, mark_column, shift
from tinybayes.data.encode import encode_column, infinity, row_weights
from tinybayes.model import MISSING, Variable
from tinybayes.model.dataset import Columns, code_dtype
from tinybayes.model.encoding import Intervals

TABLE = 2**16  # integers whose range is at most this are encoded by a table


class ArrowEncoder:
    """Encodes one batch after another; remembers the dictionaries it has met. Not to be shared among threads."""

    def __init__(self, variables: Sequence[Variable], target: Variable | None, weight: str | None) -> None:
        self.variables, self.target, self.weight = tuple(variables), target, weight
        self.dtype = code_dtype(max((v.cardinality for v in self.variables), default=1))
        self._tables: dict[str, tuple[pa.Array, np.ndarray]] = {}

    @property
    def columns(self) -> list[str]:
        """The columns that the encoder reads."""
        others = [self.target.name] if self.target is not None else []
        return [v.name for v in self.variables] + others + ([self.weight] if self.weight is not None else [])

    def __call__(self, batch: pa.Table) -> Columns:
        """Encode a batch; without the class column there are no class codes."""
        X = np.empty((len(self.variables), batch.num_rows), dtype=self.dtype)
        for codes, variable in zip(X, self.variables, strict=True):
            self._encode(batch[variable.name], variable, codes)
        y = None
        if self.target is not None and self.target.name in batch.column_names:
            y = np.empty(batch.num_rows, dtype=code_dtype(self.target.cardinality))
            self._encode(batch[self.target.name], self.target, y)
        weight = None if self.weight is None else row_weights(batch[self.weight].to_pandas().rename(self.weight))
        return Columns(X, y, weight)

    def _encode(self, column: pa.ChunkedArray, variable: Variable, out: np.ndarray) -> None:
        array, kind, done = whole(column), column.type, False
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            array = array.dictionary_encode()
        if pa.types.is_dictionary(array.type):
            table = self._dictionary_table(variable, array.dictionary)
            done = _with_gaps(array.indices, out, lambda codes: len(table) and look_up_column(codes, 0, table, out))
        elif pa.types.is_floating(kind) and kind.bit_width > 16 and variable.has_intervals:
            done = _with_gaps(array, out, lambda values: _cut(values, variable, out))
        elif pa.types.is_integer(kind):
            done = _with_gaps(array, out, lambda values: _integers(values, variable, out))
        if not done:
            out[:] = encode_column(column.to_pandas(), variable)

    def _dictionary_table(self, variable: Variable, dictionary: pa.Array) -> np.ndarray:
        held = self._tables.get(variable.name)
        if held is None or not held[0].equals(dictionary):
            codes = encode_column(dictionary.to_pandas(), variable).astype(code_dtype(variable.cardinality))
            held = self._tables[variable.name] = dictionary, codes
        return held[1]


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return the values in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def known_numbers(array: pa.Array) -> np.ndarray:
    """Return the values of a column of numbers that are not null."""
    return np.asarray((array.drop_null() if array.null_count else array).to_numpy(zero_copy_only=False))


def distinct(column: pa.ChunkedArray) -> pd.Series:
    """Return the distinct known values of a column, or one missing value when there are none."""
    array = whole(column)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary.take(pc.unique(array.indices.drop_null()))
    if pa.types.is_integer(array.type):
        values = known_numbers(array)
        low, high = (int(values.min()), int(values.max())) if values.size else (0, -1)
        if 0 <= high - low < TABLE:
            seen = np.zeros(high - low + 1, dtype=bool)
            mark_column(values, low, seen)
            return pd.Series(np.flatnonzero(seen) + low, name=None)
    distinct_values = pc.unique(array).drop_null().to_pandas()
    return distinct_values if len(distinct_values) else pd.Series([np.nan])


def _with_gaps(array: pa.Array, out: np.ndarray, encode: Any) -> bool:
    """Encode the values of an array, then mark the nulls; tell whether the values could be encoded."""
    known = array.fill_null(0) if array.null_count else array
    done = encode(known.to_numpy(zero_copy_only=False)) is not False
    if array.null_count:
        out[array.is_null().to_numpy(zero_copy_only=False)] = MISSING
    return done


def _cut(values: np.ndarray, variable: Variable, out: np.ndarray) -> None:
    if count_cuts(values, _thresholds(variable, values.dtype.char), out):
        raise infinity(f"column {variable.name!r}")


@lru_cache(maxsize=4096)
def _thresholds(variable: Variable, kind: str) -> np.ndarray:
    """Return the thresholds in the type of the values: the smallest numbers of that type that are not below them."""
    assert isinstance(variable.encoding, Intervals)
    exact = variable.encoding.thresholds
    with np.errstate(over="ignore"):
        rounded = exact.astype(kind)
    return np.where(rounded < exact, np.nextafter(rounded, np.array(np.inf, kind)), rounded)


def _integers(values: np.ndarray, variable: Variable, out: np.ndarray) -> bool:
    """Encode integers of a small range by a table; tell whether the range was small."""
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    if high - low >= TABLE:
        return False
    table, begin = _integer_table(variable, low, high)
    if begin is None:
        look_up_column(values, low, table, out)
    else:
        shift(values, begin, out)
    return True


@lru_cache(maxsize=4096)
def _integer_table(variable: Variable, low: int, high: int) -> tuple[np.ndarray, int | None]:
    """Return the codes of the integers from `low` to `high`, and the number that has code 0 where they are in a row."""
    numbers = np.arange(low, high + 1, dtype=np.int64 if low < 0 or high < 2**63 else np.uint64)
    codes = encode_column(pd.Series(numbers), variable).astype(code_dtype(variable.cardinality))
    in_a_row = codes[0] >= 0 and np.array_equal(codes, np.arange(len(codes)) + codes[0])
    begin = low - int(codes[0])
    fits = in_a_row and np.iinfo(np.int8).min <= begin and high <= np.iinfo(np.int8).max
    return codes, begin if fits else None
