"""The features of a Bayesian network as a forest, in the order in which a program sums out missing values."""

from typing import NamedTuple

from tinybayes.deploy.programs.plan import TablePlan


class Branch(NamedTuple):
    """A feature with its table; the row is ``first + states * (code of the parent) + (own code)``."""

    first: int
    feature: int
    states: int
    parent: int  # -1 without
    above: int  # states of the parent; 1 without


def branches(plan: TablePlan) -> tuple[Branch, ...]:
    """Return the features of a plan with gaps that have a term, children before parents.

    A parent with one state adds the same to all that is summed over, so that its children need not know it.
    """
    features, states = len(plan.variables), plan.terms.states
    terms, forest = iter(plan.terms.terms), {}
    for i, cpd in enumerate(plan.net.cpds[:features]):
        parent = next((p for p in cpd.parents if p != features and states[p] > 1), -1)
        if states[i] > 1 or parent >= 0:
            above = states[parent] if parent >= 0 else 1
            forest[i] = Branch(next(terms).first, i, states[i], parent, above)
    return tuple(forest[i] for i in reversed(plan.net.structure.order) if i in forest)
