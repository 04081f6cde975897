"""The likelihood of complete rows under a Bayesian network, without a circuit."""

import numpy as np

from tinybayes.model import BayesNet, LogLinear


def log_likelihood(net: BayesNet, X: np.ndarray) -> np.ndarray:
    """Return the log-probability of each complete row: the sum of one entry of each table.

    Networks with decision trees need no circuit for this, however large one would be; for rows with unknown values
    see `log_evidence`.

    Parameters
    ----------
    net
        The network. Where its rows do not sum to one, as after quantisation, so do not the probabilities.
    X
        Codes, shape (rows, variables), the class last.

    Returns
    -------
    ndarray of float64, shape (rows,)
        Minus infinity for a row that the network excludes.

    Raises
    ------
    TinybayesError
        When the rows do not belong to the variables, or a value is unknown.
    """
    return LogLinear.from_bayes_net(net).log_weights(X)
