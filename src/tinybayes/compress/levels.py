"""The best levels for numbers: optimal one-dimensional k-means, for all numbers of levels from one run."""

import numpy as np

from tinybayes._kernels.kmeans import best_splits
from tinybayes.errors import error

_MAX_CELLS = 2**27  # 512 MiB of splits


class LevelPath:
    """The optimal levels of finite numbers, for every number of levels up to `most`.

    Equal numbers are one point of their common weight. One dynamic programme serves all numbers of levels.

    Parameters
    ----------
    values
        The numbers.
    most
        The largest number of levels that will be asked for; cut to that of distinct numbers.
    weights
        How much the squared error of each number counts, above zero; one when None.
    """

    def __init__(self, values: np.ndarray, most: int, weights: np.ndarray | None = None) -> None:
        values = np.asarray(values, dtype=np.float64).reshape(-1)
        weights = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64).reshape(-1)
        if not len(values) or not np.isfinite(values).all():
            raise error("finite numbers, one at least", "others", where="levels")
        if weights.shape != values.shape or not (np.isfinite(weights).all() and weights.min() > 0):
            raise error("a finite weight above zero for each number", "others", where="levels")
        self.points, inverse = np.unique(values, return_inverse=True)
        self.weights = np.bincount(inverse.reshape(-1), weights)
        self.most = min(most, len(self.points))
        if self.most < 1:
            raise error("at least one level", most, where="levels")
        if self.most * len(self.points) > _MAX_CELLS:
            got = f"{self.most:,} levels for {len(self.points):,} distinct numbers"
            remedy = "ask for fewer levels, or for levels of each table"
            raise error(f"a product of at most {_MAX_CELLS:,}", got, where="levels", remedy=remedy)
        self._splits, self.costs = best_splits(self.points, self.weights, self.most)

    def levels(self, k: int) -> np.ndarray:
        """Return the k levels with the least squared error, increasing."""
        if not 1 <= k <= self.most:
            raise error(f"1 to {self.most} levels", k, where="levels")
        ends = [len(self.points)]
        for runs in range(k, 0, -1):
            ends.append(int(self._splits[runs - 1, ends[-1]]))
        starts = np.array(ends[:0:-1])
        return np.add.reduceat(self.weights * self.points, starts) / np.add.reduceat(self.weights, starts)


def optimal_levels(values: np.ndarray, k: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Return k levels with the least (weighted) sum of squared distances of finite numbers to their nearest level.

    Examples
    --------
    >>> optimal_levels(np.array([1.0, 2.0, 10.0, 12.0]), 2).tolist()
    [1.5, 11.0]
    """
    return LevelPath(values, k, weights).levels(k)
