import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinybayes.data.encode import encode_column, encode_frame, encode_matrix
from tinybayes.errors import TinybayesError
from tinybayes.model import Cuts, Integers, Variable

finite = st.floats(-1e6, 1e6, allow_nan=False)


@given(st.lists(finite | st.just(float("nan")), min_size=1), st.sets(st.floats(-1e6, 1e6, width=32), max_size=6))
def test_cut_points_are_counted(values, cuts):
    edges = sorted(cuts)
    variable = Variable.from_encoding("v", Cuts(edges))
    wanted = [-1 if v != v else sum(edge <= np.float32(v) for edge in edges) for v in values]
    assert encode_column(pd.Series(values), variable).tolist() == wanted
    assert encode_matrix(np.array(values)[:, None], [variable])[:, 0].tolist() == wanted
    assert encode_matrix(np.array(values, dtype=object)[:, None], [variable])[:, 0].tolist() == wanted


@given(
    st.lists(st.integers(-300, 300), min_size=1),
    st.lists(st.integers(-300, 300), min_size=1, max_size=9, unique=True),
    st.sampled_from([np.int16, np.int32, np.int64, np.float32, np.float64, object]),
)
def test_states_are_matched_by_value(values, states, dtype):
    variable = Variable("v", tuple(states))  # in any order, not only sorted
    wanted = [states.index(v) if v in states else -1 for v in values]
    assert encode_matrix(np.array(values, dtype=dtype)[:, None], [variable])[:, 0].tolist() == wanted
    assert encode_column(pd.Series(values, dtype="Int64"), variable).tolist() == wanted
    assert encode_column(pd.Series([str(v) for v in values]), variable).tolist() == wanted


def test_wide_integers_do_not_build_a_wide_table():
    variables = [Variable("v", (0, 10**9)), Variable.from_encoding("w", Cuts([5.0]))]
    X = np.array([[0, 0], [10**9, 10**9], [5, 5]])
    assert encode_matrix(X, variables).tolist() == [[0, 0], [1, 1], [-1, 1]]


@pytest.mark.parametrize(
    ("states", "values", "wanted"),
    [
        (("a", "b"), ["b", "a", None, "c", float("nan")], [1, 0, -1, -1, -1]),
        (("1", "2.5", "x"), [1, 1.0, 2.5, "x", "1", 3], [0, 0, 1, 2, 0, -1]),
        ((False, True), [True, False, 1, 0, "true", "FALSE", 1.0, "maybe", None], [1, 0, 1, 0, 1, 0, 1, -1, -1]),
        ((1, 2), ["1", "2.0", "two", True], [0, 1, -1, 0]),
        (("a", 1), ["a", 1, "1", 2], [0, 1, 1, -1]),
        ((0.5, 1.5), [0.5, "1.5", 1], [0, 1, -1]),
    ],
)
def test_values_of_other_types(states, values, wanted):
    column = pd.Series(values, dtype=object)
    assert encode_column(column, Variable("v", states)).tolist() == wanted


def test_categories_booleans_and_nullable_types():
    column = pd.Series(["x", None, "y"], dtype="category")
    assert encode_column(column, Variable("v", ("y", "x"))).tolist() == [1, -1, 0]
    assert encode_column(pd.Series([1, 2], dtype="category"), Variable.from_encoding("v", Cuts([1.5]))).tolist() == [
        0,
        1,
    ]
    nullable = pd.Series([True, None, False], dtype="boolean")
    assert encode_column(nullable, Variable("v", (False, True))).tolist() == [1, -1, 0]
    assert encode_column(pd.Series([True, False]), Variable("v", (False, True))).tolist() == [1, 0]
    assert encode_column(pd.Series([1, None], dtype="Int8"), Variable.from_encoding("v", Cuts([0.5]))).tolist() == [
        1,
        -1,
    ]


@pytest.mark.parametrize(
    "variable",
    [
        Variable("v", ("1", "2", "x")),
        Variable("v", (2, 1)),
        Variable("v", (True, False)),
        Variable.from_encoding("v", Cuts([1.5])),
    ],
)
@pytest.mark.parametrize("values", [["1", None, "x", "2"], [1, 2, 3, 1], [1.0, np.nan, 2.5, 2.0], [True, False, True]])
def test_categories_are_encoded_as_their_values_are(variable, values):
    objects = pd.Series(values, dtype=object)
    column = objects.astype("category").cat.add_categories([np.inf])  # declared, but in no row
    np.testing.assert_array_equal(encode_column(column, variable), encode_column(objects, variable))


def test_frames_are_encoded_by_name():
    variables = [Variable("b", ("x", "y")), Variable.from_encoding("a", Cuts([0.5]))]
    frame = pd.DataFrame({"a": [0, 1], "unused": [0, 0], "b": ["y", "z"]})
    assert encode_frame(frame, variables).tolist() == [[1, 0], [-1, 1]]
    with pytest.raises(TinybayesError, match="expected the columns 'b', 'a', got a table without 'b'"):
        encode_frame(frame[["a"]], variables)
    with pytest.raises(TinybayesError, match="column 'a': expected finite numbers, got infinity"):
        encode_frame(frame.assign(a=[0.0, np.inf]), variables)
    with pytest.raises(TinybayesError, match="X: expected finite numbers, got infinity"):
        encode_matrix(np.array([[np.inf]]), variables[1:])
    with pytest.raises(TinybayesError, match="a matrix with 2 columns"):
        encode_matrix(np.zeros((2, 3)), variables)


def test_many_states_get_wider_codes():
    variable = Variable("v", tuple(range(1000)))
    codes = encode_matrix(np.arange(1000)[:, None], [variable])
    assert codes.dtype == np.int16
    assert codes[:, 0].tolist() == list(range(1000))


@pytest.mark.parametrize("high", [9, 2**24 - 1])
def test_integers_take_doubles_as_a_device_takes_the_float(high):
    variables = (Variable.from_encoding("a", Integers(high - 9, high)),)
    near = high - 4 + np.array([0, 1e-7, -1e-12, 0.5, -0.25, 1e-3])
    values = np.concatenate([near, [np.nan, 1e300, -1e300, high + 0.4, high + 1]])
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32).astype(float)
    whole = (rounded == np.rint(rounded)) & (rounded >= high - 9) & (rounded <= high)
    expected = np.where(whole, rounded - (high - 9), -1)
    np.testing.assert_array_equal(encode_matrix(values[:, None], variables)[:, 0], expected)
    np.testing.assert_array_equal(encode_column(pd.Series(values.astype(object)), variables[0]), expected)


@pytest.mark.parametrize("states", [(1, "1"), ("x", 2, "2"), (2**53, 2**53 + 1), (True, "True")])
def test_states_that_no_table_tells_apart_are_refused(states):
    with pytest.raises(TinybayesError, match=r"variable 'v': expected states that differ in a table, got .* twice"):
        encode_column(pd.Series(["1", "2"]), Variable("v", states))
