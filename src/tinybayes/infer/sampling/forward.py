"""Likelihood weighting and forward sampling: parents before children, no look at what comes later."""

from collections.abc import Mapping

from tinybayes.errors import TinybayesError
from tinybayes.infer.sampling._lookahead import without_messages
from tinybayes.infer.sampling._problem import Problem, restrict
from tinybayes.infer.sampling._schedule import elimination_order
from tinybayes.infer.sampling._weighted import run
from tinybayes.infer.sampling.result import Budget, Marginals, Progress
from tinybayes.model import LogLinear, Structure


def forward(
    model: LogLinear,
    known: Mapping[int, int],
    budget: Budget,
    seed: int,
    progress: Progress | None = None,
    *,
    reject: bool,
) -> Marginals:
    """Estimate all marginals; what was observed is set and weighed, or drawn as well and rejected where it differs.

    Rows that do not sum to one, as in tied networks, are divided by their sums, which belong to the weight.
    """
    problem = restrict(model, {}, closed=False)
    turned = open_order(model, problem) or elimination_order(problem.scopes, problem.states)[::-1]
    index = {v: k for k, v in enumerate(problem.free)}
    seen = {index[v]: state for v, state in known.items() if v in index}
    proposal = without_messages(problem, turned, average=False, known=seen, reject=reject)
    method = "forward" if reject else "lw"
    return run(model.variables, problem, proposal, budget, seed, method, progress)


def open_order(model: LogLinear, problem: Problem) -> tuple[int, ...] | None:
    """Return the order of `drawing_order` for the open variables of a problem."""
    order, index = drawing_order(model), {v: k for k, v in enumerate(problem.free)}
    return None if order is None else tuple(index[v] for v in order if v in index)


def drawing_order(model: LogLinear) -> tuple[int, ...] | None:
    """Return an order with parents before children, when the factors are those of a network."""
    children = [factor.scope[-1] for factor in model.factors if factor.scope]
    if sorted(children) != list(range(len(model.variables))) or len(children) < len(model.factors):
        return None
    parents: list[tuple[int, ...]] = [()] * len(children)
    for factor in model.factors:
        parents[factor.scope[-1]] = factor.scope[:-1]
    try:
        return tuple(Structure(tuple(parents)).order)
    except TinybayesError:
        return None
