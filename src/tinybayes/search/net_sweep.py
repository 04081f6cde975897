"""Sweeps over quantised neural networks under budgets, as resource_efficient_bn_classifiers runs them (V-C and V-D).

A budget is a multiple of what a naive Bayes classifier takes: its bits for tables of 1, 2, ... bits an entry, or its
operations. Stage 1 trains every setting of every budget for a few epochs on nine tenths of the training rows; stage 2
trains the most promising ones of each budget and activation with several seeds for all epochs on all training rows.
The errors of stage 2 are those of the networks in whole numbers.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tinybayes.cost.neural_net import paper_cost
from tinybayes.data import named
from tinybayes.data.images import with_moved
from tinybayes.errors import error
from tinybayes.learn.classifier import hold_out
from tinybayes.learn.training.net_sizes import hidden_within
from tinybayes.learn.training.nets import NetConfiguration, TrainedNet, train_nets
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.model import Dataset
from tinybayes.search.store import Runs, Tell, read_store

Group = tuple[int, str]  # budget, activation


@dataclass(frozen=True, kw_only=True)
class NetSweep:
    """What to sweep.

    Parameters
    ----------
    name, data, discretizer, n_bins, folds, row
        As in `Sweep`.
    kind
        ``"dense"`` or ``"conv"``.
    price
        What is limited: ``"bits"`` or ``"operations"``.
    budgets
        Multiples of the bits of naive Bayes with 1-bit tables, or of its operations.
    weight_bits, layers, batch_norm, activations, learning_rates
        All combinations are settings; layers are weight matrices of dense networks, or convolutions. Bits of 0 are
        weights that are not quantised.
    inputs
        How codes enter; see `NetConfiguration`.
    smoothing
        Of the labels, in all settings.
    shifted
        Whether images moved by a pixel join the training rows; see `tinybayes.data.images.with_moved`.
    epochs, batch_size, short_epochs, finalists, seeds
        Of both stages; finalists of each budget and activation by test error, and as many by validation error.
    """

    name: str
    data: str
    kind: str = "dense"
    price: str = "bits"
    budgets: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    weight_bits: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    layers: tuple[int, ...] = (2, 3, 4, 5)
    batch_norm: tuple[bool, ...] = (True, False)
    activations: tuple[str, ...] = ("relu", "sign")
    learning_rates: tuple[float, ...] = (3e-2, 3e-3, 3e-4)
    inputs: str | None = None
    smoothing: float = 0.0
    shifted: bool = False
    discretizer: str | None = None
    n_bins: int = 8
    folds: int = 0
    row: str = ""
    epochs: int = 500
    batch_size: int = 100
    short_epochs: int = 40
    finalists: int = 3
    seeds: int = 5

    def settings(self) -> list[dict[str, Any]]:
        """Return all settings, in a fixed order."""
        names = ("budget", "activation", "bits", "layers", "batch_norm", "learning_rate")
        choices = self.budgets, self.activations, self.weight_bits, self.layers, self.batch_norm, self.learning_rates
        return [dict(zip(names, chosen, strict=True)) for chosen in product(*choices)]


def run_net_sweep(sweep: NetSweep, store: Path, *, tell: Tell, seconds: float = float("inf")) -> dict[str, Any] | None:
    """Run what the store lacks of a sweep; return its summary, or None when the time ended first."""
    ends = time.monotonic() + seconds
    done = read_store(store).get(sweep.name, {})
    settings = sweep.settings()
    for stage in (1, 2):
        chosen = range(len(settings)) if stage == 1 else finalists(sweep, done)
        seeds = range(1 if stage == 1 else sweep.seeds)
        for fold in range(sweep.folds or named.n_folds(sweep.data)):
            wanted = [i * sweep.seeds + seed for i in chosen for seed in seeds]
            missing = [place for place in wanted if (stage, fold, place) not in done]
            for part in _alike(sweep, missing):
                if time.monotonic() > ends:
                    return None
                began = time.monotonic()
                with store.open("a") as file:
                    for record in _train(sweep, stage, fold, part):
                        done[stage, fold, record["setting"]] = record
                        file.write(json.dumps(record) + "\n")
                seconds_taken = time.monotonic() - began
                tell(f"{sweep.name} stage {stage} fold {fold}: {len(part)} runs, {seconds_taken:.1f} s")
    return summary(sweep, done)


def _alike(sweep: NetSweep, places: list[int]) -> list[list[int]]:
    """Group runs that are trained together anyway, so that each group is stored as soon as it is done."""
    settings = sweep.settings()
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place in places:
        setting = settings[place // sweep.seeds]
        key = setting["layers"], setting["batch_norm"], setting["activation"]
        groups.setdefault(key, []).append(place)
    return list(groups.values())


def finalists(sweep: NetSweep, done: Runs) -> list[int]:
    """Return the best settings of stage 1 for each budget and activation."""
    groups: dict[Group, list[int]] = {}
    for index, setting in enumerate(sweep.settings()):
        groups.setdefault((setting["budget"], setting["activation"]), []).append(index)
    best = set()
    for field in ("test_error", "validation_error"):
        found = _means(sweep, done, 1, field)
        for indices in groups.values():
            best |= set(sorted(indices, key=found.__getitem__)[: sweep.finalists])
    return sorted(best)


def summary(sweep: NetSweep, done: Runs) -> dict[str, Any]:
    """Return for each budget and activation the papers' protocol, and what was chosen on validation rows.

    Budgets of which no run is finished are left out.
    """
    settings = sweep.settings()
    short = _means(sweep, done, 1, "validation_error")
    final = _means(sweep, done, 2, "test_error")
    rows = []
    for budget, activation in product(sweep.budgets, sweep.activations):
        group = [i for i in final if (settings[i]["budget"], settings[i]["activation"]) == (budget, activation)]
        if not group:
            continue
        single = [(_fold_mean(sweep, done, i, seed), i) for i in group for seed in range(sweep.seeds)]
        best, selected = min(single), min(group, key=short.__getitem__)
        record = done[2, 0, best[1] * sweep.seeds]
        rows.append(
            {
                "budget": budget,
                "activation": activation,
                "best_on_test": {"error": best[0], **settings[best[1]], **_price(record)},
                "chosen_on_validation": {
                    "error": final[selected],
                    "validation_error": short[selected],
                    **settings[selected],
                    **_price(done[2, 0, selected * sweep.seeds]),
                },
            }
        )
    return {
        "sweep": sweep.name,
        "data": sweep.data,
        "kind": sweep.kind,
        "price": sweep.price,
        "row": sweep.row or sweep.kind,
        "runs": len(done),
        "rows": rows,
    }


def _price(record: dict[str, Any]) -> dict[str, Any]:
    return {name: record.get(name) for name in ("hidden", "bits_used", "operations")}


def _means(sweep: NetSweep, done: Runs, stage: int, field: str) -> dict[int, float]:
    values: dict[int, list[float]] = {}
    for (of, _, place), record in done.items():
        if of == stage and record[field] is not None:
            values.setdefault(place // sweep.seeds, []).append(record[field])
    return {index: float(np.mean(found)) for index, found in values.items()}


def _fold_mean(sweep: NetSweep, done: Runs, index: int, seed: int) -> float:
    place = index * sweep.seeds + seed
    folds = range(sweep.folds or named.n_folds(sweep.data))
    return float(np.mean([done[2, fold, place]["test_error"] for fold in folds]))


@lru_cache(maxsize=1)
def _split(data: str, fold: int, discretizer: str | None, n_bins: int) -> named.Split:
    """Load a data set once for all groups of a sweep: discretising takes seconds."""
    return named.load(data, fold=fold, discretizer=discretizer, n_bins=n_bins)


def _train(sweep: NetSweep, stage: int, fold: int, places: list[int]) -> Iterator[dict[str, Any]]:
    split = _split(sweep.data, fold, sweep.discretizer, sweep.n_bins)
    rows, held_out = hold_out(split.train, 0.1, 0) if stage == 1 else (split.train, None)
    if sweep.shifted and split.image_shape is not None:
        rows = with_moved(rows, split.image_shape)
    settings = sweep.settings()
    runs = [
        configuration(sweep, rows, settings[place // sweep.seeds], place % sweep.seeds, split.image_shape)
        for place in places
    ]
    found = train_nets(
        rows,
        runs,
        TrainingOptions(
            epochs=sweep.short_epochs if stage == 1 else sweep.epochs, batch_size=sweep.batch_size, every=10**9
        ),
        validation=held_out,
        test=split.test,
        networks=stage == 2,
    )
    if len(found) < len(runs) or not all(result.complete for result in found):
        raise KeyboardInterrupt  # what was cut short is not stored
    for place, run, result in zip(places, runs, found, strict=True):
        yield {
            "sweep": sweep.name,
            "stage": stage,
            "fold": fold,
            "setting": place,
            "validation_error": None if stage == 2 else round(result.validation_error, 6),
            "test_error": round(result.test_error, 6),
            "hidden": list(run.hidden),
            **_measured(run, result),
        }


def _measured(run: NetConfiguration, result: TrainedNet) -> dict[str, int]:
    if result.net is None:
        return {}
    price = paper_cost(result.net, batch_norm=run.batch_norm)
    return {"bits_used": price.bits, "operations": price.operations}


def configuration(
    sweep: NetSweep, data: Dataset, setting: dict[str, Any], seed: int, image: tuple[int, int] | None
) -> NetConfiguration:
    """Return the network of a setting: as wide as its budget allows."""
    assert data.target is not None
    states, classes = [v.cardinality for v in data.variables], data.target.cardinality
    naive = sum(states) * classes + classes if sweep.price == "bits" else len(states) * classes
    amount = naive * setting["budget"]
    conv = sweep.kind == "conv"
    if conv and image is None:
        raise error("images", sweep.data, where=f"sweep {sweep.name}")
    hidden = hidden_within(
        amount,
        "bits" if sweep.price == "bits" else "operations",
        layers=setting["layers"],
        weight_bits=setting["bits"] or 32,
        inputs=sum(states) if sweep.inputs == "one-hot" else len(states),
        classes=classes,
        image=image if conv else None,
        batch_norm=setting["batch_norm"],
    )
    return NetConfiguration(
        kind=sweep.kind,
        hidden=hidden,
        bits=setting["bits"] or None,
        activation=setting["activation"],
        batch_norm=setting["batch_norm"],
        inputs=sweep.inputs,
        learning_rate=setting["learning_rate"],
        label_smoothing=sweep.smoothing,
        image_shape=image if sweep.kind == "conv" else None,
        seed=seed,
    )
