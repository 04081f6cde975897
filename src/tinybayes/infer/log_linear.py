"""Log-linear models as networks that the compiler of circuits takes.

The compiler takes Bayesian networks whose rows need not sum to one. A factor can be the distribution of its last
variable given the others, once for each variable; otherwise it is that of a helper variable with a single state. In
place of its weight an entry has the number of its tie class, so that the compiler shares tied entries whatever their
weights are: the circuit stays right when they change. Then the helpers are removed from the circuit.
"""

from dataclasses import replace

import numpy as np

from tinybayes.errors import TinybayesError, error
from tinybayes.model import CPD, BayesNet, Circuit, Float, LogLinear, Structure, Variable
from tinybayes.model.circuit import INDICATOR, PARAMETER, PRODUCT


def with_weights(circuit: Circuit, weights: np.ndarray) -> Circuit:
    """Return the circuit of a log-linear model with other weights; forbidden features must stay forbidden."""
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != circuit.table.shape:
        raise error(f"{len(circuit.table)} weights", f"shape {weights.shape}", where="with_weights")
    if (np.isneginf(weights) < np.isneginf(circuit.log_parameters)).any():
        raise error("minus infinity where it was", "another weight", where="with_weights", remedy="compile again")
    return replace(circuit, table=weights, format=Float(64))


def as_network(model: LogLinear) -> tuple[BayesNet, np.ndarray]:
    """Return the network with helper variables, and the tie class of each entry of its tables."""
    hosted, form, count = _hosts(model), Float(64), len(model.variables)
    cpds = [CPD((), np.zeros((1, card)), form) for card in model.cardinalities]
    classes = [np.full(card, -1) for card in model.cardinalities]
    forbidden = np.append(np.isneginf(model.weights), False)
    for number, factor in enumerate(model.factors):
        if factor.feature.max() < 0:
            continue
        entry = np.where(factor.feature >= 0, model.classes[factor.feature], -1)
        table = np.where(forbidden[entry], -np.inf, entry + 1.0)  # no feature: 0, which the compiler leaves out
        if number in hosted:
            *parents, child = factor.scope
            cpds[child] = CPD(tuple(parents), table.reshape(-1, model.cardinalities[child]), form)
            classes[child] = entry
        else:
            cpds.append(CPD(factor.scope, table.reshape(-1, 1), form, factor.tree))
            classes.append(entry)
    helpers = [Variable(f"\0{k}", (0,)) for k in range(len(cpds) - count)]
    return BayesNet((*model.variables, *helpers), None, tuple(cpds)), np.concatenate(classes)


def _hosts(model: LogLinear) -> set[int]:
    """Choose factors that can be the distribution of their last variable, and so need no helper.

    Those of a Bayesian network all can. Where this makes a cycle, only edges to the variable of the highest number go.
    """
    for upwards in (False, True):
        of_child: dict[int, int] = {}
        for number, factor in enumerate(model.factors):
            scope = factor.scope
            if factor.tree is None and scope and factor.feature.max() >= 0 and (not upwards or scope[-1] == max(scope)):
                of_child.setdefault(scope[-1], number)
        parents = [model.factors[of_child[v]].scope[:-1] if v in of_child else () for v in range(len(model.variables))]
        try:
            Structure(tuple(parents))
        except TinybayesError:
            continue
        return set(of_child.values())
    return set()


def without_helpers(circuit: Circuit, count: int, classes: np.ndarray, model: LogLinear) -> Circuit:
    """Drop the indicators of the helpers, which are always one, and let the parameters be those of the classes."""
    kind, offsets, children = circuit.kind, circuit.offsets, circuit.children
    below, sizes = np.repeat(np.arange(len(kind)), np.diff(offsets)), np.diff(offsets)
    one = (kind == INDICATOR) & (circuit.leaf >= circuit.first_state[count])
    while True:  # products of nothing but ones are one; a sum never is, since each of its children has an indicator
        left = np.bincount(below, ~one[children], len(kind)).astype(np.int64)
        more = (kind == PRODUCT) & (left == 0) & ~one
        if not more.any():
            break
        one |= more
    keep = ~one[children]
    below, children = below[keep], children[keep]
    # A product with one child left is that child.
    target = np.arange(len(kind))
    single = (kind == PRODUCT) & (left == 1) & (sizes > 1)
    edge = single[below]
    target[below[edge]] = children[edge]
    while (target[target] != target).any():
        target = target[target]
    stays = ~one & ~single
    number = np.cumsum(stays) - 1
    keep = stays[below]
    below, children = below[keep], number[target[children[keep]]]
    leaf = circuit.leaf.copy()
    parameter = kind == PARAMETER
    leaf[parameter] = classes[leaf[parameter]]
    # The root is the last node also when it was a product with one child left: everything then is below that child.
    root = int(number[target[-1]])
    assert root == stays.sum() - 1
    starts = np.cumsum([0, *np.bincount(number[below], minlength=int(stays.sum()))])
    kept = (kind[stays], starts, children, leaf[stays])
    return Circuit(model.variables, None, *kept, model.weights, Float(64))
