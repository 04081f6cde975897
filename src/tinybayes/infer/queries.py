"""Questions to a network: the probability of some values given others."""

from dataclasses import dataclass

import numpy as np

from tinybayes.errors import error
from tinybayes.model import BayesNet


@dataclass(frozen=True, eq=False)
class Queries:
    """Questions ``P(asked | evidence)``, one a row.

    Parameters
    ----------
    evidence
        Codes of the observed values, -1 where a variable is not observed; shape (queries, variables), the columns in
        the order of ``BayesNet.nodes`` (the class, if there is one, last).
    asked
        Codes of the values whose joint probability is wanted, -1 where a variable is not asked for.
    """

    evidence: np.ndarray
    asked: np.ndarray

    def __post_init__(self) -> None:
        for name in ("evidence", "asked"):
            array = np.asarray(getattr(self, name))
            if array.ndim != 2 or array.dtype.kind not in "iu":
                raise error("integer codes, a query a row", f"{array.dtype} of shape {array.shape}", where=name)
            object.__setattr__(self, name, np.ascontiguousarray(array, dtype=np.int32))
        if self.evidence.shape != self.asked.shape:
            raise error(f"the shape {self.evidence.shape} of the evidence", self.asked.shape, where="asked")
        both = np.argwhere((self.evidence >= 0) & (self.asked >= 0))
        if len(both):
            row, column = both[0].tolist()
            raise error(
                "variables that are asked for or observed, not both",
                f"both for variable {column}",
                where=f"query {row}",
                remedy="set one of them to -1",
            )

    def __len__(self) -> int:
        return len(self.evidence)

    def check(self, net: BayesNet) -> None:
        """Raise unless every code is a state of its variable."""
        states = np.array([node.cardinality for node in net.nodes])
        for name, codes in (("evidence", self.evidence), ("asked", self.asked)):
            if codes.shape[1] != len(states):
                raise error(f"{len(states)} columns, one a variable of the network", codes.shape[1], where=name)
            wrong = np.argwhere((codes < -1) | (codes >= states))
            if len(wrong):
                row, column = wrong[0].tolist()
                raise error(
                    f"a code from -1 to {states[column] - 1}",
                    codes[row, column],
                    where=f"{name}, query {row}, variable {net.nodes[column].name!r}",
                )


def random_queries(
    rows: np.ndarray,
    query_share: float = 0.3,
    evidence_share: float = 0.3,
    count: int | None = None,
    seed: int = 0,
) -> Queries:
    """Make queries from test rows, as *Learning Arithmetic Circuits* (Lowd and Domingos) does.

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
    place = generator.random(taken.shape).argsort(axis=1).argsort(axis=1)
    asked = round(query_share * variables)
    observed = min(round(evidence_share * variables), variables - asked)
    return Queries(
        evidence=np.where(place >= variables - observed, taken, -1),
        asked=np.where(place < asked, taken, -1),
    )
