"""Latent trees within a number of edges: transitions that little flows through are cut, and EM goes on.

A transition of the tree is three edges of the circuit. A hidden state that no transition leads to any more takes its
emissions with it, so hidden variables end up with different numbers of states.
"""

from collections.abc import Sequence

import numpy as np

from tinybayes.errors import error
from tinybayes.learn.circuits.latent_circuit import used_states
from tinybayes.learn.circuits.latent_start import Tables, normalized_rows
from tinybayes.learn.circuits.latent_structure import Tree

TERM = 3  # edges of a parameter times a part in a sum: two of the product, and its own


def count_edges(tree: Tree, allowed: np.ndarray, cardinalities: Sequence[int]) -> int:
    """Return the edges of the circuit with these transitions, without building it.

    Of several trees, there is a cardinality for each variable in each tree, as there is a home.
    """
    used = used_states(tree, allowed)
    states = used.sum(axis=1)
    terms = sum(
        int(allowed[node][used[parent]].sum() if parent >= 0 else allowed[node][0].sum())
        for node, parent in enumerate(tree.parent)
    )
    home = np.array(tree.home)
    terms += int((states[home] * np.array(cardinalities)).sum())
    factors = np.bincount(home, minlength=len(states)) + np.bincount(tree.parent[tree.roots :], minlength=len(states))
    return TERM * terms + int((states * np.where(factors > 1, factors, 0)).sum())


def strongest(tree: Tree, flow: np.ndarray, cardinalities: Sequence[int], max_edges: int) -> np.ndarray:
    """Return as many transitions as fit, those with the largest expected counts.

    The largest of every hidden state stays as long as the state does: distributions cannot be empty.
    """
    largest = _largest(flow)
    order = np.sort(flow[flow > 0])[::-1]

    def kept(count: int) -> np.ndarray:
        return largest | (flow >= order[count - 1]) if count else largest

    low, high = 0, len(order)
    fewest = fewest_edges(tree, flow, cardinalities)
    if fewest > max_edges:
        remedy = "raise max_edges: this is one hidden state everywhere"
        raise error(f"at least {fewest:,}", f"{max_edges:,}", where="max_edges", remedy=remedy)
    while low < high:
        middle = (low + high + 1) // 2
        fits = count_edges(tree, kept(middle), cardinalities) <= max_edges
        low, high = (middle, high) if fits else (low, middle - 1)
    return kept(low)


def fewest_edges(tree: Tree, flow: np.ndarray, cardinalities: Sequence[int]) -> int:
    """Return the edges that are left when every hidden state has a single transition."""
    return count_edges(tree, _largest(flow), cardinalities)


def _largest(flow: np.ndarray) -> np.ndarray:
    """Tell which transition of each hidden state has the largest expected count, the first of equal ones."""
    largest = (flow == flow.max(axis=2, keepdims=True)) & (flow > 0)
    return np.asarray(largest & (np.cumsum(largest, axis=2) == 1))


def cut(tables: Tables, allowed: np.ndarray, roots: int = 1) -> Tables:
    """Set the other transitions to zero, and make sums of one again."""
    return Tables(normalized_rows(tables.transition * allowed, roots), tables.emission)
