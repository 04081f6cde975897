"""Bayesian networks: the type where learners, compressors, exporters and inference meet.

The class, if there is one, is the last node; parents are indices into `nodes`. Tables need not be normalised, because
quantised and tied tables are not: `is_normalized` tells.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tinybayes.errors import error, near
from tinybayes.model.number_format import NumberFormat
from tinybayes.model.record import Nodes, Record, indices, whole_numbers
from tinybayes.model.structure import Structure
from tinybayes.model.variable import Variable


@dataclass(frozen=True, eq=False)
class DecisionTree(Record):
    """A decision tree from the values of the parents to a row of the table.

    Node 0 is the root. An inner node ``n`` tests the parent ``split[n]`` and goes on at
    ``children[first[n] + value]``; several values may lead to the same child (a decision graph). A leaf has
    ``split[n] == -1`` and names its row in ``row[n]``.
    """

    split: np.ndarray
    first: np.ndarray
    children: np.ndarray
    row: np.ndarray

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, whole_numbers(getattr(self, name), np.int32, f"decision tree, {name}"))
        if self.split.min(initial=-1) < -1:  # nobody later asks whether it is -1 or another one below 0
            raise error("tests of parents, or -1 for leaves", int(self.split.min()), where="decision tree, split")
        if not len(self.split) == len(self.first) == len(self.row) > 0:
            raise error("one entry for each node", "arrays of different lengths", where="decision tree")

    def find(self, values: dict[int, int]) -> int:
        """Return the row for an assignment of the parents."""
        node = 0
        while self.split[node] >= 0:
            node = int(self.children[self.first[node] + values[int(self.split[node])]])
        return int(self.row[node])

    def check(self, parents: tuple[int, ...], cardinality: dict[int, int], rows: int, where: str) -> None:
        """Raise unless every path from the root ends at a row of the table."""
        for node, parent in enumerate(self.split.tolist()):
            here = f"{where}, tree node {node}"
            if parent < 0:
                if not 0 <= self.row[node] < rows:
                    raise error(f"a row of 0..{rows - 1}", self.row[node], where=here)
                continue
            if parent not in cardinality:
                raise error(f"a test of one of the parents {parents}", parent, where=here)
            start = int(self.first[node])
            below = self.children[max(start, 0) : start + cardinality[parent]]
            # Children come after their node, so that no path can run in a circle.
            if start < 0 or len(below) < cardinality[parent] or below.min() <= node or below.max() >= len(self.split):
                raise error(f"{cardinality[parent]} children after the node", below.tolist(), where=here)


@dataclass(frozen=True, eq=False)
class CPD(Record):
    """A conditional distribution ``P(node | parents)`` as log-parameters.

    Parameters
    ----------
    parents
        Indices of the parents.
    table
        Codes of the log-parameters in `format`, shape (rows, states of the node). A full table has one row
        for each assignment of the parents, the last parent running fastest.
    format
        How the entries are stored.
    tree
        The decision tree from the parents' values to the row; None for a full table.
    """

    parents: tuple[int, ...]
    table: np.ndarray
    format: NumberFormat
    tree: DecisionTree | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parents", indices(self.parents, "CPD, parents"))
        table = np.asarray(self.table)
        if table.ndim != 2 or table.size == 0:
            raise error("a table with rows and columns", f"shape {table.shape}", where="CPD")
        object.__setattr__(self, "table", self.format.checked(table))

    @cached_property
    def log_parameters(self) -> np.ndarray:
        """The table in double precision, decoded."""
        return self.format.decode(self.table)


@dataclass(frozen=True, eq=False)
class BayesNet(Record, Nodes):
    """A Bayesian network, with or without a class variable.

    Parameters
    ----------
    variables
        The variables; for a classifier, the features.
    target
        The class variable, which is the last node, or None.
    cpds
        One distribution for each node.
    """

    variables: tuple[Variable, ...]
    target: Variable | None
    cpds: tuple[CPD, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        object.__setattr__(self, "cpds", tuple(self.cpds))
        nodes = self.nodes
        names = [node.name for node in nodes]
        if len(set(names)) != len(names):
            raise error("distinct names", f"{names[:10]}", where="variables")
        if len(self.cpds) != len(nodes):
            raise error(f"{len(nodes)} distributions, one for each variable", len(self.cpds), where="cpds")
        structure = self.structure  # raises on unknown parents and on cycles
        for node, cpd, family in zip(nodes, self.cpds, structure.parents, strict=True):
            where = f"distribution of {node.name!r}"
            if cpd.table.shape[1] != node.cardinality:
                raise error(f"{node.cardinality} columns, one a state", cpd.table.shape[1], where=where)
            cardinality = {parent: nodes[parent].cardinality for parent in family}
            if cpd.tree is not None:
                cpd.tree.check(family, cardinality, cpd.table.shape[0], where)
                continue
            if cpd.table.shape[0] != (rows := math.prod(cardinality.values())):
                raise error(f"{rows} rows, one an assignment of the parents", cpd.table.shape[0], where=where)

    @cached_property
    def structure(self) -> Structure:
        """The graph."""
        return Structure(tuple(cpd.parents for cpd in self.cpds))

    def is_normalized(self, tolerance: float = 1e-6) -> bool:
        """Tell whether every row of every table sums to one; quantised tables in general do not."""
        with np.errstate(over="ignore"):  # parameters of networks that are not may be of any size
            sums = [np.exp(cpd.log_parameters).sum(axis=1) for cpd in self.cpds]
        return all(np.allclose(own, 1.0, rtol=0, atol=tolerance) for own in sums)


def with_target(net: BayesNet, name: str | None) -> BayesNet:
    """Return the same network with another of its variables, or none, as the class.

    The class is the last node, so that the others move up; parents and decision trees are renumbered.
    """
    names = [node.name for node in net.nodes]
    if name is None:
        return BayesNet(net.nodes, None, net.cpds)
    if name not in names:
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise error(f"one of the variables {shown}", repr(name), where="target", remedy=near(name, names))
    chosen = names.index(name)
    order = [node for node in range(len(names)) if node != chosen] + [chosen]
    position = np.argsort(order)
    cpds = []
    for node in order:
        cpd, tree = net.cpds[node], net.cpds[node].tree
        if tree is not None:
            tree = replace(tree, split=np.where(tree.split >= 0, position[tree.split], -1))
        cpds.append(replace(cpd, parents=tuple(int(position[p]) for p in cpd.parents), tree=tree))
    return BayesNet(tuple(net.nodes[node] for node in order[:-1]), net.nodes[chosen], tuple(cpds))
