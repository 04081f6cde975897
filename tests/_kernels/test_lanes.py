import numpy as np
import pytest

from tinybayes._kernels import jit
from tinybayes._kernels.float_range import FLAG, left_range, watch_range
from tinybayes._kernels.lanes import ROWS, add_product, add_scaled, set_product, set_product_up, set_row


@jit
def steps(out, left, right, i, j):
    add_product(out, i, left, j, right, i, 0.5)
    add_scaled(out, j, left, i, -2.0)
    set_product(out, 2, left, i, right, j)
    set_row(out, 3, 7.0)
    set_product_up(out, 5, left, i, right, j, 0.25)


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
    left[i, :3], right[j, 2:5] = 0.0, 0.0
    wanted[i] += 0.5 * left[j] * right[i]
    wanted[j] += -2.0 * left[i]
    wanted[2] = left[i] * right[j]
    wanted[3] = 7.0
    wanted[5] = np.where((left[i] == 0) | (right[j] == 0), 0.0, np.maximum(left[i] * right[j], 0.25))
    steps(out, left, right, kind(i), kind(j))
    np.testing.assert_allclose(out, wanted, rtol=1e-15)


def test_a_row_may_be_combined_with_itself():
    matrix = np.random.default_rng(1).random((3, ROWS))
    wanted = matrix.copy()
    wanted[1] *= wanted[2]
    wanted[1] += 3 * wanted[1] * wanted[1]
    onto_themselves(matrix, 1)
    np.testing.assert_allclose(matrix, wanted, rtol=1e-15)


@jit
def multiplied(matrix):
    watch_range()
    set_product(matrix, 0, matrix, 1, matrix, 2)
    return left_range()


@pytest.mark.parametrize(
    ("factors", "lost"),
    [
        ((1e-200, 1e-200), True),
        ((1e-160, 1e-155), True),
        ((1e-100, 1e-100), False),
        ((0, 1e-300), False),
        ((1e200, 1e200), True),
    ],
)
def test_the_processor_tells_what_is_out_of_range(factors, lost):
    if not FLAG:
        pytest.skip("nothing is known of this processor's flags")
    matrix = np.ones((3, ROWS))
    matrix[1, 5], matrix[2, 5] = factors
    assert multiplied(matrix) == lost
    assert not multiplied(np.ones((3, ROWS)))  # it is forgotten
