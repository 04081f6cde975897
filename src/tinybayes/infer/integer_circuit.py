"""Circuits in integers, as a device without floats computes them: the meaning that exported code must have.

A value is a pair (m, e) for ``m * 2**e``, with ``2**31 <= m < 2**32``, or m = 0 for zero. Products and sums cut off
what does not fit into 32 bits, so that each of them has a relative error below ``2**-30``, and nothing ever underflows.
"""

from dataclasses import dataclass

import numpy as np

from tinybayes.errors import error
from tinybayes.model import Circuit
from tinybayes.model.circuit import INDICATOR, PARAMETER, PRODUCT

ONE = np.uint64(1 << 31), np.int64(-31)
UNIT = 16  # posteriors are whole multiples of 2**-16
BLOCK = 2**13  # rows, times states of the query, whose values are computed at a time

Number = tuple[np.ndarray, np.ndarray]  # mantissas (uint64, below 2**32) and exponents (int64)


@dataclass(frozen=True)
class Analysis:
    """Bounds on all values that a circuit can take, whatever the evidence."""

    low: float  # bounds of the binary logarithm of every nonzero value, intermediate products included
    high: float
    roundings: int  # a bound on the number of roundings behind a value of the root


def analyse(circuit: Circuit) -> Analysis:
    """Bound the values of a circuit and count their roundings, by one pass from the leaves to the root.

    All values are sums and products of numbers that are not negative, so that relative errors never grow but by
    adding up: a product has those of all its factors, a sum at most those of its worst term.
    """
    low, high = np.zeros(circuit.n_nodes), np.zeros(circuit.n_nodes)
    least = most = 0.0
    count = np.zeros(circuit.n_nodes, dtype=np.int64)
    with np.errstate(divide="ignore"):
        parameter = circuit.log_parameters / np.log(2.0)
    for n in range(circuit.n_nodes):
        kind, below = circuit.kind[n], circuit.children[circuit.offsets[n] : circuit.offsets[n + 1]]
        if kind == PARAMETER:
            low[n] = high[n] = parameter[circuit.leaf[n]]
            count[n] = 1
            low[n] = 0.0 if np.isneginf(low[n]) else low[n]  # zero needs no room
        elif kind == PRODUCT:
            # Also the products of the first few factors have to fit.
            least, most = min(least, float(np.cumsum(low[below]).min())), max(most, float(np.cumsum(high[below]).max()))
            low[n], high[n], count[n] = low[below].sum(), high[below].sum(), count[below].sum() + len(below) - 1
        elif kind != INDICATOR:
            top = float(high[below].max())
            high[n] = top + np.log2(np.exp2(high[below] - top).sum()) if np.isfinite(top) else top
            low[n], count[n] = low[below].min(), count[below].max() + len(below) - 1
    return Analysis(min(least, float(low.min())), max(most, float(high.max())), int(count[-1]))


def integer_posterior(circuit: Circuit, X: np.ndarray, query: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior of a variable in units of ``2**-16``, and the most probable state, for rows of evidence.

    Parameters
    ----------
    circuit
        The circuit.
    X
        Codes of all nodes, -1 where unknown; the column of the query is ignored.
    query
        The index of the queried variable.

    Returns
    -------
    posterior : ndarray of int64, shape (rows, states)
        Zero everywhere when the evidence is impossible.
    state : ndarray of int64
        The first of the most probable states.
    """
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != len(circuit.nodes):
        raise error(f"rows of {len(circuit.nodes)} codes", f"shape {X.shape}", where="evidence")
    states = circuit.nodes[query].cardinality
    values = _joint(circuit, X, query, states)
    total = values[0]
    for value in values[1:]:
        total = add(total, value)
    posterior = np.stack([_share(value, total) for value in values], axis=1)
    best, top = np.zeros(len(X), dtype=np.int64), values[0]
    for state in range(1, states):
        larger = _above(values[state], top)
        best = np.where(larger, state, best)
        top = np.where(larger, values[state][0], top[0]), np.where(larger, values[state][1], top[1])
    return posterior, best


def encode(log_value: float) -> tuple[int, int]:
    """Return the pair nearest to a number given by its logarithm."""
    if np.isneginf(log_value):
        return 0, 0
    exponent = int(np.floor(log_value / np.log(2.0))) - 31
    mantissa = round(float(np.exp(log_value - exponent * np.log(2.0))))
    if mantissa < 1 << 31:  # the logarithm was rounded
        mantissa, exponent = mantissa * 2, exponent - 1
    return (mantissa, exponent) if mantissa < 1 << 32 else (mantissa // 2, exponent + 1)


def multiply(a: Number, b: Number) -> Number:
    """Multiply; what falls below the last bit is cut off."""
    product = a[0] * b[0]
    large = product >= np.uint64(1 << 63)
    mantissa = np.where(large, product >> np.uint64(32), product >> np.uint64(31))
    exponent = np.where(mantissa == 0, 0, a[1] + b[1] + np.where(large, 32, 31))
    return mantissa, exponent


def add(a: Number, b: Number) -> Number:
    """Add; what falls below the last bit is cut off."""
    swap = (b[0] != 0) & ((a[0] == 0) | (b[1] > a[1]))
    high = np.where(swap, b[0], a[0]), np.where(swap, b[1], a[1])
    low = np.where(swap, a[0], b[0]), np.where(swap, a[1], b[1])
    distance = np.where(low[0] == 0, 0, high[1] - low[1])
    total = high[0] + np.where(distance > 31, np.uint64(0), low[0] >> np.minimum(distance, 31).astype(np.uint64))
    over = total >= np.uint64(1 << 32)
    return np.where(over, total >> np.uint64(1), total), high[1] + over


def _joint(circuit: Circuit, X: np.ndarray, query: int, states: int) -> list[Number]:
    """Return the value of the circuit for all rows, with each state of the query in place of what a row says of it."""
    step = max(1, BLOCK // states)
    parts = []
    for start in range(0, max(1, len(X)), step):
        rows = X[start : start + step]
        evidence = np.tile(rows.astype(np.int64), (states, 1))
        evidence[:, query] = np.repeat(np.arange(states), len(rows))
        parts.append([part.reshape(states, -1) for part in _root(circuit, evidence)])
    mantissa, exponent = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
    return list(zip(mantissa, exponent, strict=True))


def _root(circuit: Circuit, X: np.ndarray) -> Number:
    rows = len(X)
    first, values = circuit.first_state, {}
    owner = np.repeat(np.arange(len(circuit.nodes)), np.diff(first))
    uses = np.bincount(circuit.children, minlength=circuit.n_nodes)
    for n in range(circuit.n_nodes):
        kind, leaf = circuit.kind[n], circuit.leaf[n]
        if kind == PARAMETER:
            m, e = encode(float(circuit.log_parameters[leaf]))
            values[n] = np.full(rows, m, np.uint64), np.full(rows, e, np.int64)
        elif kind == INDICATOR:
            variable, code = owner[leaf], leaf - first[owner[leaf]]
            seen = X[:, variable]
            true = (seen < 0) | (seen == code)
            values[n] = np.where(true, ONE[0], np.uint64(0)), np.where(true, ONE[1], 0)
        else:
            below = circuit.children[circuit.offsets[n] : circuit.offsets[n + 1]]
            value = values[below[0]]
            for child in below[1:]:
                value = (multiply if kind == PRODUCT else add)(value, values[child])
            values[n] = value
            for child in below:
                uses[child] -= 1
                if uses[child] == 0:
                    del values[child]
    return values[circuit.n_nodes - 1]


def _above(a: Number, b: Number) -> np.ndarray:
    """Return where a is larger than b."""
    same = a[1] == b[1]
    return (a[0] != 0) & ((b[0] == 0) | np.where(same, a[0] > b[0], a[1] > b[1]))


def _share(value: Number, total: Number) -> np.ndarray:
    quotient = (value[0] << np.uint64(UNIT)) // np.maximum(total[0], np.uint64(1))
    down = np.where(value[0] == 0, 0, total[1] - value[1])
    shifted = quotient >> np.clip(down, 0, 63).astype(np.uint64)
    return np.where((value[0] == 0) | (down > 63), np.uint64(0), shifted).astype(np.int64)
