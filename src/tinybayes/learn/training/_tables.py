"""Between candidates and networks on one side and the array of all tables on the other; see `gradient.py`."""

import jax.numpy as jnp
import numpy as np

from tinybayes.learn.training import gradient
from tinybayes.learn.training.arborescence import best_parents
from tinybayes.learn.training.candidates import Candidates
from tinybayes.model import CPD, BayesNet, Dataset, NumberFormat


def table_space(candidates: Candidates, states: np.ndarray, classes: int) -> gradient.Space:
    """Lay out the tables of all candidates one after another."""
    parent, allowed = candidates.parent, candidates.allowed
    contexts = np.where(allowed, np.where(parent >= 0, states[parent], 1), 0)
    offset = (np.cumsum(contexts.reshape(-1)) - contexts.reshape(-1)).reshape(parent.shape)
    size = (contexts * states[:, None] * classes).astype(np.float32)
    owner = np.repeat(np.arange(parent.size) // parent.shape[1], contexts.reshape(-1))
    integers = [jnp.asarray(part, dtype=jnp.int32) for part in (parent, offset, states[owner], owner)]
    return gradient.Space(integers[0], integers[1], jnp.asarray(size), *integers[2:])


def acyclic_mask(logits: np.ndarray, mask: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Keep for each feature the one candidate that it has in the best acyclic choice."""
    chosen = best_parents(_log_probabilities(logits, mask, parent))
    return np.asarray(mask & (parent == chosen[:, None]))


def ordering_mask(logits: np.ndarray, mask: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Keep the candidates that come before their child in one ordering, so that every choice is acyclic.

    The ordering agrees with the best acyclic choice. Where that leaves it open, the feature comes next that loses the
    least: whose candidates before it already have the largest share of its probability.
    """
    weight = _log_probabilities(logits, mask, parent)
    chosen = best_parents(weight)
    share = np.exp(weight)
    features = len(parent)
    position = np.full(features + 1, features)
    position[features] = -1  # no parent comes before all
    kept = share[:, features].copy()
    for place in range(features):
        free = (position[:features] == features) & (position[chosen] < features)
        following = int(np.where(free, kept, -1.0).argmax())
        position[following] = place
        kept += share[:, following]
    return np.asarray(mask & (position[parent] < position[:features, None]))


def _log_probabilities(logits: np.ndarray, mask: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Return log p(parent of feature) of shape (features, features + 1); the last column is for no parent."""
    features = len(parent)
    z = np.where(mask, logits, -np.inf)
    top = z.max(axis=1, keepdims=True)
    log_p = z - top - np.log(np.exp(z - top).sum(axis=1, keepdims=True))
    weight = np.full((features, features + 1), -np.inf)
    for i in range(features):
        for k in np.flatnonzero(mask[i]):
            weight[i, parent[i, k]] = log_p[i, k]  # -1, no parent, is the last column
    return weight


def network(
    data: Dataset,
    storage: NumberFormat,
    parents: np.ndarray,
    offsets: np.ndarray,
    theta: np.ndarray,
    prior: np.ndarray,
) -> BayesNet:
    """Cut the chosen tables out of theta."""
    features = len(data.variables)
    cpds = []
    for variable, parent, offset in zip(data.variables, parents.tolist(), offsets.tolist(), strict=True):
        contexts = data.variables[parent].cardinality if parent >= 0 else 1
        table = theta[: variable.cardinality, offset : offset + contexts]  # value, parent, class
        rows = np.moveaxis(table, 0, -1).reshape(-1, variable.cardinality)
        above = (parent, features) if parent >= 0 else (features,)
        cpds.append(CPD(above, storage.encode(rows.astype(np.float64)), storage))
    cpds.append(CPD((), storage.encode(prior[None].astype(np.float64)), storage))
    return BayesNet(data.variables, data.target, tuple(cpds))
