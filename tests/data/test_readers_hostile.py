"""Readers of tables, whatever the bytes."""

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from table_files import arrow_table, one_directory, write
from tinybayes.data import _table
from tinybayes.data.readers import read_frame
from tinybayes.errors import FileError


def samples() -> dict[str, bytes]:
    """One valid file of each format."""
    text = b'a,b,c\n1,"x, y",0.5\n?,z,1e3\n3,"two\nlines",\n'
    parquet, archive = io.BytesIO(), io.BytesIO()
    pq.write_table(arrow_table(), parquet)
    np.savez(archive, X=np.arange(6).reshape(2, 3), y=np.array(["u", "v"]))
    relation = b"@relation r\n@attribute a numeric\n@attribute 'b c' {x,'y z'}\n@data\n1,x\n?,'y z'\n{1 x}\n"
    return {
        "t.csv": text,
        "t.csv.gz": gzip.compress(text, mtime=0),
        "t.tsv": text.replace(b",", b"\t"),
        "t.data": b"0,1,1\n1,0,0\n",
        "t.parquet": parquet.getvalue(),
        "t.npz": archive.getvalue(),
        "t.arff": relation,
    }


SAMPLES = samples()


@settings(suppress_health_check=one_directory, max_examples=200)
@given(
    name=st.sampled_from(sorted(SAMPLES)),
    edits=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(["set", "cut", "insert"]), st.binary(max_size=4))),
    size=st.one_of(st.none(), st.integers(0, 10**6)),
    noise=st.binary(max_size=60),
    only_noise=st.booleans(),
    small=st.booleans(),
)
def test_only_our_errors_escape_whatever_the_bytes(
    tmp_path: Path, name: str, edits: list[Any], size: int | None, noise: bytes, only_noise: bool, small: bool
) -> None:
    content = bytearray(b"" if only_noise else SAMPLES[name])
    for offset, action, piece in edits:
        at = offset % (len(content) + 1)
        content[at : at + (0 if action == "insert" else max(1, len(piece)))] = b"" if action == "cut" else piece
    if only_noise or size is not None:
        content = content[: len(content) if size is None else size % (len(content) + 1)] + noise
    path = write(tmp_path, name, bytes(content))
    with pytest.MonkeyPatch.context() as patch:
        if not small:
            patch.setattr(_table, "SMALL", 40)
            patch.setattr(_table, "BLOCK", 300)
        message = ""
        try:
            frame = read_frame(path)
            assert len(frame) > 0
            assert len(set(frame.columns)) == len(frame.columns) > 0
        except FileError as problem:
            message = str(problem)
    assert message == "" or str(path) in message
