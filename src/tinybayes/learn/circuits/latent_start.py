"""Where EM begins, and what its counts are smoothed with."""

from dataclasses import dataclass

import numpy as np

from tinybayes.learn.circuits.latent_structure import Tree
from tinybayes.model import Dataset

NOISE = 0.5  # standard deviation of the logarithms of the first emissions, around those of the marginals


@dataclass(frozen=True)
class Tables:
    """The parameters of a latent tree as `latent_steps.Parameters` has them, in double precision."""

    transition: np.ndarray
    emission: np.ndarray


def pseudocounts(data: Dataset, tree: Tree, states: np.ndarray, smoothing: float) -> Tables:
    """Return the pseudocount of every parameter, zero for states that a node does not have.

    In total `smoothing` for each distribution: spread uniformly over hidden states, and over values as the
    marginals are, so that a rarely used hidden state predicts about what is usual.
    """
    most = int(states.max())
    has_state = np.arange(most) < states[:, None]
    parents = np.array(tree.parent)
    above = np.where(parents[:, None] >= 0, has_state[parents], np.arange(most) == 0)
    transition = smoothing * above[:, :, None] * (has_state / states[:, None])[:, None, :]
    transition[: tree.roots] /= tree.roots
    usual = np.tile(marginals(data, smoothing), (tree.roots, 1))
    return Tables(transition, smoothing * has_state[list(tree.home)][:, :, None] * usual[:, None, :])


def marginals(data: Dataset, smoothing: float) -> np.ndarray:
    """Return the smoothed marginal of every variable, zero beyond its states; shape (variables, most states)."""
    cards = [variable.cardinality for variable in data.variables]
    result = np.zeros((len(cards), max(cards)))
    for v, card in enumerate(cards):
        known = data.X[:, v] >= 0
        weight = None if data.weight is None else data.weight[known]
        counts = np.bincount(data.X[known, v], weights=weight, minlength=card)
        result[v, :card] = (counts + smoothing / card) / (counts.sum() + smoothing)
    return result


def draw_start(prior: Tables, seed: int, roots: int = 1, near: np.ndarray | None = None) -> Tables:
    """Draw the first parameters: states that tend to stay the same along the tree, and emissions near the marginals.

    A transition is half the identity, so that hidden states of neighbours mean the same from the start, and half drawn
    uniformly from all distributions. Marginals other than those of all rows may be given: those of a tree's own.
    """
    generator = np.random.default_rng(seed)
    allowed = prior.transition > 0
    drawn = normalized_rows(generator.exponential(size=allowed.shape) * allowed)
    same = normalized_rows(np.eye(allowed.shape[1]) * allowed)
    same[:roots] = 0.0  # roots have no parent to be the same as
    noise = np.exp(NOISE * generator.normal(size=prior.emission.shape))
    usual = prior.emission if near is None else near[:, None, :] * (prior.emission > 0)
    return Tables(normalized_rows(same + drawn, roots), normalized_rows(usual * noise))


def normalized_rows(table: np.ndarray, roots: int = 0) -> np.ndarray:
    """Divide each distribution by its sum, unless that is zero; those of the roots by their common sum."""
    total = row_sums(table, roots)
    return np.asarray(np.divide(table, total, out=np.zeros_like(table), where=total > 0))


def row_sums(table: np.ndarray, roots: int = 0) -> np.ndarray:
    """Return the sums of all distributions, their axis kept; the roots have a common one."""
    total = table.sum(axis=2, keepdims=True)
    total[:roots] = total[:roots].sum(axis=0)
    return np.asarray(total)
