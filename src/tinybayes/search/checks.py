"""A second look at the best runs of a search: on few validation rows the best one may be best by luck.

The runs whose validation errors are close to the best, the best ones of every family first, are repeated on other
splits of the rows. The one with the least mean error is chosen.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tinybayes.search.budget import Budget
from tinybayes.search.families import Sampled, family_of
from tinybayes.search.front import fits
from tinybayes.search.runs import Run

MOST, OF_A_SHAPE = 16, 2  # runs that are repeated, in all and of one shape
CLOSE = 1.5  # standard errors above the best, up to which a run may be better than it


class Score(NamedTuple):
    """The mean error (or other metric) and loss of a run over all splits, the rows, and the share of wrong labels."""

    error: float
    loss: float
    rows: int
    wrong: float | None = None


def standard_error(error: float, rows: int) -> float:
    """Return the standard error of a share of wrong labels; that of half a wrong row, at least."""
    return float(np.sqrt(max(error * (1 - error), 0.25 / max(1, rows)) / max(1, rows)))


def uncertainty(run: Run, rows: int, checked_on: int | None = None) -> float:
    """Return the standard error of the metric of a run on `rows`; less after a check on more."""
    if run.deviation is None:
        return standard_error(run.error, checked_on or rows)
    return run.deviation * float(np.sqrt(rows / (checked_on or rows)))


def doubtful(runs: Sequence[Run], budget: Budget, rows: int) -> list[Run]:
    """Return the runs that may be the best within a budget, as many as are worth a second look.

    The best of each family come first, then the second ones: hundreds of settings of one family hide others by luck.
    """
    if budget.error is not None:  # then the cheapest one is wanted
        return []
    within = sorted((run for run in runs if fits(run, budget)), key=lambda run: (run.error, run.loss))
    if not within:
        return []
    limit = within[0].error + CLOSE * uncertainty(within[0], rows)
    close: list[tuple[int, Run]] = []  # with their places in their families
    shapes, places = Counter[str](), Counter[str]()
    for run in within:
        family = family_of(run.setting)
        # Of settings without a shape of their own, those of one size count as one.
        shape = f"{family.shape(run.setting)} {0 if isinstance(family, Sampled) else run.price.flash}"
        shapes[shape] += 1
        if run.error <= limit and shapes[shape] <= OF_A_SHAPE:
            close.append((places[run.family], run))
            places[run.family] += 1
    return [run for _, run in sorted(close, key=lambda one: one[0])][:MOST]


def compared(figures: Mapping[str, Sequence[Sequence[float]]], parts: Sequence[int]) -> dict[str, Score]:
    """Return the scores of runs from their figures on one split after another: error, loss and share of wrong labels.

    `parts` are the rows of the splits. Where the time was up before all were done, the splits count that all of the
    runs have with more than one of them.
    """
    several = {key: own for key, own in figures.items() if len(own) > 1}
    if len(several) < 2:
        return {}
    count = min(map(len, several.values()))
    means = {key: np.mean(own[:count], axis=0).tolist() for key, own in several.items()}
    return {key: Score(error, loss, sum(parts[:count]), wrong) for key, (error, loss, wrong) in means.items()}


def checked(run: Run, scores: Mapping[str, Score]) -> Run:
    """Return a run with the errors of the second look, if it had one."""
    score = scores.get(run.key)
    return run if score is None else replace(run, error=score.error, loss=score.loss, wrong=score.wrong)
