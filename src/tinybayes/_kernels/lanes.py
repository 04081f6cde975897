"""Arithmetic on whole rows of a matrix of doubles with ROWS columns, as vector instructions.

Written as loops these steps are compiled to vector instructions too, but only behind tests, at every step, of whether
the rows overlap, which take several times as long as the steps. Here a row is read as a whole before one is written.
"""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

ROWS = 16
_LANES = ir.VectorType(ir.DoubleType(), ROWS)
_WORD = ir.IntType(64)


def _place(context: Any, builder: Any, kind: Any, matrix: Any, row: Any) -> Any:
    """Return the pointer to a row of a matrix, whose rows follow each other."""
    first = make_array(kind)(context, builder, matrix).data
    return builder.bitcast(builder.gep(first, [builder.mul(row, _WORD(ROWS))]), _LANES.as_pointer())


def _load(builder: Any, place: Any) -> Any:
    return builder.load(place, align=8)


def _spread(builder: Any, number: Any) -> Any:
    """Return a number in all lanes."""
    nothing = ir.Constant(_LANES, ir.Undefined)
    one = builder.insert_element(nothing, number, ir.IntType(32)(0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(ir.IntType(32), ROWS), [0] * ROWS))


def _row(context: Any, builder: Any, signature: Any, args: Any, which: int) -> Any:
    """Return the place of the row that the arguments `which` and the one after it, a matrix and a number, say."""
    number = context.cast(builder, args[which + 1], signature.args[which + 1], types.int64)
    return _place(context, builder, signature.args[which], args[which], number)


@intrinsic
def add_product(typing_context, out, at, left, i, right, j, factor):
    """Add a product of two rows: ``out[at] += factor * left[i] * right[j]``."""

    def generate(context, builder, signature, args):
        place = _row(context, builder, signature, args, 0)
        a, b = (_load(builder, _row(context, builder, signature, args, which)) for which in (2, 4))
        product = builder.fmul(builder.fmul(a, b), _spread(builder, args[6]))
        builder.store(builder.fadd(_load(builder, place), product), place, align=8)
        return context.get_dummy_value()

    return types.void(out, at, left, i, right, j, factor), generate


@intrinsic
def add_scaled(typing_context, out, at, left, i, factor):
    """Add a row: ``out[at] += factor * left[i]``."""

    def generate(context, builder, signature, args):
        place = _row(context, builder, signature, args, 0)
        a = _load(builder, _row(context, builder, signature, args, 2))
        scaled = builder.fmul(a, _spread(builder, args[4]))
        builder.store(builder.fadd(_load(builder, place), scaled), place, align=8)
        return context.get_dummy_value()

    return types.void(out, at, left, i, factor), generate


@intrinsic
def set_product(typing_context, out, at, left, i, right, j):
    """Write a product of two rows: ``out[at] = left[i] * right[j]``."""

    def generate(context, builder, signature, args):
        a, b = (_load(builder, _row(context, builder, signature, args, which)) for which in (2, 4))
        builder.store(builder.fmul(a, b), _row(context, builder, signature, args, 0), align=8)
        return context.get_dummy_value()

    return types.void(out, at, left, i, right, j), generate


@intrinsic
def set_row(typing_context, out, at, number):
    """Write a number to all of a row: ``out[at] = number``."""

    def generate(context, builder, signature, args):
        builder.store(_spread(builder, args[2]), _row(context, builder, signature, args, 0), align=8)
        return context.get_dummy_value()

    return types.void(out, at, number), generate


@intrinsic
def at_least(typing_context, out, at, number):
    """Raise what is smaller than a number to it: ``out[at] = max(out[at], number)``."""

    def generate(context, builder, signature, args):
        place, least = _row(context, builder, signature, args, 0), _spread(builder, args[2])
        value = _load(builder, place)
        builder.store(builder.select(builder.fcmp_ordered("<", value, least), least, value), place, align=8)
        return context.get_dummy_value()

    return types.void(out, at, number), generate
