"""From a latent tree to its circuit: the messages of the tree are the sums, one for each hidden state."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinybayes.learn.circuits.latent_structure import Tree
from tinybayes.model import Circuit, Codebook, Float, Variable
from tinybayes.model.circuit import INDICATOR, PARAMETER, PRODUCT, SUM
from tinybayes.model.number_format import singles


def latent_circuit(
    variables: Sequence[Variable],
    target: Variable | None,
    tree: Tree,
    transition: np.ndarray,
    emission: np.ndarray,
) -> Circuit:
    """Return the circuit of a latent tree with tables as in `latent_steps.Parameters`.

    Parameters that are zero have no edges, and hidden states that nothing leads to are left out. The circuit is smooth
    and decomposable. It is not deterministic: a row does not say which hidden states it comes from. Of several trees,
    the circuit is their mixture: one sum over the states of all roots.
    """
    nodes = (*variables, *(() if target is None else (target,)))
    graph = _Graph(nodes)
    used = used_states(tree, transition)
    attached: list[list[int]] = [[] for _ in tree.parent]
    for copy, home in enumerate(tree.home):
        attached[home].append(copy)
    tops: list[tuple[np.ndarray, np.ndarray]] = []  # of the roots: probabilities of the states, and the states
    messages: list[list[np.ndarray]] = [[] for _ in tree.parent]
    for node in range(len(tree.parent) - 1, -1, -1):  # children have larger numbers
        states = np.flatnonzero(used[node])
        factors = messages[node]
        for copy in attached[node]:
            v = copy % len(nodes)
            first = graph.first_state[v]
            indicators = np.arange(first, first + nodes[v].cardinality)
            factors.append(graph.sums(emission[copy][states][:, : len(indicators)], indicators))
        weights = graph.products(factors)
        parent = tree.parent[node]
        if parent >= 0:
            above = np.flatnonzero(used[parent])
            messages[parent].append(graph.sums(transition[node][np.ix_(above, states)], weights))
        else:
            tops.append((transition[node][0, states], weights))
    shares, states_of_roots = (np.concatenate(parts) for parts in zip(*tops, strict=True))
    graph.sums(shares[None], states_of_roots)
    return graph.circuit(variables, target)


def with_codebook(circuit: Circuit) -> Circuit:
    """Return a circuit of few distinct parameters with these in a codebook."""
    logs = singles(circuit.log_parameters)  # a level is paid as a 32-bit float
    book = Codebook(tuple(np.unique(logs).tolist()))
    return replace(circuit, table=book.encode(logs), format=book)


def class_mixture(circuits: Sequence[Circuit], target: Variable, prior: np.ndarray) -> Circuit:
    """Return the circuit over features and class that has, given each class, the density of one of the circuits."""
    first = circuits[0]
    classes, start = len(circuits), int(first.first_state[-1])
    nodes = np.cumsum([0, *(circuit.n_nodes for circuit in circuits)])
    entries = np.cumsum([0, *(len(circuit.table) for circuit in circuits)])
    parameters = [np.where(circuit.kind == PARAMETER, e, 0) for circuit, e in zip(circuits, entries, strict=False)]
    leaf = [circuit.leaf + more for circuit, more in zip(circuits, parameters, strict=True)]
    children = [circuit.children + n for circuit, n in zip(circuits, nodes, strict=False)]
    sizes = [np.diff(circuit.offsets) for circuit in circuits]
    number = np.arange(classes)
    own, none = nodes[-1] + number, np.zeros(classes, dtype=np.int64)  # parameters, then indicators, then products
    terms = np.stack([own, own + classes, nodes[1:] - 1], axis=1).ravel()
    kinds = np.repeat([PARAMETER, INDICATOR, PRODUCT, SUM], [classes, classes, classes, 1])
    more = np.concatenate([entries[-1] + number, start + number, np.full(classes + 1, -1)])
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([*sizes, none, none, np.full(classes, 3), [classes]]))])
    table = np.concatenate([*(circuit.log_parameters for circuit in circuits), np.log(prior)])
    return Circuit(
        first.variables,
        target,
        np.concatenate([*(circuit.kind for circuit in circuits), kinds]),
        offsets,
        np.concatenate([*children, terms, own + 2 * classes]),
        np.concatenate([*leaf, more]),
        Float(64).encode(table),
        Float(64),
    )


def used_states(tree: Tree, transition: np.ndarray) -> np.ndarray:
    """Tell which hidden states of each node can occur, shape (nodes, states)."""
    used = np.zeros(transition.shape[:2], dtype=bool)
    for node, parent in enumerate(tree.parent):  # parents have smaller numbers
        rows = transition[node][used[parent]] if parent >= 0 else transition[node][:1]
        used[node] = (rows > 0).any(axis=0)
    return used


class _Graph:
    """The nodes of a circuit, appended children first; each variable has one indicator for each of its states."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.first_state = np.cumsum([0, *(variable.cardinality for variable in variables)])
        states = int(self.first_state[-1])
        self.kind = [np.full(states, INDICATOR)]
        self.leaf = [np.arange(states)]
        self.sizes = [np.zeros(states, dtype=np.int64)]
        self.children: list[np.ndarray] = []
        self.table: list[np.ndarray] = []
        self.count, self.entries = states, 0

    def _add(self, kind: int, sizes: np.ndarray, children: np.ndarray, leaf: np.ndarray | None = None) -> np.ndarray:
        """Append nodes of one kind with so many children each; return their numbers."""
        count = len(sizes)
        self.kind.append(np.full(count, kind))
        self.sizes.append(sizes)
        self.children.append(children)
        self.leaf.append(np.full(count, -1) if leaf is None else leaf)
        self.count += count
        return np.arange(self.count - count, self.count)

    def sums(self, table: np.ndarray, parts: np.ndarray) -> np.ndarray:
        """Return nodes for ``table @ parts``: for each row of the table a sum of parameters times parts."""
        rows, columns = np.nonzero(table)
        count, nothing = len(rows), np.empty(0, dtype=np.int64)
        leaf = np.arange(self.entries, self.entries + count)
        self.table.append(np.log(table[rows, columns]))
        self.entries += count
        parameters = self._add(PARAMETER, np.zeros(count, dtype=np.int64), nothing, leaf)
        terms = self._add(PRODUCT, np.full(count, 2), np.stack([parameters, parts[columns]], axis=1).ravel())
        return self._add(SUM, np.bincount(rows, minlength=len(table)), terms)

    def products(self, factors: list[np.ndarray]) -> np.ndarray:
        """Return nodes for the products of the factors of each state; a single factor is its own product."""
        if len(factors) == 1:
            return factors[0]
        return self._add(PRODUCT, np.full(len(factors[0]), len(factors)), np.stack(factors, axis=1).ravel())

    def circuit(self, variables: Sequence[Variable], target: Variable | None) -> Circuit:
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(self.sizes))])
        table, storage = np.concatenate(self.table), Float(64)
        kind, children, leaf = (np.concatenate(parts) for parts in (self.kind, self.children, self.leaf))
        return Circuit(tuple(variables), target, kind, offsets, children, leaf, storage.encode(table), storage)
