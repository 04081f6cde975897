"""The number that a search minimises: errors of several kinds, log loss, or what mistakes cost.

All of them are zero for a perfect model. Rows count by their weights.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tinybayes.model import Dataset

LEAST = -30.0  # the logarithm that a posterior of zero counts as


class Metric(NamedTuple):
    """How a metric is called and shown."""

    title: str
    percent: bool = False  # whether it is shown in percent
    most: float = 1.0  # the largest value
    help: str = ""


METRICS = {
    "error": Metric("error", True, help="the share of wrong labels"),
    "balanced": Metric("balanced error", True, help="the mean over classes of their errors"),
    "f1": Metric("1 - F1", help="one less the mean over classes of their F1 scores"),
    "logloss": Metric("log loss", most=np.inf, help="the mean of -log p(class | x) in nats"),
    "auc": Metric("1 - AUC", help="one less the mean area under the ROC curve of each class against the others"),
    "cost": Metric("mean cost", most=np.inf, help="the mean cost of the labels, by a cost matrix"),
}


@dataclass(frozen=True, eq=False)
class Measure:
    """A metric, and the costs of labels where it needs them."""

    name: str = "error"
    costs: np.ndarray | None = None  # true class by label

    @property
    def metric(self) -> Metric:
        """How the metric is called and shown."""
        return METRICS[self.name]

    def say(self, value: float, *, brief: bool = False) -> str:
        """Return a value in words."""
        title, number = self.metric.title, self.show(value, brief=brief)
        return f"{number} {title}" if self.metric.percent else f"{title} {number}"

    def show(self, value: float | None, *, brief: bool = False) -> str:
        """Return a value as a number, in percent where that is usual; a brief one has no zeros at its end."""
        if value is None:
            return ""
        if not self.metric.percent:
            return f"{value:.4g}"
        return f"{100 * value:.4g} %" if brief else f"{100 * value:.2f} %"

    @property
    def figures(self) -> tuple[str, str]:
        """The names of its values on validation and test rows in ``front.json``."""
        kind = "error" if self.name == "error" else "value"
        return f"validation_{kind}", f"test_{kind}"

    def to_dict(self) -> dict[str, object]:
        """Return what ``front.json`` says about the metric."""
        return {"name": self.name, "title": self.metric.title, "percent": self.metric.percent}


ERROR = Measure()


class Quality(NamedTuple):
    """How well a model labels rows."""

    value: float  # of the metric: what the search minimises
    loss: float  # mean log loss
    wrong: float  # share of wrong labels
    deviation: float | None = None  # standard error of the value, about; None for that of a share of rows


def quality(log_posteriors: Callable[[np.ndarray], np.ndarray], rows: Dataset, measure: Measure) -> Quality:
    """Measure a model on the rows with a known class."""
    assert rows.y is not None
    known = rows.rows(rows.y >= 0)
    assert known.y is not None
    return measured(log_posteriors(known.X), known.y, known.weight, measure)


def measured(log_p: np.ndarray, y: np.ndarray, weight: np.ndarray | None, measure: Measure) -> Quality:
    """Measure logarithms of posteriors, given the classes and the weights of the rows."""
    if weight is not None:
        counted = weight > 0
        log_p, y, weight = log_p[counted], y[counted], weight[counted]
    label = log_p.argmax(axis=1)
    miss = (label != y).astype(np.float64)
    lost = -np.maximum(log_p[np.arange(len(y)), y], LEAST)
    wrong, loss = (float(np.average(each, weights=weight)) for each in (miss, lost))
    of_row = {"error": miss, "logloss": lost}
    if measure.costs is not None:
        of_row["cost"] = measure.costs[y, label]
    if measure.name in of_row:
        values = of_row[measure.name]
        value = float(np.average(values, weights=weight))
        plain = measure.name == "error" and weight is None
        return Quality(value, loss, wrong, None if plain else _deviation(values, value, weight))
    ones = np.ones(len(y)) if weight is None else weight
    classes = log_p.shape[1]
    if measure.name == "auc":
        value = 1 - _area(log_p, y, ones)
        # Of the smaller one of a class and its opposite: by far the largest part of the variance.
        smaller = min(effective(ones), *(effective(ones[y == c]) for c in np.unique(y)))
        return Quality(value, loss, wrong, _of_share(value, smaller))
    confusion = np.zeros((classes, classes))
    np.add.at(confusion, (y, label), ones)
    if measure.name == "f1":
        value = 1 - _f1(confusion)
        return Quality(value, loss, wrong, _of_share(value, effective(ones)))
    shares = [(float(np.average(miss[y == c], weights=ones[y == c])), effective(ones[y == c])) for c in np.unique(y)]
    value = float(np.mean([share for share, _ in shares]))
    spread = float(np.sqrt(sum(_of_share(*share) ** 2 for share in shares))) / len(shares)
    return Quality(value, loss, wrong, spread)


def effective(weight: np.ndarray | None, rows: int = 0) -> float:
    """Return how many rows of weight one are worth as much (Kish); all `rows` where there are no weights."""
    if weight is None:
        return float(rows)
    return float(weight.sum() ** 2 / max(float((weight**2).sum()), 1e-300))


def _of_share(share: float, rows: float) -> float:
    """Return the standard error of a share; that of half a row, at least."""
    rows = max(1.0, rows)
    return float(np.sqrt(max(share * (1 - share), 0.25 / rows) / rows))


def _deviation(values: np.ndarray, mean: float, weight: np.ndarray | None) -> float:
    """Return the standard error of a mean over rows; where all rows are alike, that of half a row."""
    rows = max(1.0, effective(weight, len(values)))
    variance = float(np.average((values - mean) ** 2, weights=weight))
    return float(np.sqrt(max(variance, 0.25 * max(mean, 1.0 / rows) ** 2 / rows) / rows))


def _f1(confusion: np.ndarray) -> float:
    """Return the mean F1 score of the classes that occur or are predicted."""
    both = confusion.sum(axis=0) + confusion.sum(axis=1)
    there = both > 0
    return float((2 * np.diag(confusion)[there] / both[there]).mean())


def _area(scores: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Return the mean over classes of the area under the ROC curve of each class against the others.

    The area is the chance that a row of the class has a higher score than one of another class; ties count half.
    Classes without rows are left out.
    """
    areas = []
    for c in np.unique(y):
        own = y == c
        if own.all():
            continue
        _, place = np.unique(scores[:, c], return_inverse=True)
        others = np.bincount(place[~own], weight[~own], minlength=place.max() + 1)
        below = np.cumsum(others) - others / 2
        areas.append(float(weight[own] @ below[place[own]] / (weight[own].sum() * others.sum())))
    return float(np.mean(areas)) if areas else 0.5
