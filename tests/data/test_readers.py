"""Tables from text files; the oracle is the csv module and ten lines of Python."""

import bz2
import csv
import gzip
import io
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from table_files import one_directory, read, values, write
from tinybayes.data import _delimited, _delimited_python, _table
from tinybayes.data.readers import MISSING_TOKENS, as_table, read_frame
from tinybayes.errors import FileError


@pytest.fixture(params=[True, False], ids=["with_pyarrow", "without"], autouse=True)
def with_pyarrow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Read text with PyArrow, and as where it is not installed."""
    monkeypatch.setattr(_delimited, "installed", lambda _: request.param)
    monkeypatch.setattr(_delimited_python, "CELLS", 50)
    return bool(request.param)


def oracle(cells: list[str]) -> list[Any]:
    """Type a column by the documented rule."""
    present = [cell.strip() for cell in cells if cell.strip() not in MISSING_TOKENS]
    integer, number = re.compile(r"-?[0-9]+"), re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
    convert: Any = str
    if all(integer.fullmatch(cell) for cell in present):
        convert = int
    elif all(number.fullmatch(cell) for cell in present):
        convert = float
    elif all(cell.lower() in ("true", "false") for cell in present):
        convert = {"true": True, "false": False}.get
        return [None if c.strip() in MISSING_TOKENS else convert(c.strip().lower()) for c in cells]
    return [None if cell.strip() in MISSING_TOKENS else convert(cell.strip()) for cell in cells]


CELL = st.one_of(
    st.sampled_from([*MISSING_TOKENS, " ? ", "true", "False", "TRUE", "0", "1", "007", "-5", "0x1F", "abc"]),
    st.integers(-1000, 1000).map(str),
    st.floats(-1e6, 1e6).map(repr),
    st.text("ab1. ,;|\"\t'é日", max_size=6),
    st.sampled_from(["2020-01-31", "12:30", "2020-01-31 12:30:00", "two\nlines", 'say "x"', " padded "]),
)
# Columns of one kind are rare among random cells, so most columns draw from one kind and a few strangers.
COLUMN = st.one_of(
    st.lists(CELL, min_size=30, max_size=30),
    *(
        st.lists(st.one_of(*([kind] * 5), st.sampled_from(MISSING_TOKENS)), min_size=30, max_size=30)
        for kind in (
            st.integers(-99, 99).map(str),
            st.floats(-10, 10).map(repr) | st.integers(0, 9).map(str),
            st.sampled_from(["true", "false"]),
        )
    ),
)


@settings(suppress_health_check=one_directory)
@given(
    columns=st.lists(COLUMN, min_size=1, max_size=4),
    delimiter=st.sampled_from(",;\t|"),
    ending=st.sampled_from(["\n", "\r\n"]),
    mark=st.booleans(),
)
def test_csv_equals_the_oracle_whole_and_in_blocks(
    tmp_path: Path, columns: list[list[str]], delimiter: str, ending: str, mark: bool
) -> None:
    text = io.StringIO()
    delimiter = delimiter if len(columns) > 1 else ","  # one name alone cannot tell the delimiter
    writer = csv.writer(text, delimiter=delimiter, lineterminator=ending)
    names = [f"c{i}" for i in range(len(columns))]
    writer.writerow(names)
    writer.writerows(zip(*columns, strict=True))
    path = write(tmp_path, "t.csv", ("\ufeff" if mark else "") + text.getvalue())
    whole = read_frame(path)
    assert {name: values(whole[name]) for name in names} == dict(zip(names, map(oracle, columns), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_table, "SMALL", 40)
        patch.setattr(_table, "BLOCK", 400)
        batches = list(as_table(path).batches())
    assert {tuple(batch.dtypes) for batch in batches} == {tuple(whole.dtypes)}
    pd.testing.assert_frame_equal(pd.concat(batches, ignore_index=True), whole)


@pytest.mark.parametrize("blocks", [False, True])
def test_a_late_word_makes_the_whole_column_text(tmp_path: Path, blocks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{i},{i / 4}" for i in range(100_000)] + ["abc,1"]
    path = write(tmp_path, "t.csv", "a,b\n" + "\n".join(rows))
    if blocks:
        monkeypatch.setattr(_table, "SMALL", 40)
        monkeypatch.setattr(_table, "BLOCK", 1 << 16)
    batches = list(as_table(path).batches())
    assert (len(batches) > 10) == blocks
    assert all(isinstance(batch["a"].iloc[0], str) and batch["b"].dtype == "float64" for batch in batches)
    whole = pd.concat(batches)
    assert whole["a"].tolist() == [*map(str, range(100_000)), "abc"]
    assert whole["b"].tolist() == [*(i / 4 for i in range(100_000)), 1.0]


@pytest.mark.usefixtures("tiny_blocks")
def test_missing_values_first_do_not_decide_the_type(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "a,b,c\n" + "?,NA,\n" * 200 + "1,x,\n2,true,\n" * 3)
    batches = list(as_table(path).batches())
    assert len(batches) > 3
    assert {str(batch["a"].dtype) for batch in batches} == {"Int64"}
    assert {str(batch["c"].dtype) for batch in batches} == {"float64"}
    whole = pd.concat(batches)
    assert values(whole["a"]) == [None] * 200 + [1, 2] * 3
    assert values(whole["b"]) == [None] * 200 + ["x", "true"] * 3


@pytest.mark.usefixtures("tiny_blocks")
@pytest.mark.parametrize(
    ("first", "then", "kind"),
    [
        ("1", "2.5", "float64"),
        ("1", "true", "text"),
        ("true", "1", "text"),
        ("2.5", "false", "text"),
        ("0x1F", "0x2A", "text"),
        ("0x1F", "2.5", "text"),
        ("TRUE", "FALSE", "bool"),
        ("2020-01-31", "2020-02-01", "text"),
    ],
)
def test_blocks_of_different_kinds_are_joined(tmp_path: Path, first: str, then: str, kind: str) -> None:
    path = write(tmp_path, "t.csv", "a\n" + f"{first}\n" * 200 + f"{then}\n" * 200)
    batches = list(as_table(path).batches())
    assert len(batches) > 3
    if kind == "text":
        assert pd.concat(batches)["a"].tolist() == [first] * 200 + [then] * 200
    else:
        assert {str(batch["a"].dtype) for batch in batches} == {kind}


def test_the_documented_missing_tokens() -> None:
    assert MISSING_TOKENS == ("", "?", "NA", "N/A", "NaN", "nan", "null", "None")


@pytest.mark.usefixtures("tiny_blocks")
def test_a_large_file_can_be_read_again_and_sliced(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "a\n" + "".join(f"{i}\n" for i in range(500)))
    table = as_table(path, rows_per_batch=7)
    for _ in range(2):
        sizes = [len(batch) for batch in table.batches()]
        assert max(sizes) == 7
        assert sum(sizes) == 500
    assert read_frame(table)["a"].tolist() == list(range(500))


@pytest.mark.usefixtures("tiny_blocks")
def test_a_block_without_a_value_has_the_type_of_the_others(tmp_path: Path) -> None:
    table = as_table(write(tmp_path, "t.csv", "a,b\n" + ",x\n" * 200 + "x,?\n" * 200))
    assert len({tuple(batch.dtypes) for batch in table.batches()}) == 1


@pytest.mark.usefixtures("tiny_blocks")
def test_a_table_that_is_being_read_leaves_the_limits_of_csv_alone(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    batches = as_table(write(tmp_path, "t.csv", "a\n" + "x\n" * 200)).batches()
    next(batches)
    assert csv.field_size_limit() == before


def test_types_and_missing_values(tmp_path: Path) -> None:
    content = "i,n,b,s,d,none\n 1 , .5,true,  x y ,2020-01-31,\n?,1e3,NA, NA,2020-02-01,nan\n"
    frame = read_frame(write(tmp_path, "t.csv", content))
    assert [str(kind) for kind in frame.dtypes[:3]] == ["Int64", "float64", "boolean"]
    assert str(frame["none"].dtype) == "float64"
    assert read(tmp_path, content) == {
        "i": [1, None],
        "n": [0.5, 1000.0],
        "b": [True, None],
        "s": ["x y", None],
        "d": ["2020-01-31", "2020-02-01"],
        "none": [None, None],
    }


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a;b\n1,5;2\n", {"a": ["1,5"], "b": [2]}),
        ('"a,1";b\n1;2\n', {"a,1": [1], "b": [2]}),
        ("a\tb\n1\t2\n", {"a": [1], "b": [2]}),
        ("a|b\n1|2\n", {"a": [1], "b": [2]}),
        ("\n\r\na,b\n\n1,2\n\n", {"a": [1], "b": [2]}),
        ("\ufeff\n\na,b\n1,2\n", {"a": [1], "b": [2]}),
        ('\ufeff"a",b\n"1","?"\n', {"a": [1], "b": [None]}),
        (" a , b\n1,2", {"a": [1], "b": [2]}),
        ('"a\nb",c\n1,2\n', {"a\nb": [1], "c": [2]}),
        ('"a\rb",c\n1,2\n', {"a\rb": [1], "c": [2]}),
        ('5" disk,b\n1,2\n', {'5" disk': [1], "b": [2]}),
        ("a\n1\ninf\n", {"a": [1.0, float("inf")]}),
        ("a\n12345678901234567890\n", {"a": [12345678901234567890.0]}),
        ("a\n1\nNAN\n", {"a": [1.0, None]}),
        ("a\n1\n-nan(ind)\n", {"a": [1.0, None]}),
        ("a\n00000000000000000000000009007199254740993\n", {"a": [2**53 + 1]}),
        ("\r\r\na\nx\n", {"a": ["x"]}),
    ],
)
def test_small_print_of_csv(tmp_path: Path, content: str, expected: dict[str, list[Any]]) -> None:
    assert read(tmp_path, content) == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "at least one row"),
        ("t.csv", "\n\n", "at least one row"),
        ("t.csv", "a,b", "at least one row"),
        ("t.csv", "a,b\n", "at least one row"),
        ("t.csv", "a,b\n1,2\n3\n", r"t\.csv:3: expected 2 cells, as in the first line, got 1"),
        ("t.csv", 'a,b\n"x\ny",2\n\n3,4,5\n', r"t\.csv:5: expected 2 cells, as in the first line, got 3"),
        ("t.csv", "a,b,a,b,c\n1,2,3,4,5\n", r"distinct column names, got \['a', 'b'\] more than once"),
        ("t.csv", "a,,c\n1,2,3\n", "a name for every column, got none for column 2.*index=False"),
        ("t.csv", "1.5,2,-3e5\n1,2,3\n", r"names in the first line, got numbers.*\.data"),
        ("t.csv", b"a,b\n1,2\n3,caf\xe9\n", r"t\.csv:3: expected UTF-8, got the byte 0xe9 at position 13; .*iconv"),
        ("t.csv", b"caf\xe9,b\n1,2\n", r"t\.csv:1: expected UTF-8"),
        ("t.csv", "a,b\n1,2\n".encode("utf-16"), r"t\.csv:1: expected UTF-8"),
        ("t.csv", 'a,b\n1,x\n2,"y\n3,z\n4,w\n', r"t\.csv:3: expected a closing quote"),
        ("t.csv", "a,b\r1,2\r", r"t\.csv:1: expected closed quotes and lines that end in a line feed"),
        ("t.csv.gz", b"a,b\n1,2\n", "expected a readable table"),
        ("t.csv.gz", gzip.compress(random.Random(0).randbytes(999), mtime=0)[:-99], "expected a readable table"),
        ("t.data", "1  2\n3 4\n", r"t\.data:1: expected single blanks"),
        ("t.data", "1 2\n3 4 5\n", r"t\.data:2: expected 2 cells"),
        ("t.parquet", b"PAR1 nonsense PAR1", "expected a readable table"),
        ("t.npz", b"PK nonsense", "expected a readable table"),
        ("t.xls", "", r"a file ending in \.csv, .*\.parquet.*, got 't\.xls'"),
        ("table", "", "a file ending in"),
        ("t.parquet.gz", "", "a file ending in"),
    ],
)
def test_bad_files_say_what_is_wrong_and_where(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(FileError, match=message) as caught:
        as_table(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("tiny_blocks")
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"1,2,3\n", ":203: expected 2 cells"),
        (b"1,\xff\n", ":203: expected UTF-8"),
        (b'1,"x\n', ":203: expected a closing quote"),
    ],
)
def test_a_bad_line_of_a_large_file_is_found_before_the_first_batch(tmp_path: Path, bad: bytes, message: str) -> None:
    path = write(tmp_path, "t.csv", b"a,b\n" + b"1,2\n" * 201 + bad + b"1,2\n" * 3)
    with pytest.raises(FileError, match=message):
        as_table(path)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="expected a file, got a directory"):
        as_table(tmp_path)
    with pytest.raises(FileError, match="expected a file, got none of that name"):
        as_table(tmp_path / "none.csv")
    with pytest.raises(FileError):
        as_table("nul\0byte.csv")


def test_a_file_without_permission_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "t.csv")

    monkeypatch.setattr("builtins.open", refuse)  # the superuser may read everything
    with pytest.raises(FileError, match=r"t\.csv: expected a readable table, got Permission denied"):
        as_table(write(tmp_path, "t.csv", "a\n1\n"))


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".GZ", gzip.compress),
        (".bz2", bz2.compress),
        (".zst", lambda raw: pa.compress(raw, codec="zstd", asbytes=True)),
    ],
)
def test_compressed_text(tmp_path: Path, suffix: str, pack: Any) -> None:
    frame = read_frame(write(tmp_path, f"t.tsv{suffix}", pack(b"a,1\tb\n1\tx\n")))
    assert frame.to_dict("list") == {"a,1": [1], "b": ["x"]}


def test_data_files_have_no_header(tmp_path: Path) -> None:
    assert read(tmp_path, "0,1,1\n1,0,0\n", "t.data") == {"x0": [0, 1], "x1": [1, 0], "x2": [1, 0]}
    assert read(tmp_path, "0 1\n1 7\n", "t.data") == {"x0": [0, 1], "x1": [1, 7]}
    assert read(tmp_path, "5.1,Iris-setosa\n4.9,?\n", "t.data") == {"x0": [5.1, 4.9], "x1": ["Iris-setosa", None]}


def test_the_density_sets(data_dir: Path) -> None:
    table = as_table(data_dir / "density" / "nltcs.train.data.gz")
    frame = read_frame(table)
    assert table.columns == tuple(f"x{i}" for i in range(16))
    with gzip.open(data_dir / "density" / "nltcs.train.data.gz", "rt") as lines:
        expected = np.loadtxt(lines, delimiter=",", dtype=np.int64)
    np.testing.assert_array_equal(frame.to_numpy(), expected)


def test_the_raw_classification_sets(data_dir: Path) -> None:
    frame = read_frame(data_dir / "classification" / "raw" / "letter.npz")
    with np.load(data_dir / "classification" / "raw" / "letter.npz") as archive:
        np.testing.assert_array_equal(frame.drop(columns="y").to_numpy(), archive["x"])
        np.testing.assert_array_equal(frame["y"].to_numpy(), archive["y"])
