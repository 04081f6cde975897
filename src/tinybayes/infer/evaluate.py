"""How well a classifier does on labelled data."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinybayes.errors import error
from tinybayes.infer.scores import class_scores, normalize_scores
from tinybayes.model import Classifier, Dataset, Variable

BLOCK = 2**16  # rows whose scores are held at a time, fewer of many classes
MOST_SCORES = 2**23
MOST_CLASSES = 2**13  # of a confusion matrix: 512 MiB
_BINS = 10  # of confidence


@dataclass(frozen=True)
class Evaluation:
    """The result of `evaluate`.

    Parameters
    ----------
    rows
        Rows with a known class.
    error
        Weighted share of wrong labels.
    log_loss
        Mean of ``-log p(class | x)`` in nats.
    log_likelihood
        Mean of ``log p(x, class)`` in nats; of a quantised model, the unnormalised score, as of a neural net.
    confusion
        Weighted counts, true class by predicted class.
    unknown
        Share of cells that were missing, or held a state the model does not know.
    skipped
        Rows left out of all this: their class is missing, or none of the model's.
    """

    rows: int
    error: float
    log_loss: float
    log_likelihood: float
    confusion: np.ndarray
    unknown: float
    skipped: int


def evaluate(net: Classifier, data: Dataset | Iterable[Dataset]) -> Evaluation:
    """Compare the predictions of a classifier with the classes of a data set, or of batches of one."""
    if net.target is None:
        raise error("a network with a class variable", "none", where="evaluate", remedy="name a target")
    confusion, block = _confusion(net.target), _block(net.target)
    rows = cells = unknown = skipped = 0
    loss = likelihood = 0.0
    for batch in [data] if isinstance(data, Dataset) else data:
        if batch.variables != net.variables or (batch.target or net.target) != net.target:
            raise error(
                "the variables of the network, with the same states and cut points",
                "others",
                where="evaluate",
                remedy="read the table with them: read_dataset(TABLE, like=net)",
            )
        if batch.y is None:
            raise error(f"a column {net.target.name!r} with the classes", "a table without it", where="evaluate")
        for start in range(0, len(batch), block):  # everything that is made here is small beside the table
            part = batch.rows(slice(start, start + block))
            assert part.y is not None
            known = part if part.y.min() >= 0 else part.rows(part.y >= 0)
            X, y = known.X, known.y
            skipped += len(part) - len(known)
            if y is None or not len(y):
                continue
            weight = np.ones(len(y)) if known.weight is None else known.weight
            scores = class_scores(net, X)
            np.add.at(confusion, (y, scores.argmax(axis=1)), weight)
            of_class = (np.arange(len(scores)), y)
            loss -= float(weight @ normalize_scores(scores)[of_class])
            likelihood += float(weight @ scores[of_class])
            rows, cells, unknown = rows + len(known), cells + X.size, unknown + int((X < 0).sum())
    total = confusion.sum()
    if total == 0:
        raise error("rows with a known class", "none", where=f"column {net.target.name!r}")
    wrong = float(1 - np.trace(confusion) / total)
    return Evaluation(rows, wrong, loss / total, likelihood / total, confusion, unknown / max(cells, 1), skipped)


def _confusion(target: Variable) -> np.ndarray:
    """Return an empty confusion matrix."""
    if target.cardinality > MOST_CLASSES:
        where, remedy = f"class {target.name!r}", "is it a number, or an identifier of rows?"
        raise error(f"at most {MOST_CLASSES:,} classes", f"{target.cardinality:,}", where=where, remedy=remedy)
    return np.zeros((target.cardinality, target.cardinality))


def _block(target: Variable) -> int:
    """Return how many rows have their scores in memory at a time."""
    return max(1, min(BLOCK, MOST_SCORES // target.cardinality))


def page_figures(model: Classifier, dataset: Dataset) -> dict[str, Any]:
    """Compare a classifier with the classes of a data set, for the report page.

    Rows without a class are left out. ``confusion`` holds weighted counts, true class by predicted class;
    ``reliability`` has ``[mean confidence, share of correct labels, weight]`` for each bin of confidence with rows.
    """
    if model.target is None:
        raise error("a model with a class variable", "none", where="page_figures")
    if dataset.y is None or not (dataset.y >= 0).any():
        raise error("rows with a known class", "none", where="page_figures")
    known = dataset.rows(dataset.y >= 0)
    assert known.y is not None
    weight = np.ones(len(known)) if known.weight is None else known.weight
    confusion, block = _confusion(model.target), _block(model.target)
    bins = np.zeros((_BINS, 3))  # sums of weight * confidence, weight * correct, weight
    for start in range(0, len(known), block):
        rows = slice(start, start + block)
        posterior = np.exp(normalize_scores(class_scores(model, known.X[rows])))
        label = posterior.argmax(axis=1)
        confidence, right = posterior.max(axis=1), label == known.y[rows]
        np.add.at(confusion, (known.y[rows], label), weight[rows])
        which_bin = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
        np.add.at(bins, which_bin, weight[rows, None] * np.column_stack([confidence, right, np.ones(len(label))]))
    used = bins[bins[:, 2] > 0]
    reliability = np.column_stack([used[:, :2] / used[:, 2:], used[:, 2]])
    return {"confusion": confusion.tolist(), "reliability": reliability.tolist()}
