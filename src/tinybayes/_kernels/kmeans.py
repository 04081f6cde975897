"""Optimal clustering of numbers on a line: the dynamic programme for every number of clusters at once."""

import numpy as np

from tinybayes._kernels import jit


@jit
def _cost(i, j, total, first, second):
    """Return the weighted squared error of the points i..j-1 around their mean."""
    moment = first[j] - first[i]
    return max(second[j] - second[i] - moment * moment / (total[j] - total[i]), 0.0)


@jit
def _add_run(k, split, above, before, best, total, first, second):
    """Fill in `split` and `best` for k runs from those of k - 1, `above` and `before`.

    Where the last run starts grows with the number of values and with the number of runs, so that steps of halving
    size let each search go on between its neighbours.
    """
    n = len(split) - 1
    step = 1
    while step < n:
        step *= 2
    while step:
        for j in range(k - 1 + step, n + 1, 2 * step):
            low, high = max(k - 1, above[j]), j - 1
            if j - step >= k:
                low = max(low, split[j - step])
            if j + step <= n:
                high = min(high, split[j + step])
            best[j], split[j] = np.inf, low
            for i in range(low, high + 1):
                error = before[i] + _cost(i, j, total, first, second)
                if error < best[j]:
                    best[j], split[j] = error, i
        step //= 2


@jit
def best_splits(values, weights, most):
    """Cut increasing values, of positive weights, into runs with the least squared error around their means.

    Returns
    -------
    splits : int32, shape (most, n + 1)
        ``splits[k - 1, j]`` is where the last of k runs over the first j values starts, for j >= k.
    costs : float64, shape (most,)
        The error of all values in 1 to `most` runs.
    """
    n = len(values)
    total, first, second = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    centre = (weights * values).sum() / weights.sum()  # small sums of squares lose little to rounding
    for i in range(n):
        v = values[i] - centre
        total[i + 1] = total[i] + weights[i]
        first[i + 1] = first[i] + weights[i] * v
        second[i + 1] = second[i] + weights[i] * v * v
    splits, costs = np.zeros((most, n + 1), np.int32), np.empty(most)
    before, best = np.zeros(n + 1), np.zeros(n + 1)
    for j in range(1, n + 1):
        before[j] = _cost(0, j, total, first, second)
    costs[0] = before[n]
    for k in range(2, most + 1):
        _add_run(k, splits[k - 1], splits[k - 2], before, best, total, first, second)
        before, best = best, before
        costs[k - 1] = before[n]
    return splits, costs
