"""Calibration on validation rows: a temperature for probabilities, and margins below which rows are rejected.

The temperature divides the scores before the softmax (Guo et al. 2017, "On calibration of modern neural networks"). It
changes no label. A margin is the difference between the best and the second-best score. Rows with a smaller one are
rejected, so that fewer of the rows that are kept are wrong (Chow 1970).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from tinybayes.errors import error
from tinybayes.infer.integers import integer_forest, integer_log_joint
from tinybayes.infer.scores import class_scores
from tinybayes.model import BayesNet, Classifier, Codebook, Dataset

# Wanted shares of wrong labels among the kept rows.
_PER_MILLE = (0, 1, 2, 3, 5, 7.5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 150, 200, 250, 300, 400, 500)
ERRORS = tuple(each / 1000 for each in _PER_MILLE)
COLDEST, HOTTEST = 1 / 16, 1024.0  # temperatures that are tried
ROUNDS = 60  # of bisection
LARGEST_MARGIN = 1e9  # nats: a class without competitors


@dataclass(frozen=True)
class Margin:
    """A margin that keeps a wanted error."""

    wanted: float  # the largest share of wrong labels among the kept rows
    nats: float  # the margin
    error: float  # the share that it leaves
    rejected: float  # the share of rows with a smaller margin


@dataclass(frozen=True)
class Calibration:
    """What validation rows say about the scores of a classifier.

    Parameters
    ----------
    temperature
        Scores are divided by it before the softmax.
    rows
        The number of validation rows.
    margins
        For wanted errors that can be reached, the smallest margin that does.
    best
        The smallest error that any margin reaches.
    chosen
        The margin that an export states as ``NAME_MARGIN``; None for no such constant.
    """

    temperature: float = 1.0
    rows: int = 0
    margins: tuple[Margin, ...] = ()
    best: float = math.nan
    chosen: Margin | None = None

    def rejecting(self, wanted: float) -> "Calibration":
        """Choose the margin for an error, or for the next lower one that was calibrated; raise if none reaches it."""
        if not 0 <= wanted <= 1:
            raise error("an error from 0 to 1", wanted, where="reject error")
        possible = [margin for margin in self.margins if margin.wanted <= wanted]
        if not possible:
            remedy = "take a better model, or more validation rows"
            raise error(self._reachable(), wanted, where="reject error", remedy=remedy)
        return replace(self, chosen=max(possible, key=lambda margin: margin.wanted))

    def _reachable(self) -> str:
        if not self.rows:
            return "calibrated margins"
        return f"at least {self.best:.4g}, the smallest error that a margin leaves in {self.rows:,} validation rows"

    def sentence(self) -> str:
        """Say what the validation rows gave."""
        said = f"Temperature {self.temperature:.4g}, fitted on {self.rows:,} validation rows."
        if self.chosen is not None:
            shares = f"{100 * self.chosen.rejected:.2f} % of them; {100 * self.chosen.error:.2f} % of the others"
            said += f" The margin rejects {shares} are wrong."
        return said

    def to_metadata(self) -> dict[str, Any]:
        """Return the calibration as a JSON object."""
        figures = asdict(self)
        del figures["chosen"]
        return figures | {"margins": [list(asdict(margin).values()) for margin in self.margins]}


def calibrate(model: Classifier, rows: Dataset | Iterable[Dataset], *, errors: Sequence[float] = ERRORS) -> Calibration:
    """Fit the temperature, and find margins for wanted errors, on rows that the model was not trained on.

    Parameters
    ----------
    model
        A classifier.
    rows
        Rows in the encoding of the model, with the class, or batches of them. Rows without a class are left out.
    errors
        Wanted shares of wrong labels among the rows that are kept.
    """
    scores, y, weight = _scored(model, rows)
    label, behind = scores.argmax(axis=1), _behind(scores)
    behind[np.arange(len(y)), label] = np.inf
    margin = np.minimum(behind.min(axis=1), LARGEST_MARGIN)
    margins, least = _margins(margin, label != y, weight, errors)
    return Calibration(fit_temperature(scores, y, weight), len(y), margins, least)


def _behind(scores: np.ndarray) -> np.ndarray:
    """Return by how much each score is behind the best one of its row."""
    best = scores.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.where(best > scores, best - scores, 0.0)


def calibration_metadata(model: Classifier, rows: Dataset) -> dict[str, Any]:
    """Return what `save` stores as ``metadata["calibration"]``, and `from_metadata` reads."""
    return calibrate(model, rows).to_metadata()


def from_metadata(metadata: Mapping[str, Any]) -> Calibration | None:
    """Return the calibration in the metadata of a model file; None where there is none."""
    stored = metadata.get("calibration")
    if stored is None:
        return None
    try:
        margins = tuple(Margin(*map(float, margin)) for margin in stored["margins"])
        found = Calibration(float(stored["temperature"]), int(stored["rows"]), margins, float(stored["best"]))
    except (TypeError, ValueError, KeyError, OverflowError) as problem:
        raise error("a calibration", repr(stored)[:80], where="metadata.calibration") from problem
    if not (math.isfinite(found.temperature) and found.temperature > 0):
        raise error("a positive temperature", found.temperature, where="metadata.calibration")
    return found


def _scored(model: Classifier, rows: Dataset | Iterable[Dataset]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores in nats, classes and weights of the rows with a class."""
    if model.target is None:
        raise error("a model with a class variable", "none", where="calibrate", remedy="name a target")
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for batch in [rows] if isinstance(rows, Dataset) else rows:
        if batch.variables != model.variables or (batch.target or model.target) != model.target:
            remedy = "read the table with them: read_dataset(TABLE, like=model)"
            raise error("the variables of the model", "others", where="calibrate", remedy=remedy)
        if batch.y is None:
            raise error(f"a column {model.target.name!r} with the classes", "a table without it", where="calibrate")
        known = batch.rows(batch.y >= 0 if batch.weight is None else (batch.y >= 0) & (batch.weight > 0))
        assert known.y is not None
        weight = np.ones(len(known)) if known.weight is None else known.weight
        if len(known):
            parts.append((_nats(model, known.X), known.y, weight))
    if not parts:
        raise error("rows with a known class", "none", where=f"column {model.target.name!r}")
    scores, y, weight = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return scores, y, weight


def _nats(model: Classifier, X: np.ndarray) -> np.ndarray:
    """Return scores in nats; those of a codebook are the rounded ones of a program."""
    formats = {cpd.format for cpd in model.cpds} if isinstance(model, BayesNet) else set()
    if isinstance(model, BayesNet) and len(formats) == 1 and isinstance(next(iter(formats)), Codebook):
        sums, fraction = integer_log_joint(model, X, gaps=integer_forest(model) is not None)
        return np.ldexp(sums.astype(np.float64), -fraction)
    return class_scores(model, X)


def fit_temperature(scores: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Return the temperature with the smallest log loss, by bisection: it is convex in the inverse of the temperature.

    The derivative of a row's loss is the distance of its class to the best one less the expected distance. If all
    labels are right, the loss falls without end towards a temperature of zero: it stays 1.
    """
    behind = _behind(scores)
    of_class = behind[np.arange(len(y)), y]
    possible = np.isfinite(of_class)  # others lose without bound at every temperature
    behind, of_class, weight = behind[possible], of_class[possible], weight[possible]
    if not (weight * of_class).any():
        return 1.0
    far = np.isinf(behind)
    finite = np.where(far, 0.0, behind)
    low, high = math.log(1 / HOTTEST), math.log(1 / COLDEST)
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        power = np.where(far, 0.0, np.exp(-math.exp(middle) * finite))
        slope = weight @ (of_class - (power * finite).sum(axis=1) / power.sum(axis=1))
        low, high = (low, middle) if slope > 0 else (middle, high)
    return math.exp(-(low + high) / 2)


def _margins(
    margin: np.ndarray, wrong: np.ndarray, weight: np.ndarray, errors: Sequence[float]
) -> tuple[tuple[Margin, ...], float]:
    """Return the smallest margin for each error that can be reached, and the smallest error."""
    order = np.argsort(-margin, kind="stable")
    margin, kept = margin[order], np.cumsum(weight[order])
    last = np.append(margin[1:] < margin[:-1], True)  # of the rows with the same margin
    margin, kept, error = margin[last], kept[last], np.cumsum((weight * wrong)[order])[last] / kept[last]
    margin[-1] = 0.0  # all rows are kept
    share = 1 - kept / kept[-1]
    found = []
    for wanted in errors:
        if enough := np.flatnonzero(error <= wanted).tolist():
            i = enough[-1]
            found.append(Margin(float(wanted), float(margin[i]), float(error[i]), float(share[i])))
    return tuple(found), float(error.min())
