"""Which parents a feature may have: the search spaces of differentiable_tan, and those without an ordering.

A `Candidates` holds for each feature its possible extra parents, -1 for none, padded where it has fewer. The training
steps (`table_steps.py`) see it as arrays.

Choice 0 of every feature is "no extra parent". Structure noise replaces a drawn choice by it; for a fixed structure
this is a search whose preference never changes, so one loop serves both.
"""

from dataclasses import dataclass

import numpy as np

from tinybayes.errors import error
from tinybayes.learn.closed_form.structures import random_ordering
from tinybayes.model import Structure


@dataclass(frozen=True, eq=False)
class Candidates:
    """Possible extra parents.

    Parameters
    ----------
    parent
        Shape (features, choices): a feature, or -1 for no extra parent.
    allowed
        Same shape: False where there is no such choice.
    ordered
        Whether every choice gives an acyclic graph, because parents come before children in some ordering.
    """

    parent: np.ndarray
    allowed: np.ndarray
    ordered: bool = True


def fixed(structure: Structure) -> Candidates:
    """One choice for each feature: the parents of a given naive Bayes or TAN structure."""
    features = len(structure) - 1
    parent = np.full((features, 1), -1)
    for i, family in enumerate(structure.parents[:features]):
        others = [p for p in family if p != features]
        if len(others) > 1 or features not in family or structure.parents[features]:
            raise error("features with the class and at most one feature as parents", family, where=f"feature {i}")
        parent[i] = others[0] if others else -1
    return Candidates(parent, np.ones_like(parent, dtype=bool))


def subset(features: int, k: int, *, seed: int = 0, subset_seed: int = 0) -> Candidates:
    """TAN Subset: a random ordering (`seed`), and for each feature up to `k` random predecessors (`subset_seed`).

    With the same seeds, a smaller `k` takes a prefix of the larger one's candidates. ``k >= features`` is TAN All.
    """
    order = random_ordering(features, seed)
    generator = np.random.default_rng([seed, subset_seed, 2])
    chosen: list[list[int]] = [[] for _ in range(features)]
    for position, feature in enumerate(order):
        chosen[feature] = generator.permutation(order[:position])[:k].tolist()
    return among(chosen)


def heuristic(shape: tuple[int, int], k: int, *, ordering: str = "C") -> Candidates:
    """TAN Heuristic for images: the `k` nearest pixels that come earlier in a fixed ordering.

    Parameters
    ----------
    shape
        Rows and columns of the image; feature ``r * columns + c`` is the pixel (r, c).
    k
        Number of candidates.
    ordering
        ``"A"``: row by row. ``"B"``: row r with column r, from the corner. ``"C"``: rings from the centre; of each
        ring the pixels above, below, left, right, and then the corners.
    """
    rows, columns = shape
    pixels = [(r, c) for r in range(rows) for c in range(columns)]
    keys = {
        "A": lambda r, c: (r, c),
        "B": lambda r, c: (max(r, c), min(r, c), r <= c),
        "C": lambda r, c: _ring(2 * r - rows + 1, 2 * c - columns + 1),
    }
    if ordering not in keys:
        raise error("ordering A, B or C", repr(ordering), where="heuristic")
    order = sorted(pixels, key=lambda pixel: keys[ordering](*pixel))
    chosen: list[list[int]] = [[] for _ in pixels]
    for position, (r, c) in enumerate(order):
        near = sorted(order[:position], key=lambda q: ((q[0] - r) ** 2 + (q[1] - c) ** 2, order.index(q)))
        chosen[r * columns + c] = [p * columns + q for p, q in near[:k]]
    return among(chosen)


def _ring(down: int, right: int) -> tuple[int, ...]:
    """Return the sorting key in ordering C of the pixel that far (doubled) from the centre."""
    ring = max(abs(down), abs(right))
    if abs(down) == abs(right):
        side = 4
    elif abs(down) == ring:
        side = 0 if down < 0 else 1
    else:
        side = 2 if right < 0 else 3
    return ring, side, down, right


def with_none(only: Candidates) -> Candidates:
    """Put "no extra parent" before the one choice of a fixed structure, so that it can be chosen instead."""
    parent = np.hstack([np.full_like(only.parent, -1), only.parent])
    return Candidates(parent, np.hstack([only.allowed, only.parent >= 0]), only.ordered)


def order_free(features: int, k: int | None = None, *, seed: int = 0) -> Candidates:
    """All other features, or `k` random ones, as candidates: the graph may get cycles until they are taken out."""
    generator = np.random.default_rng([seed, 3])
    chosen = []
    for feature in range(features):
        others = generator.permutation([j for j in range(features) if j != feature])
        chosen.append(others[:k].tolist())
    return among(chosen, ordered=False)


def most_informative(information: np.ndarray, k: int) -> Candidates:
    """Offer each feature the `k` that tell most about it, by a matrix of mutual information, in any order."""
    order = np.argsort(-np.round(information, 12), axis=1, kind="stable")
    chosen = [[int(j) for j in row if j != feature][:k] for feature, row in enumerate(order)]
    return among(chosen, ordered=False)


def among(chosen: list[list[int]], *, ordered: bool = True) -> Candidates:
    """Offer each feature "no extra parent" and the listed ones; `ordered` promises that no choice has a cycle."""
    width = 1 + max((len(c) for c in chosen), default=0)
    parent = np.full((len(chosen), width), -1)
    allowed = np.zeros_like(parent, dtype=bool)
    for feature, candidates in enumerate(chosen):
        parent[feature, 1 : 1 + len(candidates)] = candidates
        allowed[feature, : 1 + len(candidates)] = True
    return Candidates(parent, allowed, ordered)
