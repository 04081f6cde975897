"""The cheapest of many randomized greedy elimination orders of a graph.

Scores are kept up to date as edges come and go, and a heap holds the variables by their scores: a step looks only at
the neighbourhood of the variable that it eliminates. The graph is lists of neighbours (rows of a square array, of
which the first `degree` entries count) beside a matrix of booleans. Edges that an order adds are taken back after it.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit, plain

MIN_FILL, WEIGHTED_MIN_FILL, MIN_WEIGHT, MIN_WIDTH = range(4)
"""What the next variable has the least of: edges that it adds, the product of the states at their ends summed up, the
size of its clique, or neighbours."""


class _Graph(NamedTuple):
    near: np.ndarray  # (variables, variables) neighbours
    degree: np.ndarray
    beside: np.ndarray  # matrix of booleans


class _Queue(NamedTuple):
    """A binary heap with the smallest score first, of equal ones the smallest clique, then the smallest number."""

    heap: np.ndarray  # variables
    place: np.ndarray  # of each variable in the heap, -1 when it was eliminated
    key: np.ndarray  # of each variable: its score with noise
    tie: np.ndarray  # of each variable: the size of its clique, less a trifle


@plain
def _before(queue, a, b):
    if queue.key[a] != queue.key[b]:
        return queue.key[a] < queue.key[b]
    if queue.tie[a] != queue.tie[b]:
        return queue.tie[a] < queue.tie[b]
    return a < b


@plain
def _settle(queue, count, v):
    """Move a variable to where it belongs in a heap of `count`."""
    i = queue.place[v]
    while i > 0 and _before(queue, v, queue.heap[(i - 1) >> 1]):
        queue.heap[i] = queue.heap[(i - 1) >> 1]
        queue.place[queue.heap[i]] = i
        i = (i - 1) >> 1
    while 2 * i + 1 < count:
        c = 2 * i + 1
        if c + 1 < count and _before(queue, queue.heap[c + 1], queue.heap[c]):
            c += 1
        if not _before(queue, queue.heap[c], v):
            break
        queue.heap[i] = queue.heap[c]
        queue.place[queue.heap[i]] = i
        i = c
    queue.heap[i] = v
    queue.place[v] = i


@plain
def _forget(graph, v):
    """Take a variable out of the lists of its neighbours."""
    for i in range(graph.degree[v]):
        a = graph.near[v, i]
        for j in range(graph.degree[a]):
            if graph.near[a, j] == v:
                graph.degree[a] -= 1
                graph.near[a, j] = graph.near[a, graph.degree[a]]
                break


@plain
def _connect(graph, a, b, weight, fill, touched, marked, count):
    """Add an edge, and what it changes about how many edges its ends and their common neighbours lack."""
    near, degree, beside = graph
    both = weight[a] * weight[b]
    for i in range(degree[a]):
        x = near[a, i]
        if beside[b, x]:
            fill[x] -= both
            if not marked[x]:
                marked[x] = True
                touched[count] = x
                count += 1
        else:
            fill[a] += weight[b] * weight[x]
    for i in range(degree[b]):
        y = near[b, i]
        if not beside[a, y]:
            fill[b] += weight[a] * weight[y]
    beside[a, b] = beside[b, a] = True
    near[a, degree[a]], near[b, degree[b]] = b, a
    degree[a] += 1
    degree[b] += 1
    return count


@jit
def _greedy(graph, queue, logs, weight, fill, size, kind, factor, trifle, limit, order, added):
    """Write an order; return the logarithm of the sum of the sizes of its cliques, the edges added and the work done.

    The size is infinite when the sum exceeds `limit`: the order is then not complete.
    """
    near, degree, beside = graph
    n = len(logs)
    touched, marked = np.empty(n, np.int64), np.zeros(n, np.bool_)
    total, new, work = -np.inf, 0, 0
    for k in range(n):
        left = n - k
        v = queue.heap[0]
        last = queue.heap[left - 1]
        queue.place[v] = -1
        if left > 1:
            queue.heap[0], queue.place[last] = last, 0
            _settle(queue, left - 1, last)
        order[k] = v
        total = np.logaddexp(total, size[v])
        if total > limit:
            return np.inf, new, work
        _forget(graph, v)
        count, width = 0, degree[v]
        for i in range(width):
            a = near[v, i]
            touched[count], marked[a] = a, True
            count += 1
            size[a] -= logs[v]
            work += degree[a]
            if kind <= WEIGHTED_MIN_FILL:
                for j in range(degree[a]):  # pairs of `v` and a neighbour of `a` alone are gone
                    x = near[a, j]
                    if not beside[v, x]:
                        fill[a] -= weight[v] * weight[x]
        if kind > WEIGHTED_MIN_FILL or fill[v] > 0:
            for i in range(width):
                a = near[v, i]
                for j in range(i):
                    b = near[v, j]
                    if beside[a, b]:
                        continue
                    added[new, 0], added[new, 1] = a, b
                    new += 1
                    size[a] += logs[b]
                    size[b] += logs[a]
                    work += degree[a] + degree[b]
                    if kind <= WEIGHTED_MIN_FILL:
                        count = _connect(graph, a, b, weight, fill, touched, marked, count)
                    else:
                        beside[a, b] = beside[b, a] = True
                        near[a, degree[a]], near[b, degree[b]] = b, a
                        degree[a] += 1
                        degree[b] += 1
            work += width * width
        for i in range(count):
            a = touched[i]
            marked[a] = False
            score = fill[a] if kind <= WEIGHTED_MIN_FILL else size[a] if kind == MIN_WEIGHT else degree[a]
            queue.key[a] = factor[a] * score
            queue.tie[a] = size[a] - trifle[a]
            _settle(queue, left - 1, a)
        work += 8 * count + 8
    return total, new, work


@jit
def _fill_of(v, graph, weight):
    """Return the edges that the neighbours of a variable lack among each other, by their weights."""
    fill = 0.0
    for i in range(graph.degree[v]):
        a = graph.near[v, i]
        for j in range(i):
            b = graph.near[v, j]
            if not graph.beside[a, b]:
                fill += weight[a] * weight[b]
    return fill


@jit
def greedy_orders(first, neighbour, cards, depth, kinds, noise, slack, most_work, seed):
    """Return an order for each entry of `kinds` and `noise`, with the logarithm of its total size.

    Parameters
    ----------
    first, neighbour
        The graph: the neighbours of variable v are ``neighbour[first[v] : first[v + 1]]``, each once.
    cards, depth
        The numbers of states; and of variables that are otherwise equal, the deepest goes first.
    kinds, noise
        For each order what it is greedy for (see `MIN_FILL`), and the spread of the log-normal noise in its scores.
    slack
        Orders whose size exceeds the smallest so far by more than this logarithm are not finished: their size
        is infinite.
    most_work
        No order is begun after so many steps, of a few nanoseconds each; the first always is.
    """
    n = len(cards)
    # Inside a kernel this is the thread's own generator of Numba; NumPy's global one is not touched.
    np.random.seed(seed)  # noqa: NPY002
    graph = _Graph(np.empty((n, n), np.int32), np.zeros(n, np.int64), np.zeros((n, n), np.bool_))
    for v in range(n):
        for i in range(first[v], first[v + 1]):
            graph.beside[v, neighbour[i]] = True
    logs = np.log(cards)
    weights, fills = np.empty((2, n)), np.zeros((2, n))
    weights[MIN_FILL], weights[WEIGHTED_MIN_FILL] = 1.0, cards
    known = np.zeros(2, np.bool_)
    queue = _Queue(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty(n))
    added = np.empty((n * (n - 1) // 2 + 1, 2), np.int32)
    orders, totals = np.zeros((len(noise), n), np.int32), np.full(len(noise), np.inf)
    least, work = np.inf, 0
    for t in range(len(noise)):
        if t and work > most_work:
            break
        kind = kinds[t]
        which = min(kind, WEIGHTED_MIN_FILL)
        size, factor, trifle = np.empty(n), np.empty(n), np.empty(n)
        for v in range(n):  # Numba draws from NumPy's older generator, which the caller seeds
            graph.degree[v] = first[v + 1] - first[v]
            graph.near[v, : graph.degree[v]] = neighbour[first[v] : first[v + 1]]
            size[v] = logs[v]
            for i in range(first[v], first[v + 1]):
                size[v] += logs[neighbour[i]]
            factor[v] = np.exp(noise[t] * np.random.standard_normal())  # noqa: NPY002
            trifle[v] = 1e-9 * (depth[v] + noise[t] * np.random.standard_normal())  # noqa: NPY002
        if kind <= WEIGHTED_MIN_FILL and not known[which]:
            known[which] = True
            for v in range(n):
                fills[which, v] = _fill_of(v, graph, weights[which])
        fill = fills[which].copy()
        for v in range(n):
            score = fill[v] if kind <= WEIGHTED_MIN_FILL else size[v] if kind == MIN_WEIGHT else graph.degree[v]
            queue.key[v], queue.tie[v] = factor[v] * score, size[v] - trifle[v]
            queue.heap[v] = queue.place[v] = v
            _settle(queue, v + 1, v)
        totals[t], new, steps = _greedy(
            graph, queue, logs, weights[which], fill, size, kind, factor, trifle, least + slack, orders[t], added
        )
        for i in range(new):
            graph.beside[added[i, 0], added[i, 1]] = graph.beside[added[i, 1], added[i, 0]] = False
        least = min(least, totals[t])
        work += steps + 8 * n
    return orders, totals
