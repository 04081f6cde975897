import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from strategies import Pieces, folds, random_data
from tinybayes.errors import TinybayesError
from tinybayes.infer import predict_codes
from tinybayes.learn import chow_liu, learn_classifier, maximum_likelihood, naive_bayes, random_tan
from tinybayes.model import Dataset, Float, Structure


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.5, 1.0]), st.booleans())
def test_tables_are_smoothed_relative_frequencies(seed, smoothing, weighted):
    data = random_data(seed, weighted=weighted, missing=0.1)
    structure = chow_liu(data)
    net = maximum_likelihood(data, structure, smoothing=smoothing, number_format=Float(64))
    for family, cpd in zip(structure.families, net.cpds, strict=True):
        counts = oracle.counts(data, family).reshape(cpd.table.shape)
        for row, found in zip(counts, np.exp(cpd.table), strict=True):
            total = row.sum() + smoothing * len(row)
            wanted = (row + smoothing) / total if total > 0 else np.full(len(row), 1 / len(row))
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert net.is_normalized(1e-12)


@given(st.integers(0, 1000))
def test_batches_give_the_same_model(seed):
    data = random_data(seed, weighted=True, missing=0.2)
    structure = random_tan(data, seed=seed)
    assert maximum_likelihood(data, structure) == maximum_likelihood(Pieces(data, 9), structure)


def test_weights_count_as_repeated_rows():
    data = random_data(5, weighted=True)
    repeated = data.rows(np.repeat(np.arange(len(data)), data.weight.astype(int)))
    plain = Dataset(repeated.variables, repeated.target, repeated.X, repeated.y)
    assert chow_liu(data) == chow_liu(plain)
    assert maximum_likelihood(data, chow_liu(data)) == maximum_likelihood(plain, chow_liu(plain))


@given(st.integers(0, 1000), st.integers(1, 12))
def test_random_trees_are_trees(seed, features):
    structure = random_tan(random_data(0, features=features), seed=seed)
    feature_parents = [[p for p in family if p != features] for family in structure.parents[:-1]]
    assert sorted(map(len, feature_parents)) == [0] + [1] * (features - 1)
    assert all(family[-1] == features for family in structure.parents[:-1])


def test_random_trees_differ_by_seed_and_repeat():
    data = random_data(0, features=8)
    assert random_tan(data, seed=1) == random_tan(data, seed=1)
    assert random_tan(data, seed=1) != random_tan(data, seed=2)


def test_bad_options_are_refused():
    data = random_data(0)
    with pytest.raises(TinybayesError, match="smoothing: expected a finite number that is not negative, got -1"):
        maximum_likelihood(data, naive_bayes(data), smoothing=-1)
    with pytest.raises(TinybayesError, match="structure over 5 nodes, got 2"):
        maximum_likelihood(data, Structure(((), (0,))))
    with pytest.raises(TinybayesError, match="structure: expected one of naive, chow-liu, random, got 'best'"):
        learn_classifier(data, structure="best")
    with pytest.raises(TinybayesError, match="training: expected one of ml, hybrid"):
        learn_classifier(data, training="magic")
    with pytest.raises(TinybayesError, match="name the target column"):
        learn_classifier(random_data(0, classes=None))


@pytest.mark.parametrize(
    ("name", "naive", "tan"), [("letter", 25.89, 15.23), ("satimage", 17.95, 11.90), ("usps", 13.11, 8.74)]
)
def test_reference_errors_on_the_real_data(data_dir, name, naive, tan):
    errors = []
    for train, test in folds(data_dir / "classification" / f"{name}.npz"):
        nets = [maximum_likelihood(train, structure(train), smoothing=1) for structure in (naive_bayes, chow_liu)]
        errors.append([100 * np.mean(predict_codes(net, test.X) != test.y) for net in nets])
    np.testing.assert_array_equal(np.round(np.mean(errors, axis=0), 2), [naive, tan])
