"""scikit-learn: naive Bayes, whose smoothing is the same and whose class prior has none."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.naive_bayes import BernoulliNB, CategoricalNB

from tinybayes import BayesNetClassifier, Dataset, Float, Variable, class_scores, maximum_likelihood, naive_bayes

SEEDS = range(8)


def random_rows(seed):
    rng = np.random.default_rng(seed)
    states = rng.integers(2, 6, int(rng.integers(1, 8)))
    y = rng.choice(4, int(rng.integers(30, 300)), p=rng.dirichlet(np.ones(4)))
    y[:4] = range(4)
    return np.column_stack([rng.integers(0, k, len(y)) for k in states]), y, states


def log_joint(X, y, states, smoothing):
    """Our scores, less our smoothed class prior, plus relative frequencies: what scikit-learn has."""
    variables = tuple(Variable(f"x{j}", tuple(range(k))) for j, k in enumerate(states.tolist()))
    data = Dataset(variables, Variable("y", tuple(range(int(y.max()) + 1))), X, y)
    net = maximum_likelihood(data, naive_bayes(data), smoothing=smoothing, number_format=Float(64))
    counts = np.bincount(y)
    return class_scores(net, X) - net.cpds[-1].log_parameters[0] + np.log(counts / counts.sum())


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 1.0, 10.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_categorical_naive_bayes(seed, alpha):
    X, y, states = random_rows(seed)
    theirs = CategoricalNB(alpha=alpha, min_categories=states).fit(X, y)
    np.testing.assert_allclose(log_joint(X, y, states, alpha), theirs.predict_joint_log_proba(X), rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_bernoulli_naive_bayes(seed):
    """Of two states, its smoothing is the same too."""
    X, y, _ = random_rows(seed)
    X = X % 2
    theirs = BernoulliNB(alpha=1.0).fit(X, y)
    states = np.full(X.shape[1], 2)
    np.testing.assert_allclose(log_joint(X, y, states, 1.0), theirs.predict_joint_log_proba(X), rtol=1e-12)


@pytest.mark.parametrize("load", [load_iris, load_digits])
def test_the_estimator_on_real_codes(load):
    """With a flat class prior, which smoothing leaves flat, the probabilities are the same."""
    X, y = load(return_X_y=True)
    X = X.astype(np.int64)
    least = np.bincount(y).min()
    keep = np.concatenate([np.flatnonzero(y == c)[:least] for c in np.unique(y)])
    X, y = X[keep], y[keep]
    codes = np.column_stack([np.unique(column, return_inverse=True)[1] for column in X.T])
    theirs = CategoricalNB(alpha=1.0).fit(codes, y)
    ours = BayesNetClassifier("naive", discretizer=None, smoothing=1.0).fit(codes, y)
    np.testing.assert_allclose(
        ours.predict_proba(codes), theirs.predict_proba(codes), atol=1e-5
    )  # ours are floats of 32 bits
