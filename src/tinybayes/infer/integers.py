"""Scores in integers, as a device without floats computes them: the meaning that exported code must have."""

import math

import numpy as np

from tinybayes.errors import error
from tinybayes.infer.scores import integer_scores, scorer
from tinybayes.model import BayesNet, Codebook, Fixed

LARGEST = 2**31 - 1


def integer_levels(net: BayesNet) -> tuple[np.ndarray, int]:
    """Round the levels of a codebook as finely as 32-bit sums of all tables allow; a unit is ``2**-fraction`` nats.

    Returns the rounded levels and the fraction. A level of minus infinity becomes a number so low that one of them
    outweighs all others together.
    """
    book = only_format(net)
    if not isinstance(book, Codebook):
        raise error("one codebook in all tables", str(book), where="integer levels", remedy="tie the network")
    levels, tables = np.array(book.values), len(net.cpds)
    finite = np.isfinite(levels)
    largest = max(float(np.abs(levels[finite]).max(initial=0.0)), 2.0**-30)
    reach = tables * largest * (1 if finite.all() else tables + 1)
    fraction = math.floor(math.log2((LARGEST - tables) / reach))
    lowest = -(LARGEST // tables)
    rounded = np.where(finite, np.rint(np.ldexp(np.where(finite, levels, 0.0), fraction)), lowest)
    return rounded.astype(np.int64), fraction


def integer_log_joint(net: BayesNet, X: np.ndarray) -> tuple[np.ndarray, int]:
    """Return ``log p(x, c)`` in integers, the largest winning, and the fraction: a unit is ``2**-fraction`` nats.

    Parameters
    ----------
    net
        A classifier whose tables all have one `Fixed` format, or one `Codebook`.
    X
        Complete rows of codes.
    """
    form = only_format(net)
    if isinstance(form, Fixed):
        return -integer_scores(net, X), form.fraction
    levels, fraction = integer_levels(net)
    layout = scorer(net).lay_out([levels[cpd.table] for cpd in net.cpds])
    return scorer(net).integers(X, layout), fraction


def only_format(net: BayesNet) -> object:
    """Return the number format that all tables have; raise when there are several."""
    formats = {cpd.format for cpd in net.cpds}
    if len(formats) > 1:
        names = ", ".join(sorted(str(f) for f in formats))
        raise error("one number format in all tables", names, where="number formats", remedy="quantise the whole model")
    return formats.pop()
