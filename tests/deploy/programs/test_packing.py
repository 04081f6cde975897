"""Codes in lanes: banks hold every class once, sums never leave their lanes, and long sums come out right."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c_host import labels_and_scores
from networks import classifier, every_state
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.packing import table_banks
from tinybayes.infer.integers import integer_log_joint
from tinybayes.model import Fixed


@given(st.integers(1, 70), st.integers(1, 20), st.lists(st.floats(0, 1), min_size=1, max_size=80), st.integers(0, 400))
def test_banks_hold_every_class_once_and_lanes_never_overflow(classes, bits, shares, start):
    largest = [round(share * (2**bits - 1)) for share in shares]
    codes = np.random.default_rng(classes).integers(0, 2**bits, (3, classes))
    held = []
    for bank in table_banks(classes, bits, largest, start=start, lanes=True):
        held += range(bank.first, bank.first + bank.count)
        shape, words = bank.shape, bank.words(codes).astype(np.uint64)
        for i in range(bank.count):
            plane, inside = divmod(i, shape.room)
            lane, position = divmod(inside, shape.each)
            shift = np.uint64(lane * shape.lane + position * bits)
            np.testing.assert_array_equal(words[:, plane] >> shift & np.uint64(2**bits - 1), codes[:, bank.first + i])
        if shape.lanes > 1:
            chunks = [sum(largest[k : k + shape.chunk]) for k in range(0, len(largest), shape.chunk)]
            assert max(chunks) + (start if len(chunks) == 1 else 0) < 2**shape.lane
        else:
            assert shape.chunk == len(largest)
    assert held == list(range(classes))


@given(st.integers(1, 70), st.integers(1, 8))
def test_no_room_is_wasted(classes, bits):
    banks = table_banks(classes, bits, [1] * 9, start=0, lanes=True)
    used = sum(bank.planes * bank.shape.width for bank in banks)
    assert used <= 32 * -(-classes // (32 // bits))


@pytest.mark.parametrize("bits", range(1, 9))
def test_long_sums_in_chunks(tmp_path, bits):
    net = classifier("naive", Fixed(2, bits - 2), states=[2, 3] * 35, classes=[11, 26][bits % 2], seed=bits)
    X = every_state(net)
    labels, scores = labels_and_scores(tmp_path, to_c(net, name="net", gaps=False, extras=False), "net", net, X)
    exact, _ = integer_log_joint(net, X)
    np.testing.assert_array_equal(scores, exact)
    np.testing.assert_array_equal(labels, exact.argmax(axis=1))


def fewest_bits(classes, bits):
    """The least total width of words that hold so many codes, by trying every mixture."""
    best = [0]
    for left in range(1, classes + 1):
        best.append(min(width + best[max(0, left - width // bits)] for width in (8, 16, 32) if width >= bits))
    return best[classes]


@pytest.mark.parametrize("bits", range(1, 33))
@pytest.mark.parametrize("lanes", [True, False])
def test_words_are_as_few_as_they_can_be(bits, lanes):
    for classes in (*range(1, 12), 26, 70, 129):
        banks = table_banks(classes, bits, [2**bits - 1] * 5, start=3, lanes=lanes)
        assert sum(bank.planes * bank.shape.width for bank in banks) == fewest_bits(classes, bits)
        if not lanes:
            assert all(bank.shape.lanes == 1 for bank in banks)
