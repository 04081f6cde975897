"""Importance sampling: tied weights in block order with lookahead, likelihood weighting, forward sampling.

A sample with tied weights is drawn factor by factor: a variable is drawn when all other variables of its factors have
their values, so that exactly one feature of each factor becomes true. With t the number of true features of each tie
class, mu the weights of the classes and q the chance of the draw, ``log w = t mu - log q``. The chances are the
features' weights times what mini-buckets know about the variables that come later. Where messages are passed on, they
cancel in the weight, so that only buckets that were split contribute to it. Where none had to be split, all weights are
equal, and the distribution that is drawn from has known marginals: the answer is exact and nothing is drawn.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from tinybayes._kernels.draws import IMPOSSIBLE, SQUARES, TOTAL, Weighted
from tinybayes.errors import TinybayesError, error
from tinybayes.infer.join.solve import posterior_within
from tinybayes.infer.orders import clique_entries, quick_order
from tinybayes.infer.sampling.problem import Problem, restrict
from tinybayes.infer.sampling.proposals import barren, rest_order, smoothed, with_messages, without_messages
from tinybayes.infer.sampling.result import Budget, Marginals, Progress
from tinybayes.infer.sampling.satisfiable import satisfiable, solvable
from tinybayes.infer.sampling.schedule import make_units
from tinybayes.infer.sampling.weighted import Proposal, draw_blocks, empty, merge, run
from tinybayes.model import LogLinear, Structure

Lookahead = int | Literal["auto"] | None
LARGEST = 2**25  # entries of all tables: 256 MiB
_SMALL = 2**20  # entries that are always worth their while
_PER_SECOND = 15_000_000  # entries that are filled in a second, and then some
_PILOT = 512  # samples
_EVEN = 0.9  # effective samples of a sample with which nobody looks further
_DEAD = 0.99  # share of samples of weight zero from which a solver, a thousand times slower, is asked instead
_MOST_BITS = 18  # of a table of a split bucket: larger ones hardly made weights more even in our trials


def tied(
    problem: Problem,
    budget: Budget,
    seed: int,
    progress: Progress | None = None,
    *,
    lookahead: Lookahead = "auto",
    prune: bool | Literal["sat"] = True,
    draw: bool = False,
    parents_first: Callable[[], Sequence[int] | None] = lambda: None,
) -> Marginals:
    """Estimate all marginals; see `tinybayes.infer.marginals` for the options.

    Without a lookahead, variables are drawn in the order that `parents_first` gives, when there is one.
    """
    if not (isinstance(prune, bool) or prune == "sat"):
        raise error("True, False or 'sat'", repr(prune), where="prune")
    if not isinstance(draw, bool):
        raise error("True or False", repr(draw), where="draw")
    if lookahead == "auto" and not draw:
        answer = exact_marginals(problem, budget, _room(budget, problem))
        if answer is not None:
            return answer
    first, room = parents_first(), _room(budget, problem)
    proposal = choose(problem, room, seed, lookahead=lookahead, prune=prune is True, parents_first=first)
    if prune == "sat" or (proposal.blind and solvable(problem) and _dead(problem, proposal, seed) > _DEAD):
        return run(problem, satisfiable(problem, proposal), budget, seed, "tied", progress)
    return run(problem, _averaged(problem, proposal, seed), budget, seed, "tied", progress)


def choose(
    problem: Problem,
    room: int,
    seed: int,
    *,
    lookahead: Lookahead = "auto",
    prune: bool = True,
    parents_first: Sequence[int] | None = None,
) -> Proposal:
    """Choose the distribution to draw from.

    With ``lookahead="auto"``, the tables that do best in a pilot run, of `room` entries together; a number i allows
    tables of at most 2**i entries; None passes no messages, and draws in the order `parents_first`, if there is one.
    `prune` excludes values that zeros make impossible later, where this takes tables of a moderate size.
    """
    if not (lookahead is None or lookahead == "auto" or (isinstance(lookahead, int) and lookahead >= 0)):
        raise error("'auto', None or a number from 0", repr(lookahead), where="lookahead")
    if lookahead is None and parents_first is not None:
        return without_messages(problem, parents_first)
    first = barren(problem)
    order = rest_order(problem, first)
    if lookahead is None:
        return without_messages(problem, order[::-1])
    alone = frozenset(first)
    if lookahead != "auto":
        units = make_units(problem.scopes, problem.states, order, 2.0**lookahead, alone)
        return with_messages(problem, units, order, alone, prune=prune)
    if clique_entries(problem.scopes, problem.states, order) <= room:
        whole = make_units(problem.scopes, problem.states, order, math.inf, alone)
        return with_messages(problem, whole, order, alone)
    return _best(problem, order, alone, room, seed, prune, parents_first)


def _best(
    problem: Problem,
    order: Sequence[int],
    alone: frozenset[int],
    room: int,
    seed: int,
    prune: bool,
    first: Sequence[int] | None,
) -> Proposal:
    """Compare a few table sizes by the effective samples that a unit of work gives, the smallest first."""
    largest = min(_largest(problem, order, alone, room // 8), _MOST_BITS)
    bounds = sorted({largest, largest - 4, largest - 8} - set(range(-8, 2)))
    best, most = without_messages(problem, order[::-1] if first is None else first), -1.0
    for bound in [None, *bounds]:
        proposal = best
        if bound is not None:
            units = make_units(problem.scopes, problem.states, order, 2.0**bound, alone)
            proposal = with_messages(problem, units, order, alone, prune=prune)
        weights = _pilot(problem, proposal, seed).weights
        weight, square = weights[TOTAL], weights[SQUARES]
        even = weight**2 / square if square > 0 else 0.0
        if even / proposal.work >= most:
            best, most = proposal, even / proposal.work
        if even > _EVEN * _PILOT:
            break  # larger tables have nothing to add
    return best


def _pilot(problem: Problem, proposal: Proposal, seed: int) -> Weighted:
    size = int(problem.first_state[-1])
    total = empty(size)
    for part in draw_blocks(proposal, size, 2**33, [_PILOT // 2] * 2, seed):
        total = merge(total, part)
    return total


def _dead(problem: Problem, proposal: Proposal, seed: int) -> float:
    """Return the share of a pilot's samples that weigh zero."""
    return float(_pilot(problem, proposal, seed).weights[IMPOSSIBLE]) / _PILOT


def _averaged(problem: Problem, proposal: Proposal, seed: int) -> Proposal:
    """Average chances given all other variables, if a pilot gains more from it than it costs."""
    if proposal.sampler.average.all():
        return proposal
    other, spread = smoothed(problem, proposal), []
    for each in (proposal, other):
        total = _pilot(problem, each, seed)
        if not total.weights[TOTAL] > 0:
            return proposal
        p = total.first / total.weights[TOTAL]
        spread.append(float((total.third - 2 * p * total.second + p * p * total.weights[SQUARES]).sum()))
    return other if spread[0] * proposal.work > spread[1] * other.work else proposal


def _largest(problem: Problem, order: Sequence[int], alone: frozenset[int], room: int) -> int:
    """Return the largest exponent of a table size whose tables fit together."""

    def entries(bound: int) -> int:
        return make_units(problem.scopes, problem.states, order, 2.0**bound, alone).entries

    low, high = 1, max(2, int(math.log2(room)))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if entries(middle) <= room else (low, middle - 1)
    return low


def _room(budget: Budget, problem: Problem) -> int:
    """Return how many entries tables may have: what takes a fair part of the budget, within memory."""
    if budget.seconds is not None:
        wanted = _PER_SECOND * max(budget.seconds - budget.spent, 0.0)
    else:
        assert budget.samples is not None
        wanted = float(budget.samples) * max(len(problem.free), 1)
    return table_room(wanted)


def table_room(wanted: float) -> int:
    """Return how many entries tables may have, when so many are wanted."""
    return int(min(max(wanted, _SMALL), LARGEST))


def exact_marginals(problem: Problem, budget: Budget, room: int) -> Marginals | None:
    """Return the exact marginals by a join tree, or None when its cliques would have more entries than `room`."""
    found = posterior_within(problem, room)
    if found is None:
        return None
    errors = tuple(np.zeros(part.shape) for part in found.states)
    notes = ("the tables fitted: the answer is exact, and nothing was drawn",)
    facts = (math.inf, found.log_z, 0.0, 0, budget.spent, 0.0)
    return Marginals(problem.variables, found.states, errors, *facts, "tied", True, notes)


def forward(
    model: LogLinear,
    known: Mapping[int, int],
    budget: Budget,
    seed: int,
    progress: Progress | None = None,
    *,
    reject: bool,
) -> Marginals:
    """Estimate all marginals; observed variables are set and weighted, or drawn and rejected where they differ.

    Rows that do not sum to one, as in tied networks, are divided by their sums, which belong to the weight.
    """
    problem = restrict(model, {}, closed=False)
    turned = open_order(model, problem) or quick_order(problem.scopes, problem.states)[::-1]
    index = {v: k for k, v in enumerate(problem.free)}
    seen = {index[v]: state for v, state in known.items() if v in index}
    proposal = without_messages(problem, turned, average=False, known=seen, reject=reject)
    method = "forward" if reject else "lw"
    return run(problem, proposal, budget, seed, method, progress)


def open_order(model: LogLinear, problem: Problem) -> tuple[int, ...] | None:
    """Return the open variables with parents before children, when the factors are those of a network."""
    children = [factor.scope[-1] for factor in model.factors if factor.scope]
    if sorted(children) != list(range(len(model.variables))) or len(children) < len(model.factors):
        return None
    parents: list[tuple[int, ...]] = [()] * len(children)
    for factor in model.factors:
        parents[factor.scope[-1]] = factor.scope[:-1]
    try:
        order = Structure(tuple(parents)).order
    except TinybayesError:
        return None
    index = {v: k for k, v in enumerate(problem.free)}
    return tuple(index[v] for v in order if v in index)
