"""Gibbs sampling of log-linear models, many chains side by side, for expected counts of tie classes."""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit
from tinybayes._kernels.streams import uniform


class Factors(NamedTuple):
    """The factors of a model as flat arrays."""

    table: np.ndarray  # entries of all factors: a tie class, or -1 for none
    first_entry: np.ndarray  # (factors + 1,) into table
    first_factor: np.ndarray  # (variables + 1,) into factor and stride: the factors of each variable
    factor: np.ndarray
    stride: np.ndarray  # the distance of two neighbouring states of the variable in that factor's entries
    cards: np.ndarray  # (variables,)


@jit
def sweep_chains(factors, weights, X, random, sweeps, counts):
    """Draw every variable of every chain anew, `sweeps` times; write the counts of the classes of each chain.

    A chain must start at an assignment that the model allows; it then never leaves those.
    """
    table, first_entry, first_factor, factor, stride, cards = factors
    cell, scores = np.empty(len(first_entry) - 1, np.int64), np.empty(cards.max())
    for chain in range(len(X)):
        cell[:] = first_entry[:-1]
        for v in range(len(cards)):
            for k in range(first_factor[v], first_factor[v + 1]):
                cell[factor[k]] += stride[k] * X[chain, v]
        for _ in range(sweeps):
            for v in range(len(cards)):
                start, stop, now = first_factor[v], first_factor[v + 1], X[chain, v]
                top = -np.inf
                for state in range(cards[v]):
                    total = 0.0
                    for k in range(start, stop):
                        entry = table[cell[factor[k]] + stride[k] * (state - now)]
                        if entry >= 0:
                            total += weights[entry]
                    scores[state] = total
                    top = max(top, total)
                total = 0.0
                for state in range(cards[v]):
                    total += np.exp(scores[state] - top)
                    scores[state] = total
                drawn, new = uniform(random[chain : chain + 1]) * total, 0
                while new < cards[v] - 1 and scores[new] <= drawn:
                    new += 1
                if new != now:
                    for k in range(start, stop):
                        cell[factor[k]] += stride[k] * (new - now)
                    X[chain, v] = new
        counts[chain] = 0.0
        for f in range(len(cell)):
            if table[cell[f]] >= 0:
                counts[chain, table[cell[f]]] += 1.0
