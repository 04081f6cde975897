"""From a Bayesian network to an arithmetic circuit, by eliminating its variables one after the other.

A factor is a decision diagram whose leaves are circuit nodes (`_kernels/diagrams.py`): probabilities that are zero,
one or equal, and contexts in which a variable does not matter, make it small, and with it the circuit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from tinybayes._kernels.circuit_nodes import N_EDGES, Nodes, finish, multiply, products, with_room
from tinybayes._kernels.diagrams import Diagram, combine, table_diagram
from tinybayes.errors import error
from tinybayes.infer.elimination import Estimate, estimates, least_edges, merge_pairs
from tinybayes.infer.log_linear import as_network, without_helpers
from tinybayes.infer.memory import default_bytes
from tinybayes.model import BayesNet, Circuit, Float, LogLinear
from tinybayes.model.circuit import INDICATOR, PARAMETER

EDGE_BYTES = 48  # of memory for an edge of the circuit, at the peak of compiling
_MOST_EDGES = 2**31 - 2**27  # so that edges and leaves together have numbers of 32 bits
_TRIES = 8  # orders that a search compiles at most
_TRY_EDGES = 4_000_000  # edges that are worth another try, all tries together
_LARGE = 2**20  # assignments of a clique before which it is asked again whether the circuit can stay within its limit


@dataclass(frozen=True)
class _Factor:
    """A factor: a reference to its root, and the diagram's nodes."""

    root: int
    diagram: Diagram

    @cached_property
    def scope(self) -> frozenset[int]:
        """The levels of the variables it depends on."""
        return frozenset(np.bincount(self.diagram.level).nonzero()[0].tolist())

    def variety(self, cards: np.ndarray) -> float:
        """Return how many different circuit nodes it has, zero and one left out, as a share of its assignments."""
        size = math.prod(int(cards[z]) for z in self.scope)
        child = self.diagram.child
        return len(np.unique(child[child > 1])) / size


_NOTHING = Diagram(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int32))


class _TooLargeError(Exception):
    """The circuit, or a factor, has outgrown its limit, or is bound to; ``least`` says how many edges it needs."""

    def __init__(self, least: int) -> None:
        self.least = least


def compile_circuit(
    model: BayesNet | LogLinear | Circuit,
    *,
    by: Literal["class", "feature"] = "class",
    order: str | Sequence[int] = "search",
    max_edges: int | None = None,
    share_equal: bool = True,
) -> Circuit:
    """Compile a model into a circuit that is smooth, decomposable and deterministic; return a circuit unchanged.

    Where the model is not normalised, the value of the circuit for a row of evidence is ``Z P(evidence)``.

    Parameters
    ----------
    model
        A network, whose rows need not sum to one, or a log-linear model.
    by
        For a log-linear model, the entries of the circuit's table: ``"class"``, a weight for each tie class, or
        ``"feature"``, one for each feature (a larger circuit, for expected counts of single features). The circuit
        stays right for other finite weights, see `tinybayes.infer.with_weights`.
    order
        ``"min-fill"``, ``"weighted-min-fill"``, ``"min-weight"`` or ``"min-width"``; ``"search"``: compile the most
        promising of many randomized ones, and keep the smallest circuit; or the variables in the order of their
        elimination, by index.
    max_edges
        Give up when the circuit, or a factor on the way to it, becomes larger; before any work where the tables leave
        no hope, since they have neither zeros nor equal entries. None: what half of the memory holds, at 48 bytes an
        edge.
    share_equal
        For a network: let equal parameters of a distribution be one leaf, and leave out those that are one. The circuit
        is smaller, but belongs to these values of the parameters. Zeros are always left out.

    Returns
    -------
    Circuit
        The circuit of a network has the tables of all distributions, one after the other, in their format if they
        share one, else in double precision.

    Raises
    ------
    TinybayesError
        When the circuit would be larger than `max_edges`, or every assignment has the probability zero.
    """
    if isinstance(model, Circuit):
        return model
    max_edges = edges_in_memory() if max_edges is None else max_edges
    if isinstance(model, BayesNet):
        return _compile_network(model, order, max_edges, share_equal)
    if by not in ("class", "feature"):
        raise error("'class' or 'feature'", repr(by), where="by")
    entries = model if by == "class" else model.untied()
    net, classes = as_network(entries)
    count = len(model.variables)
    chosen = order if isinstance(order, str) else [*range(count, len(net.nodes)), *order]
    return without_helpers(_compile_network(net, chosen, max_edges, True), count, classes, entries)


def edges_in_memory() -> int:
    """Return how many edges a circuit may have: so many that compiling it takes half of the memory."""
    return min(default_bytes() // EDGE_BYTES, _MOST_EDGES)


def _compile_network(net: BayesNet, order: str | Sequence[int], max_edges: int, share_equal: bool) -> Circuit:
    plans = estimates(net, order, _TRIES)
    best: Circuit | None = None
    least = 0
    for number, plan in enumerate(plans):
        # The bound on a circuit says little about its size: small ones are cheap to try.
        limit = max_edges if best is None else min(max_edges, 2 * best.n_edges + 1000)
        if best is not None and number * best.n_edges > _TRY_EDGES:
            break
        try:
            circuit = _Compiler(net, plan, limit, share_equal).run()
        except _TooLargeError as problem:
            if best is None:
                least = problem.least
                break  # others would take as long to fail
            continue
        if best is None or circuit.n_edges < best.n_edges:
            best = circuit
    if best is None:
        raise error(
            f"a circuit of at most {max_edges:,} edges",
            f"a network of width {plans[0].treewidth} that needs more (at least {least:,}, at most {plans[0].edges:,})",
            where="compile_circuit",
            remedy="learn a model with less costly inference, raise max_edges, or ask marginals, log_z or mpe instead",
        )
    return best


class _Compiler:
    """The circuit so far, and the factors that are left."""

    def __init__(self, net: BayesNet, plan: Estimate, max_edges: int, share_equal: bool) -> None:
        self.net, self.plan, self.max_edges, self.share_equal = net, plan, max_edges, share_equal
        n = len(net.nodes)
        self.level = np.empty(n, np.int64)  # the variable eliminated first is deepest
        self.level[list(plan.order)] = np.arange(n - 1, -1, -1)
        self.cards = np.empty(n, np.int64)
        self.cards[self.level] = [node.cardinality for node in net.nodes]
        states = np.cumsum([0, *(node.cardinality for node in net.nodes)])
        entries = np.cumsum([0, *(cpd.table.size for cpd in net.cpds)])
        self.indicator = 2 + states[:-1]
        self.parameter = 2 + states[-1] + entries[:-1]
        n_leaves = int(2 + states[-1] + entries[-1])
        kind = np.full(n_leaves, PARAMETER, np.uint8)
        kind[2 : 2 + states[-1]] = INDICATOR
        self.leaf = np.concatenate([[-1, -1], np.arange(states[-1]), np.arange(entries[-1])]).astype(np.int32)
        self.nodes = Nodes(
            kind=kind,
            start=np.zeros(n_leaves + 1, np.int64),
            children=np.empty(0, np.int32),
            counts=np.array([n_leaves, 0]),
            table=np.zeros(1 << 12, np.int32),
        )
        self.nodes = with_room(self.nodes, 1024)

    def run(self) -> Circuit:
        """Return the circuit, or raise `_TooLargeError`."""
        buckets: list[list[_Factor]] = [[] for _ in self.cards]
        done: list[int] = []
        for factor in self._factors():
            self._place(factor, buckets, done)
        self._check_hope(buckets)
        for node in self.plan.order:
            level = int(self.level[node])
            factors = buckets[level]
            if math.prod(int(self.cards[z]) for z in frozenset[int]().union(*(f.scope for f in factors))) > _LARGE:
                self._check_hope(buckets)
            buckets[level] = []
            self._place(self._sum_out(factors, level), buckets, done)
        return self._finish(done)

    def _check_hope(self, buckets: Sequence[Sequence[_Factor]]) -> None:
        """Raise when the remaining factors are certain to make the circuit too large."""
        if self.plan.edges <= self.max_edges:
            return
        factors = [factor for bucket in buckets for factor in bucket]
        scopes, varieties = [factor.scope for factor in factors], [factor.variety(self.cards) for factor in factors]
        least = int(self.nodes.counts[N_EDGES]) + least_edges(scopes, varieties, self.cards)
        if least > self.max_edges:
            raise _TooLargeError(least)

    def _place(self, factor: _Factor, buckets: list[list[_Factor]], done: list[int]) -> None:
        if factor.root >= 0:
            done.append(factor.root)
        else:
            buckets[max(factor.scope)].append(factor)

    def _factors(self) -> list[_Factor]:
        """Return the distributions as diagrams, each variable's indicators multiplied into the smallest it is in."""
        cpds = self.net.cpds
        holds: list[list[int]] = [[] for _ in cpds]
        host = list(range(len(cpds)))
        for node, cpd in enumerate(cpds):
            for parent in cpd.parents:
                if cpd.tree is None and cpd.table.size < cpds[host[parent]].table.size:
                    host[parent] = node
        for node, holder in enumerate(host):
            holds[holder].append(node)
        return [self._factor(node, holds[node]) for node in range(len(cpds))]

    def _factor(self, node: int, holds: Sequence[int]) -> _Factor:
        """Return the diagram of a distribution, times the indicators of some of its variables."""
        cpd = self.net.cpds[node]
        values = cpd.log_parameters.reshape(-1)
        entry = np.arange(values.size)
        if self.share_equal:
            _, first, which = np.unique(values, return_index=True, return_inverse=True)
            entry = first[which.reshape(-1)]
        refs = (entry + self.parameter[node]).astype(np.int32)
        refs[values == -np.inf] = 0
        if self.share_equal:
            refs[values == 0] = 1
        if cpd.tree is not None:
            refs = refs.reshape(cpd.table.shape)
            return self._tree_factor(node, self._with_indicators(refs, 1, node) if holds else refs)
        family = [*cpd.parents, node]
        levels = self.level[family]
        refs = refs.reshape(self.cards[levels])
        for other in holds:
            refs = self._with_indicators(refs, family.index(other), other)
        axes = np.argsort(levels)
        refs = np.ascontiguousarray(refs.transpose(axes)).reshape(-1)
        return _Factor(*table_diagram(refs, levels[axes], self.cards))

    def _with_indicators(self, refs: np.ndarray, axis: int, node: int) -> np.ndarray:
        """Multiply references to circuit nodes by the indicators of the variable on an axis."""
        shape = [-1 if k == axis else 1 for k in range(refs.ndim)]
        first = int(self.indicator[node])
        states = np.arange(first, first + refs.shape[axis], dtype=np.int32).reshape(shape)
        refs = np.ascontiguousarray(refs)
        states = states + np.zeros_like(refs)  # faster than broadcasting
        made, self.nodes = products(refs.reshape(-1), states.reshape(-1), self.nodes)
        return np.asarray(made).reshape(refs.shape)

    def _tree_factor(self, node: int, rows: np.ndarray) -> _Factor:
        """Return the diagram of a decision tree, from its leaves up: a test chooses among its subtrees."""
        tree = self.net.cpds[node].tree
        assert tree is not None
        store = _Factor(0, _NOTHING)
        of_row: dict[int, int] = {}
        below: list[int] = [0] * len(tree.split)
        own = int(self.level[node])
        for test in range(len(tree.split) - 1, -1, -1):
            parent = int(tree.split[test])
            if parent >= 0:
                ways = tree.children[tree.first[test] : tree.first[test] + self.net.nodes[parent].cardinality]
                store = self._choose([below[way] for way in ways], store, int(self.level[parent]))
            else:
                row = int(tree.row[test])
                if row not in of_row:
                    store = self._choose(rows[row].tolist(), store, own)
                    of_row[row] = store.root
                store = _Factor(of_row[row], store.diagram)
            below[test] = store.root
        return store

    def _sum_out(self, factors: Sequence[_Factor], level: int) -> _Factor:
        """Multiply factors, and sum the variable at a level out of them."""
        if not factors:  # a variable with one state, whose indicator is in another factor already
            return _Factor(1, _NOTHING)
        roots, joined = _join(factors)
        scopes = [factor.scope for factor in factors]
        return self._combine(roots, merge_pairs(scopes, self.cards), joined, frozenset().union(*scopes), level)

    def _choose(self, roots: Sequence[int], below: _Factor, level: int) -> _Factor:
        """Go on at one of these references by the state of the variable at a level."""
        merges = np.zeros((len(roots), 2), np.int64)
        return self._combine(roots, merges, below.diagram, below.scope | {level}, level)

    def _combine(
        self, roots: Sequence[int], merges: np.ndarray, joined: Diagram, scope: frozenset[int], level: int
    ) -> _Factor:
        references, depth = np.array(roots, dtype=np.int32), len(scope) + 2
        complete, root, diagram, self.nodes = combine(
            references, merges, joined, self.cards, level, depth, self.max_edges, self.nodes
        )
        if not complete:
            raise _TooLargeError(self.max_edges + 1)
        return _Factor(int(root), diagram)

    def _finish(self, factors: Sequence[int]) -> Circuit:
        root = 1
        self.nodes = with_room(self.nodes, len(factors))
        for factor in factors:
            root = int(multiply(root, factor, self.nodes))
        if root == 0:
            raise error("a network that gives something a probability", "zero for everything", where="compile_circuit")
        leaf = np.full(root + 1, -1, np.int32)
        leaf[: min(len(self.leaf), root + 1)] = self.leaf[: root + 1]
        graph = finish(root, self.nodes, leaf)
        formats = {cpd.format for cpd in self.net.cpds}
        form = formats.pop() if len(formats) == 1 else Float(64)
        tables = [form.checked(cpd.table) if not formats else cpd.log_parameters for cpd in self.net.cpds]
        table = np.concatenate([part.reshape(-1) for part in tables])
        return Circuit(self.net.variables, self.net.target, **graph._asdict(), table=table, format=form)


def _join(factors: Sequence[_Factor]) -> tuple[list[int], Diagram]:
    """Put the nodes of factors into one diagram; return their roots in it, and the diagram."""
    roots, levels, firsts, children = [], [], [], []
    nodes = edges = 0
    for factor in factors:
        level, first, child = factor.diagram
        roots.append(factor.root - nodes)
        levels.append(level)
        firsts.append(first + edges)
        children.append(np.where(child < 0, child - np.int32(nodes), child))
        nodes, edges = nodes + len(level), edges + len(child)
    return roots, Diagram(np.concatenate(levels), np.concatenate(firsts), np.concatenate(children))
