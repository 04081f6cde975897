"""Bayesian networks trained by gradient through tables of a few bits: naive Bayes, Chow-Liu trees, learned trees."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tinybayes.learn.closed_form.chow_liu import chow_liu
from tinybayes.learn.closed_form.structures import naive_bayes
from tinybayes.learn.training.candidates import Candidates, fixed, subset
from tinybayes.learn.training.options import TableOptions
from tinybayes.model import Dataset, Fixed
from tinybayes.search.budget import Budget
from tinybayes.search.families.family import Sampled, Setting, distributions, hyper_parameters, in_bits, naive_entries
from tinybayes.search.views import Views

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


@dataclass(frozen=True, eq=False)
class Tables(Sampled):
    """Networks whose tables are trained."""

    # From training rows and a setting to the parents that each feature may have.
    candidates: Callable[[Dataset, Setting], Candidates]
    least: int = 1  # features that the table must have
    more: tuple[str, ...] = ()  # hyper-parameters of the tables that are drawn beside those that all have
    # From the number of features to further choices; each has its own shape.
    choices: Callable[[int], dict[str, Sequence[Any]]] = lambda features: {}

    def possible(self, views: Views) -> bool:
        """Return whether there are enough features."""
        return len(views.by_name["mdlp"].seen.variables) >= self.least

    def space(self, views: Views) -> "dict[str, BaseDistribution]":
        """Draw the number format, the loss, the learning rate and the encoding of the table."""
        from optuna.distributions import CategoricalDistribution, IntDistribution

        choices = {"view": ["mdlp", "coarse"], **self.choices(len(views.by_name["mdlp"].seen.variables))}
        return {
            "bits": IntDistribution(1, 8),
            "integer": IntDistribution(1, 6),
            **distributions(TableOptions, "lam", "gamma", "learning_rate"),
            **{name: CategoricalDistribution(values) for name, values in choices.items()},
            **distributions(TableOptions, *self.more),
        }

    def first_guess(self, views: Views, budget: Budget) -> Setting:
        """Begin with 4 bits."""
        return {"view": "mdlp", "bits": 4, "integer": 3, "lam": 50.0, "gamma": 10.0, "learning_rate": 0.02}

    def fitted(self, setting: Setting, views: Views, budget: Budget) -> Setting | None:
        """Take fewer bits; naive Bayes, the smallest network, must fit."""
        if budget.bits is None:
            return setting
        bits = min(setting["bits"], budget.bits // naive_entries(views.by_name[setting["view"]].seen))
        return {**setting, "bits": bits} if bits >= 1 else None

    def describe(self, setting: Setting) -> str:
        """Name the bits."""
        return f"{self.name}, {in_bits(setting['bits'])}"

    def train_runs(self, rows: Dataset, settings: Sequence[Setting], views: Views, **options: Any) -> Sequence[Any]:
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
        return train_tables(rows, runs, **options)


def _numbers_of_candidates(features: int) -> dict[str, Sequence[Any]]:
    most = min(8, features - 1)
    return {"n_candidates": sorted({min(4, most), most})}


NAIVE = Tables("naive", ("view",), lambda rows, setting: fixed(naive_bayes(rows)))
TAN = Tables(
    "tan",
    ("view", "sharing"),
    lambda rows, setting: fixed(chow_liu(rows)),
    least=2,
    more=("structure_noise",),
    choices=lambda features: {"sharing": [0.0, 1.0]},
)
SUBSET = Tables(
    "subset",
    ("view", "n_candidates"),
    lambda rows, setting: subset(len(rows.variables), setting["n_candidates"], seed=setting["seed"]),
    least=2,
    more=("size_penalty",),
    choices=_numbers_of_candidates,
)
