"""The price of a Bayesian network, counted as in resource_efficient_bn_classifiers."""

from collections.abc import Sequence

from tinybayes.model import BayesNet, Cost, DecisionTree, Variable


def bayes_net_cost(net: BayesNet) -> Cost:
    """Price a network.

    Bits are the entries of all tables, the class prior included, times the bits of their format; levels shared
    by a codebook are paid once for each distinct codebook. A prediction looks up, for each class, the entry of
    every table that depends on the class, and adds them up: for D features and C classes (D + 1) C look-ups, D C
    additions, and C - 1 comparisons for the arg max. Tables that do not depend on the class cannot change the
    decision and cost a prediction nothing. Decision trees add a comparison for each test on their longest path.

    Without a class the price is that of ``log p(x)``: one look-up a variable, and the additions between them.
    """
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
