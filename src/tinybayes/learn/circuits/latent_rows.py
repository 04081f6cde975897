"""The rows of a latent tree: the class among the variables, some held out, equal ones collapsed."""

import numpy as np

from tinybayes.errors import error
from tinybayes.infer.likelihood import dataset_rows
from tinybayes.model import Dataset

HELD_OUT = 50  # validation rows at least
MANY = 50_000  # rows of a table above which equal ones are collapsed


def learning_rows(
    data: Dataset, validation: Dataset | None, fraction: float, seed: int
) -> tuple[Dataset, Dataset | None]:
    """Return the rows to learn from, and those that are held out: the given ones, or a fraction if that is enough."""
    if validation is not None and (validation.variables, validation.target) != (data.variables, data.target):
        raise error("the variables of the training rows", "others", where="validation", remedy="read it like the data")
    rows, held_out = as_density(data), None if validation is None else as_density(validation)
    if not len(rows):
        raise error("at least one row with a weight above zero", "none", where="data")
    count = int(fraction * len(rows))
    if held_out is None and count >= HELD_OUT:
        order = np.random.default_rng(seed).permutation(len(rows))
        held_out, rows = rows.rows(order[:count]), rows.rows(order[count:])
    return collapsed(rows), held_out


def collapsed(data: Dataset) -> Dataset:
    """Sort the rows, and collapse equal rows of a large table to fewer ones with their weight.

    Rows of a small table keep the weight one: an integer weight is that many rows. In a large table no row gets more
    than a share of ``1 / MANY`` of all weight, so that mini-batches remain alike.
    """
    if data.weight is not None:
        data = data.rows(data.weight > 0)
    X = np.ascontiguousarray(data.X)
    key = X.view(np.dtype((np.void, X.shape[1] * X.itemsize))).ravel()
    _, index, inverse = np.unique(key, return_index=True, return_inverse=True)
    total = np.bincount(inverse.ravel(), weights=data.weight)
    copies = np.maximum(1, np.ceil(total / max(1.0, total.sum() / MANY) - 1e-9)).astype(int)
    rows = np.repeat(X[index], copies, axis=0)
    return Dataset(data.variables, None, rows, weight=np.repeat(total / copies, copies))


def as_density(data: Dataset) -> Dataset:
    """Return the rows with a weight, the class as the last of the variables."""
    X = dataset_rows(data.nodes, data)
    if data.weight is None:
        return Dataset(data.nodes, None, X)
    known = data.weight > 0
    return Dataset(data.nodes, None, X[known], weight=data.weight[known])
