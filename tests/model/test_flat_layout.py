"""The flat layout of tables, against NumPy's own indexing, and the check of codes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinybayes.errors import TinybayesError
from tinybayes.model.layout import cells, check_codes, starts, strides


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 3))
def test_strides_are_those_of_numpy(shape, unit):
    table = np.empty((*shape, unit), dtype=np.int8)
    assert strides(shape, unit) == list(table.strides[:-1])


def test_cells_and_starts():
    cards = [2, 3, 4]
    X = np.array([[a, b, c] for a in range(2) for b in range(3) for c in range(4)])
    np.testing.assert_array_equal(cells(X, [2, 0], cards), np.ravel_multi_index((X[:, 2], X[:, 0]), (4, 2)))
    assert starts([2, 0, 3]).tolist() == [0, 2, 2, 5]
    assert starts([]).tolist() == [0]


@pytest.mark.parametrize(
    ("X", "complete", "message"),
    [
        ([[0, 0], [-2, 0]], False, "X, column 0: expected codes from -1 to 1, got -2 to 0"),
        ([[0, 0], [0, 3]], False, "X, column 1: expected codes from -1 to 2, got 0 to 3"),
        ([[0, -1]], True, "X, column 1: expected codes from 0 to 2, got -1 to -1"),
        ([[0, 0, 0]], False, "integer codes with 2 columns"),
        ([0, 0], False, r"X\[None\]"),
        ([[0.0, 0.0]], False, "float64"),
    ],
)
def test_codes_that_index_no_table(X, complete, message):
    with pytest.raises(TinybayesError, match=message):
        check_codes(np.array(X), [2, 3], complete=complete)


def test_codes_that_do():
    X = np.array([[1, -1], [-1, 2]])
    assert check_codes(X, [2, 3]) is X
    assert check_codes(np.empty((0, 2), int), [2, 3], complete=True).shape == (0, 2)
