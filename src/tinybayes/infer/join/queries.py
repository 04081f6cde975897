"""Exact questions to a network or a log-linear model, answered by join trees without compiling a circuit."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinybayes.errors import error
from tinybayes.infer.join.limits import MAX_SECONDS
from tinybayes.infer.join.solve import Progress, prepare, solve
from tinybayes.infer.sampling.problem import Evidence, as_log_linear, observed
from tinybayes.model import BayesNet, LogLinear


@dataclass(frozen=True, eq=False)
class MostProbable:
    """The most probable explanation of evidence.

    Parameters
    ----------
    states
        The state of each variable, by its name.
    row
        The same as a row of codes.
    log_probability
        The logarithm of its probability together with the evidence, for a model that is not normalised of its weight.
    """

    states: dict[str, object]
    row: np.ndarray
    log_probability: float


def log_z(
    model: BayesNet | LogLinear,
    evidence: Evidence = None,
    *,
    max_bytes: float | None = None,
    max_seconds: float = MAX_SECONDS,
    progress: Progress | None = None,
) -> float:
    """Return the logarithm of the sum over all assignments that agree with evidence, exactly.

    For a normalised network this is ``log P(evidence)``.

    Parameters
    ----------
    model
        A network or a log-linear model.
    evidence
        As for `marginals`.
    max_bytes, max_seconds
        Refuse what would take more memory (by default half of the machine's) or time, before any work. Where memory
        is short, variables are conditioned on, so that more time is taken instead.
    progress
        Called with the share of the work that is done.

    Raises
    ------
    TinybayesError
        When the evidence is impossible, or the limits do not suffice.
    """
    linear = as_log_linear(model)
    known = observed(linear.variables, evidence)
    return solve(prepare(linear, known, "sum", max_bytes=max_bytes, max_seconds=max_seconds), progress).log_z


def mpe(
    model: BayesNet | LogLinear,
    evidence: Evidence = None,
    *,
    max_bytes: float | None = None,
    max_seconds: float = MAX_SECONDS,
    progress: Progress | None = None,
) -> MostProbable:
    """Return the most probable assignment of all variables, given evidence; the parameters are those of `log_z`.

    Examples
    --------
    >>> mpe(net, {"wet": "yes"}).states["rain"]  # doctest: +SKIP
    """
    linear = as_log_linear(model)
    known = observed(linear.variables, evidence)
    found = solve(prepare(linear, known, "best", max_bytes=max_bytes, max_seconds=max_seconds), progress)
    assert found.row is not None
    states = {variable.name: variable.states[code] for variable, code in zip(linear.variables, found.row, strict=True)}
    return MostProbable(states, found.row, found.log_z)


def joint_marginals(
    model: BayesNet | LogLinear,
    groups: Sequence[Sequence[str | int]],
    evidence: Evidence = None,
    *,
    max_bytes: float | None = None,
    max_seconds: float = MAX_SECONDS,
    progress: Progress | None = None,
) -> tuple[np.ndarray, ...]:
    """Return the joint posterior of each group of variables, such as pairs, exactly and from the same two passes.

    Parameters
    ----------
    groups
        Variables by name or number. The variables of a group need not be related in the model; large groups of
        distant ones make the tables large.
    model, evidence, max_bytes, max_seconds, progress
        As for `log_z`.

    Returns
    -------
    tuple of ndarray
        For each group a table with an axis for each of its variables.
    """
    linear = as_log_linear(model)
    names = {variable.name: v for v, variable in enumerate(linear.variables)}
    scopes = []
    for group in groups:
        scope = tuple(names.get(v, -1) if isinstance(v, str) else int(v) for v in group)
        if not scope or len(set(scope)) < len(scope) or not all(0 <= v < len(names) for v in scope):
            raise error("different variables by name or number", repr(tuple(group)), where="groups")
        scopes.append(scope)
    known = observed(linear.variables, evidence)
    work = prepare(linear, known, "posterior", scopes, max_bytes=max_bytes, max_seconds=max_seconds)
    return solve(work, progress).joints
