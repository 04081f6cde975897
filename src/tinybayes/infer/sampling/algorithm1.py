"""Algorithm 1 of *On Parameter Tying by Quantization* as it is printed: a reference.

For each tie class the number of its true features is drawn from a binomial distribution (Equation 5), then which of
them (4), then an assignment uniformly among those that have exactly these features; the weight is their number times a
constant. The binomial coefficients of the two equations cancel: every feature is true by itself with chance
``sigmoid(mu)``, tied or not. Where each table of a network must have exactly one true feature, nearly all samples have
the weight zero, so that this is for models of clauses and for small networks.
"""

import numpy as np

from tinybayes._kernels.constraints import algorithm1 as draw
from tinybayes._kernels.draws import Weighted
from tinybayes.errors import error
from tinybayes.infer.sampling._constraints import digits_of, shape_of, way_of
from tinybayes.infer.sampling._problem import Problem
from tinybayes.infer.sampling._schedule import elimination_order, make_units
from tinybayes.infer.sampling._weighted import run
from tinybayes.infer.sampling.result import Budget, Marginals, Progress
from tinybayes.model import Variable

LARGEST = 2**18  # entries of the tables that are filled for each sample


def algorithm1(
    variables: tuple[Variable, ...], problem: Problem, budget: Budget, seed: int, progress: Progress | None = None
) -> Marginals:
    """Estimate all marginals; the problem must have been restricted with ``apart=True``."""
    return run(variables, problem, _Printed(problem), budget, seed, "algorithm1", progress)


class _Printed:
    """The printed proposal."""

    def __init__(self, problem: Problem) -> None:
        units = make_units(problem.scopes, problem.states, elimination_order(problem.scopes, problem.states))
        if units.entries > LARGEST:
            remedy = "method='tied' or 'mcsat' do without a count for each sample"
            raise error(
                f"tables of at most {LARGEST:,} entries", f"{units.entries:,}", where="algorithm1", remedy=remedy
            )
        self.problem, self.units = problem, units
        self.shape, self.way = shape_of(problem), way_of(units)
        # A feature is one of its factor: what stands in two factors counts twice.
        offset, parts, classes = 0, [], []
        for feature, entries in zip(problem.features, problem.classes, strict=True):
            own, where = np.unique(feature, return_index=True)
            where, own = where[own >= 0], own[own >= 0]
            parts.append(np.where(feature >= 0, offset + np.searchsorted(own, feature), -1))
            classes.append(entries[where])
            offset += len(own)
        self.feature = np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)
        of_class = np.concatenate([np.empty(0, np.int64), *classes]).astype(np.int64)
        self.member = np.argsort(of_class, kind="stable")
        used, sizes = np.unique(of_class, return_counts=True)
        self.groups = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        weights = problem.weights[used]
        self.chance_true = np.exp(-np.logaddexp(0.0, -weights))
        self.scale = float((sizes * np.logaddexp(0.0, weights)).sum())
        self.log_scale = problem.constant
        self.notes: tuple[str, ...] = ()

    def draw(self, count: int, key: np.ndarray, sums: Weighted) -> None:
        problem, units = self.problem, self.units
        buffers = (
            np.zeros(len(self.member), dtype=np.int8),
            np.zeros(units.tables),
            np.empty(units.entries),
            digits_of(units),
            np.zeros(len(problem.free), dtype=np.int32),
            np.zeros(int(problem.first_state[-1])),
            np.zeros(max(len(self.member), 1), dtype=np.int64),
        )
        arrays = (self.feature, self.groups, self.member, self.chance_true, self.scale)
        random = np.zeros(1, dtype=np.uint64)
        draw(self.shape, units.plan, self.way, *arrays, count, key, buffers, random, sums)
