"""The one import of JAX, which is optional: without it, everything but training by gradient works."""

from tinybayes.extras import missing

try:
    import jax
    import jax.numpy as jnp
except ModuleNotFoundError as problem:
    if problem.name != "jax":  # a JAX that is broken explains itself
        raise
    raise missing("jax") from None

__all__ = ["jax", "jnp"]
