"""Learning a classifier by name: what the estimators and the command line call."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from tinybayes.errors import error
from tinybayes.learn.closed_form.counts import Data, batches, remember
from tinybayes.learn.closed_form.maximum_likelihood import maximum_likelihood
from tinybayes.learn.hybrid import SEARCHES, STRUCTURES, HybridOptions, learn_hybrid
from tinybayes.model import BayesNet, Dataset, NumberFormat
from tinybayes.model.dataset import concatenate
from tinybayes.options import check_seed

if TYPE_CHECKING:
    from tinybayes.learn.training.tables import Progress

TRAININGS = ("ml", "hybrid")


def learn_classifier(
    data: Data,
    *,
    structure: str = "chow-liu",
    training: str = "ml",
    smoothing: float = 1.0,
    number_format: NumberFormat | None = None,
    seed: int = 0,
    options: HybridOptions | None = None,
    encodings: Sequence[Dataset] = (),
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
    encodings
        Of ``"hybrid"``: the same rows in other encodings, among which held-out rows choose, too.
    report
        Of ``"hybrid"``: called with the progress now and then.
    """
    check_seed(seed)
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
        coded = [concatenate(list(batches(data))), *encodings]
        return learn_hybrid(coded, structure, options or HybridOptions(), number_format, seed, report)
    data = remember(data)  # Chow-Liu has counted what the tables need
    graph = STRUCTURES[structure](data, seed)
    return maximum_likelihood(data, graph, smoothing=smoothing, number_format=number_format)
