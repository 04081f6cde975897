"""Counting by bits: in how many of the given rows each bit is set.

Sixteen rows are added at a time, 64 columns side by side: a full adder takes three words and returns, for each bit, how
many of the three have it, as a word of twos and a word of ones. What is left over stays in `planes` for the next
sixteen, so that only the sixteens are ever taken apart into single columns.

LearnAC counts the rows of a leaf this way if the table is dense. For sparse rows, and rows that stand for several
equal ones, lists of the uncommon states are faster. The choice is made once for a table, and both find the same
splits (benchmarks/leaf_counts.py).
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from tinybayes._kernels import plain

TOGETHER = 16  # rows


@intrinsic
def ones(typing_context, word):
    """Return the number of ones in a 64-bit word."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@plain
def _add(a, b, c):
    differ = a ^ b
    return (a & b) | (differ & c), differ ^ c


@plain
def _take_apart(words, shift, sums):
    """Add 2**shift to the sum of every column whose bit is set."""
    for w in range(len(words)):
        word = words[w]
        if word:
            for j in range(64):
                sums[64 * w + j] += np.int32((word >> np.uint64(j)) & np.uint64(1)) << shift


@plain
def _add_eight(rows, w, one, two, four):
    """Add a word of each of eight rows; return the eights, fours, twos and ones."""
    a, one = _add(one, rows[0][w], rows[1][w])
    b, one = _add(one, rows[2][w], rows[3][w])
    fours, two = _add(two, a, b)
    a, one = _add(one, rows[4][w], rows[5][w])
    b, one = _add(one, rows[6][w], rows[7][w])
    more, two = _add(two, a, b)
    eights, four = _add(four, fours, more)
    return eights, four, two, one


@plain
def _add_sixteen(bits, r, planes):
    """Add sixteen rows to the planes of ones, twos, fours and eights; the last plane becomes their sixteens."""
    first = bits[r[0]], bits[r[1]], bits[r[2]], bits[r[3]], bits[r[4]], bits[r[5]], bits[r[6]], bits[r[7]]
    last = bits[r[8]], bits[r[9]], bits[r[10]], bits[r[11]], bits[r[12]], bits[r[13]], bits[r[14]], bits[r[15]]
    for w in range(bits.shape[1]):
        a, four, two, one = _add_eight(first, w, planes[0, w], planes[1, w], planes[2, w])
        b, planes[2, w], planes[1, w], planes[0, w] = _add_eight(last, w, one, two, four)
        planes[4, w], planes[3, w] = _add(planes[3, w], a, b)


@plain
def count_bits_by_column(bits, rows, planes, sums):
    """Fill `sums` with the number of rows that have each bit; return how many rows, a multiple of 16, were counted.

    ``bits`` is (all rows, words) and ``rows`` are numbers of rows; ``planes`` (5, words) is scratch, and ``sums`` has
    64 places a word.
    """
    planes[:] = 0
    sums[:] = 0
    done = 0
    while done + TOGETHER <= len(rows):
        _add_sixteen(bits, rows[done : done + TOGETHER], planes)
        _take_apart(planes[4], 4, sums)
        done += TOGETHER
    for shift in range(4):
        _take_apart(planes[shift], shift, sums)
    return done
