"""Figures of a classifier on rows that it has not seen, in plain lists for the report page."""

from typing import Any

import numpy as np

from tinybayes.errors import error
from tinybayes.infer.scores import Classifier, class_scores, normalize_scores
from tinybayes.model import Dataset

BINS = 10  # of confidence
BLOCK = 2**14  # rows that are scored at once


def page_figures(model: Classifier, dataset: Dataset) -> dict[str, Any]:
    """Compare a classifier with the classes of a data set, for the report page.

    Parameters
    ----------
    model
        A classifier.
    dataset
        Rows over the variables of the model, with their classes; rows whose class is missing are left out.

    Returns
    -------
    dict
        ``confusion``: weighted counts, true class by predicted class. ``reliability``: for each of 10 equal bins of
        confidence that any row fell into ``[mean confidence, share of right labels, weight]``.
    """
    if model.target is None:
        raise error("a model with a class variable", "none", where="page_figures")
    if dataset.y is None or not (dataset.y >= 0).any():
        raise error("rows with a known class", "none", where="page_figures")
    known = dataset.rows(dataset.y >= 0)
    assert known.y is not None
    weight = np.ones(len(known)) if known.weight is None else known.weight
    classes = model.target.cardinality
    confusion = np.zeros((classes, classes))
    bins = np.zeros((BINS, 3))  # of each the weight times confidence, times being right, and the weight
    for start in range(0, len(known), BLOCK):
        rows = slice(start, start + BLOCK)
        posterior = np.exp(normalize_scores(class_scores(model, known.X[rows])))
        label = posterior.argmax(axis=1)
        confidence, right = posterior.max(axis=1), label == known.y[rows]
        np.add.at(confusion, (known.y[rows], label), weight[rows])
        place = np.minimum((confidence * BINS).astype(int), BINS - 1)
        np.add.at(bins, place, weight[rows, None] * np.column_stack([confidence, right, np.ones(len(label))]))
    used = bins[bins[:, 2] > 0]
    reliability = np.column_stack([used[:, :2] / used[:, 2:], used[:, 2]])
    return {"confusion": confusion.tolist(), "reliability": reliability.tolist()}
