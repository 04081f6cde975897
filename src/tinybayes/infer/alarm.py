"""Alarms: a threshold of the log-likelihood for a wanted rate of false alarms, in nats and in integers of a device."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tinybayes.errors import error
from tinybayes.infer.circuit import log_conditionals
from tinybayes.infer.integer_density import ZERO, Density, integer_density, integer_log_likelihood
from tinybayes.infer.likelihood import log_likelihood
from tinybayes.model import Circuit, Dataset

SHARE = 5  # one row in so many is held out for the threshold
MOST = 1e9  # nats: more than the rarest rows of any table have
LARGEST = 2**29  # units that all unseen states of a row may cost


@dataclass(frozen=True)
class Alarm:
    """When a row is an anomaly: its log-likelihood is below the threshold, or it has a state that was never seen.

    Parameters
    ----------
    threshold
        In nats.
    unseen
        What a state that was never seen costs, in nats. Its row also counts as no better than the threshold.
    rate
        The wanted share of usual rows that raise an alarm.
    rows
        The rows that chose the threshold.
    """

    threshold: float
    unseen: float
    rate: float
    rows: int

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise error("above 0, below 1", self.rate, where="rate of false alarms")
        if not (abs(self.threshold) <= MOST and 0 < self.unseen <= MOST):
            raise error(f"numbers of nats up to {MOST:g}", f"{self.threshold}, {self.unseen}", where="alarm")

    def scores(self, logs: np.ndarray, unseen: np.ndarray) -> np.ndarray:
        """Return the scores of rows by their log-likelihoods and unseen states: below the threshold is an alarm."""
        odd = np.minimum(logs, self.threshold) - self.unseen * unseen
        return np.where(unseen > 0, odd, logs)

    def units(self, density: Density, variables: int) -> tuple[int, int]:
        """Return the threshold and the cost of an unseen state in the units of a device.

        The threshold is lowered by the bound of the error, so that no row at or above it ever raises an alarm.
        """
        threshold = math.floor(math.ldexp(self.threshold - density.bound, density.fraction))
        cost = round(math.ldexp(self.unseen, density.fraction))
        return max(ZERO, min(threshold, -ZERO)), max(1, min(cost, LARGEST // max(1, variables)))

    def to_metadata(self) -> dict[str, Any]:
        """Return the alarm as a JSON object, which `save` stores as ``metadata["alarm"]``."""
        return asdict(self)


def hold_out(data: Dataset, seed: int | np.random.RandomState | None) -> tuple[Dataset, Dataset]:
    """Return the rows to learn from and one in five for the threshold; all rows for both where they are too few."""
    generator = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
    order = generator.permutation(len(data))
    count = len(data) // SHARE
    return (data.rows(order[count:]), data.rows(order[:count])) if count else (data, data)


def choose_alarm(circuit: Circuit, held_out: Dataset, rate: float, learned: float) -> Alarm:
    """Choose the threshold that a share of `rate` of held-out rows does not reach.

    A state that was not seen in n rows is taken to have the probability 1 / (n + 1).

    Parameters
    ----------
    circuit
        The density.
    held_out
        Rows that it was not learned from.
    rate
        The wanted share of false alarms.
    learned
        The number of rows that the states are known from.
    """
    scores = log_likelihood(circuit, held_out.X)
    return Alarm(quantile(scores, held_out.weight, rate), math.log1p(max(1.0, learned)), rate, len(held_out))


def quantile(scores: np.ndarray, weight: np.ndarray | None, share: float) -> float:
    """Return the largest score such that the rows below it have at most this share of the weight."""
    weights = np.ones(len(scores)) if weight is None else weight
    order = np.argsort(scores, kind="stable")
    below = np.cumsum(weights[order]) - weights[order]  # the weight of the rows before each one
    return float(scores[order[np.searchsorted(below, share * weights.sum(), side="right") - 1]])


def least_probable(circuit: Circuit, X: np.ndarray, unseen: np.ndarray) -> np.ndarray:
    """Return, for each row, the variable whose value is the least probable one given all others.

    Parameters
    ----------
    circuit
        The density.
    X
        Rows of codes, -1 where a value is missing or was never seen.
    unseen
        Which values were never seen: the first of them is to blame.

    Returns
    -------
    ndarray of int
        -1 where no single value is to blame: nothing is known, or the row has the probability zero.
    """
    result = np.where(unseen.any(axis=1), unseen.argmax(axis=1), -1)
    rows = np.flatnonzero((result < 0) & (X >= 0).any(axis=1) & (log_likelihood(circuit, X) > -np.inf))
    if rows.size:
        logs = log_conditionals(circuit, X[rows])
        result[rows] = np.where(np.isnan(logs), np.inf, logs).argmin(axis=1)
    return result


def from_metadata(metadata: Mapping[str, Any]) -> Alarm | None:
    """Return the alarm in the metadata of a model file; None where there is none."""
    stored = metadata.get("alarm")
    if stored is None:
        return None
    try:
        values = float(stored["threshold"]), float(stored["unseen"]), float(stored["rate"]), int(stored["rows"])
    except (TypeError, ValueError, KeyError, OverflowError) as problem:
        raise error("an alarm", repr(stored)[:80], where="metadata.alarm") from problem
    return Alarm(*values)


def integer_alarm(circuit: Circuit, alarm: Alarm, X: np.ndarray, unseen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scores in integers and whether they raise an alarm, as an exported program does.

    Parameters
    ----------
    circuit, alarm
        The density, and its alarm.
    X
        Rows of codes, -1 where a value is missing or was never seen.
    unseen
        How many states of each row were never seen.
    """
    score = integer_log_likelihood(circuit, X)
    threshold, cost = alarm.units(integer_density(circuit), len(circuit.nodes))
    score = np.where(unseen > 0, np.minimum(score, threshold) - cost * unseen, score)
    return score, score < threshold
