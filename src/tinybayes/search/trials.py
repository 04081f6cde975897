"""Carrying out settings: rows in, models with their validation errors and prices out."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tinybayes.model import Dataset
from tinybayes.search.families import Setting, family_of
from tinybayes.search.families.family import Effort, History, Model, view_of
from tinybayes.search.price import ENOUGH, FEW, Price, price_of
from tinybayes.search.views import Views


@dataclass(frozen=True, eq=False)
class Outcome:
    """One setting carried out."""

    setting: Setting  # the setting
    model: Model  # the model
    error: float  # share of wrong labels on the validation rows
    loss: float  # mean log loss on the validation rows
    price: Price  # of the parameters, and of the program on the core of the effort
    history: History = ()  # pairs (epoch, validation error)
    seconds: float = 0.0  # its share of the time that the batch took
    test_error: float | None = None  # only of a final effort


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
        view = views.by_name[view_of(one.setting)]
        error, loss = quality(one.log_posteriors, view.seen.rows(views.splits[effort.split]))
        tested = quality(one.log_posteriors, view.test)[0] if effort.final else None
        price = price_of(one.model, one.cost, effort.core, rows=ENOUGH if effort.final else FEW)
        outcomes.append(Outcome(one.setting, one.model, error, loss, price, one.history, each, tested))
        measured[id(one.model)] = outcomes[-1]
    return outcomes


def quality(log_posteriors: Callable[[np.ndarray], np.ndarray], rows: Dataset) -> tuple[float, float]:
    """Return the share of wrong labels and the mean log loss."""
    assert rows.y is not None
    known = rows.y >= 0
    y, log_p = rows.y[known], log_posteriors(rows.X[known])
    wrong = float((log_p.argmax(axis=1) != y).mean())
    return wrong, float(-np.maximum(log_p[np.arange(len(y)), y], -30).mean())
