"""The arithmetic of latent trees in JAX: messages up, expected counts down, a step of EM.

Hidden variables form a tree, and every observed variable hangs on one of them:

    p(x) = sum over z of  prod_i P(z_i | z_parent(i))  prod_v P(x_v | z_home(v))

Matrices are multiplied level by level, all nodes of a level at once, so that the compiled program grows with the depth
of the tree and not with its nodes. Messages are probabilities, scaled to a largest entry of one; the products over the
children of a node are sums of logarithms. Arrays have the shape (nodes, states, rows): sums over states then run over
whole vectors of rows.

Nodes with fewer states than others, and transitions that were cut, are parameters that start as zero and have no
pseudocount: they stay zero.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tinybayes.learn.circuits.latent_structure import Tree
from tinybayes.learn.training.engine import Rows

Array = jax.Array
TINY = 1e-37  # what probabilities are at least before their logarithm is taken
FIRST_RATE, LAST_RATE = 0.5, 0.01  # the steps towards the counts of a mini-batch, at the start and at the end


class Parameters(NamedTuple):
    """Probabilities of hidden states given those of the parent, and of values given hidden states.

    The distribution of the root is in the first row of its table.
    """

    transition: Array  # (nodes, states of the parent, states)
    emission: Array  # (observed variables, states of the home, values)


class Fixed(NamedTuple):
    """What training does not change: the pseudocount of every parameter, and the weight of all training rows."""

    pseudocounts: Parameters
    rows: Array


class State(NamedTuple):
    """The parameters, and the expected counts, of a row on average, that they come from."""

    parameters: Parameters
    counts: Parameters


class Messages(NamedTuple):
    """Of each level: the weights of the nodes' states given all below, and the messages to the parents."""

    weights: list[Array]
    up: list[Array]


@dataclass(frozen=True)
class LatentSteps:
    """The steps that the engine takes: EM whose average counts move towards those of each mini-batch.

    Parameters
    ----------
    tree
        The tree of the hidden variables.
    values
        The largest number of values of an observed variable.
    rates
        The steps at the start and at the end of the training. A step of one, with all rows, is plain EM.
    """

    tree: Tree
    values: int
    rates: tuple[float, float] = (FIRST_RATE, LAST_RATE)

    def schedule(self, progress: Array) -> Array:
        """Let the step fall evenly in its logarithm."""
        first, last = self.rates
        return jnp.asarray(first) * (last / first) ** progress

    def step(self, state: State, fixed: Fixed, rows: Rows, schedule: Array) -> State:
        """Move the average counts towards those of a mini-batch; the parameters follow."""
        counts = self.expected_counts(state.parameters, rows)
        scale = 1.0 / jnp.maximum(rows.weight.sum(), TINY)
        moved = jax.tree.map(lambda old, new: old + schedule * (scale * new - old), state.counts, counts)
        return State(normalized(moved, fixed), moved)

    def losses(self, parameters: Parameters, fixed: Fixed, rows: Rows) -> Array:
        """Return the negative log-likelihood of each row."""
        return -self.log_likelihood(parameters, rows.X)

    def log_likelihood(self, parameters: Parameters, X: Array) -> Array:
        """Return the log-likelihood of rows; missing values are summed out."""
        return self._up(parameters, self._indicators(X))[0]

    def expected_counts(self, parameters: Parameters, rows: Rows) -> Parameters:
        """Return the expected use of every parameter: the derivative of the log-likelihood in its logarithm."""
        tree, indicators = self.tree, self._indicators(rows.X)
        _, messages = self._up(parameters, indicators)
        states = parameters.transition.shape[1]
        posterior = jnp.zeros((1, states, len(rows.weight))).at[0, 0].set(rows.weight)  # above the root: one state
        posteriors, counts = [], []
        for level, (start, stop) in enumerate(tree.levels):
            above = jnp.take(posterior, tree.parents_of(level), axis=0) if level else posterior
            ratio = above / jnp.maximum(messages.up[level], TINY)
            table, weights = parameters.transition[start:stop], messages.weights[level]
            counts.append(table * jnp.einsum("nib,njb->nij", ratio, weights))
            posterior = weights * jnp.einsum("nij,nib->njb", table, ratio)
            posteriors.append(posterior)
        at_home = jnp.take(jnp.concatenate(posteriors), np.array(tree.home), axis=0)
        return Parameters(jnp.concatenate(counts), jnp.einsum("nib,nvb->niv", at_home, indicators))

    def _up(self, parameters: Parameters, indicators: Array) -> tuple[Array, Messages]:
        """Return the log-likelihood of each row, and the messages."""
        tree, depth = self.tree, len(self.tree.levels)
        seen = jnp.einsum("niv,nvb->nib", jnp.log(jnp.maximum(parameters.emission, TINY)), indicators)
        logs = jax.ops.segment_sum(seen, np.array(tree.home), len(tree.parent))
        weights, up = [logs] * depth, [logs] * depth
        total = jnp.zeros(indicators.shape[2])
        for level in range(depth - 1, -1, -1):
            start, stop = tree.levels[level]
            own = logs[start:stop]
            if level + 1 < depth:
                below = jnp.log(jnp.maximum(up[level + 1], TINY))
                own = own + jax.ops.segment_sum(below, tree.parents_of(level + 1), stop - start)
            top = own.max(axis=1, keepdims=True)
            total = total + top.sum(axis=(0, 1))
            weights[level] = jnp.exp(own - top)
            up[level] = jnp.einsum("nij,njb->nib", parameters.transition[start:stop], weights[level])
        return total + jnp.log(jnp.maximum(up[0][0, 0], TINY)), Messages(weights, up)

    def _indicators(self, X: Array) -> Array:
        """Return one where a variable has a value, shape (variables, values, rows); of missing values there is none."""
        return (X.T[:, None, :] == jnp.arange(self.values, dtype=X.dtype)[:, None]).astype(jnp.float32)


def normalized(counts: Parameters, fixed: Fixed) -> Parameters:
    """Return the parameters that average counts lead to: pseudocounts added, and sums of one."""

    def table(mean: Array, pseudocounts: Array) -> Array:
        total = mean * fixed.rows + pseudocounts
        return total / jnp.maximum(total.sum(axis=2, keepdims=True), TINY)

    return Parameters(*map(table, counts, fixed.pseudocounts))
