"""Edges of reading, cutting and encoding: the last values that are taken, and what messages say."""

import warnings

import numpy as np
import pandas as pd
import pytest

import tinybayes.data
from tinybayes.data import Discretization, EncodedTable, _sources, _table, open_dataset, readers
from tinybayes.data._cells import kind_of
from tinybayes.data.checks import as_frame, check_features
from tinybayes.data.discretize import cut_points, learn_encodings, shorten
from tinybayes.data.encode import encode_column
from tinybayes.data.readers import as_table, read_frame
from tinybayes.data.tables import read_dataset
from tinybayes.data.variables import Summary, is_numeric
from tinybayes.data.writers import write_frames
from tinybayes.errors import FileError, TinybayesError
from tinybayes.model import Variable


def test_names_are_listed_before_they_are_loaded():
    assert set(tinybayes.data.__all__) <= set(dir(tinybayes.data))


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        (str(2**63 - 1), "integer"),
        (str(2**63), "number"),
        (str(-(2**63)), "integer"),
        (str(-(2**63) - 1), "number"),
    ],
)
def test_integers_are_those_of_64_bits(cell, kind):
    assert kind_of([cell]) == kind


def test_the_line_of_a_damaged_header_is_named(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('a,"b\n1,2\n')
    with pytest.raises(FileError, match=r"table\.csv:1: expected a closing quote"):
        read_frame(path)


def test_a_column_without_rows_holds_integers():
    (empty,) = learn_encodings([np.empty(0)], "uniform")
    assert empty.integer
    both = learn_encodings([np.array([0.5, 1.5]), np.empty(0)], "uniform")
    assert not any(encoding.integer for encoding in both)


@pytest.mark.parametrize(
    ("column", "cuts", "wanted"),
    [
        ([1, 2], [1.4], [1.5]),  # 1 has fewer bits, but is one of the values
        ([0, 0.5, 1], [0.3, 0.7], [0.25, 0.75]),
        ([40, 100], [90], [96]),  # 64 is too far away: more than a quarter of the gap
    ],
)
def test_cut_points_move_to_the_nearest_short_number(column, cuts, wanted):
    found = shorten(np.array(column, dtype=float), np.array(cuts))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("bins", [2, 4, 5])
def test_quantiles_of_weighted_rows_are_those_of_repeated_ones(bins):
    values, times = np.arange(12.0) ** 2, np.tile([1, 2, 1, 4], 3)
    (weighted,) = cut_points([values], "quantile", weight=times.astype(float), n_bins=bins)
    (repeated,) = cut_points([np.repeat(values, times)], "quantile", n_bins=bins)
    np.testing.assert_allclose(weighted, repeated)
    assert bins == 5 or len(set(weighted) - set(values)) > 0  # means of two values are among them


def test_only_variables_of_booleans_alone_take_other_cases():
    variable = Variable("v", (False, "maybe"))
    codes = encode_column(pd.Series(["False", "maybe", "MAYBE", "0"]), variable)
    assert codes.tolist() == [0, 1, -1, -1]
    assert encode_column(pd.Series(["FALSE", "1"]), Variable("v", (False, True))).tolist() == [0, 1]


def test_rows_are_not_taken_for_columns(monkeypatch):
    monkeypatch.setattr(readers, "MOST_COLUMNS", 3)
    assert as_table(np.zeros((5, 3))).columns == ("x0", "x1", "x2")
    with pytest.raises(TinybayesError, match="at most 3 columns, got 4"):
        as_table(np.zeros((2, 4)))


def test_columns_of_batches_that_change_are_shown_in_part():
    long = [f"a column with a long name {i}" for i in range(50)]

    def batches():
        yield pd.DataFrame({"a": [1]})
        yield pd.DataFrame({name: [1] for name in long})

    with pytest.raises(TinybayesError, match="columns and categories as in the first") as caught:
        read_frame(batches)
    assert len(str(caught.value)) < 300


def test_a_column_that_is_named_twice_is_told():
    frame = pd.DataFrame({"a": [1, 2], "b": [1, 2], "c": [0, 1]})
    with pytest.raises(TinybayesError, match=r"\['a'\] again"):
        read_dataset(frame, target="c", features=["a", "b", "a"])


def test_ten_values_of_an_attribute_are_shown(tmp_path):
    path = tmp_path / "table.arff"
    values = ",".join(f"v{i}" for i in range(12))
    path.write_text(f"@relation r\n@attribute a {{{values},v3}}\n@data\nv1\n")
    with pytest.raises(FileError, match="all distinct") as caught:
        read_frame(path)
    assert "'v9'" in str(caught.value)
    assert "'v10'" not in str(caught.value)


def test_no_frames_make_no_parquet_file(tmp_path):
    pytest.importorskip("pyarrow")
    frames = [pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [3]})]
    assert write_frames(frames, tmp_path / "table.parquet") == 3
    assert read_frame(tmp_path / "table.parquet")["a"].tolist() == [1, 2, 3]
    assert write_frames([], tmp_path / "empty.parquet") == 0


def test_one_separator_of_a_file_without_a_checksum_is_enough(monkeypatch):
    monkeypatch.setitem(_sources.UNSEEN, "dna", (3, {"train": 2}))
    origin = _sources.Origin("here", "")
    right = b"0,1,0\n1,1,0\n"
    assert _sources._plausible("dna", "train", right, origin).tolist() == [[0, 1, 0], [1, 1, 0]]
    for place in (1, 3, 7, 9):
        with pytest.raises(FileError, match="other bytes"):
            _sources._plausible("dna", "train", right[:place] + b";" + right[place + 1 :], origin)


def summary_of(frame, keep=5):
    found = Summary(Discretization(discretizer="uniform", n_bins=3, keep_values=keep), {})
    found.add(frame, None, None)
    return found


def test_summaries_of_parts_make_the_variables_of_the_whole():
    """Numbers that are few here and many there, whole here and broken there, or missing in one of the parts."""
    first = pd.DataFrame(
        {"few": [0, 1], "many": [0, 1], "broken": [1, 2], "late": [np.nan, np.nan], "text": ["a", "b"]}
    )
    second = pd.DataFrame(
        {"few": [2, 1] * 4, "many": range(8), "broken": [0.5, 2] * 4, "late": [3, 4] * 4, "text": ["c", "a"] * 4}
    )
    whole = pd.concat([first, second], ignore_index=True)
    wanted = summary_of(whole).features()
    assert [v.has_intervals for v in wanted] == [False, True, True, False, False]
    for parts in ((first, second), (second, first)):
        merged = summary_of(parts[0])
        merged.merge(summary_of(parts[1]))
        assert merged.features() == wanted


def test_few_rows_of_many_batches_are_kept_and_all_of_one():
    rules = Discretization(discretizer="uniform", sample_rows=50)
    one = Summary(rules, {})
    one.add(pd.DataFrame({"a": np.arange(400.0)}), None, None)
    assert len(one.priority) == 400  # a table in one batch is used as it is
    many, counts = Summary(rules, {}), []
    for start in range(0, 240, 40):
        many.add(pd.DataFrame({"a": np.arange(start, start + 40.0)}), None, None)
        counts.append(sum(len(part[0]) for part in many.pieces))
        assert len(many.priority) == counts[-1]
    assert counts == [40, 80, 50, 90, 50, 90]  # above 100 they are thinned out


def test_rows_of_weight_zero_teach_no_states():
    frame = pd.DataFrame({"a": ["x", "y", "z", "x"], "w": [1.0, 2.0, 0.0, 1.0], "c": ["p", "q", "r", "q"]})
    data = open_dataset(frame, target="c", weight="w")
    assert data.variables[0].states == ("x", "y")
    assert data.target.states == ("p", "q")


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_discretizers_of_scikit_learn_take_weights_where_they_can(strategy):
    sklearn = pytest.importorskip("sklearn.preprocessing")
    values, times = np.arange(12.0) ** 2, np.tile([1, 2, 1, 4], 3)
    method = {"quantile_method": "averaged_inverted_cdf"} if strategy == "quantile" else {}
    discretizer = sklearn.KBinsDiscretizer(4, strategy=strategy, subsample=None, **method)
    (weighted,) = cut_points([values], discretizer, weight=times.astype(float))
    (repeated,) = cut_points([np.repeat(values, times)], discretizer)
    np.testing.assert_allclose(weighted, repeated)


@pytest.mark.parametrize("kind", ["datetime64[ns]", "timedelta64[ns]"])
def test_dates_are_no_numbers(kind):
    with pytest.raises(
        TinybayesError, match="column 'when': expected numbers, text, categories or booleans, got dates"
    ):
        is_numeric(pd.Series(np.array([0, 10**9], dtype=kind), name="when"))


def test_large_tables_without_a_class_are_read_in_pieces(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": ["x", "y"] * 1000, "b": np.tile(np.arange(4), 500)})
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=500)
    monkeypatch.setattr(_table, "SMALL", 1 << 8)
    opened = open_dataset(tmp_path / "t.parquet")
    assert opened.table.pieces is not None
    whole = open_dataset(frame).in_memory()
    np.testing.assert_array_equal(opened.in_memory().X, whole.X)
    # The column of the class may be absent, one of a feature may not.
    named = EncodedTable(opened.table, opened.variables, Variable("c", (0, 1)))
    assert named.in_memory().y is None
    more = EncodedTable(opened.table, (*opened.variables, Variable("d", (0, 1))))
    with pytest.raises(TinybayesError, match="'d'"):
        next(iter(more))


def test_a_matrix_has_names_for_its_columns():
    assert as_frame(np.zeros((2, 3))).columns.tolist() == ["x0", "x1", "x2"]


def test_what_looks_like_a_time_or_a_number_of_rows():
    rng = np.random.default_rng(0)
    rows = rng.permutation(np.arange(300.0))
    broken = rows.copy()
    broken[250:] += 0.5  # after those that are looked at first
    seconds = 1.6e9 + np.round(rng.random(300) * 1e6)
    seconds[1] = seconds[0]  # the first rows hold a number twice, as measurements do
    seconds[2] = np.nan
    for column, odd in ((rows, True), (broken, False), (seconds, True), (rng.integers(0, 9, 300), False)):
        matrix = np.column_stack([column, rng.integers(0, 3, 300)]).astype(float)
        if odd:
            with pytest.warns(UserWarning, match="identifiers or times: 'x0'"):
                check_features(matrix)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                check_features(matrix)


def test_ten_cells_are_shown_where_blanks_stand_beside_each_other(tmp_path):
    path = tmp_path / "t.data"
    path.write_text("  ".join(f"v{i}" for i in range(12)) + "\n")
    with pytest.raises(FileError, match="single blanks between the cells") as caught:
        read_frame(path)
    assert str(caught.value).count("''") == 5


def test_bunches_of_frames_take_their_target_along():
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    assert read_frame({"data": frame, "target": [0, 1]}).columns.tolist() == ["a", "b", "target"]
    assert read_frame({"data": frame}).columns.tolist() == ["a", "b"]


def test_as_many_states_as_the_limit_are_taken():
    frame = pd.DataFrame({"a": ["x", "y", "z"] * 10, "c": ["p", "q", "p"] * 10})
    rules = Discretization(max_states=3)
    assert len(open_dataset(frame, target="c", discretization=rules).variables[0].states) == 3
    with pytest.raises(TinybayesError, match="at most 2 distinct values"):
        open_dataset(frame, target="c", discretization=Discretization(max_states=2))
