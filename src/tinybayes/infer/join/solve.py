"""One question to a model by join trees: one tree, or one for each assignment of the variables that are conditioned on.

Answers of several trees are added up, weighted by the probabilities of their cases, so that the result is as exact as
that of one tree. Nothing outlives an interrupt.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from tinybayes.infer.join import messages
from tinybayes.infer.join.limits import MAX_SECONDS, Size, choose
from tinybayes.infer.join.plan import Scope, make_plan
from tinybayes.infer.join.reduce import Reduced, reduce
from tinybayes.infer.memory import default_bytes
from tinybayes.infer.orders import clique_entries, quick_order
from tinybayes.infer.sampling.problem import ImpossibleError, Problem, impossible, restrict
from tinybayes.model import LogLinear

Ask = Literal["sum", "posterior", "best"]
Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Solution:
    """An answer about all variables of the model."""

    log_z: float  # of the sum over all assignments, or of the best one
    states: tuple[np.ndarray, ...] = ()  # posteriors
    joints: tuple[np.ndarray, ...] = ()
    row: np.ndarray | None = None  # the best assignment


@dataclass(frozen=True, eq=False)
class Question:
    """A model, evidence, and the way to the answer; nothing was computed yet.

    Parameters
    ----------
    model, known
        The model and the observed states, by the indices of variables.
    ask
        The sum over all assignments, the posteriors, or the best assignment.
    joints
        Sets of variables whose joint posteriors are wanted, too.
    problem, order, cut
        What is left of the model; the variables in the order of their elimination; those that are conditioned on.
    size
        What it will take.
    """

    model: LogLinear
    known: Mapping[int, int]
    ask: Ask
    joints: tuple[Scope, ...]
    problem: Problem
    order: tuple[int, ...]
    cut: tuple[int, ...]
    size: Size


def prepare(
    model: LogLinear,
    known: Mapping[int, int],
    ask: Ask,
    joints: Sequence[Scope] = (),
    *,
    max_bytes: float | None = None,
    max_seconds: float = MAX_SECONDS,
    like: Question | None = None,
) -> Question:
    """Find the way to an answer; the order is that of a question `like` it, if there is one.

    Raises
    ------
    TinybayesError
        When it would take more memory or time than the limits, or the evidence is impossible.
    """
    problem = restrict(model, known)
    reduced = _reduced(problem, ask, joints)
    limit = default_bytes() if max_bytes is None else max_bytes
    free = [problem.free[v] for v in reduced.kept]
    known_order = None
    if like is not None and not like.cut:
        place = {v: k for k, v in enumerate(free)}
        first = [place[v] for v in like.order if v in place]
        known_order = (*first, *sorted(set(place.values()) - set(first)))
    order, cut, size = choose(reduced.tables.scopes, reduced.tables.cards, limit, max_seconds, known_order)
    named = tuple(free[v] for v in order), tuple(free[v] for v in cut)
    return Question(model, known, ask, tuple(joints), problem, *named, size)


def solve(question: Question, progress: Progress | None = None) -> Solution:
    """Return the answer; an impossible case is an error."""
    if question.cut:
        found = _all_cases(question, progress)
    else:
        found = _one(question.problem, question.ask, question.joints, question.order, progress)
    if found is None:
        raise impossible()
    return found


def posterior_within(problem: Problem, entries: float) -> Solution | None:
    """Return the posteriors of a problem, or None when its cliques have more entries together."""
    tables, kept, _ = _reduced(problem, "posterior", ())
    order = quick_order(tables.scopes, tables.cards)
    if clique_entries(tables.scopes, tables.cards, order) > entries:
        return None
    found = _one(problem, "posterior", (), tuple(problem.free[kept[v]] for v in order), None)
    if found is None:
        raise impossible()
    return found


def _reduced(problem: Problem, ask: Ask, joints: Sequence[Scope]) -> Reduced:
    index = {v: k for k, v in enumerate(problem.free)}
    inner = {tuple(sorted(index[v] for v in scope if v in index)) for scope in joints}
    return reduce(problem, () if ask == "sum" else None, [scope for scope in sorted(inner) if scope])


def _one(
    problem: Problem, ask: Ask, groups: Sequence[Scope], sequence: Sequence[int], progress: Progress | None
) -> Solution | None:
    """Answer by one tree that eliminates the variables in a sequence; None: impossible."""
    tables, kept, constant = _reduced(problem, ask, groups)
    place = {problem.free[v]: k for k, v in enumerate(kept)}
    order = [place[v] for v in sequence if v in place]
    order += sorted(set(range(len(kept))) - set(order))  # none, but for cases with variables of their own
    index = {v: k for k, v in enumerate(problem.free)}
    inner = [tuple(place[v] for v in scope if v in index) for scope in groups]
    wanted = list(dict.fromkeys(tuple(sorted(scope)) for scope in inner if scope))
    plan = make_plan(tables.scopes, tables.cards, order, wanted)
    if ask == "sum":
        log_z = messages.log_sum(plan, tables, progress)
        return None if log_z == -math.inf else Solution(log_z + constant)
    if ask == "best":
        best, log_z = messages.most_probable(plan, tables, progress)
        if log_z == -math.inf:
            return None
        row = np.array([left[0] for left in problem.domains], dtype=np.int32)
        for v, k in place.items():
            row[v] = problem.domains[v][best[k]]
        return Solution(log_z + constant, row=row)
    found = messages.posterior(plan, tables, wanted, progress)
    if found is None:
        return None
    states = problem.spread(np.concatenate([np.empty(0), *found.states]), 1.0)
    by_scope = dict(zip(wanted, found.joints, strict=True))
    joints = tuple(
        _whole(problem, scope, by_scope.get(tuple(sorted(own))), own) for scope, own in zip(groups, inner, strict=True)
    )
    return Solution(found.log_z + constant, states, joints)


def _whole(problem: Problem, scope: Scope, table: np.ndarray | None, own: Scope) -> np.ndarray:
    """Return a joint posterior with all states of its variables, also of observed ones."""
    out = np.zeros([problem.variables[v].cardinality for v in scope])
    places = np.ix_(*(problem.domains[v] for v in scope))
    if table is None:
        out[places] = 1.0
    else:
        ordered = sorted(own)
        turned = table.transpose([ordered.index(k) for k in own])
        out[places] = turned.reshape([len(problem.domains[v]) for v in scope])
    return out


def _all_cases(question: Question, progress: Progress | None) -> Solution | None:
    """Answer by a tree for each assignment of the variables that are conditioned on."""
    domains = [question.problem.domains[v].tolist() for v in question.cut]
    total: Solution | None = None
    count = math.prod(map(len, domains))
    for number, states in enumerate(product(*domains)):
        case = {**question.known, **dict(zip(question.cut, states, strict=True))}
        try:
            found = _one(restrict(question.model, case), question.ask, question.joints, question.order, None)
        except ImpossibleError:
            found = None
        if found is not None:
            total = found if total is None else _sum(total, found, question.ask)
        if progress is not None:
            progress((number + 1) / count)
    return total


def _sum(a: Solution, b: Solution, ask: Ask) -> Solution:
    """Return the answer to two cases together."""
    if ask == "best":
        return a if a.log_z >= b.log_z else b
    log_z = float(np.logaddexp(a.log_z, b.log_z))
    p, q = math.exp(a.log_z - log_z), math.exp(b.log_z - log_z)
    states = tuple(p * x + q * y for x, y in zip(a.states, b.states, strict=True))
    joints = tuple(p * x + q * y for x, y in zip(a.joints, b.joints, strict=True))
    return Solution(log_z, states, joints)
