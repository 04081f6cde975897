"""Counting batches: many tables from few blocks, and pairs as sets of rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from strategies import Pieces, random_data
from tinybayes._kernels.pairs import ROWS
from tinybayes.learn import (
    chow_liu,
    conditional_mutual_information,
    count_tables,
    learn_classifier,
    maximum_likelihood,
    naive_bayes,
)
from tinybayes.learn.closed_form import joint_counts
from tinybayes.learn.closed_form.counts import remember
from tinybayes.learn.closed_form.joint_counts import CELLS, Blocks, Pairs, covering, plan_blocks, plan_counts
from tinybayes.model.dataset import Columns


def pieces(data, rows):
    for start in range(0, len(data), rows):
        part = data.rows(slice(start, start + rows))
        yield Columns(np.ascontiguousarray(part.X.T), part.y, part.weight)


def test_blocks_and_sets_without_a_class():
    data = random_data(2, features=3, classes=None, missing=0.2)
    states = tuple(v.cardinality for v in data.variables)
    for plan in (plan_blocks([(0, 1), (2,)], states, None), Pairs(states, None, ((0, 1),))):
        counts = plan(pieces(data, 11))
        for family in ((0, 1), (2,), (1, 0)):
            np.testing.assert_array_equal(plan.table(counts, family), oracle.counts(data, family))


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3]), st.booleans(), st.integers(1, 60))
def test_blocks_and_sets_count_as_row_by_row(seed, missing, weighted, rows):
    data = random_data(seed, features=5, missing=missing, weighted=weighted)
    states = tuple(v.cardinality for v in data.variables)
    families = [(1, 0, 5), (5,), (3, 5), (5, 2, 4)]
    blocks = plan_blocks([*families, (0, 1), (3, 2, 1, 5)], states, data.target.cardinality)
    pairs = Pairs(states, data.target.cardinality, ((0, 1), (2, 4)))
    for plan, own in ((blocks, [*families, (0, 1), (3, 2, 1, 5)]), (pairs, families)):
        counts = plan(pieces(data, rows))
        for family in own:
            assert plan.covers(family)
            np.testing.assert_array_equal(plan.table(counts, family), oracle.counts(data, family))
    assert not pairs.covers((0, 2, 5))
    assert not pairs.covers((0, 1))  # would lack the rows whose class is not known


def test_tables_too_large_for_a_block_are_counted_beside_them(monkeypatch):
    data = random_data(4, features=6, missing=0.2)
    states = [v.cardinality for v in data.variables]
    monkeypatch.setattr("tinybayes.learn.closed_form.joint_counts.CELLS", 20)
    families = [(0, 1, 6), (2, 6), (3, 4, 5, 6), (6,)]
    plan = plan_blocks(families, states, data.target.cardinality)
    assert plan.large
    counts = plan(pieces(data, 17))
    for family in families:
        np.testing.assert_array_equal(plan.table(counts, family), oracle.counts(data, family))


def test_narrow_counts_are_added_before_they_overflow(monkeypatch):
    monkeypatch.setattr("tinybayes.learn.closed_form.joint_counts.FLUSH", 10)
    data = random_data(5)
    plan = plan_blocks([(0, 4), (1, 4)], [v.cardinality for v in data.variables], data.target.cardinality)
    np.testing.assert_array_equal(plan.table(plan(pieces(data, 7)), (0, 4)), oracle.counts(data, (0, 4)))


@given(st.lists(st.integers(1, 40), min_size=1, max_size=24), st.sampled_from([None, 2, 10]), st.integers(60, CELLS))
def test_blocks_cover_every_pair_that_fits_and_stay_within_the_limit(states, classes, limit):
    features = len(states)
    pairs = [(i, j, features) for i in range(features) for j in range(i)] or [(0, features)]
    blocks = covering(pairs, states, classes, limit)

    def cells(block):
        return np.prod([states[i] + 1 for i in block]) * (1 if classes is None else classes + 1)

    for block in blocks:
        assert cells(block) <= max(limit, cells([]), *(cells([i]) for i in range(features)))
    for i, *rest in pairs:
        own = {i, *rest} - {features}
        assert cells(own) > limit or any(own <= set(block) for block in blocks)


@pytest.mark.parametrize("classes", [2, 7])
def test_sets_of_rows_span_several_chunks(classes):
    generator = np.random.default_rng(classes)
    rows = 2 * ROWS + 777
    X = generator.integers(-1, 5, (3, rows)).astype(np.int8)
    y = np.minimum(generator.integers(-1, 3 * classes, rows), classes - 1).astype(np.int8)
    plan = Pairs((5, 5, 5), classes, ((0, 2), (1, 2)))
    counts = plan([Columns(X, y, None), Columns(X[:, :100], y[:100], None)])
    known = (X[1] >= 0) & (X[2] >= 0) & (y >= 0)
    expected = np.zeros((5, 5, classes))
    np.add.at(expected, (X[1][known], X[2][known], y[known]), 1)
    again = known[:100]
    np.add.at(expected, (X[1, :100][again], X[2, :100][again], y[:100][again]), 1)
    np.testing.assert_array_equal(plan.table(counts, (1, 2, 3)), expected)
    np.testing.assert_array_equal(plan.table(counts, (3,)), np.bincount(y[y >= 0]) + np.bincount(y[:100][y[:100] >= 0]))


@pytest.mark.parametrize("by_sets", [True, False])
@pytest.mark.parametrize("has_class", [True, False])
def test_chow_liu_of_batches_is_that_of_the_whole(by_sets, has_class, monkeypatch):
    monkeypatch.setattr(joint_counts, "has_wide_popcount", lambda: by_sets)
    data = random_data(11, features=9, rows=400, missing=0.1)
    if not has_class:
        data = type(data)(data.variables, None, data.X)
    parts = Pieces(data, 90)
    np.testing.assert_array_equal(conditional_mutual_information(parts), conditional_mutual_information(data))
    assert chow_liu(parts) == chow_liu(data)


def test_the_plan_follows_what_is_asked(monkeypatch):
    monkeypatch.setattr(joint_counts, "has_wide_popcount", lambda: True)
    many = [(i, j, 12) for i in range(12) for j in range(i)]
    assert isinstance(plan_counts([(i, 12) for i in range(12)], [8] * 12, 3), Blocks)
    assert isinstance(plan_counts(many, [300] * 12, 3), Blocks)  # codes that take more than a byte
    assert isinstance(plan_counts([*many, (0, 1, 2, 12)], [4] * 12, 3), Blocks)
    assert isinstance(plan_counts(many, [10] * 12, 3), Pairs)


def test_what_was_counted_is_not_counted_again():
    class Watched(Pieces):
        passes = 0

        def __iter__(self):
            Watched.passes += 1
            return super().__iter__()

    data = random_data(3, features=14, rows=200, missing=0.1)
    parts = Watched(data, 50)
    tan = learn_classifier(parts, structure="chow-liu")
    assert Watched.passes == 1
    kept = remember(parts)
    assert remember(kept) is kept
    structure = chow_liu(kept)
    naive = maximum_likelihood(kept, naive_bayes(kept))
    assert Watched.passes == 2
    for found, graph in ((tan, structure), (naive, naive_bayes(data))):
        expected = maximum_likelihood(data, graph)
        for a, b in zip(found.cpds, expected.cpds, strict=True):
            np.testing.assert_array_equal(a.table, b.table)
    count_tables(kept, [(*range(9), 14)])
    assert Watched.passes == 3
