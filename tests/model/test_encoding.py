"""Encodings: float32 arithmetic, integers, and the grids that are found for numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinybayes.errors import TinybayesError
from tinybayes.model import MISSING, Categories, Cuts, Grid, Integers, Variable
from tinybayes.model.encoding import rounding_up_to, single, uniform_grid

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(FLOATS, min_size=1, max_size=6, unique=True), st.lists(st.floats(allow_nan=True), max_size=20))
def test_doubles_are_rounded_before_they_are_compared(points, numbers):
    points = sorted({float(p) for p in points})
    cuts = Cuts(points)
    near = [np.nextafter(p, s * np.inf) for p in points for s in (-1, 1)]
    with np.errstate(over="ignore"):
        middles = [(p + float(np.nextafter(np.float32(p), np.float32(-np.inf)))) / 2 for p in points]
        values = np.array([*numbers, *points, *near, *middles])
        rounded = values.astype(np.float32)
    expected = [MISSING if math.isnan(v) else sum(np.float32(p) <= v for p in points) for v in rounded]
    np.testing.assert_array_equal(cuts.codes(values), expected)


@given(FLOATS)
def test_the_smallest_double_that_is_rounded_up(cut):
    [least] = rounding_up_to(np.array([cut]))
    assert single(least) >= cut
    assert single(np.nextafter(least, -np.inf)) < cut


@given(FLOATS, FLOATS, st.integers(2, 300), st.booleans(), st.lists(FLOATS, max_size=20))
def test_grids_cover_their_range_and_are_exact(low, high, most, integer, others):
    if integer:
        low, high = float(np.clip(np.rint(low), -(2**28), 2**28)), float(np.clip(np.rint(high), -(2**28), 2**28))
        others = [float(np.clip(np.rint(v), -(2**30), 2**30)) for v in others]
    low, high = min(low, high), max(low, high)
    grid = uniform_grid(low, high, most, integer=integer)
    assert 1 <= grid.count <= most
    assert math.frexp(grid.step)[0] == 0.5
    values = np.array([low, high, *others])
    expected = [min(max(math.floor(v / grid.step) - grid.first, 0), grid.count - 1) for v in values]
    np.testing.assert_array_equal(grid.codes(values), expected)
    np.testing.assert_array_equal(Cuts(grid.cuts, integer).codes(values), expected)
    assert grid.codes(np.array([low, high])).tolist() == [0, grid.count - 1]


def test_a_finer_grid_would_be_too_fine():
    assert uniform_grid(0, 15, 256, integer=True) == Grid(0, 1, 16, integer=True)
    assert uniform_grid(0.0, 1.0, 100) == Grid(0, 1 / 64, 65)
    assert uniform_grid(1e9, 1e9, 8) == Grid(1e9, 64, 1)  # the floats around it are 64 apart
    assert uniform_grid(-3e38, 3e38, 4).count in (3, 4)


def test_grids_as_far_out_as_float32_goes():
    """Python once rounded cut points of a grid that were no float32, and a device did not."""
    assert Grid(-(2**30), 1, 4, integer=True).cuts.tolist() == [1 - 2**30, 2 - 2**30, 3 - 2**30]
    for grid in (Grid(2.0**24 - 3, 1, 4), Grid(-(2.0**24), 1, 4), Grid(0, 2.0**127, 2), Grid(-(2.0**128), 2.0**127, 4)):
        assert (single(grid.cuts) == grid.cuts).all()
        assert grid.codes(np.array([grid.start, *grid.cuts])).tolist() == list(range(grid.count))


def test_what_a_grid_is_made_of():
    grid = Grid(np.float32(-1), np.int64(2) / 4, np.int64(5))
    assert (grid.start, grid.step, grid.count, grid.first, grid.shift) == (-1.0, 0.5, 5, -2, -1)
    assert all(type(part) is kind for part, kind in ((grid.start, float), (grid.step, float), (grid.count, int)))
    assert Grid(0, 8, 2).shift == 3


def test_the_largest_floats_have_thresholds_too():
    largest = float(np.finfo(np.float32).max)
    half = 2.0**103  # of the distance to the next one, if there were one
    [least] = rounding_up_to(np.array([-largest]))
    assert least == np.nextafter(-(largest + half), 0)
    [least] = rounding_up_to(np.array([largest]))
    assert least == np.nextafter(largest - half, np.inf)  # the middle is rounded to the even one, which is below


def test_integers_beyond_single_precision():
    cuts = Cuts([2**24 + 1, 2**30 + 1], integer=True)
    assert cuts.codes(np.array([2**24, 2**24 + 1, 2**30, 2**30 + 1])).tolist() == [0, 1, 1, 2]
    assert Cuts([2.5, 7], integer=True).points == (3.0, 7.0)


def test_states_choose_their_encoding():
    assert Variable("a", (2, 3, 4)).encoding == Integers(2, 4)
    assert Variable("a", (2, 4)).encoding == Categories()
    assert Variable("a", (False, True)).encoding == Categories()
    assert Variable("a", (2**31, 2**31 + 1)).encoding == Categories()
    assert Variable.from_encoding("a", Cuts([])).states == ("any",)
    assert Variable.from_encoding("a", Grid(0, 0.5, 3)).states == ("< 0.5", "0.5 to 1", ">= 1")
    assert Variable.from_encoding("a", Integers(-1, 0)).states == (-1, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cuts([1, 1]), "increasing"),
        (lambda: Cuts([1, 1 + 1e-9]), "single precision"),
        (lambda: Cuts([1e39]), "within float32"),
        (lambda: Cuts([0.2, 0.7], integer=True), "as integers"),
        (lambda: Cuts([2.0**40], integer=True), "32-bit integers"),
        (lambda: Grid(0, 3, 2), "power of two"),
        (lambda: Grid(0.25, 0.5, 2), "multiple of the step"),
        (lambda: Grid(0, 1, 0), "intervals"),
        (lambda: Grid(0, 0.5, 2, integer=True), "at least 1"),
        (lambda: Grid(-(2.0**24) - 1, 1, 4), "cut points that are float32"),
        (lambda: Grid(2.0**24, 1, 2), "cut points that are float32"),
        (lambda: Grid(0, 2.0**127, 3), "cut points that are float32"),
        (lambda: Integers(3, 2), "low <= high"),
        (lambda: Variable("a", (0, 1), Cuts([1, 2])), "3 states"),
        (lambda: Variable("a", (0, 2), Integers(0, 1)), "the states 0 to 1"),
        (lambda: Variable("a", (0, 1), [1]), "Cuts, Grid, Integers or Categories"),
    ],
)
def test_what_no_encoding_can_be(make, message):
    with pytest.raises(TinybayesError, match=message):
        make()


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 2**24 - 1, True), (-(2**24) + 1, 5, True), (2**24 - 3, 2**24, False), (-(2**24), 5 - 2**24, False)],
)
def test_integers_are_single_where_float32_tells_neighbours_apart(low, high, expected):
    assert Integers(low, high).is_single is expected
