"""Large Parquet files, read as Arrow row group by row group: the same variables and codes as in memory."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tinybayes.data import Discretization, as_table, open_dataset, read_dataset
from tinybayes.data._arrow import ArrowEncoder
from tinybayes.data.encode import encode_column
from tinybayes.errors import TinybayesError
from tinybayes.infer import evaluate
from tinybayes.learn import count_tables, learn_classifier
from tinybayes.model import Cuts, Variable


def table(rows: int = 900, seed: int = 0) -> pa.Table:
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 3, rows)

    def gaps(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=generator.random(rows) < 0.1)

    return pa.table(
        {
            "byte": pa.array((generator.integers(-3, 4, rows) + y).astype(np.int8)),
            "gaps": gaps(generator.integers(0, 6, rows).astype(np.int16)),
            "wide": pa.array(generator.choice([-(10**12), 7, 10**12], rows)),
            "single": gaps((y + generator.normal(size=rows)).astype(np.float32)),
            "double": pa.array(np.where(generator.random(rows) < 0.1, np.nan, y * generator.random(rows))),
            "text": gaps(np.array(["a", "b", "ccc"])[(y + (generator.random(rows) < 0.3)) % 3]),
            "coded": gaps(np.array(["u", "v"])[generator.integers(0, 2, rows)]).dictionary_encode(),
            "flag": gaps(generator.random(rows) < 0.5),
            "empty": pa.nulls(rows, pa.float64()),
            "weight": pa.array(generator.integers(0, 3, rows)),
            "y": gaps(np.array([5, 2, 9], dtype=np.int32)[y]),
        }
    )


@pytest.fixture(params=[100, 2000], ids=["many groups", "one group"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    pq.write_table(table(), tmp_path / "t.parquet", row_group_size=request.param)
    return tmp_path / "t.parquet"


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("cuts", [{}, {"keep_values": 20}, {"discretizer": "quantile"}])
def test_batches_equal_the_table_in_memory(
    path: Path, cuts: dict, weight: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    discretization, features = Discretization(**cuts), [n for n in table().column_names if n not in ("weight", "y")]
    options = {"target": "y", "features": features, "weight": weight, "discretization": discretization}
    whole = read_dataset(path, **options)
    monkeypatch.setattr("tinybayes.data._table.SMALL", 40)
    monkeypatch.setattr("tinybayes.data._table.BLOCK", 1000)
    parts = open_dataset(path, **options)
    assert parts.table.pieces is not None
    assert parts.variables == whole.variables
    assert parts.target == whole.target
    joined = parts.in_memory()
    np.testing.assert_array_equal(joined.X, whole.X)
    np.testing.assert_array_equal(joined.y, whole.y)
    if weight:
        np.testing.assert_array_equal(joined.weight, whole.weight)
    families = [(0, 9), (1, 2, 9), (9,), (3, 4, 5, 9), (6, 7)]
    for a, b in zip(count_tables(parts, families), count_tables(whole, families), strict=True):
        np.testing.assert_array_equal(a, b)
    one, other = (learn_classifier(data, structure="chow-liu") for data in (parts, whole))
    for a, b in zip(one.cpds, other.cpds, strict=True):
        assert a.parents == b.parents
        np.testing.assert_array_equal(a.table, b.table)
    assert evaluate(one, parts).error == evaluate(one, whole).error


@pytest.mark.usefixtures("tiny_blocks")
def test_without_cuts_all_values_are_states(path: Path) -> None:
    features = ["byte", "gaps", "wide", "text", "coded", "flag", "empty"]
    parts = open_dataset(path, target="y", features=features, discretization=Discretization(discretizer=None))
    whole = open_dataset(
        table().to_pandas(), target="y", features=features, discretization=Discretization(discretizer=None)
    )
    assert [set(v.states) for v in parts.variables] == [set(v.states) for v in whole.variables]
    assert parts.variables[:4] == whole.variables[:4]


@pytest.mark.usefixtures("tiny_blocks")
def test_a_column_is_read_on_until_all_numbers_in_its_bounds_were_seen(tmp_path: Path) -> None:
    """Codes that are complete in the first row group need no other; a late value is still found."""
    early, late = np.tile([0, 1, 2], 60), np.tile([0, 1], 90)
    late[170] = 4
    pq.write_table(pa.table({"a": early, "b": late, "y": early % 2}), tmp_path / "t.parquet", row_group_size=30)
    source = as_table(tmp_path / "t.parquet")
    read: list[tuple[int, tuple[str, ...]]] = []
    plain = source.pieces.read

    def watched(group, names):
        read.append((group, tuple(names)))
        return plain(group, names)

    object.__setattr__(source.pieces, "read", watched)
    data = open_dataset(source, target="y", discretization=Discretization(discretizer=None))
    assert [v.states for v in data.nodes] == [(0, 1, 2), (0, 1, 4), (0, 1)]
    assert len({group for group, names in read if "b" in names}) == 6
    assert len([group for group, names in read if "a" in names]) <= 2  # one for each thread


@pytest.mark.usefixtures("tiny_blocks")
def test_cut_points_of_a_large_file_come_from_a_uniform_sample(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    numbers = np.sort(generator.random(6000))
    pq.write_table(pa.table({"x": numbers, "y": np.arange(6000) % 2}), tmp_path / "t.parquet", row_group_size=500)
    discretization = Discretization(discretizer="quantile", n_bins=4, sample_rows=1500)
    data = open_dataset(tmp_path / "t.parquet", target="y", discretization=discretization)
    np.testing.assert_allclose(data.variables[0].encoding.points, [0.25, 0.5, 0.75], atol=0.05)
    assert data.variables == open_dataset(tmp_path / "t.parquet", target="y", discretization=discretization).variables

    def batches():  # the same for frames that come one by one
        for start in range(0, 6000, 700):
            yield pd.DataFrame(
                {"x": numbers[start : start + 700], "y": np.arange(len(numbers[start : start + 700])) % 2}
            )

    edges = open_dataset(batches, target="y", discretization=discretization).variables[0].encoding.points
    np.testing.assert_allclose(edges, [0.25, 0.5, 0.75], atol=0.05)


@pytest.mark.usefixtures("tiny_blocks")
def test_infinity_is_refused_wherever_it_stands(tmp_path: Path) -> None:
    numbers = np.linspace(0, 1, 300)
    pq.write_table(pa.table({"x": numbers, "y": np.arange(300) % 2}), tmp_path / "good.parquet", row_group_size=50)
    data = open_dataset(tmp_path / "good.parquet", target="y", discretization=Discretization(discretizer="quantile"))
    numbers[220] = -np.inf
    pq.write_table(pa.table({"x": numbers, "y": np.arange(300) % 2}), tmp_path / "good.parquet", row_group_size=50)
    with pytest.raises(TinybayesError, match=r"column 'x'.*infinity"):
        count_tables(data, [(0, 1)])
    with pytest.raises(TinybayesError, match=r"column 'x'.*infinity"):
        open_dataset(tmp_path / "good.parquet", target="y", discretization=Discretization(discretizer="quantile"))


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint32", "int64", "float32", "float64", "bool", "text"])
@pytest.mark.parametrize(
    "variable",
    [
        Variable.from_encoding("x", Cuts([-0.1, 0.1, 3, 1e30])),
        Variable("x", (0, 1, 2, 3)),
        Variable("x", (3, -1, 0, 200, 2.5)),
        Variable("x", ("0", "1", "b")),
        Variable("x", (False, True)),
    ],
    ids=lambda v: str(v.states),
)
def test_arrow_columns_have_the_codes_of_encode_column(kind: str, variable: Variable) -> None:
    generator = np.random.default_rng(3)
    values = generator.integers(0 if kind.startswith("u") else -2, 6, 200)
    column = values.astype(str) if kind == "text" else values.astype(kind)
    if kind.startswith("float"):
        column = np.where(generator.random(200) < 0.5, column, np.array(0.1, kind)).astype(
            kind
        )  # 0.1 in float32 is above 0.1
    for mask in (None, generator.random(200) < 0.2, np.ones(200, dtype=bool)):
        array = pa.chunked_array([pa.array(column, mask=mask)])
        codes = ArrowEncoder([variable], None, None)(pa.table({"x": array})).X[0]
        np.testing.assert_array_equal(codes, encode_column(array.to_pandas().rename("x"), variable))
