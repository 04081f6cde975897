"""The cheapest of many randomized greedy elimination orders of a graph."""

import numpy as np

from tinybayes._kernels import jit


@jit
def _score(v, near, degree, beside, cards, weighted):
    """Return what eliminating `v` adds to the graph, and the logarithm of the size of its clique."""
    fill, size = 0.0, np.log(cards[v])
    for i in range(degree[v]):
        a = near[v, i]
        size += np.log(cards[a])
        for j in range(i):
            b = near[v, j]
            if not beside[a, b]:
                fill += cards[a] * cards[b] if weighted else 1.0
    return fill, size


@jit
def _next(near, degree, beside, cards, depth, weighted, noise, alive, changed, score, size):
    """Return the variable to eliminate; scores that cannot win are not brought up to date."""
    best = -1
    for stale in range(2):
        for v in range(len(cards)):
            if not alive[v] or changed[v] != stale:
                continue
            if stale:
                # Nothing is better than to add nothing, and looking at a hub again each time would take too long.
                if best >= 0 and score[best] == 0.0 and degree[v] > degree[best]:
                    continue
                fill, size[v] = _score(v, near, degree, beside, cards, weighted)
                score[v] = fill * np.exp(noise * np.random.standard_normal())  # noqa: NPY002
                size[v] -= 1e-9 * (depth[v] + noise * np.random.standard_normal())  # noqa: NPY002
                changed[v] = False
            if best < 0 or score[v] < score[best] or (score[v] == score[best] and size[v] < size[best]):
                best = v
    return best


@jit
def _greedy(near, degree, beside, cards, depth, weighted, noise, limit, order):
    """Write an order and return the logarithm of the sum of the sizes of its cliques; the graph is used up.

    Eliminates next the variable that adds the least to the graph, of equal ones that with the smallest clique, of
    those the deepest. What is added is multiplied by log-normal noise. Gives up with infinity when the sum exceeds
    `limit`.
    """
    n = len(cards)
    score, size = np.empty(n), np.empty(n)
    alive, changed = np.ones(n, np.bool_), np.ones(n, np.bool_)
    total = -np.inf
    for k in range(n):
        best = _next(near, degree, beside, cards, depth, weighted, noise, alive, changed, score, size)
        order[k] = best
        alive[best] = False
        total = np.logaddexp(total, size[best])
        if total > limit:
            return np.inf
        for i in range(degree[best]):  # taken out of the lists of its neighbours
            a = near[best, i]
            for j in range(degree[a]):
                if near[a, j] == best:
                    near[a, j] = near[a, degree[a] - 1]
                    degree[a] -= 1
                    break
        for i in range(degree[best]):
            a = near[best, i]
            changed[a] = True
            for j in range(i):
                b = near[best, j]
                if not beside[a, b]:
                    for m in range(degree[a]):  # neighbours of both lack an edge less
                        if beside[near[a, m], b]:
                            changed[near[a, m]] = True
                    beside[a, b] = beside[b, a] = True
                    near[a, degree[a]], near[b, degree[b]] = b, a
                    degree[a] += 1
                    degree[b] += 1
    return total


@jit
def greedy_orders(beside, cards, depth, weighted, noise, slack, seed):
    """Return an order for each entry of `weighted` and `noise`, with the logarithm of its total size.

    Parameters
    ----------
    beside
        The graph, as a matrix of booleans.
    cards, depth
        The numbers of states; and of variables that are otherwise equal, the deepest goes first.
    weighted, noise
        For each order whether an edge weighs the product of its ends' numbers of states, or one; and the noise.
    slack
        Orders whose size exceeds the smallest so far by more than this logarithm are not finished: their size
        is infinite.
    """
    n = len(cards)
    # Inside a kernel this is the thread's own generator of Numba; NumPy's global one is not touched.
    np.random.seed(seed)  # noqa: NPY002
    degree, near = np.zeros(n, np.int64), np.empty((n, n), np.int32)
    for a in range(n):
        for b in range(n):
            if beside[a, b]:
                near[a, degree[a]] = b
                degree[a] += 1
    orders, totals = np.empty((len(noise), n), np.int64), np.empty(len(noise))
    least = np.inf
    for t in range(len(noise)):
        graph = near.copy(), degree.copy(), beside.copy()
        totals[t] = _greedy(*graph, cards, depth, weighted[t], noise[t], least + slack, orders[t])
        least = min(least, totals[t])
    return orders, totals
