"""Structures that need no search: naive Bayes and random trees. The class is the last node."""

from collections.abc import Sequence

import numpy as np

from tinybayes.errors import error
from tinybayes.learn.closed_form.counts import Data
from tinybayes.model import Structure
from tinybayes.options import check_seed


def naive_bayes(data: Data) -> Structure:
    """Let every feature depend on the class alone."""
    return augmented([-1] * len(data.variables), has_class=data.target is not None)


def random_ordering(features: int, seed: int = 0) -> np.ndarray:
    """Draw an ordering of the features; TAN Subset and TAN All of the same seed have the same one."""
    return np.random.default_rng([seed, 1]).permutation(features)


def random_tan(
    data: Data, *, seed: int | np.random.Generator = 0, ordering: Sequence[int] | np.ndarray | None = None
) -> Structure:
    """Draw a random ordering and, for each feature, a random one of its predecessors (TAN Random).

    Parameters
    ----------
    data
        Gives the number of features.
    seed
        Seed or generator.
    ordering
        The features, parents before children: only the parents are drawn then.
    """
    if not isinstance(seed, np.random.Generator):
        check_seed(seed)
    generator = np.random.default_rng(seed)
    features = len(data.variables)
    if ordering is not None and sorted(ordering) != list(range(features)):
        raise error(f"each of {features} features once", list(ordering)[:10], where="ordering")
    order = generator.permutation(features) if ordering is None else np.asarray(ordering)
    parent = np.full(len(order), -1)
    for position in range(1, len(order)):
        parent[order[position]] = order[generator.integers(position)]
    return augmented(parent.tolist(), has_class=data.target is not None)


def augmented(parent: list[int], *, has_class: bool = True) -> Structure:
    """Make the tree-augmented structure in which feature ``i`` has the feature ``parent[i]`` (-1: none) and the class.

    The class comes last among the parents, so that the tables keep the classes of one context together.
    """
    if not parent:
        raise error("at least one feature", "none", where="structure")
    below = (len(parent),) if has_class else ()
    families = [((p,) if p >= 0 else ()) + below for p in parent]
    return Structure(tuple(families) + (((),) if has_class else ()))
