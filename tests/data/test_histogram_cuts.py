"""Cut points for trees: between all values where they are few, bins of about equal counts where they are many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinybayes.data.discretize import histogram_cuts, learn_encodings
from tinybayes.errors import TinybayesError
from tinybayes.model.encoding import single

NUMBERS = st.floats(-(2.0**100), 2.0**100, width=32) | st.just(float("nan"))


@given(st.lists(NUMBERS, max_size=40), st.integers(2, 8))
def test_few_values_are_told_apart_and_many_fill_bins(numbers, n_bins):
    column = np.array(numbers, dtype=np.float64)
    (cuts,) = learn_encodings([column], "histogram", n_bins=n_bins)
    known = column[~np.isnan(column)]
    codes = cuts.codes(known)
    assert cuts.count <= max(n_bins, 1)
    if len(np.unique(known)) <= n_bins:
        assert len(np.unique(codes)) == len(np.unique(known))
    assert set(codes) == (set(range(cuts.count)) if len(known) else set())


@given(st.integers(0, 1000), st.integers(2, 40))
def test_distinct_numbers_have_equal_counts(seed, n_bins):
    column = np.random.default_rng(seed).normal(size=400)
    (cuts,) = learn_encodings([column], "histogram", n_bins=n_bins)
    counts = np.bincount(cuts.codes(column))
    assert len(counts) == n_bins
    assert counts.max() - counts.min() <= 1


@given(st.integers(0, 1000))
def test_weights_are_repetitions(seed):
    rng = np.random.default_rng(seed)
    column, weight = rng.integers(0, 30, 60).astype(float), rng.integers(1, 4, 60)
    repeated = histogram_cuts(np.repeat(column, weight), None, 6)
    np.testing.assert_array_equal(histogram_cuts(column, weight.astype(float), 6), repeated)


def test_integers_and_neighbouring_floats():
    (cuts,) = learn_encodings([np.array([3, 3, 7, 8, 2**30])], "histogram", n_bins=9)
    assert (cuts.points, cuts.integer) == ((5, 8, 2**29 + 4), True)
    close = np.array([1.0, np.nextafter(np.float32(1), np.float32(2))])
    (cuts,) = learn_encodings([close], "histogram", n_bins=9)
    assert cuts.points == (float(single(close)[1]),)
    with pytest.raises(TinybayesError, match="n_bins"):
        learn_encodings([close], "histogram", n_bins=1)


def test_of_many_rows_a_sample_is_looked_at(monkeypatch):
    column = np.random.default_rng(0).normal(size=5000)
    whole = histogram_cuts(column, None, 8)
    monkeypatch.setattr("tinybayes.data.discretize.SAMPLE", 2000)
    some = histogram_cuts(column, None, 8)
    assert len(some) == len(whole) == 7
    assert 0 < np.abs(some - whole).max() < 0.1
    np.testing.assert_array_equal(some, histogram_cuts(column, np.ones(5000), 8))
