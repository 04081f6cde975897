"""Class scores and labels of classifiers, block by block on all cores.

Rows are scored in blocks, so that nothing copies the table. Missing values are summed out by one upward pass over the
forest of features for each class: exactly for floats, in the integers of exported programs for quantised networks. A
structure with several feature parents refuses rows with missing values; compiled to a circuit, any structure answers
them.
"""

from collections.abc import Iterator

import numpy as np

from tinybayes._kernels.scores import forest_scores
from tinybayes._kernels.threads import for_blocks
from tinybayes.errors import error
from tinybayes.infer.integers import integer_forest
from tinybayes.infer.neural_net import net_scores
from tinybayes.infer.scorer import BLOCK, Scorer, has_gaps, scorer
from tinybayes.infer.trees import tree_scores
from tinybayes.model import BayesNet, Circuit, Classifier, NeuralNet, TreeEnsemble


def class_scores(net: Classifier, X: np.ndarray) -> np.ndarray:
    """Return ``log p(x, c)`` for each row and class; for nets and trees ``log p(c | x)`` up to a constant per row.

    Missing values (-1) are summed out, which gives the class posterior and not the most probable completion. Networks
    quantised to one `Fixed` format are added up in integers, so that the scores of complete rows are exact.

    Networks in one `Fixed` format or one `Codebook` sum out missing values in integers, as an exported program does
    (`tinybayes.infer.integers.GapArithmetic`). Each addition of two probabilities has an error below 0.0035 nats where
    scores have 10 fractional bits or more, as in all but huge networks, and a missing feature of k states takes k - 1
    additions. All other networks, and circuits, sum out missing values exactly.

    Parameters
    ----------
    net
        A network or a circuit with a class, a neural net, or decision trees.
    X
        Codes, shape (rows, features).

    Returns
    -------
    ndarray of float64, shape (rows, classes)
    """
    if isinstance(net, Circuit):
        return _circuit_scores(net, X)
    if isinstance(net, NeuralNet):
        return net_scores(net, X) * net.scale
    if isinstance(net, TreeEnsemble):
        return tree_scores(net, X) * net.scale
    score = scorer(net)
    X = score.check(X)
    out = np.empty((len(X), score.classes))
    for_blocks(lambda start, stop: _scores_into(score, X[start:stop], out[start:stop]), len(X), BLOCK)
    return out


def predict_codes(net: Classifier, X: np.ndarray) -> np.ndarray:
    """Return the code of the most probable class of each row, the first one in case of a tie.

    The label is the arg max of `class_scores`, so that rows with missing values get the label of an exported program.
    Only the labels are kept: memory does not grow with the number of classes.
    """
    labels = np.empty(len(X), dtype=np.int32)
    if isinstance(net, TreeEnsemble):
        return np.asarray(tree_scores(net, X).argmax(axis=1), dtype=np.int32)
    if isinstance(net, NeuralNet | Circuit):
        for start in range(0, max(len(X), 1), BLOCK):  # once also without rows, for the checks
            rows = X[start : start + BLOCK]
            scores = net_scores(net, rows) if isinstance(net, NeuralNet) else _circuit_scores(net, rows)
            labels[start : start + BLOCK] = scores.argmax(axis=1)
        return labels
    score = scorer(net)
    X = score.check(X)
    for_blocks(lambda start, stop: _labels_into(score, X[start:stop], labels[start:stop]), len(X), BLOCK)
    return labels


def _labels_into(score: Scorer, X: np.ndarray, out: np.ndarray) -> None:
    """Write the most probable class of each row of a block."""
    if not has_gaps(X):
        score.labels(X, out)
        return
    scores = np.empty((len(X), score.classes))
    _scores_into(score, X, scores)
    out[:] = scores.argmax(axis=1)


def _scores_into(score: Scorer, X: np.ndarray, out: np.ndarray) -> None:
    """Write the scores of a block in nats."""
    if not has_gaps(X):
        score.into(X, out)
        return
    gaps = (X < 0).any(axis=1)
    complete = np.empty((int((~gaps).sum()), score.classes))
    score.into(X[~gaps], complete)
    out[~gaps], out[gaps] = complete, _summed_out(score, X[gaps])


def _summed_out(score: Scorer, X: np.ndarray) -> np.ndarray:
    """Return the scores of rows with missing values in nats."""
    forest = integer_forest(score.net)
    if forest is not None:
        return forest.nats(forest.sums(X))
    out = np.empty((len(X), score.classes))
    forest_scores(X, score.forest, out)
    return out


def _circuit_scores(circuit: Circuit, X: np.ndarray) -> np.ndarray:
    """Ask for all classes at once, a block of rows at a time."""
    from tinybayes.infer.circuit import log_joint_with_class  # a first prediction of a network does not wait for it

    if circuit.target is None:
        raise error("a circuit with a class variable", "none", where="class scores", remedy="learn it with a target")
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != len(circuit.variables):
        raise error(f"integer codes with {len(circuit.variables)} columns", f"shape {X.shape}", where="X")
    scores = np.empty((len(X), circuit.target.cardinality))
    for start in range(0, len(X), BLOCK):
        scores[start : start + BLOCK] = log_joint_with_class(circuit, X[start : start + BLOCK])
    return scores


def normalize_scores(scores: np.ndarray) -> np.ndarray:
    """Turn log-joint scores into log-posteriors; a row that is impossible under every class becomes uniform."""
    top = scores.max(axis=1, keepdims=True)
    shifted = np.where(top == -np.inf, 0.0, scores - np.where(top == -np.inf, 0.0, top))
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def score_blocks(net: BayesNet, X: np.ndarray, rows: int = 2**16) -> Iterator[tuple[int, np.ndarray]]:
    """Yield ``(first row, scores)`` for consecutive blocks, for data whose scores do not fit in memory."""
    for start in range(0, len(X), rows):
        yield start, class_scores(net, X[start : start + rows])


def integer_scores(net: BayesNet, X: np.ndarray) -> np.ndarray:
    """Return the sums of the integer codes of a network in one `Fixed` format; the smallest sum wins.

    The score in nats is ``-sum / 2**fraction``. Rows must be complete.
    """
    score = scorer(net)
    if score.fixed is None:
        raise error("one Fixed format in all tables", "other formats", where="integer scores")
    return score.integers(X, score.layout)
