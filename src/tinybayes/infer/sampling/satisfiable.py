"""Proposals that a SAT solver keeps from dead ends: no value is drawn that the zeros make impossible later.

Tables that say what can be completed (`proposals.py`) take as many entries as elimination would. Where these are too
many, a solver is asked instead, under the assumption of the values drawn so far. A value with a positive chance is kept
if the zeros allow some completion; the chances of the values that are kept are what is drawn from, so that weights stay
right, and none is zero. An assignment that the solver found answers for its own values without being asked again.
"""

import threading
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybayes._kernels.draws import REFERENCE, SQUARES, TOTAL, Weighted, row_chances
from tinybayes.errors import error
from tinybayes.extras import installed, require
from tinybayes.infer.sampling.problem import Problem, impossible
from tinybayes.infer.sampling.weighted import Proposal

if TYPE_CHECKING:
    from pysat.solvers import Solver

SOLVER = "minisat22"  # the quickest of python-sat's in our trials for many small questions
MOST_LITERALS = 2**24  # of all clauses
NOTE = "a SAT solver excluded what zeros make impossible later"


@dataclass(frozen=True, eq=False)
class Satisfiable:
    """A proposal whose values are checked by a solver; each thread has a solver of its own."""

    proposal: Proposal
    first_literal: np.ndarray  # (variables,) the literal of a state is this plus its number
    clauses: list[list[int]]
    constrained: np.ndarray  # (variables,) whether a factor with zeros has it
    solvers: threading.local = field(default_factory=threading.local)

    @property
    def log_scale(self) -> float:
        """What the logarithm of a weight lacks."""
        return self.proposal.log_scale

    @property
    def notes(self) -> tuple[str, ...]:
        """What to tell the reader."""
        return (NOTE,)

    def draw(self, count: int, key: np.ndarray, sums: Weighted) -> None:
        """Draw samples from the stream that the key names, and add them to the sums."""
        first_state = self.proposal.sampler.first_state[:-1]
        for x, log_weight in zip(*self.rows(count, key), strict=True):
            if log_weight > sums.weights[REFERENCE]:
                _rescale(sums, log_weight)
            weight = np.exp(log_weight - sums.weights[REFERENCE])
            sums.weights[TOTAL] += weight
            sums.weights[SQUARES] += weight * weight
            drawn = first_state + x
            sums.first[drawn] += weight
            sums.second[drawn] += weight * weight
            sums.third[drawn] += weight * weight

    def rows(self, count: int, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return samples of the open variables, and the logarithms of their weights but for the scale."""
        random = np.random.default_rng(key.tolist())
        drawn, logs = np.zeros((count, len(self.first_literal)), dtype=np.int32), np.empty(count)
        for i in range(count):
            logs[i] = self._row(drawn[i], random)
        return drawn, logs

    def _row(self, x: np.ndarray, random: np.random.Generator) -> float:
        """Draw one assignment; return the logarithm of its weight."""
        net, solver = self.proposal.sampler, self._solver()
        chance, message = np.empty(int(net.states.max(initial=1))), np.zeros(1)
        witness, assumed, log_weight = self._witness(solver, []), list[int](), 0.0
        for k, (v, states) in enumerate(zip(net.variable.tolist(), net.states.tolist(), strict=True)):
            message[0] = 0.0
            row_chances(net, k, x, chance, message)
            log_weight += float(message[0])
            literal = int(self.first_literal[v])
            if self.constrained[v]:
                for s in np.flatnonzero(chance[:states] > 0.0).tolist():
                    if witness[v] != s and not solver.solve(assumptions=[*assumed, literal + s]):
                        chance[s] = 0.0
            total = float(chance[:states].sum())
            if not total > 0.0:
                raise error("chances that doubles can hold", "none above zero", where="sampling")
            kept = np.flatnonzero(chance[:states] > 0.0)
            upto = np.cumsum(chance[kept])
            x[v] = kept[min(int(np.searchsorted(upto, random.random() * upto[-1], side="right")), len(kept) - 1)]
            log_weight += float(np.log(total))
            assumed.append(literal + int(x[v]))
            if self.constrained[v] and witness[v] != x[v]:
                witness = self._witness(solver, assumed)
        return log_weight

    def _witness(self, solver: "Solver", assumed: list[int]) -> np.ndarray:
        """Return the states of an assignment that the zeros allow, given literals that some assignment has."""
        if not solver.solve(assumptions=assumed):
            raise impossible()
        literals = np.array(solver.get_model(), dtype=np.int64)
        return np.asarray(literals[literals > 0] - self.first_literal)  # one is true of each variable

    def _solver(self) -> "Solver":
        if not hasattr(self.solvers, "own"):
            from pysat.solvers import Solver

            self.solvers.own = Solver(name=SOLVER, bootstrap_with=self.clauses)
        return self.solvers.own


def solvable(problem: Problem) -> bool:
    """Tell whether python-sat is there, and the clauses are few enough for it."""
    return installed("pysat") and literals(problem) <= MOST_LITERALS


def literals(problem: Problem) -> int:
    """Return the literals of all clauses: one for each zero, and those that keep two states from being true at once."""
    zeros = (
        int(np.isneginf(logs).sum()) * len(scope) for scope, logs in zip(problem.scopes, problem.logs, strict=True)
    )
    return sum(zeros) + sum(k * k for k in problem.states.tolist())


def satisfiable(problem: Problem, proposal: Proposal) -> Satisfiable:
    """Return a proposal without dead ends; it needs python-sat."""
    require("pysat")
    if (needed := literals(problem)) > MOST_LITERALS:
        remedy = "leave prune='sat' out"
        raise error(f"clauses of at most {MOST_LITERALS:,} literals", f"{needed:,}", where="prune", remedy=remedy)
    first = np.concatenate([[1], 1 + np.cumsum(problem.states)])[:-1].astype(np.int64)
    clauses: list[list[int]] = []
    for begin, states in zip(first.tolist(), problem.states.tolist(), strict=True):
        own = range(begin, begin + states)
        clauses.append(list(own))
        clauses += [[-a, -b] for a, b in combinations(own, 2)]
    constrained = np.zeros(len(first), dtype=bool)
    for scope, logs in zip(problem.scopes, problem.logs, strict=True):
        zeros = np.flatnonzero(np.isneginf(logs))
        if not zeros.size:
            continue
        states = np.array(np.unravel_index(zeros, [int(problem.states[v]) for v in scope]))
        clauses += (-(first[list(scope)][:, None] + states).T).tolist()
        constrained[list(scope)] = True
    return Satisfiable(proposal, first, clauses, constrained)


def _rescale(sums: Weighted, log_weight: float) -> None:
    """Make a larger weight the reference."""
    old = sums.weights[REFERENCE]
    factor = float(np.exp(old - log_weight)) if old > -np.inf else 0.0
    sums.weights[TOTAL] *= factor
    sums.weights[SQUARES] *= factor * factor
    changed: list[tuple[Any, float]] = [(sums.first, 1), (sums.second, 2), (sums.third, 2)]
    for values, power in changed:
        values *= factor**power
    sums.weights[REFERENCE] = log_weight
