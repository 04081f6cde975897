"""Expected counts of tie classes from persistent Gibbs chains."""

import math
from collections.abc import Sequence

import numpy as np

from tinybayes._kernels.persistent import Factors, sweep_chains
from tinybayes._kernels.threads import for_blocks
from tinybayes.errors import error
from tinybayes.model import Factor, LogLinear
from tinybayes.model.layout import strides

_MOST_ENTRIES = 2**24  # of a factor with a decision tree, written out
_CHAINS = 64  # that a thread takes at a time


class Chains:
    """Gibbs chains that live on while the weights change: their counts are samples of the model's.

    They start at complete rows that the model allows, one for each chain.
    """

    def __init__(self, model: LogLinear, start: np.ndarray, seed: int) -> None:
        self._factors = _flat_factors(model)
        self.X = np.ascontiguousarray(start, dtype=np.int32).copy()
        seeds = np.random.default_rng(seed).integers(0, 2**64, len(start), dtype=np.uint64)
        self._random, self._classes = seeds, len(model.weights)

    def __call__(self, weights: np.ndarray, sweeps: int = 1) -> np.ndarray:
        """Run all chains on; return the counts of the classes, shape (chains, classes)."""
        counts = np.empty((len(self.X), self._classes))

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            sweep_chains(self._factors, weights, self.X[part], self._random[part], sweeps, counts[part])

        for_blocks(work, len(self.X), _CHAINS)
        return counts


def _flat_factors(model: LogLinear) -> Factors:
    cards = model.cardinalities
    classes = np.append(model.classes, -1)
    tables = [classes[_entries(factor, cards)] for factor in model.factors]
    of_variable: list[list[tuple[int, int]]] = [[] for _ in cards]
    for number, factor in enumerate(model.factors):
        for v, step in zip(factor.scope, strides([cards[v] for v in factor.scope]), strict=True):
            of_variable[v].append((number, step))
    pairs = np.array([pair for some in of_variable for pair in some], dtype=np.int64).reshape(-1, 2)
    return Factors(
        table=np.concatenate(tables).astype(np.int32) if tables else np.empty(0, np.int32),
        first_entry=np.cumsum([0, *map(len, tables)]),
        first_factor=np.cumsum([0, *map(len, of_variable)]),
        factor=np.ascontiguousarray(pairs[:, 0]),
        stride=np.ascontiguousarray(pairs[:, 1]),
        cards=np.array(cards, dtype=np.int64),
    )


def _entries(factor: Factor, cards: Sequence[int]) -> np.ndarray:
    """Return the features of a factor, one for each assignment of its scope."""
    if factor.tree is None:
        return factor.feature
    sizes = [cards[v] for v in factor.scope]
    if (entries := math.prod(sizes)) > _MOST_ENTRIES:
        raise error(f"factors of at most {_MOST_ENTRIES:,} assignments", f"{entries:,}", where="sampling")
    rows = np.zeros((entries, len(cards)), dtype=np.int32)
    rows[:, list(factor.scope)] = np.indices(sizes).reshape(len(sizes), -1).T
    return factor.find(rows, cards)
