"""Numbers by name: weights of classes, prices of columns and costs of mistakes, from Python or from a small file."""

import csv
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from tinybayes.errors import error, near
from tinybayes.files import named

MOST = 2**24  # bytes of a file


def numbers_of(source: object, where: str) -> dict[str, float]:
    """Return numbers by name from a mapping, or from a JSON object or a CSV file with a name and a number a line."""
    if isinstance(source, str | Path):
        path = Path(source)
        found = _json(path) if path.suffix.lower() == ".json" else _pairs(_lines(path), str(path))
        where = str(path)
    else:
        found = source.to_dict() if _is_pandas(source, "Series") else source
    if not isinstance(found, Mapping) or not found:
        raise error("a number for each name", f"{type(found).__name__}", where=where, remedy='such as {"name": 1.5}')
    return {str(name): _number(value, f"{where}, {name}") for name, value in found.items()}


def matrix_of(source: object, names: Sequence[str], where: str) -> np.ndarray:
    """Return a square matrix over names, in their order.

    From a mapping of mappings, a frame with names on both sides, an array in the order of the names, a JSON object of
    objects, or a CSV file whose first line and first column are names. An entry that is not there is 0 on the diagonal.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        source, where = _json(path) if path.suffix.lower() == ".json" else _table(_lines(path), str(path)), str(path)
    if _is_pandas(source, "DataFrame"):
        source = {row: source.loc[row].to_dict() for row in source.index}
    if not isinstance(source, Mapping):
        return _array(source, len(names), where)
    rows = {str(row): values for row, values in source.items()}
    check_names(rows, names, where, missing=True)
    matrix = np.zeros((len(names), len(names)))
    for i, row in enumerate(names):
        if not isinstance(rows[row], Mapping):
            raise error("a cost for each class", repr(rows[row])[:40], where=f"{where}, {row}")
        values = {str(name): value for name, value in rows[row].items()}
        check_names(values, names, f"{where}, {row}", missing=True, but=row)
        matrix[i] = [_number(values.get(name, 0.0), f"{where}, {row}, {name}") for name in names]
    return matrix


def _is_pandas(source: Any, kind: str) -> TypeGuard[Any]:
    """Return whether this is a frame or a column; whoever has one has loaded pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(source, getattr(pandas, kind))


def check_names(
    given: Mapping[str, Any], known: Sequence[str], where: str, *, missing: bool = False, but: str | None = None
) -> None:
    """Refuse names that are not known, and with `missing` known ones that are not given, save `but`."""
    unknown = [name for name in given if name not in known]
    shown = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
    if unknown:
        raise error(f"some of {shown}", repr(unknown[0]), where=where, remedy=near(unknown[0], known))
    absent = [name for name in known if name not in given and name != but]
    if missing and absent:
        raise error(f"a row and a column for each of {shown}", f"none for {absent[0]!r}", where=where)


def _array(source: object, size: int, where: str) -> np.ndarray:
    try:
        matrix = np.asarray(source, dtype=np.float64)
    except (TypeError, ValueError):
        raise error("a matrix of numbers", type(source).__name__, where=where) from None
    if matrix.shape != (size, size):
        raise error(f"a row and a column for each of {size} classes", f"shape {matrix.shape}", where=where)
    for i, j in np.ndindex(size, size):
        _number(matrix[i, j], f"{where}, row {i}, column {j}")
    return matrix


def _number(value: Any, where: str) -> float:
    """Return a number that is finite and not negative."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not 0 <= number < math.inf:
        raise error("a number, at least 0", repr(value)[:40], where=where)
    return number


def _json(path: Path) -> Any:
    text = _text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise error("a JSON object", str(problem)[:80], where=str(path)) from problem


def _lines(path: Path) -> list[list[str]]:
    try:
        lines = [[cell.strip() for cell in line] for line in csv.reader(_text(path).splitlines())]
    except csv.Error as problem:
        raise error("lines with commas", str(problem), where=str(path)) from problem
    return [line for line in lines if any(line)]


def _text(path: Path) -> str:
    try:
        with open(path, "rb", opener=named) as file:
            content = file.read(MOST + 1)
        if len(content) > MOST:
            raise error(f"at most {MOST:,} bytes", f"{path.stat().st_size:,}", where=str(path))
        return content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise error("a JSON or CSV file", reason, where=str(path)) from problem


def _pairs(lines: list[list[str]], where: str) -> dict[str, str]:
    """Return the pairs of a file with two columns; a first line without a number is a header."""
    if lines and len(lines[0]) == 2 and not _is_number(lines[0][1]):
        lines = lines[1:]
    for number, line in enumerate(lines, 1):
        if len(line) != 2:
            raise error("a name and a number", f"{len(line)} cells", where=f"{where}, line {number}")
    _check_once([line[0] for line in lines], where)
    return {line[0]: line[1] for line in lines}


def _table(lines: list[list[str]], where: str) -> dict[str, dict[str, str]]:
    """Return the rows of a matrix with names in its first line and column."""
    if not lines:
        raise error("a matrix with names in its first line and column", "an empty file", where=where)
    header = lines[0][1:]
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(header) + 1:
            expected = f"{len(header) + 1} cells, as in the first line"
            raise error(expected, f"{len(line)}", where=f"{where}, line {number}")
    for names in (header, [line[0] for line in lines[1:]]):
        _check_once(names, where)
    return {line[0]: dict(zip(header, line[1:], strict=True)) for line in lines[1:]}


def _check_once(names: Sequence[str], where: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise error("each name once", f"{twice!r} twice", where=where)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
