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
from tinybayes.model import BayesNet, Dataset, Fixed, Float, NumberFormat, Structure
from tinybayes.model.dataset import concatenate

if TYPE_CHECKING:
    from tinybayes.learn.training.candidates import Candidates
    from tinybayes.learn.training.hybrid import Configuration, Progress

STRUCTURES: dict[str, Callable[[Data, int], Structure]] = {
    "naive": lambda data, seed: naive_bayes(data),
    "chow-liu": lambda data, seed: chow_liu(data),
    "random": lambda data, seed: random_tan(data, seed=seed),
}
SEARCHES = ("differentiable", "order-free", "heuristic")
TRAININGS = ("ml", "hybrid")
STEPS = 6000  # mini-batches of a training by default
MEASUREMENTS = 200  # of the validation error in early stopping, about


@dataclass(frozen=True, kw_only=True)
class GradientOptions:
    """Options of ``training="hybrid"``.

    Parameters
    ----------
    n_candidates
        Candidate parents of a feature when the structure is learned.
    bits
        None for 32-bit floats; a number of bits, of which the share before the binary point is chosen on validation
        rows; or the pair (before, after) the binary point.
    size_penalty
        lambda_MS: what an entry of a table costs in the structure search.
    structure_noise
        Probability that a feature loses its extra parent for one mini-batch, as in dropout; 0 to below 1. It
        regularises fixed structures and searches; naive Bayes has nothing to lose.
    sharing
        Let the contexts of a feature have a part of their table in common, which learns at this multiple of the
        learning rate, so that a context with few rows follows the others; 0 for none, as in the papers.
    lam, gamma, eta
        Weight of the margin loss, wanted log-margin, softness of the maximum.
    epochs, learning_rate, batch_size
        Of the optimiser; without a number, as many epochs as make 6,000 mini-batches.
    n_configs
        Above 1: that many random settings of lam, gamma and the learning rate, in the ranges of the papers, trained at
        once; the best on validation rows wins.
    early_stopping
        Keep rows for validation and return the parameters that made the fewest errors on them, not the last ones. The
        error is measured after every epoch, or at 200 of them at most when there are more.
    validation_fraction
        Share of the rows kept for choosing, when there is something to choose: settings, bits or an epoch.
    image_shape
        Rows and columns of the image, for ``structure="heuristic"``.
    ordering
        A, B or C, for ``structure="heuristic"``.
    device
        ``"cpu"`` or ``"gpu"``; by default what JAX finds best.
    """

    n_candidates: int = 8
    bits: int | tuple[int, int] | None = None
    size_penalty: float = 0.0
    structure_noise: float = 0.0
    sharing: float = 0.0
    lam: float = 30.0
    gamma: float = 10.0
    eta: float = 10.0
    epochs: int | None = None
    learning_rate: float = 3e-2
    batch_size: int = 100
    n_configs: int = 1
    early_stopping: bool = False
    validation_fraction: float = 0.1
    image_shape: tuple[int, int] | None = None
    ordering: str = "C"
    device: str | None = None


def learn_classifier(
    data: Data,
    *,
    structure: str = "chow-liu",
    training: str = "ml",
    smoothing: float = 1.0,
    number_format: NumberFormat | None = None,
    seed: int = 0,
    options: GradientOptions | None = None,
    report: "Callable[[Progress], None] | None" = None,
) -> BayesNet:
    """Learn a Bayesian-network classifier.

    Parameters
    ----------
    data
        A data set with a class, or batches of one.
    structure
        ``"naive"`` (naive Bayes), ``"chow-liu"`` (tree-augmented) or ``"random"`` (a random tree); with
        ``training="hybrid"`` also ``"differentiable"`` (TAN Subset: learned with the parameters among random
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
    if training != "hybrid" and options is not None and options != GradientOptions():
        given = [f.name for f in fields(options) if getattr(options, f.name) != f.default]
        remedy = "use training 'hybrid', or leave them out"
        raise error(
            "no options of training by gradient", ", ".join(given), where=f"training {training!r}", remedy=remedy
        )
    if training == "hybrid":
        return _learn_by_gradient(data, structure, options or GradientOptions(), number_format, seed, report)
    data = remember(data)  # Chow-Liu has counted what the tables need
    graph = STRUCTURES[structure](data, seed)
    return maximum_likelihood(data, graph, smoothing=smoothing, number_format=number_format)


def _learn_by_gradient(
    source: Data,
    structure: str,
    options: GradientOptions,
    number_format: NumberFormat | None,
    seed: int,
    report: "Callable[[Progress], None] | None",
) -> BayesNet:
    """Train the configurations that the options ask for; of several, return the best on held-out rows."""
    from tinybayes.learn.training.hybrid import Configuration, noisy, train

    if not 0 <= options.structure_noise < 1:
        raise error("a probability below 1", options.structure_noise, where="structure_noise")
    data = concatenate(list(batches(source)))
    base = Configuration(
        candidates=_candidates(data, structure, options, seed),
        lam=options.lam,
        gamma=options.gamma,
        eta=options.eta,
        learning_rate=options.learning_rate,
        size_penalty=options.size_penalty,
        sharing=options.sharing,
        seed=seed,
    )
    runs = _configurations(noisy(base, options.structure_noise), options, number_format, seed)
    choose = options.early_stopping or len(runs) > 1
    training, held_out = hold_out(data, options.validation_fraction, seed) if choose else (data, None)
    epochs = _epochs(training, options)
    found = train(
        training,
        runs,
        epochs=epochs,
        batch_size=options.batch_size,
        validation=held_out,
        keep_best=options.early_stopping,
        every=-(-epochs // MEASUREMENTS) if options.early_stopping else 1,
        shuffle_seed=seed,
        report=report,
        device=options.device,
    )
    net = min(found, key=lambda result: result.validation_error).net if len(found) > 1 else found[0].net
    assert net is not None  # only a pseudo-TAN has none
    return net


def _epochs(data: Dataset, options: GradientOptions) -> int:
    if options.epochs is not None:
        return options.epochs
    return math.ceil(STEPS / max(1, len(data) // max(1, options.batch_size)))


def _configurations(
    base: "Configuration", options: GradientOptions, number_format: NumberFormat | None, seed: int
) -> "list[Configuration]":
    """Return the settings to train: number formats times random hyper-parameters."""
    if options.n_configs < 1:
        raise error("at least 1", options.n_configs, where="n_configs")
    if number_format is not None and options.bits is not None:
        raise error("either number_format or bits", "both", where="options")
    formats: list[NumberFormat] = [number_format or Float()]
    if isinstance(options.bits, tuple):
        formats = [Fixed(*options.bits)]
    elif options.bits is not None:
        if not 1 <= options.bits <= 16:
            raise error("1 to 16 bits", options.bits, where="bits")
        formats = [Fixed(whole, options.bits - whole) for whole in range(1, 7)]
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


def _candidates(data: Dataset, structure: str, options: GradientOptions, seed: int) -> "Candidates":
    from tinybayes.learn.training import candidates

    features, k = len(data.variables), options.n_candidates
    if structure in STRUCTURES:
        return candidates.fixed(STRUCTURES[structure](data, seed))
    if k < 1:
        raise error("at least 1", k, where="n_candidates")
    if structure == "order-free":
        return candidates.order_free(features)
    if structure == "heuristic":
        shape = options.image_shape or (math.isqrt(features), math.isqrt(features))
        if shape[0] * shape[1] != features:
            remedy = "give image_shape, or use structure 'differentiable'"
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
