"""What a circuit must be for its answers to be right, checked node by node."""

from dataclasses import dataclass

import numpy as np

from tinybayes._kernels.circuit_checks import check_scopes, one_tells_apart, possible_states, tell_apart
from tinybayes.errors import error
from tinybayes.model import Circuit
from tinybayes.model.circuit import PRODUCT, SUM

_WORD = 64
MAX_PAIRS = 2**28  # of children of sums that are compared


@dataclass(frozen=True)
class Property:
    """Whether a circuit has a property; its truth value is `holds`.

    Parameters
    ----------
    holds
        Whether it has.
    reason
        Where and why it has not; empty when it has.
    node
        The first node that breaks it, or None.
    """

    holds: bool
    reason: str = ""
    node: int | None = None

    def __bool__(self) -> bool:
        return self.holds


def is_smooth(circuit: Circuit) -> Property:
    """Return whether the children of every sum have the same variables, so that missing values are summed out."""
    return _check_scopes(circuit, SUM, "a sum whose child {} has other variables than those before it")


def is_decomposable(circuit: Circuit) -> Property:
    """Return whether the children of every product have no variable in common, so that sums can go through it."""
    return _check_scopes(circuit, PRODUCT, "a product whose child {} shares a variable with those before it")


def is_deterministic(circuit: Circuit) -> Property:
    """Return whether at most one child of every sum is not zero for a complete row, so that maxima can be traced.

    Two children count as exclusive when no state of some variable allows both. In a decomposable circuit
    this is what exclusive means, unless parameters happen to be zero.
    """
    sizes = np.where(circuit.kind == SUM, np.diff(circuit.offsets), 0)
    for low, masks in _masks(circuit.first_state):  # mostly one variable tells all children apart: no pairs are needed
        one_tells_apart(circuit.graph, masks, possible_states(circuit.graph, low, masks), sizes)
    if (pairs := sum(size * (size - 1) // 2 for size in sizes.tolist())) > MAX_PAIRS:
        raise error(f"sums with at most {MAX_PAIRS:,} pairs of children", f"{pairs:,}", where="circuit")
    first_pair = np.concatenate([[0], np.cumsum(sizes * (sizes - 1) // 2)])
    apart = np.zeros(int(first_pair[-1]), dtype=bool)
    for low, masks in _masks(circuit.first_state):
        bits = possible_states(circuit.graph, low, masks)
        tell_apart(circuit.graph, masks, bits, first_pair, apart)
    if apart.all():
        return Property(True)
    node = int(np.searchsorted(first_pair, np.argmin(apart), side="right")) - 1
    return Property(False, f"node {node}: a sum with two children that may both be nonzero", node)


def require(circuit: Circuit, *properties: str, remedy: str = "") -> None:
    """Raise unless a circuit has the properties; results are cached on the circuit, which is immutable."""
    known: dict[str, Property] = circuit.__dict__.setdefault("_properties", {})
    for name in properties:
        if name not in known:
            known[name] = _CHECKS[name](circuit)
        if not known[name]:
            raise error(f"a {name} circuit", known[name].reason, where="circuit", remedy=remedy)


_CHECKS = {"smooth": is_smooth, "decomposable": is_decomposable, "deterministic": is_deterministic}


def _check_scopes(circuit: Circuit, kind: int, reason: str) -> Property:
    cards = circuit.cardinalities
    variable = np.repeat(np.arange(len(cards)), cards)
    node, edge = check_scopes(circuit.graph, variable, -(-len(cards) // _WORD), kind)
    if node < 0:
        return Property(True)
    return Property(False, f"node {node}: {reason.format(circuit.children[edge])}", int(node))


def _masks(first_state: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Group variables whose states fit in a word of 64 bits, larger ones in several: first state, bits of each."""
    groups: list[list[tuple[int, int]]] = [[]]
    for start, stop in zip(first_state[:-1].tolist(), first_state[1:].tolist(), strict=True):
        if groups[-1] and stop - groups[-1][0][0] > _WORD:
            groups.append([])
        groups[-1].append((start, stop))
    masks = []
    for group in groups:
        low = group[0][0]
        words = -(-(group[-1][1] - low) // _WORD)
        bits = [((1 << (stop - start)) - 1) << (start - low) for start, stop in group]
        full = 2**_WORD - 1
        masks.append((low, np.array([[b >> _WORD * w & full for w in range(words)] for b in bits], dtype=np.uint64)))
    return masks
