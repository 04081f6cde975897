"""Learning arithmetic circuits (LearnAC of learning_arithmetic_circuits) and tree-CPD Bayesian networks.

Both start from independent variables and split one leaf of one decision tree at a time, whichever improves

    score = log-likelihood - edge_price * edges - parameter_price * parameters

most. With a price on edges the circuit grows along (`_kernels/growing_circuit.py`); without one there is no circuit,
and the learner is the classical one for networks with local structure. What the kernels do step by step is in
`_kernels/grow.py`; here the pools are made and enlarged, progress is told, and the result becomes a network and a
circuit.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tinybayes._kernels import grow as kernel
from tinybayes._kernels.growing_circuit import LIVE, N_EDGES, N_NODES, WORD
from tinybayes._kernels.heap import Heap
from tinybayes._kernels.tree_parts import find_gains
from tinybayes.errors import error
from tinybayes.learn import _growing as pools
from tinybayes.learn._growing import Rows
from tinybayes.learn._interrupts import interruptible
from tinybayes.model import BayesNet, Circuit, Dataset

LOOKS = 500  # candidates looked at before the first report


@dataclass(frozen=True)
class Growth:
    """What a running learner reports: splits, edges, score and log-likelihood (a row, on average) so far."""

    splits: int
    edges: int
    score: float
    log_likelihood: float
    seconds: float


@dataclass(frozen=True)
class Grown:
    """What was learned.

    Parameters
    ----------
    net
        The Bayesian network with decision trees.
    circuit
        The equivalent circuit; None when no circuit was grown.
    growth
        The last report.
    splits
        The splits in order, as pairs (part, variable): enough to repeat the growth.
    complete
        False when a limit or an interrupt ended the growth before a local optimum was reached.
    looks
        How often the cost of a candidate was counted.
    """

    net: BayesNet
    circuit: Circuit | None
    growth: Growth
    splits: np.ndarray
    complete: bool
    looks: int


def learn_ac(
    data: Dataset,
    *,
    edge_price: float = 0.1,
    parameter_price: float = 0.0,
    method: str = "quick",
    smoothing: float = 1.0,
    bayesian: bool = False,
    max_edges: int | None = None,
    seconds: float = float("inf"),
    report: Callable[[Growth], None] | None = None,
    splits: np.ndarray | None = None,
) -> Grown:
    """Learn a circuit whose price of inference is part of the score.

    Parameters
    ----------
    data
        Rows without missing values; a class, if there is one, is one more variable.
    edge_price, parameter_price
        k_e and k_p of the score. Parameters are counted free: a split on a variable of v values in the tree of one of
        k values adds (v - 1)(k - 1).
    method
        ``"quick"`` supposes that the number of edges that a split costs never falls; ``"greedy"`` takes the best split
        every time.
    smoothing
        Spread uniformly over the states of each leaf's distribution.
    bayesian
        Score leaves by their marginal likelihood under a Dirichlet prior of this weight, not by likelihood.
    max_edges, seconds
        Limits; the circuit so far is returned.
    report
        Called now and then. An interrupt (Ctrl-C) ends the growth; the circuit so far is returned.
    splits
        Of an earlier result on the same data: they are repeated first, without looking for better ones.
    """
    if method not in ("quick", "greedy"):
        raise error("'quick' or 'greedy'", repr(method), where="method")
    return _grow(
        data, edge_price, parameter_price, method == "greedy", smoothing, bayesian, max_edges, seconds, report, splits
    )


def learn_tree_cpds(
    data: Dataset,
    *,
    parameter_price: float = 1.0,
    smoothing: float = 1.0,
    bayesian: bool = False,
    seconds: float = float("inf"),
    report: Callable[[Growth], None] | None = None,
) -> Grown:
    """Learn a Bayesian network with decision trees, without regard to the price of inference.

    The arguments are those of `learn_ac`. A multiplicative penalty kappa for each parameter, as some toolkits have it,
    is a `parameter_price` of -log(kappa).
    """
    return _grow(data, None, parameter_price, False, smoothing, bayesian, None, seconds, report, None)


def _grow(
    data: Dataset,
    edge_price: float | None,
    parameter_price: float,
    greedy: bool,
    smoothing: float,
    bayesian: bool,
    max_edges: int | None,
    seconds: float,
    report: Callable[[Growth], None] | None,
    splits: np.ndarray | None,
) -> Grown:
    _check(edge_price, parameter_price, smoothing, max_edges, seconds)
    rows = pools.distinct_rows(data)
    state = _State(rows, edge_price, parameter_price, greedy, smoothing, bayesian, max_edges)
    began = time.monotonic()
    if splits is not None:
        state.repeat(splits)
    looks, complete = LOOKS, False
    with interruptible() as interrupted:
        while not complete and not interrupted.is_set():
            started = time.monotonic()
            complete = state.run(looks)
            now = time.monotonic()
            if report is not None:
                report(state.growth(now - began))
            if now - began > seconds:
                break
            looks = int(np.clip(looks * 0.5 / max(now - started, 1e-3), LOOKS, 10**7))
    net, offsets = pools.network(data, rows, state.parts, state.order, smoothing)
    grown = state.graph, state.scratch, state.parts
    circuit = None if edge_price is None else pools.circuit(net, offsets, *grown)
    steps = state.steps[: state.numbers[1]].copy()
    return Grown(net, circuit, state.growth(time.monotonic() - began), steps, complete, int(state.numbers[2]))


class _State:
    """The pools of a growth, enlarged when they are full."""

    def __init__(
        self,
        rows: Rows,
        edge_price: float | None,
        parameter_price: float,
        greedy: bool,
        smoothing: float,
        bayesian: bool,
        max_edges: int | None,
    ) -> None:
        self.rows, self.greedy = rows, greedy
        self.with_circuit = edge_price is not None
        self.options = edge_price or 0.0, parameter_price, smoothing, bayesian, greedy, self.with_circuit
        self.max_edges = np.iinfo(np.int64).max if max_edges is None else max_edges
        variables, count = rows.table.columns.shape
        self.cardinality = np.diff(rows.table.first_state)
        self.parts = pools.parts(variables, 2 * variables + 64)
        self.numbers = np.array([variables, 0, 0])
        self.progress = np.zeros(2)
        self.steps = np.empty((64, 2), np.int32)
        self.order = np.tile(np.arange(count, dtype=np.int32), (variables, 1))
        self.buffer = np.empty(count, np.int32)
        self.descendant = np.zeros((variables, variables), np.bool_)
        self.counts = np.empty((rows.table.first_state[-1], self.cardinality.max()))
        self.graph = pools.independent(rows, self.parts) if self.with_circuit else pools.graph(1, 1, 1)
        self.scratch = pools.scratch(self.graph, int(self.cardinality.max()))
        self.parts.end[:variables] = count
        self.parts.variable[:variables] = np.arange(variables)
        for v in range(variables):
            find_gains(rows.table, self.order, self.parts, v, self.descendant, smoothing, bayesian, self.counts)
        self.start = pools.log_likelihood(rows, smoothing)
        self.start_edges = int(self.graph.numbers[LIVE]) if self.with_circuit else 0
        self._rebuild_heap()

    def run(self, looks: int) -> bool:
        """Look at up to so many candidates; tell whether no candidate is left."""
        while True:
            edge_price, parameter_price, smoothing, bayesian, greedy, with_circuit = self.options
            status = kernel.grow(
                self.graph, self.scratch, self.rows.table, self.order, self.parts, self.heap, self.descendant,
                self.numbers, self.progress, self.steps, self.sets, self.counts, self.inside, self.outside, self.buffer,
                edge_price, parameter_price, smoothing, bayesian, greedy, with_circuit, self.max_edges, looks,
            )  # fmt: skip
            if status != kernel.FULL:
                return bool(status == kernel.DONE)
            self._make_room()

    def repeat(self, splits: np.ndarray) -> None:
        """Do given splits."""
        table, (edge_price, parameter_price, smoothing, bayesian, _, with_circuit) = self.rows.table, self.options
        for part, v in np.asarray(splits).reshape(-1, 2).tolist():
            if not (
                0 <= part < self.numbers[0] and 0 <= v < len(table.columns) and np.isfinite(self.parts.gain[part, v])
            ):
                raise error("splits of an earlier growth on the same data", (part, v), where="splits")
            i = self.parts.variable[part]
            cost = 0
            self._make_room_for_one()
            if with_circuit:
                place = self.parts.parameter[part]
                while True:
                    cost, written, nodes = kernel.edge_cost(
                        self.graph, self.scratch, place, self.cardinality[i], v, table.first_state[v]
                    )
                    if self._fits(written, nodes + 64 * 64):
                        break
                    self._enlarge_graph()
                    place = self.parts.parameter[part]
            kernel.apply(
                self.graph, self.scratch, table, self.order, self.parts, self.descendant, self.numbers, self.steps,
                self.counts, self.buffer, smoothing, bayesian, with_circuit, part, v,
            )  # fmt: skip
            more = (self.cardinality[v] - 1) * (self.cardinality[i] - 1)
            gain = self.parts.gain[part, v]
            self.progress += gain - edge_price * cost - parameter_price * more, gain
        self._rebuild_heap()

    def growth(self, seconds: float) -> Growth:
        """Return the report of now."""
        edge_price, parameter_price = self.options[:2]
        total = self.rows.table.weight.sum()
        base = self.start - edge_price * self.start_edges - parameter_price * (self.cardinality - 1).sum()
        edges = int(self.graph.numbers[LIVE]) if self.with_circuit else 0
        score = float(base + self.progress[0])
        return Growth(int(self.numbers[1]), edges, score, float((self.start + self.progress[1]) / total), seconds)

    def _make_room_for_one(self) -> bool:
        """See to it that the trees and the list of splits have room for a split; tell whether they had to grow."""
        most, grew = int(self.cardinality.max()), False
        if self.numbers[0] + 4 * most > len(self.parts.variable):
            self.parts = pools.enlarged_parts(self.parts, 2 * len(self.parts.variable) + 4 * most)
            grew = True
        if self.numbers[1] + 1 >= len(self.steps):
            self.steps = np.resize(self.steps, (2 * len(self.steps), 2))
            grew = True
        return grew

    def _make_room(self) -> None:
        """Enlarge what is full: the trees, the heap, or else the circuit."""
        other = self._make_room_for_one()
        before = len(self.heap.key)
        self._rebuild_heap()
        if self.with_circuit and not other and len(self.heap.key) <= before:
            self._enlarge_graph()
            self._rebuild_heap()

    def _fits(self, edges: int, nodes: int) -> bool:
        g = self.graph
        return bool(g.numbers[N_EDGES] + edges + 64 <= len(g.child) and g.numbers[N_NODES] + nodes + 64 <= len(g.kind))

    def _enlarge_graph(self) -> None:
        """Copy what is alive into fresh pools: as large as before where most was dead, else twice as large."""
        g, states = self.graph, int(self.rows.table.first_state[-1])
        live = int((g.above > 0).sum()) + int(self.numbers[0]) * int(self.cardinality.max()) + states
        crowded = 4 * live > len(g.kind) or 4 * int(g.numbers[LIVE]) > len(g.child)
        idle = 2 * int(g.numbers[N_EDGES]) < len(g.child)  # then a single split wants more than half of the pool
        factor = 2 if crowded or idle else 1
        new = pools.graph(factor * len(g.kind), factor * len(g.child), g.scope.shape[1])
        kernel.compact(g, new, self.parts, self.numbers[0], states, self.cardinality)
        self.graph = new
        self.scratch = pools.scratch(new, int(self.cardinality.max()))

    def _rebuild_heap(self) -> None:
        """Offer all candidates anew, with the costs that are known."""
        count, variables = int(self.numbers[0]), len(self.cardinality)
        leaves = np.flatnonzero(self.parts.tested[:count] < 0)
        gain, cost = self.parts.gain[leaves], self.parts.cost[leaves]
        edge_price, parameter_price = self.options[:2]
        more = np.outer(self.cardinality[self.parts.variable[leaves]] - 1, self.cardinality - 1)
        key = gain - parameter_price * more - edge_price * np.where(cost == kernel.UNKNOWN, 0, cost)
        a, v = np.nonzero(key > 0)
        order = np.argsort(-key[a, v], kind="stable")
        keys, items = key[a, v][order], (leaves[a] * variables + v)[order]
        room = 2 * len(keys) + 256 * variables + 4096
        if self.greedy:  # a split may send all candidates back to their bounds
            room += 8 * len(self.parts.variable) * variables
        self.heap = Heap(np.resize(keys, room), np.resize(items, room), np.array([len(keys)]))
        if not len(keys):
            self.heap = Heap(np.zeros(room), np.zeros(room, np.int64), np.zeros(1, np.int64))
        parts = len(self.parts.variable) if self.greedy else 1
        words = self.graph.scope.shape[1]
        self.sets = np.zeros((len(self.graph.kind) if self.greedy else 1, -(-parts // WORD)), np.int64)
        self.inside, self.outside = np.zeros((parts, words), np.int64), np.zeros((parts, words), np.int64)


def _check(
    edge_price: float | None, parameter_price: float, smoothing: float, max_edges: int | None, seconds: float
) -> None:
    for name, value in (("edge_price", edge_price), ("parameter_price", parameter_price)):
        if value is not None and not (np.isfinite(value) and value >= 0):
            raise error("a finite number that is not negative", value, where=name)
    if not (np.isfinite(smoothing) and smoothing > 0):
        raise error("a finite number above zero", smoothing, where="smoothing")
    if max_edges is not None and max_edges < 1:
        raise error("at least 1", max_edges, where="max_edges")
    if not seconds > 0:
        raise error("a time above zero", seconds, where="seconds")
