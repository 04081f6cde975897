"""Arithmetic of 32-bit floats: exponential and logarithm that loops turn into vector instructions, and short vectors.

The calls that Numba makes for `math.exp` and `math.log` are those of the C library, one number at a time. These have
relative errors of about 1e-7; the polynomials are the usual ones of degree 6 and 9 (Cephes).

Rows of few classes are too short for loops: LANES numbers of a flat array are read, added and written at once, as in
`lanes.py`.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending
from numba.core import types
from numba.np.arrayobj import make_array

from tinybayes._kernels import inlined

LANES = 8
intrinsic: Any = extending.intrinsic  # its type asks callers for the typing context, too

LEAST, MOST, LOG2E = np.float32(-87.0), np.float32(88.0), np.float32(1.44269504)
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
ONE, HALF = np.float32(1), np.float32(0.5)
E0, E1, E2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
E3, E4, E5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
L0, L1, L2 = np.float32(7.0376836292e-2), np.float32(-1.1514610310e-1), np.float32(1.1676998740e-1)
L3, L4, L5 = np.float32(-1.2420140846e-1), np.float32(1.4249322787e-1), np.float32(-1.6668057665e-1)
L6, L7, L8 = np.float32(2.0000714765e-1), np.float32(-2.4999993993e-1), np.float32(3.3333331174e-1)
ROOT_HALF = np.float32(0.70710678)
BIAS, MANTISSA, HALF_BITS = np.int32(127), np.int32(0x7FFFFF), np.int32(0x3F000000)
SHIFT = np.int32(23)


@intrinsic
def bits_of(typing_context, x):
    """Return the bits of a 32-bit float as an integer."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), generate


@intrinsic
def of_bits(typing_context, x):
    """Return the 32-bit float with these bits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), generate


@inlined
def exp(x):
    """Return ``e**x``; zero below -87, and infinity above 88."""
    bounded = min(max(x, LEAST), MOST)
    n = np.rint(bounded * LOG2E)
    r = bounded - n * LN2_HIGH
    r = r - n * LN2_LOW
    p = ((((E0 * r + E1) * r + E2) * r + E3) * r + E4) * r + E5
    value = (p * r * r + r + ONE) * of_bits(np.int32((np.int32(n) + BIAS) << SHIFT))
    value = np.float32(0) if x <= LEAST else value
    return np.float32(np.inf) if x > MOST else value if x == x else x


@inlined
def log(x):
    """Return the logarithm of a normal number; minus infinity at zero."""
    bits = bits_of(x)
    exponent = np.float32((bits >> SHIFT) - np.int32(126))
    m = of_bits((bits & MANTISSA) | HALF_BITS)  # from a half to one
    low = m < ROOT_HALF
    exponent = exponent - ONE if low else exponent
    f = (m + m if low else m) - ONE
    z = f * f
    p = ((((((((L0 * f + L1) * f + L2) * f + L3) * f + L4) * f + L5) * f + L6) * f + L7) * f + L8) * f * z
    p = p + exponent * LN2_LOW - HALF * z
    value = f + p + exponent * LN2_HIGH
    value = x if x != x or x == np.float32(np.inf) else value
    return np.float32(-np.inf) if x == 0 else value


def _address(context: Any, builder: Any, signature: Any, args: Any, k: int, lanes: int = LANES) -> Any:
    """Return where the lanes lie that the arguments k and k + 1 name, a contiguous array and an index."""
    first = make_array(signature.args[k])(context, builder, args[k]).data
    index = context.cast(builder, args[k + 1], signature.args[k + 1], types.int64)
    return builder.bitcast(builder.gep(first, [index]), ir.VectorType(ir.FloatType(), lanes).as_pointer())


def _adding(lanes: int) -> Any:
    """Return a function that adds so many numbers: ``out[at : at + lanes] += left[i : i + lanes]``, as if flat."""

    @intrinsic
    def add(typing_context, out, at, left, i):
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            to, of = (_address(context, builder, signature, args, k, lanes) for k in (0, 2))
            builder.store(builder.fadd(builder.load(to, align=4), builder.load(of, align=4)), to, align=4)
            return context.get_dummy_value()

        return types.void(out, at, left, i), generate

    return add


add_lanes, add_four, add_two, add_one = (_adding(lanes) for lanes in (LANES, 4, 2, 1))


@intrinsic
def add_four_lanes(typing_context, out, at, left, i, other, j, third, k, fourth, m):
    """Add four of them at once: each store waits for the one before."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to, *of = (_address(context, builder, signature, args, k) for k in range(0, 10, 2))
        a, b, c, d = (builder.load(one, align=4) for one in of)
        total = builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
        builder.store(builder.fadd(builder.load(to, align=4), total), to, align=4)
        return context.get_dummy_value()

    return types.void(out, at, left, i, other, j, third, k, fourth, m), generate


@intrinsic
def add_product_lanes(typing_context, out, at, left, i, right, j):
    """Add a product of lanes: ``out[at : at + LANES] += left[i : i + LANES] * right[j : j + LANES]``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to, one, other = (_address(context, builder, signature, args, k) for k in (0, 2, 4))
        product = builder.fmul(builder.load(one, align=4), builder.load(other, align=4))
        builder.store(builder.fadd(builder.load(to, align=4), product), to, align=4)
        return context.get_dummy_value()

    return types.void(out, at, left, i, right, j), generate


@inlined
def sum_of_lanes(x):
    """Return the sum of the first LANES numbers."""
    return ((x[0] + x[4]) + (x[1] + x[5])) + ((x[2] + x[6]) + (x[3] + x[7]))
