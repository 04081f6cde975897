"""Class probabilities in fixed point, and margins between scores: the meaning that exported code must have.

A probability is a softmax of scores over a temperature. The difference of a score to the best one becomes an exponent
``z`` of two with 16 fractional bits: an integer difference by an integer multiplication and a shift, a float difference
by one multiplication in single precision. ``2**-z`` comes from a table of 33 entries with linear interpolation. A
division makes the powers of two probabilities in units of ``2**-15``.
"""

import math
from dataclasses import dataclass

import numpy as np

ONE = 2**15  # the probability of 1
STEPS = 32  # entries of the table from 1 down to 1/2
POWERS = np.rint(ONE * np.exp2(-np.arange(STEPS + 1) / STEPS)).astype(np.uint16)
FRACTION = 16  # bits of an exponent behind the point
LOW = FRACTION - STEPS.bit_length() + 1  # bits of an exponent between two entries of the table
BITS = LOW + ONE.bit_length() - 1  # ``2**-z`` is in units of ``2**-BITS``
LARGEST = 2**31 - 1
LARGEST_FLOAT = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class IntegerScale:
    """How a difference ``d`` of integer scores becomes an exponent: ``d * multiplier >> shift``."""

    multiplier: int
    shift: int


def make_scale(unit: float | None, temperature: float = 1.0) -> IntegerScale | np.float32:
    """Return the scale of scores in units of so many nats; `unit` is None for scores that are floats in nats."""
    factor = (1.0 if unit is None else unit) * 2**FRACTION / (temperature * math.log(2))
    if unit is None:
        return np.float32(factor)
    if factor >= 2**FRACTION:  # differences are so coarse that their multiples are exact enough
        return IntegerScale(min(round(factor), last_exponent(1)), 0)
    shift = FRACTION - math.ceil(math.log2(factor))
    if shift > 47:  # no difference of 32 bits matters
        return IntegerScale(0, 0)
    return IntegerScale(round(math.ldexp(factor, shift)), shift)


def headroom(classes: int) -> int:
    """Return the bits by which powers of two are shifted down, so that the sum over all classes is at most 2**31."""
    return max(0, (classes - 1).bit_length() - (31 - BITS))


def last_exponent(classes: int) -> int:
    """Return the exponent whose power of two is rounded down to zero; larger ones are reduced to it."""
    return (BITS + 1 - headroom(classes)) << FRACTION


def reduction(classes: int) -> int:
    """Return the bits by which powers of two and their sum are shifted down before the division."""
    return max(0, BITS - FRACTION - headroom(classes))


def probability_error(classes: int) -> float:
    """Return a bound of the error of a probability, against the exact softmax of the same scores.

    In units of ``2**-15``: interpolation, rounded entries and rounded exponents change a power of two by a share from
    -3.1e-5 to 1.0e-4, which changes a probability by a quarter of the range at most, 1.1 units. The rounded multiplier
    adds 0.2, and the shifts before the division 0.5 each in opposite directions, rounding 0.5. Every power of two is
    rounded down, by at most a unit of the last place.
    """
    return (2.3 + math.ldexp(classes, headroom(classes) - BITS + 15)) / ONE


def fixed_probabilities(scores: np.ndarray, scale: IntegerScale | np.float32) -> np.ndarray:
    """Return the probabilities of classes in units of ``2**-15``, as ``NAME_probabilities`` of a program does.

    Parameters
    ----------
    scores
        Integers of 32 bits, or float32, shape (rows, classes). Equal scores of minus infinity are equally probable.
    scale
        The result of `make_scale`, for integers or for floats.

    Returns
    -------
    ndarray of uint16, shape (rows, classes)
    """
    classes = scores.shape[1]
    last = last_exponent(classes)
    if isinstance(scale, IntegerScale):
        scores = scores.astype(np.int64)
        z = np.minimum((scores.max(axis=1, keepdims=True) - scores) * scale.multiplier >> scale.shift, last)
    else:
        scores = scores.astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            z = np.minimum(_differences(scores.max(axis=1, keepdims=True), scores) * scale, last).astype(np.int64)
    entry, rest = z >> LOW & STEPS - 1, z & 2**LOW - 1
    high, low = POWERS[entry].astype(np.int64), POWERS[entry + 1].astype(np.int64)
    weight = (high << LOW) - (high - low) * rest >> (z >> FRACTION) + headroom(classes)
    down = reduction(classes)
    total = weight.sum(axis=1, keepdims=True) >> down
    return (((weight >> down) * ONE + total // 2) // total).astype(np.uint16)


def score_margins(scores: np.ndarray) -> np.ndarray:
    """Return the difference between the best and the second-best score of each row, as ``NAME_margin`` does.

    It is an integer of at most 2**31 - 1, or a float32 of at most the largest finite one. A single class has the
    largest value.
    """
    integers = scores.dtype.kind in "iu"
    most = LARGEST if integers else np.float32(LARGEST_FLOAT)
    scores = scores.astype(np.int64 if integers else np.float32)
    if scores.shape[1] < 2:
        return np.full(len(scores), most)
    second, best = np.partition(scores, -2, axis=1)[:, -2:].T
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.minimum(best - second if integers else _differences(best, second), most))


def labels_or(scores: np.ndarray, margin: float, otherwise: int) -> np.ndarray:
    """Return the labels of rows, or `otherwise` where the margin is smaller, as ``NAME_predict_or`` does."""
    threshold = margin if scores.dtype.kind in "iu" else np.float32(margin)
    return np.where(score_margins(scores) < threshold, otherwise, scores.argmax(axis=1))


def _differences(best: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Subtract in single precision; equal infinities differ by nothing."""
    return np.where(best > scores, best - scores, np.float32(0))
