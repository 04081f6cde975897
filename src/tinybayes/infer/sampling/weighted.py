"""Running importance samplers block by block on all cores, and turning their sums into estimates.

Each block of samples has its own random stream, so estimates depend on the seed and not on the threads.
"""

import math
import time
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tinybayes._kernels.draws import (
    IMPOSSIBLE,
    REFERENCE,
    SQUARES,
    TOTAL,
    Sampler,
    Shape,
    Weighted,
    draw_rows,
    draw_weighted,
)
from tinybayes._kernels.threads import for_blocks, thread_count
from tinybayes.errors import error
from tinybayes.infer.sampling.problem import Problem
from tinybayes.infer.sampling.result import Budget, Marginals, Progress

BLOCK = 1024  # samples that share a stream of random numbers
_ROUND = 0.1  # seconds between two reports


class Source(Protocol):
    """A distribution to draw weighted samples from."""

    @property
    def log_scale(self) -> float:
        """What the logarithm of a weight lacks."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What to tell the reader."""

    def draw(self, count: int, key: np.ndarray, sums: Weighted) -> None:
        """Draw samples from the stream that the key names, and add them to the sums."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """A proposal that draws variable by variable, ready for the kernels."""

    sampler: Sampler
    shape: Shape  # of the factors
    log_scale: float
    notes: tuple[str, ...] = ()
    # The entries of all factors: variables that matter for the weight are then averaged by their chances given all
    # others. Empty: by the values drawn.
    values: np.ndarray = field(default_factory=lambda: np.empty(0))
    blind: bool = False  # the zeros were not looked for ahead, since that would take too many entries

    @property
    def work(self) -> int:
        """Table entries that a sample looks at."""
        tables = np.diff(self.sampler.first_table)
        operations = int((tables * self.sampler.states).sum()) + len(tables)
        if len(self.values):
            uses = np.diff(self.shape.first_use)[self.sampler.variable]
            operations += int((uses * self.sampler.states)[~self.sampler.average].sum()) + len(self.shape.scope)
        return operations

    def draw(self, count: int, key: np.ndarray, sums: Weighted) -> None:
        """Draw samples and add them to the sums."""
        net = self.sampler
        x, chance = np.zeros(len(net.first_state) - 1, dtype=np.int32), np.zeros(int(net.first_state[-1]))
        entries, smoothed = np.zeros(len(self.shape.first_entry), dtype=np.int64), np.zeros(len(x), dtype=np.bool_)
        random = np.zeros(1, dtype=np.uint64)
        draw_weighted(net, self.shape, self.values, count, key, x, chance, random, entries, smoothed, sums)


def empty(size: int) -> Weighted:
    """Return sums over no samples."""
    return Weighted(np.array([-np.inf, 0.0, 0.0, 0.0]), *(np.zeros(size) for _ in range(3)))


def merge(total: Weighted, part: Weighted) -> Weighted:
    """Add up two sums, whose references may differ."""
    references = (total.weights[REFERENCE], part.weights[REFERENCE])
    top = max(references)
    a, b = (math.exp(reference - top) if reference > -math.inf else 0.0 for reference in references)
    weights = np.array([top, 0.0, 0.0, total.weights[IMPOSSIBLE] + part.weights[IMPOSSIBLE]])
    weights[TOTAL] = a * total.weights[TOTAL] + b * part.weights[TOTAL]
    weights[SQUARES] = a * a * total.weights[SQUARES] + b * b * part.weights[SQUARES]
    return Weighted(
        weights,
        a * total.first + b * part.first,
        a * a * total.second + b * b * part.second,
        a * a * total.third + b * b * part.third,
    )


def draw_blocks(source: Source, size: int, first: int, counts: list[int], seed: int) -> list[Weighted]:
    """Draw blocks of samples on all cores; a block has its own stream, so that threads change nothing."""
    done = [empty(size) for _ in counts]

    def work(begin: int, end: int) -> None:
        for block in range(begin, end):
            source.draw(counts[block], np.array([seed, first + block], dtype=np.uint64), done[block])

    for_blocks(work, len(counts), 1)
    return done


def rows(proposal: Proposal, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return samples of the open variables, and the logarithms of their weights."""
    net = proposal.sampler
    variables = len(net.first_state) - 1
    drawn, logs = np.zeros((count, variables), dtype=np.int32), np.empty(count)
    state = np.zeros(variables, dtype=np.int32), np.zeros(int(net.first_state[-1])), np.zeros(1, dtype=np.uint64)
    draw_rows(net, np.array([seed, 2**32], dtype=np.uint64), *state, drawn, logs)
    return drawn, logs + proposal.log_scale


def run(
    problem: Problem, source: Source, budget: Budget, seed: int, method: str, progress: Progress | None
) -> Marginals:
    """Draw until the budget is spent."""
    size = int(problem.first_state[-1])
    total, done, blocks = empty(size), 0, 0
    most = math.inf if budget.samples is None else budget.samples
    rate, lately = 0.0, time.perf_counter()

    def report() -> Marginals:
        return _estimates(problem, source, total, done, budget.spent, method)

    while done < most and (done == 0 or budget.left > 0):
        counts = _next_blocks(budget, rate, int(min(most - done, 2**40)))
        start = time.perf_counter()
        for part in draw_blocks(source, size, blocks, counts, seed):
            total = merge(total, part)
        now = time.perf_counter()
        rate = sum(counts) / max(now - start, 1e-6)
        done, blocks = done + sum(counts), blocks + len(counts)
        if progress is not None and total.weights[TOTAL] > 0 and now - lately >= _ROUND:
            lately = now
            progress(report())
    if not total.weights[TOTAL] > 0:
        raise error(
            "a sample with a weight above zero",
            f"none among {done:,}",
            where="evidence",
            remedy="it cannot occur, or is so rare that only method='tied', which looks ahead, meets it",
        )
    return report()


def _next_blocks(budget: Budget, rate: float, most: int) -> list[int]:
    """Return the sizes of the blocks of a round; without a time limit they are always the same."""
    threads = thread_count()
    if budget.seconds is None:
        count = max(threads, int(rate * _ROUND / BLOCK))
        return [min(BLOCK, most - k) for k in range(0, min(most, count * BLOCK), BLOCK)]
    wanted = int(min(most, max(rate * min(_ROUND, budget.left), 32 * threads)))
    size = min(BLOCK, max(1, -(-wanted // threads)))
    return [min(size, wanted - k) for k in range(0, wanted, size)]


def _estimates(
    problem: Problem, source: Source, sums: Weighted, samples: int, seconds: float, method: str
) -> Marginals:
    """Turn sums into estimates: ratios of weighted sums, with errors by the delta method."""
    reference, weight, square, dead = sums.weights.tolist()
    p = sums.first / weight
    variance = np.maximum(sums.third - 2 * p * sums.second + p * p * square, 0.0) / weight**2
    mean = weight / samples
    spread = max(square / samples - mean**2, 0.0) / samples
    notes = source.notes
    if dead:
        notes = (*notes, f"{dead / samples:.2%} of the samples had the weight zero")
    return Marginals(
        problem.variables,
        problem.spread(p, 1.0),
        problem.spread(np.sqrt(variance), 0.0),
        weight**2 / square,
        math.log(mean) + reference + source.log_scale,
        math.sqrt(spread) / mean,
        samples,
        seconds,
        dead / samples,
        method,
        False,
        notes,
    )
