"""Sweeps over structures, networks and hyper-parameters, as the papers run them, in one or two stages.

Stage 1 trains every setting for a few epochs on nine tenths of the training rows. Stage 2 trains the most promising
settings for all epochs on all training rows. Two numbers come out: the papers' protocol, the least test error of stage
2 (chosen on the test rows, and labelled so); and the test error, after stage 2, of the setting with the least
validation error in stage 1, for which no test row was looked at. Every finished run is appended to a file, so that a
sweep can be resumed.

`Sweep` is the protocol: settings by number, which of them compete, which runs train together, how they are trained, the
summary. `TableSweep` (Bayesian networks) and `NetSweep` (neural networks under budgets) implement it.
"""

import time
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from experiments.images import with_moved
from experiments.store import Record, Runs, Tell, append_line, read_store
from experiments.training import train_nets, train_tables
from tinybayes.cost.neural_net import paper_cost
from tinybayes.data import named
from tinybayes.errors import FileError, error
from tinybayes.learn.closed_form.chow_liu import chow_liu
from tinybayes.learn.closed_form.structures import naive_bayes, random_ordering, random_tan
from tinybayes.learn.hybrid import hold_out
from tinybayes.learn.training import candidates
from tinybayes.learn.training.candidates import Candidates
from tinybayes.learn.training.net_sizes import hidden_within
from tinybayes.learn.training.nets import NetConfiguration
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration
from tinybayes.model import Dataset, Fixed


class Rows(NamedTuple):
    """The rows of one stage and fold."""

    train: Dataset
    validation: Dataset | None
    test: Dataset
    image_shape: tuple[int, int] | None


@dataclass(frozen=True, kw_only=True)
class Sweep(ABC):
    """What all sweeps have in common.

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
        Sweeps of the same data and row are reported together; by default the structure or the kind of network.
    epochs, batch_size
        Of the full training.
    short_epochs, finalists
        Epochs of stage 1; how many of its best by test error, and how many by validation error, go on, in each group
        of settings that compete. Without epochs there is no stage 1: all settings go on, and nothing is chosen on
        validation rows.
    at_least
        Settings of each group that go on in all. Those beyond the finalists are the next best of stage 1, in turn by
        test error and by validation error, and are trained with the first seed alone.
    seeds
        Runs of a finalist in stage 2; stage 1 has one.
    seed
        Of all draws.
    """

    name: str
    data: str
    discretizer: str | None = None
    n_bins: int = 8
    folds: int = 0
    row: str = ""
    epochs: int = 500
    batch_size: int = 100
    short_epochs: int = 60
    finalists: int = 20
    at_least: int = 0
    seeds: int = 1
    seed: int = 0

    @property
    @abstractmethod
    def n_settings(self) -> int:
        """The number of settings."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The row that the sweep is reported in."""

    @abstractmethod
    def setting(self, index: int) -> Record:
        """Return the hyper-parameters of one setting; they never depend on the number of settings."""

    @abstractmethod
    def group(self, index: int) -> Hashable:
        """Return what settings have in common that compete to go on."""

    @abstractmethod
    def batch(self, index: int) -> Hashable:
        """Return what settings have in common that are trained, and stored, together."""

    @abstractmethod
    def train(self, rows: Rows, runs: Sequence[int], options: TrainingOptions) -> Iterator[tuple[Any, Record]]:
        """Train runs (setting times seeds, plus seed) and return each result with what its model costs."""

    @abstractmethod
    def summary(self, done: Runs) -> Record:
        """Compare the finalists: the papers' protocol, and the setting chosen on validation rows."""

    @abstractmethod
    def quick(self) -> Self:
        """Return a sweep of a few settings and epochs, to see that everything works."""

    @property
    def n_folds(self) -> int:
        """The number of folds that are run."""
        return self.folds or named.n_folds(self.data)

    def means(self, done: Runs, stage: int, field: str) -> dict[int, float]:
        """Average a field of the runs of one stage over folds and seeds, for each setting."""
        return means(done, stage, field, self.seeds)


def means(done: Runs, stage: int, field: str, seeds: int = 1) -> dict[int, float]:
    """Average a field of the runs of one stage over folds and seeds, for each setting."""
    values: dict[int, list[float]] = {}
    for (of, _, run), record in done.items():
        if of == stage and record.get(field) is not None:
            values.setdefault(run // seeds, []).append(record[field])
    return {index: float(np.mean(numbers)) for index, numbers in values.items()}


def run_sweep(
    sweep: Sweep, store: Path, *, tell: Tell, seconds: float = float("inf"), together: int | None = None
) -> Record | None:
    """Run what the store lacks of a sweep; return its summary, or None when the time ended first.

    Parameters
    ----------
    sweep
        The sweep.
    store
        A file of JSON lines; created if it does not exist.
    tell
        Called with a line of text for every finished part. An interrupt ends the sweep; finished parts are kept.
    seconds
        No new part is begun after this time.
    together
        The most runs that are trained together; a part is stored when all of its runs are done. By default all that
        one compiled call can train, which is fast on a GPU. On a CPU a few are as fast, and an interrupt loses less.
    """
    ends = time.monotonic() + seconds
    done = read_store(store).get(sweep.name, {})
    for stage in (1, 2) if sweep.short_epochs else (2,):
        chosen = finalists(sweep, done) if stage == 2 and sweep.short_epochs else range(sweep.n_settings)
        wanted = [index * sweep.seeds + seed for index in chosen for seed in range(sweep.seeds if stage == 2 else 1)]
        if stage == 2 and sweep.short_epochs:
            wanted += [index * sweep.seeds for index in others(sweep, done, set(chosen))]
        for fold in range(sweep.n_folds):
            missing = [run for run in wanted if (stage, fold, run) not in done]
            groups = _grouped(missing, lambda run: sweep.batch(run // sweep.seeds)).values()
            for part in (part for group in groups for part in _parts(group, together)):
                if time.monotonic() > ends:
                    return None
                began = time.monotonic()
                for record in _records(sweep, stage, fold, part):
                    done[stage, fold, record["setting"]] = record
                    append_line(store, record)
                tell(f"{sweep.name} stage {stage} fold {fold}: {len(part)} runs, {time.monotonic() - began:.1f} s")
    return sweep.summary(done)


def finalists(sweep: Sweep, done: Runs) -> list[int]:
    """Return the best settings of stage 1 of each group, by test error and by validation error."""
    best: set[int] = set()
    for field in ("test_error", "validation_error"):
        average = sweep.means(done, 1, field)
        for indices in _grouped(sorted(average), sweep.group).values():
            best |= set(sorted(indices, key=average.__getitem__)[: sweep.finalists])
    return sorted(best)


def others(sweep: Sweep, done: Runs, chosen: set[int]) -> list[int]:
    """Return the settings beyond the finalists that make up `at_least` settings of each group."""
    rankings = [sweep.means(done, 1, field) for field in ("test_error", "validation_error")]
    more: list[int] = []
    for indices in _grouped(sorted(rankings[0]), sweep.group).values():
        known = set(indices) & chosen
        best = [sorted(indices, key=ranking.__getitem__) for ranking in rankings]
        for index in dict.fromkeys(index for pair in zip(*best, strict=True) for index in pair):
            if index not in known and len(known) < sweep.at_least:
                known.add(index)
                more.append(index)
    return sorted(more)


def _grouped(numbers: Sequence[int], key: Any) -> dict[Hashable, list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for number in numbers:
        groups.setdefault(key(number), []).append(number)
    return groups


def _parts(runs: Sequence[int], most: int | None) -> Iterator[Sequence[int]]:
    """Cut runs into parts of at most so many."""
    size = most or len(runs)
    return (runs[first : first + size] for first in range(0, len(runs), size))


@lru_cache(maxsize=1)
def _split(data: str, fold: int, discretizer: str | None, n_bins: int) -> named.Split:
    """Load a data set once for all parts of a sweep: discretising takes seconds."""
    return named.load(data, fold=fold, discretizer=discretizer, n_bins=n_bins)


def _records(sweep: Sweep, stage: int, fold: int, runs: Sequence[int]) -> Iterator[Record]:
    """Train runs that belong together, and describe each as the store keeps it."""
    split = _split(sweep.data, fold, sweep.discretizer, sweep.n_bins)
    train_rows, held_out = hold_out(split.train, 0.1, sweep.seed) if stage == 1 else (split.train, None)
    rows = Rows(train_rows, held_out, split.test, split.image_shape)
    epochs = sweep.short_epochs if stage == 1 else sweep.epochs
    options = TrainingOptions(epochs=epochs, batch_size=sweep.batch_size, every=10**9)
    for run, (result, costs) in zip(runs, sweep.train(rows, runs, options), strict=True):
        yield {
            "sweep": sweep.name,
            "stage": stage,
            "fold": fold,
            "setting": run,
            "validation_error": None if stage == 2 else round(result.validation_error, 6),
            "test_error": round(result.test_error, 6),
            **costs,
        }


@dataclass(frozen=True, kw_only=True)
class TableSweep(Sweep):
    """A random sweep over structures and hyper-parameters of Bayesian networks.

    Parameters
    ----------
    structure
        naive, chow-liu, random, subset, all, heuristic, order-free or pseudo.
    k
        Candidate parents of a feature.
    orderings, subsets
        How many random orderings, and parent subsets for each; of "random", trees for each.
    shared_orderings
        Whether "random" draws its trees from the orderings of "subset" and "all", as the paper does. Otherwise, as in
        the sweeps run so far, every tree has an ordering of its own.
    pairs
        Which pairs (ordering, subset) are taken in turn, instead of all: those that did best before.
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
    input_noise
        Probabilities that a code moves, taken in turn.
    structure_noise, sharing, per_row, noise_reach, noise_end
        As in `TableConfiguration`.
    acyclic_from
        When order-free TAN gets an ordering; see `train_tables`.
    """

    structure: str
    k: int = 8
    orderings: int = 5
    subsets: int = 5
    shared_orderings: bool = False
    pairs: tuple[tuple[int, int], ...] = ()
    image_orderings: str = "ABC"
    settings: int = 100
    lam: tuple[float, float] = (1.0, 3.0)
    gamma: tuple[float, float] = (-1.0, 2.0)
    eta: tuple[float, float] = (10.0, 10.0)
    learning_rates: tuple[float, ...] = (3e-3, 3e-2)
    bits: tuple[tuple[int, int], ...] = ()
    size_penalties: tuple[float, ...] = (0.0,)
    input_noise: tuple[float, ...] = (0.0,)
    noise_reach: float = 0.0
    noise_end: float = 1.0
    structure_noise: float = 0.0
    sharing: float = 0.0
    per_row: bool = False
    acyclic_from: float = 0.4

    @property
    def n_settings(self) -> int:
        """The number of settings that are drawn."""
        return self.settings

    @property
    def title(self) -> str:
        """The row that the sweep is reported in."""
        return self.row or self.structure

    def setting(self, index: int) -> Record:
        """Return the hyper-parameters of one setting; they depend on the seed and the index alone."""
        generator = np.random.default_rng([self.seed, index])
        rates, bits, penalties = self.learning_rates, self.bits, self.size_penalties
        turn = index // len(rates)
        ordering, subset = turn % self.orderings, turn // self.orderings % self.subsets
        if self.pairs:
            ordering, subset = self.pairs[turn % len(self.pairs)]
        return {
            "lam": float(10 ** generator.uniform(*self.lam)),
            "gamma": float(10 ** generator.uniform(*self.gamma)),
            "eta": float(generator.uniform(*self.eta)),
            "learning_rate": rates[index % len(rates)],
            "ordering": ordering,
            "subset": subset,
            "bits": bits[turn % len(bits)] if bits else None,
            "size_penalty": penalties[turn % len(penalties)],
            "input_noise": self.input_noise[turn % len(self.input_noise)],
        }

    def group(self, index: int) -> Hashable:
        """All settings compete."""
        return None

    def batch(self, index: int) -> Hashable:
        """All settings are trained together."""
        return None

    def train(self, rows: Rows, runs: Sequence[int], options: TrainingOptions) -> Iterator[tuple[Any, Record]]:
        """Train settings, and count the entries of their tables and their additions."""
        data = rows.train
        assert data.target is not None
        spaces: dict[tuple[int, int], Candidates] = {}  # many settings share a search space
        configurations = [self.configuration(data, run, spaces) for run in runs]
        results = train_tables(
            data,
            configurations,
            options,
            validation=rows.validation,
            test=rows.test,
            acyclic_from=float("inf") if self.structure == "pseudo" else self.acyclic_from,
            networks=False,
        )
        states, classes = np.array([v.cardinality for v in data.variables]), data.target.cardinality
        for result in results:
            parents = np.array(result.parents)
            entries = states * np.where(parents >= 0, states[parents], 1) * classes
            # Every feature has the class as a parent.
            yield result, {"parameters": int(entries.sum()) + classes, "operations": len(states) * classes}

    def configuration(self, data: Dataset, run: int, spaces: dict[tuple[int, int], Candidates]) -> TableConfiguration:
        """Return the training of a run; `spaces` keeps search spaces that settings share."""
        chosen = self.setting(run // self.seeds)
        drawn = (0, 0) if self.structure in ("naive", "chow-liu") else (chosen["ordering"], chosen["subset"])
        if drawn not in spaces:
            spaces[drawn] = self._candidates(data, *drawn)
        configuration = TableConfiguration(
            candidates=spaces[drawn],
            lam=chosen["lam"],
            gamma=chosen["gamma"],
            eta=chosen["eta"],
            learning_rate=chosen["learning_rate"],
            size_penalty=chosen["size_penalty"],
            structure_noise=self.structure_noise,
            input_noise=chosen["input_noise"],
            noise_reach=self.noise_reach,
            noise_end=self.noise_end,
            sharing=self.sharing,
            per_row=self.per_row,
            seed=self.seed + run,
        )
        if chosen["bits"] is not None:
            configuration = replace(configuration, number_format=Fixed(*chosen["bits"]))
        return configuration

    def _candidates(self, data: Dataset, ordering: int, subset: int) -> Candidates:
        features = len(data.variables)
        match self.structure:
            case "naive":
                return candidates.fixed(naive_bayes(data))
            case "chow-liu":
                return candidates.fixed(chow_liu(data))
            case "random":
                order = random_ordering(features, ordering) if self.shared_orderings else None
                seed = np.random.default_rng([self.seed, ordering, subset])
                return candidates.fixed(random_tan(data, seed=seed, ordering=order))
            case "subset":
                return candidates.subset(features, self.k, seed=ordering, subset_seed=subset)
            case "all":
                return candidates.subset(features, features, seed=ordering)
            case "heuristic":
                side = int(np.sqrt(features))
                letter = self.image_orderings[ordering % len(self.image_orderings)]
                return candidates.heuristic((side, side), self.k, ordering=letter)
            case "order-free" | "pseudo":
                return candidates.order_free(features, None if self.k >= features else self.k, seed=ordering)
        raise error("a structure that can be swept", repr(self.structure), where=f"sweep {self.name}")

    def summary(self, done: Runs) -> Record:
        """Compare the finalists: the papers' protocol, and the setting chosen on validation rows."""
        final = self.means(done, 2, "test_error")
        short = self.means(done, 1, "validation_error")
        best = min(final, key=final.__getitem__)
        record = {
            "sweep": self.name,
            "data": self.data,
            "structure": self.structure,
            "row": self.title,
            "runs": len(done),
            "best_on_test": {"error": final[best], "setting": self.setting(best)},
            "finalists": sorted(final.values()),
        }
        if short:
            selected = min(short, key=short.__getitem__)
            record["chosen_on_validation"] = {
                "error": final[selected],
                "validation_error": short[selected],
                "setting": self.setting(selected),
            }
        return record

    def quick(self) -> Self:
        """Return six settings of six epochs."""
        short = min(3, self.short_epochs)
        return replace(self, settings=min(self.settings, 6), epochs=6, short_epochs=short, finalists=1, at_least=0)


@dataclass(frozen=True, kw_only=True)
class NetSweep(Sweep):
    """A sweep over quantised neural networks under budgets, as resource_efficient runs them (V-C and V-D).

    A budget is a multiple of what a naive Bayes classifier takes: its bits for tables of 1, 2, ... bits an entry, or
    its operations. The settings of a budget and an activation compete. The errors of stage 2 are those of the
    networks in integers.

    Parameters
    ----------
    kind
        ``"dense"`` or ``"conv"``.
    price
        What is limited: ``"bits"`` or ``"operations"``.
    budgets
        Multiples of the bits of naive Bayes with 1-bit tables, or of its operations.
    weight_bits, layers, batch_norm, activations, learning_rates
        All combinations are settings; layers are weight matrices of dense networks, or convolutions. Bits of 0 are
        weights that are not quantised.
    inputs, label_smoothing
        As in `NetConfiguration`, in all settings.
    shifted
        Whether images moved by a pixel join the training rows; see `experiments.images.with_moved`.
    """

    kind: str = "dense"
    price: str = "bits"
    budgets: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    weight_bits: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    layers: tuple[int, ...] = (2, 3, 4, 5)
    batch_norm: tuple[bool, ...] = (True, False)
    activations: tuple[str, ...] = ("relu", "sign")
    learning_rates: tuple[float, ...] = (3e-2, 3e-3, 3e-4)
    inputs: str | None = None
    label_smoothing: float = 0.0
    shifted: bool = False
    short_epochs: int = 40
    finalists: int = 3
    seeds: int = 5

    @cached_property
    def settings(self) -> list[Record]:
        """All settings, in a fixed order."""
        names = ("budget", "activation", "bits", "layers", "batch_norm", "learning_rate")
        choices = self.budgets, self.activations, self.weight_bits, self.layers, self.batch_norm, self.learning_rates
        return [dict(zip(names, chosen, strict=True)) for chosen in product(*choices)]

    @property
    def n_settings(self) -> int:
        """The number of combinations."""
        return len(self.settings)

    @property
    def title(self) -> str:
        """The row that the sweep is reported in."""
        return self.row or self.kind

    def setting(self, index: int) -> Record:
        """Return one setting."""
        return self.settings[index]

    def group(self, index: int) -> tuple[int, str]:
        """Return budget and activation."""
        return self.settings[index]["budget"], self.settings[index]["activation"]

    def batch(self, index: int) -> Hashable:
        """Return what networks share that one compiled call can train; each batch is stored as soon as it is done."""
        setting = self.settings[index]
        return setting["layers"], setting["batch_norm"], setting["activation"]

    def train(self, rows: Rows, runs: Sequence[int], options: TrainingOptions) -> Iterator[tuple[Any, Record]]:
        """Train networks, and price those of stage 2."""
        data = rows.train
        if self.shifted and rows.image_shape is not None:
            data = with_moved(data, rows.image_shape)
        nets = [self.configuration(data, run, rows.image_shape) for run in runs]
        final = rows.validation is None
        results = train_nets(data, nets, options, validation=rows.validation, test=rows.test, networks=final)
        for net, result in zip(nets, results, strict=True):
            costs: Record = {"hidden": list(net.hidden)}
            if result.net is not None:
                price = paper_cost(result.net, batch_norm=net.batch_norm)
                costs |= {"bits_used": price.bits, "operations": price.operations}
            yield result, costs

    def configuration(self, data: Dataset, run: int, image: tuple[int, int] | None) -> NetConfiguration:
        """Return the network of a run: as wide as its budget allows."""
        setting, seed = self.settings[run // self.seeds], self.seed + run % self.seeds
        if self.kind == "conv" and image is None:
            raise error("images", self.data, where=f"sweep {self.name}")
        return NetConfiguration(
            kind=self.kind,
            hidden=self._widths(data, setting, image),
            bits=setting["bits"] or None,
            activation=setting["activation"],
            batch_norm=setting["batch_norm"],
            inputs=self.inputs,
            learning_rate=setting["learning_rate"],
            label_smoothing=self.label_smoothing,
            image_shape=image if self.kind == "conv" else None,
            seed=seed,
        )

    def _widths(self, data: Dataset, setting: Record, image: tuple[int, int] | None) -> tuple[int, ...]:
        assert data.target is not None
        states, classes = [v.cardinality for v in data.variables], data.target.cardinality
        naive = sum(states) * classes + classes if self.price == "bits" else len(states) * classes
        return hidden_within(
            naive * setting["budget"],
            "bits" if self.price == "bits" else "operations",
            layers=setting["layers"],
            weight_bits=setting["bits"] or 32,
            inputs=sum(states) if self.inputs == "one-hot" else len(states),
            classes=classes,
            image=image if self.kind == "conv" else None,
            batch_norm=setting["batch_norm"],
        )

    def summary(self, done: Runs) -> Record:
        """Return both protocols for each budget and activation; those without a finished run are left out."""
        rows = []
        groups = _grouped(sorted(self.means(done, 2, "test_error")), self.group)
        for budget, activation in product(self.budgets, self.activations):
            best = self._best(done, groups.get((budget, activation), ()))
            if best is not None:
                rows.append({"budget": budget, "activation": activation, **best})
        return {
            "sweep": self.name,
            "data": self.data,
            "kind": self.kind,
            "price": self.price,
            "row": self.title,
            "runs": len(done),
            "rows": rows,
        }

    def _best(self, done: Runs, group: Sequence[int]) -> Record | None:
        """Return the best run on test rows, and the mean of the setting that is best on validation rows.

        None if no run has been through all folds yet.
        """
        short = self.means(done, 1, "validation_error")
        final = self.means(done, 2, "test_error")
        runs = [(i * self.seeds + seed, i) for i in group for seed in range(self.seeds)]
        folds = range(self.n_folds)
        single = [(self._fold_mean(done, run), i) for run, i in runs if all((2, fold, run) in done for fold in folds)]
        if not single:
            return None
        (least, best), selected = min(single), min(group, key=lambda index: short.get(index, np.inf))
        record = {"settings": len({i for _, i in single}), "best_on_test": {"error": least, **self._priced(done, best)}}
        if selected in short:
            errors = {"error": final[selected], "validation_error": short[selected]}
            record["chosen_on_validation"] = {**errors, **self._priced(done, selected)}
        return record

    def _fold_mean(self, done: Runs, run: int) -> float:
        return float(np.mean([done[2, fold, run]["test_error"] for fold in range(self.n_folds)]))

    def _priced(self, done: Runs, index: int) -> Record:
        record = done[2, 0, index * self.seeds]
        return {**self.settings[index], **{name: record.get(name) for name in ("hidden", "bits_used", "operations")}}

    def quick(self) -> Self:
        """Return two small networks of one budget."""
        few = replace(self, weight_bits=self.weight_bits[-2:], layers=self.layers[:1], budgets=self.budgets[-1:])
        few = replace(few, learning_rates=(3e-3,), batch_norm=(True,), activations=self.activations[:1])
        return replace(few, epochs=4, short_epochs=2, finalists=1, at_least=0, seeds=1)


def read_sweeps(path: Path) -> list[Sweep]:
    """Read a TOML file: tables ``[[sweep]]`` with the fields of `TableSweep`, ``[[nets]]`` with those of `NetSweep`."""
    kinds: dict[str, type[Sweep]] = {"sweep": TableSweep, "nets": NetSweep}
    try:
        tables = tomllib.loads(path.read_text())
        if not (tables.keys() & kinds.keys()):
            raise KeyError("sweep")
        return [
            kind(**{name: _frozen(value) for name, value in dict(entry).items()})
            for table, kind in kinds.items()
            for entry in tables.get(table, [])
        ]
    except (OSError, KeyError, TypeError, ValueError, RecursionError) as problem:
        raise error("a file of sweeps", problem, where=str(path), kind=FileError) from problem


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
