"""Algorithm 1 of *On Parameter Tying by Quantization* as it is printed: a reference.

For each tie class the number of its true features is drawn from a binomial distribution (Equation 5), then which of
them (4), then an assignment uniformly among those that have exactly these features; the weight is their number times a
constant. The binomial coefficients of the two equations cancel: every feature is independently true with chance
``sigmoid(mu)``, tied or not. Where each table of a network must have exactly one true feature, nearly all samples have
the weight zero, so that this is for models of clauses and for small networks.
"""

import numpy as np

from tinybayes._kernels import plain
from tinybayes._kernels.buckets import count_up
from tinybayes._kernels.constraints import go_back
from tinybayes._kernels.draws import Weighted
from tinybayes._kernels.streams import start_stream, uniform
from tinybayes.errors import error
from tinybayes.infer.orders import quick_order
from tinybayes.infer.sampling.problem import Evidence, Problem, as_log_linear, observed, restrict
from tinybayes.infer.sampling.result import Budget, Marginals
from tinybayes.infer.sampling.schedule import make_units
from tinybayes.infer.sampling.weighted import run
from tinybayes.model import BayesNet, LogLinear

LARGEST = 2**18  # entries of the tables that are filled for each sample


def algorithm1(
    model: BayesNet | LogLinear,
    evidence: Evidence = None,
    *,
    seconds: float | None = None,
    samples: int | None = None,
    seed: int = 0,
) -> Marginals:
    """Estimate the posterior of every variable; the arguments are those of `tinybayes.marginals`."""
    budget, linear = Budget.start(seconds, samples), as_log_linear(model)
    problem = restrict(linear, observed(linear.variables, evidence), apart=True, closed=False)
    return run(problem, _Printed(problem), budget, seed, "algorithm1", None)


class _Printed:
    """The printed proposal."""

    def __init__(self, problem: Problem) -> None:
        units = make_units(problem.scopes, problem.states, quick_order(problem.scopes, problem.states))
        if units.entries > LARGEST:
            remedy = "the methods 'tied' and 'mcsat' of tinybayes.marginals do without a count for each sample"
            raise error(
                f"tables of at most {LARGEST:,} entries", f"{units.entries:,}", where="algorithm1", remedy=remedy
            )
        self.problem, self.units = problem, units
        self.shape, self.way = problem.shape, units.way
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
            units.digits(),
            np.zeros(len(problem.free), dtype=np.int32),
            np.zeros(int(problem.first_state[-1])),
            np.zeros(max(len(self.member), 1), dtype=np.int64),
        )
        arrays = (self.feature, self.groups, self.member, self.chance_true, self.scale)
        random = np.zeros(1, dtype=np.uint64)
        _draw(self.shape, units.plan, self.way, *arrays, count, key, buffers, random, sums)


@plain
def _draw(shape, plan, way, feature, groups, member, chance_true, scale, count, seed, buffers, random, sums):
    """Draw samples of the printed Algorithm 1 and add them to the sums.

    `feature` gives the feature of each entry, -1 for none; those of group g are ``member[groups[g]:groups[g + 1]]``.
    """
    truth, tables, joint, digits, x, chance, shuffled = buffers
    start_stream(seed, random)
    for _ in range(count):
        truth[:] = 0
        for g in range(len(groups) - 1):
            begin, size = groups[g], groups[g + 1] - groups[g]
            chosen = 0  # j, binomial
            for k in range(size):
                shuffled[k] = member[begin + k]
                chosen += uniform(random) < chance_true[g]
            for k in range(chosen):  # j of them at random
                other = k + np.int64(uniform(random) * (size - k))
                shuffled[k], shuffled[other] = shuffled[other], shuffled[k]
                truth[shuffled[k]] = 1
        log_count = -np.inf
        if _demand(shape, feature, truth, tables):
            log_count = count_up(plan, tables, joint, digits)
        if log_count == -np.inf:
            sums.weights[3] += 1.0
            continue
        go_back(plan, way, joint, shape.first_state, x, chance, random)
        _add(sums, scale + log_count, chance)


@plain
def _demand(shape, feature, truth, tables):
    """Turn the features that must be true, and those that must not, into constraints; False when two cannot both be."""
    for f in range(len(shape.first_entry) - 1):
        begin, end = shape.first_entry[f], shape.first_entry[f + 1]
        wanted = -1
        for e in range(begin, end):
            if feature[e] >= 0 and truth[feature[e]]:
                if wanted >= 0 and feature[e] != wanted:
                    return False
                wanted = feature[e]
        for e in range(begin, end):
            tables[e] = 1.0 if feature[e] == wanted else 0.0
    return True


@plain
def _add(sums, log_weight, chance):
    """Add a sample with all its chances."""
    if log_weight > sums.weights[0]:
        factor = np.exp(sums.weights[0] - log_weight) if sums.weights[0] > -np.inf else 0.0
        sums.weights[1] *= factor
        sums.weights[2] *= factor * factor
        for s in range(len(chance)):
            sums.first[s] *= factor
            sums.second[s] *= factor * factor
            sums.third[s] *= factor * factor
        sums.weights[0] = log_weight
    weight = np.exp(log_weight - sums.weights[0])
    square = weight * weight
    sums.weights[1] += weight
    sums.weights[2] += square
    for s in range(len(chance)):
        sums.first[s] += weight * chance[s]
        sums.second[s] += square * chance[s]
        sums.third[s] += square * chance[s] * chance[s]
