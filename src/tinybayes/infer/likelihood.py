"""The likelihood of rows, and the constant of models that are not normalised."""

from collections.abc import Sequence

import numpy as np

from tinybayes.errors import error
from tinybayes.infer import circuit as circuits
from tinybayes.infer.compile_circuit import compile_circuit
from tinybayes.model import BayesNet, Circuit, Dataset, LogLinear, Variable


def log_likelihood(
    model: BayesNet | Circuit | LogLinear, X: np.ndarray | Dataset, *, max_edges: int | None = None
) -> np.ndarray:
    """Return the exact log-probability of each row; unknown values are summed out.

    A model that is not normalised, as a quantised network or a log-linear model, is divided by its sum over all
    assignments.

    Parameters
    ----------
    model
        The model. Complete rows of a normalised network need no circuit. In all other cases networks and log-linear
        models are compiled; compile them once with `compile_circuit` to ask often.
    X
        Codes, shape (rows, variables), the class last, -1 for unknown values; or a data set.
    max_edges
        The largest circuit to compile; None: what half of the memory holds.

    Returns
    -------
    ndarray of float64, shape (rows,)
        In nats; minus infinity for an impossible row.

    Raises
    ------
    TinybayesError
        When the rows do not belong to the variables, or the circuit would be larger than `max_edges`.
    """
    if isinstance(X, Dataset):
        X = dataset_rows(model.variables if isinstance(model, LogLinear) else model.nodes, X)
    if isinstance(model, Circuit):
        return circuits.log_evidence(model, X) - circuits.log_partition(model)
    weights = LogLinear.from_bayes_net(model) if isinstance(model, BayesNet) else model
    complete = not np.size(X) or np.min(X) >= 0
    if complete and isinstance(model, BayesNet) and model.is_normalized():
        return weights.log_weights(X)
    circuit = compile_circuit(model, max_edges=max_edges)
    logs = weights.log_weights(X) if complete else circuits.log_evidence(circuit, X)
    return logs - circuits.log_partition(circuit)


def log_partition(model: BayesNet | Circuit | LogLinear, *, max_edges: int | None = None) -> float:
    """Return ``log Z``, the logarithm of the sum over all assignments: zero for a normalised network."""
    return circuits.log_partition(compile_circuit(model, max_edges=max_edges))


def dataset_rows(variables: Sequence[Variable], data: Dataset) -> np.ndarray:
    """Return the codes of a data set over all variables of a model, the class last, -1 where it is unknown."""
    if tuple(variables) != data.nodes:
        raise error(
            "the variables of the model, with the same states and cut points",
            "others",
            where="data",
            remedy="read the table with them: read_dataset(TABLE, like=model)",
        )
    if data.target is None:
        return data.X.astype(np.int32)
    y = np.full(len(data), -1) if data.y is None else data.y
    return np.column_stack([data.X, y]).astype(np.int32)
