"""Random sweeps over structures and hyper-parameters, as the papers run them, in one or two stages.

Stage 1 trains every setting for a few epochs on nine tenths of the training rows. Stage 2 trains the most promising
ones for all epochs on all training rows. Two numbers come out: the papers' protocol, the least test error of stage 2
(chosen on the test rows, and labelled so); and the test error, after stage 2, of the setting with the least validation
error in stage 1, for which no test row was looked at. Every finished part is appended to a file, so that a run can be
taken up again.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tinybayes.data import named
from tinybayes.errors import FileError, error
from tinybayes.learn.classifier import hold_out
from tinybayes.learn.closed_form.chow_liu import chow_liu
from tinybayes.learn.closed_form.structures import naive_bayes, random_tan
from tinybayes.learn.training import candidates
from tinybayes.learn.training.candidates import Candidates
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration, train_tables
from tinybayes.model import Dataset, Fixed
from tinybayes.search.net_sweep import NetSweep
from tinybayes.search.store import Runs, Tell, read_store


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What to sweep.

    Parameters
    ----------
    name
        Of the sweep, unique in its file.
    data
        A named data set.
    discretizer, n_bins
        How its numbers are cut; by default as `datasets.load` does it.
    folds
        How many of its folds are run; 0 for all.
    row
        Sweeps of the same data and row are reported together; by default the structure.
    structure
        naive, chow-liu, random, subset, all, heuristic, order-free or pseudo.
    k
        Candidate parents of a feature.
    orderings, subsets
        How many random orderings, and parent subsets for each.
    image_orderings
        Which of the orderings A, B and C of pixels the structure "heuristic" takes in turn.
    settings
        How many settings are drawn.
    lam, gamma, eta
        Ranges: the first two are exponents of ten, drawn uniformly; equal ends fix a value.
    learning_rates
        Taken in turn.
    bits
        Pairs (integer, fraction) of fixed-point formats, taken in turn; empty for floats.
    size_penalties
        Values of lambda_MS, taken in turn.
    noise, sharing, per_row, acyclic_from
        See `tinybayes.learn.training.tables`: structure noise, common parts of tables, a structure for every row, when
        order-free TAN gets an ordering.
    epochs, batch_size
        Of the full training.
    short_epochs, finalists
        Epochs of stage 1; how many of its best by test error, and how many by validation error, go on. Without
        epochs there is no stage 1: all settings go on, and nothing is chosen on validation rows.
    seed
        Of all draws.
    """

    name: str
    data: str
    structure: str
    discretizer: str | None = None
    n_bins: int = 8
    folds: int = 0
    row: str = ""
    k: int = 8
    orderings: int = 5
    subsets: int = 5
    image_orderings: str = "ABC"
    settings: int = 100
    lam: tuple[float, float] = (1.0, 3.0)
    gamma: tuple[float, float] = (-1.0, 2.0)
    eta: tuple[float, float] = (10.0, 10.0)
    learning_rates: tuple[float, ...] = (3e-3, 3e-2)
    bits: tuple[tuple[int, int], ...] = ()
    size_penalties: tuple[float, ...] = (0.0,)
    noise: float = 0.0
    sharing: float = 0.0
    per_row: bool = False
    acyclic_from: float = 0.4
    epochs: int = 500
    batch_size: int = 100
    short_epochs: int = 60
    finalists: int = 20
    seed: int = 0


def read_sweeps(path: Path) -> list[Sweep | NetSweep]:
    """Read the sweeps of a TOML file: tables ``[[sweep]]`` with the fields of `Sweep`, ``[[nets]]`` of `NetSweep`."""
    import tomllib

    try:
        tables = tomllib.loads(path.read_text())
        if not (tables.keys() & {"sweep", "nets"}):
            raise KeyError("sweep")
        return [
            kind(**{name: _frozen(value) for name, value in dict(entry).items()})
            for table, kind in (("sweep", Sweep), ("nets", NetSweep))
            for entry in tables.get(table, [])
        ]
    except (OSError, KeyError, TypeError, ValueError, RecursionError) as problem:
        raise error("a file of sweeps", problem, where=str(path), kind=FileError) from problem


def run_sweep(sweep: Sweep, store: Path, *, tell: Tell, seconds: float = float("inf")) -> dict[str, Any] | None:
    """Run what the store lacks of a sweep; return its summary, or None when the time ended first.

    Parameters
    ----------
    sweep
        The sweep.
    store
        A file of JSON lines; made if it is not there.
    tell
        Called with a line of text for every finished part. An interrupt ends the sweep; finished parts are kept.
    seconds
        No new part is begun after this time.
    """
    ends = time.monotonic() + seconds
    done = read_store(store).get(sweep.name, {})
    folds = range(sweep.folds or named.n_folds(sweep.data))
    for stage in (1, 2) if sweep.short_epochs else (2,):
        chosen = _finalists(sweep, done) if stage == 2 and sweep.short_epochs else list(range(sweep.settings))
        for fold in folds:
            missing = [i for i in chosen if (stage, fold, i) not in done]
            if not missing:
                continue
            if time.monotonic() > ends:
                return None
            began = time.monotonic()
            for index, result in zip(missing, _train(sweep, stage, fold, missing), strict=True):
                done[stage, fold, index] = record = {
                    "sweep": sweep.name,
                    "stage": stage,
                    "fold": fold,
                    "setting": index,
                    "validation_error": None if stage == 2 else round(result.validation_error, 6),
                    "test_error": round(result.test_error, 6),
                    "parameters": result.parameters,
                    "operations": result.operations,
                }
                with store.open("a") as file:
                    file.write(json.dumps(record) + "\n")
            tell(f"{sweep.name} stage {stage} fold {fold}: {len(missing)} runs, {time.monotonic() - began:.1f} s")
    return summary(sweep, done)


def setting(sweep: Sweep, index: int) -> dict[str, Any]:
    """Return the hyper-parameters of one setting; they depend on the seed and the index alone."""
    generator = np.random.default_rng([sweep.seed, index])
    rates, bits, penalties = sweep.learning_rates, sweep.bits, sweep.size_penalties
    return {
        "lam": float(10 ** generator.uniform(*sweep.lam)),
        "gamma": float(10 ** generator.uniform(*sweep.gamma)),
        "eta": float(generator.uniform(*sweep.eta)),
        "learning_rate": rates[index % len(rates)],
        "ordering": index // len(rates) % sweep.orderings,
        "subset": index // (len(rates) * sweep.orderings) % sweep.subsets,
        "bits": bits[index // len(rates) % len(bits)] if bits else None,
        "size_penalty": penalties[index // len(rates) % len(penalties)],
    }


def summary(sweep: Sweep, done: Runs) -> dict[str, Any]:
    """Compare the finalists: the papers' protocol, and the setting chosen on validation rows."""
    final = means(done, 2, "test_error")
    short = means(done, 1, "validation_error")
    best = min(final, key=final.__getitem__)
    found = {
        "sweep": sweep.name,
        "data": sweep.data,
        "structure": sweep.structure,
        "row": sweep.row or sweep.structure,
        "runs": len(done),
        "best_on_test": {"error": final[best], "setting": setting(sweep, best)},
        "finalists": sorted(final.values()),
    }
    if short:
        selected = min(short, key=short.__getitem__)
        found["chosen_on_validation"] = {
            "error": final[selected],
            "validation_error": short[selected],
            "setting": setting(sweep, selected),
        }
    return found


def means(done: Runs, stage: int, field: str) -> dict[int, float]:
    """Average a field of the runs of one stage over the folds, for each setting."""
    values: dict[int, list[float]] = {}
    for (of, _, index), record in done.items():
        if of == stage and record[field] is not None:
            values.setdefault(index, []).append(record[field])
    return {index: float(np.mean(found)) for index, found in values.items()}


def _finalists(sweep: Sweep, done: Runs) -> list[int]:
    best = set()
    for field in ("test_error", "validation_error"):
        found = means(done, 1, field)
        best |= set(sorted(found, key=found.__getitem__)[: sweep.finalists])
    return sorted(best)


@dataclass(frozen=True)
class _Result:
    validation_error: float
    test_error: float
    parameters: int
    operations: int


def _train(sweep: Sweep, stage: int, fold: int, indices: list[int]) -> Iterator[_Result]:
    train_rows, test_rows = named.load(sweep.data, fold=fold, discretizer=sweep.discretizer, n_bins=sweep.n_bins)
    rows, held_out = hold_out(train_rows, 0.1, sweep.seed) if stage == 1 else (train_rows, None)
    spaces: dict[tuple[int, int], Candidates] = {}  # many settings share one
    runs = [_configuration(sweep, rows, index, spaces) for index in indices]
    states = np.array([v.cardinality for v in rows.variables])
    found = train_tables(
        rows,
        runs,
        TrainingOptions(
            epochs=sweep.short_epochs if stage == 1 else sweep.epochs, batch_size=sweep.batch_size, every=10**9
        ),
        validation=held_out,
        test=test_rows,
        acyclic_from=float("inf") if sweep.structure == "pseudo" else sweep.acyclic_from,
        networks=False,
    )
    if len(found) < len(runs) or not all(result.complete for result in found):
        raise KeyboardInterrupt  # what was cut short is not stored
    assert rows.target is not None
    for result in found:
        parents = np.array(result.parents)
        entries = states * np.where(parents >= 0, states[parents], 1) * rows.target.cardinality
        parameters = int(entries.sum()) + rows.target.cardinality
        operations = len(states) * rows.target.cardinality  # every feature has the class as a parent
        yield _Result(result.validation_error, result.test_error, parameters, operations)


def _configuration(
    sweep: Sweep, data: Dataset, index: int, spaces: dict[tuple[int, int], Candidates]
) -> TableConfiguration:
    chosen = setting(sweep, index)
    fixed = sweep.structure in ("naive", "chow-liu")
    place = (0, 0) if fixed else (chosen["ordering"], chosen["subset"])
    if place not in spaces:
        spaces[place] = _candidates(sweep, data, *place)
    run = TableConfiguration(
        candidates=spaces[place],
        lam=chosen["lam"],
        gamma=chosen["gamma"],
        eta=chosen["eta"],
        learning_rate=chosen["learning_rate"],
        size_penalty=chosen["size_penalty"],
        structure_noise=sweep.noise,
        sharing=sweep.sharing,
        per_row=sweep.per_row,
        seed=sweep.seed + index,
    )
    if chosen["bits"] is not None:
        run = replace(run, number_format=Fixed(*chosen["bits"]))
    return run


def _candidates(sweep: Sweep, data: Dataset, ordering: int, subset: int) -> Candidates:
    features = len(data.variables)
    match sweep.structure:
        case "naive":
            return candidates.fixed(naive_bayes(data))
        case "chow-liu":
            return candidates.fixed(chow_liu(data))
        case "random":
            return candidates.fixed(random_tan(data, seed=np.random.default_rng([sweep.seed, ordering, subset])))
        case "subset":
            return candidates.subset(features, sweep.k, seed=ordering, subset_seed=subset)
        case "all":
            return candidates.subset(features, features, seed=ordering)
        case "heuristic":
            side = int(np.sqrt(features))
            letter = sweep.image_orderings[ordering % len(sweep.image_orderings)]
            return candidates.heuristic((side, side), sweep.k, ordering=letter)
        case "order-free" | "pseudo":
            return candidates.order_free(features, None if sweep.k >= features else sweep.k, seed=ordering)
    raise error("a structure that can be swept", repr(sweep.structure), where=f"sweep {sweep.name}")


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
