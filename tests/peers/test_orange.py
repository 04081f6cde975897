"""Orange: the cut points of Fayyad and Irani, on real and on random tables, with ties and without."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from tinybayes.data.mdlp import mdlp_all

pytest.importorskip("Orange", exc_type=ImportError)
REAL = {load.__name__: load(return_X_y=True) for load in (load_iris, load_wine, load_breast_cancer, load_digits)}


def orange(X, y):
    from Orange.data import ContinuousVariable, DiscreteVariable, Domain, Table
    from Orange.preprocess.discretize import EntropyMDL

    names = [f"x{j}" for j in range(X.shape[1])]
    classes = DiscreteVariable("class", [str(c) for c in range(int(y.max()) + 1)])
    domain = Domain([ContinuousVariable(name) for name in names], classes)
    rows = Table.from_numpy(domain, X.astype(float), y.astype(float))
    return [np.array(EntropyMDL()(rows, name).compute_value.points) for name in names]


def compare(X, y):
    """Return how many cuts there are; all of them are the same."""
    ours, theirs = mdlp_all(X.T, y, int(y.max()) + 1), orange(X, y)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12)
    return sum(map(len, ours))


@pytest.mark.parametrize("name", REAL)
def test_real_tables(name):
    assert compare(*REAL[name]) > 0


@pytest.mark.parametrize("name", ["letter", "satimage"])
def test_reference_tables(data_dir, name):
    with np.load(data_dir / "classification" / "raw" / f"{name}.npz") as file:
        assert compare(file["x"].astype(float), file["y"].astype(np.int64)) > 0


@pytest.mark.parametrize("seed", range(60))
def test_random_tables(seed):
    """Odd seeds have many equal values; every fourth has columns that say nothing, and should not be cut."""
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(5, 400)), int(rng.integers(2, 6))
    y = rng.integers(0, classes, n)
    y[0] = classes - 1
    shift = 0.0 if seed % 4 == 0 else rng.random(5) * 2
    X = rng.normal(size=(n, 5)) + y[:, None] * shift
    if seed % 2:
        X = np.round(X * rng.choice([1, 2, 4]))
    compare(X, y)


def test_random_tables_are_cut():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1000)
    assert compare(np.round(rng.normal(size=(1000, 3)) + 2 * y[:, None], 1), y) >= 6
