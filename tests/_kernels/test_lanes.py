import numpy as np
import pytest

from tinybayes._kernels import jit
from tinybayes._kernels.lanes import ROWS, add_product, add_scaled, set_product, set_row


@jit
def steps(out, left, right, i, j):
    add_product(out, i, left, j, right, i, 0.5)
    add_scaled(out, j, left, i, -2.0)
    set_product(out, 2, left, i, right, j)
    set_row(out, 3, 7.0)


@jit
def onto_themselves(matrix, i):
    set_product(matrix, i, matrix, i, matrix, i + 1)
    add_product(matrix, i, matrix, i, matrix, i, 3.0)


@pytest.mark.parametrize("kind", [int, np.uint32, np.int32])
def test_rows_are_combined_as_by_numpy(kind):
    rng = np.random.default_rng(0)
    out, left, right = rng.random((3, 6, ROWS))
    wanted = out.copy()
    i, j = 4, 1
    wanted[i] += 0.5 * left[j] * right[i]
    wanted[j] += -2.0 * left[i]
    wanted[2] = left[i] * right[j]
    wanted[3] = 7.0
    steps(out, left, right, kind(i), kind(j))
    np.testing.assert_allclose(out, wanted, rtol=1e-15)


def test_a_row_may_be_combined_with_itself():
    matrix = np.random.default_rng(1).random((3, ROWS))
    wanted = matrix.copy()
    wanted[1] *= wanted[2]
    wanted[1] += 3 * wanted[1] * wanted[1]
    onto_themselves(matrix, 1)
    np.testing.assert_allclose(matrix, wanted, rtol=1e-15)
