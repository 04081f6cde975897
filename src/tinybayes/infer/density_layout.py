"""A circuit laid out for a small program: groups of leaves, products and sums over slots of memory.

A leaf reads one variable: a parameter for each of its states. A product adds up the logarithms of earlier slots; a sum
has a parameter and a slot for each of its terms. Parameters of products are moved into the sums above. Neighbours of
the same kind with the same operands are one group: a latent tree has about three groups for each variable, whatever the
number of its hidden states.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tinybayes.infer.circuit import log_partition
from tinybayes.infer.circuit_properties import require
from tinybayes.model import Circuit
from tinybayes.model.circuit import INDICATOR, PARAMETER, PRODUCT

LEAF, TIMES, PLUS = 0, 1, 2  # kinds of groups
# A log-parameter, a constant beside it, and a node, or None without one. A sum whose terms all have the same
# constant passes it on: that of a variable with one state does not make new values of parameters.
Term = tuple[float, float, int | None]


@dataclass(frozen=True, eq=False)
class Group:
    """Consecutive slots of one kind.

    Parameters
    ----------
    kind
        `LEAF`, `TIMES` or `PLUS`.
    slot
        The first slot that is written.
    operands
        Of a leaf the variable. Of a product the slots that its first one multiplies, those of the next are one further
        each. Of a sum the slots that all of them add.
    parameters
        The logarithms, shape (slots, terms), none for products; of a leaf a term is a state.
    repeat
        How many slots are written.
    """

    kind: int
    slot: int
    operands: tuple[int, ...]
    parameters: np.ndarray
    repeat: int


@dataclass(frozen=True, eq=False)
class Layout:
    """All groups in the order of work; a log-likelihood is the value of the last slot, plus a constant.

    The constant divides a circuit that is not normalised, as a tied one, by its sum over all assignments.
    """

    groups: tuple[Group, ...]
    slots: int
    root: int  # the slot of the result
    constant: float  # added to it


@dataclass(eq=False)
class _Node:
    kind: int
    operands: tuple[int, ...]  # nodes; of a leaf the variable
    parameters: np.ndarray
    group: int = -1
    place: int = -1  # within the group


@dataclass(eq=False)
class _Builder:
    """The nodes that get slots."""

    nodes: list[_Node] = field(default_factory=list)
    indicators: dict[int, int] = field(default_factory=dict)  # nodes that read one state of a variable

    def add(self, kind: int, operands: tuple[int, ...], parameters: Sequence[float] | np.ndarray = ()) -> int:
        self.nodes.append(_Node(kind, operands, np.asarray(parameters, dtype=np.float64)))
        return len(self.nodes) - 1

    def indicator(self, variable: int, state: int, states: int) -> int:
        node = self.add(LEAF, (variable,), np.where(np.arange(states) == state, 0.0, -np.inf))
        self.indicators[node] = state
        return node

    def times(self, terms: list[Term]) -> Term:
        factors = tuple(node for _, _, node in terms if node is not None)
        log, constant = sum(term[0] for term in terms), sum(term[1] for term in terms)
        if len(factors) < 2:
            return log, constant, factors[0] if factors else None
        return log, constant, self.add(TIMES, factors)

    def plus(self, terms: list[Term]) -> Term:
        logs, constants, nodes = zip(*terms, strict=True)
        if all(node is None for node in nodes):
            return 0.0, float(np.logaddexp.reduce(np.add(logs, constants))), None
        if len(terms) == 1:
            return terms[0]
        common = constants[0] if len(set(constants)) == 1 and np.isfinite(constants[0]) else 0.0
        weights = np.array(logs) if common else np.add(logs, constants)
        below = tuple(node for node in nodes if node is not None)
        assert len(below) == len(nodes)  # the circuit is smooth
        variables = {self.nodes[node].operands for node in below if node in self.indicators}
        if len(variables) == 1 and all(node in self.indicators for node in below):
            states = np.full(len(self.nodes[below[0]].parameters), -np.inf)
            np.logaddexp.at(states, [self.indicators[node] for node in below], weights)
            return 0.0, common, self.add(LEAF, variables.pop(), states)
        return 0.0, common, self.add(PLUS, below, weights)


def lay_out(circuit: Circuit) -> Layout:
    """Lay out a smooth and decomposable circuit; the layout is cached on the circuit, which is immutable."""
    kept: Layout | None = circuit.__dict__.get("_density_layout")
    if kept is None:
        require(circuit, "smooth", "decomposable")
        kept = circuit.__dict__["_density_layout"] = _laid_out(circuit)
    return kept


def _laid_out(circuit: Circuit) -> Layout:
    first, logs = circuit.first_state, circuit.log_parameters
    owner = np.repeat(np.arange(len(circuit.nodes)), np.diff(first))
    builder = _Builder()
    terms: list[Term] = []
    for n, (kind, leaf) in enumerate(zip(circuit.kind.tolist(), circuit.leaf.tolist(), strict=True)):
        if kind == PARAMETER:
            terms.append((float(logs[leaf]), 0.0, None))
        elif kind == INDICATOR:
            variable = int(owner[leaf])
            state, states = leaf - int(first[variable]), circuit.nodes[variable].cardinality
            # That of the only state is always one.
            terms.append((0.0, 0.0, builder.indicator(variable, state, states) if states > 1 else None))
        else:
            below = [terms[child] for child in circuit.children[circuit.offsets[n] : circuit.offsets[n + 1]].tolist()]
            terms.append(builder.times(below) if kind == PRODUCT else builder.plus(below))
    log, constant, root = terms[-1]
    log_z = log_partition(circuit)
    constant += log - (log_z if np.isfinite(log_z) else 0.0)
    if root is None:
        return Layout((), 0, 0, constant)
    return _in_slots(builder.nodes, root, constant)


def _in_slots(nodes: list[_Node], root: int, constant: float) -> Layout:
    """Group the nodes that the root needs, and give slots to groups; a slot is free after its last use."""
    needed = {root}
    for n in range(root, -1, -1):
        if n in needed and nodes[n].kind != LEAF:
            needed.update(nodes[n].operands)
    groups: list[list[_Node]] = []
    for n in sorted(needed):
        node = nodes[n]
        if not groups or not _continues(nodes, groups[-1], node):
            groups.append([])
        node.group, node.place = len(groups) - 1, len(groups[-1])
        groups[-1].append(node)
    last = list(range(len(groups)))
    for g, members in enumerate(groups):
        for node in members if members[0].kind != LEAF else ():
            for operand in node.operands:
                last[nodes[operand].group] = g
    starts, slots = _allocate([len(members) for members in groups], last)

    def place(n: int) -> int:
        return starts[nodes[n].group] + nodes[n].place

    laid = []
    for g, members in enumerate(groups):
        kind, operands = members[0].kind, members[0].operands
        if kind != LEAF:
            operands = tuple(place(operand) for operand in operands)
        laid.append(Group(kind, starts[g], operands, np.stack([node.parameters for node in members]), len(members)))
    return Layout(tuple(laid), slots, place(root), constant)


def _continues(nodes: list[_Node], group: list[_Node], node: _Node) -> bool:
    """Tell whether a node belongs to the last group."""
    first = group[0]
    if first.kind != node.kind or len(first.operands) != len(node.operands):
        return False
    if node.kind != TIMES:
        return first.operands == node.operands
    pairs = [(nodes[a], nodes[b]) for a, b in zip(first.operands, node.operands, strict=True)]
    return all(a.group == b.group and b.place == a.place + len(group) for a, b in pairs)


def _allocate(sizes: list[int], last: list[int]) -> tuple[list[int], int]:
    """Return the first slot of each group, the lowest where enough of them are free, and the number of slots."""
    busy: list[tuple[int, int, int]] = []  # first slot, the one behind, last use
    starts, slots = [], 0
    for g, size in enumerate(sizes):
        busy = sorted(block for block in busy if block[2] >= g)
        start = 0
        for begin, end, _ in busy:
            if begin - start >= size:
                break
            start = max(start, end)
        busy.append((start, start + size, last[g]))
        starts.append(start)
        slots = max(slots, start + size)
    return starts, slots
