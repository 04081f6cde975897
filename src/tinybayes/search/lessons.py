"""Lessons: many noisy and mixed rows with the posteriors of a teacher, from which small models learn.

The teacher is an ensemble of wide networks or boosted trees or both, whatever has the least loss on the validation
rows. It is trained on the training rows. A row of the lesson is a row of the table, or a mixture of two, with noise:
the teacher says of which class. Rows remember where they came from, so that nothing is learned from rows that validate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tinybayes.errors import FileError, error
from tinybayes.files import atomic_path, read_regular
from tinybayes.learn.training.net_inputs import has_order
from tinybayes.model import Cuts, Dataset, Grid, Integers, Variable
from tinybayes.model.encoding import Intervals
from tinybayes.search.measure import quality
from tinybayes.search.views import Views

ROWS, NUMBERS = 200_000, 40_000_000  # of a lesson, at most
COPIES = 4, 30  # of each row, at least and at most
NOISE, IMAGE_NOISE = 0.2, 0.5  # standard deviations of features that are added to rows, at most
OWN_NOISE, OWN_IMAGE_NOISE, OWN_MIXUP = 0.15, 0.4, 0.2  # with which the teacher itself learns
LARGEST = 2**30  # bytes of a lesson, several times what NUMBERS take
REMEDY = "remove the file, and the search makes another one"
Posteriors = Callable[[np.ndarray], np.ndarray]  # from fine codes to logarithms of posteriors


@dataclass(frozen=True, eq=False)
class Lesson:
    """Rows in fine codes, posteriors of the teacher, and the two rows of the table each one is made of."""

    X: np.ndarray
    soft: np.ndarray
    sources: np.ndarray

    def rows(self, views: Views, name: str, allowed: np.ndarray, most: int) -> Dataset:
        """Return rows in an encoding, made of allowed rows of the table only, the first copies of all rows first."""
        seen = views.by_name[name].seen
        marked = np.zeros(len(seen), dtype=np.bool_)
        marked[allowed] = True
        index = np.flatnonzero(marked[self.sources].all(axis=1))[:most]
        fine = views.by_name["fine"].seen.variables
        X = self.X[index] if views.columns is None else self.X[index][:, views.columns]
        X = X if name == "fine" else recoded(X, fine, seen.variables)
        soft = self.soft[index].astype(np.float32)
        # The teacher knows what classes count; what rows count is that of the row that most of each one is made of.
        weight = None if seen.weight is None else seen.weight[self.sources[index, 0]]
        return Dataset(seen.variables, seen.target, X, soft.argmax(axis=1), weight, soft)


class Teaching(NamedTuple):
    """What a teacher left behind: the file of its lesson, and its metric and loss on the validation rows.

    Without enough time there is no file.
    """

    path: str | None
    error: float = 1.0
    loss: float = np.inf


def teach(views: Views, path: Path, seconds: float, seed: int) -> Teaching:
    """Train a teacher, write its lesson and say how good it is."""
    from safetensors.numpy import save_file

    found = _teacher(views, seconds, seed)
    if found is None:
        return Teaching(None)
    posteriors, error, loss = found
    lesson = make_lesson(views, posteriors, seed)
    with atomic_path(path) as temporary:
        save_file({"X": lesson.X, "soft": lesson.soft, "sources": lesson.sources}, temporary)
    return Teaching(str(path), error, loss)


@lru_cache(maxsize=1)
def read_lesson(path: str) -> Lesson:
    """Read a lesson; a `FileError` for what is none."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        found = load(read_regular(path, LARGEST))
    except (OSError, SafetensorError, ValueError, TypeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise error("the lesson of a teacher", reason, where=path, remedy=REMEDY, kind=FileError) from problem
    sizes = {name: (array.dtype.kind, array.ndim, len(array) if array.ndim else 0) for name, array in found.items()}
    rows = sizes.get("X", ("", 0, 0))[2]
    if sizes != {"X": ("i", 2, rows), "soft": ("f", 2, rows), "sources": ("i", 2, rows)} or not rows:
        got = ", ".join(f"{name} of shape {array.shape}" for name, array in found.items())
        raise error("the lesson of a teacher", got or "nothing", where=path, remedy=REMEDY, kind=FileError)
    return Lesson(**found)


def check_lesson(path: str, views: Views) -> None:
    """Raise a `FileError` unless a file is a lesson about these rows."""
    lesson, seen = read_lesson(path), views.by_name["fine"].seen
    read_lesson.cache_clear()  # workers read it, and this process has no more use for it
    assert seen.target is not None
    states = np.array([variable.cardinality for variable in seen.variables])
    shapes = lesson.X.shape[1], lesson.soft.shape[1], lesson.sources.shape[1]
    if (
        shapes != (len(states), seen.target.cardinality, 2)
        or not 0 <= lesson.sources.min() <= lesson.sources.max() < len(seen)
        or lesson.X.min(initial=0) < -1
        or (lesson.X.max(axis=0) >= states).any()
        or not (np.isfinite(lesson.soft) & (lesson.soft >= 0)).all()
    ):
        raise error("a lesson about this table", "another one", where=path, remedy=REMEDY, kind=FileError)


def _teacher(views: Views, seconds: float, seed: int) -> tuple[Posteriors, float, float] | None:
    """Train networks and boosted trees, and take what has the least loss on the validation rows."""
    from tinybayes.learn.training.teacher import train_teacher
    from tinybayes.learn.trees.boosting import learn_boosted_trees
    from tinybayes.learn.trees.options import BoostingOptions
    from tinybayes.search.families.family import posteriors_of

    rows, valid = views.rows("fine")[0], views.validation("fine")
    noise = OWN_IMAGE_NOISE if views.image_shape else OWN_NOISE
    networks = train_teacher(rows, seconds=0.8 * seconds, noise=noise, mixup=OWN_MIXUP, seed=seed)
    if networks is None:
        return None
    options = BoostingOptions(rounds=60, leaves=16, learning_rate=0.15, ridge=1.0, row_share=0.8, feature_share=0.5)
    trees = posteriors_of(learn_boosted_trees(views.rows("trees")[0], options))
    fine, coarse = views.by_name["fine"].seen.variables, views.by_name["trees"].seen.variables

    def by_trees(X: np.ndarray) -> np.ndarray:
        return trees(recoded(X, fine, coarse))

    def by_both(X: np.ndarray) -> np.ndarray:
        return np.logaddexp(networks.log_posteriors(X), by_trees(X)) - np.log(2)

    ways: list[tuple[float, float, Posteriors]] = []
    for posteriors in (networks.log_posteriors, by_trees, by_both):
        known = quality(posteriors, valid, views.measure)
        ways.append((known.loss, known.value, posteriors))
    loss, error, best = min(ways, key=lambda way: way[:2])
    return best, error, loss


def make_lesson(views: Views, posteriors: Posteriors, seed: int) -> Lesson:
    """Make rows, and let the teacher look at them; rows of the training part are mixed with their like only."""
    seen = views.by_name["fine"].seen
    generator = np.random.default_rng([seed, 23])
    most = min(ROWS, NUMBERS // max(1, len(seen.variables)))
    copies = int(np.clip(most // len(seen), *COPIES))
    noise = IMAGE_NOISE if views.image_shape else NOISE
    parts = [[np.arange(len(seen))] * 2]
    made = [seen.X.astype(np.int64)]
    for _ in range(copies - 1):
        other = np.arange(len(seen))
        for part in (views.train, views.valid):
            other[part] = generator.permutation(part)
        parts.append([np.arange(len(seen)), other])
        made.append(disturbed(seen, other, noise, generator))
    X, sources = np.concatenate(made), np.concatenate([np.stack(pair, axis=1) for pair in parts])
    order = np.concatenate([k * len(seen) + generator.permutation(len(seen)) for k in range(copies)])
    soft = np.exp(posteriors(X[order]))
    return Lesson(X[order].astype(seen.X.dtype), soft.astype(np.float16), sources[order].astype(np.int32))


def disturbed(data: Dataset, other: np.ndarray, noise: float, generator: np.random.Generator) -> np.ndarray:
    """Mix rows with others, half of them, and add noise of up to `noise` deviations; states are taken from either."""
    X, Z, shape = data.X.astype(np.float64), data.X[other].astype(np.float64), data.X.shape
    part = generator.uniform(-0.5, 0.5, (len(X), 1)).clip(0)
    known = (X >= 0) & (Z >= 0)
    deviation = np.array([column[column >= 0].std() if (column >= 0).any() else 0.0 for column in X.T])
    moved = np.where(known, (1 - part) * X + part * Z, X)
    moved += generator.uniform(0, noise, (len(X), 1)) * deviation * generator.normal(size=shape)
    swapped = np.where(known & (generator.uniform(size=shape) < part), Z, X)
    ordered = np.array([has_order(v) for v in data.variables])
    last = np.array([v.cardinality - 1 for v in data.variables])
    codes = np.where(ordered, np.rint(moved).clip(0, last), swapped)
    return np.where(X >= 0, codes, -1).astype(np.int64)


def recoded(X: np.ndarray, given: Sequence[Variable], wanted: Sequence[Variable]) -> np.ndarray:
    """Return the codes of rows in another encoding of the same columns; a number lies in the middle of its interval."""
    columns = []
    for codes, old, new in zip(X.T, given, wanted, strict=True):
        if isinstance(new.encoding, Intervals) and new.encoding != old.encoding:
            codes = new.encoding.codes(_middles(codes, old))
        columns.append(codes)
    return np.stack(columns, axis=1).astype(np.int32)


def _middles(codes: np.ndarray, variable: Variable) -> np.ndarray:
    """Return numbers that have these codes, NaN where they are missing."""
    encoding, known = variable.encoding, np.maximum(codes, 0)
    if isinstance(encoding, Grid):
        half = (encoding.step - 1) // 2 if encoding.integer else encoding.step / 2
        numbers = encoding.start + encoding.step * known + half
    elif isinstance(encoding, Cuts):
        cuts = encoding.cuts if len(encoding.cuts) else np.zeros(1)
        ends = np.concatenate([cuts[:1] - 1, cuts, cuts[-1:] + 1])
        numbers = (ends[known] + ends[known + 1]) / 2
    else:
        numbers = known + (encoding.low if isinstance(encoding, Integers) else 0.0)
    return np.where(codes >= 0, numbers, np.nan)
