"""Checks of tables: what is refused, what is warned of, what passes, and the scale of row weights."""

import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinybayes import TinybayesError, learn_classifier, open_dataset, read_dataset
from tinybayes.data import as_table
from tinybayes.data.checks import check_classes, check_features, repetitions, weight_scale, weight_sums
from tinybayes.errors import TinybayesWarning

ROWS = 300
RANDOM = np.random.default_rng(0)
LETTERS = [chr(ord("a") + i) for i in range(26)]


def table(**columns):
    """A table of three classes with a number that tells them apart, and other columns."""
    generator = np.random.default_rng(1)
    y = generator.integers(0, 3, ROWS)
    return pd.DataFrame({"x": y + generator.normal(size=ROWS), "y": y} | columns)


@pytest.mark.parametrize(
    ("classes", "rows", "remedy"),
    [
        (range(290), 300, "cut it into classes"),
        (range(51), 500, "written as text"),
        (range(1000), 5000, "written as text"),
        ([i / 2 for i in range(200)], 300, "cut it into classes"),
        ([f"name {i}" for i in range(300)], 300, "choose another column"),
        ([f"name {i}" for i in range(19)], 20, "choose another column"),
    ],
)
def test_targets_that_are_no_classes_are_refused(classes, rows, remedy):
    with pytest.raises(TinybayesError, match=rf"target 'y': expected classes, got .* in {rows:,} rows.*{remedy}"):
        check_classes(list(classes), rows, "target 'y'")


@pytest.mark.parametrize(
    ("classes", "rows"),
    [
        (LETTERS, 260),
        (range(26), 52),
        (range(50), 100),
        (range(100), 1600),
        (range(1000), 10_000),
        ([f"leaf {i}" for i in range(100)], 400),
        ([False, True], 20),
    ],
)
def test_classes_with_rows_pass_in_silence(classes, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_classes(list(classes), rows, "y")


def test_declared_categories_are_classes():
    with pytest.warns(TinybayesWarning, match="only 100 rows of 90 classes"):
        check_classes(list(range(90)), 100, "y", declared=True)
    frame = table(y=pd.Categorical(np.arange(ROWS) % 60))
    assert read_dataset(frame, target="y").target.cardinality == 60
    with pytest.raises(TinybayesError, match="60 distinct values in 300 rows"):
        read_dataset(frame.astype({"y": int}), target="y")


@pytest.mark.parametrize(
    "values",
    [
        np.arange(ROWS),
        -np.arange(ROWS) * 7,
        np.random.default_rng(2).permutation(ROWS) + 1000,
        np.random.default_rng(2).permutation(2 * ROWS)[:ROWS],
        1_600_000_000 + np.random.default_rng(2).integers(0, 10**6, ROWS),
        1_600_000_000_000.5 + np.random.default_rng(2).integers(0, 10**9, ROWS),
        pd.array([*range(100), *[None] * 100, *range(100, 200)], dtype="Int64"),
        np.linspace(0, 1, ROWS),
        [f"u{i}" for i in range(ROWS)],
        pd.date_range("2024-01-01", periods=ROWS, freq="h").astype(str),
        pd.Categorical([f"u{i}" for i in range(ROWS)]),
    ],
)
def test_identifiers_and_times_are_named(values):
    with pytest.warns(TinybayesWarning, match="identifiers or times: 'id'; ") as told:
        data = read_dataset(table(id=values), target="y")
    assert len(told) == 1
    assert told[0].filename == __file__
    assert [variable.name for variable in data.variables] == ["x", "id"]  # never dropped in silence


@pytest.mark.parametrize(
    "values",
    [
        RANDOM.normal(size=ROWS),
        RANDOM.integers(0, 2**16, ROWS),
        RANDOM.permutation(10**5)[:ROWS],  # all distinct, but of a wide range
        RANDOM.integers(0, 256, ROWS),
        np.sort(RANDOM.integers(0, 50, ROWS)),
        np.repeat(1_600_000_000 + np.arange(3), 100),  # three days
        np.full(ROWS, 7),
        np.full(ROWS, np.nan),
        RANDOM.integers(0, 2, ROWS).astype(bool),
        RANDOM.choice(LETTERS, ROWS),
        [None] * ROWS,
        pd.Series([1.5, 2.5] * 150, dtype=object),
    ],
)
def test_measurements_pass_in_silence(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_features(pd.DataFrame({"a": values}))


def test_many_suspicious_columns_are_counted():
    with pytest.warns(TinybayesWarning, match=r"'0', '1', '2', '3', '4' and 2 more"):
        check_features(pd.DataFrame({i: np.arange(30) for i in range(7)}))


def test_large_tables_are_checked_by_their_first_batch_and_all_their_rows():
    frame = table(id=np.arange(ROWS), many=RANDOM.permutation(ROWS) % 60)
    with pytest.warns(TinybayesWarning, match="'id'; "):
        open_dataset(as_table(frame, rows_per_batch=50), target="y")
    with pytest.raises(TinybayesError, match="60 distinct values in 300 rows"), pytest.warns(TinybayesWarning):
        open_dataset(as_table(frame, rows_per_batch=50), target="many")
    tenfold = pd.concat([frame.drop(columns="id")] * 10)
    assert open_dataset(as_table(tenfold, rows_per_batch=50), target="many").target.cardinality == 60


@pytest.mark.parametrize("separator", [";", ","])
def test_decimal_commas_are_refused(tmp_path, separator):
    comma = [f"{value:.3f}".replace(".", ",") for value in RANDOM.normal(size=ROWS - 1)] + ["3"]
    table(x=comma).to_csv(tmp_path / "t.csv", sep=separator, index=False)
    with pytest.raises(TinybayesError, match=r"column 'x': expected numbers with a decimal point.*decimal=','"):
        read_dataset(tmp_path / "t.csv", target="y")
    with pytest.raises(TinybayesError, match="target 'x': expected numbers with a decimal point"):
        read_dataset(table(x=comma, z=1.5), target="x", features=["z"])
    point = pd.read_csv(tmp_path / "t.csv", sep=separator, decimal=",")
    assert read_dataset(point, target="y").variables[0].has_intervals


@pytest.mark.parametrize("texts", [["1,2", "1,2,3", "2", "4,5"], ["1", "2", "3,5"], ["a,b", "c"], ["1,5 V", "2,5 V"]])
def test_lists_and_words_with_commas_are_text(texts):
    check_features(pd.DataFrame({"a": texts * 10}))


@pytest.mark.parametrize(("rows", "told"), [(6, "only 6 rows of 3 classes"), (19, "only 19 rows"), (20, None)])
def test_few_rows_are_told(rows, told):
    frame = pd.DataFrame({"x": RANDOM.integers(0, 2, rows), "y": np.arange(rows) % 3})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_dataset(frame, target="y")
    assert [told in str(one.message) for one in caught] == ([] if told is None else [True])


def test_rows_of_a_table_of_counts_are_its_counts():
    frame = pd.DataFrame({"x": [0, 0, 1, 1], "y": [0, 1, 0, 1], "n": [100, 20, 30, 90]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_dataset(frame, target="y", weight="n")


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20), st.integers(1, 1000))
def test_weights_that_are_no_counts_are_scaled_to_rows(counts, divisor):
    weight = np.array([count / divisor for count in counts])
    if all(Fraction(count, divisor).denominator == 1 for count in counts):
        expected = [Fraction(count, divisor) for count in counts]
    else:
        positive = sum(count > 0 for count in counts)
        expected = [Fraction(count * positive, sum(counts)) for count in counts]
    np.testing.assert_allclose(repetitions(weight), [float(value) for value in expected], rtol=1e-12)
    halves = weight_sums(weight[: len(weight) // 2]) + weight_sums(weight[len(weight) // 2 :])
    assert weight_scale(halves) == pytest.approx(weight_scale(weight_sums(weight)), rel=1e-12)


def test_strange_weights_stay_finite():
    for weight in ([0.0, 0.0], [1e-320, 1e-320], [0.5, 1e308, 1e308], [5e-324]):
        assert np.isfinite(repetitions(np.array(weight))).all()


@pytest.mark.parametrize("rows_per_batch", [None, 70])
def test_weights_that_sum_to_one_mean_the_same_as_none(rows_per_batch):
    frame = table(w=1 / ROWS)
    plain = read_dataset(frame.drop(columns="w"), target="y")
    weighted = open_dataset(as_table(frame, rows_per_batch=rows_per_batch), target="y", weight="w")
    assert weighted.variables == plain.variables
    for structure in ("naive", "chow-liu"):
        one, other = (learn_classifier(data, structure=structure) for data in (plain, weighted))
        for expected, cpd in zip(one.cpds, other.cpds, strict=True):
            np.testing.assert_allclose(cpd.table, expected.table, rtol=1e-6)


def test_integer_weights_are_repetitions_also_when_all_are_two():
    frame = table()
    twice = read_dataset(pd.concat([frame, frame]), target="y")
    weighted = read_dataset(frame.assign(w=2.0), target="y", weight="w")
    assert weighted.variables == twice.variables
    assert learn_classifier(weighted, structure="naive") == learn_classifier(twice, structure="naive")
