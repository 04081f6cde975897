"""Latent trees with few distinct parameters: EM goes on through the quantiser.

The average expected counts stay exact; what they lead to is read as the nearest of a few levels, and the counts of the
next mini-batch come from the levels. Near and best are those of EM: a parameter p, of a distribution that is used n
times, loses n (p log(p / l) + l - p) of the expected log-likelihood at the level l, if the sum of its distribution is
to remain one on average. So the best level of some parameters is their mean, weighted by the uses of their
distributions, and two levels meet at their logarithmic mean.

Single distributions then do not sum to one. Likelihoods are divided by the sum over all rows, and a missing value
counts as the sum of its emissions.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tinybayes._kernels.kmeans import best_splits
from tinybayes.learn.circuits.latent_start import Tables, row_sums
from tinybayes.learn.circuits.latent_steps import TINY, Fixed, LatentSteps, Parameters
from tinybayes.learn.circuits.latent_structure import Tree
from tinybayes.learn.circuits.latent_training import LatentRun, TrainedTables, on_device
from tinybayes.learn.training import engine
from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.model import Dataset

Array = jax.Array
LLOYD = 100  # rounds, at most, that improve the first levels
POINTS = 4096  # that the first levels are found for: parameters are sorted and put together
FEW = 64  # levels up to which all of them are compared with each parameter: faster than a search


class LevelState(NamedTuple):
    """The parameters at their levels, the exact average counts, and the levels."""

    parameters: Parameters
    counts: Parameters
    levels: Array


@dataclass(frozen=True)
class LevelSteps(LatentSteps):
    """The steps of EM through the quantiser."""

    def step(self, state: Any, fixed: Fixed, rows: engine.Rows, schedule: Array) -> Any:
        """Move the average counts towards those of a mini-batch; levels and parameters follow."""
        moved = self.moved(state.parameters, state.counts, rows, schedule)
        exact, uses = self.normalized(moved, fixed), self.uses(self.smoothed(moved, fixed))
        points = _flat(exact)
        weights = _flat(jax.tree.map(lambda sums, part: jnp.broadcast_to(sums, part.shape), uses, exact))
        near = nearest(state.levels, points)
        members = weights * (points > 0)
        total = jax.ops.segment_sum(members, near, len(state.levels))
        mean = jax.ops.segment_sum(members * points, near, len(state.levels)) / jnp.maximum(total, TINY)
        levels = jnp.where(total > 0, mean, state.levels)
        return LevelState(quantized(exact, levels), moved, levels)

    def losses(self, parameters: Parameters, fixed: Fixed, rows: engine.Rows) -> Array:
        """Return the negative log-likelihood of each row, divided by the sum over all rows."""
        nothing = jnp.full((1, rows.X.shape[1]), -1, rows.X.dtype)
        return self.log_likelihood(parameters, nothing)[0] - self.log_likelihood(parameters, rows.X)

    def seen(self, emission: Array, indicators: Array) -> Array:
        """Return the logarithms of the emissions, of missing values those of their sum."""
        missing = 1.0 - indicators.sum(axis=1)
        whole = jnp.log(jnp.maximum(emission.sum(axis=2), TINY))
        return super().seen(emission, indicators) + whole[:, :, None] * missing[:, None, :]


def quantized(exact: Parameters, levels: Array) -> Parameters:
    """Return each parameter's level; zeros stay."""
    return Parameters(*(jnp.where(part > 0, levels[nearest(levels, part)], 0.0) for part in exact))


def nearest(levels: Array, points: Array) -> Array:
    """Return the number of the level that costs a parameter least; levels increase."""
    low, high = levels[:-1], levels[1:]
    gap = jnp.maximum(jnp.log(high) - jnp.log(low), 1e-6)
    borders = jnp.where(high > low * (1 + 1e-5), (high - low) / gap, low)
    return jnp.searchsorted(borders, points, method="compare_all" if len(levels) <= FEW else "scan")


def first_levels(points: np.ndarray, weights: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return levels for positive probabilities: the best for squared errors of logarithms, and improved ones.

    The former are those of `tie`. They lose the sums of distributions, but may be better after division by the sum
    over all rows.
    """
    order = np.argsort(points)
    points, weights = points[order], np.maximum(weights[order], 1e-9)
    groups = np.unique(np.linspace(0, len(points), POINTS, endpoint=False).astype(int))
    total, moment = np.add.reduceat(weights, groups), np.add.reduceat(weights * points, groups)
    means, index = np.unique(moment / total, return_inverse=True)
    total = np.bincount(index.reshape(-1), total)
    count = min(count, len(means))
    splits = best_splits(np.log(means), total * means, count)[0]
    ends = [len(means)]
    for runs in range(count, 0, -1):
        ends.append(int(splits[runs - 1, ends[-1]]))
    starts = np.array(ends[:0:-1])
    logs = np.add.reduceat(total * means * np.log(means), starts) / np.add.reduceat(total * means, starts)
    return np.exp(logs), _improved(np.exp(logs), points, weights)


def _improved(levels: np.ndarray, points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Move levels to the means of their parameters, again and again."""
    sums = np.concatenate([[0.0], np.cumsum(weights)]), np.concatenate([[0.0], np.cumsum(weights * points)])
    for _ in range(LLOYD):
        borders = np.concatenate([[0], np.searchsorted(points, _borders(levels)), [len(points)]])
        use, mass = np.diff(sums[0][borders]), np.diff(sums[1][borders])
        new = np.where(use > 0, mass / np.maximum(use, 1e-300), levels)
        if np.allclose(new, levels, rtol=1e-6, atol=0):
            break
        levels = np.sort(new)
    return levels


def _borders(levels: np.ndarray) -> np.ndarray:
    """Return the logarithmic means of neighbouring levels."""
    return np.diff(levels) / np.maximum(np.diff(np.log(levels)), 1e-12)


def train_levels(
    data: Dataset,
    tree: Tree,
    start: Tables,
    counts: Tables,
    pseudocounts: Tables,
    levels: int,
    options: TrainingOptions,
    *,
    rates: tuple[float, float],
    validation: Dataset | None = None,
) -> TrainedTables:
    """Go on with EM through the quantiser, from tables and the expected counts of all rows under them."""
    steps = LevelSteps(tree, start.emission.shape[2], rates)
    training = replace(options, keep_best=True)

    def make(_: object) -> LevelRun:
        return LevelRun(data, steps, start, counts, pseudocounts, levels, training, validation)

    return engine.train([start], training, shape=lambda _: None, floats=lambda _: 1, make=make)[0]


class LevelRun(LatentRun):
    """One training through the quantiser."""

    def __init__(
        self,
        data: Dataset,
        steps: LevelSteps,
        start: Tables,
        counts: Tables,
        pseudocounts: Tables,
        levels: int,
        options: TrainingOptions,
        validation: Dataset | None,
    ) -> None:
        super().__init__(data, steps, [start], pseudocounts, options, validation)
        rows = float(len(data) if data.weight is None else data.weight.sum())
        smoothed = [part + more for part, more in zip(_parts(counts), _parts(pseudocounts), strict=True)]
        sums = [row_sums(part, roots) for part, roots in zip(smoothed, (steps.tree.roots, 0), strict=True)]
        uses = [np.broadcast_to(total, part.shape) for total, part in zip(sums, smoothed, strict=True)]
        points, weights = (np.concatenate([part.ravel() for part in parts]) for parts in (_parts(start), uses))
        average = Tables(*(part / rows for part in _parts(counts)))
        for found in first_levels(points[points > 0], weights[points > 0], levels):  # the latter is gone on with
            first = jnp.asarray(found, jnp.float32)
            state = LevelState(quantized(on_device(start), first), on_device(average), first)
            self.states = jax.tree.map(lambda part: part[None], state)
            self.measure(0, again=True)

    def tables_of(self, kept: Parameters, one: int) -> Tables:
        """Return the levels as they are."""
        return Tables(*(np.asarray(part[one], dtype=np.float64) for part in kept))


def _flat(parameters: Parameters) -> Array:
    return jnp.concatenate([part.reshape(-1) for part in parameters])


def _parts(tables: Tables) -> tuple[np.ndarray, np.ndarray]:
    return tables.transition, tables.emission
