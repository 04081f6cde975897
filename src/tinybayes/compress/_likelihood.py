"""The likelihood of data under many parameters of one network: what does not change is worked out once."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinybayes.errors import TinybayesError, error
from tinybayes.infer import compile_circuit, log_evidence, log_partition
from tinybayes.infer.compile_circuit import MAX_EDGES
from tinybayes.model import BayesNet, Circuit, Dataset, Float, LogLinear


def data_rows(net: BayesNet | Circuit, data: Dataset) -> np.ndarray:
    """Return the rows of a data set over all nodes of a model, the class last."""
    if data.variables != net.variables or data.target != net.target:
        raise error(
            "the variables of the network, with the same states and cut points",
            "others",
            where="data",
            remedy="read the table with them: read_dataset(TABLE, like=net)",
        )
    if not len(data):
        raise error("rows", "none", where="data")
    if net.target is None:
        return data.X.astype(np.int32)
    y = np.full(len(data), -1) if data.y is None else data.y
    return np.column_stack([data.X, y]).astype(np.int32)


def entry_counts(net: BayesNet, data: Dataset) -> np.ndarray:
    """Return how often each entry of the tables is used by the complete rows of data."""
    X = data_rows(net, data)
    complete = (X >= 0).all(axis=1)
    weight = None if data.weight is None else data.weight[complete]
    return LogLinear.from_bayes_net(net).counts(X[complete], weight)


def compiled(net: BayesNet, max_edges: int) -> Circuit | None:
    """Return the circuit for all parameters of a network with the same zeros; None when it would be too large."""
    try:
        return compile_circuit(net, max_edges=max_edges, share_equal=False)
    except TinybayesError:
        return None


def normalized_rows(tables: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Divide each row of log-parameters by its sum; a row of zeros stays."""
    found = []
    for logs in tables:
        top = logs.max(axis=1, keepdims=True)
        top = np.where(np.isneginf(top), 0.0, top)
        with np.errstate(divide="ignore"):
            total = top + np.log(np.exp(logs - top).sum(axis=1, keepdims=True))
        found.append(logs - np.where(np.isneginf(total), 0.0, total))
    return found


class Likelihood:
    """Mean log-likelihood of data under tables of the shape and zeros of a network's.

    Parameters
    ----------
    net
        The network.
    data
        The rows; what is unknown in them is summed out.
    circuit
        From `compiled`; needed for rows with unknown values, and for tables whose rows do not sum to one.
    """

    def __init__(self, net: BayesNet, data: Dataset, circuit: Circuit | None) -> None:
        X = data_rows(net, data)
        weight = np.ones(len(X)) if data.weight is None else data.weight
        if not (total := float(weight.sum())) > 0:
            raise error("rows with a weight above zero", "none", where="data")
        partial = (X < 0).any(axis=1)
        if partial.any() and circuit is None:
            remedy = "leave out rows with unknown values, or raise max_edges"
            got = f"unknown values in {partial.sum():,} rows, and a network too large to sum them out"
            raise error("complete rows", got, where="data", remedy=remedy)
        self._total, self._circuit = total, circuit
        self._counts = LogLinear.from_bayes_net(net).counts(X[~partial], weight[~partial])
        self._rows, self._row_weights = X[partial], weight[partial]

    def mean(self, tables: Sequence[np.ndarray], *, by_rows: bool = False) -> float:
        """Return the mean log-likelihood, of the distribution or of the network with normalised rows."""
        values = np.concatenate([table.reshape(-1) for table in (normalized_rows(tables) if by_rows else tables)])
        used = self._counts > 0
        sum_of_logs = float(self._counts[used] @ values[used])
        constant = 0.0
        if self._circuit is not None:
            circuit = replace(self._circuit, table=values, format=Float(64))
            if len(self._rows):
                logs = log_evidence(circuit, self._rows)[self._row_weights > 0]
                sum_of_logs += float(self._row_weights[self._row_weights > 0] @ logs)
            constant = 0.0 if by_rows else log_partition(circuit)
        return sum_of_logs / self._total - constant


def mean_log_likelihood(net: BayesNet, data: Dataset, *, max_edges: int = MAX_EDGES) -> float:
    """Return the exact mean log-likelihood of data in nats, also of a network whose rows do not sum to one.

    Parameters
    ----------
    net
        The network; where its rows do not sum to one it is the log-linear model with these weights.
    data
        The rows; what is unknown in them is summed out.
    max_edges
        The largest circuit to compile for that.

    Raises
    ------
    TinybayesError
        When the circuit would be larger.
    """
    needed = not net.is_normalized() or bool((data_rows(net, data) < 0).any())
    circuit = compile_circuit(net, max_edges=max_edges, share_equal=False) if needed else None
    return Likelihood(net, data, circuit).mean([cpd.log_parameters for cpd in net.cpds])
