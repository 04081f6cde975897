"""Scores in integers, as a device without floats computes them: the meaning that exported code must have."""

import math
from dataclasses import dataclass

import numpy as np

from tinybayes._kernels.gaps import PRECISE as PRECISE
from tinybayes._kernels.gaps import STEPS, forest_integers
from tinybayes._kernels.scores import ForestLayout
from tinybayes._kernels.threads import for_blocks
from tinybayes.errors import error
from tinybayes.infer.scorer import BLOCK, forest_parents, scorer
from tinybayes.model import BayesNet, Codebook, Fixed

LARGEST = 2**31 - 1
FINEST = 20  # the largest fraction of rounded levels
MAX_FRACTION = 26  # beyond it the products of `log_add` exceed 32 bits

# One addition of `_kernels.gaps.log_add` gives at most so much too much. Interpolation: a chord over 1/4 nat of a
# function with second derivative of at most 1/4. Distance: cut off to 2**-10 nats, slope of at most 1/2.
# Rounding: 1/2 unit of the table's entries, less than 1 unit of the product. The error in the other direction is
# smaller: log(1 + exp(-8)) = 0.0003 nats beyond the table, and 1/2 unit.
INTERPOLATION, DISTANCE, ROUNDING = 1 / 512, 2.0**-11, 1.5


@dataclass(frozen=True, eq=False)
class GapArithmetic:
    """How missing values are summed out in integers, in Python and in every exported program alike.

    Scores of all rows are in units of ``2**-fraction`` nats. `tinybayes._kernels.gaps` has the upward pass over the
    forest of features, and `log_add`, which adds two probabilities. Every sum, difference and product fits in a signed
    integer of 32 bits.

    Parameters
    ----------
    fraction
        Of the unit of scores.
    shift
        By how many bits a code of a `Fixed` format is shifted up; sums of complete rows likewise. Zero for codebooks.
    table
        ``log(1 + exp(-i / 4))`` for i = 0, ..., 31, rounded to the unit of scores, then a zero.
    levels
        The integers of a codebook's levels; None for a `Fixed` format.
    lowest
        No row with a positive probability has a lower score.
    """

    fraction: int
    shift: int
    table: np.ndarray
    levels: np.ndarray | None
    lowest: int

    def entries(self, codes: np.ndarray) -> np.ndarray:
        """Return what codes add to a score."""
        return -(codes.astype(np.int64) << self.shift) if self.levels is None else self.levels[codes]

    @property
    def error(self) -> float:
        """A bound of the error of one `log_add` in nats; a missing feature of k states takes k - 1 of them.

        The errors of several additions add up: a sum of probabilities passes on an error of its terms undiminished at
        worst.
        """
        return INTERPOLATION + (DISTANCE if self.fraction > PRECISE else 0.0) + math.ldexp(ROUNDING, -self.fraction)


def gap_arithmetic(net: BayesNet) -> GapArithmetic | None:
    """Return how a network sums out missing values in integers; None for networks that do not.

    These are structures other than a forest of features below the class, tables that are not all in one `Fixed` format
    or one `Codebook`, and rare formats whose sums could exceed 32 bits.
    """
    formats = {cpd.format for cpd in net.cpds}
    form = next(iter(formats))
    if forest_parents(net) is None or len(formats) > 1 or not isinstance(form, Fixed | Codebook):
        return None
    if isinstance(form, Fixed):
        levels, reach = None, sum(int(cpd.table.max()) for cpd in net.cpds)
        room = (2**30 // max(reach, 1)).bit_length() - 1
        shift = max(0, min(room, PRECISE - form.fraction))
        fraction, lowest = form.fraction + shift, -(reach << shift)
    else:
        (levels, fraction), shift = integer_levels(net), 0
        lowest = len(net.cpds) * int(levels[np.isfinite(form.values)].min(initial=0))
    if fraction > MAX_FRACTION:
        return None
    steps = np.log1p(np.exp(-np.arange(STEPS) / 4))
    table = np.append(np.rint(np.ldexp(steps, fraction)), 0).astype(np.int64)
    rule = GapArithmetic(fraction, shift, table, levels, lowest)
    return rule if _fits(net, rule) else None


def _fits(net: BayesNet, rule: GapArithmetic) -> bool:
    """Tell whether all sums and their differences fit in 32 bits, and impossible rows are below possible ones."""
    entries = [rule.entries(cpd.table) for cpd in net.cpds]
    nats, units = _gain(net)
    gain = math.ceil(math.ldexp(nats, rule.fraction) + units)
    above = sum(max(0, int(part.max())) for part in entries) + gain
    below = sum(max(0, -int(part.min())) for part in entries)
    least = min(int(part.min()) for part in entries)  # below `lowest` only where it stands for minus infinity
    return above + below <= LARGEST and (least >= rule.lowest or least + above < rule.lowest)


def _gain(net: BayesNet) -> tuple[float, float]:
    """Bound by how much summing out all features lifts a score above its largest term: in nats, and in units."""
    states = np.array([v.cardinality for v in net.variables], dtype=np.int64)
    additions = float((states - 1).sum())
    return float(np.log(states).sum()) + (INTERPOLATION + DISTANCE) * additions, ROUNDING * additions


def integer_levels(net: BayesNet) -> tuple[np.ndarray, int]:
    """Round the levels of a codebook as finely as 32-bit sums allow, but not more finely than ``2**-20`` nats.

    Returns the rounded levels and the fraction: a unit is ``2**-fraction`` nats. The sums have room for missing values
    that are summed out. A level of minus infinity becomes a number so low that a score with one of them is below all
    scores without.
    """
    book = only_format(net)
    if not isinstance(book, Codebook):
        raise error("one codebook in all tables", str(book), where="integer levels", remedy="tie the network")
    levels, tables = np.array(book.values), len(net.cpds)
    finite = np.isfinite(levels)
    low, high = (float(bound) for bound in (levels[finite].min(initial=0.0), levels[finite].max(initial=0.0)))
    nats, units = _gain(net)
    room = LARGEST // (1 if finite.all() else tables + 1)
    reach = max(tables * high - tables * low + nats, 2.0**-30)
    # Rounding takes a part of the room, where there is room: an export without gaps needs none for sums over states.
    fraction = min(math.floor(math.log2(max(room - tables - units, room / 2) / reach)), FINEST)
    rounded = np.where(finite, np.rint(np.ldexp(np.where(finite, levels, 0.0), fraction)), -room)
    return rounded.astype(np.int64), fraction


def integer_log_joint(net: BayesNet, X: np.ndarray, *, gaps: bool = False) -> tuple[np.ndarray, int]:
    """Return ``log p(x, c)`` in integers, the largest winning, and the fraction: a unit is ``2**-fraction`` nats.

    Parameters
    ----------
    net
        A classifier whose tables all have one `Fixed` format, or one `Codebook`.
    X
        Rows of codes.
    gaps
        Whether values may be missing (-1). All scores, also those of complete rows, are then in the unit of
        `gap_arithmetic`, as in an exported program that handles gaps. Without it, rows must be complete.
    """
    form = only_format(net)
    score = scorer(net)
    if gaps:
        forest = integer_forest(net)
        if forest is None:
            score.lay_out_forest(score.tables)  # raises unless the structure is a forest
            expected = "one Fixed format or one codebook, and sums below 2**31"
            raise error(expected, str(form), where="rows with missing values", remedy="quantise to fewer bits")
        return forest.sums(score.check(X)), forest.arithmetic.fraction
    if isinstance(form, Fixed):
        return -score.integers(X, score.layout), form.fraction
    levels, fraction = integer_levels(net)
    return score.integers(X, score.lay_out([levels[cpd.table] for cpd in net.cpds])), fraction


@dataclass(frozen=True, eq=False)
class IntegerForest:
    """A network laid out for summing out missing values in integers."""

    arithmetic: GapArithmetic
    layout: ForestLayout
    classes: int

    def sums(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of checked rows in integers."""
        out = np.empty((len(X), self.classes), dtype=np.int64)
        rule = (self.layout, self.arithmetic.fraction, self.arithmetic.table)
        for_blocks(lambda start, stop: forest_integers(X[start:stop], *rule, out[start:stop]), len(X), BLOCK)
        return out

    def nats(self, sums: np.ndarray) -> np.ndarray:
        """Return scores in nats; minus infinity where the probability is zero."""
        scores = np.ldexp(sums.astype(np.float64), -self.arithmetic.fraction)
        return np.where(sums < self.arithmetic.lowest, -np.inf, scores)


def integer_forest(net: BayesNet) -> IntegerForest | None:
    """Return a network of `gap_arithmetic` laid out for it; it is cached on the network, which is immutable."""
    if "_integer_forest" not in net.__dict__:
        rule, score = gap_arithmetic(net), scorer(net)
        layout = None if rule is None else score.lay_out_forest([rule.entries(cpd.table) for cpd in net.cpds])
        forest = None if rule is None or layout is None else IntegerForest(rule, layout, score.classes)
        net.__dict__["_integer_forest"] = forest
    kept: IntegerForest | None = net.__dict__["_integer_forest"]
    return kept


def only_format(net: BayesNet) -> object:
    """Return the number format that all tables have; raise when there are several."""
    formats = {cpd.format for cpd in net.cpds}
    if len(formats) > 1:
        names = ", ".join(sorted(str(f) for f in formats))
        raise error("one number format in all tables", names, where="number formats", remedy="quantise the whole model")
    return formats.pop()
