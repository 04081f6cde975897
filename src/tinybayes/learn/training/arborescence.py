"""The heaviest arborescence (Chu and Liu 1965, Edmonds 1967): the best choice of parents without a cycle.

The order-free search calls this once, after 40 % of the epochs, to get an ordering; it then searches among earlier
features. Fixing the tree at the end instead costs half a point of error on letter: the tables cannot adapt any more,
and the noise of the search, which regularises like dropout, ends too early.
"""

import numpy as np


def best_parents(weight: np.ndarray) -> np.ndarray:
    """Choose a parent for every node, -1 for none, so that no cycle arises and the sum of the weights is largest.

    ``weight[v, u]`` of shape (n, n + 1) is that of node v with parent u, ``weight[v, n]`` that of no parent; -inf where
    it is not allowed. Having no parent must be allowed, otherwise there may be no solution.
    """
    n = len(weight)
    full = np.full((n + 1, n + 1), -np.inf)
    full[:n] = weight
    np.fill_diagonal(full, -np.inf)
    chosen = _solve(full, n)
    return np.where(chosen[:n] == n, -1, chosen[:n])


def acyclic_mask(logits: np.ndarray, mask: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Keep for each feature the one candidate that it has in the best acyclic choice."""
    chosen = best_parents(_log_probabilities(logits, mask, parent))
    return np.asarray(mask & (parent == chosen[:, None]))


def ordering_mask(logits: np.ndarray, mask: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Keep the candidates that come before their child in one ordering, so that every choice is acyclic.

    The ordering agrees with the best acyclic choice. Where that leaves it open, the feature comes next that loses the
    least: whose candidates before it already have the largest share of its probability.
    """
    weight = _log_probabilities(logits, mask, parent)
    chosen = best_parents(weight)
    share = np.exp(weight)
    features = len(parent)
    position = np.full(features + 1, features)
    position[features] = -1  # no parent comes before all
    kept = share[:, features].copy()
    for rank in range(features):
        free = (position[:features] == features) & (position[chosen] < features)
        following = int(np.where(free, kept, -1.0).argmax())
        position[following] = rank
        kept += share[:, following]
    return np.asarray(mask & (position[parent] < position[:features, None]))


def _log_probabilities(logits: np.ndarray, mask: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Return log p(parent of feature) of shape (features, features + 1); the last column is for no parent."""
    features = len(parent)
    z = np.where(mask, logits, -np.inf)
    top = z.max(axis=1, keepdims=True)
    log_p = z - top - np.log(np.exp(z - top).sum(axis=1, keepdims=True))
    weight = np.full((features, features + 1), -np.inf)
    i, k = np.nonzero(mask)
    weight[i, parent[i, k]] = log_p[i, k]  # -1, no parent, is the last column
    return weight


def _solve(weight: np.ndarray, root: int) -> np.ndarray:
    """Return the parent of each node but the root, whose entry is -1."""
    parent = weight.argmax(axis=1)
    parent[root] = -1
    cycle = _find_cycle(parent)
    if cycle is None:
        return parent
    n = len(weight)
    inside = np.zeros(n, dtype=bool)
    inside[cycle] = True
    outside = np.flatnonzero(~inside)
    # Contract the cycle to one node, the last: entering it at v costs what v's edge in the cycle gains.
    entering = weight[cycle] - weight[cycle, parent[cycle]][:, None]
    small = np.full((len(outside) + 1, len(outside) + 1), -np.inf)
    small[:-1, :-1] = weight[np.ix_(outside, outside)]
    small[:-1, -1] = weight[np.ix_(outside, cycle)].max(axis=1)
    small[-1, :-1] = entering[:, outside].max(axis=0)
    chosen = _solve(small, int(np.searchsorted(outside, root)))
    result = np.full(n, -1)
    for v, p in zip(outside, chosen[:-1], strict=True):
        if p >= 0:
            result[v] = outside[p] if p < len(outside) else cycle[int(weight[v, cycle].argmax())]
    result[cycle] = parent[cycle]
    above = outside[chosen[-1]]
    entry = cycle[int(entering[:, above].argmax())]
    result[entry] = above
    return result


def _find_cycle(parent: np.ndarray) -> np.ndarray | None:
    seen = np.zeros(len(parent), dtype=np.int64)  # 0: not seen; else the walk that saw it
    for start in range(len(parent)):
        v = start
        while v >= 0 and seen[v] == 0:
            seen[v] = start + 1
            v = int(parent[v])
        if v >= 0 and seen[v] == start + 1:
            cycle = [v]
            while int(parent[cycle[-1]]) != v:
                cycle.append(int(parent[cycle[-1]]))
            return np.array(cycle)
    return None
