"""The price of a model: memory as it is stored, operations as the papers count them; the cheapest format."""

from collections.abc import Sequence

import numpy as np

from tinybayes.cost.neural_net import neural_net_cost
from tinybayes.cost.tree_ensemble import tree_ensemble_cost
from tinybayes.model import (
    BayesNet,
    Circuit,
    Classifier,
    Codebook,
    Cost,
    DecisionTree,
    Float,
    NeuralNet,
    NumberFormat,
    TreeEnsemble,
    Variable,
)
from tinybayes.model.circuit import INDICATOR, PARAMETER, PRODUCT, SUM


def model_cost(model: Classifier) -> Cost:
    """Price a model.

    **A Bayesian network**, as in *On resource-efficient Bayesian network classifiers*. Bits are the entries of all
    tables, the class prior included, times the bits of their format; each distinct codebook is paid once. A prediction
    looks up, for each class, the entry of every table that depends on the class, and adds them: for D features and C
    classes (D + 1) C look-ups, D C additions, and C - 1 comparisons for the arg max. Tables that do not depend on the
    class cannot change the decision and cost a prediction nothing. Decision trees add a comparison for each test on
    their longest path. Without a class the price is that of ``log p(x)``: one look-up per variable, and the additions.

    **A circuit**, as in *Learning arithmetic circuits*. An evaluation does one operation per edge: an addition below a
    sum, a multiplication below a product. It reads each parameter and each indicator once. A prediction evaluates the
    circuit once per class, and takes C - 1 comparisons; without a class the price is that of one query ``P(evidence)``.
    Bits are the entries of the table times the bits of their format; the graph is not counted, as the structure of a
    Bayesian network is not.

    **A neural net** is priced as it is stored: weights in their bits, and the integers of everything else. A bias takes
    32 bits, a multiplier 16; equal multipliers of a layer are paid once, and biases that are all zero cost nothing.
    Multipliers of the inputs take 16 bits each, unless all are equal; so do the centres of convolutions, while those of
    dense layers are part of the bias. A prediction does one multiplication and addition per weight and position.

    **Decision trees** are priced as they are stored: equal tests and equal values of leaves once, then for every node
    the number of its test or value. A prediction compares as often as the longest paths have tests, and adds a value
    for each tree.
    """
    if isinstance(model, Circuit):
        return _circuit_cost(model)
    if isinstance(model, TreeEnsemble):
        return tree_ensemble_cost(model)
    return neural_net_cost(model) if isinstance(model, NeuralNet) else _bayes_net_cost(model)


def _bayes_net_cost(net: BayesNet) -> Cost:
    entries = [(cpd.table.size, cpd.format) for cpd in net.cpds]
    shared = sum(number_format.shared_bits for number_format in {f for _, f in entries})
    if net.target is None:
        used, answers = list(net.cpds), 1
    else:
        classes = len(net.variables)
        used = [cpd for node, cpd in enumerate(net.cpds) if node == classes or classes in cpd.parents]
        answers = net.target.cardinality
    return Cost(
        bits=sum(count * number_format.bits for count, number_format in entries) + shared,
        parameters=sum(count for count, _ in entries),
        additions=(len(used) - 1) * answers,
        lookups=len(used) * answers,
        comparisons=answers - 1 + sum(_depth(cpd.tree, net.nodes) for cpd in used if cpd.tree is not None),
    )


def _depth(tree: DecisionTree, nodes: Sequence[Variable]) -> int:
    """Return the number of tests on the longest path."""
    height = [0] * len(tree.split)
    for node in range(len(tree.split) - 1, -1, -1):  # children come after their node
        parent, start = int(tree.split[node]), int(tree.first[node])
        if parent >= 0:
            below = tree.children[start : start + nodes[parent].cardinality]
            height[node] = 1 + max(height[child] for child in below)
    return height[0]


def _circuit_cost(circuit: Circuit) -> Cost:
    answers = 1 if circuit.target is None else circuit.target.cardinality
    edges = np.bincount(np.repeat(circuit.kind, np.diff(circuit.offsets)), minlength=4)
    nodes = np.bincount(circuit.kind, minlength=4)
    number_format = circuit.format
    return Cost(
        bits=len(circuit.table) * number_format.bits + number_format.shared_bits,
        parameters=len(circuit.table),
        additions=answers * int(edges[SUM]),
        multiplications=answers * int(edges[PRODUCT]),
        lookups=answers * int(nodes[PARAMETER] + nodes[INDICATOR]),
        comparisons=answers - 1,
        edges=circuit.n_edges,
    )


def cheapest_format(tables: Sequence[np.ndarray]) -> NumberFormat:
    """Return a codebook of all values of log-parameters, or 32-bit floats where those take no more bits.

    The values are numbers that 32-bit floats hold. All tables share the codebook, which is paid once.
    """
    values = np.concatenate([np.asarray(table).reshape(-1) for table in tables])
    book = Codebook(tuple(np.unique(values).tolist()))
    return book if book.bits * values.size + book.shared_bits < 32 * values.size else Float()
