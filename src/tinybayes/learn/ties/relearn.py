"""Relearning tied weights from data (parameter_tying_by_quantization, eq. 2).

With ties, the mean log-likelihood of rows is ``t . w - log Z(w)``, where t are the mean counts of the tie classes in
the rows. It is concave, and its gradient is t less the expected counts of the model. A circuit, compiled once, gives
``log Z`` and the expectations for all weights. Where a circuit would be too large, persistent Gibbs chains sample the
expectations, and the result is called approximate.

A class that no row uses would get the weight minus infinity. Therefore the first model may count as some more rows: its
expected counts are added to those of the data. This is the conjugate prior of the family. No weights fit those rows
better than the first ones do, so the whole gain is a gain on the data: Proposition 1 holds with the prior too.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from tinybayes.cost import cheapest_format
from tinybayes.errors import TinybayesError, error
from tinybayes.extras import require
from tinybayes.infer import compile_circuit
from tinybayes.infer.circuit_passes import ExpectedCounts
from tinybayes.infer.likelihood import dataset_rows
from tinybayes.learn.interrupts import interruptible
from tinybayes.learn.ties.chains import Chains
from tinybayes.model import BayesNet, Circuit, Codebook, Dataset, Float, LogLinear, NumberFormat, Variable
from tinybayes.model.number_format import singles
from tinybayes.options import MOST_SEED, check_options, option

MAX_RELEARN_EDGES = 20_000_000
REACH = 30.0
"""The largest distance of a weight from its start, for weights that the data would send to infinity."""
_LAST = 50  # sweeps after the last step, which measure the remaining difference of the counts
_ERRORS = 5.0  # standard errors within which they must lie
Method = Literal["exact", "rows", "approximate"]
M = TypeVar("M", LogLinear, BayesNet)
Expectations = Callable[[np.ndarray], tuple[float, np.ndarray]]


@dataclass(frozen=True, kw_only=True)
class RelearnOptions:
    """The hyper-parameters of `relearn`."""

    prior: float | Literal["auto"] = option("auto", "Rows that the model counts for; auto: one if a level is unused.")
    tolerance: float = option(1e-6, "Stop when no mean count differs by more from the model's.", low=0)
    steps: int = option(1000, "Stop after so many steps.", low=1)
    max_edges: int = option(MAX_RELEARN_EDGES, "Largest circuit to compile; beyond it, the model is sampled.", low=0)
    chains: int = option(1000, "Gibbs chains, where the model is sampled.", low=1)
    sweeps: int = option(2, "Sweeps of the chains between two steps.", low=1)
    seed: int = option(0, "Seed of the chains.", low=0, high=MOST_SEED)

    def __post_init__(self) -> None:
        check_options(self)
        if self.prior != "auto" and not (isinstance(self.prior, float | int) and 0 <= self.prior < np.inf):
            raise error("a finite number that is not negative, or 'auto'", repr(self.prior), where="prior")


@dataclass(frozen=True)
class RelearnProgress:
    """The state of relearning: steps, mean log-likelihood (None when only sampled), gradient, seconds."""

    step: int
    log_likelihood: float | None
    gradient: float
    seconds: float


@dataclass(frozen=True)
class Relearned(Generic[M]):
    """The result of `relearn`.

    Parameters
    ----------
    model
        The model with new weights, and the same ties.
    method
        ``"exact"``; ``"rows"``, with normalised rows; or ``"approximate"``, from persistent samples.
    before, after
        Mean log-likelihood of the rows learned from, in nats, before and after; None when approximate. By Proposition 1
        `after` is never below `before`.
    log_partition
        ``log Z`` of the model; None when approximate.
    steps, gradient, converged
        Steps taken; the largest difference that remains between mean counts in the rows and in the model; whether it is
        within the tolerance (when approximate: within the error of the samples).
    prior
        The number of rows that the model itself counted for, beside the data.
    unused
        Tie classes that no row uses; without a prior the likelihood would send their weights to minus infinity.
    limited
        Tie classes whose weights stopped at a distance of `REACH`, since the likelihood would send them to infinity.
    complete
        False when an interrupt ended it.
    seconds
        Wall time.
    """

    model: M
    method: Method
    before: float | None
    after: float | None
    log_partition: float | None
    steps: int
    gradient: float
    converged: bool
    prior: float
    unused: int
    limited: int
    complete: bool
    seconds: float


def relearn(
    model: M,
    data: Dataset,
    *,
    normalized: bool = False,
    circuit: Circuit | None = None,
    report: Callable[[RelearnProgress], None] | None = None,
    **options: Any,
) -> Relearned[M]:
    """Find the weights of the tie classes that make data most likely.

    Parameters
    ----------
    model
        A log-linear model, or a network whose tables are in a `Codebook` (see `tie`). The result is of the same type.
        Tables that are not in a codebook have a class for each entry and become floats.
    data
        Rows of its variables without unknown values, such as those that the first weights were learned from.
    normalized
        Normalise every row of a network's tables. Without it, the rows of the result do not sum to one: the network is
        a log-linear model, with the constant `Relearned.log_partition`. With it, no inference is needed and the result
        is a Bayesian network, but it has more distinct parameters, since a weight means another probability in a row
        with other weights. They are stored in a codebook or in 32-bit floats, whichever is cheaper.
    circuit
        From ``compile_circuit(model, by="feature")``, of this model or of one with the same factors and the same
        forbidden features: saves compiling when several ties of one model are learned.
    report
        Called after each step. An interrupt (Ctrl-C) ends the work; the best weights so far are returned.
    **options
        The fields of `tinybayes.learn.RelearnOptions`.

    Raises
    ------
    TinybayesError
        When rows have unknown values, or one is impossible under the model.
    """
    settings = RelearnOptions(**options)
    source = model if isinstance(model, LogLinear) else LogLinear.from_bayes_net(model)
    rows, weight = complete_rows(source.variables, data)
    counts, total = source.class_counts(rows, weight), float(weight.sum())
    ascent = Ascent(source.weights, counts, total, settings, report)
    if normalized:
        if not isinstance(model, BayesNet):
            raise error("a Bayesian network", "a log-linear model", where="normalized")
        counts = source.counts(rows, weight)
        return _with_normalized_rows(model, source, counts / total, ascent)  # type: ignore[return-value]
    if circuit is not None:
        _check_circuit(circuit, source)
    try:
        exact = _expectations(source, circuit, settings.max_edges)
    except TinybayesError:
        start = rows[np.random.default_rng(settings.seed).choice(len(rows), settings.chains, p=weight / total)]
        _by_samples(ascent, counts / total, Chains(source, start, settings.seed), settings.sweeps)
        return ascent.result(_with_weights(model, ascent.weights)[0], "approximate", None, None, None)
    return _exactly(model, source, counts / total, exact, ascent)


class Point(NamedTuple):
    """Free weights, the value of the objective there, and the largest slope that remains."""

    weights: np.ndarray
    value: float
    left: float


class Ascent:
    """Maximises the likelihood over the finite weights of tie classes, given their counts in rows of a total weight."""

    def __init__(
        self,
        start: np.ndarray,
        counts: np.ndarray,
        total: float,
        options: RelearnOptions,
        report: Callable[[RelearnProgress], None] | None,
    ) -> None:
        if (np.isneginf(start) & (counts > 0)).any():
            remedy = "smooth the model (for a network: tie with zeros=1e-4), or leave these rows out"
            raise error("data that the model allows", "rows of probability zero", where="data", remedy=remedy)
        self.start, self.options, self.report, self.free = start, options, report, np.isfinite(start)
        self.unused = int((self.free & (counts == 0)).sum())
        self.prior = float(self.unused > 0) if options.prior == "auto" else float(options.prior)
        self.share = self.prior / (total + self.prior)
        self.spread = np.sqrt(np.maximum(counts[self.free] / total, 1e-4))
        self.weights, self.left, self.steps, self.converged, self.complete = start, np.inf, 0, False, True
        self._began = time.perf_counter()

    def full(self, moved: np.ndarray) -> np.ndarray:
        """Return all weights, given the free ones."""
        weights = self.start.copy()
        weights[self.free] = moved
        return weights

    def tell(self, value: float | None, left: float) -> None:
        """Count a step and report it."""
        self.steps += 1
        if self.report is not None:
            self.report(RelearnProgress(self.steps, value, left, time.perf_counter() - self._began))

    def climb(self, objective: Callable[[np.ndarray], tuple[float, np.ndarray]]) -> np.ndarray:
        """Maximise a concave function by L-BFGS; an interrupt ends it. Return the best weights seen.

        Some classes are used far more often than others. Scaled by the spread of its count, each weight has about the
        same curvature.
        """
        require("scipy")
        from scipy.optimize import minimize  # here, since whatever learns would load it

        start, spread = self.start[self.free], self.spread
        if not len(start):
            self.left, self.converged = 0.0, True
            return self.start
        best = now = Point(start, -np.inf, np.inf)

        def loss(u: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal best, now
            w = start + u / spread
            value, slope = objective(self.full(w))
            slope = slope[self.free]
            inside = np.abs(w - start) < REACH * (1 - 1e-9)
            now = Point(w, value, float(np.abs(slope[inside]).max(initial=0.0)))
            if now.value > best.value or (now.left < best.left and now.value >= best.value - 1e-12 * abs(best.value)):
                best = now
            return -value, -slope / spread

        with interruptible() as interrupted:

            def after_step(_: np.ndarray) -> None:
                self.tell(now.value, now.left)
                if interrupted.is_set() or now.left <= self.options.tolerance:
                    raise StopIteration

            limits = np.stack([-REACH * spread, REACH * spread], axis=1)
            steps = self.options.steps
            how = {"maxiter": steps, "maxfun": 20 * steps, "ftol": 0.0, "gtol": 0.0, "maxcor": 30}
            still = np.zeros(len(start))
            minimize(loss, still, jac=True, method="L-BFGS-B", bounds=limits, callback=after_step, options=how)
            self.complete = not interrupted.is_set()
        self.left, self.converged = best.left, best.left <= self.options.tolerance
        self.weights = self.full(best.weights)
        return self.weights

    def result(
        self, model: M, method: Method, before: float | None, after: float | None, log_partition: float | None
    ) -> Relearned[M]:
        """Return the result."""
        moved = np.abs(self.weights[self.free] - self.start[self.free])
        return Relearned(
            model,
            method,
            before,
            after,
            log_partition,
            steps=self.steps,
            gradient=self.left,
            converged=self.converged,
            prior=self.prior,
            unused=self.unused,
            limited=int((moved >= REACH * (1 - 1e-9)).sum()),
            complete=self.complete,
            seconds=time.perf_counter() - self._began,
        )


def _exactly(model: M, source: LogLinear, counts: np.ndarray, exact: Expectations, ascent: Ascent) -> Relearned[M]:
    """Climb, given the mean counts of the classes and their expectations."""
    aims = (1 - ascent.share) * counts
    if ascent.share:
        aims += ascent.share * exact(source.weights)[1]
    result, stored = _with_weights(model, ascent.climb(lambda w: _likelihood(w, aims, exact)))
    before, after = (_likelihood(w, counts, exact)[0] for w in (source.weights, stored))
    if after < before:  # the model was at its best, and rounding its weights costs more than is gained
        result, stored, after = model, source.weights, before
    return ascent.result(result, "exact", before, after, exact(stored)[0])


def _expectations(source: LogLinear, circuit: Circuit | None, max_edges: int) -> Expectations:
    """Return the function from weights of classes to ``log Z`` and expected counts of classes."""
    if circuit is None:
        return ExpectedCounts(compile_circuit(source, max_edges=max_edges))
    by_feature, ties, count = ExpectedCounts(circuit), source.classes, len(source.weights)

    def expectations(weights: np.ndarray) -> tuple[float, np.ndarray]:
        log_z, features = by_feature(weights[ties])
        return log_z, np.bincount(ties, features, count)

    return expectations


def _likelihood(weights: np.ndarray, counts: np.ndarray, exact: Expectations) -> tuple[float, np.ndarray]:
    """Return the mean log-likelihood of rows with these mean counts, and its gradient."""
    log_z, expected = exact(weights)
    used = counts > 0
    return float(counts[used] @ weights[used]) - log_z, counts - expected


def _check_circuit(circuit: Circuit, source: LogLinear) -> None:
    if circuit.nodes != source.variables or len(circuit.table) != source.n_features:
        expected = f"a circuit of the model with {source.n_features} parameters, one a feature"
        raise error(expected, f"one of {len(circuit.table)}", where="circuit", remedy="compile it with by='feature'")
    if (np.isneginf(circuit.log_parameters) & ~np.isneginf(source.feature_weights)).any():
        raise error("nothing forbidden but what the model forbids", "more", where="circuit", remedy="compile again")


def complete_rows(variables: Sequence[Variable], data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return rows over all variables and their weights, without rows of weight zero."""
    rows = dataset_rows(variables, data)
    weight = np.ones(len(rows)) if data.weight is None else data.weight
    rows, weight = rows[weight > 0], weight[weight > 0]
    if not len(rows):
        raise error("rows with a weight above zero", "none", where="data")
    if partial := int((rows < 0).any(axis=1).sum()):
        remedy = "leave these rows out, or fill them in"
        raise error("rows without unknown values", f"{partial:,} with some", where="data", remedy=remedy)
    return rows, weight


def _by_samples(ascent: Ascent, counts: np.ndarray, chains: Chains, sweeps: int) -> None:
    """Follow the sampled gradient with decreasing steps; the weights are the mean over the second half of the steps.

    Each step is divided by the variance of the class's count so far.
    """
    free, steps, aims = ascent.free, ascent.options.steps, counts
    if ascent.share:
        aims = (1 - ascent.share) * counts + ascent.share * chains(ascent.start, _LAST).mean(axis=0)
    aims = aims[free]
    w, mean, taken = ascent.start[free], np.zeros(len(aims)), 0
    variance = np.maximum(aims, 1e-4)
    with interruptible() as interrupted:
        for step in range(steps):
            seen = chains(ascent.full(w), sweeps)[:, free]
            variance += (np.maximum(seen.var(axis=0), 1e-4) - variance) / (step + 2)
            slope = aims - seen.mean(axis=0)
            w = w + 0.3 / (1 + 10 * step / steps) * slope / variance
            if step >= steps // 2:
                taken += 1
                mean += (w - mean) / taken
            ascent.tell(None, float(np.abs(slope).max(initial=0.0)))
            if interrupted.is_set():
                ascent.complete = False
                break
    ascent.weights = ascent.full(mean if taken else w)
    seen = chains(ascent.weights, _LAST)[:, free]
    apart = np.abs(aims - seen.mean(axis=0))
    error_of_mean = np.sqrt((seen.var(axis=0) + 1 / len(seen)) / len(seen))
    ascent.left = float(apart.max(initial=0.0))
    ascent.converged = bool((apart <= _ERRORS * error_of_mean).all())


def _with_normalized_rows(net: BayesNet, source: LogLinear, counts: np.ndarray, ascent: Ascent) -> Relearned[BayesNet]:
    """Climb with the rows of all tables normalised, given the mean counts of the entries."""
    rows = _Rows(net, source)
    aims = (1 - ascent.share) * counts + ascent.share * np.exp(rows.logs(source.weights)) * rows.share
    weights = ascent.climb(lambda w: rows.likelihood(w, aims))
    before, after = (rows.likelihood(w, counts)[0] for w in (source.weights, weights))
    if after < before:
        weights, after = source.weights, before
    tables = _tables(net, singles(rows.logs(weights)))
    stored = _stored(net, tables, [cheapest_format(tables)] * len(tables))
    return ascent.result(stored, "rows", before, after, 0.0)


class _Rows:
    """The likelihood of complete rows under a network, as a function of the weights of its tie classes.

    An entry's log-parameter is the weight of its class less the logarithm of the sum over its row, so every row sums to
    one whatever the weights are. The likelihood is concave: linear terms less logarithms of sums of exponentials.
    """

    def __init__(self, net: BayesNet, source: LogLinear) -> None:
        self._ties, self._classes = source.classes, len(source.weights)
        sizes = [cpd.table.shape for cpd in net.cpds]
        self._widths = np.repeat([columns for _, columns in sizes], [lines for lines, _ in sizes])
        self._first = np.cumsum(self._widths) - self._widths
        # As a prior, the network counts as some rows more, in each table spread evenly over its rows.
        self.share = np.repeat([1 / lines for lines, _ in sizes], [math.prod(size) for size in sizes])

    def logs(self, weights: np.ndarray) -> np.ndarray:
        """Return the normalised log-parameters."""
        values = weights[self._ties]
        top = np.maximum.reduceat(values, self._first)
        values = values - np.repeat(np.where(np.isneginf(top), 0.0, top), self._widths)
        with np.errstate(divide="ignore"):
            sums = np.log(np.add.reduceat(np.exp(values), self._first))
        return np.asarray(values - np.repeat(np.where(np.isneginf(sums), 0.0, sums), self._widths))

    def likelihood(self, weights: np.ndarray, mean: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean log-likelihood of rows with these mean counts, and its gradient."""
        values, used = self.logs(weights), mean > 0
        slope = mean - np.repeat(np.add.reduceat(mean, self._first), self._widths) * np.exp(values)
        return float(mean[used] @ values[used]), np.bincount(self._ties, slope, self._classes)


def _with_weights(model: M, weights: np.ndarray) -> tuple[M, np.ndarray]:
    """Return the model with other weights of its tie classes, and these weights as they are stored."""
    if isinstance(model, LogLinear):
        return replace(model, weights=weights), weights  # type: ignore[call-arg]  # no type is both
    stored = singles(weights)  # the price counts 32 bits a level
    tables = _tables(model, stored[LogLinear.from_bayes_net(model).classes])
    books: dict[NumberFormat, NumberFormat] = {}
    for form in {cpd.format for cpd in model.cpds}:
        own = [table.reshape(-1) for table, cpd in zip(tables, model.cpds, strict=True) if cpd.format == form]
        levels = np.unique(np.concatenate(own))
        books[form] = Codebook(tuple(levels.tolist())) if isinstance(form, Codebook) else Float()
    return _stored(model, tables, [books[cpd.format] for cpd in model.cpds]), stored


def _tables(net: BayesNet, values: np.ndarray) -> list[np.ndarray]:
    """Cut the values of all entries into tables."""
    parts = np.split(values, np.cumsum([cpd.table.size for cpd in net.cpds])[:-1])
    return [part.reshape(cpd.table.shape) for cpd, part in zip(net.cpds, parts, strict=True)]


def _stored(net: BayesNet, tables: Sequence[np.ndarray], formats: Sequence[NumberFormat]) -> BayesNet:
    """Return the network with other log-parameters, in these formats."""
    cpds = zip(net.cpds, tables, formats, strict=True)
    new = tuple(replace(cpd, table=form.encode(table), format=form) for cpd, table, form in cpds)
    return BayesNet(net.variables, net.target, new)
