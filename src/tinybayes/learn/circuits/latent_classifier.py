"""Classifiers by latent trees: the class as a variable of the tree, or a tree for each class.

Neither is better everywhere. Trees of their own follow what differs between classes, and need enough rows of each; in
one tree the class reaches the features through hidden variables, which share what the classes have in common. So both
are learned by EM and trained further to predict the class (`latent_conditional.py`), and held-out rows choose.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from threading import Event
from typing import TYPE_CHECKING

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
from tinybayes.learn.interrupts import interruptible
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.model import Circuit, Dataset

if TYPE_CHECKING:
    from tinybayes.learn.circuits.latent_conditional import Improved
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
        and with one a class. NaN where it was not learned, since a class has no rows or an interrupt came before, or
        where no rows were held out.
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


@dataclass(frozen=True)
class _Plan:
    """How to learn once: the options, with the time for this once, and the epochs of the training for the class."""

    options: LatentOptions
    epochs: int
    report: "Callable[[Progress], None] | None"
    interrupted: Event


# Returns None after an interrupt before there was a classifier. Held-out rows, if given, choose the number of epochs.
_Learn = Callable[[Dataset, Dataset | None, _Plan], _Learned | None]


def learn_latent_classifier(
    data: Dataset, options: LatentOptions | None = None, *, report: "Callable[[Progress], None] | None" = None
) -> LatentClassifier:
    """Learn one latent tree with the class in it, or one for each class: whichever predicts held-out rows better.

    Parameters
    ----------
    data
        Rows with a class; missing values of features are summed out.
    options
        Of the trees. Trees of classes share `max_edges` equally, and all that is tried shares `seconds`.
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
    epochs = _epochs(len(rest), options) if options.discriminative and count else 0
    again = len(known) <= FEW
    own = replace(options, seconds=options.seconds / (len(learners) + again))
    with interruptible() as interrupted:
        plan = _Plan(own, epochs, report, interrupted)
        tried = [one for learn in learners if (one := learn(rest, chosen_on if count else None, plan)) is not None]
        scores = [_quality(one.circuit, chosen_on) for one in tried]
        best = min(range(len(tried)), key=lambda i: (scores[i][0], -scores[i][1]))
        chosen = tried[best]
        if again and not interrupted.is_set():
            chosen = learners[best](known, None, replace(plan, epochs=chosen.epochs)) or chosen
        complete = chosen.complete and not interrupted.is_set()
    errors, conditional = ((part[0], part[-1] if len(part) > 1 else np.nan) for part in zip(*scores, strict=True))
    return LatentClassifier(chosen.circuit, best == 1, errors, conditional, chosen.epochs, complete)


def _known_rows(data: Dataset) -> Dataset:
    """Return the rows with a class and a weight, in an order that does not depend on how they are repeated."""
    assert data.y is not None
    joint = as_density(data.rows(data.y >= 0))
    if not len(joint):
        raise error("at least one row with a weight above zero", "none", where="data")
    rows = collapsed(joint)
    return Dataset(data.variables, data.target, rows.X[:, :-1], rows.X[:, -1], rows.weight)


def _one_tree(data: Dataset, held_out: Dataset | None, plan: _Plan) -> _Learned | None:
    deadline = time.time() + plan.options.seconds
    rounds, trained = learn_tables(data, _of_em(plan), held_out, plan.report)
    tree, tables, epochs, complete = rounds.tree, trained.tables, 0, trained.complete
    if plan.epochs and not plan.interrupted.is_set():
        further = _trained_further(data, held_out, tree, tables, plan, deadline)
        tables, epochs, complete = further.tables, further.epochs, complete and further.complete
    circuit = latent_circuit(data.variables, data.target, tree, tables.transition, tables.emission)
    return _Learned(circuit, epochs, complete)


def _class_trees(data: Dataset, held_out: Dataset | None, plan: _Plan) -> _Learned | None:
    assert data.target is not None
    classes, options, deadline = data.target.cardinality, _of_em(plan), time.time() + plan.options.seconds
    # The sum over the classes takes four edges for each: one to its product, and three of it.
    limit = None if options.max_edges is None else max(1, options.max_edges // classes - 4)
    own = replace(options, max_edges=limit, seconds=options.seconds / classes)
    trees, tables, complete = [], [], True
    for c in range(classes):
        if plan.interrupted.is_set():
            return None
        validation = None if held_out is None else _of_class(held_out, c)
        enough = validation is not None and len(validation) >= VALIDATION
        rounds, trained = learn_tables(_of_class(data, c), own, validation if enough else None, plan.report)
        trees.append((rounds.tree, rounds.structure.variables))
        tables.append(trained.tables)
        complete &= trained.complete
    weight = np.bincount(_labels(data), weights=data.weight, minlength=classes) + options.smoothing / classes
    shares = weight / weight.sum()
    alone, epochs = [tree for tree, _ in trees], 0
    if plan.epochs and not plan.interrupted.is_set():
        whole, _ = side_by_side(trees)
        class_of_root = tuple(c for c, _ in node_order(alone)[: whole.roots])
        joined = join(alone, tables, shares)
        further = _trained_further(data, held_out, whole, joined, plan, deadline, class_of_root)
        epochs, complete = further.epochs, complete and further.complete
        tables, shares = separate(alone, further.tables)
    circuits = [
        latent_circuit(data.variables, None, tree, part.transition, part.emission)
        for tree, part in zip(alone, tables, strict=True)
    ]
    return _Learned(class_mixture(circuits, data.target, shares), epochs, complete)


def _of_em(plan: _Plan) -> LatentOptions:
    """Return the options of EM, which leaves half of the time to the training for the class."""
    seconds = plan.options.seconds / 2 if plan.epochs else plan.options.seconds
    return replace(plan.options, validation_fraction=0.0, seconds=seconds)


def _trained_further(
    data: Dataset,
    held_out: Dataset | None,
    tree: Tree,
    tables: Tables,
    plan: _Plan,
    deadline: float,
    class_of_root: tuple[int, ...] = (),
) -> "Improved":
    """Return tables trained to predict the class."""
    from tinybayes.learn.circuits.latent_conditional import train_conditional

    options = plan.options
    training = TrainingOptions(
        epochs=plan.epochs,
        batch_size=options.batch_size,
        keep_best=held_out is not None,
        shuffle_seed=options.seed,
        device=options.device,
        deterministic=options.deterministic,
        deadline=deadline,
    )
    return train_conditional(data, tree, tables, training, class_of_root=class_of_root, validation=held_out)


def _quality(circuit: Circuit, data: Dataset) -> tuple[float, float]:
    """Return the weighted share of wrong labels, and the weighted mean log-probability of the true class."""
    if not len(data):
        return np.nan, np.nan
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
