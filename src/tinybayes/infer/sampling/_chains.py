"""Running Markov chains side by side for a budget, and what their batches say."""

import math
import time
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tinybayes._kernels.threads import for_blocks, thread_count
from tinybayes.infer.sampling.result import Budget, Marginals, Progress
from tinybayes.model import Variable

ROUNDS = 40  # batches of each chain
_REPORT = 0.1  # seconds


class Chain(Protocol):
    """A chain that goes on where it stopped."""

    def advance(self, sweeps: int) -> np.ndarray:
        """Do so many sweeps and return the sum over them of the chances of all states."""


def run_chains(
    variables: tuple[Variable, ...],
    chains: Sequence[Chain],
    first_state: np.ndarray,
    budget: Budget,
    method: str,
    progress: Progress | None,
    notes: tuple[str, ...] = (),
) -> Marginals:
    """Let chains run in rounds until the budget is spent; a round of a chain is a batch."""
    sums: list[np.ndarray] = []
    lengths: list[int] = []
    rate, done, lately = 0.0, 0, time.perf_counter()

    def report() -> Marginals:
        return _estimates(variables, np.array(sums), np.array(lengths), first_state, budget.spent, method, notes)

    most = math.inf if budget.samples is None else max(2, math.ceil(budget.samples / len(chains)))
    while done < most and (done == 0 or budget.left > 0):
        sweeps = _sweeps(budget, rate, most - done, most)
        parts: list[np.ndarray] = [np.empty(0)] * len(chains)

        def work(begin: int, end: int, parts: list[np.ndarray] = parts, sweeps: int = sweeps) -> None:
            for c in range(begin, end):
                parts[c] = chains[c].advance(sweeps)

        start = time.perf_counter()
        for_blocks(work, len(chains), 1)
        now = time.perf_counter()
        rate = sweeps / max(now - start, 1e-7)
        sums.append(np.array(parts))
        lengths.append(sweeps)
        done += sweeps
        if progress is not None and len(sums) > 1 and now - lately >= _REPORT:
            lately = now
            progress(report())
    return report()


def chain_count() -> int:
    """Return how many chains to run: some for each thread, and enough to compare them."""
    return max(4, thread_count())


def _sweeps(budget: Budget, rate: float, left: float, most: float) -> int:
    """Return the length of the next round."""
    if budget.seconds is None:
        return int(min(left, max(1, most // ROUNDS)))
    wanted = max(1.0, rate * min(budget.seconds / ROUNDS, max(budget.left, 0.0)))
    return int(min(left, wanted))


def _estimates(
    variables: tuple[Variable, ...],
    sums: np.ndarray,
    lengths: np.ndarray,
    first_state: np.ndarray,
    seconds: float,
    method: str,
    notes: tuple[str, ...],
) -> Marginals:
    """Average the batches; errors from their spread or from that of whole chains, whichever is larger."""
    rounds, chains, _ = sums.shape
    total = lengths.sum() * chains
    mean = sums.sum(axis=(0, 1)) / total
    with np.errstate(divide="ignore", invalid="ignore"):
        each = sums / lengths[:, None, None]
        within = (lengths[:, None, None] * (each - mean) ** 2).sum(axis=(0, 1)) / max(rounds * chains - 1, 1) / total
        between = ((sums.sum(axis=0) / lengths.sum() - mean) ** 2).sum(axis=0) / max(chains - 1, 1) / chains
        variance = np.maximum(within, between)
        effective = float((mean * (1 - mean)).sum() / variance.sum()) if variance.sum() > 0 else float(total)
    cuts = first_state[1:-1]
    probabilities = tuple(np.split(mean, cuts))
    errors = tuple(np.split(np.sqrt(variance), cuts))
    return Marginals(
        variables, probabilities, errors, effective, None, None, int(total), seconds, 0.0, method, False, notes
    )
