"""The queries of *Learning Arithmetic Circuits*, drawn from test rows, and its four settings of Gibbs sampling."""

import numpy as np

from tinybayes.errors import error
from tinybayes.infer.gibbs import Queries

GIBBS_SETTINGS: dict[str, dict[str, int]] = {
    "fast": {"chains": 1, "burn_in": 100, "samples": 1_000},
    "medium": {"chains": 10, "burn_in": 100, "samples": 1_000},
    "slow": {"chains": 10, "burn_in": 1_000, "samples": 10_000},
    "very slow": {"chains": 10, "burn_in": 10_000, "samples": 100_000},
}
"""Arguments of `tinybayes.infer.gibbs.gibbs`."""


def random_queries(
    rows: np.ndarray,
    query_share: float = 0.3,
    evidence_share: float = 0.3,
    count: int | None = None,
    seed: int = 0,
) -> Queries:
    """Make queries from test rows, as the paper does.

    A query asks for the values that a row has in some variables, given those that it has in others; both sets are
    random and differ from query to query. With the same seed a larger share keeps the variables of a smaller one, so
    that experiments with several shares can be compared row by row.

    Parameters
    ----------
    rows
        Codes, shape (rows, variables). Missing values (-1) are neither asked for nor observed.
    query_share, evidence_share
        Shares of the variables that are asked for, and observed.
    count
        The number of queries, each from a row of its own as long as there are enough; None takes every row once.
    seed
        Of the choice of rows and variables.
    """
    rows = np.asarray(rows)
    if rows.ndim != 2 or rows.dtype.kind not in "iu" or rows.size == 0:
        raise error("rows of integer codes", f"{rows.dtype} of shape {rows.shape}", where="random_queries")
    if not (0 <= query_share <= 1 and 0 <= evidence_share <= 1 and query_share + evidence_share <= 1):
        raise error(
            "shares from 0 to 1 that add up to at most 1",
            f"{query_share} and {evidence_share}",
            where="query_share and evidence_share",
        )
    if count is not None and count < 1:
        raise error("at least 1", count, where="count", remedy="None takes every row once")
    generator = np.random.default_rng(seed)
    count = len(rows) if count is None else count
    chosen = np.concatenate([generator.permutation(len(rows)) for _ in range(-(-count // len(rows)))])[:count]
    taken, variables = rows[chosen], rows.shape[1]
    # Asked variables come from one end of a random order, observed ones from the other.
    rank = generator.random(taken.shape).argsort(axis=1).argsort(axis=1)
    asked = round(query_share * variables)
    observed = min(round(evidence_share * variables), variables - asked)
    return Queries(
        evidence=np.where(rank >= variables - observed, taken, -1),
        asked=np.where(rank < asked, taken, -1),
    )
