"""The table that all readers make, and how frames become one.

Frames have NumPy columns, but pandas' nullable types where integers or booleans are missing anywhere in the
table, and categorical columns where the source declares the values. Dates of other formats become text.
"""

import csv
import struct
import sys
import tokenize
import zipfile
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import pandas as pd

from tinybayes._kernels.threads import thread_count
from tinybayes.errors import FileError, TinybayesError, error
from tinybayes.model.variable import State

if TYPE_CHECKING:
    import pyarrow as pa

SMALL = 256 << 20  # bytes: a file up to this size is one batch

BLOCK = 4 << 20  # bytes of a block of larger files; Arrow holds about 40 blocks at a time

Result = TypeVar("Result")

# The exceptions of the decoders of NumPy and the standard library on damaged or hostile bytes.
DAMAGE = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError, SyntaxError),
    *(OverflowError, MemoryError, csv.Error, struct.error, zipfile.BadZipFile, zlib.error),
    tokenize.TokenError,  # of NumPy's clean-up of old headers of arrays
)


@dataclass(frozen=True, eq=False)
class Pieces:
    """A large table as Arrow batches, in pieces that can be read at the same time."""

    schema: "pa.Schema"  # the names and types of the columns
    rows: tuple[int, ...]  # the number of rows of each piece
    # Called with the number of a piece and the names of columns; returns the batches.
    read: Callable[[int, Sequence[str]], "Iterator[pa.Table]"] = field(repr=False)
    # The smallest and the largest value of columns of integers, where the source tells.
    bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def spread(self, work: Callable[[Iterator[int]], Result]) -> list[Result]:
        """Call `work` on every core, each with an iterator over pieces that no other core has taken."""
        waiting = deque(range(len(self.rows)))

        def taken() -> Iterator[int]:
            while waiting:
                try:
                    yield waiting.popleft()
                except IndexError:  # another thread was faster
                    return

        threads = min(thread_count(), len(self.rows))
        if threads <= 1:
            return [work(taken())]
        with ThreadPoolExecutor(threads) as pool:
            running = [pool.submit(work, taken()) for _ in range(threads)]
            try:
                return [thread.result() for thread in running]
            finally:
                waiting.clear()  # after an error, or Ctrl-C, the others end with the piece they have


@dataclass(frozen=True, eq=False)
class Table:
    """A table that can be read any number of times, in batches of rows."""

    name: str  # its name in messages: the path of a file, else the kind of object
    columns: tuple[str, ...]  # the names of the columns
    # Called for each reading; returns the frames, all with these columns in this order.
    source: Callable[[], Iterable[pd.DataFrame]] = field(repr=False)
    # The values of the columns whose source declares them: nominal attributes of ARFF, categories of pandas,
    # dictionaries of Arrow. Such a column is categorical, with these categories in every batch.
    declared: Mapping[str, tuple[State, ...]] = field(default_factory=dict)
    pieces: Pieces | None = None  # a faster way to read the same rows, where the source has one

    def batches(self) -> Iterator[pd.DataFrame]:
        """Start a fresh reading."""
        return iter(self.source())


def damage() -> tuple[type[BaseException], ...]:
    """Return the exceptions of all decoders, those of Arrow included once it is in use."""
    arrow = sys.modules.get("pyarrow")
    return DAMAGE if arrow is None else (*DAMAGE, arrow.ArrowException)


@contextmanager
def reading(
    name: str, kind: type[TinybayesError] = FileError, explain: Callable[[], TinybayesError | None] = lambda: None
) -> Iterator[None]:
    """Turn the exceptions of decoders into our error; `explain` looks for the faulty line."""
    try:
        yield
    except kind:
        raise
    except TinybayesError as problem:
        raise kind(*problem.args) from problem
    except damage() as problem:
        # Bytes that cannot be decompressed have no lines to look at.
        lines = isinstance(problem, csv.Error) or type(problem).__name__ in ("ArrowInvalid", "CellsError")
        better = explain() if lines else None
        got = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
        raise better or error("a readable table", got.splitlines()[0], where=name, kind=kind) from problem


def check_names(names: Sequence[str], where: str) -> None:
    if not names:
        raise error("at least one column", "none", where=where)
    if len(set(names)) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise error("distinct column names", f"{twice[:10]} more than once", where=where)


def from_frame(frame: pd.DataFrame, name: str) -> Table:
    frame = plain(frame, name)
    if not len(frame):
        raise error("at least one row", "none", where=name)
    return Table(name, tuple(frame.columns), lambda: [frame], categories(frame))


def categories(frame: pd.DataFrame) -> dict[str, tuple[State, ...]]:
    kinds = frame.dtypes.items()
    return {str(n): tuple(k.categories.tolist()) for n, k in kinds if isinstance(k, pd.CategoricalDtype)}


def plain(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return the frame with names that are text and values that can be states."""
    names = [str(name) for name in frame.columns]
    check_names(names, where)
    if names != list(frame.columns):
        frame = frame.set_axis(names, axis=1)
    changed: dict[str, pd.Series] = {}
    for name, kind in zip(names, frame.dtypes, strict=True):
        if isinstance(kind, pd.CategoricalDtype):
            if not all(isinstance(value, State) for value in kind.categories.tolist()):
                changed[name] = frame[name].cat.rename_categories([str(value) for value in kind.categories])
        elif kind.kind in "mM" or isinstance(kind, pd.PeriodDtype):
            changed[name] = frame[name].astype(str).where(frame[name].notna(), None)
        elif kind.kind in "cSV":
            raise error("numbers, booleans, text or categories", kind, where=f"{where}, column {name!r}")
    return frame.assign(**changed) if changed else frame
