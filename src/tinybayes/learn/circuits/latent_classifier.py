"""Classifiers by latent trees: the class as a variable of the tree, or a tree for each class.

Neither is better everywhere. Trees of their own follow what differs between classes, and need enough rows of each; in
one tree the class reaches the features through hidden variables, which share what the classes have in common. So both
are learned by EM and trained further to predict the class (`latent_conditional.py`), and held-out rows choose.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tinybayes.errors import error
from tinybayes.infer.circuit import log_joint_with_class
from tinybayes.learn.circuits.latent_circuit import class_mixture, latent_circuit
from tinybayes.learn.circuits.latent_mixture import join, separate
from tinybayes.learn.circuits.latent_rows import as_density, collapsed
from tinybayes.learn.circuits.latent_start import Tables
from tinybayes.learn.circuits.latent_structure import Tree, node_order, side_by_side
from tinybayes.learn.circuits.latent_tree import learn_tables
from tinybayes.learn.circuits.options import LatentOptions
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.model import Circuit, Dataset

if TYPE_CHECKING:
    from tinybayes.learn.training.engine import Progress

CHOOSING = 50  # rows that choose, at least, but no more than a third of all
FEW = 500  # rows up to which the choice is learned again from all of them
VALIDATION = 20  # held-out rows of a class that choose the epoch of its tree, at least
STEPS, MOST = 6_000, 40  # mini-batches of the training for the class, and epochs at most


@dataclass(frozen=True)
class LatentClassifier:
    """What was learned.

    Parameters
    ----------
    circuit
        The joint density of features and class.
    class_trees
        Whether each class has a tree of its own.
    errors, conditional
        Share of wrong labels and mean log-probability of the true class, in nats, of the held-out rows: with one tree,
        and with one a class (NaN where a class has no rows).
    epochs
        Epochs of the training for the class.
    complete
        False when an interrupt or a limit of time ended the training early.
    """

    circuit: Circuit
    class_trees: bool
    errors: tuple[float, float]
    conditional: tuple[float, float]
    epochs: int
    complete: bool


@dataclass(frozen=True)
class _Learned:
    """A circuit, the epochs of its training for the class, and whether nothing ended it early."""

    circuit: Circuit
    epochs: int
    complete: bool


class _Learn(Protocol):
    """Learns from rows, with some epochs of training for the class: the best number of held-out rows, if there are."""

    def __call__(
        self,
        data: Dataset,
        held_out: Dataset | None,
        options: LatentOptions,
        epochs: int,
        report: "Callable[[Progress], None] | None",
    ) -> _Learned: ...


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
        Called after epochs of EM.
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
    learners: tuple[_Learn, ...] = (_one_tree, _class_trees) if _has_all_classes(rest) else (_one_tree,)
    epochs = _epochs(len(rest), options) if options.discriminative else 0
    tried = [learn(rest, chosen_on, options, epochs, report) for learn in learners]
    scores = [_quality(one.circuit, chosen_on) for one in tried]
    best = min(range(len(tried)), key=lambda i: (scores[i][0], -scores[i][1]))
    chosen = tried[best]
    if len(known) <= FEW:
        chosen = learners[best](known, None, options, chosen.epochs, report)
    errors, conditional = ((part[0], part[-1] if len(part) > 1 else np.nan) for part in zip(*scores, strict=True))
    return LatentClassifier(chosen.circuit, best == 1, errors, conditional, chosen.epochs, chosen.complete)


def _known_rows(data: Dataset) -> Dataset:
    """Return the rows with a class and a weight, in an order that does not depend on how they are repeated."""
    assert data.y is not None
    joint = as_density(data.rows(data.y >= 0))
    if not len(joint):
        raise error("at least one row with a weight above zero", "none", where="data")
    rows = collapsed(joint)
    return Dataset(data.variables, data.target, rows.X[:, :-1], rows.X[:, -1], rows.weight)


def _one_tree(
    data: Dataset,
    held_out: Dataset | None,
    options: LatentOptions,
    epochs: int,
    report: "Callable[[Progress], None] | None",
) -> _Learned:
    rounds, trained = learn_tables(data, replace(options, validation_fraction=0.0), held_out, report)
    tree, tables = rounds.tree, trained.tables
    if epochs:
        tables, epochs = _trained_further(data, held_out, tree, tables, options, epochs)
    circuit = latent_circuit(data.variables, data.target, tree, tables.transition, tables.emission)
    return _Learned(circuit, epochs, trained.complete)


def _class_trees(
    data: Dataset,
    held_out: Dataset | None,
    options: LatentOptions,
    epochs: int,
    report: "Callable[[Progress], None] | None",
) -> _Learned:
    assert data.target is not None
    classes = data.target.cardinality
    # The sum over the classes takes four edges for each: one to its product, and three of it.
    limit = None if options.max_edges is None else max(1, options.max_edges // classes - 4)
    own = replace(options, max_edges=limit, validation_fraction=0.0, seconds=options.seconds / classes)
    trees, tables, complete = [], [], True
    for c in range(classes):
        validation = None if held_out is None else _of_class(held_out, c)
        enough = validation is not None and len(validation) >= VALIDATION
        rounds, trained = learn_tables(_of_class(data, c), own, validation if enough else None, report)
        trees.append((rounds.tree, rounds.structure.variables))
        tables.append(trained.tables)
        complete &= trained.complete
    weight = np.bincount(_labels(data), weights=data.weight, minlength=classes) + options.smoothing / classes
    shares = weight / weight.sum()
    alone = [tree for tree, _ in trees]
    if epochs:
        whole, _ = side_by_side(trees)
        class_of_root = tuple(c for c, _ in node_order(alone)[: whole.roots])
        joined = join(alone, tables, shares)
        joined, epochs = _trained_further(data, held_out, whole, joined, options, epochs, class_of_root)
        tables, shares = separate(alone, joined)
    circuits = [
        latent_circuit(data.variables, None, tree, part.transition, part.emission)
        for tree, part in zip(alone, tables, strict=True)
    ]
    return _Learned(class_mixture(circuits, data.target, shares), epochs, complete)


def _trained_further(
    data: Dataset,
    held_out: Dataset | None,
    tree: Tree,
    tables: Tables,
    options: LatentOptions,
    epochs: int,
    class_of_root: tuple[int, ...] = (),
) -> tuple[Tables, int]:
    """Return tables trained to predict the class, and the epochs that it took."""
    from tinybayes.learn.circuits.latent_conditional import train_conditional

    training = TrainingOptions(
        epochs=epochs,
        batch_size=options.batch_size,
        keep_best=held_out is not None,
        shuffle_seed=options.seed,
        device=options.device,
        deterministic=options.deterministic,
        deadline=time.time() + options.seconds,
    )
    improved = train_conditional(data, tree, tables, training, class_of_root=class_of_root, validation=held_out)
    return improved.tables, improved.epochs


def _quality(circuit: Circuit, data: Dataset) -> tuple[float, float]:
    """Return the weighted share of wrong labels, and the weighted mean log-probability of the true class."""
    if not len(data):
        return 0.0, 0.0
    joint = log_joint_with_class(circuit, data.X)
    own = joint[np.arange(len(data)), _labels(data)] - np.logaddexp.reduce(joint, axis=1)
    wrong = joint.argmax(axis=1) != _labels(data)
    return float(np.average(wrong, weights=data.weight)), float(np.average(own, weights=data.weight))


def _epochs(rows: int, options: LatentOptions) -> int:
    """Return as many epochs as make `STEPS` mini-batches, at most `MOST`."""
    return min(MOST, ceil(STEPS / max(1, rows // options.batch_size)))


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
