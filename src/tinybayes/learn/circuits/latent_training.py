"""Training latent trees in the engine: tables in, tables out. The bridge to the arrays of `latent_steps.py`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tinybayes.infer.likelihood import dataset_rows
from tinybayes.learn.circuits.latent_start import Tables, normalized_rows
from tinybayes.learn.circuits.latent_steps import Fixed, LatentSteps, Parameters, State
from tinybayes.learn.circuits.latent_structure import Tree
from tinybayes.learn.circuits.options import FIRST_STEP, LatentOptions
from tinybayes.learn.training import engine
from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.compiling import compiled
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.model import Dataset


@dataclass(frozen=True)
class TrainedTables:
    """The result of one start: tables, the log-likelihoods of validation rows by epoch, whether all epochs were run."""

    tables: Tables
    validation_log_likelihood: float  # NaN without validation rows
    history: tuple[tuple[int, float], ...]
    complete: bool


def train_latent(
    data: Dataset,
    tree: Tree,
    starts: Sequence[Tables],
    pseudocounts: Tables,
    options: TrainingOptions,
    *,
    rates: tuple[float, float] = (FIRST_STEP, LatentOptions.last_step),
    counts: Tables | None = None,
    validation: Dataset | None = None,
    report: Callable[[engine.Progress], None] | None = None,
) -> list[TrainedTables]:
    """Train from all starts at once. Parameters that start as zero, and have no pseudocount, stay zero.

    A training that goes on begins with the expected counts of all rows, so that small steps lose nothing.
    """
    steps = LatentSteps(tree, pseudocounts.emission.shape[2], rates)

    def make(part: Sequence[Tables]) -> LatentRun:
        return LatentRun(data, steps, part, pseudocounts, options, validation, counts)

    def floats(part: Sequence[Tables]) -> int:
        copies, states, _ = starts[0].emission.shape
        return 6 * (starts[0].transition.size + starts[0].emission.size) + 8 * options.batch_size * states * copies

    return engine.train(starts, options, shape=lambda _: None, floats=floats, make=make, report=report)


class LatentRun(engine.Run[TrainedTables]):
    """Trainings from different starts on their way through the epochs."""

    steps: LatentSteps

    def __init__(
        self,
        data: Dataset,
        steps: LatentSteps,
        starts: Sequence[Tables],
        pseudocounts: Tables,
        options: TrainingOptions,
        validation: Dataset | None,
        counts: Tables | None = None,
    ) -> None:
        count = len(starts)
        total = float(len(data) if data.weight is None else data.weight.sum())
        average = None if counts is None else Tables(counts.transition / total, counts.emission / total)
        fixed = Fixed(on_device(pseudocounts), jnp.asarray(total, dtype=jnp.float32))
        states = jax.tree.map(lambda *parts: jnp.stack(parts), *(_state(start, average) for start in starts))
        repeated = jax.tree.map(lambda part: jnp.broadcast_to(part, (count, *part.shape)), fixed)
        super().__init__(steps, states, repeated, options, data, validation)

    def to_rows(self, data: Dataset) -> engine.Rows:
        """Return the codes of all variables, the class last."""
        return rows_of(data)

    def results(self, complete: bool) -> list[TrainedTables]:
        """Return what was learned from each start."""
        kept, errors = self.kept()
        results = []
        for one in range(self.count):
            history = tuple((epoch, -loss) for epoch, loss in self.history_of(one))
            results.append(TrainedTables(self.tables_of(kept, one), -float(errors[one, 0]), history, complete))
        return results

    def tables_of(self, kept: Parameters, one: int) -> Tables:
        """Return the tables of one start, normalised in double precision."""
        transition, emission = (np.asarray(part[one], dtype=np.float64) for part in kept)
        return Tables(normalized_rows(transition, self.steps.tree.roots), normalized_rows(emission))


def rows_of(data: Dataset) -> engine.Rows:
    """Put all rows with a weight on the device, weights scaled to a mean of one."""
    known = data if data.weight is None else data.rows(data.weight > 0)
    weight = np.ones(len(known)) if known.weight is None else known.weight / known.weight.mean()
    X = jnp.asarray(dataset_rows(known.nodes, known))
    return engine.Rows(X, jnp.zeros(len(X), dtype=jnp.int32), jnp.asarray(weight, dtype=jnp.float32))


def counts_and_log_likelihood(
    data: Dataset, tree: Tree, tables: Tables, *, deterministic: bool = False
) -> tuple[Tables, float]:
    """Return the expected counts of all rows, and the log-likelihood of a row on average."""
    steps, rows = LatentSteps(tree, tables.emission.shape[2]), rows_of(data)
    total = float(len(data) if data.weight is None else data.weight.sum())
    blocks = engine.to_blocks(rows)
    counts, log_likelihood = _over_blocks(on_device(tables), blocks, steps=steps, deterministic=deterministic)
    scale = total / float(rows.weight.sum())
    mean = float(log_likelihood) / float(rows.weight.sum())
    return Tables(*(scale * np.asarray(part, dtype=np.float64) for part in counts)), mean


@compiled(static_argnames=("steps",))
def _over_blocks(parameters: Parameters, blocks: engine.Rows, *, steps: LatentSteps) -> tuple[Parameters, jax.Array]:
    """Add the expected counts and the weighted log-likelihoods of blocks of rows."""

    def add(total: tuple[Parameters, jax.Array], rows: engine.Rows) -> tuple[tuple[Parameters, jax.Array], None]:
        counts = steps.expected_counts(parameters, rows)
        value = jnp.sum(rows.weight * steps.log_likelihood(parameters, rows.X))
        return jax.tree.map(jnp.add, total, (counts, value)), None

    return jax.lax.scan(add, (jax.tree.map(jnp.zeros_like, parameters), jnp.zeros(())), blocks)[0]


def on_device(tables: Tables) -> Parameters:
    """Return the tables in single precision."""
    return Parameters(jnp.asarray(tables.transition, jnp.float32), jnp.asarray(tables.emission, jnp.float32))


def _state(start: Tables, counts: Tables | None) -> State:
    """Return the first state; without average counts, as if all hidden states had been used equally often."""
    parameters = on_device(start)
    if counts is not None:
        return State(parameters, on_device(counts))
    return State(parameters, Parameters(*(part / part.shape[1] for part in parameters)))
