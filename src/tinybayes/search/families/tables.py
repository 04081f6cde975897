"""Bayesian networks trained by gradient through tables of a few bits: naive Bayes, Chow-Liu trees, learned trees."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tinybayes.learn.closed_form.chow_liu import chow_liu
from tinybayes.learn.closed_form.structures import naive_bayes
from tinybayes.learn.training.candidates import Candidates, fixed, subset
from tinybayes.learn.training.options import TableOptions
from tinybayes.model import BayesNet, Dataset, Fixed, Structure
from tinybayes.search.budget import Budget
from tinybayes.search.families.family import Setting, Trained, distributions, hyper_parameters, in_bits, with_settings
from tinybayes.search.price import Price
from tinybayes.search.skeletons import skeleton_price, table_skeleton
from tinybayes.search.views import Views

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

# Encodings of bins of equal counts, the finest first, and the training rows that suit the number of bins.
BINS = {"many": 2000, "middle": 0, "coarse": 0}
_STRUCTURES: "WeakKeyDictionary[Views, dict[tuple[str, str], tuple[Dataset, Structure]]]" = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Tables(Trained):
    """Networks whose tables are trained."""

    # From training rows and a setting to the parents that each feature may have.
    candidates: Callable[[Dataset, Setting], Candidates]
    # From training rows to the structure, or the smallest one where it is learned with the tables.
    structure: Callable[[Dataset], Structure]
    least: int = 1  # features that the table must have
    more: tuple[str, ...] = ()  # hyper-parameters of the tables that are drawn beside those that all have
    # From the number of features to further choices; each has its own shape.
    choices: Callable[[int], dict[str, Sequence[Any]]] = lambda features: {}

    def possible(self, views: Views) -> bool:
        """Return whether there are enough features."""
        return len(views.by_name["mdlp"].seen.variables) >= self.least

    def fewest(self) -> int:
        """Return the fewest columns of a model."""
        return self.least

    def space(self, views: Views) -> "dict[str, BaseDistribution]":
        """Draw the number format, the loss, the learning rate, the noise and the encoding of the table."""
        from optuna.distributions import CategoricalDistribution, IntDistribution

        choices = {"view": ["mdlp", *BINS], **self.choices(len(views.by_name["mdlp"].seen.variables))}
        return {
            "bits": IntDistribution(1, 8),
            "integer": IntDistribution(1, 6),
            **distributions(TableOptions, "lam", "gamma", "learning_rate", "input_noise"),
            **{name: CategoricalDistribution(values) for name, values in choices.items()},
            **distributions(TableOptions, *self.more),
            "taught": CategoricalDistribution([False, True]),
        }

    def guesses(self, views: Views, budget: Budget) -> list[Setting]:
        """Begin with 4 bits and MDLP's cut points, then take as many bins as the rows and the budget allow."""
        guess = {"bits": 4, "integer": 3, "lam": 50.0, "gamma": 10.0, "learning_rate": 0.02, "input_noise": 0.1}
        rows, _ = views.rows("mdlp")
        finer = [{**guess, "view": view, "input_noise": 0.2} for view, least in BINS.items() if len(rows) >= least]
        fitting = [one for one in finer if (cut := self.fitted(one, views, budget)) and cut["bits"] == one["bits"]]
        return [{**guess, "view": "mdlp"}, *fitting[:1]]

    def fitted(self, setting: Setting, views: Views, budget: Budget) -> Setting | None:
        """Take fewer bits."""
        features = len(views.by_name["mdlp"].seen.variables)
        if features < self.least:
            return None
        if "n_candidates" in setting:
            setting = {**setting, "n_candidates": min(setting["n_candidates"], features - 1)}
        least = min(limit for limit in (budget.bits, 8 * (budget.flash or 2**60), 2**63) if limit is not None)
        if entries(*self._known(setting["view"], views)) > least:
            return None
        if budget.flash is not None and self.skeleton({**setting, "bits": 1}, views, budget).tables > budget.flash:
            return None
        for bits in range(setting["bits"], 0, -1):
            cut = {**setting, "bits": bits}
            if not budget.limited or budget.allows(self.skeleton(cut, views, budget)):
                return cut
        return None

    def skeleton(self, setting: Setting, views: Views, budget: Budget) -> Price:
        """Price a network with random tables."""
        view, bits, integer = setting["view"], setting["bits"], setting["integer"]
        key = (self.name, view, bits, integer)

        def make() -> BayesNet:
            return table_skeleton(*self._known(view, views), Fixed(integer, bits - integer))

        return skeleton_price(views, key, make, budget.core, rows=1 if budget.microseconds else 0)

    def _known(self, view: str, views: Views) -> tuple[Dataset, Structure]:
        """Return the training rows in an encoding and their structure, which is found once."""
        known = _STRUCTURES.setdefault(views, {})
        if (self.name, view) not in known:
            data, _ = views.rows(view)
            known[self.name, view] = data, self.structure(data)
        return known[self.name, view]

    def describe(self, setting: Setting) -> str:
        """Name the bits."""
        return f"{self.name}, {in_bits(setting['bits'])}"

    def train_runs(
        self, rows: Dataset, settings: Sequence[Setting], views: Views, **options: Any
    ) -> list[tuple[Setting, Any]]:
        """Train the tables of all settings at once."""
        from tinybayes.learn.training.tables import TableConfiguration, train_tables

        runs = [
            TableConfiguration(
                candidates=self.candidates(rows, setting),
                number_format=Fixed(setting["integer"], setting["bits"] - setting["integer"]),
                **hyper_parameters(setting, TableConfiguration),
            )
            for setting in settings
        ]
        return with_settings(settings, runs, train_tables(rows, runs, **options))


def entries(data: Dataset, structure: Structure) -> int:
    """Return the entries of all tables of a structure."""
    assert data.target is not None
    sizes = [v.cardinality for v in (*data.variables, data.target)]
    families = ((node, *parents) for node, parents in enumerate(structure.parents))
    return sum(math.prod(sizes[i] for i in family) for family in families)


def _numbers_of_candidates(features: int) -> dict[str, Sequence[Any]]:
    most = min(8, features - 1)
    return {"n_candidates": sorted({min(4, most), most})}


NAIVE = Tables("naive", ("view",), lambda rows, setting: fixed(naive_bayes(rows)), naive_bayes)
TAN = Tables(
    "tan",
    ("view", "sharing"),
    lambda rows, setting: fixed(chow_liu(rows)),
    chow_liu,
    least=2,
    more=("structure_noise",),
    choices=lambda features: {"sharing": [0.0, 1.0]},
)
SUBSET = Tables(
    "subset",
    ("view", "n_candidates"),
    lambda rows, setting: subset(len(rows.variables), setting["n_candidates"], seed=setting["seed"]),
    naive_bayes,
    least=2,
    more=("size_penalty",),
    choices=_numbers_of_candidates,
)
