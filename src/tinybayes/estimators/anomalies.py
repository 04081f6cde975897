"""Anomalies for scikit-learn: rows that a density finds less probable than almost all others."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import OutlierMixin
from sklearn.utils import check_random_state

from tinybayes.compress import tie
from tinybayes.data.variables import Discretizer
from tinybayes.errors import error
from tinybayes.estimators._base import dataset, store_parameters, validated
from tinybayes.estimators.circuits import CircuitDensity
from tinybayes.infer import circuit as circuits
from tinybayes.infer.alarm import Alarm, choose_alarm, hold_out
from tinybayes.infer.likelihood import log_likelihood
from tinybayes.learn.circuits.latent_rows import collapsed
from tinybayes.model import Dataset


class AnomalyDetector(OutlierMixin, CircuitDensity):
    """Detector of anomalies by the exact log-likelihood of a circuit, with a wanted rate of false alarms.

    The density is that of `CircuitDensity`, by default of a latent tree. One row in five is held out of learning, and
    the threshold is the log-likelihood that a share of `false_alarm_rate` of these rows does not reach. So the rate
    holds for new rows of the same kind, as closely as that many rows can tell. Missing values are summed out. A value
    that is no state of its column, because it was never seen, raises an alarm: its row scores less than the threshold.
    ``tinybayes.export(detector)`` writes the detector as integer C.

    Parameters
    ----------
    false_alarm_rate : float, default=0.05
        Share of usual rows for which `predict` may raise an alarm.
    levels : int or None, default=None
        How many distinct parameters the circuit has: with 16 they take 4 bits each in an exported program, instead of
        16. A latent tree learns them by EM, as in `CircuitDensity`; the circuit of another method is tied (see `tie`).
    method : {"latent", "quick", "greedy"}, default="latent"
        As for `CircuitDensity`.
    discretizer : {"auto", "quantile", "uniform"}, scikit-learn discretiser or None, default="auto"
        What cuts numbers: "auto" is "uniform", because the probability of an interval then goes with the density in it.
        Between quantiles all intervals are equally probable, the outer ones too, however far off a value is.
    edge_price, parameter_price, smoothing, max_edges, seconds, hidden_states, components, epochs, batch_size, \
restarts, average, validation_fraction, random_state, device, deterministic, n_bins, max_states, \
verbose
        As for `CircuitDensity`.

    Attributes
    ----------
    offset_ : float
        The threshold: the log-likelihood below which a row is an anomaly.
    alarm_ : Alarm
        The threshold with the price of unseen states, for `tinybayes.export`.
    circuit_, model_, n_edges_, complete_, n_features_in_, feature_names_in_
        As for `CircuitDensity`.

    Examples
    --------
    >>> X = np.random.default_rng(0).integers(0, 2, (500, 1)) * [1, 1, 1, 1]
    >>> detector = AnomalyDetector(hidden_states=2, epochs=5).fit(X)
    >>> detector.predict([[1, 1, 1, 1], [1, 0, 1, 0]]).tolist()
    [1, -1]
    """

    _ties = True

    def __init__(
        self,
        false_alarm_rate: float = 0.05,
        *,
        levels: int | None = None,
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
        average: bool = False,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | None = 0,
        device: str | None = None,
        deterministic: bool = False,
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
        discretization = self._discretization("uniform")
        table = validated(self, X, reset=True)
        data = collapsed(dataset(table, sample_weight, discretization))
        rest, held_out = hold_out(data, check_random_state(self.random_state))
        self._learn(rest)
        if self.levels is not None and self.method != "latent":
            self._tie(rest)
        self._from_frame = isinstance(table, pd.DataFrame)
        learned = len(data) if data.weight is None else float(data.weight.sum())
        self.alarm_: Alarm = choose_alarm(self.circuit_, held_out, self.false_alarm_rate, learned)
        self.offset_ = self.alarm_.threshold
        return self

    def _tie(self, data: Dataset) -> None:
        """Tie the parameters; fewer distinct ones than levels stay as they are."""
        if len(np.unique(self.circuit_.log_parameters)) > self.levels:
            self.circuit_ = self.model_ = tie(self.circuit_, self.levels, counts=data).model

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-likelihood of each row, missing values summed out.

        A row with values that are no states scores less than the threshold: at most that, and less `alarm_.unseen` for
        each of them.
        """
        codes = self._codes(X)
        return self.alarm_.scores(log_likelihood(self.circuit_, codes), self._unseen(X, codes).sum(axis=1))

    def _unseen(self, X: Any, codes: np.ndarray) -> np.ndarray:
        """Tell which values are there but are no states."""
        table = validated(self, X, reset=False)
        return (codes < 0) & ~np.asarray(pd.isna(table))

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
            NaN for missing values, minus infinity for values that are no states.
        """
        codes = self._codes(X)
        return np.where(self._unseen(X, codes), -np.inf, circuits.log_conditionals(self.circuit_, codes))
