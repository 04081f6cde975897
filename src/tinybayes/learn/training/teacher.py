"""A teacher: an ensemble of wide networks with float weights, trained on noisy and mixed rows.

It is never deployed. Small models learn from its posteriors on rows that no table has (`tinybayes.search.lessons`).
"""

import time
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np

from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.compiling import compiled
from tinybayes.learn.training.engine import find_device, keep_compiled_code
from tinybayes.learn.training.net_inputs import Columns
from tinybayes.learn.training.net_steps import NetSteps
from tinybayes.learn.training.nets import NetConfiguration, NetRun
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.model import Dataset

MEMBERS, WIDTH = 4, 256  # networks, and units of their two layers
BLOCK = 4096  # rows that are labelled at once
LEAST, MOST = 60, 400  # epochs


@dataclass(frozen=True, eq=False)
class Teacher:
    """Networks with float weights."""

    columns: Columns  # from codes to inputs
    steps: NetSteps
    parameters: Any  # of all networks, and what training does not change, with a leading axis of networks
    fixed: Any

    def log_posteriors(self, X: np.ndarray) -> np.ndarray:
        """Return the logarithms of the mean posteriors of rows of codes."""
        blocks = [X[i : i + BLOCK] for i in range(0, len(X), BLOCK)]
        values = (self.columns.values(block).reshape(-1, *self.steps.inputs) for block in blocks)
        made = [np.asarray(_posteriors(self.parameters, self.fixed, jnp.asarray(v), steps=self.steps)) for v in values]
        return np.concatenate(made) if made else np.empty((0, self.steps.classes))


@compiled(static_argnames="steps")
def _posteriors(parameters: Any, fixed: Any, X: jax.Array, *, steps: NetSteps) -> jax.Array:
    log_p = jax.vmap(lambda own, hyper: jax.nn.log_softmax(steps.scores(own, hyper, X)))(parameters, fixed)
    return jax.scipy.special.logsumexp(log_p, axis=0) - jnp.log(len(log_p))


def train_teacher(
    data: Dataset, *, seconds: float, noise: float = 0.2, mixup: float = 0.5, seed: int = 0
) -> Teacher | None:
    """Train the networks for about the given time: as many epochs as fit into it; None where these are too few.

    Parameters
    ----------
    data
        The training rows.
    seconds
        For everything but compiling.
    noise, mixup
        As of `NetOptions`.
    seed
        Of the first network; the others have the next ones.
    """
    keep_compiled_code()
    runs = [
        NetConfiguration(
            hidden=(WIDTH, WIDTH), bits=None, learning_rate=1e-2, input_noise=noise, mixup=mixup, seed=k % 2**32
        )
        for k in range(seed, seed + MEMBERS)
    ]
    batch = 50 if len(data) < 5000 else 100

    def begin(epochs: int) -> NetRun:
        return NetRun(data, runs, TrainingOptions(epochs=epochs, batch_size=batch), None, None, False)

    with jax.default_device(find_device(None)):
        trial = begin(MOST)
        trial.run(0, 1, lambda done, best: None, Event())  # compiles
        began = time.perf_counter()
        trial.run(1, 2, lambda done, best: None, Event())
        epochs = min(MOST, int(seconds / (time.perf_counter() - began)))
        if epochs < LEAST:
            return None
        run = begin(epochs)
        run.train(lambda done, best: None, Event())
        return Teacher(run.columns, run.spec, run.kept()[0], run.fixed)
