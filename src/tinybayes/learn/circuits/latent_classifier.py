"""Classifiers by latent trees: the class as a variable of the tree, or a tree for each class.

Neither is better everywhere. Trees of their own follow what differs between classes, and need enough rows of each; in
one tree the class reaches the features through hidden variables, which share what the classes have in common. So both
are learned, and held-out rows choose.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tinybayes.errors import error
from tinybayes.infer.circuit import log_joint_with_class
from tinybayes.learn.circuits.latent_circuit import class_mixture
from tinybayes.learn.circuits.latent_rows import as_density, collapsed
from tinybayes.learn.circuits.latent_tree import learn_latent_tree_with
from tinybayes.learn.circuits.options import LatentOptions
from tinybayes.model import Circuit, Dataset

if TYPE_CHECKING:
    from tinybayes.learn.training.engine import Progress

CHOOSING = 50  # rows that choose, at least, but no more than a third of all
FEW = 500  # rows up to which the choice is learned again from all of them
VALIDATION = 20  # held-out rows of a class that choose the epoch of its tree, at least


@dataclass(frozen=True)
class LatentClassifier:
    """What was learned.

    Parameters
    ----------
    circuit
        The joint density of features and class.
    class_trees
        Whether each class has a tree of its own.
    conditional
        Mean log-probability of the true class of the held-out rows, in nats: with one tree, and with one a class.
    complete
        False when an interrupt or a limit of time ended the training early.
    """

    circuit: Circuit
    class_trees: bool
    conditional: tuple[float, float]
    complete: bool


def learn_latent_classifier(
    data: Dataset, options: LatentOptions | None = None, *, report: "Callable[[Progress], None] | None" = None
) -> LatentClassifier:
    """Learn one latent tree with the class in it, or one for each class: whichever predicts held-out rows better.

    Parameters
    ----------
    data
        Rows with a class; missing values of features are summed out.
    options
        Of the trees. Trees of classes share `max_edges` equally.
    report
        Called after epochs of each training.
    """
    options = options or LatentOptions()
    if data.target is None or data.y is None or not (data.y >= 0).any():
        raise error("rows with a class", "none", where="data", remedy="name the target column")
    if options.levels is not None:
        remedy = "leave it out, and tie the circuit: tie(model.circuit_, 16)"
        raise error("no levels for a classifier", options.levels, where="levels", remedy=remedy)
    known = _known_rows(data)
    count = max(int(options.validation_fraction * len(known)), min(CHOOSING, len(known) // 3))
    order = np.random.default_rng(options.seed).permutation(len(known))
    chosen_on, rest = known.rows(order[:count]), known.rows(order[count:])
    learners = (_one_tree, _class_trees) if _has_all_classes(rest) else (_one_tree,)
    tried = [learn(rest, chosen_on, options, report) for learn in learners]
    scores = [_conditional(circuit, chosen_on) for circuit, _ in tried]
    best = int(np.argmax(scores))
    circuit, complete = tried[best]
    if len(known) <= FEW:
        circuit, complete = learners[best](known, None, options, report)
    return LatentClassifier(circuit, best == 1, (scores[0], scores[-1] if len(scores) > 1 else np.nan), complete)


def _known_rows(data: Dataset) -> Dataset:
    """Return the rows with a class and a weight, in an order that does not depend on how they are repeated."""
    assert data.y is not None
    joint = as_density(data.rows(data.y >= 0))
    if not len(joint):
        raise error("at least one row with a weight above zero", "none", where="data")
    rows = collapsed(joint)
    return Dataset(data.variables, data.target, rows.X[:, :-1], rows.X[:, -1], rows.weight)


def _one_tree(
    data: Dataset, held_out: Dataset | None, options: LatentOptions, report: "Callable[[Progress], None] | None"
) -> tuple[Circuit, bool]:
    learned = learn_latent_tree_with(data, replace(options, validation_fraction=0.0), held_out, report)
    return learned.circuit, learned.complete


def _class_trees(
    data: Dataset, held_out: Dataset | None, options: LatentOptions, report: "Callable[[Progress], None] | None"
) -> tuple[Circuit, bool]:
    assert data.target is not None
    classes = data.target.cardinality
    # The sum over the classes takes four edges for each: one to its product, and three of it.
    limit = None if options.max_edges is None else max(1, options.max_edges // classes - 4)
    own = replace(options, max_edges=limit, validation_fraction=0.0, seconds=options.seconds / classes)
    learned = []
    for c in range(classes):
        validation = None if held_out is None else _of_class(held_out, c)
        enough = validation is not None and len(validation) >= VALIDATION
        learned.append(learn_latent_tree_with(_of_class(data, c), own, validation if enough else None, report))
    weight = np.bincount(_labels(data), weights=data.weight, minlength=classes) + options.smoothing / classes
    circuit = class_mixture([one.circuit for one in learned], data.target, weight / weight.sum())
    return circuit, all(one.complete for one in learned)


def _conditional(circuit: Circuit, data: Dataset) -> float:
    """Return the weighted mean log-probability of the true class."""
    if not len(data):
        return 0.0
    joint = log_joint_with_class(circuit, data.X)
    own = joint[np.arange(len(data)), _labels(data)] - np.logaddexp.reduce(joint, axis=1)
    return float(np.average(own, weights=data.weight))


def _of_class(data: Dataset, c: int) -> Dataset:
    """Return the features of the rows of a class."""
    own = _labels(data) == c
    return Dataset(data.variables, None, data.X[own], weight=None if data.weight is None else data.weight[own])


def _has_all_classes(data: Dataset) -> bool:
    assert data.target is not None
    return len(np.unique(_labels(data))) == data.target.cardinality


def _labels(data: Dataset) -> np.ndarray:
    assert data.y is not None
    return data.y.astype(np.int64)
