"""Tables from files and objects; the oracle of the text formats is the csv module and ten lines of Python."""

import bz2
import csv
import gzip
import io
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import datasets

from tinybayes.data import _table
from tinybayes.data.readers import MISSING_TOKENS, as_table, read_frame
from tinybayes.errors import FileError, TinybayesError

one_directory = [HealthCheck.function_scoped_fixture]


@pytest.fixture
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read every file as if it were too large for memory, in blocks of a few rows."""
    monkeypatch.setattr(_table, "SMALL", 40)
    monkeypatch.setattr(_table, "BLOCK", 200)


def write(directory: Path, name: str, content: str | bytes) -> Path:
    path = directory / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def values(column: pd.Series) -> list[Any]:
    return [None if pd.isna(value) else value for value in column.tolist()]


def read(directory: Path, content: str | bytes, name: str = "t.csv") -> dict[str, list[Any]]:
    frame = read_frame(write(directory, name, content))
    return {column: values(frame[column]) for column in frame.columns}


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
        ("t.csv.gz", gzip.compress(os.urandom(999))[:-99], "expected a readable table"),
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

    monkeypatch.setattr(pa, "input_stream", refuse)  # the superuser may read everything
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


# Parquet and Arrow -------------------------------------------------------------------------------------------


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


def check_arrow(frame: pd.DataFrame) -> None:
    assert {name: values(frame[name][:3]) for name in frame.columns} == {
        "i": [1, None, 3],
        "u": [1, 2, 3],
        "f": [0.5, None, None],
        "b": [True, None, False],
        "s": ["x", None, "ü"],
        "c": ["q", "p", None],
        "d": ["1970-01-01", "1970-01-02", None],
        "m": [1.0, 2.0, None],
        "n": [None, None, None],
    }
    assert len(frame) == 120
    assert str(frame["i"].dtype) == "Int32"
    assert str(frame["b"].dtype) == "boolean"
    assert list(frame["c"].cat.categories) == ["q", "p"]


def test_arrow_and_parquet_types(tmp_path: Path) -> None:
    table = arrow_table()
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        check_arrow(read_frame(source))
        assert as_table(source).declared == {"c": ("q", "p")}
        assert str(read_frame(source)["u"].dtype) == "uint8"


@pytest.mark.usefixtures("tiny_blocks")
def test_a_large_parquet_file_has_the_same_types_in_every_batch(tmp_path: Path) -> None:
    parts = [["q"] * 30, ["p", None] * 15, ["r", "q"] * 15, ["p"] * 30]  # each with a dictionary of its own
    place = arrow_table().schema.get_field_index("c")
    with pq.ParquetWriter(tmp_path / "t.pq", arrow_table().schema) as writer:
        for i, part in enumerate(parts):
            coded = pa.array(part).dictionary_encode()
            writer.write_table(arrow_table().slice(30 * i, 30).set_column(place, "c", coded))
    read = as_table(tmp_path / "t.pq")
    batches = list(read.batches())
    assert len(batches) > 3
    assert len({tuple(map(str, batch.dtypes)) for batch in batches}) == 1
    assert {tuple(batch["c"].cat.categories) for batch in batches} == {("q", "p", "r")}
    assert read.declared == {"c": ("q", "p", "r")}
    whole = read_frame(read)
    assert values(whole["c"]) == [value for part in parts for value in part]
    check_arrow(whole.assign(c=pd.Categorical(["q", "p", None] * 40, ["q", "p"])))


def test_pandas_stores_its_index_and_categories_in_parquet(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y", None], ["z", "y", "x"])}, pd.Index([3, 4, 5], name="id"))
    frame.to_parquet(tmp_path / "t.parquet")
    table = as_table(tmp_path / "t.parquet")
    assert table.columns == ("a",)
    assert table.declared == {"a": ("z", "y", "x")}


def test_nested_and_repeated_columns_are_refused(tmp_path: Path) -> None:
    nested = pa.table({"a": [[1, 2], [3]]})
    with pytest.raises(TinybayesError, match=r"column 'a': expected numbers.*, got list"):
        as_table(nested)
    pq.write_table(nested, tmp_path / "t.parquet")
    with pytest.raises(FileError, match=r"column 'a': expected numbers.*, got list"):
        as_table(tmp_path / "t.parquet")
    with pytest.raises(TinybayesError, match=r"distinct column names, got \['a'\]"):
        as_table(pa.table([[1], [2]], names=["a", "a"]))


# Objects -----------------------------------------------------------------------------------------------------


def test_frames() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["u", "v"], ["v", "u"])}, index=[7, 8])
    table = as_table(frame)
    assert (table.columns, table.declared) == (("a", "b"), {"b": ("v", "u")})
    assert next(table.batches()) is frame
    assert as_table(table) is table
    assert [len(batch) for batch in as_table(frame, rows_per_batch=1).batches()] == [1, 1]


def test_odd_columns_of_frames() -> None:
    when = pd.Series(pd.to_datetime(["2020-01-31", None]))
    frame = pd.DataFrame({0: when, "cut": pd.cut(pd.Series([1, 9]), [0, 5, 10]), "p": when.dt.to_period("M")})
    before = frame.copy()
    table = as_table(frame)
    assert table.columns == ("0", "cut", "p")
    assert table.declared == {"cut": ("(0, 5]", "(5, 10]")}
    assert {name: values(read_frame(table)[name]) for name in table.columns} == {
        "0": ["2020-01-31", None],
        "cut": ["(0, 5]", "(5, 10]"],
        "p": ["2020-01", None],
    }
    pd.testing.assert_frame_equal(frame, before)


def test_arrays() -> None:
    table = as_table(np.array([[1, 2], [3, 4]], dtype=np.uint8))
    assert table.columns == ("x0", "x1")
    assert read_frame(table).dtypes.tolist() == [np.uint8, np.uint8]
    mixed = read_frame(np.array([[1, "a"], [2, None]], dtype=object))
    assert (mixed["x0"].dtype, values(mixed["x1"])) == (np.int64, ["a", None])


@pytest.mark.parametrize("as_frame", [False, True])
def test_bunches(as_frame: bool) -> None:
    bunch = datasets.load_iris(as_frame=as_frame)
    frame = read_frame(bunch)
    assert list(frame.columns) == [*bunch.feature_names, "target"]
    np.testing.assert_array_equal(frame.drop(columns="target").to_numpy(), np.asarray(bunch.data))
    np.testing.assert_array_equal(frame["target"], np.asarray(bunch.target))


def test_functions_serve_data_larger_than_memory() -> None:
    empty = pd.DataFrame({"a": pd.Series([], dtype="int64")})
    table = as_table(lambda: (f for f in (empty, pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]}))))
    assert table.columns == ("a",)
    assert [batch["a"].tolist() for _ in range(2) for batch in table.batches()] == [[1], [2], [1], [2]]
    other = as_table(lambda: (pd.DataFrame({name: [1]}) for name in "ab"))
    with pytest.raises(TinybayesError, match="as in the first"):
        list(other.batches())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, "a path, a pandas frame"),
        ([[1, 2]], "a path, a pandas frame"),
        (np.zeros(3), "two axes, got 1"),
        (np.zeros((2, 2), complex), "column 'x0': expected numbers"),
        (np.zeros((0, 2)), "at least one row"),
        (np.zeros((2, 0)), "at least one column"),
        (pd.DataFrame({"a": []}), "at least one row"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "distinct column names"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "distinct column names"),
        ({"data": np.zeros((2, 1)), "target": [1]}, "one target for each of 2 rows"),
        ({"data": np.zeros((2, 1)), "feature_names": ["a", "b"]}, "1 names"),
        ({"data": [[1]]}, "a dense array"),
        (lambda: iter([]), "at least one row"),
        (lambda: iter([3]), "pandas frames, got int"),
    ],
)
def test_bad_objects(source: object, message: str) -> None:
    with pytest.raises(TinybayesError, match=message):
        as_table(source)


def test_bad_batch_size() -> None:
    with pytest.raises(TinybayesError, match="rows_per_batch: expected at least 1, got 0"):
        as_table(np.zeros((2, 2)), rows_per_batch=0)


# NumPy archives ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["X", "x"])
def test_npz(tmp_path: Path, key: str) -> None:
    X = np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))
    np.savez(tmp_path / "t.npz", **{key: X, "y": np.array(["u", "v"]), "names": np.array(["a", "b", "c"])})
    frame = read_frame(tmp_path / "t.npz")
    assert frame.to_dict("list") == {"a": [0, 3], "b": [1, 4], "c": [2, 5], "y": ["u", "v"]}
    assert frame["a"].dtype == np.dtype("=i4")


def test_npz_refuses_what_it_cannot_trust(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, X=np.array([[object()]]))
    with pytest.raises(FileError, match="expected numbers, booleans or text, got an array of object"):
        as_table(path)
    np.savez(path, x_train=np.zeros((2, 2)))
    with pytest.raises(FileError, match=r"an array X.*, got \['x_train'\]"):
        as_table(path)
    raw = io.BytesIO()
    np.save(raw, np.zeros((2, 2)))
    with zipfile.ZipFile(path, "w") as archive:  # claims terabytes
        archive.writestr("X.npy", raw.getvalue().replace(b"(2, 2), }          ", b"(99999999999, 2), }"))
    with pytest.raises(FileError, match="expected 32 bytes of data"):
        as_table(path)


# Whatever the bytes ------------------------------------------------------------------------------------------


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
    for place, action, piece in edits:
        at = place % (len(content) + 1)
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
