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
