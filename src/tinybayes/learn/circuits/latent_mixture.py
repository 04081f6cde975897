"""The structure of a mixture of latent trees: rows are clustered, and every cluster has its own Chow-Liu tree.

The clusters come from EM for a mixture of independent variables. They only shape the trees and where their parameters
begin: EM for the whole mixture decides later which rows a tree explains.
"""

from dataclasses import dataclass

import numpy as np

from tinybayes.learn.circuits.latent_start import marginals
from tinybayes.learn.circuits.latent_structure import Tree, latent_structure, side_by_side
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
