"""Comparisons with other libraries: pyAgrum, pgmpy, Orange, scikit-learn, onnxruntime (`make peers`).

They run in their own environment, so that the requirements of a peer never decide which versions we run with. If a
peer reads a format differently, a test that is expected to fail says so, and tells when that changes.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from tinybayes import read_dataset


@pytest.fixture(scope="module")
def digits():
    """Rows with a class, as a data set and as a frame of codes."""
    X, y = load_digits(return_X_y=True)
    keep = [10, 19, 20, 28, 36, 43, 44]
    data = read_dataset(pd.DataFrame((X[:, keep] // 4).astype(str)).assign(y=y.astype(str)), target="y")
    codes = np.column_stack([data.X, data.y])
    return data, pd.DataFrame(codes, columns=[f"x{v}" for v in range(codes.shape[1])])
