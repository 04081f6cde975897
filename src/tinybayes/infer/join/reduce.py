"""The tables that a join tree is made of: what evidence and zeros leave of a model, without barren variables."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from tinybayes.infer.join.messages import Tables
from tinybayes.infer.join.plan import Scope
from tinybayes.infer.sampling.problem import Problem

_SAME = 1e-13  # relative difference of sums that are equal but for rounding


class Reduced(NamedTuple):
    """The tables over the variables that are left, the variables, as indices of open ones, and a constant."""

    tables: Tables
    kept: tuple[int, ...]
    constant: float


def reduce(problem: Problem, targets: Collection[int] | None, joints: Sequence[Scope] = ()) -> Reduced:
    """Return the tables of a problem, each variable in one at least.

    Parameters
    ----------
    problem
        The model, restricted to evidence.
    targets
        The open variables that are asked about: others are removed, one after the other, where summing them out of
        their only table leaves a constant. In a normalised network these are all variables that have neither observed
        nor wanted descendants. None: all are asked about.
    joints
        Sets of open variables that must be in a clique together.
    """
    scopes, logs, constant = list(problem.scopes), list(problem.logs), problem.constant
    kept = tuple(range(len(problem.free)))
    if targets is not None:
        wanted = {*targets, *(v for scope in joints for v in scope)}
        scopes, logs, gone, sums = _without_barren(problem, wanted)
        constant += sums
        kept = tuple(v for v in kept if v not in gone)
    number = {v: k for k, v in enumerate(kept)}
    inner = [tuple(number[v] for v in scope) for scope in (*scopes, *joints)]
    covered = {v for scope in inner for v in scope}
    inner += [(v,) for v in range(len(kept)) if v not in covered]
    cards = problem.states[np.array(kept, dtype=np.int64)]
    ones = [np.zeros(int(np.prod(cards[list(scope)]))) for scope in inner[len(scopes) :]]
    return Reduced(Tables(tuple(inner), (*logs, *ones), cards), kept, constant)


def _without_barren(problem: Problem, wanted: Collection[int]) -> tuple[list[Scope], list[np.ndarray], set[int], float]:
    """Return the scopes and tables that are left, the variables that are gone, and the logarithm of their sums."""
    uses: list[set[int]] = [set() for _ in problem.free]
    for number, scope in enumerate(problem.scopes):
        for v in scope:
            uses[v].add(number)
    gone: set[int] = set()
    dropped: set[int] = set()
    constant = 0.0
    waiting = [v for v, mine in enumerate(uses) if len(mine) == 1 and v not in wanted]
    while waiting:
        v = waiting.pop()
        if len(uses[v]) != 1:
            continue
        (number,) = uses[v]
        scope = problem.scopes[number]
        table = problem.logs[number].reshape([int(problem.states[u]) for u in scope])
        sums = np.logaddexp.reduce(table, axis=scope.index(v))
        if not np.isfinite(sums).all() or np.ptp(sums) > _SAME * max(1.0, abs(float(sums.flat[0]))):
            continue
        constant += float(sums.flat[0])
        gone.add(v)
        dropped.add(number)
        for u in scope:
            uses[u].discard(number)
            if len(uses[u]) == 1 and u not in wanted:
                waiting.append(u)
    left = [k for k in range(len(problem.scopes)) if k not in dropped]
    return [problem.scopes[k] for k in left], [problem.logs[k] for k in left], gone, constant
