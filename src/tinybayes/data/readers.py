"""Reading tables: files and objects in memory become one re-iterable source of pandas frames."""

import math
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.lib.format as npy
import pandas as pd

from tinybayes.data import arff
from tinybayes.data._delimited import MISSING_TOKENS, probe, read_text
from tinybayes.data._table import Table, categories, from_frame, plain, reading
from tinybayes.errors import FileError, TinybayesError, error, near
from tinybayes.extras import require
from tinybayes.files import exists, is_directory, is_file

__all__ = ["MISSING_TOKENS", "Table", "as_table", "read_frame"]

MOST_COLUMNS = 2**20
MOST_UNPACKED = 2**30  # bytes of an array that is packed more tightly than this ratio, as no measured data are
MOST_RATIO = 200


def as_table(source: object, *, rows_per_batch: int | None = None) -> Table:
    """Make a `Table` of a file or of an object in memory.

    Parameters
    ----------
    source
        A path to a ``.csv``, ``.tsv``, ``.txt``, ``.data`` or ``.arff`` file (also with ``.gz``, ``.bz2`` or
        ``.zst``) or to a ``.parquet``, ``.pq`` or ``.npz`` file (arrays ``X``, optionally ``y`` and ``names``);
        a pandas frame; an Arrow table or anything that exports one; a NumPy array with two axes (columns
        ``x0, x1, ...``); a scikit-learn Bunch; a `Table`; or, for data larger than memory, a function
        without arguments that returns an iterator of frames.
    rows_per_batch
        The most rows in a batch; by default a small table is one batch and a large file comes in blocks.
    """
    if rows_per_batch is not None and rows_per_batch < 1:
        raise error("at least 1", rows_per_batch, where="rows_per_batch")
    table = _dispatch(source)
    if rows_per_batch is None:
        return table
    return replace(table, source=partial(_sliced, table, rows_per_batch), pieces=None)


def read_frame(source: object) -> pd.DataFrame:
    """Read a whole table, from anything that `as_table` takes, into memory."""
    table = as_table(source)
    frames = list(table.batches())
    if not frames:
        raise error("at least one row", "none", where=table.name)
    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)


def _sliced(table: Table, rows: int) -> Iterator[pd.DataFrame]:
    for frame in table.batches():
        for start in range(0, len(frame), rows):
            yield frame.iloc[start : start + rows]


def _dispatch(source: object) -> Table:
    if isinstance(source, Table):
        return source
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        with reading(str(path)):
            return _reader(path)(path)
    if isinstance(source, pd.DataFrame):
        return from_frame(source, "table")
    if isinstance(source, np.ndarray):
        return from_frame(_matrix(source, "array"), "array")
    if isinstance(source, Mapping) and "data" in source:
        return from_frame(_bunch(source), "Bunch")
    if hasattr(source, "__arrow_c_stream__"):
        return _exported(source)
    if callable(source):
        return _from_function(source)
    known = "a path, a pandas frame, an Arrow table, a NumPy array, a scikit-learn Bunch or a function"
    raise error(known, type(source).__name__, where="table")


def _reader(path: Path) -> Callable[[Path], Table]:
    """Choose the reader by the suffix."""
    if not is_file(path):
        got = "a directory" if is_directory(path) else "a pipe or a device" if exists(path) else "none of that name"
        beside: list[str] = []
        with suppress(OSError):
            beside = os.listdir(path.parent)
        raise error("a file", got, where=str(path), remedy=near(path.name, beside), kind=FileError)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".bz2", ".zst"):
        reader = _TEXT.get("".join(suffixes[-2:-1]))
    else:
        reader = (_TEXT | _BINARY).get("".join(suffixes[-1:]))
    if reader is None:
        known = f"{', '.join(_TEXT)} (also .gz, .bz2, .zst), {', '.join(_BINARY)}"
        raise error(f"a file ending in {known}", repr(path.name), where=str(path), kind=FileError)
    return reader


def _matrix(
    X: np.ndarray, where: str, names: Iterable[object] | None = None, y: object = None, target: str = "y"
) -> pd.DataFrame:
    """Join a matrix, the names of its columns and a target to a frame."""
    if X.ndim != 2:
        raise error("an array with two axes", f"{X.ndim}", where=where)
    if X.shape[1] > MOST_COLUMNS:  # an array without rows has any number of them for nothing
        raise error(f"at most {MOST_COLUMNS:,} columns", f"{X.shape[1]:,}", where=where)
    columns = [f"x{i}" for i in range(X.shape[1])] if names is None else [str(name) for name in names]
    if len(columns) != X.shape[1]:
        raise error(f"{X.shape[1]} names, one for each column", len(columns), where=where)
    frame = pd.DataFrame(X, columns=columns).infer_objects()
    if y is None:
        return frame
    values = np.asarray(y)
    if values.shape != (len(frame),):
        raise error(f"one target for each of {len(frame)} rows", f"shape {values.shape}", where=where)
    return pd.concat([frame, pd.DataFrame({target: values}).infer_objects()], axis=1)


def _bunch(bunch: Mapping[Any, Any]) -> pd.DataFrame:
    frame, data, names = bunch.get("frame"), bunch["data"], bunch.get("feature_names")
    if isinstance(frame, pd.DataFrame):
        return frame
    if isinstance(data, pd.DataFrame):
        return data if bunch.get("target") is None else data.assign(target=np.asarray(bunch["target"]))
    if not isinstance(data, np.ndarray):
        raise error("a dense array", type(data).__name__, where="Bunch data", remedy="call its toarray()")
    return _matrix(data, "Bunch", names, bunch.get("target"), "target")


def _exported(source: object) -> Table:
    require("pyarrow")
    import pyarrow as pa

    from tinybayes.data._arrow_tables import from_arrow

    with reading("Arrow table", TinybayesError):
        return from_arrow(pa.table(source), "Arrow table")


def _from_function(function: Callable[[], Iterable[pd.DataFrame]]) -> Table:
    def frames() -> Iterator[pd.DataFrame]:
        columns = None
        for frame in function():
            if not isinstance(frame, pd.DataFrame):
                raise error("pandas frames", type(frame).__name__, where="batches")
            frame = plain(frame, "batches")
            header_and_categories = (list(frame.columns), categories(frame))
            columns = columns or header_and_categories
            if header_and_categories != columns:
                raise error("columns and categories as in the first", f"{header_and_categories}"[:200], where="batches")
            if len(frame):
                yield frame

    first = next(frames(), None)
    if first is None:
        raise error("at least one row", "none", where="batches")
    return Table("batches", tuple(first.columns), frames, categories(first))


def _read_arff(path: Path) -> Table:
    name = str(path)
    _, opened, small = probe(path)

    def batches() -> Iterator[pd.DataFrame]:
        with reading(name):
            yield from arff.read_arff(opened(), name)[1]

    attributes, frames = arff.read_arff(opened(), name)
    first = next(frames, None)
    if first is None:
        raise error("at least one row", "only the declarations", where=name)
    if small:
        return from_frame(pd.concat([first, *frames], ignore_index=True), name)
    declared = {attribute.name: attribute.states for attribute in attributes if attribute.states}
    return Table(name, tuple(first.columns), batches, declared)


def _read_npz(path: Path) -> Table:
    name = str(path)
    with zipfile.ZipFile(path) as archive:
        members = {member.removesuffix(".npy"): member for member in archive.namelist()}
        arrays = {key: _array(archive, members[key], name) for key in ("X", "x", "y", "names") if key in members}
    X = arrays.get("X", arrays.get("x"))
    if X is None:
        raise error("an array X, and optionally y and names", f"{list(members)[:10]}", where=name)
    names = arrays.get("names")
    return from_frame(_matrix(X, name, None if names is None else names.ravel(), arrays.get("y")), name)


def _array(archive: zipfile.ZipFile, member: str, name: str) -> np.ndarray:
    """Read an array without ever unpickling, or trusting the size that its header claims."""
    where = f"{name}, {member}"
    about = archive.getinfo(member)
    if about.file_size > max(MOST_UNPACKED, MOST_RATIO * about.compress_size):
        got = f"{about.file_size:,} out of {about.compress_size:,}"
        remedy = "if this is right, store it without compression"
        raise error(f"at most {MOST_UNPACKED:,} bytes when unpacked", got, where=where, remedy=remedy, kind=FileError)
    with archive.open(about) as stream:
        header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[npy.read_magic(stream)]
        shape, by_column, dtype = header(stream)
        if dtype.kind not in "biufU":
            raise error("numbers, booleans or text", f"an array of {dtype}", where=where)
        size = about.file_size - stream.tell()
        if math.prod(shape) * dtype.itemsize != size:
            raise error(f"{size} bytes of data", f"shape {shape} of {dtype}", where=where)
        values = np.frombuffer(stream.read(), dtype).astype(dtype.newbyteorder("="))
    return values.reshape(shape, order="F" if by_column else "C")


def _read_parquet(path: Path) -> Table:
    require("pyarrow")
    from tinybayes.data._parquet import read_parquet

    return read_parquet(path)


_TEXT: dict[str, Callable[[Path], Table]] = {
    ".csv": partial(read_text, delimiters=",;\t|"),
    ".txt": partial(read_text, delimiters=",;\t|"),
    ".tsv": partial(read_text, delimiters="\t"),
    ".data": partial(read_text, delimiters=",;\t| ", header=False),
    ".arff": _read_arff,
}
_BINARY: dict[str, Callable[[Path], Table]] = {".parquet": _read_parquet, ".pq": _read_parquet, ".npz": _read_npz}
