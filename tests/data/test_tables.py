import gzip

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from tinybayes import Discretization, evaluate, learn_classifier, open_dataset, read_dataset
from tinybayes.data import _table
from tinybayes.data.readers import as_table
from tinybayes.data.writers import write_frames
from tinybayes.errors import FileError, TinybayesError


def frame(rows=500, seed=0):
    generator = np.random.default_rng(seed)
    y = generator.choice(["no", "yes"], rows)
    shift = np.where(y == "yes", 1.0, 0.0)
    return pd.DataFrame(
        {
            "number": np.round(shift + generator.normal(size=rows), 3),
            "count": generator.poisson(2 + 2 * shift),
            "text": generator.choice(["red", "green", "blue"], rows),
            "label": y,
            "weight": generator.integers(0, 3, rows),
        }
    )


def test_in_memory_and_in_batches_are_the_same(tmp_path):
    table = frame()
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    whole = read_dataset(table, target="label", weight="weight")
    for name in ("t.csv", "t.parquet", "t.csv.gz"):
        batched = open_dataset(as_table(tmp_path / name, rows_per_batch=70), target="label", weight="weight")
        assert batched.variables == whole.variables
        assert batched.target == whole.target
        assert len(list(batched)) == 8
        joined = batched.in_memory()
        np.testing.assert_array_equal(joined.X, whole.X)
        np.testing.assert_array_equal(joined.y, whole.y)
        np.testing.assert_array_equal(joined.weight, whole.weight)
        assert learn_classifier(batched) == learn_classifier(whole)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_states_that_begin_after_the_first_batch(tmp_path, monkeypatch, suffix):
    """A column of text or booleans with no value in the first batch keeps its states."""
    table = frame(2000)
    table["late"] = table["label"].where(table.index >= 700)
    table["flag"] = table["late"].map({"yes": True, "no": False}).astype("boolean")
    whole = open_dataset(table, target="label")
    assert whole.variables[-2].states == ("no", "yes")
    path = tmp_path / f"t.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    batched = open_dataset(as_table(path, rows_per_batch=100), target="label")
    assert batched.variables == whole.variables
    monkeypatch.setattr(_table, "SMALL", 1 << 12)
    monkeypatch.setattr(_table, "BLOCK", 1 << 12)
    assert open_dataset(path, target="label").variables == whole.variables


def test_large_tables_are_discretised_on_a_sample():
    table = frame(3000)
    exact = open_dataset(table, target="label", features=["number"])
    parts = as_table(table, rows_per_batch=100)
    sampled = open_dataset(parts, target="label", features=["number"], discretization=Discretization(sample_rows=400))
    assert exact.variables[0].encoding.points
    assert sampled.variables[0].encoding.points
    assert sampled.variables[0].encoding.points != exact.variables[0].encoding.points
    again = open_dataset(parts, target="label", features=["number"], discretization=Discretization(sample_rows=400))
    assert again.variables == sampled.variables


def test_without_a_class_numbers_are_states():
    data = read_dataset(pd.DataFrame({"a": [0, 1, 1], "b": [2.5, 2.5, 0.5]}))
    assert data.target is None
    assert [v.states for v in data.variables] == [(0, 1), (0.5, 2.5)]


def test_states_found_in_different_batches_are_put_together():
    pieces = [
        pd.DataFrame({"a": ["b"], "y": [1]}),
        pd.DataFrame({"a": [None], "y": [0]}),
        pd.DataFrame({"a": ["a"], "y": [0]}),
    ]
    data = open_dataset(lambda: iter(pieces), target="y")
    assert data.variables[0].states == ("a", "b")
    assert data.target.states == (0, 1)
    assert [batch.X[0, 0] for batch in data] == [1, -1, 0]


def test_batches_of_different_types_are_refused():
    pieces = [pd.DataFrame({"a": [1], "y": [1]}), pd.DataFrame({"a": ["x"], "y": [0]})]
    with pytest.raises(TinybayesError, match="column 'a': expected one type in all batches"):
        open_dataset(lambda: iter(pieces), target="y")


def test_rows_without_a_class_are_kept_but_teach_nothing():
    table = frame(200)
    with_gaps = pd.concat([table, table.assign(label=None, number=99.0)], ignore_index=True)
    assert read_dataset(with_gaps, target="label").y.tolist()[200:] == [-1] * 200
    assert learn_classifier(read_dataset(with_gaps, target="label")) == learn_classifier(
        read_dataset(table, target="label")
    )


def test_scikit_learn_bunches():
    data = read_dataset(load_iris(), target="target")
    assert len(data.variables) == 4
    assert data.target.cardinality == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "nope"}, "expected a column 'nope', got the columns number, count"),
        ({"target": "label", "weight": "text"}, "weight column 'text': expected finite numbers"),
        ({"target": "label", "features": []}, "at least one feature column"),
        (
            {"target": "label", "discretization": Discretization(discretizer=None, max_states=50)},
            "column 'number': expected at most 50",
        ),
        (
            {"target": "number", "discretization": Discretization(max_states=100)},
            "column 'number': .* choose a column of classes",
        ),
        ({"target": "label", "discretization": Discretization(discretizer="best")}, "discretizer: expected 'mdlp'"),
        ({"discretization": Discretization(discretizer="mdlp")}, "expected a class to discretise by"),
        ({"target": "number"}, "target 'number': expected classes, got measurements such as"),
        ({"like": read_dataset(frame(), target="label"), "target": "label"}, "either like, or target"),
    ],
)
def test_bad_requests_get_clear_errors(options, message):
    with pytest.raises(TinybayesError, match=message):
        read_dataset(frame(), **options)


def test_one_class_and_all_missing_class():
    for values, shown in (("a", r"\['a'\]"), (None, r"\[\]")):
        with pytest.raises(TinybayesError, match=f"target 'y': expected at least 2 classes, got {shown}"):
            read_dataset(pd.DataFrame({"x": [1, 2], "y": [values, values]}), target="y")


def test_writing_is_complete_or_not_at_all(tmp_path):
    pieces = [pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [3]})]
    for name in ("o.csv", "o.csv.gz", "o.tsv", "o.parquet"):
        assert write_frames(pieces, tmp_path / name) == 3
        text = "\t" if name.endswith("tsv") else ","
        back = pd.read_parquet(tmp_path / name) if name.endswith("parquet") else pd.read_csv(tmp_path / name, sep=text)
        assert back["a"].tolist() == [1, 2, 3]

    def broken():
        yield pieces[0]
        raise KeyboardInterrupt

    before = (tmp_path / "o.csv").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write_frames(broken(), tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 4
    with pytest.raises(FileError, match=r"expected a .csv"):
        write_frames(pieces, tmp_path / "o.xls")


@pytest.mark.parametrize("options", [{"seed": -1}, {"sample_rows": 0}, {"max_states": None}, {"max_states": 2.5}])
def test_rules_that_make_no_sense(options):
    with pytest.raises(TinybayesError, match=f"{next(iter(options))}: expected (an integer|at least|0 to)"):
        Discretization(**options)


@pytest.mark.parametrize(
    "columns",
    [
        {"features": ["number", "number"]},
        {"features": ["number", "label"]},
        {"features": ["number", "weight"], "weight": "weight"},
        {"weight": "label"},
    ],
)
def test_a_column_has_one_role(columns):
    with pytest.raises(TinybayesError, match="each column once"):
        open_dataset(frame(), target="label", **columns)


def test_numbers_that_cannot_be_states():
    """Infinity is refused whether numbers are cut or taken as states, and so are integers that doubles mix up."""
    for discretization in (Discretization(), Discretization(discretizer=None)):
        with pytest.raises(TinybayesError, match="column 'a', row 1: expected finite numbers"):
            read_dataset(
                pd.DataFrame({"a": [1.5, np.inf], "t": ["p", "q"], "y": [0, 1]}),
                target="y",
                discretization=discretization,
            )
        with pytest.raises(TinybayesError, match="column 'y', row 0: expected finite numbers"):
            read_dataset(pd.DataFrame({"a": ["p", "q"], "y": [-np.inf, 1]}), target="y", discretization=discretization)
        with pytest.raises(TinybayesError, match="column 'y': expected numbers that differ in double precision"):
            read_dataset(
                pd.DataFrame({"a": ["p", "q"], "y": [2**60, 2**60 + 1]}), target="y", discretization=discretization
            )
    table = pd.DataFrame({"a": [2**60, 2**60 + 1], "y": [0, 1]})
    with pytest.raises(TinybayesError, match="column 'a': expected numbers that differ"):
        read_dataset(table, target="y", discretization=Discretization(discretizer=None))
    assert read_dataset(table.astype({"a": str}), target="y").variables[0].cardinality == 2


def test_columns_of_objects():
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, 200)
    numbers = pd.Series([int(v) if v > 1 else float(v) for v in y + generator.normal(size=200)], dtype=object)
    mixed = pd.Series([1, True, "a", 2.5] * 50, dtype=object)
    data = read_dataset(pd.DataFrame({"numbers": numbers, "mixed": mixed, "y": y}), target="y")
    assert data.variables[0].encoding.points
    assert data.variables[1].states == ("1", "2.5", "True", "a")
    np.testing.assert_array_equal(np.bincount(data.X[:, 1]), [50, 50, 50, 50])
    with pytest.raises(TinybayesError, match="column 'a': expected numbers, text, categories or booleans"):
        read_dataset(pd.DataFrame({"a": [[1], [2]], "y": [0, 1]}), target="y")


def test_a_table_is_read_with_the_variables_of_a_model():
    train, test = frame(), frame(seed=1).assign(text="never seen")
    net = learn_classifier(read_dataset(train, target="label"))
    data = read_dataset(test, like=net)
    assert data.variables == net.variables
    assert (data.X[:, 2] == -1).all()
    assert evaluate(net, data).rows == 500
    with pytest.raises(TinybayesError, match="like=net"):
        evaluate(net, read_dataset(test, target="label"))
    assert read_dataset(test.drop(columns="label"), like=net).y is None
    weights = np.arange(1.0, 501.0)
    np.testing.assert_array_equal(read_dataset(test.assign(w=weights), like=net, weight="w").weight, weights)
    with pytest.raises(TinybayesError, match="a column 'w', got a table without it"):
        read_dataset(test, like=net, weight="w")
