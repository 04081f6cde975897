"""Tables from Parquet and Arrow, from objects in memory, and from NumPy archives."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn import datasets

from table_files import arrow_table, values
from tinybayes.data._arrow_tables import _without_views
from tinybayes.data.readers import as_table, read_frame
from tinybayes.errors import FileError, TinybayesError

# Parquet and Arrow -------------------------------------------------------------------------------------------


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
    position = arrow_table().schema.get_field_index("c")
    with pq.ParquetWriter(tmp_path / "t.pq", arrow_table().schema) as writer:
        for i, part in enumerate(parts):
            coded = pa.array(part).dictionary_encode()
            writer.write_table(arrow_table().slice(30 * i, 30).set_column(position, "c", coded))
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


def test_views_of_texts_are_copied_where_pyarrow_casts_none():
    """As PyArrow 16 does not, and it makes no pandas of unsigned codes either; frames of polars have both."""
    views = pa.chunked_array([pa.array(["a", None, "b" * 30], pa.string_view()), pa.array(["a"], pa.string_view())])
    codes = pa.array([1, None, 0], pa.uint32())
    groups = pa.chunked_array([pa.DictionaryArray.from_arrays(codes, pa.array(["u", "v"], pa.string_view()))])
    assert _without_views(views).type == pa.string()
    assert _without_views(views).to_pylist() == ["a", None, "b" * 30, "a"]
    assert _without_views(groups).type == pa.dictionary(pa.int32(), pa.string())
    assert _without_views(groups).to_pylist() == ["v", None, "u"]
    numbers = pa.chunked_array([[1, 2]])
    assert _without_views(numbers) is numbers
