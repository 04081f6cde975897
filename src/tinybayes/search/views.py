"""A table under search: its rows in more than one encoding, and their parts.

Workers get it and nothing else of the table: this module loads neither pandas nor scikit-learn (`prepare.py` does).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tinybayes.model import Dataset, Variable
from tinybayes.search.goal import USUAL, Decision
from tinybayes.search.measure import Measure
from tinybayes.search.splits import NO_ORDER, Order

if TYPE_CHECKING:
    from tinybayes.search.columns import Columns


@dataclass(frozen=True, eq=False)
class View:
    """One encoding of the table: the rows that the search may see, and the test rows.

    Seen rows have the weights of training, test rows those of the table.
    """

    seen: Dataset
    test: Dataset


@dataclass(frozen=True, eq=False)
class Views:
    """A table under search."""

    by_name: dict[str, View]  # the encodings, by their names in `VIEWS` of `prepare.py`
    train: np.ndarray  # indices of the training rows among the seen ones
    valid: np.ndarray  # and of the validation rows
    image_shape: tuple[int, int] | None  # rows and columns, when the features are pixels
    weight: np.ndarray | None = None  # of the seen rows, as the table has them: by these figures are weighted
    decision: Decision = USUAL
    order: Order = NO_ORDER  # of the seen rows: what keeps them together
    prices: "Columns | None" = None  # what features cost, where they have prices
    columns: np.ndarray | None = None  # which columns of the table these are, where they are not all

    def rows(self, name: str, *, all_seen: bool = False, split: int = 0) -> tuple[Dataset, Dataset]:
        """Return training rows, and validation rows that training watches; both have weights of their own.

        With `all_seen` the training rows are all but the test rows. Otherwise they are as many in all splits, so that
        nothing is compiled again: a few are left out or taken twice.
        """
        seen, valid = self.by_name[name].seen, self.splits[split]
        others = np.setdiff1d(np.arange(len(seen)), valid)
        others = others[np.linspace(0, len(others) - 1, len(self.train)).round().astype(np.int64)]
        train = seen if all_seen else seen.rows(others)
        watched = self.validation(name, split)
        assert watched.y is not None
        weight = weighted(watched.y, watched.weight, self.decision.watched_factor(watched.y, watched.weight))
        return train, replace(watched, weight=weight)

    def validation(self, name: str, split: int = 0) -> Dataset:
        """Return validation rows with the weights of the table, for figures."""
        part = self.splits[split]
        weight = None if self.weight is None else self.weight[part]
        return replace(self.by_name[name].seen.rows(part), weight=weight)

    @cached_property
    def splits(self) -> tuple[np.ndarray, ...]:
        """Parts of the seen rows: the first has the validation rows, others the training rows."""
        classes = self.by_name["mdlp"].seen.y
        assert classes is not None
        generator = np.random.default_rng(len(classes))
        count = max(1, round(len(self.train) / len(self.valid)))
        parts = self.order.rows(self.train).parts(classes[self.train], count, generator)
        return (self.valid, *(self.train[part] for part in parts))

    @cached_property
    def target(self) -> Variable:
        """The class."""
        target = self.by_name["mdlp"].seen.target
        assert target is not None
        return target

    @property
    def measure(self) -> Measure:
        """What the search minimises."""
        return self.decision.measure


def weighted(y: np.ndarray, weight: np.ndarray | None, factor: np.ndarray | None) -> np.ndarray | None:
    """Return the weights of rows times what their classes count; None where all rows count once."""
    return weight if factor is None else factor[np.maximum(y, 0)] * (1.0 if weight is None else weight)
