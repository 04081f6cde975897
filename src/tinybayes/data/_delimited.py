"""Delimited text: ``.csv``, ``.tsv``, ``.txt`` and ``.data``.

The rules of the text formats (``.csv``, ``.tsv``, ``.txt``, ``.data``), the same for small and large files:

- The first line names the columns. The delimiter is the one of ``, ; tab |`` that cuts it into the most names;
  ``.tsv`` is cut at tabs. ``.data`` has no such line: its columns are ``x0, x1, ...``, and blanks may separate
  them too. Empty lines are skipped; cells in double quotes may hold delimiters and line ends.
- Blanks around a cell are not part of it; the cells of `MISSING_TOKENS`, quoted or not, are missing values.
- A column holds integers, numbers, booleans (``true``, ``false``, also capitalised) or text: the first of these
  that fits all its values *in the whole file*. A file too large to be held is therefore read once to find the
  types before it is read in batches. Codes such as ``007`` are numbers, dates are text, and a column without
  any value holds numbers.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from tinybayes._kernels.threads import thread_count
from tinybayes.data import _table, arff
from tinybayes.data._table import DAMAGE, Table, check_names, from_arrow, reading, to_frame
from tinybayes.errors import FileError, TinybayesError, error

MISSING_TOKENS = ("", "?", "NA", "N/A", "NaN", "nan", "null", "None")
"""The cells of a text file that stand for a missing value."""

_FEW = 10_000  # cells that are converted before a thread has started
_BOOLEANS = pa.array(["true", "True", "TRUE", "false", "False", "FALSE"])


@dataclass(frozen=True)
class _Text:
    """A delimited text: how to open it, how it is cut, and its columns."""

    name: str
    opened: Callable[[], pa.NativeFile]
    delimiter: str
    names: tuple[str, ...]
    skip: int
    header: bool
    block: int

    @property
    def options(self) -> dict[str, Any]:
        """The options with which pyarrow cuts the text into cells, all of them text."""
        keys = [str(i) for i in range(len(self.names))]
        types = dict.fromkeys(keys, pa.string())
        return {
            "read_options": pacsv.ReadOptions(
                column_names=keys, skip_rows=self.skip, skip_rows_after_names=self.header, block_size=self.block
            ),
            "parse_options": pacsv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": pacsv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
        }

    def explain(self) -> TinybayesError | None:
        """Look for the first line that cannot be read; slow, but only used when there is one."""
        with _long_cells():
            return self._explain()

    def _explain(self) -> TinybayesError | None:
        reader = csv.reader(_lines(self.opened(), self.name), delimiter=self.delimiter, strict=True)
        start, rows, width = 1, 0, len(self.names)
        try:
            for cells in reader:
                if cells and len(cells) != width:
                    where = f"{self.name}:{start}"
                    return error(f"{width} cells, as in the first line", len(cells), where=where, kind=FileError)
                start = reader.line_num + 1
                rows += bool(cells)
        except csv.Error as problem:
            return error("a closing quote", problem, where=f"{self.name}:{start}", kind=FileError)
        except TinybayesError as problem:
            return problem
        except DAMAGE:
            return None
        return None if rows > self.header else error("at least one row", "none", where=self.name, kind=FileError)


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let Python's reader take cells of any length: cut at the wrong delimiter, a long line is one cell."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _lines(stream: pa.NativeFile, name: str) -> Iterator[str]:
    return arff.text_lines(io.BufferedReader(stream), name)


def probe(path: Path) -> tuple[pa.Buffer, Callable[[], pa.NativeFile], bool]:
    """Return the beginning of a text, a way to open it, and whether the beginning is all of it."""
    packed = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(path.suffix.lower())
    opened = partial(pa.input_stream, str(path), compression=packed)
    with opened() as stream:
        head = stream.read_buffer(_table.SMALL + 1)
    return (head, opened, False) if head.size > _table.SMALL else (head, partial(pa.BufferReader, head), True)


def read_text(path: Path, delimiters: str, header: bool = True) -> Table:
    head, opened, small = probe(path)
    name = str(path)
    headers = [_first_line(head, delimiter, name) for delimiter in delimiters]
    (skip, cells), delimiter = max(zip(headers, delimiters, strict=True), key=lambda each: len(each[0][1]))
    if not cells:
        raise error("at least one row", "an empty file", where=name)
    names = _header(cells, name) if header else tuple(f"x{i}" for i in range(len(cells)))
    if delimiter == " " and "" in cells:
        raise error("single blanks between the cells", cells[:10], where=f"{name}:{skip + 1}")
    block = max(_table.BLOCK, 8 * sum(len(cell) + 8 for cell in cells))  # no row may be longer
    text = _Text(name, opened, delimiter, names, skip, header, block)
    del head  # a large file is not kept
    with reading(name, explain=text.explain):
        return _read_whole(text) if small else _read_large(text)


def _first_line(head: pa.Buffer, delimiter: str, name: str) -> tuple[int, list[str]]:
    """Return the number of empty lines at the beginning and the cells of the line that follows."""
    rows = csv.reader(_lines(pa.BufferReader(head), name), delimiter=delimiter)
    try:
        with _long_cells():
            return next(((i, row) for i, row in enumerate(rows) if row), (0, []))
    except csv.Error as problem:
        raise error("closed quotes and lines that end in a line feed", problem, where=f"{name}:1") from problem


def _header(cells: list[str], name: str) -> tuple[str, ...]:
    names = [cell.strip().lstrip("\ufeff").strip() for cell in cells]  # a mark of the encoding is no name
    if all(re.fullmatch(r"[-+]?[\d.]+([eE][-+]?\d+)?", column) for column in names):
        remedy = "add a line with the names of the columns, or rename the file to .data"
        raise error("names in the first line", f"numbers: {names[:5]}", where=name, remedy=remedy)
    if "" in names:
        remedy = "name it; if it is an index written by pandas, write with index=False"
        raise error("a name for every column", f"none for column {names.index('') + 1}", where=name, remedy=remedy)
    if any("\0" in column for column in names):  # after such a line Arrow would leave out a row
        raise error("names of columns without the character NUL", names[:10], where=name, kind=FileError)
    check_names(names, name)
    return tuple(names)


def _read_whole(text: _Text) -> Table:
    cells = pacsv.read_csv(text.opened(), **text.options)
    _check_end(cells, text)
    if cells.num_rows * cells.num_columns < _FEW:
        columns = list(map(_infer, cells.columns))
    else:
        with ThreadPoolExecutor(thread_count()) as pool:
            columns = list(pool.map(_infer, cells.columns))
    return from_arrow(pa.table(columns, names=list(text.names)), text.name)


def _read_large(text: _Text) -> Table:
    kinds = [pa.null()] * len(text.names)
    missing: set[str] = set()
    last = None
    with pacsv.open_csv(text.opened(), **text.options) as reader, ThreadPoolExecutor(thread_count()) as pool:
        for cells in reader:
            if cells.num_rows:
                last = cells
                columns = list(pool.map(_infer, cells.columns))
                kinds = [_join(kind, column.type) for kind, column in zip(kinds, columns, strict=True)]
                missing |= {n for n, column in zip(text.names, columns, strict=True) if column.null_count}
    _check_end(last, text)

    def batches() -> Iterator[pd.DataFrame]:
        with (
            reading(text.name, explain=text.explain),
            pacsv.open_csv(text.opened(), **text.options) as reader,
            ThreadPoolExecutor(thread_count()) as pool,
        ):
            for cells in reader:
                if cells.num_rows:
                    columns = list(pool.map(_convert, cells.columns, kinds))
                    yield to_frame(pa.table(columns, names=list(text.names)), missing)

    return Table(text.name, text.names, batches)


def _check_end(cells: pa.Table | pa.RecordBatch | None, text: _Text) -> None:
    """Raise when there is no row, or when the last cell has swallowed lines since its quote is never closed."""
    if cells is None or not cells.num_rows:
        raise error("at least one row", "only the names of the columns", where=text.name)
    problem = text.explain() if "\n" in cells.column(cells.num_columns - 1)[-1].as_py() else None
    if problem is not None:
        raise problem


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
