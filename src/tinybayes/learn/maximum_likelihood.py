"""Parameters in closed form: smoothed relative frequencies."""

import numpy as np

from tinybayes.errors import error
from tinybayes.learn.counts import Data, count_tables
from tinybayes.model import CPD, BayesNet, Float, NumberFormat, Structure


def maximum_likelihood(
    data: Data,
    structure: Structure,
    *,
    smoothing: float = 1.0,
    number_format: NumberFormat | None = None,
) -> BayesNet:
    """Estimate every table of a structure from counts.

    Parameters
    ----------
    data
        A data set, or batches of one.
    structure
        The parents of each node; for data with a class, the class is the last node.
    smoothing
        Added to every joint cell (node value, parent values) and to the cells of a node without parents.
        Zero gives plain relative frequencies: then a cell never seen has probability zero, and a context never
        seen is uniform.
    number_format
        How to store the tables; 32-bit floats by default.

    Returns
    -------
    BayesNet
    """
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise error("a finite number that is not negative", smoothing, where="smoothing")
    if len(structure) != len(data.nodes):
        raise error(f"a structure over {len(data.nodes)} nodes", len(structure), where="structure")
    storage = number_format or Float()
    cpds = []
    for family, counts in zip(structure.families, count_tables(data, structure.families), strict=True):
        table = conditional_log_probabilities(counts.reshape(-1, counts.shape[-1]), smoothing)
        cpds.append(CPD(family[:-1], storage.encode(table), storage))
    return BayesNet(data.variables, data.target, tuple(cpds))


def conditional_log_probabilities(counts: np.ndarray, smoothing: float) -> np.ndarray:
    """Normalise each row of counts after smoothing, in the log domain; a row without counts is uniform."""
    smoothed = counts + smoothing
    total = smoothed.sum(axis=1, keepdims=True)
    smoothed = np.where(total > 0, smoothed, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(smoothed) - np.log(smoothed.sum(axis=1, keepdims=True)))
