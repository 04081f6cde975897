"""Why a network, or trees, prefer one class to another: an exact sum of one term for each feature."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tinybayes.errors import error
from tinybayes.infer.scores import class_scores
from tinybayes.infer.tree_shares import tree_odds
from tinybayes.model import CPD, BayesNet, Classifier, Dataset, TreeEnsemble
from tinybayes.model.variable import State

MISSING = "missing"
_WHERE = "explain"
_LOOK = 2**14  # rows among which examples for a page are chosen
_EXAMPLES = 3  # rows whose labels are explained on a page
_STRONGEST = 12  # contributions to a label that are shown on a page
BACKGROUND = 256  # rows that a row is compared with, at most


@dataclass(frozen=True)
class Contribution:
    """What one feature says: above zero for the label, below zero for the other class.

    Parameters
    ----------
    feature
        Its name.
    value
        Its state in the row, as text.
    log_odds
        In nats; infinite where the value rules the other class out.
    """

    feature: str
    value: str
    log_odds: float


@dataclass(frozen=True)
class Explanation:
    """The log-odds of a label against another class, as a sum.

    Parameters
    ----------
    label
        The most probable class.
    against
        The class it is compared with.
    prior
        The log-odds before any feature is looked at; of trees their mean over the background.
    contributions
        Of all features, in their order.
    total
        The log-odds; the sum of `prior` and all contributions.
    """

    label: State
    against: State
    prior: float
    contributions: tuple[Contribution, ...]
    total: float

    def strongest(self, count: int) -> tuple[Contribution, ...]:
        """Return the contributions of the largest magnitude, without those of zero."""
        said = [one for one in self.contributions if one.log_odds != 0]
        return tuple(sorted(said, key=lambda one: -abs(one.log_odds))[:count])

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation in plain values."""
        return asdict(self)


def explain(
    model: Classifier, row: np.ndarray, *, against: State | None = None, background: np.ndarray | None = None
) -> Explanation:
    """Return what each feature of a row contributes to the decision of a network or of trees.

    The log-joint of a network is a sum of one term for each of its tables, so the log-odds of two classes are one as
    well: nothing is estimated. A feature whose table does not depend on the class contributes zero.

    Contributions to the log-odds of trees are Shapley values: the mean change when the value of a feature becomes
    known, over all orders of the features. Until then, the feature has the value of a background row, and the
    contributions are the mean over all background rows (interventional Shapley values). They are exact, and add up to
    the log-odds of the row less the mean log-odds of the background. A missing value contributes, too: it goes to a
    learned side.

    Parameters
    ----------
    model
        A Bayesian network with a class, or decision trees.
    row
        Codes of the features, -1 where missing. With missing values, contributions of a network are those of the chain
        rule, parents before children: what is missing contributes zero, and is summed out of the others as in
        `class_scores`.
    against
        The class to compare with; by default the second most probable one.
    background
        Of trees: rows of codes to compare with, such as some of the training rows. Without them, features are
        independent and all their states equally likely, which suits intervals of equal counts.

    Raises
    ------
    TinybayesError
        For circuits and neural nets, whose scores are not sums over features; for a row that is impossible under every
        class; for missing values where the structure does not allow to sum them out.

    Examples
    --------
    >>> from tinybayes import learn_classifier, read_dataset
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"rain": [1, 1, 0, 0], "wet": ["yes", "yes", "no", "no"]})
    >>> data = read_dataset(frame, target="wet")
    >>> net = learn_classifier(data, structure="naive")
    >>> explanation = explain(net, data.X[0])
    >>> explanation.label, explanation.against, round(explanation.total, 3)
    ('yes', 'no', 1.099)
    """
    if not isinstance(model, BayesNet | TreeEnsemble):
        remedy = "learn a network (naive or tan) or trees, or compare answers to queries with and without a value"
        got = f"a {type(model).__name__}, whose scores are not sums over features"
        raise error("a Bayesian network or trees", got, where=_WHERE, remedy=remedy)
    if model.target is None or model.target.cardinality < 2:
        raise error("a network with a class of two states at least", "none", where=_WHERE, remedy="name a target")
    row = np.asarray(row)
    if row.ndim != 1:
        raise error("one row of codes", f"shape {row.shape}", where=_WHERE)
    if background is not None and (isinstance(model, BayesNet) or not len(background)):
        raise error("trees, and at least one row", "others", where="background", remedy="leave it out")
    scores = class_scores(model, row[None])[0]
    label = int(scores.argmax())
    if scores[label] == -math.inf:
        raise error("a row that is possible under some class", "one that is not", where=_WHERE)
    other = _other(model, scores, label, against)
    if isinstance(model, TreeEnsemble):
        odds = tree_odds(model, row, label, other, background)
    elif (row >= 0).all():
        odds = _table_odds(model, row, label, other)
    else:
        odds = _chain(model, row, label, other)
    contributions = tuple(
        Contribution(variable.name, MISSING if code < 0 else str(variable.states[code]), float(said))
        for variable, code, said in zip(model.variables, row.tolist(), odds, strict=False)
    )
    states = model.target.states
    return Explanation(states[label], states[other], float(odds[-1]), contributions, float(odds.sum()))


def brief(explanation: Explanation, count: int) -> dict[str, Any]:
    """Return an explanation in plain values for a page, with the strongest `count` contributions.

    ``others`` is the number of other contributions, ``rest`` their sum. Infinite values are None: they always favour
    the label.
    """
    kept = explanation.strongest(count)
    spoken = sum(one.log_odds != 0 for one in explanation.contributions)
    rest = sum(one.log_odds for one in explanation.strongest(spoken)[count:])
    return {
        "label": str(explanation.label),
        "against": str(explanation.against),
        "prior": _finite(explanation.prior),
        "contributions": [vars(one) | {"log_odds": _finite(one.log_odds)} for one in kept],
        "total": _finite(explanation.total),
        "others": spoken - len(kept),
        "rest": _finite(rest),
    }


def explained_rows(model: Classifier, dataset: Dataset) -> list[dict[str, Any]]:
    """Explain the labels of up to three rows, for the report page: a right one, a wrong one and the least sure one.

    Only the first rows of the data set are looked at. Networks and trees explain themselves: for other models the list
    is empty. Each row has its number ``row``, its class ``truth`` and the values of `brief`. Rows of the data set are
    the background of trees.
    """
    target = model.target
    if not isinstance(model, BayesNet | TreeEnsemble) or target is None or target.cardinality < 2 or dataset.y is None:
        return []
    labelled = np.flatnonzero(dataset.y >= 0)[:_LOOK]
    scores = class_scores(model, dataset.X[labelled])
    possible = np.isfinite(scores).any(axis=1)
    labelled, scores = labelled[possible], scores[possible]
    right = scores.argmax(axis=1) == dataset.y[labelled]
    second, first = np.sort(scores, axis=1)[:, -2:].T
    order = [*np.flatnonzero(right)[:1], *np.flatnonzero(~right)[:1], *np.argsort(first - second, kind="stable")[:3]]
    rows = [int(labelled[i]) for i in dict.fromkeys(order)][:_EXAMPLES]
    background = some_rows(dataset.X) if isinstance(model, TreeEnsemble) else None
    told = [explain(model, dataset.X[row], background=background) for row in rows]
    return [
        {"row": row, "truth": str(target.states[dataset.y[row]]), **brief(one, _STRONGEST)}
        for row, one in zip(rows, told, strict=True)
    ]


def some_rows(X: np.ndarray) -> np.ndarray:
    """Return the background of an explanation: rows of a table, evenly spaced, and not too many."""
    return X[np.unique(np.linspace(0, len(X) - 1, min(len(X), BACKGROUND)).astype(np.int64))]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _other(model: BayesNet | TreeEnsemble, scores: np.ndarray, label: int, against: State | None) -> int:
    assert model.target is not None
    if against is None:
        ranked = np.argsort(-scores, kind="stable")
        return int(next(code for code in ranked if code != label))
    if against not in model.target.states:
        raise error(f"a class of {model.target.name!r}", repr(against), where="against")
    other = model.target.states.index(against)
    if other == label:
        remedy = "it is the most probable one: compare it with another"
        raise error("a class other than the label", repr(against), where="against", remedy=remedy)
    return other


def _table_odds(model: BayesNet, row: np.ndarray, label: int, other: int) -> np.ndarray:
    """Return the log-odds that each table contributes for a complete row."""
    odds = [_term(model, node, row, label) - _term(model, node, row, other) for node in range(len(model.cpds))]
    return np.array(odds)


def _term(model: BayesNet, node: int, row: np.ndarray, label: int) -> float:
    """Look up the entry of one table for a complete row and a class."""
    cpd = model.cpds[node]
    target = len(model.variables)
    values = {parent: label if parent == target else int(row[parent]) for parent in cpd.parents}
    return float(cpd.log_parameters[_line(model, cpd, values), label if node == target else int(row[node])])


def _line(model: BayesNet, cpd: CPD, values: dict[int, int]) -> int:
    if cpd.tree is not None:
        return cpd.tree.find(values)
    line = 0
    for parent in cpd.parents:
        line = line * model.nodes[parent].cardinality + values[parent]
    return line


def _chain(model: BayesNet, row: np.ndarray, label: int, other: int) -> np.ndarray:
    """Observe one feature after another, parents first: each contributes what the log-odds change by."""
    target = len(model.variables)
    known = [node for node in model.structure.order if node < target and row[node] >= 0]
    steps = np.full((len(known) + 1, target), -1, dtype=np.int64)
    for step, node in enumerate(known, start=1):
        steps[step:, node] = row[node]
    scores = class_scores(model, steps)[:, [label, other]]
    odds = np.zeros(target + 1)
    with np.errstate(invalid="ignore"):
        odds[-1] = scores[0, 0] - scores[0, 1]
        gained = np.diff(scores, axis=0)
    gained[np.isnan(gained)] = 0.0  # the other class was ruled out before: there is nothing left to say
    odds[known] = gained[:, 0] - gained[:, 1]
    return odds
