"""Learning a classifier by name: what the estimators and the command line call."""

from collections.abc import Callable

from tinybayes.errors import error
from tinybayes.learn.chow_liu import chow_liu
from tinybayes.learn.counts import Data
from tinybayes.learn.maximum_likelihood import maximum_likelihood
from tinybayes.learn.structures import naive_bayes, random_tan
from tinybayes.model import BayesNet, NumberFormat, Structure

STRUCTURES: dict[str, Callable[[Data, int], Structure]] = {
    "naive": lambda data, seed: naive_bayes(data),
    "chow-liu": lambda data, seed: chow_liu(data),
    "random": lambda data, seed: random_tan(data, seed=seed),
}
TRAININGS = ("ml",)


def learn_classifier(
    data: Data,
    *,
    structure: str = "chow-liu",
    training: str = "ml",
    smoothing: float = 1.0,
    number_format: NumberFormat | None = None,
    seed: int = 0,
) -> BayesNet:
    """Learn a Bayesian-network classifier.

    Parameters
    ----------
    data
        A data set with a class, or batches of one.
    structure
        ``"naive"`` (naive Bayes), ``"chow-liu"`` (tree-augmented) or ``"random"`` (a random tree).
    training
        ``"ml"``: smoothed maximum likelihood, in closed form.
    smoothing
        Added to every joint cell.
    number_format
        How to store the tables; 32-bit floats by default.
    seed
        For structures drawn at random.
    """
    if data.target is None:
        raise error("data with a class", "no target", where="data", remedy="name the target column")
    if structure not in STRUCTURES:
        raise error(f"one of {', '.join(STRUCTURES)}", repr(structure), where="structure")
    if training not in TRAININGS:
        raise error(f"one of {', '.join(TRAININGS)}", repr(training), where="training")
    graph = STRUCTURES[structure](data, seed)
    return maximum_likelihood(data, graph, smoothing=smoothing, number_format=number_format)
