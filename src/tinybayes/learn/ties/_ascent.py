"""The optimiser of the weights of tie classes, its options and its result."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize

from tinybayes.errors import error
from tinybayes.learn.interrupts import interruptible
from tinybayes.model import BayesNet, LogLinear
from tinybayes.options import check_options, option

MAX_RELEARN_EDGES = 20_000_000
REACH = 30.0
"""The largest distance of a weight from its start, for weights that the data would send to infinity."""
Method = Literal["exact", "rows", "approximate"]
M = TypeVar("M", LogLinear, BayesNet)


@dataclass(frozen=True, kw_only=True)
class RelearnOptions:
    """The hyper-parameters of `relearn`."""

    prior: float | Literal["auto"] = option("auto", "Rows that the model counts for; auto: one if a level is unused.")
    tolerance: float = option(1e-6, "Stop when no mean count differs by more from the model's.", low=0)
    steps: int = option(1000, "Stop after so many steps.", low=1)
    max_edges: int = option(MAX_RELEARN_EDGES, "Largest circuit to compile; beyond it, the model is sampled.", low=0)
    chains: int = option(1000, "Gibbs chains, where the model is sampled.", low=1)
    sweeps: int = option(2, "Sweeps of the chains between two steps.", low=1)
    seed: int = option(0, "Seed of the chains.", low=0)

    def __post_init__(self) -> None:
        check_options(self)
        if self.prior != "auto" and not (isinstance(self.prior, float | int) and 0 <= self.prior < np.inf):
            raise error("a finite number that is not negative, or 'auto'", repr(self.prior), where="prior")


@dataclass(frozen=True)
class RelearnProgress:
    """The state of relearning: steps, mean log-likelihood (None when only sampled), gradient, seconds."""

    step: int
    log_likelihood: float | None
    gradient: float
    seconds: float


@dataclass(frozen=True)
class Relearned(Generic[M]):
    """The result of `relearn`.

    Parameters
    ----------
    model
        The model with new weights, and the same ties.
    method
        ``"exact"``; ``"rows"``, with normalised rows; or ``"approximate"``, from persistent samples.
    before, after
        Mean log-likelihood of the rows learned from, in nats, before and after; None when approximate. By Proposition 1
        `after` is never below `before`.
    log_partition
        ``log Z`` of the model; None when approximate.
    steps, gradient, converged
        Steps taken; the largest difference that remains between mean counts in the rows and in the model; whether it is
        within the tolerance (when approximate: within the error of the samples).
    prior
        The number of rows that the model itself counted for, beside the data.
    unused
        Tie classes that no row uses; without a prior the likelihood would send their weights to minus infinity.
    limited
        Tie classes whose weights stopped at a distance of `REACH`, since the likelihood would send them to infinity.
    complete
        False when an interrupt ended it.
    seconds
        Wall time.
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
    """Free weights, the value of the objective there, and the largest slope that remains."""

    weights: np.ndarray
    value: float
    left: float


class Ascent:
    """Maximises the likelihood over the finite weights of tie classes.

    Parameters
    ----------
    start
        The initial weights.
    counts
        The counts of the classes in the data.
    rows
        The weight of all rows.
    options
        The prior, and when to stop.
    report
        Called after each step.
    """

    def __init__(
        self,
        start: np.ndarray,
        counts: np.ndarray,
        rows: float,
        options: RelearnOptions,
        report: Callable[[RelearnProgress], None] | None = None,
    ) -> None:
        if (np.isneginf(start) & (counts > 0)).any():
            remedy = "smooth the model (for a network: tie with zeros=1e-4), or leave these rows out"
            raise error("data that the model allows", "rows of probability zero", where="data", remedy=remedy)
        self.start, self.options, self.report, self.free = start, options, report, np.isfinite(start)
        self.unused = int((self.free & (counts == 0)).sum())
        self.prior = float(self.unused > 0) if options.prior == "auto" else float(options.prior)
        self.share = self.prior / (rows + self.prior)
        self.spread = np.sqrt(np.maximum(counts[self.free] / rows, 1e-4))
        self.weights, self.left, self.steps, self.converged = start, np.inf, 0, False
        self.complete = True
        self._began = time.perf_counter()

    def full(self, moved: np.ndarray) -> np.ndarray:
        """Return all weights, given the free ones."""
        weights = self.start.copy()
        weights[self.free] = moved
        return weights

    def tell(self, value: float | None, left: float) -> None:
        """Count a step and report it."""
        self.steps += 1
        if self.report is not None:
            self.report(RelearnProgress(self.steps, value, left, time.perf_counter() - self._began))

    def climb(self, objective: Callable[[np.ndarray], tuple[float, np.ndarray]]) -> np.ndarray:
        """Maximise a concave function by L-BFGS; an interrupt ends it. Return the best weights seen.

        Some classes are used far more often than others. Scaled by the spread of its count, each weight has about the
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
        """Return the result."""
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
