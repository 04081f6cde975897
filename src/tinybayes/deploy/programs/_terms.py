"""A classifier as a sum of table rows: what every exporter starts from.

A *term* is a table that depends on the class. Its rows hold one entry for each class, and the row is found by adding
multiples of the features' codes to the term's first row. Tables without the class add the same to all classes.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from tinybayes.errors import error
from tinybayes.model import CPD, BayesNet
from tinybayes.model.layout import strides

MAX_ENTRIES = 2**26  # of a decision tree written out as a table


@dataclass(frozen=True)
class Term:
    """Where a row is: ``first`` plus, for each pair (feature, stride), the stride times the feature's code."""

    first: int
    steps: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Terms:
    """A classifier laid out as rows of codes.

    Parameters
    ----------
    states
        Cardinality of each feature.
    classes
        Number of classes.
    terms, rows
        The tables that depend on the class, and all their rows of codes, shape (rows, classes).
    constant
        Rows that are always added, such as that of the class prior, shape (any, classes).
    common, entries
        The tables that do not depend on the class, and all their entries.
    common_constant
        Entries of such tables that are always added.
    """

    states: tuple[int, ...]
    classes: int
    terms: tuple[Term, ...]
    rows: np.ndarray
    constant: np.ndarray
    common: tuple[Term, ...]
    entries: np.ndarray
    common_constant: np.ndarray


def lay_out(net: BayesNet) -> Terms:
    """Lay out a classifier; tables that depend on features with one state only are constant."""
    if net.target is None:
        raise error("a model with a class", "none", where="export", remedy="learn it with a target")
    target, classes = len(net.variables), net.target.cardinality
    states = [node.cardinality for node in net.nodes]
    with_class, without = _Tables(), _Tables()
    for node, cpd in enumerate(net.cpds):
        axes = [*cpd.parents, node]
        table = full_table(net, node, cpd).reshape([states[v] for v in axes])
        if target in axes:
            table = np.moveaxis(table, axes.index(target), -1).reshape(-1, classes)
            axes.remove(target)
            with_class.add(table, _steps(axes, states))
        elif np.isneginf(table).any():  # what is impossible in every class must not be left out of predictions
            with_class.add(np.repeat(table.reshape(-1, 1), classes, axis=1), _steps(axes, states))
        else:
            without.add(table.reshape(-1), _steps(axes, states))
    empty = np.empty((0, classes), net.cpds[0].table.dtype)
    return Terms(
        tuple(states[:target]),
        classes,
        tuple(with_class.terms),
        np.concatenate([empty, *with_class.rows]),
        np.concatenate([empty, *with_class.constant]),
        tuple(without.terms),
        np.concatenate([empty[:, 0], *without.rows]),
        np.concatenate([empty[:, 0], *without.constant]),
    )


class _Tables:
    """Tables one after another."""

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self.rows: list[np.ndarray] = []
        self.constant: list[np.ndarray] = []
        self.size = 0

    def add(self, rows: np.ndarray, steps: tuple[tuple[int, int], ...]) -> None:
        """Add the rows of a table; without steps it has one row, which is always added."""
        if not steps:
            self.constant.append(rows)
            return
        self.terms.append(Term(self.size, steps))
        self.rows.append(rows)
        self.size += len(rows)


def full_table(net: BayesNet, node: int, cpd: CPD) -> np.ndarray:
    """Return the codes of a distribution as a full table; a decision tree is written out."""
    if cpd.tree is None:
        return cpd.table
    shape = [net.nodes[p].cardinality for p in cpd.parents]
    if math.prod(shape) * cpd.table.shape[1] > MAX_ENTRIES:
        where, remedy = f"distribution of {net.nodes[node].name!r}", "compile the network to a circuit and export that"
        raise error(f"at most {MAX_ENTRIES:,} entries", "a larger decision tree", where=where, remedy=remedy)
    found = [cpd.tree.find(dict(zip(cpd.parents, values, strict=True))) for values in product(*map(range, shape))]
    return cpd.table[found]


def _steps(axes: list[int], states: list[int]) -> tuple[tuple[int, int], ...]:
    """Return the stride of each feature, leaving out those whose code is always zero."""
    steps = zip(axes, strides([states[v] for v in axes]), strict=True)
    return tuple((v, stride) for v, stride in steps if states[v] > 1)
