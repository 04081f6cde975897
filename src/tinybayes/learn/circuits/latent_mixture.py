"""Mixtures of latent trees: their structure before they are trained, and trained trees put together.

Before: rows are clustered, and every cluster has its own Chow-Liu tree. The clusters come from EM for a mixture of
independent variables. They only shape the trees and where their parameters begin: EM for the whole mixture decides
later which rows a tree explains.

After: trees from several starts are a mixture of equal weights. EM ends in a different local maximum from each start,
so they overfit differently, and their average is more likely than each of them on rows that none has seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinybayes.learn.circuits.latent_start import Tables, marginals, normalized_rows
from tinybayes.learn.circuits.latent_structure import Tree, latent_structure, node_order, side_by_side
from tinybayes.model import Dataset

STEPS = 30  # of EM
OTHERS = 0.1  # what a row of another cluster counts for in a tree, so that no tree comes from a handful of rows
SMOOTHING = 2.0  # rows of the usual kind that a cluster has besides its own


@dataclass(frozen=True)
class Structure:
    """Trees, the variable of each node, and of each tree the marginals of its rows, one tree after the other."""

    tree: Tree
    variables: list[int]
    near: np.ndarray | None


def find_structure(data: Dataset, components: int, seed: int) -> Structure:
    """Return the Chow-Liu tree, or one for each of several clusters of rows."""
    if components == 1:
        return Structure(*latent_structure(data), None)
    shares = clusters(data, components, seed)
    weight = np.ones(len(data)) if data.weight is None else data.weight
    trees, near = [], []
    for share in shares.T:
        own = Dataset(data.variables, None, data.X, weight=weight * np.maximum(share, OTHERS))
        trees.append(latent_structure(own))
        near.append(marginals(own, SMOOTHING))
    return Structure(*side_by_side(trees), np.concatenate(near))


def average_of(structure: Structure, tables: Sequence[Tables]) -> tuple[Structure, Tables]:
    """Return the mixture, with equal weights, of several tables for one structure."""
    copies = len(tables)
    trees = [(structure.tree, structure.variables)] * copies
    near = None if structure.near is None else np.tile(structure.near, (copies, 1))
    joined = join([structure.tree] * copies, tables, np.full(copies, 1 / copies))
    return Structure(*side_by_side(trees), near), joined


def join(trees: Sequence[Tree], tables: Sequence[Tables], shares: np.ndarray) -> Tables:
    """Return the tables of trees as they stand side by side, each with its share of the mixture."""
    order = node_order(trees)
    transition = np.stack([tables[t].transition[node] for t, node in order])
    roots = sum(tree.roots for tree in trees)
    transition[:roots] *= shares[[t for t, _ in order[:roots]], None, None]
    return Tables(transition, np.concatenate([own.emission for own in tables]))


def separate(trees: Sequence[Tree], joined: Tables) -> tuple[list[Tables], np.ndarray]:
    """Return the tables of each tree and its share of the mixture: undo `join`."""
    number = {of_tree: i for i, of_tree in enumerate(node_order(trees))}
    ends = np.cumsum([0, *(len(tree.home) for tree in trees)])
    tables, shares = [], np.empty(len(trees))
    for t, tree in enumerate(trees):
        transition = joined.transition[[number[t, node] for node in range(len(tree.parent))]]
        shares[t] = transition[: tree.roots, 0].sum()
        own = Tables(normalized_rows(transition, tree.roots), joined.emission[ends[t] : ends[t + 1]])
        tables.append(own)
    return tables, shares


def clusters(data: Dataset, count: int, seed: int) -> np.ndarray:
    """Return the probability of each cluster for each row, by EM for a mixture of independent variables.

    Every cluster begins around one of the rows.
    """
    generator = np.random.default_rng(seed)
    weight = np.ones(len(data)) if data.weight is None else data.weight
    usual = marginals(data, SMOOTHING)
    X, values = data.X, np.arange(usual.shape[1])
    indicators = [np.equal(X, value).astype(np.float32) for value in values]
    first = X[generator.choice(len(data), count, p=weight / weight.sum())]
    here = first[:, :, None]
    tables = (usual + np.where(here >= 0, here == values, usual)) / 2
    prior = np.full(count, 1 / count)
    shares = np.zeros((len(data), count))
    for _ in range(STEPS):
        logs = np.log(prior) + sum(
            known @ np.log(np.maximum(tables[:, :, value], 1e-30)).T.astype(np.float32)
            for value, known in enumerate(indicators)
        )
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        used = weight[:, None] * shares
        prior = (used.sum(axis=0) + 1.0) / (used.sum() + count)
        counts = np.stack([used.T @ known for known in indicators], axis=2) + SMOOTHING * usual
        tables = counts / counts.sum(axis=2, keepdims=True)
    return shares
