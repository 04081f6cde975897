"""Files of results: reports (JSON) and stores (JSON lines, one for every finished run, to which lines are only added).

A file of more than 100 kB is kept compressed as ``NAME.gz``. Whoever reads or writes ``NAME`` need not know: reading
takes both, new lines of a store go to ``NAME``, and `pack` moves them into ``NAME.gz`` at the end of a run.
"""

import gzip
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinybayes.errors import FileError, error
from tinybayes.files import atomic_path

LARGEST = 100_000  # bytes of a file that is not compressed
Record = dict[str, Any]
Tell = Callable[[str], None]
Runs = dict[tuple[int, int, int], Record]  # stored runs, by stage, fold and number of the run


def exists(path: Path) -> bool:
    """Say whether there is a file, compressed or not."""
    return path.exists() or _packed(path).exists()


def read_text(path: Path) -> str:
    """Return the text of a file: the compressed part, then what is not compressed yet; empty without either."""
    text = ""
    if _packed(path).exists():
        try:
            text = gzip.decompress(_packed(path).read_bytes()).decode(errors="replace")
        except (OSError, EOFError, zlib.error) as problem:
            raise error("a whole gzip file", problem, where=str(_packed(path)), kind=FileError) from problem
    return text + (path.read_text(errors="replace") if path.exists() else "")


def write_text(path: Path, text: str) -> None:
    """Write a file, compressed if it is large; the other form is removed."""
    content = text.encode()
    large = len(content) > LARGEST
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(_packed(path) if large else path) as temporary:
        # Without name and time: equal texts make equal files.
        temporary.write_bytes(gzip.compress(content, mtime=0) if large else content)
    (path if large else _packed(path)).unlink(missing_ok=True)


def _packed(path: Path) -> Path:
    return path.with_name(f"{path.name}.gz")


def read_report(path: Path) -> Record | None:
    """Read a report; None if there is none."""
    return json.loads(read_text(path)) if exists(path) else None


def write_report(path: Path, report: Record) -> None:
    """Write a report."""
    write_text(path, json.dumps(report, indent=1) + "\n")


def append_line(store: Path, record: Record) -> None:
    """Add a finished run to a store."""
    store.parent.mkdir(parents=True, exist_ok=True)
    with store.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # a crash cut the last line short: it must not spoil this one
                file.write(b"\n")
        file.write((json.dumps(record) + "\n").encode())


def pack(store: Path) -> None:
    """Compress a store that has become large, new lines after old ones."""
    if store.exists():
        write_text(store, read_text(store))


def read_lines(store: Path) -> list[Record]:
    """Read the finished runs; a line cut short by a crash is left out and will be run again."""
    records = []
    for line in read_text(store).splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def read_store(store: Path) -> dict[str, Runs]:
    """Read the finished runs of every sweep."""
    stored: dict[str, Runs] = {}
    for record in read_lines(store):
        try:
            key = record["stage"], record["fold"], record["setting"]
            stored.setdefault(record["sweep"], {})[key] = record
        except (KeyError, TypeError):
            continue
    return stored
