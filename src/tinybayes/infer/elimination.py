"""What compiling a network in an order of its variables will cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinybayes.errors import error
from tinybayes.infer.orders import HEURISTICS, search_orders, steps_worth
from tinybayes.model import BayesNet


@dataclass(frozen=True)
class Estimate:
    """What compiling a network in an order takes at most.

    Parameters
    ----------
    order
        The variables in the order in which they are eliminated, by index.
    treewidth
        The width of this order: the variables of the largest clique less one. The treewidth of the network is not
        larger.
    largest_clique
        Assignments of the largest clique.
    edges
        A bound on the edges of the circuit, as if no probability were zero and no two were equal. Circuits of
        networks with such structure are often smaller by orders of magnitude.
    """

    order: tuple[int, ...]
    treewidth: int
    largest_clique: int
    edges: int


def estimate_width(net: BayesNet, order: str | Sequence[int] = "search") -> Estimate:
    """Return upper bounds on what compiling a network takes, before compiling it.

    Parameters
    ----------
    net
        The network.
    order
        ``"min-fill"``, ``"weighted-min-fill"``, ``"min-weight"`` (the smallest clique next) or ``"min-width"`` (the
        fewest neighbours next); ``"search"``: the best of many, with noise in their choices, within about a second; or
        the variables in the order of their elimination, by index.
    """
    return estimates(net, order)[0]


def estimates(net: BayesNet, order: str | Sequence[int] = "search", most: int = 1) -> list[Estimate]:
    """Return the best orders of a search, by the size of their cliques, or the given order.

    The order with the smallest bound on its edges comes first, since only one is tried for very large circuits.
    """
    cards = [node.cardinality for node in net.nodes]
    if not cards:
        raise error("a network with variables", "none", where="order")
    if isinstance(order, str):
        if order not in (*HEURISTICS, "search"):
            raise error(" or ".join([*HEURISTICS, "search"]), repr(order), where="order")
        families = net.structure.families
        steps = steps_worth(families, cards)
        orders = search_orders(families, cards, heuristic=order, most=most, steps=steps, depths=_depths(net))
    else:
        orders = [tuple(int(node) for node in order)]
        if sorted(orders[0]) != list(range(len(cards))):
            raise error("every variable once, by index", f"{orders[0][:10]}", where="order")
    plans = [_price(net.structure.families, cards, chosen) for chosen in orders]
    first = min(plans, key=lambda plan: plan.edges)
    return [first, *(plan for plan in plans if plan is not first)]


def _price(families: Sequence[Sequence[int]], cards: Sequence[int], order: tuple[int, ...]) -> Estimate:
    rank = {node: k for k, node in enumerate(order)}
    buckets: list[list[frozenset[int]]] = [[] for _ in order]
    for family in families:
        buckets[min(rank[v] for v in family)].append(frozenset(family))
    # Every entry of a table may be multiplied by the indicators of its family, and every variable ends in the root.
    edges = len(order) + sum((1 + len(family)) * math.prod(cards[v] for v in family) for family in families)
    width, largest = 0, 1
    for k, node in enumerate(order):
        clique = frozenset({node}).union(*buckets[k])
        size = math.prod(cards[v] for v in clique)
        # An assignment of the clique is a child of a sum, after as many products of pairs as there are more factors.
        edges += size * max(2 * len(buckets[k]) - 1, 1)
        width, largest = max(width, len(clique) - 1), max(largest, size)
        if rest := clique - {node}:
            buckets[min(rank[v] for v in rest)].append(rest)
    return Estimate(order, width, largest, edges)


def merge_pairs(scopes: Sequence[frozenset[int]], cards: np.ndarray) -> np.ndarray:
    """Return the pairs in which to multiply factors, into the first: those whose product has the fewest assignments."""
    size = np.log(cards)
    merges: list[tuple[int, int]] = []
    groups: dict[frozenset[int], int] = {}
    for j, scope in enumerate(scopes):
        if scope in groups:
            merges.append((groups[scope], j))
        else:
            groups[scope] = j
    left = {j: scope for scope, j in groups.items()}
    while len(left) > 1:
        # With many factors only the smallest are compared.
        near = sorted(left, key=lambda j: sum(size[z] for z in left[j]))[:20]
        pairs = [(i, j) for i in near for j in near if i < j]
        i, j = min(pairs, key=lambda pair: sum(size[z] for z in left[pair[0]] | left[pair[1]]))
        left[i] |= left.pop(j)
        merges.append((i, j))
    return np.array(merges, dtype=np.int64).reshape(-1, 2)


def least_edges(scopes: Sequence[frozenset[int]], varieties: Sequence[float], cards: np.ndarray) -> int:
    """Return how many edges eliminating the variables, the largest first, adds to a circuit at least.

    `varieties` are the numbers of different nonzero entries of the factors, as a share of all their entries.

    Take one assignment for each different entry of a factor. Assignments of a product that are among those taken in all
    of its factors have products that no other has, and of all assignments they are at least one less the shares that
    were not taken. Where this holds for all states of the variable, no product goes before the sum, and no term is
    missing. Without zeros and equal entries this is the exact number.
    """
    buckets: list[list[tuple[frozenset[int], float]]] = [[] for _ in cards]
    for scope, variety in zip(scopes, varieties, strict=True):
        buckets[max(scope)].append((scope, 1 - variety))
    edges = 0.0
    for level in range(len(cards) - 1, -1, -1):
        factors = buckets[level]
        if not factors:
            continue
        around, lost = [scope for scope, _ in factors], sum(loss for _, loss in factors)
        assignments = 0
        for i, j in merge_pairs(around, cards):
            around[i] |= around[j]
            assignments += 2 * math.prod(int(cards[z]) for z in around[i])
        assignments += math.prod(int(cards[z]) for z in around[0])
        edges += max(1 - cards[level] * lost, 0) * assignments
        if rest := around[0] - {level}:
            buckets[max(rest)].append((rest, lost))
    return int(edges)


def _depths(net: BayesNet) -> np.ndarray:
    """Return how far from the roots of decision trees a variable is tested.

    What is tested last matters in few contexts: eliminated first, it leaves the smaller factor.
    """
    depths = np.zeros(len(net.nodes))
    for cpd in net.cpds:
        if cpd.tree is None:
            continue
        below = np.zeros(len(cpd.tree.split))
        for test, parent in enumerate(cpd.tree.split.tolist()):
            if parent >= 0:
                first = int(cpd.tree.first[test])
                ways = cpd.tree.children[first : first + net.nodes[parent].cardinality]
                below[ways] = np.maximum(below[ways], below[test] + 1)
                depths[parent] = max(depths[parent], below[test] + 1)
    return depths
