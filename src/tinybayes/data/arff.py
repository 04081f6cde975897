"""Reading ARFF, the attribute-relation file format of WEKA, dense and sparse.

``numeric`` and ``real`` attributes become float64 columns, ``integer`` ones nullable Int64, ``string`` and ``date``
ones text, and nominal ones categorical with the declared values in the declared order. ``?`` is a missing value,
unless quoted. A line that begins with ``%`` is a comment. In a sparse row ``{index value, ...}`` an attribute that
is left out is 0, or the first declared value. Weights of rows and relational attributes are refused.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pandas as pd

from tinybayes.data._cells import LONGEST_LINE, NUMBER, Cells, numbers, texts
from tinybayes.errors import FileError, TinybayesError, error

CELLS = 1 << 20  # cells in a frame; in Python's own objects they take about 60 bytes each

_KINDS = {"numeric": "number", "real": "number", "integer": "integer", "string": "text", "date": "text"}
_QUOTED = r"""'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)\""""
_CELL = re.compile(rf"""\s*+(?:(?:{_QUOTED})\s*+|((?!['"])[^,]*+))(,|$)""")
_PAIR = re.compile(rf"""\s*+(\d+)\s++(?:(?:{_QUOTED})\s*+|((?!['"])[^,]*+))(,|$)""")
_ATTRIBUTE = re.compile(rf"@attribute\s++(?:{_QUOTED}|([^\s{{'\"][^\s{{]*+))\s*+(.*)", re.IGNORECASE)
_WEIGHT = re.compile(r",\s*+\{[^{},]*+\}$")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}

Fail = Callable[[str, object], TinybayesError]


@dataclass(frozen=True)
class Attribute:
    """A declared column: its name, its kind (number, integer, text or nominal), and the nominal values."""

    name: str
    kind: str
    states: tuple[str, ...] = ()


def text_lines(stream: BinaryIO, where: str) -> Iterator[str]:
    """Decode line by line, so that an error can name the line, and close the stream."""
    start = 0
    with stream:
        for number, line in enumerate(iter(lambda: stream.readline(LONGEST_LINE + 1), b""), 1):
            if len(line) > LONGEST_LINE:
                at = f"{where}:{number}"
                raise error(f"lines of up to {LONGEST_LINE >> 20} MiB", "a longer one", where=at, kind=FileError)
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as problem:
                got = f"the byte 0x{line[problem.start]:02x} at position {start + problem.start}"
                remedy = "save the file as UTF-8, for example with iconv -f LATIN1 -t UTF-8"
                raise error("UTF-8", got, where=f"{where}:{number}", remedy=remedy, kind=FileError) from problem
            start += len(line)


def read_arff(stream: BinaryIO, where: str) -> tuple[tuple[Attribute, ...], Iterator[pd.DataFrame]]:
    """Read the declarations, and return them with an iterator over the data; messages call the file `where`."""
    lines = _content(stream, where)
    attributes: dict[str, Attribute] = {}
    for number, line in lines:
        fail = _failure(where, number)
        keyword = line.split(maxsplit=1)[0].lower()
        if keyword == "@attribute":
            attribute = _attribute(line, fail)
            if attribute.name in attributes:
                raise fail("distinct names of attributes", f"{attribute.name!r} again")
            attributes[attribute.name] = attribute
        elif keyword == "@data":
            if not attributes:
                raise fail("at least one attribute before the data", "none")
            columns = tuple(attributes.values())
            return columns, _frames(lines, columns, where)
        elif keyword != "@relation":
            raise fail("@relation, @attribute or @data", repr(line[:40]))
    raise error("a line @data", "the end of the file", where=where, kind=FileError)


def _content(stream: BinaryIO, where: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text_lines(stream, where), 1):
        line = line.strip()
        if line and not line.startswith("%"):
            yield number, line


def _failure(where: str, number: int) -> Fail:
    return lambda expected, got: error(expected, got, where=f"{where}:{number}", kind=FileError)


def _attribute(line: str, fail: Fail) -> Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise fail("@attribute NAME TYPE", repr(line[:40]))
    name = str(_value(match.groups()[:3]))
    declared = match[4]
    if declared.startswith("{"):
        if not declared.endswith("}"):
            raise fail("the values between { and } on one line", repr(declared[-40:]))
        states = _split(declared[1:-1], fail)
        if None in states or len(set(states)) < len(states) or declared[1:-1].strip() == "":
            raise fail("at least one value, all distinct", f"{states[:10]}")
        return Attribute(name, "nominal", tuple(map(str, states)))
    kind = _KINDS.get(declared.lower().split(maxsplit=1)[0] if declared else "")
    if kind is None:
        got = f"{declared[:40]!r} after {name!r} (a name with blanks must be quoted)"
        raise fail("numeric, real, integer, string, date or {values}", got)
    return Attribute(name, kind)


def _value(groups: Sequence[str | None]) -> str | None:
    """Return the value of a cell, given its text in single quotes, in double quotes or bare."""
    single, double, bare = groups
    if bare is not None:
        bare = bare.strip()
        return None if bare == "?" else bare
    quoted = single if single is not None else str(double)
    return _ESCAPE.sub(lambda m: chr(int(m[1][1:], 16)) if len(m[1]) > 1 else _CONTROL.get(m[1], m[1]), quoted)


def _split(text: str, fail: Fail) -> list[str | None]:
    """Cut a dense row, or the values of a nominal attribute, into cells."""
    if "'" not in text and '"' not in text:
        return [None if (cell := part.strip()) == "?" else cell for part in text.split(",")]
    return [_value(groups) for groups in _matches(_CELL, text, fail)]


def _matches(pattern: re.Pattern[str], text: str, fail: Fail) -> Iterator[Sequence[str | None]]:
    """Walk over the cells of a row; the last group of the pattern is the comma between two."""
    at, more = 0, True
    while more:
        match = pattern.match(text, at)
        if match is None:
            raise fail("a cell and a comma", repr(text[at : at + 40]))
        yield match.groups()[:-1]
        at, more = match.end(), bool(match[match.re.groups])


def _sparse(text: str, attributes: Sequence[Attribute], absent: list[str | None], fail: Fail) -> list[str | None]:
    """Expand a sparse row; `absent` is the row in which everything is left out."""
    row, seen = absent.copy(), set()
    if not text.endswith("}"):
        raise fail("a closing }", repr(text[-40:]))
    inside = text[1:-1]
    for index, *groups in _matches(_PAIR, inside, fail) if inside.strip() else ():
        # The length is checked first: an endless number would take Python endless time to convert.
        column = int(str(index)) if len(str(index)) < 10 else len(row)
        if column >= len(row) or column in seen:
            raise fail(f"distinct indices from 0 to {len(row) - 1}", str(index)[:40])
        seen.add(column)
        row[column] = _value(groups)
    for column, attribute in enumerate(attributes):
        if attribute.kind == "text" and column not in seen:
            raise fail(f"a value of {attribute.name!r}, which has no default", "none")
    return row


def _frames(lines: Iterator[tuple[int, str]], attributes: tuple[Attribute, ...], where: str) -> Iterator[pd.DataFrame]:
    limit = max(1, CELLS // len(attributes))
    absent: list[str | None] = [a.states[0] if a.kind == "nominal" else "0" for a in attributes]
    rows: list[list[str | None]] = []
    numbers: list[int] = []
    for number, line in lines:
        fail = _failure(where, number)
        if line.endswith("}") and _WEIGHT.search(line):
            raise fail("rows without weights", repr(line[-40:]))
        row = _sparse(line, attributes, absent, fail) if line[0] == "{" else _split(line, fail)
        if len(row) != len(attributes):
            raise fail(f"{len(attributes)} cells", len(row))
        rows.append(row)
        numbers.append(number)
        if len(rows) == limit:
            yield _frame(rows, numbers, attributes, where)
            rows, numbers = [], []
    if rows:
        yield _frame(rows, numbers, attributes, where)


class _CellError(Exception):
    """A cell that does not fit its attribute; the argument is its row in the frame."""


def _frame(
    rows: list[list[str | None]], numbers: list[int], attributes: tuple[Attribute, ...], where: str
) -> pd.DataFrame:
    columns = {}
    for attribute, cells in zip(attributes, zip(*rows, strict=True), strict=True):
        try:
            columns[attribute.name] = _CONVERT[attribute.kind](cells, attribute.states)
        except _CellError as problem:
            row = problem.args[0]
            kinds = {"number": "a number", "integer": "an integer", "nominal": f"one of {list(attribute.states)[:10]}"}
            expected = f"{kinds[attribute.kind]} for {attribute.name!r}"
            raise _failure(where, numbers[row])(expected, repr(cells[row])[:40]) from None
    return pd.DataFrame(columns)


def _numbers(cells: Cells) -> np.ndarray:
    for row, cell in enumerate(cells):
        if cell is not None and not NUMBER.fullmatch(cell):
            raise _CellError(row)
    return numbers(cells)


def _integers(cells: Cells) -> pd.arrays.IntegerArray:
    values = _numbers(cells)
    missing = np.isnan(values)
    # Doubles are exact up to 2**53; infinities are not below it.
    wrong = np.flatnonzero(~missing & ~((np.abs(values) <= 2**53) & (values == np.rint(values))))
    if wrong.size:
        raise _CellError(int(wrong[0]))
    return pd.arrays.IntegerArray(np.where(missing, 0, values).astype(np.int64), missing)


def _nominal(cells: Cells, states: tuple[str, ...]) -> "pd.Categorical[str]":
    code = {state: number for number, state in enumerate(states)}
    codes = np.array([-1 if cell is None else code.get(cell, -2) for cell in cells])
    if codes.min() == -2:
        raise _CellError(int(codes.argmin()))
    return pd.Categorical.from_codes(codes, categories=pd.Index(list(states)))


_CONVERT: dict[str, Callable[[Cells, tuple[str, ...]], object]] = {
    "number": lambda cells, _: _numbers(cells),
    "integer": lambda cells, _: _integers(cells),
    "nominal": _nominal,
    "text": lambda cells, _: texts(cells),
}
