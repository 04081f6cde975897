"""The Pareto front, models that no other one beats in error, bits and operations, and the choice among them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tinybayes.search.budget import Budget

if TYPE_CHECKING:
    from tinybayes.search.study import Run

MOST_FINALS = 24  # models of the front that are retrained and tested


def pareto(points: np.ndarray) -> np.ndarray:
    """Tell which rows are not dominated; smaller is better in every column, and of equal rows the first stays."""
    points = np.asarray(points, dtype=float)
    kept = np.zeros(len(points), dtype=bool)
    order = np.lexsort((np.arange(len(points)), *points.T[::-1]))
    front: list[int] = []
    for i in order:  # a point can only be dominated by one that comes before it in this order
        if not front or not (points[front] <= points[i]).all(axis=1).any():
            front.append(int(i))
            kept[i] = True
    return kept


def ranks(points: np.ndarray) -> np.ndarray:
    """Return for each point how many fronts must be taken away before it is on one."""
    points = np.asarray(points, dtype=float)
    rank_of = np.full(len(points), -1)
    left, rank = np.arange(len(points)), 0
    while len(left):
        best = pareto(points[left])
        rank_of[left[best]] = rank
        left, rank = left[~best], rank + 1
    return rank_of


def on_front(runs: "Sequence[Run]") -> np.ndarray:
    """Tell which runs no other one beats in validation error, bits and operations."""
    return pareto(np.array([run.objectives for run in runs]))


def finalists(runs: "Sequence[Run]", budget: Budget) -> "list[Run]":
    """Return the runs that are worth retraining: the front, the best within the budget first."""
    front = [run for run, best in zip(runs, on_front(runs), strict=True) if best]
    within = sorted((r for r in runs if budget.allows(r.bits, r.operations) and r.saved), key=_quality)
    order = [*within[:3], *sorted(front, key=lambda r: (not budget.allows(r.bits, r.operations), _quality(r)))]
    unique = {run.key: run for run in order}
    return list(unique.values())[:MOST_FINALS]


def choose(runs: "Sequence[Run]", budget: Budget) -> "Run | None":
    """Return the most accurate deployable run within the budget; or, given an error, the cheapest that reaches it."""
    within = [r for r in runs if r.saved and budget.allows(r.bits, r.operations)]
    if budget.error is not None:
        good = [r for r in within if r.error <= budget.error]
        return min(good, key=lambda r: (r.bits, r.operations, r.error), default=None)
    return min(within, key=lambda r: (*_quality(r), r.bits), default=None)


def closest(runs: "Sequence[Run]", budget: Budget) -> "Run | None":
    """Return the deployable run that misses the budget by the least: the price first, then the error."""
    saved = [r for r in runs if r.saved]
    return min(saved, key=lambda r: (budget.excess(r.bits, r.operations), *_quality(r), r.bits), default=None)


def shortfall(run: "Run | None", label: str, budget: Budget) -> str:
    """Say that no model keeps the limits, and which one, with its label, came closest."""
    if run is None:
        return "No model that can be exported was finished: give the search more time, or other families."
    if not budget.allows(run.bits, run.operations):
        price = f"{run.bits:,} bits and {run.operations:,} operations"
        return f"No model was found within the budget; the closest takes {price}: {label}. Allow more, or drop columns."
    wanted, reached = (f"{100 * share:.4g} %" for share in (budget.error or 0.0, run.error))
    remedy = "Give the search more time or a larger budget, or allow more errors."
    return f"No model with at most {wanted} error was found; the closest has {reached} on validation: {label}. {remedy}"


def _quality(run: "Run") -> tuple[float, float]:
    return run.error, run.loss
