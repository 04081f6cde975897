"""Anomalies for scikit-learn: rows that a density finds less probable than almost all others."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import OutlierMixin
from sklearn.utils import check_random_state

from tinybayes.data.variables import Discretizer
from tinybayes.errors import error
from tinybayes.estimators._base import dataset, store_parameters, validated
from tinybayes.estimators.circuits import CircuitDensity
from tinybayes.infer import circuit as circuits
from tinybayes.learn.circuits.latent_rows import collapsed

SHARE = 5  # one row in so many is held out for the threshold


class AnomalyDetector(OutlierMixin, CircuitDensity):
    """Detector of anomalies by the exact log-likelihood of a circuit, with a wanted rate of false alarms.

    The density is that of `CircuitDensity`, by default of a latent tree. One row in five is held out of learning, and
    the threshold is the log-likelihood that a share of `false_alarm_rate` of these rows does not reach. So the rate
    holds for new rows of the same kind, as closely as that many rows can tell. Missing values are summed out; a
    state that was never seen counts as missing, so it is no alarm in itself.

    Parameters
    ----------
    false_alarm_rate : float, default=0.05
        Share of usual rows for which `predict` may raise an alarm.
    method : {"latent", "quick", "greedy"}, default="latent"
        As for `CircuitDensity`.
    edge_price, parameter_price, smoothing, max_edges, seconds, hidden_states, components, epochs, batch_size, \
restarts, validation_fraction, random_state, device, discretizer, n_bins, max_states, verbose
        As for `CircuitDensity`.

    Attributes
    ----------
    offset_ : float
        The threshold: the log-likelihood below which a row is an anomaly.
    circuit_, model_, n_edges_, complete_, n_features_in_, feature_names_in_
        As for `CircuitDensity`.

    Examples
    --------
    >>> X = np.random.default_rng(0).integers(0, 2, (500, 1)) * [1, 1, 1, 1]
    >>> detector = AnomalyDetector(hidden_states=2, epochs=5).fit(X)
    >>> detector.predict([[1, 1, 1, 1], [1, 0, 1, 0]]).tolist()
    [1, -1]
    """

    def __init__(
        self,
        false_alarm_rate: float = 0.05,
        *,
        method: str = "latent",
        edge_price: float | None = None,
        parameter_price: float = 0.0,
        smoothing: float = 1.0,
        max_edges: int | None = None,
        seconds: float = float("inf"),
        hidden_states: int = 16,
        components: int = 1,
        epochs: int | None = None,
        batch_size: int = 64,
        restarts: int = 1,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | None = 0,
        device: str | None = None,
        discretizer: Discretizer = "auto",
        n_bins: int = 8,
        max_states: int = 62,
        verbose: bool = False,
    ) -> None:
        store_parameters(self, locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "AnomalyDetector":
        """Learn the density of usual rows, and the threshold from those held out.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_samples, n_features)
            The rows; few of them should be anomalies.
        y : None
            Not looked at.
        sample_weight : array-like, shape (n_samples,), optional
            Row weights; an integer weight counts as that many rows.
        """
        if not 0 < self.false_alarm_rate < 1:
            raise error("above 0, below 1", self.false_alarm_rate, where="false_alarm_rate")
        discretization = self._discretization("quantile")
        table = validated(self, X, reset=True)
        data = collapsed(dataset(table, sample_weight, discretization))
        order = check_random_state(self.random_state).permutation(len(data))
        held_out, rest = data.rows(order[: len(data) // SHARE]), data.rows(order[len(data) // SHARE :])
        if not len(held_out):
            held_out, rest = data, data  # too few rows to hold any out
        self._learn(rest)
        self._from_frame = isinstance(table, pd.DataFrame)
        scores = circuits.log_evidence(self.circuit_, held_out.X)
        self.offset_ = _quantile(scores, held_out.weight, self.false_alarm_rate)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return by how much the log-likelihood of each row is above the threshold; negative for anomalies."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return -1 for anomalies and 1 for other rows."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def blame(self, X: Any) -> np.ndarray:
        """Return the log-probability of each value given all others of its row: the lowest ones are to blame.

        Returns
        -------
        ndarray, shape (n_samples, n_features)
            NaN for missing values.
        """
        codes = self._codes(X)
        return circuits.log_conditionals(self.circuit_, codes)


def _quantile(scores: np.ndarray, weight: np.ndarray | None, share: float) -> float:
    """Return the largest score such that the rows below it have at most this share of the weight."""
    weights = np.ones(len(scores)) if weight is None else weight
    order = np.argsort(scores, kind="stable")
    below = np.cumsum(weights[order]) - weights[order]  # the weight of the rows before each one
    return float(scores[order[np.searchsorted(below, share * weights.sum(), side="right") - 1]])
