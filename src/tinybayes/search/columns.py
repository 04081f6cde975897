"""Columns that models read: where features have prices, models are learned on few of them.

Columns are ranked by what they tell about the class for their price, and a setting says how many of the first ones its
model reads. Trees are cut down to the columns that they test. What a model reads is what it costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tinybayes.errors import LimitError, error
from tinybayes.model import Classifier, Dataset, TreeEnsemble
from tinybayes.search.named_numbers import check_names, numbers_of
from tinybayes.search.views import View, Views

STEPS = 6  # numbers of columns that are tried
LIKELY, PICKED, ROWS = 100, 40, 5000  # columns that are compared, picked one after another, and rows for it, at most
FREE = 0.1  # of the mean price, which is added to every price: free columns that tell nothing come late
DEFAULT = "*"
_SUBSETS: "WeakKeyDictionary[Views, dict[int, Views]]" = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Columns:
    """What the features cost, and their order of usefulness for the price."""

    costs: np.ndarray
    ranking: np.ndarray  # of the columns; those that the limit leaves no room for come last
    affordable: int  # how many of the ranking the limit has room for

    def choices(self, least: int = 1) -> list[int]:
        """Return the numbers of columns to try, at least `least` where there are so many."""
        numbers = np.rint(np.geomspace(1, self.affordable, STEPS)).astype(int).tolist()
        return [n for n in dict.fromkeys(numbers) if n >= least] or [self.affordable]

    @property
    def prices(self) -> np.ndarray:
        """The prices of the features, with a mean of 1 over those that cost something."""
        return self.costs / (self.costs[self.costs > 0].mean() if self.costs.any() else 1.0)


def priced(views: Views, given: object, limit: float | None) -> Views:
    """Return a table whose features have prices."""
    variables = views.by_name["mdlp"].seen.variables
    names = [variable.name for variable in variables]
    numbers = numbers_of(given, "feature costs")
    usual = numbers.pop(DEFAULT, 0.0)
    check_names(numbers, names, "feature costs")
    costs = np.array([numbers.get(name, usual) for name in names])
    if not costs.any():
        raise error("a feature that costs something", "zeros only", where="feature costs")
    ranking = rank(views.rows("coarse")[0], costs)  # other cut points drop weak columns
    room: list[int] = []
    for column in ranking.tolist():
        if limit is None or costs[[*room, column]].sum() <= limit * (1 + 1e-9):
            room.append(column)
    if not room:
        expected = f"a limit of at least {costs.min():g}, the cheapest feature"
        raise error(expected, f"{limit:g}", where="feature cost", remedy="allow more", kind=LimitError)
    others = [column for column in ranking.tolist() if column not in set(room)]
    return replace(views, prices=Columns(costs, np.array(room + others), len(room)))


def rank(data: Dataset, costs: np.ndarray) -> np.ndarray:
    """Order columns by what they add to those before, for their price.

    What a column adds is its mutual information with the class, given the one of the columns so far that leaves the
    least of it (Fleuret 2004, "Fast binary feature selection with conditional mutual information").
    """
    known = np.flatnonzero(np.ones(len(data), bool) if data.y is None else data.y >= 0)
    rows = data.rows(known[:: max(1, -(-len(known) // ROWS))])
    assert rows.y is not None
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    X, y = rows.X.astype(np.int64) + 1, rows.y.astype(np.int64)  # what is missing is a state, too
    price = costs + FREE * costs[costs > 0].mean()
    alone = np.array([_tells(column, np.zeros_like(y), y, weight) for column in X.T])
    adds = alone.copy()
    left = np.argsort(-alone / price, kind="stable")[:LIKELY].tolist()
    picked: list[int] = []
    while left and len(picked) < PICKED:
        best = max(left, key=lambda column: (adds[column] / price[column], -price[column]))
        picked.append(best)
        left.remove(best)
        for column in left:
            adds[column] = min(adds[column], _tells(X[:, column], X[:, best], y, weight))
    rest = np.setdiff1d(np.arange(len(costs)), picked)
    return np.array([*picked, *rest[np.argsort(-alone[rest] / price[rest], kind="stable")]], dtype=np.int64)


def _tells(x: np.ndarray, given: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Return the mutual information of x and y given another column, less what chance gives, 0 at least."""
    chance = len(np.unique(given)) * (len(np.unique(x)) - 1) * (len(np.unique(y)) - 1) / (2 * len(y))
    return max(0.0, _information(x, given, y, weight) - chance)


def _information(x: np.ndarray, given: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Return the mutual information of x and y given another column, in nats."""
    shape = int(given.max()) + 1, int(x.max()) + 1, int(y.max()) + 1
    joint = np.bincount(np.ravel_multi_index((given, x, y), shape), weight, minlength=int(np.prod(shape)))
    p = joint.reshape(shape) / weight.sum()
    return float(_entropy(p.sum(axis=2)) + _entropy(p.sum(axis=1)) - _entropy(p) - _entropy(p.sum(axis=(1, 2))))


def _entropy(p: np.ndarray) -> float:
    positive = p[p > 0]
    return float(-(positive * np.log(positive)).sum())


def subset(views: Views, setting: dict[str, Any]) -> Views:
    """Return the table with the columns that a setting reads."""
    count = setting.get("columns")
    return views if count is None else first_columns(views, count)


def first_columns(views: Views, count: int) -> Views:
    """Return the table with the first columns of the ranking, in the order of the table; always the same object."""
    prices = views.prices
    assert prices is not None
    known = _SUBSETS.setdefault(views, {})
    if count not in known:
        index = np.sort(prices.ranking[:count])
        by_name = {n: View(selected(v.seen, index), selected(v.test, index)) for n, v in views.by_name.items()}
        shape = views.image_shape if count == len(prices.costs) else None
        known[count] = replace(views, by_name=by_name, image_shape=shape, columns=index, prices=None)
    return known[count]


def selected(data: Dataset, index: np.ndarray | Sequence[int]) -> Dataset:
    """Return a data set with some of its columns."""
    return replace(data, variables=tuple(data.variables[i] for i in index), X=data.X[:, index])


def like(data: Dataset, model: Classifier) -> Dataset:
    """Return the columns of a data set that a model reads."""
    if data.variables == model.variables:
        return data
    place = {variable.name: i for i, variable in enumerate(data.variables)}
    return selected(data, [place[variable.name] for variable in model.variables])


def feature_cost(views: Views, model: Classifier) -> float | None:
    """Return what the columns cost that a model reads; None where features have no prices."""
    if views.prices is None:
        return None
    names = [variable.name for variable in views.by_name["mdlp"].seen.variables]
    costs = dict(zip(names, views.prices.costs.tolist(), strict=True))
    return float(sum(costs[variable.name] for variable in model.variables))


def pruned(model: TreeEnsemble) -> TreeEnsemble:
    """Return trees over the columns that they test, one at least."""
    trees = model.trees
    inner = trees.feature >= 0
    kept = np.unique(trees.feature[inner]) if inner.any() else np.array([0])
    if len(kept) == len(model.variables):
        return model
    feature = np.where(inner, np.searchsorted(kept, trees.feature), trees.feature)
    variables = tuple(model.variables[i] for i in kept)
    widest = max(variable.cardinality for variable in variables)
    return replace(model, variables=variables, trees=replace(trees, feature=feature, members=trees.members[:, :widest]))
