"""Parquet files: a small one is read at once, a large one row group by row group."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tinybayes._kernels.threads import thread_count
from tinybayes.data import _table
from tinybayes.data._arrow_tables import from_arrow, simple, simple_schema, to_frame
from tinybayes.data._table import Pieces, Table, reading
from tinybayes.model.variable import State


def read_parquet(path: Path) -> Table:
    """Read a small file at once, a large one row group by row group."""
    name = str(path)
    with pq.ParquetFile(path, pre_buffer=False) as file:
        about, schema = file.metadata, file.schema_arrow
        index = _index_columns(schema)
        names = [column for column in schema.names if column not in index]
        _table.check_names(names, name)
        stored = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        # A cell takes at least two bytes of text: the measure that the text formats have.
        if max(stored, 2 * about.num_rows * len(names)) <= _table.SMALL:
            return from_arrow(file.read().select(names), name)
    read = partial(_read_group, path, max(1, _table.BLOCK // (2 * len(names))), about.num_row_groups < thread_count())
    rows = tuple(about.row_group(i).num_rows for i in range(about.num_row_groups))
    kinds = simple_schema(pa.schema([schema.field(n) for n in names]), name)
    pieces = Pieces(kinds, rows, read, _bounds(path, about, schema))
    coded = [n for n in names if pa.types.is_dictionary(schema.field(n).type)]
    declared = _declared(pieces, coded) if coded else {}

    def batches() -> Iterator[pd.DataFrame]:
        for group in range(len(rows)):
            for table in read(group, names):
                frame = to_frame(table, names)
                yield frame.assign(**{n: frame[n].cat.set_categories(declared[n]) for n in declared})

    return Table(name, tuple(names), batches, declared, pieces)


def _read_group(path: Path, rows: int, threads: bool, group: int, names: Sequence[str]) -> Iterator[pa.Table]:
    """Read one row group in batches; every reading has a file of its own, so that threads do not meet."""
    with reading(str(path)), pq.ParquetFile(path, pre_buffer=False) as file:
        for batch in file.iter_batches(rows, row_groups=[group], columns=list(names), use_threads=threads):
            yield simple(pa.table(batch).select(list(names)), str(path))


def _declared(pieces: Pieces, names: Sequence[str]) -> dict[str, tuple[State, ...]]:
    """Join the dictionaries of all row groups, in their order."""
    dictionaries: dict[int, list[tuple[str, pa.Array]]] = {}

    def work(groups: Iterator[int]) -> None:
        for group in groups:
            last: dict[str, pa.Array] = {}
            dictionaries[group] = []
            for batch in pieces.read(group, names):
                for name in names:
                    for chunk in batch[name].chunks:
                        if name not in last or not last[name].equals(chunk.dictionary):
                            last[name] = chunk.dictionary
                            dictionaries[group].append((name, chunk.dictionary))

    pieces.spread(work)
    joined: dict[str, dict[State, None]] = {name: {} for name in names}
    for group in sorted(dictionaries):
        for name, dictionary in dictionaries[group]:
            joined[name].update(dict.fromkeys(dictionary.to_pylist()))
    return {name: tuple(states) for name, states in joined.items()}


def _bounds(path: Path, about: pq.FileMetaData, schema: pa.Schema) -> dict[str, tuple[int, int]]:
    """Return the range of every column of integers for which all row groups tell it."""
    paths = {about.schema.column(position).path: position for position in range(about.num_columns)}
    integers = {n: paths[n] for n in schema.names if n in paths and pa.types.is_integer(schema.field(n).type)}
    bounds: dict[str, tuple[int, int]] = {}
    if not integers:
        return bounds
    # Arrow aborts the process on a column with a wrong description. Pre-buffering checks the same descriptions first
    # and raises, except for the type, for which it trusts the schema.
    with pq.ParquetFile(path, pre_buffer=True) as file:
        next(file.iter_batches(1, columns=list(integers), use_threads=False), None)
    for name, position in integers.items():
        kind = about.schema.column(position).physical_type
        parts = [about.row_group(group).column(position) for group in range(about.num_row_groups)]
        told: list[Any] = [part.statistics if part.physical_type == kind else None for part in parts]
        if told and all(one is not None and one.has_min_max and isinstance(one.min, int) for one in told):
            bounds[name] = min(one.min for one in told), max(one.max for one in told)
    return bounds


def _index_columns(schema: pa.Schema) -> set[str]:
    """Return the columns in which pandas has stored the index of a frame: they are not data."""
    about = schema.pandas_metadata
    index = about.get("index_columns") if isinstance(about, dict) else None
    return {column for column in index if isinstance(column, str)} if isinstance(index, list) else set()
