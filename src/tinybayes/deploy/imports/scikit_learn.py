"""Fitted trees, forests and boosted trees of scikit-learn."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinybayes.deploy.imports.ensemble import BITS, Features, make_ensemble
from tinybayes.deploy.imports.foreign import ForeignTree, bits_set, cut_above
from tinybayes.errors import error
from tinybayes.model import State, TreeEnsemble, Variable

TREES = ("DecisionTreeClassifier", "ExtraTreeClassifier")
FORESTS = ("RandomForestClassifier", "ExtraTreesClassifier")
LEAST_SHARE = 1e-4  # of a class in a leaf of a decision tree, whose logarithm is taken


def from_sklearn(
    model: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[State] | None = None,
    *,
    bits: int = BITS,
    votes: bool = False,
) -> TreeEnsemble:
    """Turn a fitted tree model of scikit-learn into a `TreeEnsemble`, to be priced, exported and explained.

    A threshold becomes a cut point in float32: rows of float32 go the same way as in scikit-learn, and rows of doubles
    do after rounding. Labels are equal but for ties within the rounding of values; those of a single tree are equal.
    Probabilities are those of scikit-learn, too, but for forests: their class scores are mean shares of the classes,
    times the number of classes.

    Parameters
    ----------
    model
        A `DecisionTreeClassifier`, `ExtraTreeClassifier`, `RandomForestClassifier`, `ExtraTreesClassifier`,
        `HistGradientBoostingClassifier` or `GradientBoostingClassifier` (with the prior or zero as its `init`).
    feature_names
        By default those of the model, or x0, x1 and so on.
    class_names
        By default the classes of the model.
    bits
        Of the largest value of a leaf, with its sign.
    votes
        Of a forest: each tree votes for the most frequent class of its leaf, as in other generators of code, instead of
        adding shares. A program takes half of the flash or less, but some labels are not those of scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = RandomForestClassifier(10, random_state=0).fit(*load_iris(return_X_y=True))
    >>> from_sklearn(forest).trees.count
    10
    """
    kind = type(model).__name__
    readers = dict.fromkeys(TREES, _tree) | dict.fromkeys(FORESTS, _forest)
    readers |= {"HistGradientBoostingClassifier": _histogram_boosting, "GradientBoostingClassifier": _boosting}
    if kind not in readers or not type(model).__module__.startswith("sklearn."):
        raise error(f"one of {', '.join(readers)}", kind, where="model")
    if not hasattr(model, "classes_"):
        raise error("a fitted model", "one that is not fitted", where="model", remedy="call fit before")
    if isinstance(model.classes_, list):
        raise error("one class for each row", f"{len(model.classes_)}", where="model")
    states = np.asarray(model.classes_).tolist() if class_names is None else list(class_names)
    if len(states) != len(model.classes_) or len(states) < 2:
        raise error(f"2 classes or more, and {len(model.classes_)} names", len(states), where="class_names")
    if votes and kind not in FORESTS:
        raise error("a forest", kind, where="votes", remedy="leave votes out")
    trees, start, factor = _forest(model, votes=True) if votes else readers[kind](model)
    return make_ensemble(
        trees, _features(model, feature_names), Variable("class", tuple(states)), start, factor=factor, bits=bits
    )


def as_model(model: Any) -> Any:
    """Return a fitted model of scikit-learn as trees, and what an estimator of ours has learned: a circuit, a model.

    Every other object is returned as it is.
    """
    if type(model).__module__.startswith("sklearn."):
        return from_sklearn(model)
    for learned in ("circuit_", "model_"):
        if hasattr(model, learned):
            return getattr(model, learned)
    if type(model).__module__.startswith("tinybayes.estimators"):
        raise error("a fitted model", "one that is not fitted", where=type(model).__name__, remedy="call fit before")
    return model


def _features(model: Any, names: Sequence[str] | None) -> Features:
    """Return the names of the features, in the order of the columns, with the categories of those that have some."""
    count = int(model.n_features_in_)
    known = getattr(model, "feature_names_in_", [f"x{i}" for i in range(count)])
    names = [str(name) for name in (known if names is None else names)]
    if len(names) != count:
        raise error(f"{count} names", len(names), where="feature_names")
    states: list[list[State] | None] = [None] * count
    encoder = _encoder(model)
    if encoder is not None:
        for f, categories in zip(np.flatnonzero(model.is_categorical_).tolist(), encoder.categories_, strict=True):
            states[f] = [state for state in categories.tolist() if state is not None and state == state]
    return list(zip(names, states, strict=True))


def _encoder(model: Any) -> Any:
    """Return what turns the categories of a histogram boosting into codes."""
    preprocessor = getattr(model, "_preprocessor", None)
    return None if preprocessor is None else preprocessor.named_transformers_["encoder"]


def _foreign(tree: Any, value: np.ndarray, output: int = -1) -> ForeignTree:
    leaf = tree.children_left < 0
    missing = getattr(tree, "missing_go_to_left", np.zeros(len(leaf)))
    return ForeignTree(
        feature=np.where(leaf, -1, tree.feature),
        cut=cut_above(tree.threshold),
        left=tree.children_left,
        right=tree.children_right,
        missing=np.asarray(missing).astype(np.bool_),
        value=value,
        output=output,
    )


def _shares(tree: Any) -> np.ndarray:
    value = tree.value[:, 0, :]
    return np.asarray(value / value.sum(axis=1, keepdims=True))


def _tree(model: Any) -> tuple[list[ForeignTree], np.ndarray, float]:
    value = np.log(np.maximum(_shares(model.tree_), LEAST_SHARE))
    return [_foreign(model.tree_, value)], np.zeros(len(model.classes_)), 1.0


def _forest(model: Any, *, votes: bool = False) -> tuple[list[ForeignTree], np.ndarray, float]:
    """Add up shares; near equal shares, the logarithms of their mean change by the number of classes times theirs."""
    classes = len(model.classes_)
    shares = [_shares(one.tree_) for one in model.estimators_]
    if votes:
        shares = [np.eye(classes)[share.argmax(axis=1)] for share in shares]
    trees = [_foreign(one.tree_, share) for one, share in zip(model.estimators_, shares, strict=True)]
    return trees, np.zeros(classes), classes / len(trees)


def _boosting(model: Any) -> tuple[list[ForeignTree], np.ndarray, float]:
    classes, scores = len(model.classes_), model.estimators_.shape[1]
    trees = [
        _foreign(one.tree_, model.learning_rate * one.tree_.value[:, 0, :], _output(k, scores))
        for round_ in model.estimators_
        for k, one in enumerate(round_)
    ]
    exponential = model.loss == "exponential"
    start = np.zeros(classes)
    if not (isinstance(model.init_, str) and model.init_ == "zero"):
        prior = getattr(model.init_, "class_prior_", None)
        if type(model.init_).__name__ != "DummyClassifier" or model.init_.strategy != "prior" or prior is None:
            remedy = "fit with init=None or init='zero'"
            raise error("the prior or zero as init", repr(model.init_), where="model", remedy=remedy)
        smallest = float(np.finfo(np.float32).eps)
        start = np.log(np.clip(prior, smallest, 1 - smallest)) / (2.0 if exponential else 1.0)
    return trees, start - start[0] if scores == 1 else start, 2.0 if exponential else 1.0


def _histogram_boosting(model: Any) -> tuple[list[ForeignTree], np.ndarray, float]:
    columns = np.arange(model.n_features_in_)
    if _encoder(model) is not None:  # categories come first in the trees
        columns = np.concatenate([np.flatnonzero(model.is_categorical_), np.flatnonzero(~model.is_categorical_)])
    scores = len(model._predictors[0]) if model._predictors else 1
    trees = [
        _predictor(one, columns, _output(k, scores)) for round_ in model._predictors for k, one in enumerate(round_)
    ]
    baseline = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1)
    return trees, np.append(0.0, baseline) if scores == 1 else baseline, 1.0


def _predictor(predictor: Any, columns: np.ndarray, output: int) -> ForeignTree:
    nodes = predictor.nodes
    leaf, asked = nodes["is_leaf"].astype(np.bool_), np.flatnonzero(nodes["is_categorical"] & ~nodes["is_leaf"])
    sets = predictor.raw_left_cat_bitsets
    return ForeignTree(
        feature=np.where(leaf, -1, columns[nodes["feature_idx"]]),
        cut=cut_above(nodes["num_threshold"]),
        left=nodes["left"].astype(np.int64),
        right=nodes["right"].astype(np.int64),
        missing=nodes["missing_go_to_left"].astype(np.bool_),
        value=nodes["value"][:, None],
        output=output,
        sets={int(node): bits_set(sets[nodes["bitset_idx"][node]]) for node in asked},
    )


def _output(k: int, scores: int) -> int:
    """Return the class of a tree; the one score of two classes is that of the second."""
    return 1 if scores == 1 else k
