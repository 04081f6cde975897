"""Where input noise moves codes, as the experiment on kinds of moves reads it from the library."""

import numpy as np

from experiments.input_noise.kernels import kernels_of
from tinybayes import Dataset, Variable
from tinybayes.model import Categories


def test_rows_are_those_worked_out_by_hand():
    features = Variable("ordered", (0, 1, 2)), Variable("nominal", ("a", "b", "c"), Categories())
    X = np.array([[0, 0], [1, 0], [2, 1], [1, 2]])
    ordered, nominal = kernels_of(Dataset(features, Variable("y", (0, 1)), X, X[:, 0] % 2), 0.0)
    assert ordered.tolist() == [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    np.testing.assert_allclose(nominal, [[0.5, 0.25, 0.25]] * 3, atol=1e-6)
