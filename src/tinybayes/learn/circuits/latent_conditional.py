"""Latent trees trained further to predict the class: by gradient, on the conditional log-likelihood.

EM makes features and class likely together, log P(x, c); a classifier needs the class given the features,

    log P(c | x) = log P(x, c) - log P(x),

where P(x) is the same circuit with the class summed out. Adam climbs its mean over the training rows, starting where EM
ended. Some values of each mini-batch are made missing, which the trees sum out: without these gaps, they soon fit the
training rows exactly. Parameters remain normalised, and those that are zero remain zero, so the number of edges stays.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tinybayes.learn.circuits.latent_start import Tables, normalized_rows
from tinybayes.learn.circuits.latent_steps import TINY, LatentSteps, Parameters
from tinybayes.learn.circuits.latent_structure import Tree
from tinybayes.learn.circuits.latent_training import on_device
from tinybayes.learn.training import engine
from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.optimizer import Moments, adam, decay, start
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.model import Dataset

Array = jax.Array
GAPS = 0.5  # share of the values that are made missing
RATE, POWERS = 0.01, 2.0  # of Adam, and the powers of ten by which it falls


class ConditionalState(NamedTuple):
    """The parameters, their logarithms with the moments of Adam, and how many steps were taken."""

    parameters: Parameters
    moments: Moments
    taken: Array


@dataclass(frozen=True)
class ConditionalSteps(LatentSteps):
    """The steps that the engine takes: Adam on the negative mean of log P(c | x).

    Parameters
    ----------
    class_of_root
        The class whose tree each root belongs to, where every class has its own; by default the class is the last
        variable of the only tree.
    """

    class_of_root: tuple[int, ...] = ()

    def schedule(self, progress: Array) -> Array:
        """Let the rate fall evenly in its logarithm."""
        return RATE * decay(progress, POWERS)

    def step(self, state: Any, fixed: Any, rows: engine.Rows, schedule: Array) -> Any:
        """Take a step of Adam for a mini-batch with gaps; `fixed` tells which parameters are not zero."""
        assert rows.key is not None
        seen = jax.random.uniform(rows.key, rows.X.shape) >= GAPS
        with_gaps = rows._replace(X=jnp.where(seen, rows.X, -1).astype(rows.X.dtype))

        def loss(logs: Parameters) -> Array:
            losses = self.losses(self.probabilities(logs, fixed), fixed, with_gaps)
            return jnp.sum(rows.weight * losses) / jnp.maximum(rows.weight.sum(), TINY)

        taken = state.taken + 1
        moments = adam(state.moments, jax.grad(loss)(state.moments.value), schedule, taken)
        return ConditionalState(self.probabilities(moments.value, fixed), moments, taken)

    def losses(self, parameters: Parameters, fixed: Any, rows: engine.Rows) -> Array:
        """Return -log P(c | x) of each row."""
        if not self.class_of_root:
            known = jnp.concatenate([rows.X, rows.y[:, None].astype(rows.X.dtype)], axis=1)
            summed_out = known.at[:, -1].set(-1)
            return self.log_likelihood(parameters, summed_out) - self.log_likelihood(parameters, known)
        logs = self.by_tree(parameters, rows.X)
        own = jnp.where(jnp.asarray(self.class_of_root)[:, None] == rows.y, logs, -jnp.inf)
        return jax.nn.logsumexp(logs, axis=0) - jax.nn.logsumexp(own, axis=0)

    def probabilities(self, logs: Parameters, allowed: Parameters) -> Parameters:
        """Return normalised parameters."""
        powers = jax.tree.map(lambda part, mask: jnp.where(mask, jnp.exp(part), 0.0), logs, allowed)
        return jax.tree.map(lambda part, sums: part / jnp.maximum(sums, TINY), powers, self.uses(powers))


@dataclass(frozen=True)
class Improved:
    """The tables, the mean of log P(c | x) of the validation rows (NaN without them), and the epochs they took.

    `complete` is False when an interrupt or the deadline ended the training early.
    """

    tables: Tables
    conditional: float
    epochs: int
    complete: bool


def train_conditional(
    data: Dataset,
    tree: Tree,
    tables: Tables,
    options: TrainingOptions,
    *,
    class_of_root: tuple[int, ...] = (),
    validation: Dataset | None = None,
) -> Improved:
    """Train for the class from given tables; with validation rows, the best epoch counts, which may be none."""
    steps = ConditionalSteps(tree, tables.emission.shape[2], class_of_root=class_of_root)

    def make(starts: Any) -> ConditionalRun:
        return ConditionalRun(data, steps, starts[0], options, validation)

    return engine.train([tables], options, shape=lambda _: None, floats=lambda _: 1, make=make)[0]


class ConditionalRun(engine.Run[Improved]):
    """One training on its way through the epochs."""

    steps: ConditionalSteps

    def __init__(
        self,
        data: Dataset,
        steps: ConditionalSteps,
        tables: Tables,
        options: TrainingOptions,
        validation: Dataset | None,
    ) -> None:
        parameters = on_device(tables)
        allowed = jax.tree.map(lambda part: part > 0, parameters)
        logs = jax.tree.map(lambda part: jnp.log(jnp.maximum(part, TINY)), parameters)
        state = ConditionalState(parameters, start(logs), jnp.zeros((), jnp.int32))
        states, fixed = jax.tree.map(lambda part: part[None], (state, allowed))  # one configuration
        super().__init__(steps, states, fixed, options, data, validation)
        self.measure(0, again=True)  # it may be best to stay where EM ended

    def results(self, complete: bool) -> list[Improved]:
        """Return the best epoch, or without validation rows the last one."""
        kept, errors = self.kept()
        transition, emission = (np.asarray(part[0], dtype=np.float64) for part in kept)
        tables = Tables(normalized_rows(transition, self.steps.tree.roots), normalized_rows(emission))
        epochs = self.options.epochs if self.best is None else min(self.history, key=lambda one: one[1][0])[0]
        return [Improved(tables, -float(errors[0, 0]), epochs, complete)]
