"""Delimited text with PyArrow: it cuts the text into cells, on all cores, and casts them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from tinybayes._kernels.threads import thread_count
from tinybayes.data._arrow_tables import from_arrow, to_frame
from tinybayes.data._cells import BOOLEANS, MISSING_TOKENS
from tinybayes.data._table import Table, reading

if TYPE_CHECKING:
    from tinybayes.data._delimited import Text

_FEW = 10_000  # cells that are converted before a thread has started
_BOOLEANS = pa.array(BOOLEANS)


def _options(text: "Text") -> dict[str, Any]:
    """Return the options with which pyarrow cuts the text into cells, all of them text."""
    keys = [str(i) for i in range(len(text.names))]
    types = dict.fromkeys(keys, pa.string())
    return {
        "read_options": pacsv.ReadOptions(
            column_names=keys, skip_rows=text.skip, skip_rows_after_names=text.header, block_size=text.block
        ),
        "parse_options": pacsv.ParseOptions(delimiter=text.delimiter, newlines_in_values=True),
        "convert_options": pacsv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
    }


def _opened(text: "Text") -> pa.NativeFile:
    if text.whole is not None:
        return pa.BufferReader(text.whole)
    packed = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(text.path.suffix.lower())
    return pa.input_stream(str(text.path), compression=packed)


def _last(cells: pa.Table | pa.RecordBatch | None) -> str | None:
    """Return the last cell."""
    return None if cells is None or not cells.num_rows else cells.column(cells.num_columns - 1)[-1].as_py()


def read_whole(text: "Text") -> Table:
    """Read a small text at once."""
    cells = pacsv.read_csv(_opened(text), **_options(text))
    text.check_end(_last(cells))
    if cells.num_rows * cells.num_columns < _FEW:
        columns = list(map(_infer, cells.columns))
    else:
        with ThreadPoolExecutor(thread_count()) as pool:
            columns = list(pool.map(_infer, cells.columns))
    return from_arrow(pa.table(columns, names=list(text.names)), text.name)


def read_large(text: "Text") -> Table:
    """Read a text once to find the types; its batches are read when they are asked for."""
    kinds = [pa.null()] * len(text.names)
    missing: set[str] = set()
    last = None
    with pacsv.open_csv(_opened(text), **_options(text)) as reader, ThreadPoolExecutor(thread_count()) as pool:
        for cells in reader:
            if cells.num_rows:
                last = cells
                columns = list(pool.map(_infer, cells.columns))
                kinds = [_join(kind, column.type) for kind, column in zip(kinds, columns, strict=True)]
                missing |= {n for n, column in zip(text.names, columns, strict=True) if column.null_count}
    text.check_end(_last(last))

    def batches() -> Iterator[pd.DataFrame]:
        with (
            reading(text.name, explain=text.explain),
            pacsv.open_csv(_opened(text), **_options(text)) as reader,
            ThreadPoolExecutor(thread_count()) as pool,
        ):
            for cells in reader:
                if cells.num_rows:
                    columns = list(pool.map(_convert, cells.columns, kinds))
                    yield to_frame(pa.table(columns, names=list(text.names)), missing)

    return Table(text.name, text.names, batches)


def _infer(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert to the first of integers, numbers, booleans and text that fits all the cells."""
    numbers = _numbers(cells)  # most columns are clean and need no look at blanks and missing tokens
    if numbers is not None and (numbers.type == pa.int64() or not pc.any(pc.is_nan(numbers)).as_py()):
        return numbers
    cells = _clean(cells)
    if cells.null_count == len(cells):
        return pa.nulls(len(cells))
    numbers = _numbers(cells)
    if numbers is not None:
        return numbers
    return cells.cast(pa.bool_()) if pc.all(pc.is_in(cells.drop_null(), _BOOLEANS)).as_py() else cells


def _numbers(cells: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Convert to integers or else to doubles; None when some cell is no number.

    Doubles come first since Arrow's integers also take hexadecimal digits, which then would be numbers in one
    batch and text in another.
    """
    doubles = _cast(cells, pa.float64())
    integers = None if doubles is None else _cast(cells, pa.int64())
    return doubles if integers is None else integers


def _cast(cells: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    try:
        cells[:100].cast(kind)  # a cast that fails is slow, and most fail here
        return cells.cast(kind)
    except pa.ArrowInvalid:
        return None


def _clean(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    cells = pc.utf8_trim_whitespace(cells)
    return pc.if_else(pc.is_in(cells, pa.array(MISSING_TOKENS)), pa.scalar(None, pa.string()), cells)


def _join(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """Return the first type that fits the values of both."""
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    return pa.float64() if {first, second} == {pa.int64(), pa.float64()} else pa.string()


def _convert(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert to a type that is known to fit."""
    clean = _cast(cells, kind) if kind in (pa.int64(), pa.float64()) else None
    return _clean(cells).cast(pa.float64() if pa.types.is_null(kind) else kind) if clean is None else clean
