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
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tinybayes.cost import cheapest_format
from tinybayes.errors import TinybayesError, error
from tinybayes.infer import compile_circuit
from tinybayes.infer.circuit_passes import ExpectedCounts
from tinybayes.infer.likelihood import dataset_rows
from tinybayes.learn.interrupts import interruptible
from tinybayes.learn.ties._ascent import MAX_RELEARN_EDGES, Ascent, M, Relearned, RelearnOptions, RelearnProgress
from tinybayes.learn.ties.chains import Chains
from tinybayes.model import CPD, BayesNet, Circuit, Codebook, Dataset, Float, LogLinear, NumberFormat, Variable

__all__ = ["MAX_RELEARN_EDGES", "RelearnOptions", "RelearnProgress", "Relearned", "relearn"]

Expectations = Callable[[np.ndarray], tuple[float, np.ndarray]]
_LAST = 50  # sweeps after the last step, which measure the remaining difference of the counts
_ERRORS = 5.0  # standard errors within which they must lie


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
    stored = rows.logs(weights).astype(np.float32).astype(np.float64)
    parts = np.split(stored, np.cumsum([cpd.table.size for cpd in net.cpds])[:-1])
    form = cheapest_format(parts)
    pairs = zip(net.cpds, parts, strict=True)
    cpds = tuple(_stored(cpd, part.reshape(cpd.table.shape), form) for cpd, part in pairs)
    return ascent.result(BayesNet(net.variables, net.target, cpds), "rows", before, after, 0.0)


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
    stored = weights.astype(np.float32).astype(np.float64)  # the price counts 32 bits a level
    ties, start = LogLinear.from_bayes_net(model).classes, 0
    tables = []
    for cpd in model.cpds:
        tables.append(stored[ties[start : start + cpd.table.size]].reshape(cpd.table.shape))
        start += cpd.table.size
    books: dict[NumberFormat, NumberFormat] = {}
    for form in {cpd.format for cpd in model.cpds}:
        own = [table for table, cpd in zip(tables, model.cpds, strict=True) if cpd.format == form]
        levels = np.unique(np.concatenate([table.reshape(-1) for table in own]))
        books[form] = Codebook(tuple(levels.tolist())) if isinstance(form, Codebook) else Float()
    cpds = [_stored(cpd, table, books[cpd.format]) for cpd, table in zip(model.cpds, tables, strict=True)]
    return BayesNet(model.variables, model.target, tuple(cpds)), stored


def _stored(cpd: CPD, table: np.ndarray, form: NumberFormat) -> CPD:
    return replace(cpd, table=form.encode(table), format=form)
