"""A growth in progress: the pools that the kernels of `learn_circuit` work on, enlarged when they are full."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tinybayes._kernels import grow as kernel
from tinybayes._kernels.growing_circuit import LIVE, N_EDGES, N_NODES, NO_LIMIT, edge_cost
from tinybayes._kernels.heap import Heap
from tinybayes._kernels.tree_parts import (
    LIKELIHOOD,
    LIMITED,
    N_LOOKS,
    N_PARTS,
    N_SPLITS,
    SCORE,
    UNKNOWN,
    Rules,
    Trees,
    find_gains,
)
from tinybayes.errors import error
from tinybayes.learn.circuits import _growing as pools
from tinybayes.learn.circuits._growing import Rows
from tinybayes.learn.circuits.options import CircuitOptions
from tinybayes.learn.interrupts import interruptible
from tinybayes.model import BayesNet, Circuit, Dataset

LOOKS = 500  # candidates looked at before the first report
SECONDS_A_REPORT = 0.5


@dataclass(frozen=True)
class Growth:
    """What a running learner reports: splits, edges, score and log-likelihood (a row, on average) so far.

    With a Bayesian score the log-likelihood is the marginal one.
    """

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


class State:
    """The pools of a growth, enlarged when they are full."""

    def __init__(self, rows: Rows, options: CircuitOptions) -> None:
        self.rows, self.greedy = rows, options.method == "greedy"
        self.with_circuit = options.edge_price is not None
        self.rules = Rules(
            float(options.edge_price or 0.0),
            float(options.parameter_price),
            float(options.smoothing),
            options.bayesian,
            self.greedy,
            self.with_circuit,
            np.iinfo(np.int64).max if options.max_edges is None else options.max_edges,
        )
        smoothing, bayesian = options.smoothing, options.bayesian
        variables, count = rows.table.columns.shape
        self.cardinality = np.diff(rows.table.first_state)
        self.parts = pools.parts(variables, 2 * variables + 64)
        self.numbers = np.array([variables, 0, 0, 0])
        self.progress = np.zeros(2)
        self.steps = np.empty((64, 2), np.int32)
        self.order = np.tile(np.arange(count, dtype=np.int32), (variables, 1))
        self.descendant = np.zeros((variables, variables), np.bool_)
        self.work = pools.work(rows)
        self.graph = pools.independent(rows, self.parts) if self.with_circuit else pools.graph(1, 1, 1)
        self.scratch = pools.scratch(self.graph, int(self.cardinality.max()))
        self.parts.end[:variables] = count
        self.parts.variable[:variables] = np.arange(variables)
        for v in range(variables):
            find_gains(self.trees, v, self.work, smoothing, bayesian)
        self.start = pools.independent_score(rows, smoothing, bayesian)
        self.seconds = 0.0
        self.start_edges = int(self.graph.numbers[LIVE]) if self.with_circuit else 0
        self.rebuild_heap()

    @property
    def trees(self) -> Trees:
        """The arrays of the decision trees as the kernels take them; the pools may change between two calls."""
        table, numbers = self.rows.table, self.numbers
        return Trees(table, self.parts, self.order, self.descendant, numbers, self.progress, self.steps)

    def run(self, looks: int) -> bool:
        """Look at up to so many candidates; tell whether no candidate is left."""
        while True:
            status = kernel.grow(
                self.graph, self.scratch, self.trees, self.work, self.greedy_work, self.heap, self.rules, looks
            )
            if status != kernel.FULL:
                return bool(status == kernel.DONE)
            self._make_room()

    def run_all(
        self,
        seconds: float,
        report: Callable[[Growth], None] | None,
        keep: Callable[[], None] | None = None,
    ) -> bool:
        """Run until nothing is left, the time is over or the user interrupts; tell whether a local optimum was reached.

        `keep` is called at every report, after it.
        """
        began = time.monotonic()
        looks, ended = LOOKS, False
        with interruptible() as interrupted:
            while not ended and not interrupted.is_set():
                started = time.monotonic()
                ended = self.run(looks)
                now = time.monotonic()
                if report is not None:
                    report(self.growth(now - began))
                if keep is not None:
                    keep()
                if now - began > seconds:
                    break
                looks = int(np.clip(looks * SECONDS_A_REPORT / max(now - started, 1e-3), LOOKS, 10**7))
        self.seconds = time.monotonic() - began
        return ended and not self.numbers[LIMITED]

    def result(self, data: Dataset, complete: bool) -> Grown:
        """Return what was learned."""
        net, offsets = pools.network(data, self.rows, self.parts, self.order, self.rules.smoothing)
        circuit = None
        if self.with_circuit:
            circuit = pools.circuit(net, offsets, self.graph, self.scratch, self.parts)
        steps = self.steps[: self.numbers[N_SPLITS]].copy()
        return Grown(net, circuit, self.growth(self.seconds), steps, complete, int(self.numbers[N_LOOKS]))

    def _can_split(self, part: int, v: int) -> bool:
        """Tell whether a part is a leaf that may test a variable."""
        parts = self.parts
        if not (0 <= part < self.numbers[N_PARTS] and 0 <= v < len(self.cardinality)) or parts.tested[part] >= 0:
            return False
        return bool(np.isfinite(parts.gain[part, v])) and not self.descendant[parts.variable[part], v]

    def repeat(self, splits: np.ndarray) -> None:
        """Do given splits."""
        table, rules = self.rows.table, self.rules
        for part, v in np.asarray(splits).reshape(-1, 2).tolist():
            if not self._can_split(part, v):
                raise error("splits of an earlier growth on the same data", (part, v), where="splits")
            i = self.parts.variable[part]
            cost = 0
            self._make_room_for_one()
            if self.with_circuit:
                place = self.parts.parameter[part]
                while True:
                    cost, written, nodes = edge_cost(
                        self.graph, self.scratch, place, self.cardinality[i], v, table.first_state[v], NO_LIMIT
                    )
                    if self._fits(written, nodes + 64 * 64):
                        break
                    self._enlarge_graph()
                    place = self.parts.parameter[part]
            kernel.apply(self.graph, self.scratch, self.trees, self.work, rules, part, v)
            more = (self.cardinality[v] - 1) * (self.cardinality[i] - 1)
            gain = self.parts.gain[part, v]
            self.progress += gain - rules.edge_price * cost - rules.parameter_price * more, gain
        self.rebuild_heap()

    def growth(self, seconds: float) -> Growth:
        """Return the report of now."""
        edge_price, parameter_price = self.rules.edge_price, self.rules.parameter_price
        total = self.rows.table.weight.sum()
        base = self.start - edge_price * self.start_edges - parameter_price * (self.cardinality - 1).sum()
        edges = int(self.graph.numbers[LIVE]) if self.with_circuit else 0
        score = float(base + self.progress[SCORE])
        return Growth(
            int(self.numbers[N_SPLITS]), edges, score, float((self.start + self.progress[LIKELIHOOD]) / total), seconds
        )

    def _make_room_for_one(self) -> bool:
        """See to it that the trees and the list of splits have room for a split; tell whether they had to grow."""
        most, grew = int(self.cardinality.max()), False
        if self.numbers[N_PARTS] + 4 * most > len(self.parts.variable):
            self.parts = pools.enlarged_parts(self.parts, 2 * len(self.parts.variable) + 4 * most)
            grew = True
        if self.numbers[N_SPLITS] + 1 >= len(self.steps):
            self.steps = np.resize(self.steps, (2 * len(self.steps), 2))
            grew = True
        return grew

    def _make_room(self) -> None:
        """Enlarge what is full: the trees, the heap, or else the circuit."""
        other = self._make_room_for_one()
        before = len(self.heap.key)
        self.rebuild_heap()
        if self.with_circuit and not other and len(self.heap.key) <= before:
            self._enlarge_graph()
            self.rebuild_heap()

    def _fits(self, edges: int, nodes: int) -> bool:
        g = self.graph
        return bool(g.numbers[N_EDGES] + edges + 64 <= len(g.child) and g.numbers[N_NODES] + nodes + 64 <= len(g.kind))

    def _enlarge_graph(self) -> None:
        """Copy what is alive into fresh pools: as large as before where most was dead, else twice as large."""
        g, states = self.graph, int(self.rows.table.first_state[-1])
        live = int((g.above > 0).sum()) + int(self.numbers[N_PARTS]) * int(self.cardinality.max()) + states
        crowded = 4 * live > len(g.kind) or 4 * int(g.numbers[LIVE]) > len(g.child)
        idle = 2 * int(g.numbers[N_EDGES]) < len(g.child)  # then a single split wants more than half of the pool
        factor = 2 if crowded or idle else 1
        new = pools.graph(factor * len(g.kind), factor * len(g.child), g.scope.shape[1])
        kernel.compact(g, new, self.parts, self.numbers[N_PARTS], states, self.cardinality)
        self.graph = new
        self.scratch = pools.scratch(new, int(self.cardinality.max()))

    def rebuild_heap(self) -> None:
        """Offer all candidates anew, with the costs that are known."""
        count, variables = int(self.numbers[N_PARTS]), len(self.cardinality)
        leaves = np.flatnonzero(self.parts.tested[:count] < 0)
        gain, cost = self.parts.gain[leaves], self.parts.cost[leaves]
        more = np.outer(self.cardinality[self.parts.variable[leaves]] - 1, self.cardinality - 1)
        edges = np.where(cost == UNKNOWN, 0, cost).astype(float)
        key = np.asarray(gain - self.rules.parameter_price * more - self.rules.edge_price * edges)
        a, v = np.nonzero(key > 0)
        order = np.argsort(-key[a, v], kind="stable")
        keys, items = key[a, v][order], (leaves[a] * variables + v)[order]
        room = 2 * len(keys) + 256 * variables + 4096
        if self.greedy:  # a split may send all candidates back to their bounds
            room += 8 * len(self.parts.variable) * variables
        self.heap = Heap(np.resize(keys, room), np.resize(items, room), np.array([len(keys)]))
        if not len(keys):
            self.heap = Heap(np.zeros(room), np.zeros(room, np.int64), np.zeros(1, np.int64))
        parts, nodes = (len(self.parts.variable), len(self.graph.kind)) if self.greedy else (1, 1)
        self.greedy_work = pools.greedy_work(parts, nodes, self.graph.scope.shape[1])
