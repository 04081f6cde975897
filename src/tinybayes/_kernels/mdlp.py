"""Cut points of one column by class entropy and description length (Fayyad and Irani, 1993).

A column comes as entries sorted by value; an entry is a value, a class code and a weight, and several
entries may share a value. Entropies are kept as sums of ``x log2 x``, updated entry by entry, so that memory
grows with the entries plus the classes and never with their product.

With ``f(x) = x log2 x``, a set of weight ``n`` with class weights ``n_c`` has the entropy
``(f(n) - sum f(n_c)) / n``: the scan below only ever adds differences of ``f``.
"""

import math

import numpy as np

from tinybayes._kernels import jit

# Costs closer than this, relative to N log2 N, count as equal, and the first of equal cuts wins. The rounding
# of the running sums stays well below it: 1e-13 at a million rows, 2e-12 at a hundred million.
TIE = 1e-11
# Each time the larger half waits and the smaller one is done first, so the waiting sets at least double.
DEPTH = 64


@jit
def _xlog2x(x: float) -> float:
    return x * math.log2(x) if x > 0.0 else 0.0


@jit
def _boundaries(value: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Mark the entries that start a new value at a boundary point.

    The gap between two neighbouring values is none when all rows at both of them are of one and the same
    class; the cut of least entropy never lies there (Fayyad and Irani, theorem 1).
    """
    size = value.size
    boundary = np.zeros(size + 1, np.bool_)
    before = -2  # the one class of the value before; -1: several, -2: there is none
    start = 0
    while start < size:
        stop, only = start + 1, code[start]
        while stop < size and value[stop] == value[start]:
            if code[stop] != only:
                only = -1
            stop += 1
        boundary[start] = start > 0 and (only < 0 or only != before)
        before, start = only, stop
    return boundary


@jit
def _accepted(
    left: float, f_left: float, k_left: int, right: float, f_right: float, k_right: int, f_all: float, k: int
) -> bool:
    """Tell whether a cut saves more bits than it takes to describe it.

    The arguments are the weight, the sum of f over the classes and the number of classes, of the rows to the
    left and to the right; the weight of all is the sum of the two.
    """
    n = left + right
    bits_all, bits_left, bits_right = _xlog2x(n) - f_all, _xlog2x(left) - f_left, _xlog2x(right) - f_right
    # log2(3^k - 2), written so that hundreds of classes do not overflow.
    delta = k * math.log2(3.0) + math.log2(1.0 - 2.0 * 3.0 ** (-k))
    delta -= k * bits_all / n - k_left * bits_left / left - k_right * bits_right / right
    # With fractional weights N - 1 can fall below one; naming the cut then costs nothing, not less.
    return bits_all - bits_left - bits_right > math.log2(max(n - 1.0, 1.0)) + delta


@jit
def _count(
    start: int, stop: int, code: np.ndarray, weight: np.ndarray, side: np.ndarray, rows: np.ndarray
) -> tuple[float, float, int]:
    """Put all entries on the right side; return their weight, their sum of f and their number of classes."""
    side[:] = 0.0
    rows[:] = 0
    for i in range(start, stop):
        side[1, code[i]] += weight[i]
        rows[1, code[i]] += 1
    total, f_total, present = 0.0, 0.0, 0
    for c in range(side.shape[1]):
        total += side[1, c]
        f_total += _xlog2x(side[1, c])
        present += rows[1, c] > 0
    return total, f_total, present


@jit
def _best_cut(
    start: int,
    stop: int,
    boundary: np.ndarray,
    code: np.ndarray,
    weight: np.ndarray,
    side: np.ndarray,
    rows: np.ndarray,
    fallback: bool,
) -> int:
    """Return where to split the entries start..stop, or -1 where they stay together.

    `side` and `rows` are scratch of shape (2, classes): weight and entries of each class, left and right.
    Presence of a class is told by its entries, since sums of fractional weights need not return to zero.
    """
    n, f_all, k = _count(start, stop, code, weight, side, rows)
    if k < 2 or n <= 1.0:
        return -1
    left, f_left, k_left, f_right, k_right = 0.0, 0.0, 0, f_all, k
    best, cut, tie = math.inf, -1, TIE * _xlog2x(n + 1.0)
    for i in range(start, stop):
        right = n - left
        if boundary[i] and i > start and right > 0.0:  # rounding can leave no weight beside huge ones
            cost = _xlog2x(left) - f_left + _xlog2x(right) - f_right
            if cost < best - tie:
                accepted = _accepted(left, f_left, k_left, right, f_right, k_right, f_all, k)
                if accepted or not fallback:
                    best, cut = cost, i if accepted else -1
        c, w = code[i], weight[i]
        rows[0, c] += 1
        rows[1, c] -= 1
        k_left += rows[0, c] == 1
        k_right -= rows[1, c] == 0
        more = side[0, c] + w
        less = side[1, c] - w if rows[1, c] else 0.0
        f_left += _xlog2x(more) - _xlog2x(side[0, c])
        f_right += _xlog2x(less) - _xlog2x(side[1, c])
        side[0, c], side[1, c] = more, less
        left += w
    return cut


@jit
def _between(low: float, high: float) -> float:
    """Return the midpoint of low < high; high itself where no number lies between them."""
    middle = low / 2.0 + high / 2.0
    return middle if low < middle <= high else high


@jit
def cut_points(value: np.ndarray, code: np.ndarray, weight: np.ndarray, n_classes: int, fallback: bool) -> np.ndarray:
    """Return the increasing cut points of a column.

    Parameters
    ----------
    value
        Finite numbers, sorted (float64).
    code
        The class of each entry, 0 .. n_classes - 1 (int32).
    weight
        The positive weight of each entry (float64); a weight of 3 counts as three rows.
    n_classes
        The number of classes.
    fallback
        False: a set is cut at its cut of least entropy, or not at all. True: when that cut is not accepted,
        the accepted one of least entropy is taken instead.
    """
    boundary = _boundaries(value, code)
    side = np.empty((2, n_classes), np.float64)
    rows = np.empty((2, n_classes), np.int64)
    chosen = np.zeros(value.size + 1, np.bool_)
    waiting = np.empty((DEPTH, 2), np.int64)
    waiting[0] = 0, value.size
    depth = 1
    while depth:
        depth -= 1
        start, stop = waiting[depth]
        cut = _best_cut(start, stop, boundary, code, weight, side, rows, fallback)
        if cut < 0:
            continue
        chosen[cut] = True
        smaller_last = cut - start > stop - cut
        waiting[depth + 1 - smaller_last] = start, cut
        waiting[depth + smaller_last] = cut, stop
        depth += 2
    index = np.flatnonzero(chosen)
    cuts = np.empty(index.size, np.float64)
    for j in range(index.size):
        cuts[j] = _between(value[index[j] - 1], value[index[j]])
    return cuts
