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

from tinybayes.errors import error
from tinybayes.learn.circuits._growing import distinct_rows
from tinybayes.learn.circuits._growth import Grown, Growth, State, check_options
from tinybayes.model import Dataset

__all__ = ["Grown", "Growth", "learn_circuit", "learn_tree_cpds"]


def learn_circuit(
    data: Dataset,
    *,
    edge_price: float = 0.1,
    parameter_price: float = 0.0,
    method: str = "quick",
    smoothing: float = 1.0,
    bayesian: bool = False,
    max_edges: int | None = None,
    seconds: float = float("inf"),
    report: Callable[[Growth], None] | None = None,
    splits: np.ndarray | None = None,
) -> Grown:
    """Learn a circuit whose price of inference is part of the score.

    Parameters
    ----------
    data
        Rows without missing values; a class, if there is one, is one more variable.
    edge_price, parameter_price
        k_e and k_p of the score. Parameters are counted free: a split on a variable of v values in the tree of one of
        k values adds (v - 1)(k - 1).
    method
        ``"quick"`` supposes that the number of edges that a split costs never falls; ``"greedy"`` takes the best split
        every time.
    smoothing
        Spread uniformly over the states of each leaf's distribution.
    bayesian
        Score leaves by their marginal likelihood under a Dirichlet prior of this weight, not by likelihood.
    max_edges, seconds
        Limits; the circuit so far is returned.
    report
        Called now and then. An interrupt (Ctrl-C) ends the growth; the circuit so far is returned.
    splits
        Of an earlier result on the same data: they are repeated first, without looking for better ones.
    """
    if method not in ("quick", "greedy"):
        raise error("'quick' or 'greedy'", repr(method), where="method")
    check_options(edge_price, parameter_price, smoothing, max_edges, seconds)
    rows = distinct_rows(data)
    state = State(rows, edge_price, parameter_price, method == "greedy", smoothing, bayesian, max_edges)
    if splits is not None:
        state.repeat(splits)
    return state.result(data, state.run_all(seconds, report))


def learn_tree_cpds(
    data: Dataset,
    *,
    parameter_price: float = 1.0,
    smoothing: float = 1.0,
    bayesian: bool = False,
    seconds: float = float("inf"),
    report: Callable[[Growth], None] | None = None,
) -> Grown:
    """Learn a Bayesian network with decision trees, without regard to the price of inference.

    The arguments are those of `learn_circuit`. A multiplicative penalty kappa for each parameter, as some toolkits have
    it, is a `parameter_price` of -log(kappa).
    """
    check_options(None, parameter_price, smoothing, None, seconds)
    state = State(distinct_rows(data), None, parameter_price, False, smoothing, bayesian, None)
    return state.result(data, state.run_all(seconds, report))
