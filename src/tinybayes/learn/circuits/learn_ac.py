"""Learning arithmetic circuits (LearnAC of learning_arithmetic_circuits) and tree-CPD Bayesian networks.

Both start from independent variables and split one leaf of one decision tree at a time, whichever improves

    score = log-likelihood - edge_price * edges - parameter_price * parameters

most. With a price on edges the circuit grows along (`_kernels/growing_circuit.py`); without one there is no circuit,
and the learner is the classical one for networks with local structure. What the kernels do step by step is in
`_kernels/grow.py`; here the pools are made and enlarged, progress is told, and the result becomes a network and a
circuit.
"""

from collections.abc import Callable

import numpy as np

from tinybayes.learn.circuits._growing import distinct_rows
from tinybayes.learn.circuits._growth import Grown, Growth, State
from tinybayes.learn.circuits.options import CircuitOptions
from tinybayes.model import Dataset

__all__ = ["CircuitOptions", "Grown", "Growth", "learn_circuit", "learn_tree_cpds"]


def learn_circuit(
    data: Dataset,
    *,
    edge_price: float | None = CircuitOptions.edge_price,
    parameter_price: float = CircuitOptions.parameter_price,
    method: str = CircuitOptions.method,
    smoothing: float = CircuitOptions.smoothing,
    bayesian: bool = CircuitOptions.bayesian,
    max_edges: int | None = CircuitOptions.max_edges,
    seconds: float = CircuitOptions.seconds,
    report: Callable[[Growth], None] | None = None,
    splits: np.ndarray | None = None,
) -> Grown:
    """Learn a circuit whose price of inference is part of the score.

    Parameters
    ----------
    data
        Rows without missing values; a class, if there is one, is one more variable.
    edge_price, parameter_price, method, smoothing, bayesian, max_edges, seconds
        See `CircuitOptions`.
    report
        Called now and then. An interrupt (Ctrl-C) ends the growth; the circuit so far is returned.
    splits
        Of an earlier result on the same data: they are repeated first, without looking for better ones.
    """
    options = CircuitOptions(
        edge_price=edge_price,
        parameter_price=parameter_price,
        method=method,
        smoothing=smoothing,
        bayesian=bayesian,
        max_edges=max_edges,
        seconds=seconds,
    )
    state = State(distinct_rows(data), options)
    if splits is not None:
        state.repeat(splits)
    return state.result(data, state.run_all(seconds, report))


def learn_tree_cpds(
    data: Dataset,
    *,
    parameter_price: float = 1.0,
    smoothing: float = CircuitOptions.smoothing,
    bayesian: bool = CircuitOptions.bayesian,
    seconds: float = CircuitOptions.seconds,
    report: Callable[[Growth], None] | None = None,
) -> Grown:
    """Learn a Bayesian network with decision trees, without regard to the price of inference.

    The arguments are those of `learn_circuit`. A multiplicative penalty kappa for each parameter, as some toolkits have
    it, is a `parameter_price` of -log(kappa).
    """
    options = CircuitOptions(
        edge_price=None, parameter_price=parameter_price, smoothing=smoothing, bayesian=bayesian, seconds=seconds
    )
    state = State(distinct_rows(data), options)
    return state.result(data, state.run_all(seconds, report))
