"""Bayesian networks trained by gradient through tables of a few bits: naive Bayes, Chow-Liu trees, learned trees."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tinybayes.learn.training.options import TableOptions
from tinybayes.model import Dataset, Fixed
from tinybayes.search.budget import Budget
from tinybayes.search.families.family import (
    Sampled,
    Setting,
    distributions,
    hyper_parameters,
    in_bits,
    naive_entries,
)
from tinybayes.search.views import Views

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

    from tinybayes.learn.training.candidates import Candidates


class Tables(Sampled):
    """Networks whose tables are trained; the families differ in the parents that a feature may have."""

    shaping: ClassVar[tuple[str, ...]] = ("view",)

    @abstractmethod
    def candidates(self, rows: Dataset, setting: Setting) -> "Candidates":
        """Return the parents that each feature may have."""

    def space(self, views: Views) -> "dict[str, BaseDistribution]":
        """Draw the number format, the loss, the learning rate and the coding of the table."""
        from optuna.distributions import CategoricalDistribution, IntDistribution

        return {
            "bits": IntDistribution(1, 8),
            "integer": IntDistribution(1, 6),
            **distributions(TableOptions, "lam", "gamma", "learning_rate"),
            "view": CategoricalDistribution(["mdlp", "coarse"]),
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


class Naive(Tables):
    """Naive Bayes."""

    def candidates(self, rows: Dataset, setting: Setting) -> "Candidates":
        """Fix the structure."""
        from tinybayes.learn.closed_form.structures import naive_bayes
        from tinybayes.learn.training.candidates import fixed

        return fixed(naive_bayes(rows))


class Tan(Tables):
    """Chow-Liu trees."""

    shaping: ClassVar[tuple[str, ...]] = ("view", "sharing")

    def possible(self, views: Views) -> bool:
        """Ask for two features."""
        return len(views.by_name["mdlp"].seen.variables) > 1

    def space(self, views: Views) -> "dict[str, BaseDistribution]":
        """Draw structure noise and sharing, too."""
        from optuna.distributions import CategoricalDistribution

        sharing = CategoricalDistribution([0.0, 1.0])  # whether: it makes another shape
        return super().space(views) | {"sharing": sharing} | distributions(TableOptions, "structure_noise")

    def candidates(self, rows: Dataset, setting: Setting) -> "Candidates":
        """Fix the structure."""
        from tinybayes.learn.closed_form.chow_liu import chow_liu
        from tinybayes.learn.training.candidates import fixed

        return fixed(chow_liu(rows))


class Subset(Tables):
    """Trees that are learned together with the tables, among random candidate parents."""

    shaping: ClassVar[tuple[str, ...]] = ("view", "n_candidates")

    def possible(self, views: Views) -> bool:
        """Ask for two features."""
        return len(views.by_name["mdlp"].seen.variables) > 1

    def space(self, views: Views) -> "dict[str, BaseDistribution]":
        """Draw the number of candidates and the price of a table entry, too."""
        from optuna.distributions import CategoricalDistribution

        most = min(8, len(views.by_name["mdlp"].seen.variables) - 1)
        candidates = CategoricalDistribution(sorted({min(4, most), most}))
        return super().space(views) | {"n_candidates": candidates} | distributions(TableOptions, "size_penalty")

    def candidates(self, rows: Dataset, setting: Setting) -> "Candidates":
        """Draw candidates."""
        from tinybayes.learn.training.candidates import subset

        return subset(len(rows.variables), setting["n_candidates"], seed=setting["seed"])


NAIVE = Naive("naive", "naive Bayes")
TAN = Tan("tan", "tree-augmented")
SUBSET = Subset("subset", "tree-augmented, structure learned")
