"""Training in compiled calls of several epochs: how many at once, when to measure, what was best, what to report."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from tinybayes.learn.interrupts import interruptible
from tinybayes.learn.training import _arrays as arrays

SECONDS_A_CALL = 2.0  # how long one compiled call should take: the pause between two reports

Tell = Callable[[int, float], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Progress:
    """What a running training reports: epochs done of all, the least validation error so far, seconds left."""

    done: int
    total: int
    best_error: float
    seconds_left: float


class Epochs(ABC):
    """Configurations of equal shape on their way through the epochs.

    Parameters
    ----------
    count
        How many there are.
    keep_best
        Whether the parameters with the least validation error are kept.
    every
        Least number of epochs between two measurements; with `keep_best` their exact number, so that the result does
        not depend on the speed of the machine.
    """

    def __init__(self, count: int, *, keep_best: bool, every: int) -> None:
        self.count, self.keep_best, self.every = count, keep_best, max(1, every)
        self.history: list[tuple[int, np.ndarray]] = []
        self.best: arrays.Best | None = None
        self._measured, self._stride = 0, 1

    @abstractmethod
    def advance(self, first: int, last: int, epochs: int) -> None:
        """Run some of all epochs, in one compiled call."""

    @abstractmethod
    def validation_errors(self) -> jax.Array | None:
        """Return the errors of the parameters as they are now; None without validation rows."""

    @property
    @abstractmethod
    def current(self) -> Any:
        """The parameters as they are now."""

    def run(self, done: int, end: int, epochs: int, tell: Tell, interrupted: Event) -> int:
        """Run epochs up to `end` of all; return how many are done, which are fewer after an interrupt."""
        while done < end and not (done and interrupted.is_set()):
            last = min(done + self._stride, end)
            if self.keep_best:
                last = min(last, done - done % self.every + self.every)
            began = time.perf_counter()
            self.advance(done, last, epochs)
            seconds = (time.perf_counter() - began) / (last - done)
            if done > 0:  # the first call also compiles
                self._stride = int(np.clip(SECONDS_A_CALL / max(seconds, 1e-9), 1, max(1, epochs // 10)))
            done = last
            due = done % self.every == 0 if self.keep_best else done - self._measured >= self.every
            if due or done == epochs:
                self.measure(done)
            tell(done, float(self.history[-1][1].min()) if self.history else float("nan"))
        return done

    def measure(self, epoch: int, *, again: bool = False) -> None:
        """Look at the validation rows, unless that was done after this epoch; `again` where something changed since."""
        if self._measured == epoch and not again:
            return
        found = self.validation_errors()
        if found is None:
            return
        self._measured = epoch
        self.history.append((epoch, np.asarray(found)))
        if self.keep_best:
            # A copy, since the next call takes over the memory of the states.
            now = found, jax.tree.map(jnp.array, self.current)
            self.best = now if self.best is None else arrays.better(self.best, now)

    def kept(self) -> tuple[Any, np.ndarray]:
        """Return the parameters to keep, and their validation errors, NaN where nothing was measured."""
        if self.best is not None:
            return self.best[1], np.asarray(self.best[0])
        return self.current, self.history[-1][1] if self.history else np.full(self.count, np.nan)

    def history_of(self, one: int) -> tuple[tuple[int, float], ...]:
        """Return the epochs and errors of one configuration."""
        return tuple((epoch, float(errors[one])) for epoch, errors in self.history)


def in_parts(
    parts: Sequence[tuple[int, ...]],
    work: Callable[[tuple[int, ...], Tell, Event], list[Result]],
    *,
    epochs: int,
    device: jax.Device,
    report: Callable[[Progress], None] | None,
) -> list[Result]:
    """Train one part of the configurations after another; after an interrupt none is begun, but for the first."""
    results: dict[int, Result] = {}
    with interruptible() as interrupted, jax.default_device(device):
        for number, indices in enumerate(parts):
            if interrupted.is_set() and results:
                break
            found = work(indices, _teller(report, epochs, number, len(parts)), interrupted)
            results |= dict(zip(indices, found, strict=True))
    return [results[i] for i in sorted(results)]


def _teller(report: Callable[[Progress], None] | None, epochs: int, part: int, parts: int) -> Tell:
    """Return what a run calls to report, with the time left over all parts."""
    began = time.perf_counter()

    def tell(done: int, best: float) -> None:
        if report is not None:
            each = (time.perf_counter() - began) / done
            left = each * (epochs - done + epochs * (parts - part - 1))
            report(Progress(part * epochs + done, parts * epochs, best, left))

    return tell
