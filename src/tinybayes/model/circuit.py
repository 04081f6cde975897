"""Arithmetic circuits: a network polynomial as sums and products, in flat arrays."""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybayes._kernels.circuit_graph import INDICATOR, PARAMETER, PRODUCT, SUM, CircuitGraph
from tinybayes.errors import error
from tinybayes.model.number_format import NumberFormat
from tinybayes.model.record import Nodes, Record, integers
from tinybayes.model.variable import Variable

if TYPE_CHECKING:
    from tinybayes.infer import Marginals

__all__ = ["INDICATOR", "KINDS", "PARAMETER", "PRODUCT", "SUM", "Circuit"]

KINDS = {PARAMETER: "parameter", INDICATOR: "indicator", SUM: "sum", PRODUCT: "product"}


@dataclass(frozen=True, eq=False)
class Circuit(Record, Nodes):
    """An arithmetic circuit over discrete variables.

    Nodes are numbered so that children come before their parents; the last node is the root. Whether the circuit is
    smooth, decomposable and deterministic is told by `is_smooth`, `is_decomposable` and `is_deterministic`.

    Parameters
    ----------
    variables
        The variables; for a classifier, the features.
    target
        The class variable, or None. Indicators are ordered by the variables, then the target.
    kind
        For each node 0 for a parameter, 1 for an indicator, 2 for a sum, 3 for a product.
    offsets, children
        The children of node ``n`` are ``children[offsets[n]:offsets[n + 1]]``.
    leaf
        Of a parameter the index of its entry in `table`, of an indicator ``first_state[variable] + state``,
        of other nodes -1.
    table
        Codes of the log-parameters in `format`, one axis.
    format
        How the entries of the table are stored.
    """

    variables: tuple[Variable, ...]
    target: Variable | None
    kind: np.ndarray
    offsets: np.ndarray
    children: np.ndarray
    leaf: np.ndarray
    table: np.ndarray
    format: NumberFormat

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        names = [node.name for node in self.nodes]
        if not names or len(set(names)) != len(names):
            raise error("variables with distinct names, one at least", f"{names[:10]}", where="circuit")
        for name, dtype in (("kind", np.uint8), ("offsets", np.int64), ("children", np.int32), ("leaf", np.int32)):
            object.__setattr__(self, name, integers(getattr(self, name), dtype, f"circuit, {name}"))
        table = np.asarray(self.table)
        if table.ndim != 1:
            raise error("a table with one axis", f"shape {table.shape}", where="circuit")
        object.__setattr__(self, "table", self.format.checked(table) if table.size else table)
        self._check_graph()
        self._check_leaves()

    def _check_graph(self) -> None:
        n, offsets, children = len(self.kind), self.offsets, self.children
        if n == 0 or len(self.leaf) != n or len(offsets) != n + 1:
            got = f"{n} kinds, {len(self.leaf)} leaves and {len(offsets)} offsets"
            raise error("a kind and a leaf for each node and one offset more", got, where="circuit")
        sizes = np.diff(offsets)
        if offsets[0] != 0 or offsets[-1] != len(children) or (sizes < 0).any():
            raise error(f"offsets that grow from 0 to {len(children)}", "others", where="circuit")
        if self.kind.max() > PRODUCT:
            raise error("kinds from 0 to 3", int(self.kind.max()), where="circuit")
        wrong = np.flatnonzero((self.kind >= SUM) != (sizes > 0))
        if len(wrong):
            node = int(wrong[0])
            got = f"a {KINDS[self.kind[node]]} with {sizes[node]}"
            raise error("children for sums and products, and for no other node", got, where=f"node {node}")
        parent = np.repeat(np.arange(n), sizes)
        wrong = np.flatnonzero((children < 0) | (children >= parent))
        if len(wrong):
            edge = int(wrong[0])
            raise error("children that come before their node", int(children[edge]), where=f"node {parent[edge]}")

    def _check_leaves(self) -> None:
        limits = np.array([len(self.table), int(self.first_state[-1]), 0, 0])
        low = np.where(self.kind >= SUM, -1, 0)
        wrong = np.flatnonzero((self.leaf < low) | (self.leaf >= limits[self.kind]))
        if len(wrong):
            node = int(wrong[0])
            kind = self.kind[node]
            expected = "-1 as leaf" if kind >= SUM else f"a leaf from 0 to {limits[kind] - 1}"
            raise error(expected, int(self.leaf[node]), where=f"node {node}, a {KINDS[kind]}")

    def __getstate__(self) -> dict[str, object]:
        """Leave out cached properties, which are computed from the fields."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return len(self.kind)

    @property
    def n_edges(self) -> int:
        """The number of edges, in which the time of every query is linear."""
        return len(self.children)

    @property
    def graph(self) -> CircuitGraph:
        """The arrays of the nodes, as the kernels take them."""
        return CircuitGraph(self.kind, self.offsets, self.children, self.leaf)

    @cached_property
    def cardinalities(self) -> np.ndarray:
        """The number of states of each variable."""
        return np.array([node.cardinality for node in self.nodes])

    @cached_property
    def first_state(self) -> np.ndarray:
        """For each variable its first indicator, and at the end the number of all."""
        return np.cumsum([0, *self.cardinalities])

    @cached_property
    def log_parameters(self) -> np.ndarray:
        """The table in double precision, decoded."""
        return self.format.decode(self.table)

    # The queries of a circuit: each is the function of the same name in `tinybayes.infer`.

    def log_likelihood(self, X: np.ndarray) -> np.ndarray:
        """Return the log-probability of each row; see `tinybayes.log_likelihood`."""
        return _infer().log_likelihood(self, X)

    def marginals(self, X: np.ndarray) -> "Marginals":
        """Return the posterior distribution of every variable for each row of evidence; see `tinybayes.marginals`."""
        return _infer().marginals(self, X)

    def conditional(self, query: np.ndarray, evidence: np.ndarray, *, log: bool = False) -> np.ndarray:
        """Return ``P(query | evidence)`` for each pair of rows; see `tinybayes.infer.conditional`."""
        return _infer().conditional(self, query, evidence, log=log)

    def most_probable(self, X: np.ndarray, *, approximate: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Complete each row of evidence in the most probable way; see `tinybayes.infer.most_probable`."""
        return _infer().most_probable(self, X, approximate=approximate)

    def sample(self, n: int, seed: int, evidence: np.ndarray | None = None) -> np.ndarray:
        """Draw rows exactly, given a row of evidence or none; see `tinybayes.infer.sample`."""
        return _infer().sample(self, n, seed, evidence)


def _infer() -> Any:
    """Return the room of the queries, which imports this one."""
    return import_module("tinybayes.infer")
