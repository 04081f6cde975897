"""The Pareto front: models that no other one beats in error, bits and operations."""

import numpy as np


def pareto(points: np.ndarray) -> np.ndarray:
    """Tell which points are not dominated; smaller is better in every column, and of equal points the first stays.

    Parameters
    ----------
    points
        Shape (points, objectives).
    """
    points = np.asarray(points, dtype=float)
    kept = np.zeros(len(points), dtype=bool)
    order = np.lexsort((np.arange(len(points)), *points.T[::-1]))
    front: list[int] = []
    for i in order:  # a point can only be dominated by one that comes before it in this order
        if not front or not (points[front] <= points[i]).all(axis=1).any():
            front.append(int(i))
            kept[i] = True
    return kept


def ranks(points: np.ndarray) -> np.ndarray:
    """Return for each point how many fronts must be taken away before it is on one."""
    points = np.asarray(points, dtype=float)
    found = np.full(len(points), -1)
    left, rank = np.arange(len(points)), 0
    while len(left):
        best = pareto(points[left])
        found[left[best]] = rank
        left, rank = left[~best], rank + 1
    return found
