import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from strategies import Pieces, random_data
from tinybayes.errors import TinybayesError
from tinybayes.learn import chow_liu, conditional_mutual_information
from tinybayes.learn.closed_form.chow_liu import maximum_spanning_tree
from tinybayes.model import Dataset, Variable


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.2]), st.booleans(), st.sampled_from([None, 3]))
def test_information_equals_its_definition(seed, missing, weighted, classes):
    data = random_data(seed, missing=missing, weighted=weighted, classes=classes)
    found = conditional_mutual_information(data)
    for i in range(4):
        for j in range(i):
            family = (i, j, 4) if classes else (i, j)
            table = oracle.counts(data, family)
            table = table if classes else table[:, :, None]
            wanted = oracle.conditional_information(table) if table.sum() else 0.0
            assert found[i, j] == pytest.approx(wanted, abs=1e-12)
            assert found[i, j] == found[j, i]


@given(st.integers(0, 1000), st.sampled_from([20, 100, 1000]))
def test_memory_bound_and_batches_do_not_change_the_result(seed, cells):
    data = random_data(seed, features=6, weighted=True, missing=0.1)
    whole = conditional_mutual_information(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["tinybayes.learn.closed_form.chow_liu"], "PAIR_CELLS", max(cells, 4 * 4 * 3))
        np.testing.assert_allclose(conditional_mutual_information(Pieces(data, 7)), whole, atol=1e-12)


@given(st.integers(0, 1000), st.booleans(), st.sampled_from([None, 3]), st.sampled_from([20, 1000]))
def test_a_long_table_is_counted_piece_by_piece(seed, weighted, classes, cells):
    data = random_data(seed, features=6, weighted=weighted, missing=0.1, classes=classes)
    whole = conditional_mutual_information(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["tinybayes.learn.closed_form.chow_liu"], "PIECE", 7)
        patch.setattr(sys.modules["tinybayes.learn.closed_form.chow_liu"], "PAIR_CELLS", max(cells, 4 * 4 * 3))
        np.testing.assert_array_equal(conditional_mutual_information(data), whole)


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_spanning_tree_is_the_heaviest_of_all_trees(seed, size):
    weight = np.random.default_rng(seed).integers(0, 5, size=(size, size)).astype(float)  # many ties and zeros
    weight = weight + weight.T
    parent = maximum_spanning_tree(weight)
    assert parent[0] == -1
    assert all(p >= 0 for p in parent[1:])
    total = sum(weight[i, p] for i, p in enumerate(parent) if p >= 0)
    assert total == oracle.best_tree_weight(weight)


def test_uneven_cardinalities_do_not_make_a_star():
    # A chain a -> b -> c -> d with many and few states in turn: its tree is the chain.
    generator = np.random.default_rng(0)
    a = generator.integers(0, 8, 4000)
    flip = lambda x, k: np.where(generator.random(4000) < 0.15, generator.integers(0, k, 4000), x % k)  # noqa: E731
    b = flip(a, 2)
    c = flip(b * 3, 6)
    d = flip(c, 2)
    X = np.stack([a, b, c, d], axis=1)
    variables = [Variable(n, tuple(range(k))) for n, k in zip("abcd", (8, 2, 6, 2), strict=True)]
    data = Dataset(variables, Variable("y", (0, 1)), X, generator.integers(0, 2, 4000))
    assert chow_liu(data).parents == ((4,), (0, 4), (1, 4), (2, 4), ())


def test_the_class_matters():
    # Given the class, x0 equals x1; x2 equals the class: ignoring the class would join x0 or x1 to x2.
    generator = np.random.default_rng(1)
    y = generator.integers(0, 2, 2000)
    u = generator.integers(0, 2, 2000)
    noise = generator.random(2000) < 0.1
    X = np.stack([u ^ y, y, np.where(noise, 1 - u, u)], axis=1)
    data = Dataset([Variable(n, (0, 1)) for n in "pqr"], Variable("y", (0, 1)), X, y)
    information = conditional_mutual_information(data)
    assert information[0, 2] > 0.2
    assert information[0, 1] == pytest.approx(0, abs=1e-9)


def test_a_constant_column_and_a_single_feature_are_fine():
    data = Dataset([Variable("a", (0,))], Variable("y", (0, 1)), np.zeros((4, 1), dtype=int), np.array([0, 1, 0, 1]))
    assert chow_liu(data).parents == ((1,), ())


def test_a_pair_too_large_is_refused():
    wide = [Variable(n, tuple(range(9000))) for n in "ab"]
    data = Dataset(wide, None, np.zeros((1, 2), dtype=np.int32))
    with pytest.raises(
        TinybayesError, match=r"features 'a' and 'b': .* joint counts for a pair of features, got 81,000,000"
    ):
        chow_liu(data)
