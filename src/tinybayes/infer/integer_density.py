"""Log-likelihoods in integers, as a device without floats computes them: the meaning that exported code must have.

Values are logarithms in units of ``2**-fraction`` nats, so that products are sums, and every number fits in 32 bits.
Sums of probabilities are added one by one: the larger logarithm, and a correction that is interpolated in a table.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tinybayes.errors import error
from tinybayes.infer.circuit import checked_rows
from tinybayes.infer.density_layout import LEAF, TIMES, Layout, lay_out
from tinybayes.model import Circuit

FINEST, COARSEST = 16, 8  # fractions
STEP = 4  # a step of the table is 2**-4 nats
REACH = 10  # nats: a smaller summand that is so far below changes nothing
# One `log_add` errs by at most so much. Interpolation: a chord over a step of a function with second derivative of at
# most 1/4 is up to h**2 / 32 above it; entries are lowered by half of that. Beyond the table: log(1 + exp(-10)).
# Rounding: 1/2 unit of the entries, 1/2 unit of the product. A test enumerates all distances.
INTERPOLATION, ROUNDING = 2.0 ** (-2 * STEP - 6) * 1.01, 1.0
ZERO = -(2**30)  # the logarithm of zero, and of what is below half of it
LEVELS = 256  # at most so many distinct parameters are numbers of levels, of 4 bytes each, if that is less memory
SPARE = 1e-9  # nats: roundings of doubles


@dataclass(frozen=True, eq=False)
class Density:
    """A circuit in integers.

    Parameters
    ----------
    layout
        The groups in the order of work.
    fraction
        Of the unit.
    levels
        The distinct parameters in units; None where 16 bits for each parameter take less memory.
    high, shift
        Without levels a parameter is ``high - (code << shift)``, and `ZERO` for the code 65535.
    codes
        Codes of the parameters of each group.
    constant
        Added to the last slot.
    """

    layout: Layout
    fraction: int
    levels: np.ndarray | None
    high: int
    shift: int
    codes: tuple[np.ndarray, ...]
    constant: int

    def worth(self, codes: np.ndarray) -> np.ndarray:
        """Return parameters in units."""
        if self.levels is not None:
            return self.levels[codes]
        return np.where(codes == 2**16 - 1, ZERO, self.high - (codes << self.shift))

    @property
    def zeros(self) -> bool:
        """Whether a parameter is zero."""
        return self.constant == ZERO or any(bool(np.isneginf(g.parameters).any()) for g in self.layout.groups)

    @cached_property
    def sums_to_one(self) -> bool:
        """Whether the parameters of every leaf sum to one, so that a missing value adds nothing."""
        leaves = [group.parameters for group in self.layout.groups if group.kind == LEAF]
        return all(bool((np.abs(np.logaddexp.reduce(logs, axis=1)) < SPARE).all()) for logs in leaves)

    @cached_property
    def table(self) -> np.ndarray:
        """``log(1 + exp(-d))`` in units, for every step, lowered by half of what interpolation gives too much."""
        return _table(self.fraction)

    @cached_property
    def bound(self) -> float:
        """A bound of the error of a log-likelihood in nats, whatever is missing.

        A sum of probabilities passes on at most the largest error of its terms, a product the sum of those of its
        factors; each `log_add` and each parameter brings its own.
        """
        add = INTERPOLATION + math.ldexp(ROUNDING, -self.fraction)
        own = SPARE + math.ldexp(0.5, (0 if self.levels is not None else self.shift) - self.fraction)
        error = np.zeros(self.layout.slots)
        for group in self.layout.groups:
            span = slice(group.slot, group.slot + group.repeat)
            terms = group.parameters.shape[1]
            if group.kind == LEAF:
                error[span] = own + (0.0 if self.sums_to_one else (terms - 1) * add)
            elif group.kind == TIMES:
                error[span] = sum(error[o : o + group.repeat].copy() for o in group.operands)
            else:
                error[span] = own + error[list(group.operands)].max() + (terms - 1) * add
        return float(error[self.layout.root] if self.layout.groups else 0.0) + math.ldexp(0.5, -self.fraction)


def level_bits(levels: int) -> int:
    """Return the bits of the number of a level: as many fit in a byte without a rest."""
    return next(bits for bits in (1, 2, 4, 8) if levels <= 1 << bits)


def integer_density(circuit: Circuit) -> Density:
    """Return a circuit in integers, in the finest unit for which every sum fits in 32 bits."""
    kept: Density | None = circuit.__dict__.get("_integer_density")
    if kept is None:
        kept = circuit.__dict__["_integer_density"] = _in_integers(lay_out(circuit))
    return kept


def integer_log_likelihood(circuit: Circuit, X: np.ndarray) -> np.ndarray:
    """Return the log-likelihood of rows in units of ``2**-fraction`` nats (see `integer_density`), int64.

    Codes below zero are missing and summed out. Rows that are impossible have `ZERO`.
    """
    density, X = integer_density(circuit), checked_rows(circuit, X)
    layout, zeros = density.layout, density.zeros
    slots = np.zeros((layout.slots, len(X)), dtype=np.int64)
    for group, codes in zip(layout.groups, density.codes, strict=True):
        span = slice(group.slot, group.slot + group.repeat)
        if group.kind == TIMES:
            value = np.zeros((group.repeat, len(X)), dtype=np.int64)
            for operand in group.operands:
                value = value + slots[operand : operand + group.repeat]
                value = np.maximum(value, ZERO) if zeros else value
        else:
            worth = density.worth(codes)
            if group.kind == LEAF:
                seen = X[:, group.operands[0]].astype(np.int64)
                value = np.where(seen >= 0, worth[:, np.maximum(seen, 0)], 0)
                if not density.sums_to_one:
                    total = _sum(density, [column[:, None] for column in worth.T])
                    value = np.where(seen >= 0, value, total)
            else:
                pairs = zip(worth.T, group.operands, strict=True)
                terms = [column[:, None] + slots[operand] for column, operand in pairs]
                value = _sum(density, [np.maximum(term, ZERO) for term in terms] if zeros else terms)
        slots[span] = value
    last = slots[layout.root] if layout.groups else np.zeros(len(X), dtype=np.int64)
    result = last + density.constant
    return np.where(result < ZERO // 2, ZERO, result) if zeros else result


def log_add(a: np.ndarray, b: np.ndarray, fraction: int) -> np.ndarray:
    """Return ``log(exp(a) + exp(b))`` of integers in units of ``2**-fraction`` nats."""
    table, bits = _table(fraction), fraction - STEP
    high, distance = np.maximum(a, b), np.abs(a - b)
    near = np.minimum(distance, (REACH << fraction) - 1)
    step = near >> bits
    below = (table[step] - table[step + 1]) * (near & ((1 << bits) - 1)) + (1 << bits - 1)
    return np.where(distance < REACH << fraction, high + table[step] - (below >> bits), high)


def _sum(density: Density, terms: list[np.ndarray]) -> np.ndarray:
    value = terms[0]
    for term in terms[1:]:
        value = log_add(value, term, density.fraction)
    return value


@lru_cache
def _table(fraction: int) -> np.ndarray:
    distance = np.arange((REACH << STEP) + 1) / 2**STEP
    power = np.exp(-distance)
    curve = power / (1 + power) ** 2  # the second derivative
    lowered = np.log1p(power) - curve * 2.0 ** (-2 * STEP - 4)
    return np.maximum(np.rint(np.ldexp(lowered, fraction)), 0).astype(np.int64)


def _in_integers(layout: Layout) -> Density:
    logs = [group.parameters.ravel() for group in layout.groups]
    values, number = np.unique(np.concatenate([*logs, np.empty(0)]), return_inverse=True)
    finite = values[np.isfinite(values)]
    if np.isneginf(layout.constant) or not len(finite):
        finite = np.append(finite, 0.0)
    fraction = _fraction(layout, zeros=bool(np.isneginf(values).any()))
    high = max(0.0, float(finite.max()))
    if len(values) <= LEVELS and 4 * len(values) + number.size * level_bits(len(values)) / 8 <= 2 * number.size:
        units = np.rint(np.ldexp(np.maximum(values, -1e9), fraction))
        levels, shift, codes = np.where(np.isneginf(values), ZERO, units).astype(np.int64), 0, number
    else:
        span = high - float(finite.min())
        shift = max(0, fraction - math.floor(math.log2((2**16 - 2) / max(span, 2.0**-16))))
        units = np.rint(np.ldexp(high - np.maximum(values, float(finite.min())), fraction - shift)).astype(np.int64)
        levels, codes = None, np.where(np.isneginf(values), 2**16 - 1, units)[number]
    parts = np.split(codes, np.cumsum([part.size for part in logs]))[: len(logs)]
    shaped = tuple(part.reshape(group.parameters.shape) for part, group in zip(parts, layout.groups, strict=True))
    constant = ZERO if np.isneginf(layout.constant) else round(math.ldexp(layout.constant, fraction))
    return Density(layout, fraction, levels, round(math.ldexp(high, fraction)), shift, shaped, constant)


def _fraction(layout: Layout, *, zeros: bool) -> int:
    """Choose the unit by bounds of all values; raise where none fits."""
    low, high = np.zeros(layout.slots), np.zeros(layout.slots)
    least = most = 0.0
    for group in layout.groups:
        span, logs = slice(group.slot, group.slot + group.repeat), group.parameters
        if group.kind == TIMES:  # bounds of the products of the first few factors, too
            spans = [slice(o, o + group.repeat) for o in group.operands]
            under, above = np.sum([np.minimum(low[s], 0) for s in spans], axis=0), sum(high[s] for s in spans)
            low[span], high[span] = under, above
        else:
            at = list(group.operands) if group.kind != LEAF else []
            under = np.where(np.isneginf(logs), np.inf, logs) + (low[at] if at else 0.0)
            above = logs + (high[at] if at else 0.0)
            low[span] = np.where(np.isinf(under.min(axis=1)), 0.0, under.min(axis=1))
            with np.errstate(divide="ignore"):
                total = np.logaddexp.reduce(above, axis=1)
            high[span] = np.where(np.isneginf(total), 0.0, np.maximum(total, 0.0) + 0.001 * logs.shape[1])
        least, most = min(least, float(low[span].min())), max(most, float(high[span].max()))
    room = 2.0 ** (28 if zeros else 30)
    constant = layout.constant if np.isfinite(layout.constant) else 0.0
    reach = max(most - least + abs(constant), 1.0)  # of a difference
    if not reach <= room / 2.0**COARSEST:  # it may be infinite
        expected, remedy = f"log-likelihoods within {room / 2**COARSEST:,.0f} nats", "take fewer variables"
        raise error(expected, f"{-reach:,.0f}", where="circuit", remedy=remedy)
    return min(FINEST, math.floor(math.log2(room / reach)))
