"""Writing and reading small tables, for the tests of the readers."""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from hypothesis import HealthCheck

from tinybayes.data.readers import read_frame

one_directory = [HealthCheck.function_scoped_fixture]


def write(directory: Path, name: str, content: str | bytes) -> Path:
    path = directory / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def values(column: pd.Series) -> list[Any]:
    return [None if pd.isna(value) else value for value in column.tolist()]


def read(directory: Path, content: str | bytes, name: str = "t.csv") -> dict[str, list[Any]]:
    frame = read_frame(write(directory, name, content))
    return {column: values(frame[column]) for column in frame.columns}


def arrow_table() -> pa.Table:
    return pa.table(
        {
            "i": pa.array([1, None, 3] * 40, pa.int32()),
            "u": pa.array([1, 2, 3] * 40, pa.uint8()),
            "f": [0.5, None, float("nan")] * 40,
            "b": [True, None, False] * 40,
            "s": ["x", None, "ü"] * 40,
            "c": pa.array(["q", "p", None] * 40).dictionary_encode(),
            "d": pa.array([0, 1, None] * 40, pa.date32()),
            "m": pa.array([1, 2, None] * 40, pa.decimal128(5, 2)),
            "n": pa.nulls(120),
        }
    )
