"""The marginals of a model, exact or by sampling: one function for all methods."""

from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from tinybayes.errors import TinybayesError, error
from tinybayes.infer import circuit as circuits
from tinybayes.infer.choose import BATCH_EDGES, choose, keep_circuit, kept_circuit, worth_compiling
from tinybayes.infer.join import rows as small
from tinybayes.infer.join.limits import MAX_SECONDS
from tinybayes.infer.join.solve import Question, prepare, solve
from tinybayes.infer.sampling.chains import gibbs_marginals, mcsat
from tinybayes.infer.sampling.importance import forward, open_order, tied
from tinybayes.infer.sampling.problem import (
    Evidence,
    ImpossibleError,
    as_log_linear,
    impossible,
    observed,
    restrict,
)
from tinybayes.infer.sampling.result import Budget, Marginals, Progress
from tinybayes.infer.sampling.slices import Slices
from tinybayes.infer.sampling.weighted import run
from tinybayes.model import BayesNet, Circuit, LogLinear
from tinybayes.model.layout import check_codes

METHODS = ("auto", "join-tree", "circuit", "exact", "tied", "slices", "mcsat", "gibbs", "lw", "forward")
"""The methods of `marginals`, the default first."""

_OPTIONS = {
    "tied": ["draw", "lookahead", "prune"],
    "mcsat": ["burn_in", "chains", "levels", "uniform"],
    "gibbs": ["burn_in", "chains"],
}

_EXACT = ("auto", "join-tree", "circuit", "exact")
_WITHIN = 60.0  # seconds of exact work that take the place of a number of samples
_AT_ONCE = 0.2  # seconds of exact work that keep to any budget

Model = BayesNet | LogLinear | Circuit


def marginals(
    model: Model,
    evidence: Evidence = None,
    *,
    method: str = "auto",
    seconds: float | None = None,
    samples: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> Marginals:
    """Return the posterior distribution of every variable, given evidence.

    Parameters
    ----------
    model
        A Bayesian network, normalised or not, a log-linear model, or a circuit, which answers exactly.
    evidence
        States by the names or numbers of variables; a state is a value of its variable, or its number. Also a row of
        codes with -1 for variables that were not observed, and for exact methods several rows: each array of the
        result then has a row for each of them. None: nothing was observed.
    method
        ``"auto"``: exact, by a join tree or a circuit, whichever takes less time; where that exceeds memory or the
        budget, sampling as by ``"tied"`` if a budget is given, else an error that says what would be needed.
        ``"join-tree"``, ``"circuit"``: exact by this way or an error. ``"exact"``: exact or an error.
        ``"tied"``: importance sampling in block order with mini-buckets that look ahead; exact when the tables of
        elimination fit the budget. ``"slices"``: exact slices by counting, for few tie
        classes and small widths. ``"mcsat"``, ``"gibbs"``: Markov chains. ``"lw"``: likelihood weighting.
        ``"forward"``: forward sampling, with rejection.
    seconds, samples
        When to stop: wall time from the beginning of the call, or a number of samples (sweeps of all chains together);
        20,000 samples by default. A round that has begun is finished.
    seed
        With a number of samples, the same seed gives the same estimates, whatever the number of threads.
    progress
        Called with the estimates so far, about ten times a second; by a join tree with the share of work done.
    **options
        ``tied``: `lookahead` (``"auto"``; i, for tables of at most 2**i entries; None, for none), `prune` (True:
        exclude zeros ahead where tables stay moderate, and elsewhere by a SAT solver if nearly all samples would weigh
        zero and python-sat is installed; ``"sat"``: always by the solver, so that no sample weighs zero), `draw` (True:
        sample even where the answer could be exact). ``mcsat``: `chains`, `burn_in`, `uniform` (``"auto"``,
        ``"exact"``, ``"samplesat"``), `levels` (``"factor"``: each factor draws one level; ``"feature"``: each
        feature of its own, as Poon and Domingos have it). ``gibbs``: `chains`, `burn_in`.

    Examples
    --------
    >>> marginals(net, {"rain": "yes"}, seconds=1)["wet"]  # doctest: +SKIP
    """
    if method not in METHODS:
        raise error(" or ".join(METHODS), repr(method), where="method")
    if not 0 <= seed < 2**64:
        raise error("an integer from 0 to 2**64 - 1", seed, where="seed")
    sampler = "tied" if method == "auto" else method  # what options are for
    allowed = _OPTIONS.get(sampler, [])
    if unknown := sorted(set(options) - set(allowed)):
        raise error(f"options of {sampler!r}: {', '.join(allowed) or 'none'}", ", ".join(unknown), where="marginals")
    budget = Budget.start(seconds, samples)
    if isinstance(model, Circuit):
        return _of_circuit(model, evidence, budget, method)
    if (
        isinstance(evidence, np.ndarray)
        and evidence.ndim == 2
        and len(evidence) != 1
        and method in _EXACT
        and not options
    ):
        return _of_rows(as_log_linear(model), evidence, budget, method, progress)
    known = observed(model.nodes if isinstance(model, BayesNet) else model.variables, evidence)
    if options:
        method = sampler
    if method == "gibbs":
        return gibbs_marginals(model, known, budget, seed, progress, **options)
    linear = as_log_linear(model)
    notes: tuple[str, ...] = ()
    if method in _EXACT:
        asked = seconds is not None or samples is not None
        answer = _exact(linear, known, budget, method, progress, asked)
        if isinstance(answer, Marginals):
            return answer
        notes = (f"sampled, since exact inference takes more: {answer}",)
    if method in ("lw", "forward"):
        return forward(linear, known, budget, seed, progress, reject=method == "forward")
    problem = restrict(linear, known)
    if method == "slices":
        return run(problem, Slices(problem), budget, seed, method, progress)
    if method == "mcsat":
        return mcsat(problem, budget, seed, progress, **options)
    found = tied(problem, budget, seed, progress, parents_first=lambda: open_order(linear, problem), **options)
    return replace(found, notes=(*found.notes, *notes)) if notes and not found.exact else found


def slices(model: BayesNet | LogLinear, evidence: Evidence = None) -> Slices:
    """Count the assignments of every slice of a model, given evidence.

    Examples
    --------
    >>> from tinybayes.infer import slices
    >>> counted = slices(model)  # doctest: +SKIP
    >>> counted.counts, counted.log_sizes, counted.log_z  # doctest: +SKIP
    """
    linear = as_log_linear(model)
    return Slices(restrict(linear, observed(linear.variables, evidence)))


def _exact(
    model: LogLinear,
    known: dict[int, int],
    budget: Budget,
    method: str,
    progress: Progress | None,
    asked: bool,
) -> Marginals | TinybayesError:
    """Return the exact answer; or why not, where a budget was asked for that no exact answer keeps to."""
    way: Question | Circuit | TinybayesError
    if method == "join-tree" or (method != "circuit" and kept_circuit(model) is None):
        quick = _at_once(model, known, budget, "join-tree" if method == "auto" else method)
        if quick is not None:
            if progress is not None:
                progress(1.0)
            return quick
    if method == "circuit":
        way = keep_circuit(model, None)
    elif method == "join-tree":
        way = prepare(model, known, "posterior")
    else:
        within = MAX_SECONDS if method == "exact" or not asked else _WITHIN if budget.seconds is None else budget.left
        way = choose(model, known, max(within, _AT_ONCE))
    if isinstance(way, Circuit):
        return _of_circuit(way, known, budget, "circuit" if method == "auto" else method)
    if isinstance(way, Question):
        found = solve(way, progress)
        errors = tuple(np.zeros(part.shape) for part in found.states)
        variables = "a variable" if len(way.cut) == 1 else f"{len(way.cut)} variables"
        notes = (f"conditioned on {variables}: {way.size.cases:,.0f} cases",) if way.cut else ()
        facts = (np.inf, found.log_z, 0.0, 0, budget.spent, 0.0)
        name = "join-tree" if method == "auto" else method
        return Marginals(model.variables, found.states, errors, *facts, name, True, notes)
    if asked and method == "auto":
        return way
    raise way


def _at_once(model: LogLinear, known: dict[int, int], budget: Budget, method: str) -> Marginals | None:
    """Return the answer of a join tree with small tables; None: they are not."""
    row = np.full((1, len(model.variables)), -1)
    for v, state in known.items():
        row[0, v] = state
    found = small.answer(model, row)
    if found is None or found.status[0] not in (small.DONE, small.IMPOSSIBLE):
        return None
    if found.status[0] == small.IMPOSSIBLE:
        raise impossible()
    return _exactly(model, found.posterior[0], float(found.logs[0]), budget, method)


def _exactly(
    model: LogLinear | Circuit, posterior: np.ndarray, log_z: float | np.ndarray, budget: Budget, method: str
) -> Marginals:
    """Return exact posteriors, which have no errors; rows of them, too."""
    variables = model.variables if isinstance(model, LogLinear) else model.nodes
    ends = list(accumulate((variable.cardinality for variable in variables), initial=0))
    places = list(pairwise(ends))
    parts, zeros = tuple(posterior[..., a:b] for a, b in places), np.zeros(posterior.shape)
    errors = tuple(zeros[..., a:b] for a, b in places)
    return Marginals(variables, parts, errors, np.inf, log_z, 0.0, 0, budget.spent, 0.0, method, True)


def _of_rows(model: LogLinear, rows: np.ndarray, budget: Budget, method: str, progress: Progress | None) -> Marginals:
    """Answer many rows: by a circuit if there is one or compiling is worth it, else by a join tree for each."""
    check_codes(rows, model.cardinalities, where="evidence")
    by_circuit = method == "circuit" or kept_circuit(model) is not None or worth_compiling(model, len(rows))
    if method != "join-tree" and by_circuit:
        try:
            circuit = keep_circuit(model, None if method == "circuit" else BATCH_EDGES)
            return _of_circuit(circuit, rows, budget, method if method != "auto" else "circuit")
        except TinybayesError:
            if method == "circuit":
                raise
    found = small.answer(model, rows, progress)
    if found is None:
        found = small.nothing(model, rows)
    like: dict[bytes, Question] = {}
    left = np.flatnonzero(found.status != small.DONE)
    for done, number in enumerate(left.tolist()):
        if found.status[number] == small.IMPOSSIBLE:
            raise impossible(f"evidence, row {number}")
        known = {v: code for v, code in enumerate(rows[number].tolist()) if code >= 0}
        pattern = (rows[number] >= 0).tobytes()
        try:
            question = prepare(model, known, "posterior", like=like.get(pattern))
            answer = solve(question)
        except ImpossibleError:
            raise impossible(f"evidence, row {number}") from None
        like.setdefault(pattern, question)
        found.logs[number] = answer.log_z
        found.posterior[number] = np.concatenate(answer.states)
        if progress is not None:
            progress((len(rows) - len(left) + done + 1) / len(rows))
    return _exactly(model, found.posterior, found.logs, budget, "join-tree")


def _of_circuit(circuit: Circuit, evidence: Evidence, budget: Budget, method: str) -> Marginals:
    if method not in ("auto", "circuit", "exact", "tied"):
        raise error(
            "'auto', 'circuit', 'exact' or 'tied'", repr(method), where="method", remedy="a circuit answers exactly"
        )
    if isinstance(evidence, np.ndarray) and evidence.ndim == 2:
        rows = evidence
    else:
        rows = np.full((1, len(circuit.nodes)), -1)
        for v, state in observed(circuit.nodes, evidence).items():
            rows[0, v] = state
    logs, posterior = circuits.evidence_and_posteriors(circuit, rows)
    log_z: float | np.ndarray = logs
    if rows is not evidence:
        log_z, posterior = float(logs[0]), posterior[0]
    return _exactly(circuit, posterior, log_z, budget, method)
