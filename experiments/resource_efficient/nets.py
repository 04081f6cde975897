"""What the sweeps of networks left in their stores: errors by budget, and every model with its three prices."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from experiments.records import DATA, Experiment, Point
from experiments.resource_efficient.bits import ROWS
from experiments.store import Record, Runs
from experiments.sweep import NetSweep

FLOAT = 32
CLASSES = {"letter": 26, "satimage": 6, "usps": 10, "mnist": 10}
FEATURES = {"letter": 16, "satimage": 36, "usps": 256, "mnist": 196}


@dataclass(frozen=True)
class Model:
    """One trained model; the error is a test error in percent."""

    data: str
    family: str
    bits: float
    operations: float
    error: float


@dataclass(frozen=True)
class Chosen:
    """The best of a budget: its test error, and that of the setting chosen on validation rows, in percent.

    `short` is the error on the validation rows by which it was chosen, `settings` how many were trained to the end.
    """

    test: float
    validation: float
    setting: dict[str, Any]
    short: float = float("inf")
    settings: int = 0

    def with_more(self, other: "Chosen") -> "Chosen":
        """Return the best of two sweeps over the same budget: on test rows, and on validation rows."""
        test, valid = min(self, other, key=lambda c: c.test), min(self, other, key=lambda c: c.short)
        return Chosen(test.test, valid.validation, test.setting, valid.short, self.settings + other.settings)


Table = dict[tuple[str, str], dict[int, Chosen]]  # by data and row, then by budget


class Nets(Experiment):
    """A file of sweeps over networks, with its results beside it."""

    def table(self) -> Table:
        """Return what was best within each budget, for all sweeps that have final runs."""
        rows: Table = {}
        for sweep, done in self._final():
            row = rows.setdefault((sweep.data, sweep.title), {})
            for result in sweep.summary(done)["rows"]:
                best, chosen = result["best_on_test"], result["chosen_on_validation"]
                errors = 100 * best["error"], 100 * chosen["error"]
                own = Chosen(*errors, best, chosen["validation_error"], result["settings"])
                budget = result["budget"]
                row[budget] = row[budget].with_more(own) if budget in row else own
        return rows

    def models(self) -> list[Model]:
        """Return all final runs: each is an integer network with a price."""
        return [
            Model(s.data, s.title, record["bits_used"], record["operations"], 100 * record["test_error"])
            for s, done in self._final()
            for (stage, _, _), record in sorted(done.items())
            if stage == 2 and "bits_used" in record and s.discretizer is None
        ]

    def short(self, data: str, row: str) -> list[Model]:
        """Return the short runs of dense networks, priced from their widths."""
        models = []
        for sweep in self._nets():
            if (sweep.data, sweep.row) != (data, row):
                continue
            for (stage, _, run), record in self.runs.get(sweep.name, {}).items():
                setting = sweep.setting(run // sweep.seeds)
                if stage == 1 and sweep.kind == "dense":
                    price = dense_price(data, record["hidden"], setting["bits"], batch_norm=setting["batch_norm"])
                    models.append(Model(data, row, *price, 100 * record["test_error"]))
        return models

    def _nets(self) -> list[NetSweep]:
        return [sweep for sweep in self.sweeps if isinstance(sweep, NetSweep)]

    def _final(self) -> list[tuple[NetSweep, Runs]]:
        stored = [(sweep, self.runs.get(sweep.name, {})) for sweep in self._nets()]
        return [(sweep, done) for sweep, done in stored if any(stage == 2 for stage, _, _ in done)]


def dense_price(data: str, hidden: Sequence[int], bits: int, *, batch_norm: bool) -> tuple[int, int]:
    """Return bits and operations of a dense network, as the paper counts them."""
    sizes = (FEATURES[data], *hidden, CLASSES[data])
    weights = sum(a * b for a, b in pairwise(sizes))
    extra = sum(hidden) if batch_norm else 0
    return weights * (bits or FLOAT) + FLOAT * CLASSES[data] + 2 * FLOAT * extra, weights + CLASSES[data] + extra


def bayes(points: Iterable[Point], quantised: Iterable[Record]) -> tuple[Table, list[Model]]:
    """Return the quantised Bayesian networks: the best of each width, chosen on test rows; and all.

    They come from the sweeps of `figure6.toml` and from the results of `bits`, which has more settings.
    """
    trained = [
        (p.sweep.data, p.sweep.structure, sum(p.setting["bits"]), p.parameters, p.error, p.setting) for p in points
    ]
    trained += [
        (one["data"], ROWS[one["structure"]], run["bits"], one["parameters"], 100 * run["error"], run)
        for one in quantised
        for run in one["trained"]
    ]
    table: Table = {}
    models = []
    for data, family, width, parameters, error, setting in trained:
        if data not in DATA:
            continue
        row = table.setdefault((data, family), {})
        if width not in row or error < row[width].test:
            row[width] = Chosen(error, float("nan"), setting)
        models.append(Model(data, family, width * parameters, FEATURES[data] * CLASSES[data], error))
    return table, models


def front(models: Sequence[Model]) -> list[Model]:
    """Return the models that no other one beats in bits, operations and error at once; of equals the first."""
    prices = np.array([(m.bits, m.operations, m.error) for m in models]).reshape(-1, 3)
    best = []
    for i, price in enumerate(prices):
        no_worse, better = (prices <= price).all(axis=1), (prices < price).any(axis=1)
        equal = no_worse & ~better
        if not (no_worse & better).any() and not equal[:i].any():
            best.append(models[i])
    return sorted(best, key=lambda m: (m.operations, m.bits, m.error))
