"""The arithmetic of latent trees in JAX: messages up, expected counts down, a step of EM.

Hidden variables form a tree, and every observed variable hangs on one of them:

    p(x) = sum over z of  prod_i P(z_i | z_parent(i))  prod_v P(x_v | z_home(v))

Matrices are multiplied level by level, all nodes of a level at once, so that the compiled program grows with the depth
of the tree and not with its nodes. Messages are probabilities, scaled to a largest entry of one; the products over the
children of a node are sums of logarithms. Arrays have the shape (nodes, states, rows): sums over states then run over
whole vectors of rows.

Several trees over the same variables are a mixture: the distributions of their roots sum to one together. Nodes of one
depth are treated at once whichever tree they are in.

Nodes with fewer states than others, and transitions that were cut, are parameters that start as zero and have no
pseudocount: they stay zero.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tinybayes.learn.circuits.latent_structure import Tree
from tinybayes.learn.circuits.options import FIRST_STEP, LatentOptions
from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.engine import Rows

Array = jax.Array
TINY = 1e-37  # what probabilities are at least before their logarithm is taken


class Parameters(NamedTuple):
    """Probabilities of hidden states given those of the parent, and of values given hidden states.

    The distribution of a root is in the first row of its table; those of several roots sum to one together.
    """

    transition: Array  # (nodes, states of the parent, states)
    emission: Array  # (observed variables of each tree in turn, states of the home, values)


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
    rates: tuple[float, float] = (FIRST_STEP, LatentOptions.last_step)

    def schedule(self, progress: Array) -> Array:
        """Let the step fall evenly in its logarithm."""
        first, last = self.rates
        return jnp.asarray(first) * (last / first) ** progress

    def step(self, state: State, fixed: Fixed, rows: Rows, schedule: Array) -> State:
        """Move the average counts towards those of a mini-batch; the parameters follow."""
        moved = self.moved(state.parameters, state.counts, rows, schedule)
        return State(self.normalized(moved, fixed), moved)

    def moved(self, parameters: Parameters, counts: Parameters, rows: Rows, rate: Array) -> Parameters:
        """Return average counts on their way towards those of a mini-batch."""
        scale = 1.0 / jnp.maximum(rows.weight.sum(), TINY)
        new = self.expected_counts(parameters, rows)
        return jax.tree.map(lambda old, own: old + rate * (scale * own - old), counts, new)

    def losses(self, parameters: Parameters, fixed: Fixed, rows: Rows) -> Array:
        """Return the negative log-likelihood of each row."""
        return -self.log_likelihood(parameters, rows.X)

    def log_likelihood(self, parameters: Parameters, X: Array) -> Array:
        """Return the log-likelihood of rows; missing values are summed out."""
        return jax.scipy.special.logsumexp(self.by_tree(parameters, X), axis=0)

    def by_tree(self, parameters: Parameters, X: Array) -> Array:
        """Return the logarithm of each tree's part in the likelihood of rows, shape (trees, rows)."""
        return self._up(parameters, self._indicators(X))[0]

    def expected_counts(self, parameters: Parameters, rows: Rows) -> Parameters:
        """Return the expected use of every parameter: the derivative of the log-likelihood in its logarithm."""
        tree, indicators = self.tree, self._indicators(rows.X)
        logs, messages = self._up(parameters, indicators)
        states, shares = parameters.transition.shape[1], rows.weight * jax.nn.softmax(logs, axis=0)
        posterior = jnp.zeros((tree.roots, states, len(rows.weight))).at[:, 0].set(shares)  # above a root: one state
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
        """Return the logarithm of each tree's part in the likelihood of each row, and the messages."""
        tree, depth = self.tree, len(self.tree.levels)
        seen = self.seen(parameters.emission, indicators)
        logs = jax.ops.segment_sum(seen, np.array(tree.home), len(tree.parent))
        weights, up = [logs] * depth, [logs] * depth
        total = jnp.zeros((tree.roots, indicators.shape[2]))
        for level in range(depth - 1, -1, -1):
            start, stop = tree.levels[level]
            own = logs[start:stop]
            if level + 1 < depth:
                below = jnp.log(jnp.maximum(up[level + 1], TINY))
                own = own + jax.ops.segment_sum(below, tree.parents_of(level + 1), stop - start)
            top = own.max(axis=1, keepdims=True)
            total = total + jax.ops.segment_sum(top[:, 0], tree.tree_of[start:stop], tree.roots)
            weights[level] = jnp.exp(own - top)
            up[level] = jnp.einsum("nij,njb->nib", parameters.transition[start:stop], weights[level])
        return total + jnp.log(jnp.maximum(up[0][:, 0], TINY)), Messages(weights, up)

    def seen(self, emission: Array, indicators: Array) -> Array:
        """Return the logarithms of the emissions of each variable; a missing value has the probability one."""
        return jnp.einsum("niv,nvb->nib", jnp.log(jnp.maximum(emission, TINY)), indicators)

    def _indicators(self, X: Array) -> Array:
        """Return one where a variable has a value, shape (variables of each tree in turn, values, rows).

        Of missing values there is none.
        """
        indicators = (X.T[:, None, :] == jnp.arange(self.values, dtype=X.dtype)[:, None]).astype(jnp.float32)
        return jnp.tile(indicators, (self.tree.roots, 1, 1)) if self.tree.roots > 1 else indicators

    def normalized(self, counts: Parameters, fixed: Fixed) -> Parameters:
        """Return the parameters that average counts lead to: pseudocounts added, and sums of one."""
        smoothed = self.smoothed(counts, fixed)
        return jax.tree.map(lambda part, sums: part / jnp.maximum(sums, TINY), smoothed, self.uses(smoothed))

    def smoothed(self, counts: Parameters, fixed: Fixed) -> Parameters:
        """Return the counts of all rows, given average ones, with the pseudocounts."""
        return jax.tree.map(lambda mean, more: mean * fixed.rows + more, counts, fixed.pseudocounts)

    def uses(self, counts: Parameters) -> Parameters:
        """Return the sums of all distributions, their axis kept; the roots have a common one."""
        transition, emission = (part.sum(axis=2, keepdims=True) for part in counts)
        roots = self.tree.roots
        if roots > 1:
            transition = transition.at[:roots].set(transition[:roots].sum(axis=0, keepdims=True))
        return Parameters(transition, emission)
