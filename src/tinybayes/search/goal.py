"""What a search is for: the metric that it minimises, and how much the classes and their mistakes count."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tinybayes.errors import error
from tinybayes.files import exists
from tinybayes.model import Variable
from tinybayes.model.variable import distinct_texts
from tinybayes.search.measure import ERROR, METRICS, Measure
from tinybayes.search.named_numbers import check_names, matrix_of, numbers_of

BALANCED = "balanced"


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What decides in a search. Classes are named as in the table.

    Parameters
    ----------
    metric
        What is minimised on the validation rows: ``"error"``; ``"balanced"``, the mean over classes of their errors;
        ``"f1"``, one less the mean F1 score of the classes; ``"logloss"``; ``"auc"``, one less the mean area under the
        ROC curve of each class against the others; or ``"cost"``, the mean cost of labels. By default the cost where
        `costs` are given, else the error.
    class_weight
        How much the rows of a class count in training: ``"balanced"`` for ``rows / (classes * rows of the class)``, a
        number for each class (others count 1), or a JSON or CSV file of such numbers. Figures are not weighted by it.
    costs
        What a label costs, by true class and label: a mapping of mappings, a frame, an array in the order of the sorted
        classes, or a JSON or CSV file. In training, rows count by the mean cost of mistaking their class.
    """

    metric: str | None = None
    class_weight: str | Path | Mapping[Any, float] | None = None
    costs: Any = None

    def __post_init__(self) -> None:
        if self.metric is not None and self.metric not in METRICS:
            raise error(f"one of {', '.join(METRICS)}", repr(self.metric), where="metric")
        if self.metric == "cost" and self.costs is None:
            raise error("a cost matrix for the metric cost", "none", where="metric", remedy="give the costs of labels")

    @property
    def measure(self) -> Measure:
        """The metric, before the costs are known."""
        return Measure(self.metric or ("error" if self.costs is None else "cost"))


class Decision(NamedTuple):
    """A goal, once the classes of the table are known."""

    measure: Measure
    balanced: bool  # whether classes count as much as each other
    class_weight: np.ndarray | None  # otherwise: how much each class counts
    classes: int

    def class_factor(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
        """Return how much rows of each class count in training, with a mean of 1 over the rows; None for all 1."""
        if not self.balanced and self.class_weight is None and self.measure.costs is None:
            return None
        factor = np.ones(self.classes) if self.class_weight is None else self.class_weight
        count = np.bincount(y[y >= 0], None if weight is None else weight[y >= 0], minlength=len(factor))
        if self.balanced:
            factor = count.sum() / (len(factor) * np.where(count > 0, count, np.inf))
        if self.measure.costs is not None:
            factor = factor * of_mistakes(self.measure.costs)
        total = float(factor @ count)
        return factor * count.sum() / total if total > 0 else np.zeros(len(factor))

    def watched_factor(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
        """Return how much rows of each class count in the error by which training by gradient keeps its best epoch.

        That error is to be as close to the metric as can be: it is the same for errors and balanced errors.
        """
        if self.measure.name == "error":
            return None
        costs = self.measure.costs if self.measure.name == "cost" else None
        even = self.measure.name in ("balanced", "f1")
        own = Decision(Measure(costs=costs), even, None, self.classes)
        factor = (own if even or costs is not None else self).class_factor(y, weight)
        return factor if factor is None or factor.any() else None

    def meaning(self) -> dict[str, Any]:
        """Return what another search must share to go on with the runs of this one; nothing for the usual goal."""
        costs, weight = self.measure.costs, BALANCED if self.balanced else self.class_weight
        meaning = {
            "metric": None if self.measure.name == "error" else self.measure.name,
            "class weights": weight.tolist() if isinstance(weight, np.ndarray) else weight,
            "costs": None if costs is None else costs.tolist(),
        }
        return {name: value for name, value in meaning.items() if value is not None}


USUAL = Decision(ERROR, False, None, 0)


def decide(goal: Goal | str | None, target: Variable) -> Decision:
    """Find out what a goal means for the classes of a table; a text is the name of a metric."""
    if not isinstance(goal, Goal):
        goal = Goal(metric=goal)
    names = distinct_texts(target.states)
    costs = None if goal.costs is None else matrix_of(goal.costs, names, "costs")
    if costs is not None and not of_mistakes(costs).any():
        raise error("a mistake that costs more than the right label", "none", where="costs")
    measure = replace(goal.measure, costs=costs)
    balanced = isinstance(goal.class_weight, str) and goal.class_weight == BALANCED
    if goal.class_weight is None or balanced:
        return Decision(measure, balanced, None, len(names))
    if isinstance(goal.class_weight, str) and not exists(goal.class_weight):
        raise error(f"{BALANCED}, or a JSON or CSV file", repr(goal.class_weight), where="class weights")
    given = numbers_of(goal.class_weight, "class weights")
    check_names(given, names, "class weights")
    if not any(given.get(name, 1.0) for name in names):
        raise error("a weight above 0", "only zeros", where="class weights")
    return Decision(measure, False, np.array([given.get(name, 1.0) for name in names]), len(names))


def of_mistakes(costs: np.ndarray) -> np.ndarray:
    """Return how much more mistaking a class costs, on average, than its right label."""
    right = np.diag(costs)
    return np.maximum((costs.sum(axis=1) - right) / (len(costs) - 1) - right, 0.0)
