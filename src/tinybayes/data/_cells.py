"""What the cells of text files mean; see `_delimited` for the rules. Without PyArrow the cells are converted here."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pandas as pd

LONGEST_LINE = 2**25  # bytes: a small file may unpack to one line that fills the memory
MISSING_TOKENS = ("", "?", "NA", "N/A", "NaN", "nan", "null", "None")
"""The cells of a text file that stand for a missing value."""

BOOLEANS = ("true", "True", "TRUE", "false", "False", "FALSE")
KINDS = ("nothing", "integer", "number", "boolean", "text")  # what a column holds

# The numbers of Arrow: Python's own reader also takes 1_000 and digits of other scripts.
# "nan(ind)" and the like are what C programs print.
NUMBER = re.compile(
    r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|inf|infinity|nan(?:\(\w*\))?)",
    re.ASCII | re.IGNORECASE,
)
_INTEGER = re.compile(r"-?0{0,4000}\d{1,19}", re.ASCII)  # more digits do not fit in 64 bits, or Python refuses them

_TEXT = pd.Series(["text"]).dtype  # str, before pandas 3 object

Cells = Sequence[str | None]


class CellsError(ValueError):
    """A row of the wrong length: something to look for line by line."""


@contextmanager
def long_cells() -> Iterator[None]:
    """Let Python's reader take long cells: cut at the wrong delimiter, a long line is one, and quotes hold lines."""
    before = csv.field_size_limit(4 * LONGEST_LINE)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def clean(cells: Iterable[str]) -> list[str | None]:
    """Remove blanks around cells, and those that stand for a missing value."""
    return [None if (bare := cell.strip()) in MISSING_TOKENS else bare for cell in cells]


def kind_of(cells: Cells) -> str:
    """Return the first of integers, numbers, booleans and text that fits all cells."""
    present = [cell for cell in set(cells) if cell is not None]
    if not present:
        return "nothing"
    if all(map(_is_integer, present)):
        return "integer"
    if all(map(NUMBER.fullmatch, present)):
        return "number"
    return "boolean" if all(cell in BOOLEANS for cell in present) else "text"


def _is_integer(cell: str) -> bool:
    return bool(_INTEGER.fullmatch(cell)) and -(2**63) <= int(cell) < 2**63


def join(first: str, second: str) -> str:
    """Return the first kind that fits the cells of both."""
    if first == second or second == "nothing":
        return first
    if first == "nothing":
        return second
    return "number" if {first, second} == {"integer", "number"} else "text"


def numbers(cells: Cells) -> np.ndarray:
    """Convert cells that are numbers; a missing one is NaN."""
    return np.array([np.nan if cell is None else float(cell.partition("(")[0]) for cell in cells], dtype=np.float64)


def texts(cells: Cells) -> pd.Series:
    """Return cells of text as a column, of the same type where all of them are missing."""
    return pd.Series(list(cells), dtype=_TEXT)


def column(cells: Cells, kind: str, gaps: bool) -> object:
    """Convert cells of a known kind to a column of a frame; with gaps, anywhere in the table, to a nullable one."""
    if kind in ("nothing", "number"):
        return numbers(cells)
    if kind == "text":
        return texts(cells)
    missing = np.array([cell is None for cell in cells])
    if kind == "integer":
        integers = np.array([0 if cell is None else int(cell) for cell in cells], dtype=np.int64)
        return pd.arrays.IntegerArray(integers, missing) if gaps else integers
    truths = np.array([cell is not None and cell.lower() == "true" for cell in cells])
    return pd.arrays.BooleanArray(truths, missing) if gaps else truths
