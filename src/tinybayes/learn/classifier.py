"""Learning a classifier by name: what the estimators and the command line call."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from tinybayes.errors import error
from tinybayes.learn.closed_form.chow_liu import chow_liu
from tinybayes.learn.closed_form.counts import Data, batches, remember
from tinybayes.learn.closed_form.maximum_likelihood import maximum_likelihood
from tinybayes.learn.closed_form.structures import naive_bayes, random_tan
from tinybayes.learn.training.options import NetOptions, TableOptions, TrainingOptions, default_epochs
from tinybayes.model import BayesNet, Dataset, Fixed, Float, NumberFormat, Structure
from tinybayes.model.dataset import concatenate
from tinybayes.options import documented, option, options_of, same_option

if TYPE_CHECKING:
    from tinybayes.learn.training.candidates import Candidates
    from tinybayes.learn.training.tables import Progress, TableConfiguration

STRUCTURES: dict[str, Callable[[Data, int], Structure]] = {
    "naive": lambda data, seed: naive_bayes(data),
    "chow-liu": lambda data, seed: chow_liu(data),
    "random": lambda data, seed: random_tan(data, seed=seed),
}
SEARCHES = ("subset", "order-free", "heuristic")
TRAININGS = ("ml", "hybrid")
MEASUREMENTS = 200  # of the validation error in early stopping, about


@documented
@dataclass(frozen=True, kw_only=True)
class HybridOptions(TableOptions):
    """Options of ``training="hybrid"``."""

    n_candidates: int = option(8, "Candidate parents of a feature when the structure is learned.", low=1)
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
        1, "Above 1, train that many random settings at once and keep the best on held-out rows.", low=1
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.bits, int) and not 1 <= self.bits <= 16:
            raise error("1 to 16 bits", self.bits, where="bits")


def learn_classifier(
    data: Data,
    *,
    structure: str = "chow-liu",
    training: str = "ml",
    smoothing: float = 1.0,
    number_format: NumberFormat | None = None,
    seed: int = 0,
    options: HybridOptions | None = None,
    report: "Callable[[Progress], None] | None" = None,
) -> BayesNet:
    """Learn a Bayesian-network classifier.

    Parameters
    ----------
    data
        A data set with a class, or batches of one.
    structure
        ``"naive"`` (naive Bayes), ``"chow-liu"`` (tree-augmented) or ``"random"`` (a random tree); with
        ``training="hybrid"`` also ``"subset"`` (TAN Subset: learned with the parameters among random
        candidates), ``"order-free"`` (likewise, all features as candidates) or ``"heuristic"`` (for images: among the
        nearest pixels).
    training
        ``"ml"``: smoothed maximum likelihood, in closed form; ``"hybrid"``: by gradient, likelihood and margin.
    smoothing
        Of ``"ml"``: added to every joint cell.
    number_format
        How to store the tables; 32-bit floats by default. ``"hybrid"`` trains through a `Fixed` one.
    seed
        For everything drawn at random.
    options
        Of ``"hybrid"``.
    report
        Of ``"hybrid"``: called with the progress now and then.
    """
    if data.target is None:
        raise error("data with a class", "no target", where="data", remedy="name the target column")
    if training not in TRAININGS:
        raise error(f"one of {', '.join(TRAININGS)}", repr(training), where="training")
    known = (*STRUCTURES, *SEARCHES) if training == "hybrid" else tuple(STRUCTURES)
    if structure not in known:
        remedy = "it is learned by gradient: use training 'hybrid'" if structure in SEARCHES else ""
        raise error(f"one of {', '.join(known)}", repr(structure), where="structure", remedy=remedy)
    if training != "hybrid" and options is not None and options != HybridOptions():
        given = ", ".join(f.name for f in fields(options) if getattr(options, f.name) != f.default)
        remedy = "use training 'hybrid', or leave them out"
        raise error("no options of training by gradient", given, where=f"training {training!r}", remedy=remedy)
    if training == "hybrid":
        return _learn_by_gradient(data, structure, options or HybridOptions(), number_format, seed, report)
    data = remember(data)  # Chow-Liu has counted what the tables need
    graph = STRUCTURES[structure](data, seed)
    return maximum_likelihood(data, graph, smoothing=smoothing, number_format=number_format)


def _learn_by_gradient(
    source: Data,
    structure: str,
    options: HybridOptions,
    number_format: NumberFormat | None,
    seed: int,
    report: "Callable[[Progress], None] | None",
) -> BayesNet:
    """Train the configurations that the options ask for; of several, return the best on held-out rows."""
    from tinybayes.learn.training.tables import TableConfiguration, train_tables

    data = concatenate(list(batches(source)))
    base = TableConfiguration(
        candidates=_candidates(data, structure, options, seed),
        seed=seed,
        **{name: getattr(options, name) for name in options_of(TableOptions)},
    )
    runs = _configurations(base, options, number_format, seed)
    choose = options.early_stopping or len(runs) > 1
    training, held_out = hold_out(data, options.validation_fraction, seed) if choose else (data, None)
    epochs = options.epochs or default_epochs(len(training), options.batch_size)
    results = train_tables(
        training,
        runs,
        TrainingOptions(
            epochs=epochs,
            batch_size=options.batch_size,
            keep_best=options.early_stopping,
            every=-(-epochs // MEASUREMENTS) if options.early_stopping else 1,
            shuffle_seed=seed,
            device=options.device,
        ),
        validation=held_out,
        report=report,
    )
    net = min(results, key=lambda result: result.validation_error).net if len(results) > 1 else results[0].net
    assert net is not None  # only a pseudo-TAN has none
    return net


def _configurations(
    base: "TableConfiguration", options: HybridOptions, number_format: NumberFormat | None, seed: int
) -> "list[TableConfiguration]":
    """Return the settings to train: number formats times random hyper-parameters."""
    if number_format is not None and options.bits is not None:
        raise error("either number_format or bits", "both", where="options")
    formats: list[NumberFormat] = [number_format or Float()]
    if isinstance(options.bits, tuple):
        formats = [Fixed(*options.bits)]
    elif options.bits is not None:
        formats = [Fixed(integer, options.bits - integer) for integer in range(1, 7)]
    runs = [base]
    if options.n_configs > 1:  # setting (II) of differentiable_tan
        generator = np.random.default_rng([seed, 4])
        runs = [
            replace(
                base,
                lam=float(10 ** generator.uniform(1, 3)),
                gamma=float(10 ** generator.uniform(-1, 2)),
                learning_rate=float(generator.choice([3e-3, 3e-2])),
                seed=seed + number,
            )
            for number in range(options.n_configs)
        ]
    return [replace(run, number_format=number_format) for run in runs for number_format in formats]


def _candidates(data: Dataset, structure: str, options: HybridOptions, seed: int) -> "Candidates":
    from tinybayes.learn.training import candidates

    features, k = len(data.variables), options.n_candidates
    if structure in STRUCTURES:
        return candidates.fixed(STRUCTURES[structure](data, seed))
    if structure == "order-free":
        return candidates.order_free(features)
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
