"""Probabilities in fixed point against the softmax of doubles, margins against sorting."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tinybayes.infer.fixed_probabilities import (
    LARGEST,
    ONE,
    IntegerScale,
    fixed_probabilities,
    headroom,
    labels_or,
    make_scale,
    probability_error,
    score_margins,
)

TEMPERATURES = st.floats(0.05, 100.0)


def softmax(scores):
    with np.errstate(invalid="ignore"):
        shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


@st.composite
def integer_scores(draw):
    classes = draw(st.sampled_from([1, 2, 3, 10, 32, 33, 100, 300]))
    reach = draw(st.sampled_from([1, 20, 3000, 2**20, 2**31 - 1]))
    return draw(arrays(np.int64, (4, classes), elements=st.integers(-reach, reach)))


@given(integer_scores(), st.integers(-3, 24).map(lambda k: 2.0**-k) | st.floats(1e-9, 2.0), TEMPERATURES)
def test_integer_scores_are_within_the_bound_of_the_softmax(scores, unit, temperature):
    found = fixed_probabilities(scores, make_scale(unit, temperature))
    exact = softmax(scores * (unit / temperature))
    assert found.dtype == np.uint16
    assert np.abs(found / ONE - exact).max() <= probability_error(scores.shape[1])


@given(arrays(np.float32, (4, 7), elements=st.floats(-3e4, 3e4, width=32) | st.floats(-3, 3, width=32)), TEMPERATURES)
def test_float_scores_are_within_the_bound_of_the_softmax(scores, temperature):
    found = fixed_probabilities(scores, make_scale(None, temperature))
    exact = softmax(scores.astype(np.float64) / temperature)
    # Differences are rounded once, scaled, and rounded once more, which matters where they are large.
    rounding = 4 * 2.0**-24 * 0.4
    assert np.abs(found / ONE - exact).max() <= probability_error(7) + rounding


def test_a_hand_worked_row():
    scores = np.array([[0, -1, -2, -40]])  # bits: 1, 1/2, 1/4, next to nothing
    found = fixed_probabilities(scores, make_scale(math.log(2)))
    assert found[0] == pytest.approx(np.array([4, 2, 1, 0]) * ONE / 7, abs=1)
    assert fixed_probabilities(scores[:, :1], make_scale(1.0)).tolist() == [[ONE]]


def test_infinities_and_scores_at_the_ends_of_32_bits():
    impossible = np.array([[-np.inf, 0.0], [-np.inf, -np.inf]], dtype=np.float32)
    assert fixed_probabilities(impossible, make_scale(None)).tolist() == [[0, ONE], [ONE // 2, ONE // 2]]
    assert score_margins(impossible).tolist() == [float(np.finfo(np.float32).max), 0.0]
    far = np.array([[-(2**31), 2**31 - 1]])
    assert fixed_probabilities(far, make_scale(1e-9))[0] == pytest.approx([440.9, ONE - 440.9], abs=1)
    assert score_margins(far).tolist() == [LARGEST]


def test_scales_are_as_fine_as_16_bits_allow():
    for unit in (3.0, 1.0, 2.0**-10, 1e-6):
        scale = make_scale(unit, 1.7)
        assert isinstance(scale, IntegerScale)
        assert math.ldexp(scale.multiplier, -scale.shift) == pytest.approx(unit * 2**16 / 1.7 / math.log(2), rel=2**-16)
    assert make_scale(1e-30) == IntegerScale(0, 0)
    assert make_scale(1e9).multiplier < 2**21


@pytest.mark.parametrize("classes", [1, 2, 32, 33, 64, 65, 1000, 65_536])
def test_equal_scores_add_up_in_32_bits(classes):
    assert classes << 26 - headroom(classes) <= 2**31
    found = fixed_probabilities(np.zeros((1, classes), np.int64), make_scale(1.0))
    assert np.abs(found / ONE - 1 / classes).max() <= 0.5 / ONE


@given(integer_scores(), st.integers(0, 5000))
def test_margins_and_labels_of_integers(scores, margin):
    ordered = np.sort(scores, axis=1)
    exact = ordered[:, -1] - ordered[:, -2] if scores.shape[1] > 1 else np.full(4, LARGEST)
    np.testing.assert_array_equal(score_margins(scores), np.minimum(exact, LARGEST))
    labels = labels_or(scores, margin, 9999)
    np.testing.assert_array_equal(labels, np.where(exact >= margin, scores.argmax(axis=1), 9999))


def test_margins_of_floats_are_single_precision():
    scores = np.array([[1.0, 0.9, -5.0], [0.1, 0.1, 0.0]], dtype=np.float32)
    assert score_margins(scores).tolist() == [float(np.float32(1.0) - np.float32(0.9)), 0.0]
    assert labels_or(scores, 0.05, 7).tolist() == [0, 7]
    assert labels_or(scores, 0.0, 7).tolist() == [0, 0]
