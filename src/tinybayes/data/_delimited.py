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

import bz2
import csv
import gzip
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from tinybayes.data import _table, arff
from tinybayes.data._cells import MISSING_TOKENS, long_cells
from tinybayes.data._table import Table, check_names, damage, reading
from tinybayes.errors import FileError, TinybayesError, error
from tinybayes.extras import installed, require

__all__ = ["MISSING_TOKENS", "Text", "probe", "read_text"]


@dataclass(frozen=True)
class Text:
    """A delimited text: how to open it, how it is cut, and its columns."""

    path: Path
    opened: Callable[[], BinaryIO]
    whole: bytes | None = field(repr=False)  # all of it, unpacked, where it is small
    delimiter: str
    names: tuple[str, ...]
    skip: int
    header: bool
    block: int

    @property
    def name(self) -> str:
        """Its name in messages."""
        return str(self.path)

    def lines(self) -> Iterator[str]:
        """Decode line by line."""
        return arff.text_lines(self.opened(), self.name)

    def check_end(self, last: str | None) -> None:
        """Raise when there is no last cell, or when it has swallowed lines since its quote is never closed."""
        if last is None:
            raise error("at least one row", "only the names of the columns", where=self.name)
        problem = self.explain() if "\n" in last else None
        if problem is not None:
            raise problem

    def explain(self) -> TinybayesError | None:
        """Look for the first line that cannot be read; slow, but only used when there is one."""
        with long_cells():
            return self._explain()

    def _explain(self) -> TinybayesError | None:
        reader = csv.reader(self.lines(), delimiter=self.delimiter, strict=True)
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
        except damage():
            return None
        return None if rows > self.header else error("at least one row", "none", where=self.name, kind=FileError)


def _unpacked(path: Path) -> BinaryIO:
    """Open a file for reading its bytes, unpacked."""
    suffix = path.suffix.lower()
    if suffix == ".zst":
        require("pyarrow")
        import pyarrow as pa

        return io.BufferedReader(pa.input_stream(str(path), compression="zstd"))
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    return cast("BinaryIO", openers.get(suffix, open)(path, "rb"))


def probe(path: Path) -> tuple[bytes, Callable[[], BinaryIO], bool]:
    """Return the beginning of a text, a way to open it, and whether the beginning is all of it."""
    opened = partial(_unpacked, path)
    with opened() as stream:
        head = stream.read(_table.SMALL + 1)
    return (head, opened, False) if len(head) > _table.SMALL else (head, partial(io.BytesIO, head), True)


def read_text(path: Path, delimiters: str, header: bool = True) -> Table:
    head, opened, small = probe(path)
    name = str(path)
    headers = [_first_line(head, delimiter, name) for delimiter in delimiters]
    cells, delimiter = max(zip(headers, delimiters, strict=True), key=lambda each: len(each[0]))
    if not cells:
        raise error("at least one row", "an empty file", where=name)
    skip = _empty_lines(head)
    names = _header(cells, name) if header else tuple(f"x{i}" for i in range(len(cells)))
    if delimiter == " " and "" in cells:
        raise error("single blanks between the cells", cells[:10], where=f"{name}:{skip + 1}")
    block = max(_table.BLOCK, 8 * sum(len(cell) + 8 for cell in cells))  # no row may be longer
    text = Text(path, opened, head if small else None, delimiter, names, skip, header, block)
    del head  # a large file is not kept
    reader = _reader()
    with reading(name, explain=text.explain):
        return reader.read_whole(text) if small else reader.read_large(text)


def _reader() -> Any:
    """Return the module that cuts and converts: the one that PyArrow makes fast, where that is installed."""
    if installed("pyarrow"):
        from tinybayes.data import _delimited_arrow

        return _delimited_arrow
    from tinybayes.data import _delimited_python

    return _delimited_python


def _first_line(head: bytes, delimiter: str, name: str) -> list[str]:
    """Return the cells of the first line that is not empty."""
    rows = csv.reader(arff.text_lines(io.BytesIO(head), name), delimiter=delimiter)
    try:
        with long_cells():
            return next(filter(None, rows), [])
    except csv.Error as problem:
        raise error("closed quotes and lines that end in a line feed", problem, where=f"{name}:1") from problem


def _empty_lines(head: bytes) -> int:
    """Return the number of empty lines at the beginning, as Arrow counts them: a carriage return ends one, too."""
    ends = re.match(rb"(?:\xef\xbb\xbf)?([\r\n]*)", head)
    return 0 if ends is None else len(re.findall(rb"\r\n|\r|\n", ends[1]))


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
