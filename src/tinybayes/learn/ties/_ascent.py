"""The search for the best weights of tie classes, shared by the ways of relearning, and what it tells."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize

from tinybayes.errors import error
from tinybayes.learn.interrupts import interruptible
from tinybayes.model import BayesNet, LogLinear

REACH = 30.0
"""How far a weight may go from where it starts, where the data would send it to infinity."""
Method = Literal["exact", "rows", "approximate"]
M = TypeVar("M", LogLinear, BayesNet)


@dataclass(frozen=True)
class Relearning:
    """How far relearning has come: steps, mean log-likelihood (None when only sampled), gradient, seconds."""

    step: int
    log_likelihood: float | None
    gradient: float
    seconds: float


@dataclass(frozen=True)
class Relearned(Generic[M]):
    """What relearning made.

    Parameters
    ----------
    model
        The model with new weights, and the same ties.
    method
        ``"exact"``; ``"rows"``, each row of each table normalised; or ``"approximate"``, from persistent samples.
    before, after
        Mean log-likelihood of the rows learned from, in nats, before and after; None when approximate. By Proposition 1
        `after` is never below `before`.
    log_partition
        ``log Z`` of the model; None when approximate.
    steps, gradient, converged
        Steps taken; the largest difference left between mean counts in the rows and in the model; whether it is within
        the tolerance, or when approximate within what the samples can tell.
    prior
        How many rows the model itself counted for, beside the data.
    unused
        Tie classes that no row uses; without a prior the likelihood would send their weights to minus infinity.
    limited
        Tie classes whose weights stopped at a distance of `REACH`, since the likelihood would send them to infinity.
    complete
        False when an interrupt ended it.
    seconds
        How long it took.
    """

    model: M
    method: Method
    before: float | None
    after: float | None
    log_partition: float | None
    steps: int
    gradient: float
    converged: bool
    prior: float
    unused: int
    limited: int
    complete: bool
    seconds: float


class Point(NamedTuple):
    """Weights that may move, the value of the objective there, and the largest slope that is left."""

    weights: np.ndarray
    value: float
    left: float


@dataclass(frozen=True)
class Options:
    """What every way of relearning takes."""

    prior: float | Literal["auto"]
    tolerance: float
    steps: int
    report: Callable[[Relearning], None] | None

    def __post_init__(self) -> None:
        for name, word in (("prior", " or 'auto'"), ("tolerance", "")):
            value = getattr(self, name)
            if not (isinstance(value, float | int) and 0 <= value < np.inf) and not (word and value == "auto"):
                raise error(f"a finite number that is not negative{word}", repr(value), where=name)
        if not (isinstance(self.steps, int) and self.steps >= 1):
            raise error("at least one step", repr(self.steps), where="steps")


class Ascent:
    """A way up from the weights of tie classes: which of them may move, and how far it has come.

    Parameters
    ----------
    start
        The weights at the start.
    counts
        The counts of the classes in the data.
    rows
        The weight of all rows.
    options
        A prior, when to stop, and whom to tell.
    """

    def __init__(self, start: np.ndarray, counts: np.ndarray, rows: float, options: Options) -> None:
        if (np.isneginf(start) & (counts > 0)).any():
            remedy = "smooth the model (for a network: tie with zeros=1e-4), or leave these rows out"
            raise error("data that the model allows", "rows of probability zero", where="data", remedy=remedy)
        self.start, self.options, self.free = start, options, np.isfinite(start)
        self.unused = int((self.free & (counts == 0)).sum())
        self.prior = float(self.unused > 0) if options.prior == "auto" else float(options.prior)
        self.share = self.prior / (rows + self.prior)
        self.spread = np.sqrt(np.maximum(counts[self.free] / rows, 1e-4))
        self.weights, self.left, self.steps, self.converged = start, np.inf, 0, False
        self.complete = True
        self._began = time.perf_counter()

    def full(self, moved: np.ndarray) -> np.ndarray:
        """Return all weights, given those that may move."""
        weights = self.start.copy()
        weights[self.free] = moved
        return weights

    def tell(self, value: float | None, left: float) -> None:
        """Count a step and report it."""
        self.steps += 1
        if self.options.report is not None:
            self.options.report(Relearning(self.steps, value, left, time.perf_counter() - self._began))

    def climb(self, objective: Callable[[np.ndarray], tuple[float, np.ndarray]]) -> np.ndarray:
        """Maximise a concave function by L-BFGS; an interrupt ends it. Return the best weights seen.

        Classes differ much in how often they are used. In units of the spread of its count each weight has about the
        same curvature.
        """
        start = self.start[self.free]
        spread = self.spread
        if not len(start):
            self.left, self.converged = 0.0, True
            return self.start
        best = now = Point(start, -np.inf, np.inf)

        def loss(u: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal best, now
            w = start + u / spread
            value, slope = objective(self.full(w))
            slope = slope[self.free]
            inside = np.abs(w - start) < REACH * (1 - 1e-9)
            now = Point(w, value, float(np.abs(slope[inside]).max(initial=0.0)))
            if now.value > best.value or (now.left < best.left and now.value >= best.value - 1e-12 * abs(best.value)):
                best = now
            return -value, -slope / spread

        with interruptible() as interrupted:

            def after_step(_: np.ndarray) -> None:
                self.tell(now.value, now.left)
                if interrupted.is_set() or now.left <= self.options.tolerance:
                    raise StopIteration

            limits = np.stack([-REACH * spread, REACH * spread], axis=1)
            steps = self.options.steps
            how = {"maxiter": steps, "maxfun": 20 * steps, "ftol": 0.0, "gtol": 0.0, "maxcor": 30}
            u = np.zeros(len(start))
            minimize(loss, u, jac=True, method="L-BFGS-B", bounds=limits, callback=after_step, options=how)
            self.complete = not interrupted.is_set()
        self.left, self.converged = best.left, best.left <= self.options.tolerance
        self.weights = self.full(best.weights)
        return self.weights

    def result(
        self, model: M, method: Method, before: float | None, after: float | None, log_partition: float | None
    ) -> Relearned[M]:
        """Sum up."""
        moved = np.abs(self.weights[self.free] - self.start[self.free])
        return Relearned(
            model,
            method,
            before,
            after,
            log_partition,
            steps=self.steps,
            gradient=self.left,
            converged=self.converged,
            prior=self.prior,
            unused=self.unused,
            limited=int((moved >= REACH * (1 - 1e-9)).sum()),
            complete=self.complete,
            seconds=time.perf_counter() - self._began,
        )
