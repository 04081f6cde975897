"""From sums over the samples of Gibbs chains to estimates with their uncertainty."""

from dataclasses import dataclass

import numpy as np

from tinybayes._kernels.gibbs import Sums
from tinybayes.infer.queries import Queries


@dataclass(frozen=True, eq=False)
class GibbsEstimate:
    """GibbsEstimates from samples, and how far to trust them; three arrays of the same shape.

    Parameters
    ----------
    value
        The estimates.
    error
        Their standard errors, from the spread of batches of consecutive samples or of whole chains, whichever is
        larger. They say nothing about regions that no chain has visited.
    effective
        The number of independent samples that would give the same error.
    """

    value: np.ndarray
    error: np.ndarray
    effective: np.ndarray


def _spread(sums: Sums, total: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for sums over samples, shape (queries, chains, ...): the mean, its variance, and the number of samples."""
    lengths = sums.samples
    n, batches = lengths.sum(axis=1), sums.batches.sum(axis=1)
    mean = total.sum(axis=1) / n
    center = n * mean**2
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.maximum(square.sum(axis=1) - center, 0.0) / ((batches - 1) * n)
        variance = np.where(batches > 1, variance, np.inf)
    chains = lengths.shape[1]
    if chains > 1:
        between = np.maximum((total**2 / lengths).sum(axis=1) - center, 0.0) / ((chains - 1) * n)
        variance = np.maximum(variance, between)
    return mean, variance, n


def log_probability(
    sums: Sums, queries: Queries, states: np.ndarray, smoothing: float, blackwell: bool
) -> GibbsEstimate:
    """Turn hits into smoothed log-probabilities; the joint states may be too many for a float."""
    mean, variance, n = (a[:, 0] for a in _spread(sums, sums.hits[..., :1], sums.hits[..., 1:]))
    log_states = np.where(queries.asked >= 0, np.log(states), 0.0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.logaddexp(np.log(mean * n), np.log(smoothing) - log_states) - np.log(n + smoothing)
        near = np.exp(value)
        spread = near * (1 - near)
        # Independent draws would do no better; batches that happen to agree must not look certain.
        variance = variance if blackwell else np.maximum(variance, spread / n)
        error_of_log = np.where(mean > 0, np.sqrt(variance) / near, np.inf)
        effective = np.where(variance > 0, spread / variance, n)
    return GibbsEstimate(value, error_of_log, np.where(mean > 0, effective, 0.0))


def state_probabilities(
    sums: Sums, queries: Queries, states: np.ndarray, smoothing: float, blackwell: bool
) -> tuple[GibbsEstimate, ...]:
    """Turn sums over the states of all variables into their smoothed probabilities; what was observed is certain."""
    mean, variance, n = _spread(sums, sums.total, sums.square)
    answers = []
    ends = states.cumsum().tolist()
    for v, size in enumerate(states.tolist()):
        part = slice(ends[v] - size, ends[v])
        value = (mean[:, part] * n + smoothing / size) / (n + smoothing)
        spread = value * (1 - value)
        own = variance[:, part] * (n / (n + smoothing)) ** 2
        if not blackwell:
            own = np.maximum(own, spread / n)
        seen = queries.evidence[:, v] if size > 1 else np.zeros(len(value), dtype=np.int32)
        known = (seen >= 0)[:, None]
        value = np.where(known, seen[:, None] == np.arange(size), value)
        own = np.where(known, 0.0, own)
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = np.where(own > 0, spread / own, n)
        answers.append(GibbsEstimate(value, np.sqrt(own), np.where(known, n, effective)))
    return tuple(answers)
