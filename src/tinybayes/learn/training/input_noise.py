"""Noise in the codes that tables are trained on; that of neural networks is in `net_steps.py`.

With probability p an entry of a mini-batch moves, to a state drawn from a kernel ``Q[state, other]``: for
codes with an order the neighbours, half each (at the ends half of the moves stay), or all states by their distance; for
codes without an order the marginal of the training rows. Nothing changes at prediction. A missing value stays missing.

What it is: let ``K = (1 - p) I + p Q``. The generative part of the hybrid loss is linear in the tables, so that its
expectation over the noise is the loss of counts that are smoothed by K along every axis (`smoothed` is this closed
form): a prior that neighbouring bins are alike. The margin loss is convex in the scores. Its expectation is at least
the loss of the expected scores, by an amount that grows with the variance of the scores under the noise: tables whose
neighbouring entries differ pay for it.
"""

import numpy as np

from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.net_inputs import has_order
from tinybayes.model import Dataset, Variable
from tinybayes.model.encoding import Intervals

Array = jax.Array


def move_kernels(data: Dataset, reach: float = 0.0) -> list[np.ndarray]:
    """Return for each feature where a code moves to: a row of probabilities for each state.

    Parameters
    ----------
    data
        The training rows.
    reach
        Of codes with an order: 0 for the neighbours; else the standard deviation of the moves, in mean widths of a bin.
    """
    kernels = []
    for f, variable in enumerate(data.variables):
        if not has_order(variable):
            kernels.append(_marginal(data.X[:, f], variable.cardinality))
        elif reach > 0:
            kernels.append(_by_distance(_centres(variable), reach))
        else:
            kernels.append(_neighbours(variable.cardinality))
    return kernels


def _neighbours(states: int) -> np.ndarray:
    kernel = np.zeros((states, states))
    code = np.arange(states)
    for step in (-1, 1):
        kernel[code, np.clip(code + step, 0, states - 1)] += 0.5
    return kernel


def _by_distance(centre: np.ndarray, reach: float) -> np.ndarray:
    """Return a Gaussian of the distance to all other states; a single state stays."""
    if len(centre) == 1:
        return np.ones((1, 1))
    distance = np.abs(centre[:, None] - centre) / np.abs(np.diff(centre)).mean()
    exponent = np.where(np.eye(len(centre)) > 0, -np.inf, -((distance / reach) ** 2) / 2)
    weight = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _centres(variable: Variable) -> np.ndarray:
    """Return the middle of every bin; the outer bins are as wide as those next to them."""
    encoding, states = variable.encoding, variable.cardinality
    cuts = np.asarray(encoding.cuts, dtype=float) if isinstance(encoding, Intervals) else np.empty(0)
    if len(cuts) != states - 1 or states < 3:
        return np.arange(states, dtype=float)
    widths = np.diff(cuts)
    edges = np.concatenate([[cuts[0] - widths[0]], cuts, [cuts[-1] + widths[-1]]])
    return np.asarray((edges[1:] + edges[:-1]) / 2)


def _marginal(column: np.ndarray, states: int) -> np.ndarray:
    counts = np.bincount(column[column >= 0], minlength=states) + 1e-9
    return np.tile(counts / counts.sum(), (states, 1))


def smoothed(counts: np.ndarray, kernels: list[np.ndarray | None], noise: float) -> np.ndarray:
    """Return the expected counts of noisy rows: each axis is smoothed by its kernel, unless that is None."""
    for axis, kernel in enumerate(kernels):
        if kernel is not None:
            mixed = (1 - noise) * np.eye(len(kernel)) + noise * kernel
            counts = np.moveaxis(np.tensordot(counts, mixed, axes=(axis, 0)), -1, axis)
    return counts


def cumulated(kernels: list[np.ndarray]) -> Array:
    """Return cumulative probabilities, shape (features, most states, most states), padded by what no number reaches."""
    most = max((len(kernel) for kernel in kernels), default=1)
    cumulative = np.full((len(kernels), most, most), 2.0, dtype=np.float32)
    for own, kernel in zip(cumulative, kernels, strict=True):
        states = len(kernel)
        own[:states, : states - 1] = np.cumsum(kernel, axis=1)[:, :-1]
    return jnp.asarray(cumulative)


def jitter(key: Array, X: Array, noise: Array, cumulative: Array) -> Array:
    """Move each code with probability `noise`; those below zero are missing and stay."""
    moving, level = jax.random.uniform(key, (2, *X.shape))
    rows = cumulative[jnp.arange(X.shape[1]), jnp.maximum(X, 0)]  # (batch, features, states)
    other = (level[:, :, None] >= rows).sum(axis=2).astype(X.dtype)
    return jnp.where((moving < noise) & (X >= 0), other, X)
