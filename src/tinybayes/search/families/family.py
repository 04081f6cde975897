"""Families of models: the settings that a search tries, and how they are trained, priced and described.

A setting is a JSON object. Its *shape* is the part that must be equal for settings to be trained at once; everything
else is data of the compiled loop.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from tinybayes.cost import model_cost
from tinybayes.errors import TinybayesError, error
from tinybayes.infer.scores import class_scores, normalize_scores
from tinybayes.model import BayesNet, Classifier, Cost, Dataset, Fixed
from tinybayes.options import options_of
from tinybayes.search.budget import Budget
from tinybayes.search.columns import Columns, first_columns, subset
from tinybayes.search.skeletons import skeleton_price, table_skeleton
from tinybayes.search.views import Views

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Setting = dict[str, Any]
Model = Classifier
History = tuple[tuple[int, float], ...]  # pairs (epoch, validation error)

PASSES = 24  # over the rows of a lesson, at least
PRICED = ("columns", "feature_price")  # hyper-parameters where features have prices


class Effort(NamedTuple):
    """How long settings are trained, on which rows, and what they are priced for."""

    steps: int  # mini-batches of families that are trained by gradient
    patience: float = 20.0  # seconds that a circuit may grow
    final: bool = False  # train on all rows but the test rows
    core: str = "cortex-m0+"  # that programs are priced for
    budget: Budget | None = None  # where learners that grow a model stop
    split: int = 0  # which part of the rows validates; the first one in the search itself
    deadline: float = math.inf  # of the wall clock; what is not trained by then is dropped
    lesson: str | None = None  # the file from which taught settings learn

    def rows(self, views: Views, name: str) -> tuple[Dataset, Dataset]:
        """Return the training and validation rows in an encoding."""
        return views.rows(name, all_seen=self.final, split=self.split)

    def lessons(self, views: Views, name: str, most: int) -> Dataset:
        """Return rows with posteriors of a teacher, made of the training rows."""
        from tinybayes.search.lessons import read_lesson

        if self.lesson is None:
            raise error(
                "the lesson of a teacher", "none", where="taught", remedy="leave lesson.safetensors where it is"
            )
        allowed = np.arange(len(views.by_name[name].seen))
        if not self.final:
            allowed = np.setdiff1d(allowed, views.splits[self.split])
        return read_lesson(self.lesson).rows(views, name, allowed, most)


@dataclass(frozen=True, eq=False)
class Learned:
    """A setting that was trained."""

    setting: Setting
    model: Model  # the model
    cost: Cost  # its price
    log_posteriors: Callable[[np.ndarray], np.ndarray]  # codes of rows to logarithms of class posteriors
    history: History = ()  # pairs (epoch, validation error)


def learned(setting: Setting, model: Model, history: History = ()) -> Learned:
    """Return the record of a deployable model."""
    return Learned(setting, model, model_cost(model), posteriors_of(model), history)


def posteriors_of(model: Model) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from codes to logarithms of class posteriors."""
    return lambda X: normalize_scores(class_scores(model, X))


@dataclass(frozen=True, eq=False)
class Family(ABC):
    """A family of models."""

    name: str  # by which settings and users name it; `tinybayes.search.titles` has a few words for readers of a report

    slow: ClassVar[bool] = False  # one setting at a time, and not before others have had their turn

    def possible(self, views: Views) -> bool:
        """Return whether the family suits the table."""
        return True

    def smallest_bits(self, views: Views) -> int:
        """Return the fewest bits that a deployable model of the family takes."""
        return naive_entries(views.by_name["coarse"].seen)

    def smallest_flash(self, views: Views, core: str) -> int:
        """Return the fewest bytes of a program of the family: naive Bayes with few bits is the smallest network."""
        from tinybayes.learn.closed_form.structures import naive_bayes

        prices = []
        for view, bits, integer in product(("mdlp", "coarse"), (1, 2, 4, 8), (1, 6)):
            data = views.rows(view)[0]

            def make(data: Dataset = data, bits: int = bits, integer: int = integer) -> BayesNet:
                return table_skeleton(data, naive_bayes(data), Fixed(integer, bits - integer))

            prices.append(skeleton_price(views, ("naive", view, bits, integer), make, core))
        return min(price.flash for price in prices)

    def shape(self, setting: Setting) -> str:
        """Return a text that is equal for settings that can be trained at once."""
        return json.dumps([self.name])

    def shown_as(self, setting: Setting) -> str:
        """Return the name of the family under which reports show a model."""
        return self.name

    @abstractmethod
    def describe(self, setting: Setting) -> str:
        """Name a model plainly: its family and the essentials of its setting."""

    @abstractmethod
    def train(self, views: Views, settings: Sequence[Setting], effort: Effort) -> list[Learned]:
        """Train settings of one shape; those that cannot be trained are left out."""


@dataclass(frozen=True, eq=False)
class Listed(Family):
    """A family that is quick to learn: all settings of a grid are tried, and each is learned alone."""

    grid: dict[str, tuple[Any, ...]]  # the values to try, by name
    words: str  # how a setting is described

    def settings(self) -> list[Setting]:
        """Return the settings to try."""
        return [{"family": self.name, **dict(zip(self.grid, v, strict=True))} for v in product(*self.grid.values())]

    def settings_for(self, views: Views, budget: Budget | None = None) -> list[Setting]:
        """Return the settings to try for a table and a budget; where features have prices, with few columns, too."""
        if views.prices is None:
            return self.settings()
        return [setting | more for more in self.readings(views.prices) for setting in self.settings()]

    def affordable(self, setting: Setting, views: Views, budget: Budget) -> bool:
        """Return whether a setting may fit into the budget; if in doubt, it is tried."""
        return True

    def readings(self, prices: Columns) -> list[Setting]:
        """Return the ways to read few columns: every second number of them, since there are many settings."""
        return [{"columns": count} for count in prices.choices()[::-2]]

    def describe(self, setting: Setting) -> str:
        """Fill the setting into the words."""
        return self.words.format(**setting)

    @abstractmethod
    def learn(self, rows: Dataset, setting: Setting, patience: float) -> Learned:
        """Learn one model."""

    def train(self, views: Views, settings: Sequence[Setting], effort: Effort) -> list[Learned]:
        """Learn one setting after another."""
        results = []
        for setting in settings:
            rows, _ = effort.rows(subset(views, setting), view_of(setting))
            with suppress(TinybayesError):  # such as more levels than a small model has parameters
                results.append(self.learn(rows, setting, effort.patience))
        return results


@dataclass(frozen=True, eq=False)
class Sampled(Family):
    """A family whose settings are drawn, and trained in batches of one shape."""

    shaping: tuple[str, ...]  # the hyper-parameters that make up the shape

    selects: ClassVar[bool] = True  # whether it can do with some of the columns
    sizing: ClassVar[tuple[str, ...]] = ()  # hyper-parameters that make up the shape where the whole budget is taken

    def whole(self) -> Setting:
        """Return values of hyper-parameters that take as much of a budget as there is."""
        return {}

    @abstractmethod
    def space(self, views: Views) -> "dict[str, BaseDistribution]":
        """Return the distributions from which settings are drawn, by name."""

    @abstractmethod
    def guesses(self, views: Views, budget: Budget) -> list[Setting]:
        """Return where a search begins: values that were good elsewhere, as wide as the budget allows."""

    @abstractmethod
    def fitted(self, setting: Setting, views: Views, budget: Budget) -> Setting | None:
        """Cut a setting down to the budget, or return None when nothing is left of it."""

    def opening(self, views: Views, budget: Budget) -> list[Setting]:
        """Return the guesses; where features have prices, the first takes all that can be paid, others fewer."""
        if views.prices is None or not self.selects:
            return self.guesses(views, budget)
        counts = views.prices.choices(self.fewest())[::-2]
        tables = [first_columns(views, count) for count in counts]
        return [
            self.guesses(table, budget)[min(i, len(self.guesses(table, budget)) - 1)] | {"columns": count}
            for i, (table, count) in enumerate(zip(tables, counts, strict=True))
        ]

    def fewest(self) -> int:
        """Return the fewest columns of a model."""
        return 1

    def whole_space(self, views: Views) -> "dict[str, BaseDistribution]":
        """Return the distributions, and that of the number of columns where features have prices."""
        from optuna.distributions import CategoricalDistribution

        if views.prices is None or not self.selects:
            return self.space(views)
        return self.space(views) | {"columns": CategoricalDistribution(views.prices.choices(self.fewest()))}

    def shape(self, setting: Setting) -> str:
        """Return a text that is equal for settings that can be trained at once."""
        text = json.dumps([self.name, *(setting.get(name) for name in self.shaping)])
        return text + "".join(f" {name} {setting[name]}" for name in PRICED if name in setting)


@dataclass(frozen=True, eq=False)
class Trained(Sampled):
    """A family that is trained by gradient: promising settings climb rungs, and are trained for longer on each.

    The hyper-parameter ``taught`` lets them learn from a teacher, where there is one.
    """

    def shape(self, setting: Setting) -> str:
        """Tell settings that are taught from others: they have other rows."""
        return super().shape(setting) + (" taught" if setting.get("taught") else "")

    @abstractmethod
    def train_runs(
        self, rows: Dataset, settings: Sequence[Setting], views: Views, **options: Any
    ) -> list[tuple[Setting, Any]]:
        """Train settings on rows with the options of the engine; return those that were trained, with their results."""

    def train(self, views: Views, settings: Sequence[Setting], effort: Effort) -> list[Learned]:
        """Train for about the given number of mini-batches, with ten measurements on the validation rows."""
        from tinybayes.learn.training.options import TrainingOptions

        views = subset(views, settings[0])
        rows, valid = effort.rows(views, view_of(settings[0]))
        batch = 50 if len(rows) < 5000 else 100
        if settings[0].get("taught"):
            rows = effort.lessons(views, view_of(settings[0]), max(len(rows), effort.steps * batch // PASSES))
        epochs = max(1, math.ceil(effort.steps / max(1, len(rows) // batch)))
        options = TrainingOptions(epochs=epochs, batch_size=batch, every=max(1, epochs // 10), deadline=effort.deadline)
        results = self.train_runs(rows, settings, views, options=options, validation=None if effort.final else valid)
        return [learned(s, result.net, result.history) for s, result in results if result.complete]


def with_settings(
    settings: Sequence[Setting], runs: Sequence[Any], results: Sequence[Any]
) -> list[tuple[Setting, Any]]:
    """Pair each result with its setting. Those that a deadline left undone may be anywhere among the settings."""
    known = {id(run): setting for run, setting in zip(runs, settings, strict=True)}
    return [(known[id(result.configuration)], result) for result in results]


def distributions(learner: type, *names: str) -> "dict[str, BaseDistribution]":
    """Return the distributions of hyper-parameters: the intervals or the choices that their dataclass states."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    known = options_of(learner)
    drawn: dict[str, BaseDistribution] = {}
    for name in names:
        option = known[name]
        if option.search is None:
            drawn[name] = CategoricalDistribution(option.choices or ())
            continue
        low, high = option.search
        if isinstance(low, int) and isinstance(high, int):
            drawn[name] = IntDistribution(low, high, log=option.log)
        else:
            drawn[name] = FloatDistribution(low, high, log=option.log)
    return drawn


def hyper_parameters(setting: Setting, learner: type) -> dict[str, Any]:
    """Return the part of a setting that its learner's dataclass defines."""
    return {name: setting[name] for name in options_of(learner) if name in setting}


def view_of(setting: Setting) -> str:
    """Return the coding of the table that a setting reads."""
    return str(setting.get("view", "fine"))


def naive_entries(data: Dataset) -> int:
    """Return the table entries of naive Bayes, the smallest network over the variables."""
    assert data.target is not None
    return (sum(v.cardinality for v in data.variables) + 1) * data.target.cardinality


def in_bits(bits: int) -> str:
    """Return a number of bits in words."""
    return f"{bits} bit{'s' if bits > 1 else ''}"
