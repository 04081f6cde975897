"""Expected counts of tie classes: exactly, from a circuit whose plan is kept, and from persistent Gibbs chains."""

import math
from collections.abc import Sequence

import numpy as np

from tinybayes._kernels.circuit_plan import log_coefficients
from tinybayes._kernels.circuits_log import rows_log
from tinybayes._kernels.expectations import partition_and_counts
from tinybayes._kernels.persistent import sweep_chains
from tinybayes._kernels.threads import for_blocks
from tinybayes.errors import error
from tinybayes.infer._circuit_passes import plan_of
from tinybayes.model import Circuit, Factor, LogLinear
from tinybayes.model.layout import strides

_MOST_ENTRIES = 2**24  # of a factor with a decision tree, written out
_CHAINS = 64  # that a thread takes at a time


class ExactCounts:
    """``log Z`` and expected counts of a circuit from `compile_log_linear`, for other weights again and again."""

    def __init__(self, circuit: Circuit) -> None:
        plan = plan_of(circuit)
        first_term, first_child, child, _, target, home, _, used = plan.linear
        self._plan, self._classes = plan, len(circuit.table)
        self._arrays = (first_term, first_child, child, target, home, used, int(plan.first_state[-1]))
        self._scratch = np.empty(len(plan.first_entry) - 1), np.empty(len(home)), np.zeros(plan.places)

    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Return ``log Z`` and the expected count of each class."""
        plan, counts = self._plan, np.empty(self._classes)
        with np.errstate(over="ignore"):
            layout = (self._arrays, plan.first_state, plan.first_entry, plan.entry)
            root = partition_and_counts(*layout, np.exp(weights), *self._scratch, counts)
        if not math.isnan(root):
            return math.log(root), counts
        return self._in_logs(weights)

    def _in_logs(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        plan = self._plan
        logs = log_coefficients(plan.first_entry, plan.entry, weights)
        none, total, flow = np.full((1, len(plan.first_state) - 1), -1, np.int32), np.empty(1), np.zeros(len(logs))
        empty = np.empty((0, 0))
        rows_log((*plan.log[:3], logs), plan.widest, none, plan.first_state, total, empty, np.ones(1), flow)
        terms = np.repeat(np.arange(len(flow)), np.diff(plan.first_entry))
        return float(total[0]), np.bincount(plan.entry, flow[terms], self._classes)


class Chains:
    """Gibbs chains that live on while the weights change: their counts are samples of the model's.

    Parameters
    ----------
    model
        The model.
    start
        Complete rows that it allows, one for each chain.
    seed
        The same seed gives the same chains.
    """

    def __init__(self, model: LogLinear, start: np.ndarray, seed: int) -> None:
        self._layout = _layout(model)
        self.X = np.ascontiguousarray(start, dtype=np.int32).copy()
        seeds = np.random.default_rng(seed).integers(0, 2**64, len(start), dtype=np.uint64)
        self._random, self._classes = seeds, len(model.weights)

    def __call__(self, weights: np.ndarray, sweeps: int = 1) -> np.ndarray:
        """Run all chains on; return the counts of the classes, shape (chains, classes)."""
        counts = np.empty((len(self.X), self._classes))

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            sweep_chains(self._layout, weights, self.X[part], self._random[part], sweeps, counts[part])

        for_blocks(work, len(self.X), _CHAINS)
        return counts


def _layout(model: LogLinear) -> tuple[np.ndarray, ...]:
    """Lay a model out as `_kernels/persistent.py` describes."""
    cards = model.cardinalities
    classes = np.append(model.classes, -1)
    tables = [classes[_entries(factor, cards)] for factor in model.factors]
    of_variable: list[list[tuple[int, int]]] = [[] for _ in cards]
    for number, factor in enumerate(model.factors):
        for v, step in zip(factor.scope, strides([cards[v] for v in factor.scope]), strict=True):
            of_variable[v].append((number, step))
    pairs = np.array([pair for some in of_variable for pair in some], dtype=np.int64).reshape(-1, 2)
    return (
        np.concatenate(tables).astype(np.int32) if tables else np.empty(0, np.int32),
        np.cumsum([0, *map(len, tables)]),
        np.cumsum([0, *map(len, of_variable)]),
        np.ascontiguousarray(pairs[:, 0]),
        np.ascontiguousarray(pairs[:, 1]),
        np.array(cards, dtype=np.int64),
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
