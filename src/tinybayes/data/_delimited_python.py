"""Delimited text without PyArrow: Python's csv module cuts it into cells. The frames are the same, and take longer."""

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import pandas as pd

from tinybayes.data._cells import Cells, CellsError, clean, column, join, kind_of, long_cells
from tinybayes.data._table import Table, from_frame, reading

if TYPE_CHECKING:
    from tinybayes.data._delimited import Text

CELLS = 1 << 20  # of a batch
SMALL = 32 << 20  # bytes of text whose cells are held at the same time, in Python's own objects


def read_whole(text: "Text") -> Table:
    """Read a small text at once."""
    if len(text.whole or b"") > SMALL:
        return read_large(text)
    blocks = list(_blocks(text))
    cells = [[cell for part in parts for cell in part] for parts in zip(*blocks, strict=True)]
    return from_frame(_frame(text, cells, list(map(kind_of, cells)), [None in column for column in cells]), text.name)


def read_large(text: "Text") -> Table:
    """Read a text once to find the types; its batches are read when they are asked for."""
    kinds, gaps = ["nothing"] * len(text.names), [False] * len(text.names)
    for cells in _blocks(text):
        kinds = [join(kind, kind_of(column)) for kind, column in zip(kinds, cells, strict=True)]
        gaps = [gap or None in column for gap, column in zip(gaps, cells, strict=True)]

    def batches() -> Iterator[pd.DataFrame]:
        with reading(text.name, explain=text.explain):
            for cells in _blocks(text):
                yield _frame(text, cells, kinds, gaps)

    return Table(text.name, text.names, batches)


def _frame(text: "Text", cells: Sequence[Cells], kinds: list[str], gaps: list[bool]) -> pd.DataFrame:
    columns = map(column, cells, kinds, gaps)
    return pd.DataFrame(dict(zip(text.names, columns, strict=True)))


def _blocks(text: "Text") -> Iterator[list[Cells]]:
    """Cut the text into blocks, each a list of columns of cells."""
    width = len(text.names)
    reader = csv.reader(text.lines(), delimiter=text.delimiter)
    rows = (row for row in reader if row)
    last: list[str] = []

    def take(count: int) -> list[list[str]]:
        with long_cells():  # not for longer: the limit is that of the whole process
            return list(islice(rows, count))

    take(int(text.header))
    while block := take(max(1, CELLS // width)):
        if any(len(row) != width for row in block):
            raise CellsError(f"a row without {width} cells")
        last = block[-1]
        yield [clean(cells) for cells in zip(*block, strict=True)]
    text.check_end(last[-1] if last else None)
