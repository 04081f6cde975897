"""Relearning tied weights from data (parameter_tying_by_quantization, eq. 2).

With ties, the mean log-likelihood of rows is ``t . w - log Z(w)``, where t are the mean counts of the tie classes in
the rows. It is concave, and its gradient is t less the expected counts of the model; a circuit compiled once gives both
``log Z`` and the expectations for all weights. Where there is no circuit of a sensible size, Gibbs chains that live on
from step to step give samples of the expectations, and the result is named approximate.

A class that no row uses would get the weight minus infinity. Therefore the first model may count as some rows more: its
expected counts are added to those of the data. This is the conjugate prior of the family. Since no weights fit those
rows better than the first ones do, what is gained in all is gained on the data alone: Proposition 1 holds with it too.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from tinybayes.errors import TinybayesError, error
from tinybayes.infer.log_linear import compile_log_linear
from tinybayes.learn.interrupts import interruptible
from tinybayes.learn.ties._ascent import Ascent, M, Options, Relearned, Relearning
from tinybayes.learn.ties._expected import Chains, ExactCounts
from tinybayes.model import CPD, BayesNet, Circuit, Codebook, Dataset, Float, LogLinear, NumberFormat, Variable

__all__ = ["MAX_RELEARN_EDGES", "Relearned", "Relearning", "relearn"]

MAX_RELEARN_EDGES = 20_000_000
Expectations = Callable[[np.ndarray], tuple[float, np.ndarray]]
_LAST = 50  # sweeps after the last step, which tell how far the counts still are apart
_ERRORS = 5.0  # standard errors within which they must lie


def relearn(
    model: M,
    data: Dataset,
    *,
    prior: float | Literal["auto"] = "auto",
    tolerance: float = 1e-6,
    steps: int = 1000,
    circuit: Circuit | None = None,
    max_edges: int = MAX_RELEARN_EDGES,
    chains: int = 1000,
    sweeps: int = 2,
    seed: int = 0,
    report: Callable[[Relearning], None] | None = None,
) -> Relearned[M]:
    """Find the weights of the tie classes that make data most likely.

    Parameters
    ----------
    model
        A log-linear model, or a network whose tables are in a `Codebook` (see `tie`). A network comes back as one: its
        rows do not sum to one, neither before nor after; as a log-linear model it is a distribution, whose constant is
        ``log_partition``. Tables that are in no codebook have a class for each entry and come back as floats.
    data
        Rows of its variables without unknown values, such as those that the first weights were learned from.
    prior
        For how many rows `model` itself counts. ``"auto"``: for one when the rows leave a class unused, and for none
        otherwise.
    tolerance
        Stop when no mean count in the rows differs by more from the model's.
    steps
        Stop after so many at the latest.
    circuit
        From ``compile_log_linear(model, by="feature")``, of this model or of one with the same factors and the same
        features forbidden: it saves compiling when several ties of one model are learned. Compiled when None.
    max_edges
        The largest circuit to compile; where a larger one would be needed, persistent samples are taken.
    chains, sweeps, seed
        Of the samples: how many Gibbs chains, sweeps between two steps, and where the randomness comes from.
    report
        Called after each step. An interrupt (Ctrl-C) ends the work; the best weights so far are returned.

    Raises
    ------
    TinybayesError
        When rows have unknown values, or one is impossible under the model.
    """
    options = Options(prior, tolerance, steps, report)
    if min(chains, sweeps) < 1:
        raise error("at least one chain and one sweep", f"{chains} and {sweeps}", where="relearn")
    source = model if isinstance(model, LogLinear) else LogLinear.from_bayes_net(model)
    rows, weight = complete_rows(source.variables, data)
    counts, total = source.class_counts(rows, weight), float(weight.sum())
    ascent = Ascent(source.weights, counts, total, options)
    if circuit is not None:
        _check_circuit(circuit, source)
    try:
        exact = _expectations(source, circuit, max_edges)
    except TinybayesError:
        start = rows[np.random.default_rng(seed).choice(len(rows), chains, p=weight / total)]
        _by_samples(ascent, counts / total, Chains(source, start, seed), sweeps)
        return ascent.result(_with_weights(model, ascent.weights)[0], "approximate", None, None, None)
    aims = (1 - ascent.share) * counts / total
    if ascent.share:
        aims += ascent.share * exact(source.weights)[1]
    found, stored = _with_weights(model, ascent.climb(lambda w: _likelihood(w, aims, exact)))
    before, after = (_likelihood(w, counts / total, exact)[0] for w in (source.weights, stored))
    if after < before:  # rounded weights, of a model that was at its best
        found, stored, after = model, source.weights, before
    return ascent.result(found, "exact", before, after, exact(stored)[0])


def _expectations(source: LogLinear, circuit: Circuit | None, max_edges: int) -> Expectations:
    """Return the function from weights of classes to ``log Z`` and expected counts of classes."""
    if circuit is None:
        return ExactCounts(compile_log_linear(source, max_edges=max_edges))
    by_feature, ties, count = ExactCounts(circuit), source.classes, len(source.weights)

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
    """Return rows over all variables and their weights, those without weight left out."""
    if tuple(variables) != data.nodes:
        remedy = "read the table with them: read_dataset(TABLE, like=net)"
        raise error("the variables of the model, with the same states", "others", where="data", remedy=remedy)
    rows = data.X.astype(np.int32)
    if data.target is not None:
        y = np.full(len(data), -1) if data.y is None else data.y
        rows = np.column_stack([rows, y]).astype(np.int32)
    weight = np.ones(len(rows)) if data.weight is None else data.weight
    rows, weight = rows[weight > 0], weight[weight > 0]
    if not len(rows):
        raise error("rows with a weight above zero", "none", where="data")
    if partial := int((rows < 0).any(axis=1).sum()):
        remedy = "leave these rows out, or fill them in"
        raise error("rows without unknown values", f"{partial:,} with some", where="data", remedy=remedy)
    return rows, weight


def _by_samples(ascent: Ascent, counts: np.ndarray, chains: Chains, sweeps: int) -> None:
    """Follow the sampled gradient with falling steps; the weights are the mean over the second half of the way.

    Each step is divided by the variance of the class's count, seen so far.
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


def _with_weights(model: M, weights: np.ndarray) -> tuple[M, np.ndarray]:
    """Return the model with other weights of its tie classes, and these weights as they are stored."""
    if isinstance(model, LogLinear):
        return replace(model, weights=weights), weights  # type: ignore[call-arg]  # no type is both
    stored = weights.astype(np.float32).astype(np.float64)  # what is paid for
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
