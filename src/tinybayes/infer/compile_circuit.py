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

from tinybayes._kernels.circuit_nodes import finished, grown_nodes, multiply, products
from tinybayes._kernels.diagrams import DONE, combine, table_diagram
from tinybayes.errors import error
from tinybayes.infer.elimination import Estimate, estimates, least_edges, merge_pairs
from tinybayes.infer.log_linear import as_network, without_helpers
from tinybayes.model import BayesNet, Circuit, Float, LogLinear
from tinybayes.model.circuit import INDICATOR, PARAMETER

MAX_EDGES = 50_000_000
_TRIES = 8  # orders that a search compiles at most
_TRY_EDGES = 4_000_000  # edges that are worth another try, all tries together
_LARGE = 2**20  # assignments of a clique before which it is asked again whether the circuit can stay within its limit


@dataclass(frozen=True)
class _Diagram:
    """A factor: a reference to its root, and the diagram's nodes."""

    root: int
    level: np.ndarray
    first: np.ndarray
    child: np.ndarray

    @cached_property
    def scope(self) -> frozenset[int]:
        """The levels of the variables it depends on."""
        return frozenset(np.flatnonzero(np.bincount(self.level)).tolist())

    def variety(self, cards: np.ndarray) -> float:
        """Return how many different circuit nodes it has, zero and one left out, as a share of its assignments."""
        size = math.prod(int(cards[z]) for z in self.scope)
        return len(np.unique(self.child[self.child > 1])) / size


_NOTHING = (np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int32))


class _TooLargeError(Exception):
    """The circuit, or a factor, has outgrown its limit, or is bound to; ``least`` says how many edges it needs."""

    def __init__(self, least: int) -> None:
        self.least = least


def compile_circuit(
    model: BayesNet | LogLinear | Circuit,
    *,
    by: Literal["class", "feature"] = "class",
    order: str | Sequence[int] = "search",
    max_edges: int = MAX_EDGES,
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
        ``"min-fill"`` or ``"weighted-min-fill"``; ``"search"``: the best of both and of many with noise in their
        choices, of which the most promising are tried; or the variables in the order of their elimination, by index.
    max_edges
        Give up when the circuit, or a factor on the way to it, becomes larger; before any work where the tables leave
        no hope, since they have neither zeros nor equal entries. Memory grows to about 40 bytes an edge.
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
    if isinstance(model, BayesNet):
        return _compile_network(model, order, max_edges, share_equal)
    if by not in ("class", "feature"):
        raise error("'class' or 'feature'", repr(by), where="by")
    entries = model if by == "class" else model.untied()
    net, classes = as_network(entries)
    count = len(model.variables)
    chosen = order if isinstance(order, str) else [*range(count, len(net.nodes)), *order]
    return without_helpers(_compile_network(net, chosen, max_edges, True), count, classes, entries)


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
            remedy="learn a model with less costly inference, raise max_edges, or use approximate inference",
        )
    return best


class _Compiler:
    """The circuit so far, and the factors that are left."""

    def __init__(self, net: BayesNet, plan: Estimate, max_edges: int, share_equal: bool) -> None:
        self.net, self.plan, self.max_edges, self.share_equal = net, plan, max_edges, share_equal
        n = len(net.nodes)
        self.level = np.empty(n, np.int64)  # what is eliminated first is deepest
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
        self.counts = np.array([n_leaves, 0])
        self.kind, self.start, self.children = kind, np.zeros(n_leaves + 1, np.int64), np.empty(0, np.int32)
        self.table = np.zeros(1 << 12, np.int32)
        self._make_room(1024)

    def run(self) -> Circuit:
        """Return the circuit, or raise `_TooLargeError`."""
        buckets: list[list[_Diagram]] = [[] for _ in self.cards]
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

    def _check_hope(self, buckets: Sequence[Sequence[_Diagram]]) -> None:
        """Raise when what is left to do is certain to make the circuit too large."""
        if self.plan.edges <= self.max_edges:
            return
        factors = [factor for bucket in buckets for factor in bucket]
        varieties = [factor.variety(self.cards) for factor in factors]
        least = int(self.counts[1]) + least_edges([factor.scope for factor in factors], varieties, self.cards)
        if least > self.max_edges:
            raise _TooLargeError(least)

    def _place(self, factor: _Diagram, buckets: list[list[_Diagram]], done: list[int]) -> None:
        if factor.root >= 0:
            done.append(factor.root)
        else:
            buckets[max(factor.scope)].append(factor)

    def _factors(self) -> list[_Diagram]:
        """Return the distributions as diagrams, each variable's indicators multiplied into the smallest it is in."""
        cpds = self.net.cpds
        holds: list[list[int]] = [[] for _ in cpds]
        host = list(range(len(cpds)))
        for node, cpd in enumerate(cpds):
            for parent in cpd.parents:
                if cpd.tree is None and cpd.table.size < cpds[host[parent]].table.size:
                    host[parent] = node
        for node, place in enumerate(host):
            holds[place].append(node)
        return [self._factor(node, holds[node]) for node in range(len(cpds))]

    def _factor(self, node: int, holds: Sequence[int]) -> _Diagram:
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
        return _Diagram(*table_diagram(refs, levels[axes], self.cards))

    def _with_indicators(self, refs: np.ndarray, axis: int, node: int) -> np.ndarray:
        """Multiply references to circuit nodes by the indicators of the variable on an axis."""
        shape = [-1 if k == axis else 1 for k in range(refs.ndim)]
        first = int(self.indicator[node])
        states = np.arange(first, first + refs.shape[axis], dtype=np.int32).reshape(shape)
        states = np.ascontiguousarray(np.broadcast_to(states, refs.shape)).reshape(-1)
        self._make_room(refs.size)
        return products(np.ascontiguousarray(refs).reshape(-1), states, *self._nodes()).reshape(refs.shape)

    def _tree_factor(self, node: int, rows: np.ndarray) -> _Diagram:
        """Return the diagram of a decision tree, from its leaves up: a test chooses among what is below it."""
        tree = self.net.cpds[node].tree
        assert tree is not None
        store = _Diagram(0, *_NOTHING)
        of_row: dict[int, int] = {}
        below: list[int] = [0] * len(tree.split)
        own = int(self.level[node])
        for place in range(len(tree.split) - 1, -1, -1):
            parent = int(tree.split[place])
            if parent >= 0:
                ways = tree.children[tree.first[place] : tree.first[place] + self.net.nodes[parent].cardinality]
                store = self._choose([below[way] for way in ways], store, int(self.level[parent]))
            else:
                row = int(tree.row[place])
                if row not in of_row:
                    store = self._choose(rows[row].tolist(), store, own)
                    of_row[row] = store.root
                store = _Diagram(of_row[row], store.level, store.first, store.child)
            below[place] = store.root
        return store

    def _sum_out(self, factors: Sequence[_Diagram], level: int) -> _Diagram:
        """Multiply factors, and sum the variable at a level out of them."""
        if not factors:  # a variable with one state, whose indicator is in another factor already
            return _Diagram(1, *_NOTHING)
        joined = _join(factors)
        roots, nodes = [], 0
        for factor in factors:
            roots.append(factor.root - nodes)
            nodes += len(factor.level)
        scopes = [factor.scope for factor in factors]
        return self._combine(roots, merge_pairs(scopes, self.cards), joined, frozenset().union(*scopes), level)

    def _choose(self, roots: Sequence[int], below: _Diagram, level: int) -> _Diagram:
        """Go on at one of these references by the state of the variable at a level."""
        merges = np.zeros((len(roots), 2), np.int64)
        return self._combine(roots, merges, below, below.scope | {level}, level)

    def _combine(
        self, roots: Sequence[int], merges: np.ndarray, joined: _Diagram, scope: frozenset[int], level: int
    ) -> _Diagram:
        references = np.array(roots, dtype=np.int32)
        diagram = (joined.level, joined.first, joined.child)
        status, root, *made, self.kind, self.start, self.children, self.table = combine(
            references, merges, *diagram, self.cards, level, len(scope) + 2, self.max_edges, *self._nodes()
        )
        if status != DONE:
            raise _TooLargeError(self.max_edges + 1)
        return _Diagram(int(root), *made)

    def _nodes(self) -> tuple[np.ndarray, ...]:
        return self.kind, self.start, self.children, self.counts, self.table

    def _make_room(self, more: int) -> None:
        self.kind, self.start, self.children, self.table = grown_nodes(*self._nodes(), more)

    def _finish(self, factors: Sequence[int]) -> Circuit:
        root = 1
        self._make_room(len(factors))
        for factor in factors:
            root = int(multiply(root, factor, *self._nodes()))
        if root == 0:
            raise error("a network that gives something a probability", "zero for everything", where="compile_circuit")
        leaf = np.full(root + 1, -1, np.int32)
        leaf[: min(len(self.leaf), root + 1)] = self.leaf[: root + 1]
        kind, offsets, children, leaf = finished(root, self.kind, self.start, self.children, leaf)
        formats = {cpd.format for cpd in self.net.cpds}
        form = formats.pop() if len(formats) == 1 else Float(64)
        tables = [form.checked(cpd.table) if not formats else cpd.log_parameters for cpd in self.net.cpds]
        table = np.concatenate([part.reshape(-1) for part in tables])
        return Circuit(self.net.variables, self.net.target, kind, offsets, children, leaf, table, form)


def _join(factors: Sequence[_Diagram]) -> _Diagram:
    """Put the nodes of diagrams into one numbering; the roots are the caller's."""
    levels, firsts, children = [_NOTHING[0]], [_NOTHING[1]], [_NOTHING[2]]
    nodes = edges = 0
    for factor in factors:
        levels.append(factor.level)
        firsts.append(factor.first + edges)
        children.append(np.where(factor.child < 0, factor.child - np.int32(nodes), factor.child))
        nodes, edges = nodes + len(factor.level), edges + len(factor.child)
    return _Diagram(0, np.concatenate(levels), np.concatenate(firsts), np.concatenate(children))
