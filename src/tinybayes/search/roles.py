"""Columns of a table that are not features: row weights, groups and times."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tinybayes.data.checks import repetitions
from tinybayes.data.encode import row_weights
from tinybayes.errors import error, near, warn


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The names of such columns, None where there is none."""

    weight: str | None = None
    groups: str | None = None
    time_order: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are not features."""
        return tuple(name for name in (self.weight, self.groups, self.time_order) if name is not None)

    @property
    def split(self) -> bool:
        """Whether rows are not split by class alone."""
        return self.groups is not None or self.time_order is not None

    def check(self, frame: pd.DataFrame, target: str, test: pd.DataFrame | None) -> None:
        """Refuse columns that are not there or have two roles; warn of groups that are in the test table, too."""
        if self.groups is not None and self.time_order is not None:
            remedy = "take one of them"
            raise error("splits by groups or by time", "both", where="groups and time order", remedy=remedy)
        named = {"weight": self.weight, "groups": self.groups, "time order": self.time_order}
        for role, name in named.items():
            if name is None:
                continue
            if name not in frame.columns:
                raise error(f"a column {name!r}", "a table without it", where=role, remedy=near(name, frame.columns))
            if name == target or list(named.values()).count(name) > 1:
                raise error("a column with one role", f"{name!r} in two", where=role, remedy="name another column")
        if test is None:
            return
        if self.weight is not None and self.weight not in test.columns:
            raise error(f"a column {self.weight!r}", "a test table without it", where="weight")
        if self.groups is not None and self.groups in test.columns:
            both = set(test[self.groups].dropna().astype(str)) & set(frame[self.groups].dropna().astype(str))
            if both:
                warn(f"{len(both):,} groups of the test table are in the table, too: the test figures are optimistic")

    def weights(self, frame: pd.DataFrame) -> np.ndarray | None:
        """Return the row weights: integers are repetitions, others are scaled to a mean of 1."""
        if self.weight is None:
            return None
        weight = repetitions(row_weights(frame[self.weight]))
        self.check_weights(weight)
        return weight

    def check_weights(self, weight: np.ndarray | None) -> None:
        """Refuse rows that all weigh nothing."""
        if weight is not None and not weight.any():
            remedy = "give more rows a weight above 0"
            raise error("a weight above 0", "only zeros in a part of the rows", where="weight", remedy=remedy)

    def meaning(self) -> dict[str, str]:
        """Return what another search must share to go on with the runs of this one."""
        named = {"weights": self.weight, "groups": self.groups, "time order": self.time_order}
        return {name: column for name, column in named.items() if column is not None}


NO_ROLES = Roles()
