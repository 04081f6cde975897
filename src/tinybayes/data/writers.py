"""Writing tables batch by batch, complete or not at all."""

import io
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from tinybayes.errors import FileError, error, visible
from tinybayes.extras import require
from tinybayes.files import atomic_path


def write_frames(frames: Iterable[pd.DataFrame], path: str | os.PathLike[str]) -> int:
    """Write frames with equal columns one below the other; return the number of rows.

    The path ends in ``.csv``, ``.tsv`` (both also with ``.gz``) or ``.parquet``; ``-`` prints CSV to standard output.
    """
    try:
        return _write(frames, path)
    except UnicodeEncodeError as problem:  # half characters, or a terminal that is not set to UTF-8
        got = visible(problem.object[problem.start : problem.start + 1])
        remedy = "rename columns or states, or set PYTHONIOENCODING=utf-8"
        raise error(f"text that {problem.encoding} can write", got, where=str(path), remedy=remedy) from problem


def _write(frames: Iterable[pd.DataFrame], path: str | os.PathLike[str]) -> int:
    name = Path(path).name.lower()
    plain = name.removesuffix(".gz")
    if str(path) == "-":
        return _write_text(frames, _Terminal() if sys.stdout.isatty() else sys.stdout, ",")
    if plain.endswith((".csv", ".tsv")):
        with atomic_path(path) as temporary:
            return _write_text(frames, temporary, "\t" if plain.endswith(".tsv") else ",")
    if name.endswith((".parquet", ".pq")):
        require("pyarrow")
        with atomic_path(path) as temporary:
            return _write_parquet(frames, temporary)
    raise error("a .csv, .csv.gz, .tsv or .parquet file", name, where=str(path), kind=FileError)


def _write_text(frames: Iterable[pd.DataFrame], target: object, separator: str) -> int:
    rows = 0
    for number, frame in enumerate(frames):
        frame.to_csv(target, mode="w" if number == 0 else "a", header=number == 0, index=False, sep=separator)  # type: ignore[call-overload]
        rows += len(frame)
    return rows


class _Terminal(io.TextIOBase):
    """Standard output where someone looks at it: names in a table do not steer the terminal."""

    def write(self, text: str, /) -> int:
        sys.stdout.write(visible(text))
        return len(text)


def _write_parquet(frames: Iterable[pd.DataFrame], target: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, writer = 0, None
    try:
        for frame in frames:
            table = pa.Table.from_pandas(frame, preserve_index=False)
            writer = writer or pq.ParquetWriter(target, table.schema)
            writer.write_table(table)
            rows += len(frame)
    finally:
        if writer is not None:
            writer.close()
    return rows
