"""One grid for columns whose ranges are alike: no code is coarser than on the grid of the column."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinybayes.data.discretize import common_grid
from tinybayes.model import Grid
from tinybayes.model.encoding import uniform_grid
from tinybayes.search.prepare import make_views

RANGES = st.lists(st.tuples(st.floats(-1, 0.25), st.floats(0.5, 1)), min_size=1, max_size=5)


@given(RANGES, st.integers(2, 128))
def test_it_holds_all_ranges_in_their_finest_step(ranges, bins):
    grids = [uniform_grid(low, high, bins) for low, high in ranges]
    common = common_grid(grids)
    ends = [grid.start + grid.step * grid.count for grid in grids]
    start, end, step = min(grid.start for grid in grids), max(ends), min(grid.step for grid in grids)
    wide = (end - start) / step
    alike = all(2 * (high - grid.start) >= end - start for grid, high in zip(grids, ends, strict=True))
    assert (common is not None) == (alike and wide <= 255)
    if common is not None:
        assert (common.start, common.step, common.count) == (start, step, wide)


def test_cut_points_of_the_columns_are_cut_points_of_it():
    grids = [Grid(-0.5, 0.25, 6), Grid(-1.0, 0.5, 4), Grid(-0.75, 0.125, 10)]
    common = common_grid(grids)
    assert common == Grid(-1.0, 0.125, 16)
    for grid in grids:
        assert set(grid.cuts) <= set(common.cuts)


@pytest.mark.parametrize(
    "grids",
    [
        [],
        [Grid(0, 1, 10), Grid(0, 1, 4)],  # less than half
        [Grid(0, 1, 10), Grid(100, 1, 10)],  # elsewhere
        [Grid(0, 1, 200), Grid(100, 1, 200)],  # too many intervals
        [Grid(0, 1, 10), Grid(0, 1, 10, integer=True)],
        [Grid(2**20 - 1, 1 / 16, 16), Grid(2**20, 1 / 8, 8)],  # cut points that no float32 tells apart
    ],
)
def test_ranges_that_differ_keep_their_grids(grids):
    assert common_grid(grids) is None


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_a_search_reads_columns_of_like_ranges_on_one_grid(factor):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((300, 4)) * [1.0, 0.9, 0.8, factor], columns=list("abcd"))
    frame["label"] = (frame.a > frame.b).astype(int)
    views = make_views(frame, "label")
    grids = {variable.encoding for variable in views.by_name["fine"].seen.variables}
    assert len(grids) == (1 if factor == 1.0 else 4)
    if factor == 1.0:
        (grid,) = grids
        assert grid.step <= 2.0**-7
        assert len({v.encoding for v in views.by_name["coarse"].seen.variables}) == 4
