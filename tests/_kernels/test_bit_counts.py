import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tinybayes._kernels.bit_counts import TOGETHER, count_bits_by_column
from tinybayes.learn.circuits.pools import bits_of


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 200), st.integers(0, 700), st.sampled_from([0.02, 0.5, 1.0]))
def test_columns_are_counted_as_by_adding_up(seed, columns, rows, density):
    generator = np.random.default_rng(seed)
    X = (generator.random((80, columns)) < density).astype(np.uint8)
    bits = bits_of(X, np.arange(0, 2 * columns + 1, 2), np.arange(1, 2 * columns, 2))
    chosen = generator.integers(80, size=rows).astype(np.int32)
    words = -(-columns // 64)
    planes, sums = np.full((5, words), 7, np.uint64), np.full(64 * words, 7, np.int32)
    done = count_bits_by_column(bits, chosen, planes, sums)
    assert done == rows - rows % TOGETHER
    np.testing.assert_array_equal(sums[:columns], X[chosen[:done]].sum(axis=0))
    assert not sums[columns:].any()


def test_bits_stand_for_the_listed_states():
    """Three variables of 2, 3 and 4 states: the bit of a state is set where the row has it."""
    rows = np.array([[a, b, c] for a in range(2) for b in range(3) for c in range(4)] * 200, np.uint8)
    listed = np.array([0, 3, 4, 5, 7, 8])
    bits = bits_of(rows, np.array([0, 2, 5, 9]), listed)
    wanted = [{0 + int(a), 2 + int(b), 5 + int(c)} for a, b, c in rows]
    for word, states in zip(bits[:, 0].tolist(), wanted, strict=True):
        assert {int(listed[j]) for j in range(6) if word >> j & 1} == states & set(listed.tolist())
