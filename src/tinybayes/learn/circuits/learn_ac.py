"""Learning arithmetic circuits (LearnAC of learning_arithmetic_circuits) and tree-CPD Bayesian networks.

Both start from independent variables and split one leaf of one decision tree at a time, whichever improves

    score = log-likelihood - edge_price * edges - parameter_price * parameters

most. With a price on edges the circuit grows along (`_kernels/growing_circuit.py`); without one there is no circuit,
and the learner is the classical one for networks with local structure. The steps of the kernels are in
`_kernels/grow.py`; this module enlarges their pools, reports progress and returns the result.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tinybayes._kernels import grow as kernel
from tinybayes._kernels.edge_costs import find_sets, start_costs
from tinybayes._kernels.grow import (
    LIKELIHOOD,
    LIMITED,
    N_LOOKS,
    N_PARTS,
    N_SPLITS,
    SCORE,
    UNKNOWN,
    Rules,
    Table,
    Trees,
    find_gains,
)
from tinybayes._kernels.growing_circuit import LIVE, N_EDGES, N_NODES, NO_LIMIT
from tinybayes._kernels.heap import Heap
from tinybayes._kernels.split_cost import edge_cost
from tinybayes.errors import error
from tinybayes.learn.circuits import pools
from tinybayes.learn.circuits.options import CircuitOptions
from tinybayes.learn.interrupts import interruptible
from tinybayes.model import BayesNet, Circuit, Dataset

LOOKS = 500  # candidates looked at before the first report
SECONDS_A_REPORT = 0.5


@dataclass(frozen=True)
class Growth:
    """The progress of a learner: splits, edges, score and log-likelihood (a row, on average) so far.

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


def learn_circuit(
    data: Dataset,
    *,
    edge_price: float | None = CircuitOptions.edge_price,
    parameter_price: float = CircuitOptions.parameter_price,
    method: str = CircuitOptions.method,
    smoothing: float = CircuitOptions.smoothing,
    bayesian: bool = CircuitOptions.bayesian,
    max_edges: int | None = CircuitOptions.max_edges,
    seconds: float = CircuitOptions.seconds,
    report: Callable[[Growth], None] | None = None,
    splits: np.ndarray | None = None,
) -> Grown:
    """Learn a circuit whose price of inference is part of the score.

    Parameters
    ----------
    data
        Rows without missing values; a class, if there is one, is one more variable.
    edge_price, parameter_price, method, smoothing, bayesian, max_edges, seconds
        See `CircuitOptions`.
    report
        Called now and then. An interrupt (Ctrl-C) ends the growth; the circuit so far is returned.
    splits
        Of an earlier result on the same data: they are repeated first, without looking for better ones.
    """
    options = CircuitOptions(
        edge_price=edge_price,
        parameter_price=parameter_price,
        method=method,
        smoothing=smoothing,
        bayesian=bayesian,
        max_edges=max_edges,
        seconds=seconds,
    )
    state = State(pools.distinct_rows(data), options)
    if splits is not None:
        state.repeat(splits)
    state.run_all(report)
    return state.result(data)


def learn_tree_cpds(
    data: Dataset,
    *,
    parameter_price: float = 1.0,
    smoothing: float = CircuitOptions.smoothing,
    bayesian: bool = CircuitOptions.bayesian,
    seconds: float = CircuitOptions.seconds,
    report: Callable[[Growth], None] | None = None,
) -> Grown:
    """Learn a Bayesian network with decision trees, without regard to the price of inference.

    The arguments are those of `learn_circuit`. A multiplicative penalty kappa for each parameter, as some toolkits have
    it, is a `parameter_price` of -log(kappa).
    """
    return learn_circuit(
        data,
        edge_price=None,
        parameter_price=parameter_price,
        smoothing=smoothing,
        bayesian=bayesian,
        seconds=seconds,
        report=report,
    )


class State:
    """The pools of a growth, enlarged when they are full."""

    def __init__(self, table: Table, options: CircuitOptions) -> None:
        if options.method == "latent":
            raise error("quick or greedy", "'latent'", where="method", remedy="use learn_latent_tree")
        smoothing, bayesian = options.smoothing, options.bayesian
        self.table, self.seconds = table, options.seconds
        self.with_circuit = options.edge_price is not None
        self.greedy = self.with_circuit and options.method == "greedy"
        self.rules = Rules(
            float(options.edge_price or 0.0),
            float(options.parameter_price),
            float(smoothing),
            bayesian,
            self.with_circuit,
            np.iinfo(np.int64).max if options.max_edges is None else options.max_edges,
        )
        variables, count = table.columns.shape
        self.cardinality = np.diff(table.first_state)
        self.parts = pools.parts(variables, 2 * variables + 64)
        self.numbers = np.array([variables, 0, 0, 0])
        self.progress = np.zeros(2)
        self.steps = np.empty((64, 2), np.int32)
        self.order = np.tile(np.arange(count, dtype=np.int32), (variables, 1))
        self.descendant = np.zeros((variables, variables), np.bool_)
        self.work = pools.work(table)
        self.graph = pools.independent(table.first_state, self.parts) if self.with_circuit else pools.graph(1, 1, 1)
        self.scratch = pools.scratch(self.graph, int(self.cardinality.max()))
        self.parts.end[:variables] = count
        self.parts.variable[:variables] = np.arange(variables)
        for v in range(variables):
            find_gains(self.trees, v, self.work, smoothing, bayesian)
        self.start = pools.independent_score(table, smoothing, bayesian)
        self.start_edges = int(self.graph.numbers[LIVE])
        self.prepare()

    @property
    def trees(self) -> Trees:
        """The arrays of the decision trees as the kernels take them; the pools may change between two calls."""
        return Trees(self.table, self.parts, self.order, self.descendant, self.numbers, self.progress, self.steps)

    def run(self, looks: int) -> bool:
        """Look at up to so many candidates, or do so many splits (greedy); tell whether no candidate is left."""
        counter = N_LOOKS if self.with_circuit and not self.greedy else N_SPLITS
        end = int(self.numbers[counter]) + looks
        while True:
            left = max(1, end - int(self.numbers[counter]))  # the pools may have been enlarged in between
            pools_and_trees = self.graph, self.scratch, self.trees, self.work
            if self.greedy:
                status = kernel.grow_greedily(*pools_and_trees, self.costs, self.rules, left)
            else:
                status = kernel.grow(*pools_and_trees, self.heap, self.rules, left)
            if status != kernel.FULL:
                return bool(status == kernel.DONE)
            self._make_room()

    def run_all(self, report: Callable[[Growth], None] | None) -> None:
        """Run until no candidate is left, the time is over or the user interrupts."""
        began = time.monotonic()
        least = max(1, LOOKS // 25) if self.greedy else LOOKS  # a split does more than a look
        looks, ended = least, False
        with interruptible() as interrupted:
            while not ended and not interrupted.is_set():
                started = time.monotonic()
                ended = self.run(looks)
                now = time.monotonic()
                if report is not None:
                    report(self.growth(now - began))
                if now - began > self.seconds:
                    break
                looks = int(np.clip(looks * SECONDS_A_REPORT / max(now - started, 1e-3), least, 10**7))
        self.elapsed, self.complete = time.monotonic() - began, bool(ended and not self.numbers[LIMITED])

    def result(self, data: Dataset) -> Grown:
        """Return the network and the circuit."""
        net, offsets = pools.network(data, self.table, self.parts, self.order, self.rules.smoothing)
        circuit = None
        if self.with_circuit:
            circuit = pools.circuit(net, offsets, self.graph, self.scratch, self.parts)
        steps = self.steps[: self.numbers[N_SPLITS]].copy()
        return Grown(net, circuit, self.growth(self.elapsed), steps, self.complete, int(self.numbers[N_LOOKS]))

    def _can_split(self, part: int, v: int) -> bool:
        """Tell whether a part is a leaf that may test a variable."""
        parts = self.parts
        if not (0 <= part < self.numbers[N_PARTS] and 0 <= v < len(self.cardinality)) or parts.tested[part] >= 0:
            return False
        return bool(np.isfinite(parts.gain[part, v])) and not self.descendant[parts.variable[part], v]

    def repeat(self, splits: np.ndarray) -> None:
        """Apply given splits."""
        rules = self.rules
        for part, v in np.asarray(splits).reshape(-1, 2).tolist():
            if not self._can_split(part, v):
                raise error("splits of an earlier growth on the same data", (part, v), where="splits")
            i, cost = self.parts.variable[part], 0
            self._make_room_for_one()
            while self.with_circuit:
                own, values = self.parts.parameter[part], (self.table.first_state[v], self.cardinality[v])
                cost, written, nodes = edge_cost(
                    self.graph, self.scratch, own, self.cardinality[i], v, *values, NO_LIMIT
                )
                if self._fits(written, nodes + 64 * 64):
                    break
                self._enlarge_graph()
            kernel.apply(self.graph, self.scratch, self.trees, self.work, rules, part, v)
            more = (self.cardinality[v] - 1) * (self.cardinality[i] - 1)
            gain = self.parts.gain[part, v]
            self.progress += gain - rules.edge_price * cost - rules.parameter_price * more, gain
        self.prepare()

    def growth(self, seconds: float) -> Growth:
        """Return the current progress."""
        rules, progress = self.rules, self.progress
        base = self.start - rules.edge_price * self.start_edges - rules.parameter_price * (self.cardinality - 1).sum()
        likelihood = float((self.start + progress[LIKELIHOOD]) / self.table.weight.sum())
        splits, edges = int(self.numbers[N_SPLITS]), int(self.graph.numbers[LIVE])
        return Growth(splits, edges, float(base + progress[SCORE]), likelihood, seconds)

    def _make_room_for_one(self) -> bool:
        """Make room in the trees and in the list of splits for one split; tell whether they had to grow."""
        most, grew = int(self.cardinality.max()), False
        if self.numbers[N_PARTS] + 4 * most > len(self.parts.variable):
            room = 2 * len(self.parts.variable) + 4 * most
            self.parts = pools.parts(len(self.cardinality), room, self.parts)
            grew = True
        if self.numbers[N_SPLITS] + 1 >= len(self.steps):
            self.steps = np.resize(self.steps, (2 * len(self.steps), 2))
            grew = True
        return grew

    def _make_room(self) -> None:
        """Enlarge the full pool: the trees, the heap, or else the circuit."""
        grew = self._make_room_for_one()
        if not self.greedy:
            before = len(self.heap.key)
            self._rebuild_heap()
            grew |= len(self.heap.key) > before
        if self.with_circuit and not grew:
            self._enlarge_graph()
        self.prepare(recount=False)

    def _fits(self, edges: int, nodes: int) -> bool:
        g = self.graph
        return bool(g.numbers[N_EDGES] + edges + 64 <= len(g.child) and g.numbers[N_NODES] + nodes + 64 <= len(g.kind))

    def _enlarge_graph(self) -> None:
        """Copy the live nodes into fresh pools: as large as before where most were dead, else twice as large."""
        g, states = self.graph, int(self.table.first_state[-1])
        live = int((g.above > 0).sum()) + int(self.numbers[N_PARTS]) * int(self.cardinality.max()) + states
        crowded = 4 * live > len(g.kind) or 4 * int(g.numbers[LIVE]) > len(g.child)
        idle = 2 * int(g.numbers[N_EDGES]) < len(g.child)  # then a single split needs more than half of the pool
        factor = 2 if crowded or idle else 1
        new = pools.graph(factor * len(g.kind), factor * len(g.child), g.scope.shape[1])
        kernel.compact(g, new, self.parts, self.numbers[N_PARTS], states, self.cardinality)
        self.graph = new
        self.scratch = pools.scratch(new, int(self.cardinality.max()))

    def prepare(self, recount: bool = True) -> None:
        """Quick: offer all candidates anew, with the costs that are known. Greedy: count them, or what they need."""
        if not self.greedy:
            self._rebuild_heap()
            return
        first, count = self.table.first_state, self.numbers[N_PARTS]
        self.costs = pools.costs(self.graph, len(self.parts.variable), first)
        if recount:
            start_costs(self.graph, self.scratch, self.costs, self.parts.cost, count, first)
        else:
            find_sets(self.graph, self.scratch, self.costs, count)

    def _rebuild_heap(self) -> None:
        count, variables = int(self.numbers[N_PARTS]), len(self.cardinality)
        leaves = np.flatnonzero(self.parts.tested[:count] < 0)
        gain, cost = self.parts.gain[leaves], self.parts.cost[leaves]
        more = np.outer(self.cardinality[self.parts.variable[leaves]] - 1, self.cardinality - 1)
        edges = np.where(cost == UNKNOWN, 0, cost).astype(float)
        key = np.asarray(gain - self.rules.parameter_price * more - self.rules.edge_price * edges)
        a, v = np.nonzero(key > 0)
        order = np.argsort(-key[a, v], kind="stable")
        keys, candidates = key[a, v][order], (leaves[a] * variables + v)[order]
        room = 2 * len(keys) + 256 * variables + 4096
        self.heap = Heap(np.resize(keys, room), np.resize(candidates, room), np.array([len(keys)]))
