"""Figures of a classifier on rows that it has not seen, in plain lists for the report page."""

from typing import Any

import numpy as np

from tinybayes.errors import error
from tinybayes.infer.explain import brief, explain
from tinybayes.infer.scores import Classifier, class_scores, normalize_scores
from tinybayes.model import BayesNet, Dataset

BINS = 10  # of confidence
BLOCK = 2**14  # rows that are scored at once
STRONGEST = 12  # contributions to a label that are shown
EXAMPLES = 3  # rows whose labels are explained


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
        which_bin = np.minimum((confidence * BINS).astype(int), BINS - 1)
        np.add.at(bins, which_bin, weight[rows, None] * np.column_stack([confidence, right, np.ones(len(label))]))
    used = bins[bins[:, 2] > 0]
    reliability = np.column_stack([used[:, :2] / used[:, 2:], used[:, 2]])
    return {"confusion": confusion.tolist(), "reliability": reliability.tolist()}


def explained_rows(model: Classifier, dataset: Dataset) -> list[dict[str, Any]]:
    """Explain the labels of up to three rows, for the report page: a right one, a wrong one and the least sure one.

    Parameters
    ----------
    model
        A classifier; only Bayesian networks explain themselves, for others the list is empty.
    dataset
        Rows over the variables of the model, with their classes. Only the first ones are looked at.

    Returns
    -------
    list
        Of each row ``row``, its number, ``truth``, its class, and what `tinybayes.infer.explain.brief` says.
    """
    target = model.target
    if not isinstance(model, BayesNet) or target is None or target.cardinality < 2 or dataset.y is None:
        return []
    labelled = np.flatnonzero(dataset.y >= 0)[:BLOCK]
    scores = class_scores(model, dataset.X[labelled])
    possible = np.isfinite(scores).any(axis=1)
    labelled, scores = labelled[possible], scores[possible]
    right = scores.argmax(axis=1) == dataset.y[labelled]
    second, first = np.sort(scores, axis=1)[:, -2:].T
    order = [*np.flatnonzero(right)[:1], *np.flatnonzero(~right)[:1], *np.argsort(first - second, kind="stable")[:3]]
    rows = [int(labelled[i]) for i in dict.fromkeys(order)][:EXAMPLES]
    return [
        {"row": row, "truth": str(target.states[dataset.y[row]]), **brief(explain(model, dataset.X[row]), STRONGEST)}
        for row in rows
    ]
