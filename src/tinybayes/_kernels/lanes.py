"""Arithmetic on whole rows of a matrix of doubles with ROWS columns, as vector instructions.

Written as loops these steps are compiled to vector instructions too, but only behind tests, at every step, of whether
the rows overlap, which take several times as long as the steps. Here a row is read as a whole before one is written.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

ROWS = 16
_LANES = ir.VectorType(ir.DoubleType(), ROWS)


def _write(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Generate code that writes ``compute(builder, row, number)`` to the row that the first two arguments name.

    ``row(k)`` is the row named by the arguments k and k + 1, a matrix and an index; ``number(k)`` is the argument k in
    all lanes.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def address(k: int) -> Any:
            index = context.cast(builder, args[k + 1], signature.args[k + 1], types.int64)
            first = make_array(signature.args[k])(context, builder, args[k]).data
            return builder.bitcast(builder.gep(first, [builder.mul(index, ir.IntType(64)(ROWS))]), _LANES.as_pointer())

        def number(k: int) -> Any:
            nothing = ir.Constant(_LANES, ir.Undefined)
            one = builder.insert_element(nothing, args[k], ir.IntType(32)(0))
            return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(ir.IntType(32), ROWS), [0] * ROWS))

        value = compute(builder, lambda k: builder.load(address(k), align=8), number)
        builder.store(value, address(0), align=8)
        return context.get_dummy_value()

    return generate


@intrinsic
def add_product(typing_context, out, at, left, i, right, j, factor):
    """Add a product of two rows: ``out[at] += factor * left[i] * right[j]``."""
    generate = _write(lambda b, row, number: b.fadd(row(0), b.fmul(b.fmul(row(2), row(4)), number(6))))
    return types.void(out, at, left, i, right, j, factor), generate


@intrinsic
def add_scaled(typing_context, out, at, left, i, factor):
    """Add a row: ``out[at] += factor * left[i]``."""
    generate = _write(lambda b, row, number: b.fadd(row(0), b.fmul(row(2), number(4))))
    return types.void(out, at, left, i, factor), generate


@intrinsic
def set_product(typing_context, out, at, left, i, right, j):
    """Write a product of two rows: ``out[at] = left[i] * right[j]``."""
    return types.void(out, at, left, i, right, j), _write(lambda b, row, number: b.fmul(row(2), row(4)))


@intrinsic
def set_row(typing_context, out, at, number):
    """Write a number to all of a row: ``out[at] = number``."""
    return types.void(out, at, number), _write(lambda b, row, number: number(2))


@intrinsic
def set_product_up(typing_context, out, at, left, i, right, j, least):
    """Write a product of two rows, at least a number unless a factor is zero: ``0`` or ``max(product, least)``."""

    def larger(b, row, number):
        one, other, bound = row(2), row(4), number(6)
        product, nothing = b.fmul(one, other), ir.Constant(_LANES, [0.0] * ROWS)
        raised = b.select(b.fcmp_ordered("<", product, bound), bound, product)
        zero = b.or_(b.fcmp_ordered("==", one, nothing), b.fcmp_ordered("==", other, nothing))
        return b.select(zero, nothing, raised)

    return types.void(out, at, left, i, right, j, least), _write(larger)
