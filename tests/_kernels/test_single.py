"""Exponential and logarithm of 32-bit floats, and short vectors, against NumPy."""

import numpy as np

from tinybayes._kernels import jit, single


@jit
def _of_all(x, exponentials, logarithms):
    for j in range(len(x)):
        exponentials[j] = single.exp(x[j])
        logarithms[j] = single.log(max(exponentials[j], np.float32(1e-30)))


def test_exponential_and_logarithm_are_those_of_numpy():
    x = np.concatenate([np.linspace(-86.9, 88, 20001), np.linspace(-1e-3, 1e-3, 501), [0.0]]).astype(np.float32)
    exponentials, logarithms = np.empty_like(x), np.empty_like(x)
    _of_all(x, exponentials, logarithms)
    np.testing.assert_allclose(exponentials, np.exp(x.astype(np.float64)), rtol=2e-7)
    wanted = np.log(np.maximum(exponentials.astype(np.float64), 1e-30))
    np.testing.assert_allclose(logarithms, wanted, rtol=2e-7, atol=1e-9)


def test_exponentials_far_below_are_zero():
    x = np.array([-1e30, -200.0, -np.inf], dtype=np.float32)
    exponentials, logarithms = np.ones_like(x), np.empty_like(x)
    _of_all(x, exponentials, logarithms)
    assert (exponentials == 0).all()


@jit
def _of_one(x):
    return single.exp(x), single.log(x)


def test_overflow_and_numbers_that_are_none_show():
    of = [_of_one(np.float32(x)) for x in (1e9, np.inf, np.nan, 0.0)]
    assert [one[0] for one in of[:2]] == [np.inf, np.inf]
    assert np.isnan(of[2]).all()
    assert (of[1][1], of[3][1]) == (np.inf, -np.inf)


@jit
def _add(out, left, right):
    single.add_lanes(out, 1, left, 2)
    single.add_four(out, 9, left, 0)
    single.add_two(out, 13, left, 0)
    single.add_one(out, 15, left, 0)
    single.add_four_lanes(out, 16, left, 0, left, 1, right, 2, right, 3)
    single.add_product_lanes(out, 24, left, 1, right, 2)
    return single.sum_of_lanes(left)


def test_lanes_are_added_where_they_are_named():
    generator = np.random.default_rng(0)
    left, right, out = (generator.normal(size=n).astype(np.float32) for n in (16, 16, 40))
    wanted = out.copy()
    wanted[1:9] += left[2:10]
    wanted[9:13] += left[:4]
    wanted[13:15] += left[:2]
    wanted[15] += left[0]
    wanted[16:24] += left[0:8] + left[1:9] + right[2:10] + right[3:11]
    wanted[24:32] += left[1:9] * right[2:10]
    assert abs(_add(out, left, right) - left[:8].sum()) < 1e-5
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-6)
