"""Training by gradient with what was not given chosen on held-out rows: noise, margin, number format, encoding.

Settings are trained on the other rows, those of one encoding at once. The chosen one learns again from all rows.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybayes.errors import error, warn
from tinybayes.learn.closed_form.chow_liu import chow_liu, conditional_mutual_information
from tinybayes.learn.closed_form.counts import Data
from tinybayes.learn.closed_form.structures import naive_bayes, random_tan
from tinybayes.learn.interrupts import interruptible
from tinybayes.learn.training.options import NetOptions, TableOptions, TrainingOptions, default_epochs
from tinybayes.model import BayesNet, Dataset, Fixed, Float, NumberFormat, Structure
from tinybayes.options import documented, option, options_of, same_option

if TYPE_CHECKING:
    from tinybayes.data.variables import Discretization
    from tinybayes.learn.training.candidates import Candidates
    from tinybayes.learn.training.tables import Progress, TableConfiguration, Trained

STRUCTURES: dict[str, Callable[[Data, int], Structure]] = {
    "naive": lambda data, seed: naive_bayes(data),
    "chow-liu": lambda data, seed: chow_liu(data),
    "random": lambda data, seed: random_tan(data, seed=seed),
}
SEARCHES = ("subset", "order-free", "heuristic")
# Options of some structures alone, with those that use them.
_USED_BY: dict[str, tuple[str, ...]] = {
    "n_candidates": SEARCHES,
    "structure_rate": SEARCHES,
    "size_penalty": SEARCHES,
    "structure_noise": tuple(name for name in (*STRUCTURES, *SEARCHES) if name != "naive"),
    "image_shape": ("heuristic",),
    "ordering": ("heuristic",),
}
MEASUREMENTS = 200  # of the validation error in early stopping, about
CHOSEN = "chosen on held-out rows"
# What is tried of options that were not given, the usual value first.
TRIED: dict[str, tuple[float, ...]] = {"input_noise": (0.2, 0.0, 0.1, 0.4), "gamma": (10.0, 1.0)}
ENOUGH = 500  # held-out rows that choose these, or a third of a small table
BRIEFLY = 0.5  # of the epochs, for which settings are trained to choose among them
FINE, MANY_ROWS = (8, 16), 2000  # bins of equal counts in an encoding, of few and of many rows
_HELP = {name: known.help for name, known in options_of(TableOptions).items()}


@documented
@dataclass(frozen=True, kw_only=True)
class HybridOptions(TableOptions):
    """Options of ``training="hybrid"``."""

    # None, chosen on held-out rows, is replaced by a number before a `TableOptions` is made of these.
    input_noise: float | None = same_option(  # type: ignore[assignment]
        TableOptions, "input_noise", default=None, help=f"{_HELP['input_noise']} Default: 0 to 0.4, {CHOSEN}."
    )
    gamma: float | None = same_option(  # type: ignore[assignment]
        TableOptions, "gamma", default=None, help=f"{_HELP['gamma']} Default: 10 or 1, {CHOSEN}."
    )
    n_candidates: int | None = option(
        None, "Candidate parents of a feature when the structure is learned; default: 8, and all for order-free.", low=1
    )
    bits: int | tuple[int, int] | None = option(
        None,
        "Train through tables of that many bits, 1 to 16, whose binary point is chosen on held-out rows; "
        "a pair such as 3,1: bits before and after the binary point; default: 32-bit floats.",
    )
    epochs: int | None = same_option(
        TrainingOptions,
        "epochs",
        default=None,
        help="Passes over the data; default: as many as make 6,000 mini-batches.",
    )
    batch_size: int = same_option(TrainingOptions, "batch_size")
    n_configs: int = option(
        1, "Above 1, train that many random settings at once; the best on held-out rows learns from all.", low=1
    )
    early_stopping: bool = option(False, "Return the parameters with the fewest errors on held-out rows.")
    validation_fraction: float = option(
        0.1, "Share of the rows held out to choose settings, bits or an epoch.", above=0, below=1
    )
    image_shape: tuple[int, int] | None = same_option(
        NetOptions, "image_shape", help="Rows and columns of the image, for structure heuristic; a square by default."
    )
    ordering: str = option("C", "Order of the pixels, for structure heuristic.", choices=("A", "B", "C"))
    device: str | None = same_option(TrainingOptions, "device")
    deterministic: bool = same_option(TrainingOptions, "deterministic")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.bits, int) and not 1 <= self.bits <= 16:
            raise error("1 to 16 bits", self.bits, where="bits")


def encodings_tried(discretization: "Discretization", rows: int) -> "list[Discretization]":
    """Return the ways to cut numbers among which held-out rows choose, the usual one first.

    Noise makes up for the few rows of each of many bins. So ``"auto"`` tries bins of equal counts beside MDLP's.
    """
    if not isinstance(discretization.discretizer, str) or discretization.discretizer != "auto":
        return [discretization]
    bins = FINE[rows >= MANY_ROWS]
    return [replace(discretization, discretizer="quantile", n_bins=bins), replace(discretization, discretizer="mdlp")]


def learn_hybrid(
    encodings: Sequence[Dataset],
    structure: str,
    options: HybridOptions,
    number_format: NumberFormat | None,
    seed: int,
    report: "Callable[[Progress], None] | None",
) -> BayesNet:
    """Train the settings that the options leave open; choose on held-out rows, and learn again from all rows.

    `encodings` have the same rows.
    """
    if unused := _unused(structure, options):
        warn(f"these options do nothing here: {'; '.join(unused)}")
    formats, free = _formats(options, number_format), [name for name in TRIED if getattr(options, name) is None]
    plans: list[tuple[Dataset, list[TableConfiguration]]] = []
    for data in encodings:
        base = _base(data, structure, options, free, seed)
        own = _drawn(base, options, free, seed) if options.n_configs > 1 else _tried(base, free, len(formats) > 1)
        plans.append((data, [replace(run, number_format=one) for one in formats for run in own]))
    if len(plans) == len(plans[0][1]) == 1 and not options.early_stopping:
        return _net(_train(*plans[0], None, options, seed, report)[0])
    settings = len(plans[0][1]) // len(formats) if options.n_configs == 1 else 1  # of each format
    with interruptible() as interrupted:
        return _chosen_net(plans, free, settings, options, seed, report, interrupted)


def _chosen_net(
    plans: "list[tuple[Dataset, list[TableConfiguration]]]",
    free: Sequence[str],
    settings: int,
    options: HybridOptions,
    seed: int,
    report: "Callable[[Progress], None] | None",
    interrupted: Event,
) -> BayesNet:
    """Train all settings on a part of the rows, and that with the fewest errors on the others on all rows."""
    tried: list[tuple[Dataset, Trained]] = []
    whole, complete = _Whole(report), True
    for number, (data, runs) in enumerate(plans, 1):
        fraction = options.validation_fraction
        if free and options.n_configs == 1:
            fraction = max(fraction, min(1 / 3, ENOUGH / len(data)))
        training, held_out = hold_out(data, fraction, seed)
        to_come = (len(plans) - number) * _epochs(training, held_out, options)
        to_come += 0 if options.early_stopping else _epochs(data, None, options)
        results = _train(training, runs, held_out, options, seed, whole.reporter(to_come))
        tried += [(data, result) for result in results]
        # Runs of another shape may not have begun.
        complete = len(results) == len(runs) and all(result.complete for result in results)
        if not complete:
            settings = 1  # what is left are no blocks
        if interrupted.is_set() or not complete:  # an interrupt in the last call of a training leaves that complete
            break
    data, result = tried[chosen([result.validation_error for _, result in tried], settings, len(held_out))]
    if options.early_stopping or interrupted.is_set() or not complete:
        return _net(result)
    return _net(_train(data, [result.configuration], None, options, seed, whole.reporter(0))[0])


class _Whole:
    """Reports the progress of trainings that follow each other as that of one."""

    def __init__(self, report: "Callable[[Progress], None] | None") -> None:
        self.report, self.began, self.done = report, time.perf_counter(), 0

    def reporter(self, to_come: int) -> "Callable[[Progress], None] | None":
        """Return what the next training reports to, with the epochs that come after it."""
        if self.report is None:
            return None
        before, report = self.done, self.report

        def tell(state: "Progress") -> None:
            self.done = before + state.done
            total = before + state.total + to_come
            left = (time.perf_counter() - self.began) / self.done * (total - self.done)
            report(replace(state, done=self.done, total=total, seconds_left=left))

        return tell


def _unused(structure: str, options: HybridOptions) -> list[str]:
    """Name options that were changed and have no effect, with what they belong to."""
    unused = [
        f"{name} (of structure {' or '.join(used_by)}, not {structure})"
        for name, used_by in _USED_BY.items()
        if structure not in used_by and _changed(options, name)
    ]
    if options.input_noise == 0:
        unused += [
            f"{name} (of input_noise above 0)" for name in ("noise_reach", "noise_end") if _changed(options, name)
        ]
    return unused


def _changed(options: HybridOptions, name: str) -> bool:
    return bool(getattr(options, name) != getattr(HybridOptions, name))


def chosen(errors: Sequence[float], settings: int, rows: int) -> int:
    """Return the index of the best run. Runs come in blocks of `settings`; the first run of a block is the default.

    Another run must beat the best default by more than a standard error: on few rows the least of many errors is luck.
    """
    usual = min(range(0, len(errors), settings), key=errors.__getitem__)
    best = min(range(len(errors)), key=errors.__getitem__)
    deviation = math.sqrt(errors[usual] * (1 - errors[usual]) / rows)
    return best if errors[best] < errors[usual] - deviation else usual


def _train(
    data: Dataset,
    runs: "list[TableConfiguration]",
    held_out: Dataset | None,
    options: HybridOptions,
    seed: int,
    report: "Callable[[Progress], None] | None",
) -> "list[Trained]":
    """Train configurations; those with held-out rows are measured on them, and trained briefly."""
    from tinybayes.learn.training.tables import train_tables

    epochs = _epochs(data, held_out, options)
    return train_tables(
        data,
        runs,
        TrainingOptions(
            epochs=epochs,
            batch_size=options.batch_size,
            keep_best=options.early_stopping,
            every=-(-epochs // MEASUREMENTS) if options.early_stopping else epochs,
            shuffle_seed=seed,
            device=options.device,
            deterministic=options.deterministic,
        ),
        validation=held_out,
        report=report,
    )


def _epochs(data: Dataset, held_out: Dataset | None, options: HybridOptions) -> int:
    """Return the epochs of a training on these rows."""
    epochs = options.epochs or default_epochs(len(data), options.batch_size)
    brief = held_out is not None and options.epochs is None and not options.early_stopping
    return math.ceil(BRIEFLY * epochs) if brief else epochs


def _net(result: "Trained") -> BayesNet:
    assert result.net is not None  # only a pseudo-TAN has none
    return result.net


def _formats(options: HybridOptions, number_format: NumberFormat | None) -> list[NumberFormat]:
    """Return the number formats to try."""
    if number_format is not None and options.bits is not None:
        raise error("either number_format or bits", "both", where="options")
    if isinstance(options.bits, tuple):
        return [Fixed(*options.bits)]
    if options.bits is not None:
        return [Fixed(integer, options.bits - integer) for integer in range(1, 7)]
    return [number_format or Float()]


def _base(
    data: Dataset, structure: str, options: HybridOptions, free: Sequence[str], seed: int
) -> "TableConfiguration":
    """Return the setting of the options, with the usual values of what was not given."""
    from tinybayes.learn.training.tables import TableConfiguration

    given = {name: getattr(options, name) for name in options_of(TableOptions)}
    usual = {name: TRIED[name][0] for name in free}
    return TableConfiguration(candidates=_candidates(data, structure, options, seed), seed=seed, **given | usual)


def _tried(base: "TableConfiguration", free: Sequence[str], noise_only: bool) -> "list[TableConfiguration]":
    """Return settings with all values that are tried of what was not given."""
    runs = [base]
    for name in free:
        if name == "input_noise" or not noise_only:
            changes: Any = [{name: value} for value in TRIED[name]]
            runs = [replace(run, **change) for run in runs for change in changes]
    return runs


def _drawn(
    base: "TableConfiguration", options: HybridOptions, free: Sequence[str], seed: int
) -> "list[TableConfiguration]":
    """Draw what was not given: margin and learning rate as in setting (II) of differentiable_tan, and noise."""
    generator = np.random.default_rng([seed, 4])
    runs: list[TableConfiguration] = []
    for number in range(options.n_configs):
        drawn = {
            "lam": float(10 ** generator.uniform(1, 3)),
            "gamma": float(10 ** generator.uniform(-1, 2)),
            "learning_rate": float(generator.choice([3e-3, 3e-2])),
        }
        asked: dict[str, Any] = {name: value for name, value in drawn.items() if not _changed(options, name)}
        runs.append(replace(base, seed=seed + number, **asked))
    if "input_noise" in free:
        runs = [replace(run, input_noise=float(generator.choice(TRIED["input_noise"]))) for run in runs]
    return runs


def _candidates(data: Dataset, structure: str, options: HybridOptions, seed: int) -> "Candidates":
    from tinybayes.learn.training import candidates

    features, k = len(data.variables), options.n_candidates or 8
    if structure in STRUCTURES:
        return candidates.fixed(STRUCTURES[structure](data, seed))
    if structure == "order-free":
        if options.n_candidates is None or k >= features - 1:
            return candidates.order_free(features)
        return candidates.most_informative(conditional_mutual_information(data), k)
    if structure == "heuristic":
        shape = options.image_shape or (math.isqrt(features), math.isqrt(features))
        if shape[0] * shape[1] != features:
            remedy = "give image_shape, or use structure 'subset'"
            raise error(f"an image of {features} pixels", shape, where="structure 'heuristic'", remedy=remedy)
        return candidates.heuristic(shape, k, ordering=options.ordering)
    return candidates.subset(features, k, seed=seed)


def hold_out(data: Dataset, fraction: float, seed: int) -> tuple[Dataset, Dataset]:
    """Split off a share of every class for choosing."""
    if not 0 < fraction < 1:
        raise error("a share between 0 and 1", fraction, where="validation_fraction")
    assert data.y is not None
    generator = np.random.default_rng([seed, 5])
    chosen = np.zeros(len(data), dtype=bool)
    for code in np.unique(data.y[data.y >= 0]):
        rows = generator.permutation(np.flatnonzero(data.y == code))
        chosen[rows[: round(fraction * len(rows))]] = True
    if not chosen.any():
        raise error("enough rows to hold some out", f"{len(data)} rows", where="validation_fraction")
    return data.rows(~chosen), data.rows(chosen)
