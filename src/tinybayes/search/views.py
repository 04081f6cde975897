"""A table prepared for a search: training, validation and test rows, in more than one encoding.

Bayesian networks need few states a feature: they get MDLP's cut points or a few bins of equal counts. Neural networks
read numbers, as fine codes on a grid, and trees choose among many cut points. All cut points are found on the training
rows.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from tinybayes.data.checks import check_classes, check_features
from tinybayes.data.encode import encode_column, encode_frame
from tinybayes.data.variables import Discretization, distinct_values, learn_variables
from tinybayes.errors import error, near
from tinybayes.model import Dataset, Variable

MOST_CLASSES = MOST_STATES = 1000
VIEWS = {  # the discretiser and its bins
    "mdlp": ("mdlp", 8),
    "coarse": ("quantile", 4),
    "middle": ("quantile", 8),
    "many": ("quantile", 16),
    "fine": ("grid", 128),
    "trees": ("quantile", 64),
}


@dataclass(frozen=True, eq=False)
class View:
    """One encoding of the table: the rows that the search may see, and the test rows."""

    seen: Dataset
    test: Dataset


@dataclass(frozen=True, eq=False)
class Views:
    """A table under search."""

    by_name: dict[str, View]  # the encodings, by their names in `VIEWS`
    train: np.ndarray  # indices of the training rows among the seen ones
    valid: np.ndarray  # and of the validation rows
    image_shape: tuple[int, int] | None  # rows and columns, when the features are pixels

    def rows(self, name: str, *, all_seen: bool = False, split: int = 0) -> tuple[Dataset, Dataset]:
        """Return training and validation rows; with `all_seen` the training rows are all but the test rows."""
        seen, valid = self.by_name[name].seen, self.splits[split]
        return (seen if all_seen else seen.rows(np.setdiff1d(np.arange(len(seen)), valid)), seen.rows(valid))

    @cached_property
    def splits(self) -> tuple[np.ndarray, ...]:
        """Parts of the seen rows, each one stratified: the first has the validation rows, others the training rows."""
        classes = self.by_name["mdlp"].seen.y
        assert classes is not None
        generator = np.random.default_rng(len(classes))
        order = generator.permutation(self.train)
        order = order[np.argsort(classes[order], kind="stable")]  # neighbours are of one class
        count = max(1, round(len(self.train) / len(self.valid)))
        return (self.valid, *(np.sort(order[part::count]) for part in range(count)))

    @cached_property
    def target(self) -> Variable:
        """The class."""
        target = self.by_name["mdlp"].seen.target
        assert target is not None
        return target


def make_views(
    frame: pd.DataFrame,
    target: str,
    *,
    test: pd.DataFrame | None = None,
    image_shape: tuple[int, int] | None = None,
    seed: int = 0,
) -> Views:
    """Split a table, stratified by class, and code it.

    Without `test` a fifth of the table is set aside. The share of the validation rows is a fifth by default, up to a
    third of a small table, since few rows choose badly; the final models are trained on all but the test rows. A square
    image is recognised when neighbouring features are alike.
    """
    if target not in frame.columns:
        shown = ", ".join(map(str, frame.columns[:10])) + (", ..." if len(frame.columns) > 10 else "")
        remedy = near(target, frame.columns)
        raise error(f"a column {target!r}", f"the columns {shown}", where="table", remedy=remedy)
    frame = frame[frame[target].notna()].reset_index(drop=True)
    classes = frame[target].nunique()
    if not 2 <= classes <= MOST_CLASSES:
        remedy = "name a column of classes; numbers can be cut into classes first"
        raise error(f"2 to {MOST_CLASSES:,} classes", f"{classes:,}", where=f"column {target!r}", remedy=remedy)
    declared = isinstance(frame[target].dtype, pd.CategoricalDtype)
    check_classes(distinct_values(frame[target]), len(frame), f"target {target!r}", declared=declared)
    check_features(frame.drop(columns=target))
    generator = np.random.default_rng([seed, 11])
    if test is None:
        apart = _share(frame[target], 0.2, generator)
        frame, test = frame[~apart].reset_index(drop=True), frame[apart]
    chosen = _share(frame[target], min(1 / 3, max(0.2, 500 / len(frame))), generator)
    features = [column for column in frame.columns if column != target]
    if not features:
        raise error("at least one feature column", "none", where="table")
    learned = frame[~chosen]
    by_name = {}
    for name in VIEWS:
        variables, of_class = _variables(learned[features], learned[target], name)
        parts = [
            Dataset(variables, of_class, encode_frame(part, variables), encode_column(part[target], of_class))
            for part in (frame, test)
        ]
        by_name[name] = View(*parts)
    shape = image_shape or _square_image(by_name["fine"].seen)
    if shape is not None and shape[0] * shape[1] != len(features):
        raise error(f"an image of {len(features)} pixels", shape, where="image_shape")
    return Views(by_name, np.flatnonzero(~chosen), np.flatnonzero(chosen), shape)


def _share(classes: pd.Series, fraction: float, generator: np.random.Generator) -> np.ndarray:
    """Mark a share of the rows of every class, but never all of them."""
    marked = np.zeros(len(classes), dtype=bool)
    for rows in classes.groupby(classes, observed=True).indices.values():
        drawn = generator.permutation(np.asarray(rows))
        marked[drawn[: min(round(fraction * len(drawn)), len(drawn) - 1)]] = True
    if not marked.any():
        got = f"{len(classes)} rows of {classes.nunique()} classes"
        raise error("enough rows to set some aside", got, where="table", remedy="add rows: 10 of each class or more")
    return marked


def _variables(frame: pd.DataFrame, classes: pd.Series, view: str) -> tuple[tuple[Variable, ...], Variable]:
    discretizer, bins = VIEWS[view]
    discretization = Discretization(discretizer=discretizer, n_bins=bins, max_states=MOST_STATES)
    variables, target = learn_variables([(frame, classes, None)], discretization)
    assert target is not None
    return variables, target


def _square_image(data: Dataset) -> tuple[int, int] | None:
    """Return whether features are the pixels of a square image: neighbours are far more alike than others."""
    side = int(np.sqrt(len(data.variables)))
    if side < 6 or side * side != len(data.variables) or not all(v.has_intervals for v in data.variables):
        return None
    X = data.X[:2000].astype(float)
    X = X - X.mean(axis=0)
    norm = np.sqrt((X**2).sum(axis=0))
    correlation = np.abs((X.T @ X) / np.maximum(np.outer(norm, norm), 1e-12))
    pixel = np.arange(side * side)
    right, below = pixel[pixel % side < side - 1], pixel[: side * (side - 1)]
    near = np.concatenate([correlation[right, right + 1], correlation[below, below + side]])
    alive = norm > 0
    near = near[np.concatenate([alive[right] & alive[right + 1], alive[below] & alive[below + side]])]
    others = correlation[np.ix_(alive, alive)]
    return (side, side) if len(near) and near.mean() > 2 * others.mean() else None
