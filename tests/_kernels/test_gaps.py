import numpy as np
import pytest

from gaps import log_add as plain_log_add
from gaps import table_of
from tinybayes._kernels.gaps import log_add
from tinybayes.infer.integers import GapArithmetic

FRACTIONS = [-4, -1, 0, 1, 3, 7, 9, 10, 11, 14, 17, 20, 26]


def distances(fraction):
    """All distances where they are few, else all around the ends of the table's steps and random ones between."""
    end = max(int(9 * 2.0**fraction), 4)
    if end < 2**14:
        return np.arange(end)
    steps = (np.arange(33) * 2.0 ** (fraction - 2)).astype(np.int64)
    near = (steps[:, None] + np.arange(-2, 3)).reshape(-1)
    return np.concatenate([near[near >= 0], np.random.default_rng(0).integers(0, end, size=2000)])


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_the_sum_is_that_of_the_definition_and_near_the_exact_one(fraction):
    table = np.array(table_of(fraction))
    error = GapArithmetic(fraction, 0, table, None, 0).error
    for distance in distances(fraction).tolist():
        high = -12345
        total = log_add(high, high - distance, fraction, table)
        assert total == log_add(high - distance, high, fraction, table)
        assert total == plain_log_add(high, high - distance, fraction, table.tolist())
        exact = np.logaddexp(0.0, -np.ldexp(float(distance), -fraction))
        assert -np.ldexp(0.5, -fraction) - 0.00034 <= np.ldexp(float(total - high), -fraction) - exact <= error
        assert total >= high


def test_the_bound_of_the_error_is_nearly_reached():
    fraction, table = 20, np.array(table_of(20))
    distance = 2**17  # the middle of the first step
    excess = (log_add(0, -distance, fraction, table) - 2**20 * np.logaddexp(0, -1 / 8)) / 2**20
    assert 0.0019 < excess < GapArithmetic(fraction, 0, table, None, 0).error < 0.0035


@pytest.mark.parametrize("fraction", [0, 9, 10, 20, 26])
def test_large_distances_do_not_overflow(fraction):
    table = np.array(table_of(fraction))
    assert log_add(0, -(2**31) + 1, fraction, table) == 0
    assert log_add(np.int32(0), np.int32(-(2**31) + 1), fraction, table) == 0


def test_equal_summands_of_a_coarse_unit_follow_the_definition():
    # 2**1 nats a unit: no sum of two is above the larger one, whatever their distance.
    table = np.array(table_of(-1))
    assert not table.any()
    assert [log_add(5, 5 - d, -1, table) for d in range(4)] == [5] * 4
