"""Losses of a classifier as functions of its class scores ``log p(x, c)``, in JAX.

Numbers in brackets are equations of differentiable_tan. Every function returns the mean over the rows of a batch,
each row times its weight.
"""

from tinybayes.learn.training._jax import jax, jnp

Array = jax.Array


def negative_log_likelihood(scores: Array, y: Array, weight: Array | float = 1.0) -> Array:
    """Return the generative loss (5): ``-log p(x, y)``."""
    return -jnp.mean(weight * _of_class(scores, y))


def conditional_loss(scores: Array, y: Array, weight: Array | float = 1.0) -> Array:
    """Return the discriminative loss ``-log p(y | x)``."""
    return jnp.mean(weight * (jax.scipy.special.logsumexp(scores, axis=-1) - _of_class(scores, y)))


def large_margin(scores: Array, y: Array, gamma: Array, eta: Array, weight: Array | float = 1.0) -> Array:
    """Return the probabilistic large margin loss (6)-(7), with the maximum over the wrong classes softened by `eta`.

    A row costs what its log-margin lacks to `gamma`: ``relu(1/eta log sum_c exp eta(gamma - s_y + s_c))`` over the
    classes ``c != y``.
    """
    wrong = jnp.arange(scores.shape[-1]) != y[..., None]
    lack = gamma - _of_class(scores, y)[..., None] + scores
    soft = jax.scipy.special.logsumexp(jnp.where(wrong, eta * lack, -jnp.inf), axis=-1) / eta
    return jnp.mean(weight * jnp.maximum(soft, 0.0))


def hybrid(
    scores: Array,
    y: Array,
    lam: Array,
    gamma: Array,
    eta: Array,
    conditional: Array | float = 0.0,
    weight: Array | float = 1.0,
) -> Array:
    """Return the hybrid loss (8): ``NLL + lam * LM``, and `conditional` times the conditional loss if asked for."""
    loss = negative_log_likelihood(scores, y, weight) + lam * large_margin(scores, y, gamma, eta, weight)
    return loss + conditional * conditional_loss(scores, y, weight)


def _of_class(scores: Array, y: Array) -> Array:
    return jnp.take_along_axis(scores, y[..., None], axis=-1)[..., 0]
