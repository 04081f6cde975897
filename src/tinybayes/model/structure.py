"""A directed acyclic graph over variables: who depends on whom."""

from collections.abc import Sequence
from dataclasses import dataclass

from tinybayes.errors import error


@dataclass(frozen=True)
class Structure:
    """The parents of each node; for a classifier the class is the last node.

    Parameters
    ----------
    parents
        For each node the indices of its parents, in the order in which its table runs through them.
    """

    parents: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        parents = tuple(tuple(int(p) for p in family) for family in self.parents)
        object.__setattr__(self, "parents", parents)
        for node, family in enumerate(parents):
            if len(set(family)) != len(family) or any(not 0 <= p < len(parents) for p in family):
                raise error(f"distinct parents among 0..{len(parents) - 1}", family, where=f"node {node}")
        topological_order(parents)

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def order(self) -> tuple[int, ...]:
        """The nodes, parents before children."""
        return topological_order(self.parents)

    @property
    def families(self) -> tuple[tuple[int, ...], ...]:
        """For each node its parents followed by the node itself: the axes of its table."""
        return tuple((*family, node) for node, family in enumerate(self.parents))


def topological_order(parents: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Sort the nodes so that parents come first; raise when there is a cycle."""
    children: list[list[int]] = [[] for _ in parents]
    waiting = [len(family) for family in parents]
    for node, family in enumerate(parents):
        for parent in family:
            children[parent].append(node)
    ready = [node for node in range(len(parents) - 1, -1, -1) if waiting[node] == 0]
    order: list[int] = []
    while ready:
        node = ready.pop()
        order.append(node)
        for child in reversed(children[node]):
            waiting[child] -= 1
            if waiting[child] == 0:
                ready.append(child)
    if len(order) < len(parents):
        cyclic = [node for node in range(len(parents)) if waiting[node] > 0]
        raise error("a graph without cycles", f"a cycle among or above the nodes {cyclic[:10]}", where="structure")
    return tuple(order)
