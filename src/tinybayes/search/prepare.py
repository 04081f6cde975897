"""A table prepared for a search: training, validation and test rows, in more than one encoding.

Bayesian networks need few states a feature: they get MDLP's cut points or a few bins of equal counts. Neural networks
read numbers, as fine codes on a grid, and trees choose among many cut points. All cut points are found on the training
rows.
"""

import numpy as np
import pandas as pd

from tinybayes.data.checks import check_classes, check_features
from tinybayes.data.discretize import common_grid
from tinybayes.data.encode import encode_column, encode_frame
from tinybayes.data.variables import Discretization, distinct_values, learn_variables
from tinybayes.errors import error, near, warn
from tinybayes.model import Dataset, Grid, Variable
from tinybayes.search.goal import Goal, decide
from tinybayes.search.roles import NO_ROLES, Roles
from tinybayes.search.splits import order_of
from tinybayes.search.views import View, Views, weighted

MOST_CLASSES = MOST_STATES = 1000
VIEWS = {  # the discretiser and its bins
    "mdlp": ("mdlp", 8),
    "coarse": ("quantile", 4),
    "middle": ("quantile", 8),
    "many": ("quantile", 16),
    "fine": ("grid", 128),
    "trees": ("quantile", 64),
}


def make_views(
    frame: pd.DataFrame,
    target: str,
    *,
    test: pd.DataFrame | None = None,
    image_shape: tuple[int, int] | None = None,
    seed: int = 0,
    goal: Goal | str | None = None,
    roles: Roles = NO_ROLES,
) -> Views:
    """Split a table, stratified by class or as its roles say, and code it.

    Without `test` a fifth of the table is set aside. The share of the validation rows is a fifth by default, up to a
    third of a small table, since few rows choose badly; the final models are trained on all but the test rows. A square
    image is recognised when neighbouring features are alike.
    """
    if target not in frame.columns:
        shown = ", ".join(map(str, frame.columns[:10])) + (", ..." if len(frame.columns) > 10 else "")
        remedy = near(target, frame.columns)
        raise error(f"a column {target!r}", f"the columns {shown}", where="table", remedy=remedy)
    roles.check(frame, target, test)
    frame = frame[frame[target].notna()].reset_index(drop=True)
    classes = frame[target].nunique()
    if not 2 <= classes <= MOST_CLASSES:
        remedy = "name a column of classes; numbers can be cut into classes first"
        raise error(f"2 to {MOST_CLASSES:,} classes", f"{classes:,}", where=f"column {target!r}", remedy=remedy)
    declared = isinstance(frame[target].dtype, pd.CategoricalDtype)
    check_classes(distinct_values(frame[target]), len(frame), f"target {target!r}", declared=declared)
    features = [column for column in frame.columns if column not in (target, *roles.columns)]
    if not features:
        raise error("at least one feature column", "none", where="table")
    check_features(frame[features])
    y = frame.groupby(target, observed=True).ngroup().to_numpy()
    order, generator = order_of(frame, roles.groups, roles.time_order), np.random.default_rng([seed, 11])
    everything = frame[target]
    if test is None:
        apart = order.share(y, 0.2, generator)
        frame, test = frame[~apart].reset_index(drop=True), frame[apart]
        y, order = y[~apart], order.rows(~apart)
    chosen = order.share(y, min(1 / 3, max(0.2, 500 / len(frame))), generator)
    _check_parts(y, chosen, everything)
    of_class = _class_variable(everything if roles.split else frame[target][~chosen])
    weight, test_weight = roles.weights(frame), roles.weights(test)
    for part in (~chosen, chosen):
        roles.check_weights(None if weight is None else weight[part])
    codes, decision = encode_column(frame[target], of_class), decide(goal, of_class)
    factor = decision.class_factor(codes[~chosen], None if weight is None else weight[~chosen])
    if factor is not None and not factor.any():
        got = "weights that leave none of them"
        raise error("training rows of classes that count", got, where="class weights and costs")
    training = weighted(codes, weight, factor)
    learned, counted = frame[~chosen], None if training is None else training[~chosen]
    by_name = {}
    for name in VIEWS:
        variables = _variables(learned[features], learned[target], counted, name)
        seen = Dataset(variables, of_class, encode_frame(frame, variables), codes, training)
        tested = encode_frame(test, variables), encode_column(test[target], of_class), test_weight
        by_name[name] = View(seen, Dataset(variables, of_class, *tested))
    shape = image_shape or _square_image(by_name["fine"].seen)
    if shape is not None and shape[0] * shape[1] != len(features):
        raise error(f"an image of {len(features)} pixels", shape, where="image_shape")
    return Views(by_name, np.flatnonzero(~chosen), np.flatnonzero(chosen), shape, weight, decision, order)


def _check_parts(y: np.ndarray, valid: np.ndarray, classes: pd.Series) -> None:
    """Refuse training rows of one class; warn of classes without training rows, which no model can predict."""
    there = len(np.unique(y[~valid]))
    if there < 2:
        remedy = "split in another way, or add rows"
        raise error("training rows of 2 classes", f"{there}", where="groups or time order", remedy=remedy)
    absent = classes.nunique() - there
    if absent:
        effect = "because of the split; all their rows count as wrong"
        warn(f"{absent} of {classes.nunique()} classes have no training rows, {effect}")


def _class_variable(classes: pd.Series) -> Variable:
    discretization = Discretization(discretizer=None, max_states=MOST_STATES)
    target = learn_variables([(classes.to_frame(), classes, None)], discretization)[1]
    assert target is not None
    return target


def _variables(frame: pd.DataFrame, classes: pd.Series, weight: np.ndarray | None, view: str) -> tuple[Variable, ...]:
    discretizer, bins = VIEWS[view]
    discretization = Discretization(discretizer=discretizer, n_bins=bins, max_states=MOST_STATES)
    variables = learn_variables([(frame, classes, weight)], discretization)[0]
    common = common_grid([v.encoding for v in variables if isinstance(v.encoding, Grid)])
    if common is None:
        return variables
    return tuple(Variable.from_encoding(v.name, common) if isinstance(v.encoding, Grid) else v for v in variables)


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
