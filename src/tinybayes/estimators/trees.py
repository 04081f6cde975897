"""Decision trees, forests and boosted trees for scikit-learn."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from tinybayes.data.variables import Discretization, Discretizer
from tinybayes.errors import error
from tinybayes.estimators._base import ScoredClassifier, options_of_estimator, store_parameters
from tinybayes.learn.trees.by_kind import learn_trees, options_of_kind
from tinybayes.model import Dataset, TreeEnsemble


class TreeEnsembleClassifier(ScoredClassifier):
    """Boosted trees, a forest or a decision tree, in integers.

    Numeric columns are cut into fine bins, text, categorical and boolean columns are split into sets of values. Missing
    values go to the side that was learned for them, and so do texts that were never seen in training.

    Parameters
    ----------
    kind : {"boosted", "forest", "tree"}, default="boosted"
        Trees that follow the gradient of the log loss, trees grown from rows drawn with replacement, or a single tree.
    rounds, learning_rate, symmetric, ridge
        Of "boosted"; see `BoostingOptions`.
    trees : int, default=100
        Of "forest": how many.
    votes : bool, default=False
        Of "forest" and "tree": each tree votes for one class.
    leaves, leaf_rows : int or None, default=None
        Leaves of a tree, at most, and rows of a leaf, at least; by default 31 and 20 (but at most a tenth of the rows)
        of "boosted", 512 and 1 of the others.
    feature_share, row_share : float or None, default=None
        Share of the features that are looked at for a test, and of the rows that a tree is grown from; by default 0.5
        and 0.7 of "boosted". A forest looks at the square root of the number of features, a tree at all of them, and
        both take all rows.
    depth, node_price, threshold_price, feature_price, tests
        Of all kinds; see `TreeOptions`.
    levels : int or None, default=None
        Of "boosted": different values of all leaves together, at most; None keeps 16 bits for each.
    budget : int or None, default=None
        Of "boosted": bytes of the trees, at most; learning stops with the last round that fits.
    discretizer : {"histogram", "quantile", "uniform", "mdlp", "grid"}, scikit-learn discretiser or None, \
default="histogram"
        What cuts numbers; "histogram" cuts between all values of a column, or into bins of equal counts if these are
        more than `n_bins`.
    n_bins : int, default=128
        Bins of a column, at most.
    max_states : int, default=1000
        A text column with more distinct states is refused.
    random_state : int, RandomState or None, default=None
        For everything drawn at random.

    Attributes
    ----------
    model_ : TreeEnsemble
        The fitted trees, for `tinybayes.export`, `tinybayes.model_cost` and `tinybayes.explain`.
    classes_ : ndarray
        The class labels.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray
        Names of the features, when `X` had string names for all of them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> trees = TreeEnsembleClassifier(rounds=20, leaves=4).fit(X, y)
    >>> float(trees.score(X, y)) > 0.9
    True
    """

    model_: TreeEnsemble

    def __init__(
        self,
        kind: str = "boosted",
        *,
        rounds: int = 100,
        learning_rate: float = 0.1,
        symmetric: bool = False,
        ridge: float = 0.0,
        trees: int = 100,
        votes: bool = False,
        leaves: int | None = None,
        leaf_rows: int | None = None,
        depth: int | None = None,
        feature_share: float | None = None,
        row_share: float | None = None,
        node_price: float = 0.0,
        threshold_price: float = 0.0,
        feature_price: float = 0.0,
        tests: int | None = None,
        levels: int | None = None,
        budget: int | None = None,
        discretizer: Discretizer = "histogram",
        n_bins: int = 128,
        max_states: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        store_parameters(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "TreeEnsembleClassifier":
        """Learn from a table.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_samples, n_features)
            The features.
        y : array-like, shape (n_samples,)
            The classes.
        sample_weight : array-like, shape (n_samples,), optional
            Row weights.
        """
        names = options_of_kind(self.kind)
        if self.kind != "boosted" and (self.levels is not None or self.budget is not None):
            given = "levels" if self.levels is not None else "budget"
            raise error("boosted trees", f"a {self.kind}", where=given, remedy=f"leave {given} out")
        data = self._learning_set(X, y, sample_weight, options_of_estimator(self, Discretization))
        # An argument that is None has the default of its kind.
        options = {name: getattr(self, name) for name in names if getattr(self, name, None) is not None}
        options["seed"] = int(check_random_state(self.random_state).randint(2**31 - 1))
        shrink = None if self.levels is None else partial(_tied, levels=self.levels, data=data)
        self.model_ = learn_trees(data, self.kind, budget=self.budget, shrink=shrink, **options)
        return self


def _tied(model: TreeEnsemble, levels: int, data: Dataset) -> TreeEnsemble:
    from tinybayes.compress.trees import tie_leaves

    return tie_leaves(model, levels, data)
