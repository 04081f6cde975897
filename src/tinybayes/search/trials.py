"""Carrying out settings: rows in, models with their validation errors and prices out."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tinybayes.search.columns import feature_cost, like
from tinybayes.search.families import Setting, family_of
from tinybayes.search.families.family import Effort, History, Model, view_of
from tinybayes.search.measure import Quality, quality
from tinybayes.search.price import ENOUGH, FEW, Price, price_of
from tinybayes.search.views import Views


@dataclass(frozen=True, eq=False)
class Outcome:
    """One setting carried out."""

    setting: Setting  # the setting
    model: Model  # the model
    error: float  # the metric of the search on the validation rows: the share of wrong labels, or another one
    loss: float  # mean log loss on the validation rows
    price: Price  # of the parameters, and of the program on the core of the effort
    history: History = ()  # pairs (epoch, validation error)
    seconds: float = 0.0  # its share of the time that the batch took
    wrong: float | None = None  # share of wrong labels on the validation rows
    deviation: float | None = None  # standard error of the metric, where it is not the share of wrong labels
    tested: Quality | None = None  # only of a final effort: how it does on the test rows

    @property
    def share_wrong(self) -> float:
        """The share of wrong labels on the validation rows."""
        return self.error if self.wrong is None else self.wrong


def carry_out(views: Views, settings: Sequence[Setting], effort: Effort) -> list[Outcome]:
    """Train settings of one shape and measure them, those of a final effort on the test rows, too.

    Settings that cannot be trained are left out.
    """
    began = time.perf_counter()
    results = family_of(settings[0]).train(views, settings, effort)
    each = (time.perf_counter() - began) / len(settings)
    outcomes: list[Outcome] = []
    measured: dict[int, Outcome] = {}  # settings may share a model, where a budget cuts them to the same one
    for one in results:
        if id(one.model) in measured:
            outcomes.append(replace(measured[id(one.model)], setting=one.setting))
            continue
        name = view_of(one.setting)
        valid, test = (
            like(part, one.model) for part in (views.validation(name, effort.split), views.by_name[name].test)
        )
        known = quality(one.log_posteriors, valid, views.measure)
        tested = quality(one.log_posteriors, test, views.measure) if effort.final else None
        price = price_of(one.model, one.cost, effort.core, rows=ENOUGH if effort.final else FEW)
        price = replace(price, features=feature_cost(views, one.model))
        of_rows = known.value, known.loss, price, one.history, each, known.wrong, known.deviation
        outcomes.append(Outcome(one.setting, one.model, *of_rows, tested))
        measured[id(one.model)] = outcomes[-1]
    return outcomes
