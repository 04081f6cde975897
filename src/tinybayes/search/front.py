"""The Pareto front, models that no other one beats in error, flash and instructions, and the choice among them."""

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tinybayes.search.budget import Budget
from tinybayes.search.measure import ERROR, Measure

if TYPE_CHECKING:
    from tinybayes.search.runs import Run

MOST_FINALS = 24  # models of the front that are retrained and tested
# Losses count as equal up to these: a share and a number of nats.
SHARE, NATS = 0.1, 0.01


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
    """Tell which runs no other one beats in validation error, flash and instructions.

    Where only tables are priced, the program would cost more; so such a run beats others of its kind alone.
    """
    points = np.array([run.objectives for run in runs])
    programs = np.array([not run.price.tables_only for run in runs])
    kept = pareto(points)
    if programs.any():
        kept[programs] = pareto(points[programs])
    return kept


def finalists(runs: "Sequence[Run]", budget: Budget, trusted: Container[str] = ()) -> "list[Run]":
    """Return the runs that are worth retraining: the front, the best within the budget first."""
    front = [run for run, best in zip(runs, on_front(runs), strict=True) if best]
    within = sorted((r for r in runs if fits(r, budget)), key=_quality)
    best = [run] if (run := choose(runs, budget, trusted)) is not None else []
    order = [*best, *within[:3], *sorted(front, key=lambda r: (not budget.allows(r.price), _quality(r)))]
    unique = {run.key: run for run in order}
    return list(unique.values())[:MOST_FINALS]


def choose(runs: "Sequence[Run]", budget: Budget, trusted: Container[str] = ()) -> "Run | None":
    """Return the most accurate deployable run within the budget; or, given an error, the cheapest that reaches it.

    Accurate by the metric of the search.

    Where runs are `trusted`, since their errors are means over several splits, it is one of them.
    """
    within = [r for r in runs if fits(r, budget)]
    within = [r for r in within if r.key in trusted] or within
    if budget.error is not None:
        good = [r for r in within if r.error <= budget.error]
        return min(good, key=lambda r: (*_price(r), r.error), default=None)
    return most_accurate(within)


def most_accurate(runs: "Sequence[Run]") -> "Run | None":
    """Return the run with the least error; of runs with equal errors and about equal losses, the cheapest program."""
    least = min((r.error for r in runs), default=0.0)
    equal = [r for r in runs if r.error == least]
    loss = min((r.loss for r in equal), default=0.0)
    return min(
        (r for r in equal if r.loss <= (1 + SHARE) * loss + NATS), key=lambda r: (*_price(r), r.loss), default=None
    )


def closest(runs: "Sequence[Run]", budget: Budget) -> "Run | None":
    """Return the deployable run that misses the budget by the least: the price first, then the error."""
    saved = [r for r in runs if r.saved]
    return min(saved, key=lambda r: (budget.excess(r.price), *_quality(r), *_price(r)), default=None)


def shortfall(run: "Run | None", label: str, budget: Budget, measure: Measure = ERROR) -> str:
    """Say that no model keeps the limits, and which one, with its label, came closest."""
    if run is None:
        return "No model that can be exported was finished: give the search more time, or other families."
    if not budget.allows(run.price):
        price = _taken(run, budget)
        return f"No model was found within the budget; the closest takes {price}: {label}. Allow more, or drop columns."
    if not fits(run, budget):
        return f"No model whose program can be priced was found within the budget; the closest is {label}."
    wanted, reached = measure.say(budget.error or 0.0, brief=True), measure.show(run.error, brief=True)
    remedy = "Give the search more time or a larger budget, or allow more."
    return f"No model with at most {wanted} was found; the closest has {reached} on validation: {label}. {remedy}"


def _taken(run: "Run", budget: Budget) -> str:
    """Say what a run takes of all that is limited."""
    price = run.price
    words = {
        "flash": f"{price.flash:,} bytes of flash",
        "ram": f"{price.ram + price.stack:,} bytes of RAM",
        "microseconds": f"{price.microseconds(budget.clock):,.0f} us",
        "bits": f"{price.bits:,} bits of parameters",
        "operations": f"{price.operations:,} operations",
        "features": f"{price.features or 0:g} for features",
    }
    *some, last = [text for name, text in words.items() if getattr(budget, name) is not None]
    told = f"{', '.join(some)} and {last}" if some else last
    estimated = "about " if budget.of_program else ""
    return estimated + told


def fits(run: "Run", budget: Budget) -> bool:
    """Tell whether a run can be deployed within the budget; what has only tables priced may have a larger program."""
    return run.saved and budget.allows(run.price) and not (run.price.tables_only and budget.of_program)


def _price(run: "Run") -> tuple[float, float, float]:
    return run.price.features or 0.0, run.price.flash, run.price.instructions


def _quality(run: "Run") -> tuple[float, float]:
    return run.error, run.loss
