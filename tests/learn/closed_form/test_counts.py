import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from strategies import Pieces, random_data
from tinybayes.errors import TinybayesError
from tinybayes.learn import count_tables
from tinybayes.learn.closed_form import counts as counts_module
from tinybayes.model import Dataset, Variable


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3]), st.booleans())
def test_counts_equal_counting_row_by_row(seed, missing, weighted):
    data = random_data(seed, missing=missing, weighted=weighted)
    families = [(0,), (4,), (0, 4), (1, 0, 4), (4, 2), (3, 2, 1, 4), (1, 2)]
    for family, table in zip(families, count_tables(data, families), strict=True):
        np.testing.assert_array_equal(table, oracle.counts(data, family))


@given(st.integers(0, 1000), st.integers(1, 41))
def test_batches_add_up_to_the_whole(seed, rows):
    data = random_data(seed, missing=0.2, weighted=True)
    families = [(0, 4), (2, 1, 4)]
    for whole, parts in zip(count_tables(data, families), count_tables(Pieces(data, rows), families), strict=True):
        np.testing.assert_array_equal(whole, parts)


def test_a_table_too_large_is_refused_before_it_is_allocated():
    wide = [Variable(n, tuple(range(60_000))) for n in "ab"]
    data = Dataset(wide, None, np.zeros((1, 2), dtype=np.int32))
    with pytest.raises(TinybayesError, match=r"table of a, b: expected at most .* got 3,600,000,000; merge"):
        count_tables(data, [(0, 1)])


def test_many_tables_too_large_together_are_refused(monkeypatch):
    monkeypatch.setattr(counts_module, "MAX_CELLS", 100)
    data = random_data(3, features=60)
    with pytest.raises(TinybayesError, match="60 tables: expected at most 100 counts"):
        count_tables(data, [(i, 60) for i in range(60)])


def test_unknown_classes_are_an_error():
    data = random_data(0)
    with pytest.raises(TinybayesError, match="expected class codes to learn from"):
        count_tables(Dataset(data.variables, data.target, data.X), [(0, 4)])
