"""Adam (Kingma and Ba 2015) on any tree of arrays, and the decay of its rate.

Our own because optax's costs 4 to 28 % more time per epoch on a CPU (``benchmarks/adam.py``); on a GPU they are equal.
"""

from typing import Any, NamedTuple

from tinybayes.learn.training._jax import jax, jnp

Array = jax.Array
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-7


class Moments(NamedTuple):
    """Parameters with their two Adam moments, trees of one shape."""

    value: Any
    first: Any
    second: Any


def start(value: Any) -> Moments:
    """Return parameters with moments of zero."""
    zeros = jax.tree.map(jnp.zeros_like, value)
    return Moments(value, zeros, zeros)


def adam(moments: Moments, gradient: Any, rate: Array, step: Array) -> Moments:
    """Take step number `step`, counted from 1.

    Epsilon is added to the uncorrected root, as in the papers' experiments (TensorFlow); optax adds it after the
    correction.
    """
    t = step.astype(jnp.float32)
    corrected = rate * jnp.sqrt(1 - BETA2**t) / (1 - BETA1**t)
    first = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, moments.first, gradient)
    second = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g**2, moments.second, gradient)
    value = jax.tree.map(lambda p, m, v: p - corrected * m / (jnp.sqrt(v) + EPSILON), moments.value, first, second)
    return Moments(value, first, second)


def decay(progress: Array, powers: float) -> Array:
    """Return the factor of a rate that falls by so many powers of ten while `progress` rises from 0 to 1."""
    return 10.0 ** (-powers * progress)
