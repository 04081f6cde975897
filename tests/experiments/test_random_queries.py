"""Random queries, and the settings of Gibbs sampling of the paper."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zoo
from experiments.learning_arithmetic_circuits.random_queries import GIBBS_SETTINGS, random_queries
from tinybayes.errors import TinybayesError
from tinybayes.infer import gibbs


@given(st.integers(0, 1000), st.sampled_from([0.1, 0.3, 0.5]), st.sampled_from([0.0, 0.2, 0.5]))
def test_queries_show_the_values_of_their_rows(seed, query_share, evidence_share):
    rows = np.arange(400).reshape(20, 20)  # every cell tells its row and its column
    queries = random_queries(rows, query_share, evidence_share, 12, seed)
    assert len(queries) == 12
    for evidence, asked in zip(queries.evidence, queries.asked, strict=True):
        seen = np.where(evidence >= 0, evidence, asked)
        columns = np.flatnonzero(seen >= 0)
        np.testing.assert_array_equal(seen[columns] % 20, columns)
        assert len(np.unique(seen[columns] // 20)) == 1
        assert ((asked >= 0).sum(), (evidence >= 0).sum()) == (round(20 * query_share), round(20 * evidence_share))
        assert not ((asked >= 0) & (evidence >= 0)).any()
    assert len({int(asked.max()) // 20 for asked in queries.asked}) == 12  # each from a row of its own


def test_larger_shares_keep_the_variables_of_smaller_ones():
    rows = np.ones((5, 30), dtype=int)
    small, large = random_queries(rows, 0.1, 0.1), random_queries(rows, 0.3, 0.5)
    assert ((large.asked >= 0) | (small.asked < 0)).all()
    assert ((large.evidence >= 0) | (small.evidence < 0)).all()


def test_variables_differ_from_query_to_query_and_cover_all():
    queries = random_queries(np.ones((1, 10), dtype=int), 0.3, 0.3, 500)
    for codes in (queries.asked, queries.evidence):
        np.testing.assert_allclose((codes >= 0).mean(axis=0), 0.3, atol=0.1)


def test_missing_values_are_not_asked_for():
    rows = np.array([[0, -1, 1, -1]])
    queries = random_queries(rows, 0.5, 0.5, 30)
    assert (queries.asked[:, [1, 3]] < 0).all()
    assert (queries.evidence[:, [1, 3]] < 0).all()


def test_bad_requests():
    rows = np.ones((2, 4), dtype=int)
    for options, message in [
        ({"query_share": 0.8, "evidence_share": 0.3}, "add up to at most 1"),
        ({"query_share": -0.1}, "shares from 0 to 1"),
        ({"count": 0}, "count: expected at least 1"),
    ]:
        with pytest.raises(TinybayesError, match=message):
            random_queries(rows, **options)
    for bad in (np.ones(4, dtype=int), np.ones((2, 4)), np.empty((0, 4), dtype=int)):
        with pytest.raises(TinybayesError, match="rows of integer codes"):
            random_queries(bad)


def test_settings_are_those_of_the_paper():
    assert list(GIBBS_SETTINGS) == ["fast", "medium", "slow", "very slow"]
    queries = random_queries(np.array([[0, 1, 1], [1, 0, 1]]))
    for setting, samples in (("fast", 1000), ("medium", 10_000)):
        assert (gibbs(zoo.sprinkler(), queries, **GIBBS_SETTINGS[setting]).samples == samples).all()
