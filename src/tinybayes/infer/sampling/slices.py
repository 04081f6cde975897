"""Exact slices: how many assignments have each vector of counts of the tie classes.

All assignments with the same counts t of true features have the same weight ``exp(t mu)``. Going through the variables
in an order, one only has to remember the values of those whose factors are not complete yet, and the counts so far: a
lattice of layers, in which the number of ways to each node is counted. A sample is a slice, drawn in proportion to
``N(t) exp(t mu)``, and then a way back through the lattice, uniform among all of them. Its weight is constant.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinybayes._kernels.draws import Weighted, draw_slices
from tinybayes.errors import error
from tinybayes.infer.sampling.problem import Problem

MOST = 2**23  # edges of the lattice
_MOST_VECTORS = 2**18  # vectors of counts


@dataclass(frozen=True, eq=False)
class _Layer:
    """A layer of the lattice, with the edges into it, sorted by their target."""

    count: np.ndarray  # of ways to each node, scaled
    target: np.ndarray
    source: np.ndarray  # a node of the layer before
    state: np.ndarray


class Slices:
    """The lattice of the slices of a model, given evidence; refused when it would have more than `most` edges.

    `counts` says how many features of each tie class are true in each slice, without those of factors that the
    evidence decides; `log_sizes` is the logarithm of the number of assignments of each slice, `log_z` that of the sum
    over all assignments.
    """

    def __init__(self, problem: Problem, most: int = MOST) -> None:
        self.problem = problem
        self.order = frontier_order(problem)
        self.layers: list[_Layer] = []
        lattice = _Lattice(problem, self.order, most)
        for k in range(len(self.order)):
            self.layers.append(lattice.step(k))
        self.counts = lattice.vectors()
        self.log_sizes = np.log(lattice.count) + lattice.log_scale
        finite = np.where(np.isfinite(problem.weights), problem.weights, 0.0)
        self._logs = self.log_sizes + self.counts @ finite
        top = self._logs.max()
        self.log_z = problem.constant + float(top + np.log(np.exp(self._logs - top).sum()))
        self.chances = np.exp(self._logs - self.log_z + problem.constant)
        # What `draw` adds up has weights of one.
        self.log_scale, self.notes = self.log_z, (f"{len(self.chances):,} slices",)
        self._arrays = self._flat()

    def marginals(self) -> np.ndarray:
        """Return the exact probability of each state of each open variable."""
        problem = self.problem
        probabilities, chance = np.zeros(int(problem.first_state[-1])), self.chances
        for k in range(len(self.order) - 1, -1, -1):
            layer = self.layers[k]
            before = self.layers[k - 1].count if k else np.ones(1)
            part = before[layer.source]
            flow = chance[layer.target] * part / np.bincount(layer.target, part)[layer.target]
            begin = int(problem.first_state[self.order[k]])
            states = int(problem.states[self.order[k]])
            probabilities[begin : begin + states] = np.bincount(layer.state, flow, states)
            chance = np.bincount(layer.source, flow, len(before))
        return probabilities

    def draw(self, count: int, key: np.ndarray, sums: Weighted) -> None:
        """Draw samples and add them to the sums."""
        x = np.zeros(max(len(self.order), 1), dtype=np.int32)
        draw_slices(*self._arrays, count, key, x, np.zeros(1, dtype=np.uint64), sums)

    def _flat(self) -> tuple[np.ndarray, ...]:
        """Put the layers one after the other; node 0 is the beginning."""
        first_edge, source, state, upto = [np.zeros(1, np.int64)], [], [], []
        start, edges = 0, 0
        for k, layer in enumerate(self.layers):
            before = self.layers[k - 1].count if k else np.ones(1)
            part = before[layer.source]
            bounds = np.searchsorted(layer.target, np.arange(len(layer.count) + 1))
            total = np.cumsum(part)
            # Cumulative inside each target.
            upto.append(total - np.repeat(np.concatenate([[0.0], total])[bounds[:-1]], np.diff(bounds)))
            first_edge.append(edges + bounds[:-1])
            source.append(start + layer.source)
            state.append(layer.state)
            start, edges = start + len(before), edges + len(part)
        first_edge.append(np.array([edges]))
        empty = np.empty(0, np.int64)
        return (
            np.cumsum(self.chances),
            np.concatenate(first_edge).astype(np.int64),
            np.concatenate([empty, *source]).astype(np.int64),
            np.concatenate([empty, *state]).astype(np.int32),
            np.concatenate([np.empty(0), *upto]),
            np.array(self.order, dtype=np.int64),
            self.problem.first_state,
        )


class _Lattice:
    """The present layer: values of the frontier, numbers of count vectors, ways."""

    def __init__(self, problem: Problem, order: Sequence[int], most: int) -> None:
        self.problem, self.order, self.most = problem, order, most
        self.rank = {v: k for k, v in enumerate(order)}
        self.frontier: list[int] = []
        self.values = np.zeros((1, 0), dtype=np.int16)
        self.vector = np.zeros(1, dtype=np.int64)
        self.count = np.ones(1)
        self.log_scale, self.edges = 0.0, 0
        nothing = np.zeros(len(problem.weights), dtype=np.int16).tobytes()
        self.known, self.listed = {nothing: 0}, [nothing]
        self.done: list[list[int]] = [[] for _ in order]
        self.last = [0] * len(order)
        for f, scope in enumerate(problem.scopes):
            end = max(self.rank[v] for v in scope)
            self.done[end].append(f)
            for v in scope:
                self.last[self.rank[v]] = max(self.last[self.rank[v]], end)

    def step(self, k: int) -> _Layer:
        """Add the next variable."""
        v, nodes = self.order[k], len(self.count)
        states = int(self.problem.states[v])
        self.edges += nodes * states
        if self.edges > self.most or len(self.known) > _MOST_VECTORS:
            raise error(
                f"a lattice of at most {self.most:,} edges and {_MOST_VECTORS:,} vectors of counts",
                f"more, after {k} of {len(self.order)} variables",
                where="slices",
                remedy="slices are for few tie classes and a small width: method='tied' takes any",
            )
        source = np.repeat(np.arange(nodes), states)
        state = np.tile(np.arange(states), nodes)
        values = np.column_stack([self.values[source], state]).astype(np.int16)
        names, vector = [*self.frontier, v], self.vector[source]
        keep = np.ones(len(source), dtype=np.bool_)
        for f in self.done[k]:
            at = np.zeros(len(source), dtype=np.int64)
            for u in self.problem.scopes[f]:
                at = at * int(self.problem.states[u]) + values[:, names.index(u)]
            classes = self.problem.classes[f][at]
            keep &= ~np.isneginf(self.problem.logs[f][at])
            vector = self._plus(vector, np.where(keep, classes, -1))
        stays = [axis for axis, u in enumerate(names) if self.last[self.rank[u]] > k]
        return self._merge(values[keep][:, stays], vector[keep], source[keep], state[keep], [names[p] for p in stays])

    def _plus(self, vector: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Return the numbers of the vectors with one more in a class."""
        width = len(self.problem.weights) + 1
        pairs, inverse = np.unique(vector * width + classes + 1, return_inverse=True)
        made = np.empty(len(pairs), dtype=np.int64)
        for i, pair in enumerate(pairs.tolist()):
            number, extra = divmod(pair, width)
            if extra:
                counts = np.frombuffer(self.listed[number], dtype=np.int16).copy()
                counts[extra - 1] += 1
                key = counts.tobytes()
                number = self.known.setdefault(key, len(self.listed))
                if number == len(self.listed):
                    self.listed.append(key)
            made[i] = number
        return made[inverse.reshape(-1)]

    def _merge(
        self, values: np.ndarray, vector: np.ndarray, source: np.ndarray, state: np.ndarray, names: list[int]
    ) -> _Layer:
        code = np.zeros(len(values), dtype=np.int64)
        for column, u in enumerate(names):
            code = code * int(self.problem.states[u]) + values[:, column]
        _, first, target = np.unique(code * len(self.known) + vector, return_index=True, return_inverse=True)
        target = target.reshape(-1)
        by = np.argsort(target, kind="stable")
        count = np.bincount(target, self.count[source], len(first))
        scale = float(count.max(initial=1.0))
        self.log_scale += math.log(scale)
        self.frontier, self.values, self.vector, self.count = names, values[first], vector[first], count / scale
        return _Layer(self.count, target[by], source[by], state[by])

    def vectors(self) -> np.ndarray:
        """Return the count vectors of the nodes."""
        rows = [np.frombuffer(self.listed[number], dtype=np.int16) for number in self.vector.tolist()]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.problem.weights))


def frontier_order(problem: Problem) -> tuple[int, ...]:
    """Return an order of the variables that leaves few of them open at a time: greedy, from several beginnings."""
    n = len(problem.free)
    near: list[set[int]] = [set() for _ in range(n)]
    for scope in problem.scopes:
        for v in scope:
            near[v].update(u for u in scope if u != v)
    logs = np.log(problem.states)
    best: tuple[float, tuple[int, ...]] = (math.inf, ())
    for start in sorted(range(n), key=lambda v: len(near[v]))[:8]:
        order, size = _greedy(start, near, logs)
        best = min(best, (size, order))
    return best[1]


def _greedy(start: int, near: list[set[int]], logs: np.ndarray) -> tuple[tuple[int, ...], float]:
    order, frontier = [start], {start} if near[start] else set()
    left = [set(around) - {start} for around in near]
    most = 0.0
    while len(order) < len(near):
        waiting = {u for v in frontier for u in left[v]} or {v for v in range(len(near)) if v not in set(order)}
        chosen, least = -1, (math.inf, 0)
        for v in sorted(waiting):
            gone = sum(logs[u] for u in frontier if left[u] == {v})
            size = (logs[v] if left[v] else 0.0) - gone
            oldest = min((order.index(u) for u in near[v] if u in frontier), default=0)
            if (size, oldest) < least:
                chosen, least = v, (size, oldest)
        order.append(chosen)
        for u in near[chosen]:
            left[u].discard(chosen)
        frontier = {u for u in (*frontier, chosen) if left[u]}
        most = max(most, float(sum(logs[u] for u in frontier)))
    return tuple(order), most
