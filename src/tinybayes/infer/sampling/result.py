"""What approximate inference returns: estimates, how far to trust them, and what they took."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tinybayes.errors import error
from tinybayes.model import Variable

SAMPLES = 20_000  # when neither a time nor a number is given


@dataclass(frozen=True, eq=False)
class Marginals:
    """The posterior distribution of every variable, estimated or exact.

    Parameters
    ----------
    variables
        The variables.
    probabilities
        For each variable the probability of each state, given the evidence; shape (states,), or (rows, states) where a
        circuit was asked about several rows.
    errors
        Their standard errors; zero where they are exact, and for states that were never sampled: with n effective
        samples such a state has a probability below 3/n with 95 % confidence.
    effective
        The number of independent exact draws with the same error; infinite when exact.
    log_z
        The logarithm of the sum over all assignments that agree with the evidence, for a normalised network
        ``log P(evidence)``; None where the method does not estimate it. The estimate of the sum itself has no bias.
    log_z_error
        The standard error of `log_z`.
    samples, seconds
        Samples, or sweeps of all chains, and wall time.
    zero
        The share of samples that had the weight zero.
    method
        The method.
    exact
        Whether the probabilities are exact up to rounding.
    notes
        Remarks on these figures for the reader.
    """

    variables: tuple[Variable, ...]
    probabilities: tuple[np.ndarray, ...]
    errors: tuple[np.ndarray, ...]
    effective: float
    log_z: float | np.ndarray | None
    log_z_error: float | None
    samples: int
    seconds: float
    zero: float
    method: str
    exact: bool
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str | int) -> np.ndarray:
        """Return the distribution of a variable, by its name or number."""
        if isinstance(name, int):
            return self.probabilities[name]
        names = [variable.name for variable in self.variables]
        if name not in names:
            raise error("the name of a variable", repr(name), where="marginals")
        return self.probabilities[names.index(name)]

    @property
    def largest_error(self) -> float:
        """The largest of the standard errors."""
        return max((float(part.max()) for part in self.errors), default=0.0)


Progress = Callable[[Marginals | float], None]
"""Called with estimates so far, or with the share of exact work that is done."""


@dataclass(frozen=True)
class Budget:
    """When to stop: after a time, after a number of samples, or after whichever comes first."""

    seconds: float | None  # wall time from the beginning of the call
    samples: int | None
    began: float  # by `time.perf_counter`

    @classmethod
    def start(cls, seconds: float | None, samples: int | None) -> "Budget":
        """Check what was asked for, and start the clock."""
        if seconds is not None and not (seconds > 0 and math.isfinite(seconds)):
            raise error("a positive number", seconds, where="seconds", remedy="None sets no limit")
        if samples is not None and (samples != int(samples) or samples < 1):
            raise error("an integer of at least 1", samples, where="samples")
        if seconds is None and samples is None:
            samples = SAMPLES
        return cls(seconds, None if samples is None else int(samples), time.perf_counter())

    @property
    def spent(self) -> float:
        """The time since the beginning."""
        return time.perf_counter() - self.began

    @property
    def left(self) -> float:
        """The time that is left."""
        return math.inf if self.seconds is None else self.seconds - self.spent


def hellinger(estimate: Sequence[np.ndarray], truth: Sequence[np.ndarray], over: Sequence[int] | None = None) -> float:
    """Return the mean Hellinger distance between two lists of distributions.

    The distance of two distributions is ``sqrt(sum (sqrt p - sqrt q)^2 / 2)``, from 0 to 1.

    Parameters
    ----------
    estimate, truth
        A distribution for each variable.
    over
        The variables to average over, such as those that were not observed; None takes all.
    """
    shapes = [[len(part) for part in parts] for parts in (estimate, truth)]
    if shapes[0] != shapes[1]:
        got = f"{len(truth)} with {sum(shapes[1])} states"
        raise error(f"{len(estimate)} distributions with {sum(shapes[0])} states", got, where="truth")
    chosen = range(len(estimate)) if over is None else over
    parts = [0.5 * ((np.sqrt(estimate[v]) - np.sqrt(truth[v])) ** 2).sum() for v in chosen]
    return float(np.sqrt(parts).mean()) if parts else 0.0
