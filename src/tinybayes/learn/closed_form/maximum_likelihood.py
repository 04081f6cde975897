"""Parameters in closed form: smoothed relative frequencies.

Tables are stored in float32 by default, because that is what the price counts. Exchange formats are read as float64.
"""

from numbers import Real

import numpy as np

from tinybayes.errors import error
from tinybayes.learn.closed_form.counts import Data, count_tables
from tinybayes.model import CPD, BayesNet, Float, NumberFormat, Structure


def maximum_likelihood(
    data: Data, structure: Structure, *, smoothing: float = 1.0, number_format: NumberFormat | None = None
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
    if not (isinstance(smoothing, Real) and 0 <= smoothing <= 1e100):
        raise error("a finite number that is not negative", repr(smoothing), where="smoothing")
    if len(structure) != len(data.nodes):
        raise error(f"a structure over {len(data.nodes)} nodes", len(structure), where="structure")
    storage = number_format or Float()
    counts = count_tables(data, structure.families)
    widths = np.repeat([table.shape[-1] for table in counts], [table.size // table.shape[-1] for table in counts])
    # All tables at once: a network has many small ones.
    flat = storage.encode(conditional_log_probabilities(np.concatenate([t.ravel() for t in counts]), widths, smoothing))
    parts = np.split(flat, np.cumsum([table.size for table in counts])[:-1])
    cpds = [
        CPD(family[:-1], part.reshape(-1, table.shape[-1]), storage)
        for family, table, part in zip(structure.families, counts, parts, strict=True)
    ]
    return BayesNet(data.variables, data.target, tuple(cpds))


def conditional_log_probabilities(counts: np.ndarray, widths: np.ndarray, smoothing: float) -> np.ndarray:
    """Normalise rows of counts after smoothing, in the log domain; a row without counts is uniform.

    The rows lie one after another in a flat array; `widths` has their lengths.
    """
    smoothed = counts + smoothing
    total = np.add.reduceat(smoothed, np.cumsum(widths) - widths)
    smoothed[np.repeat(total <= 0, widths)] = 1.0
    total = np.where(total > 0, total, widths)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(smoothed) - np.repeat(np.log(total), widths))
