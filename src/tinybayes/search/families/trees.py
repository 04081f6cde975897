"""Decision trees, forests and boosted trees."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tinybayes.cost import model_cost
from tinybayes.learn.trees.options import BoostingOptions, ForestOptions
from tinybayes.model import Dataset, TreeEnsemble
from tinybayes.search.budget import Budget
from tinybayes.search.columns import Columns, pruned, subset
from tinybayes.search.families.family import (
    Effort,
    Learned,
    Listed,
    Sampled,
    Setting,
    distributions,
    hyper_parameters,
    learned,
    view_of,
)
from tinybayes.search.price import Price, price_of
from tinybayes.search.views import Views

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

    from tinybayes.learn.trees.boosting import Boosting

TESTS = 220  # different tests, so that one byte tells tests and values apart, even if the last round adds some more
MANY = 2**15  # bytes of a budget from which on tests are not bounded: more of them are worth longer nodes
MOST = 2**18  # bytes of trees without a budget
CLOSE = 32  # rounds are as many as a budget allows, to one in so many
Prices = dict[tuple[int, int], Price]  # by rounds and levels
FEATURE_PRICES = 2.0, 10.0  # of a feature of usual cost, in nats
ROWS_OF_A_LEAF = 10  # about, where trees grow as far as they can
BYTES_OF_A_LEAF = 4  # and of the test above it, about
ROWS_OF_SHARES = 4  # of a leaf that holds shares of the classes, at least
FEWEST = 4  # leaves of a tree of a forest
TRIES, FULL = 4, 0.9  # numbers of leaves that are tried, and the share of a budget that is enough
SMALLEST = 8  # bytes of a program of one test, about


class Forests(Listed):
    """Trees whose leaves vote, or hold shares of the classes."""

    def affordable(self, setting: Setting, views: Views, budget: Budget) -> bool:
        """Return whether trees may fit: a leaf and its test take three bytes or more, and a leaf some rows."""
        limit = min(budget.flash or MOST, (budget.bits or 8 * MOST) // 8)
        leaves = min(setting["leaves"], len(views.train) // ROWS_OF_A_LEAF)
        return bool(3 * setting.get("trees", 1) * leaves <= limit)

    def smallest_bits(self, views: Views) -> int:
        """Return the bits of one test and two leaves."""
        return 8 * 5

    def smallest_flash(self, views: Views, core: str) -> int:
        """Return the bytes of one test."""
        return SMALLEST

    def readings(self, prices: Columns) -> list[Setting]:
        """Let trees choose columns by their prices, too."""
        alone = [{"columns": prices.affordable, "feature_price": price} for price in FEATURE_PRICES]
        return super().readings(prices) + alone

    def train(self, views: Views, settings: Sequence[Setting], effort: Effort) -> list[Learned]:
        """Grow the trees of one setting after another; where features have prices, trees have only those they test."""
        results = []
        for setting in settings:
            own = subset(views, setting)
            rows, _ = effort.rows(own, view_of(setting))
            model = self.sized(rows, setting, effort.budget or Budget(core=effort.core), _feature_prices(views, own))
            results.append(learned(setting, model if views.prices is None else pruned(model)))
        return results

    def learn(self, rows: Dataset, setting: Setting, patience: float) -> Learned:
        """Grow the trees."""
        return learned(setting, self.grown(rows, setting))

    def sized(self, rows: Dataset, setting: Setting, budget: Budget, prices: np.ndarray | None) -> TreeEnsemble:
        """Grow the trees; without a number of leaves, as many as the budget allows."""
        if "leaves" in setting:
            return self.grown(rows, setting, prices)
        most, kept = len(rows), None
        leaves = max(2, min(most, setting["bytes"] // BYTES_OF_A_LEAF // setting["trees"]))
        for _ in range(TRIES):
            model = self.grown(rows, setting | {"leaves": leaves}, prices)
            price = price_of(model, model_cost(model), budget.core, rows=4 if budget.microseconds else 0)
            share = max(price.flash, 1) / setting["bytes"]
            allowed = budget.allows(price)
            if allowed and (kept is None or leaves > kept[0]):
                kept = leaves, model
            if not allowed:
                most = leaves - 1
                share = max(share, budget.excess(price))
            other = min(most, int(leaves * (FULL + 1) / 2 / share))
            if (allowed and (share >= FULL or other <= leaves)) or other < 2:
                break
            leaves = other
        return model if kept is None else kept[1]

    def grown(self, rows: Dataset, setting: Setting, prices: np.ndarray | None = None) -> TreeEnsemble:
        """Grow the trees under prices of features; leaves vote, or hold shares of the classes, a few different ones."""
        from tinybayes.compress.trees import tie_leaves
        from tinybayes.learn.trees.forest import learn_forest

        many, values = setting.get("trees", 1) > 1, setting.get("values", 0)
        share = len(rows.variables) ** -0.5 if many else 1.0
        options = ForestOptions(
            votes=not values,
            leaf_rows=ROWS_OF_SHARES if values else 1,
            feature_share=share,
            **hyper_parameters(setting, ForestOptions),
        )
        forest = learn_forest(rows, options, feature_prices=prices)
        return tie_leaves(forest, values, rows) if values else forest


class FilledForests(Forests):
    """Forests, under a budget with as many leaves as it allows."""

    def settings_for(self, views: Views, budget: Budget | None = None) -> list[Setting]:
        """Return the settings to try: under a budget the number of leaves follows from it."""
        settings = super().settings_for(views, budget)
        if not any(v.has_intervals for v in views.by_name["trees"].seen.variables):
            settings = [setting for setting in settings if setting["view"] == "trees"]  # there is nothing to cut
        limits = [limit for limit in (budget and budget.flash, budget and budget.bits and budget.bits // 8) if limit]
        if not limits:
            return settings
        most = max(self.grid["leaves"])
        filled = [{**setting, "bytes": min(limits)} for setting in settings if setting["leaves"] == most]
        return [{name: value for name, value in setting.items() if name != "leaves"} for setting in filled]

    def affordable(self, setting: Setting, views: Views, budget: Budget) -> bool:
        """Return whether trees of a few leaves may fit."""
        return super().affordable({"leaves": FEWEST, **setting}, views, budget)

    def describe(self, setting: Setting) -> str:
        """Name the number of trees, and that of leaves where it is given."""
        return f"{setting['trees']} trees" + (f" of {setting['leaves']} leaves" if "leaves" in setting else "")


class Boosted(Sampled):
    """Boosted trees, symmetric or not, whose leaves share a few values.

    Settings of one shape are one run of the learner, and differ in the rounds and the values that are taken from it.
    """

    def whole(self) -> Setting:
        """Take as many rounds as the budget allows."""
        return {"rounds": 400}

    def space(self, views: Views) -> "dict[str, BaseDistribution]":
        """Draw the size of trees, prices, rates and rounds."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        priced = {} if views.prices is None else {"feature_price": FloatDistribution(0.1, 20.0, log=True)}
        return priced | {
            "symmetric": CategoricalDistribution([True, False]),
            "depth": IntDistribution(1, 6),
            **distributions(BoostingOptions, "learning_rate", "rounds", "leaf_rows"),
            "ridge": FloatDistribution(0.1, 10.0, log=True),
            "threshold_price": FloatDistribution(0.1, 20.0, log=True),
            "row_share": FloatDistribution(0.5, 1.0),
            "feature_share": FloatDistribution(0.3, 1.0),
            "levels": CategoricalDistribution([8, 16, 32]),
        }

    def guesses(self, views: Views, budget: Budget) -> list[Setting]:
        """Begin with symmetric trees of eight leaves, then take others of 32; then as many as the budget allows."""
        guess = {"learning_rate": 0.2, "rounds": 100, "ridge": 1.0, "threshold_price": 1.0, "row_share": 0.8} | {
            "feature_share": 0.5,
            "leaf_rows": 5,
            "levels": 16,
        }
        many = guess | self.whole() | {"threshold_price": 0.1}
        return [
            guess | {"symmetric": True, "depth": 3},
            guess | {"symmetric": False, "depth": 5},
            many | {"symmetric": False, "depth": 5, "learning_rate": 0.3, "row_share": 1.0, "feature_share": 1.0},
            many | {"symmetric": True, "depth": 5, "learning_rate": 0.1},
            many | {"symmetric": False, "depth": 3, "learning_rate": 0.3},
        ]

    def fitted(self, setting: Setting, views: Views, budget: Budget) -> Setting | None:
        """Keep the setting: learning stops where the budget ends."""
        return {**setting, "view": "trees"}

    def smallest_bits(self, views: Views) -> int:
        """Return the bits of one test and two leaves for each class."""
        return 8 * 5 * (views.target.cardinality if views.target.cardinality > 2 else 1)

    def smallest_flash(self, views: Views, core: str) -> int:
        """Return the bytes of one test for each class."""
        return SMALLEST + self.smallest_bits(views) // 8

    def describe(self, setting: Setting) -> str:
        """Name depth, rounds and values."""
        kind = "symmetric " if setting["symmetric"] else ""
        return f"{kind}boosted trees of depth {setting['depth']}, {setting['levels']} values"

    def train(self, views: Views, settings: Sequence[Setting], effort: Effort) -> list[Learned]:
        """Grow trees once for all settings of the shape, as far as the longest of them, the budget and the time go."""
        from tinybayes.compress.trees import tie_leaves
        from tinybayes.learn.trees.boosting import Boosting

        whole, views = views, subset(views, settings[0])
        rows, _ = effort.rows(views, "trees")
        first, budget = settings[0], effort.budget or Budget(core=effort.core)
        limit = min(budget.flash or MOST, (budget.bits or 8 * MOST) // 8)
        tests = None if MANY <= limit < MOST else TESTS
        given = hyper_parameters(first, BoostingOptions) | {"leaves": 2 ** first["depth"], "tests": tests}
        boosting = Boosting(rows, BoostingOptions(**given), _feature_prices(whole, views))
        most = max(setting["rounds"] for setting in settings)
        ends = effort.deadline if effort.final else time.time() + 2 * effort.patience
        while boosting.rounds < most and (boosting.rounds < 1 or boosting.bytes < limit):
            boosting.round()
            if effort.final and time.time() > ends:
                return []
            if time.time() > ends:
                break
        known: Prices = {}
        sizes = [_rounds_within(boosting, s, budget, known) for s in settings]
        models = {
            (rounds, s["levels"]): tie_leaves(boosting.model(rounds), s["levels"], rows)
            for rounds, s in zip(sizes, settings, strict=True)
        }
        if whole.prices is not None:
            models = {size: pruned(model) for size, model in models.items()}
        return [learned(s, models[rounds, s["levels"]]) for rounds, s in zip(sizes, settings, strict=True)]


def _feature_prices(views: Views, subset: Views) -> np.ndarray | None:
    """Return the prices of the columns of a subset; None where features have none."""
    if views.prices is None:
        return None
    return views.prices.prices if subset.columns is None else views.prices.prices[subset.columns]


def _rounds_within(boosting: "Boosting", setting: Setting, budget: Budget, known: Prices) -> int:
    """Return about as many rounds as the setting wants and the budget allows, at least one.

    Programs are priced, not tables of the model: cuts of floats take more than codes do, and the form of a program may
    change with the rounds. `known` has what was priced already, and is added to.
    """
    low, over = 1, min(setting["rounds"], boosting.rounds)
    if not budget.limited:
        return over
    price = _priced(boosting, over, setting, budget, known)
    if budget.allows(price):
        return over
    while over - low > 1 + low // CLOSE:
        guess = int(over / budget.excess(price))  # prices grow about as rounds do
        if guess <= low:  # these are allowed: try a few more
            guess = low + max(1, low * 2 // CLOSE)
        middle = min(guess, over - 1)
        tried = _priced(boosting, middle, setting, budget, known)
        if budget.allows(tried):
            low = middle
        else:
            over, price = middle, tried
    return low


def _priced(boosting: "Boosting", rounds: int, setting: Setting, budget: Budget, known: Prices) -> Price:
    """Return the price of so many rounds."""
    key = rounds, setting["levels"]
    if key not in known:
        model = _sized(boosting.model(rounds), setting)
        known[key] = price_of(model, model_cost(model), budget.core, rows=4 if budget.microseconds else 0)
    return known[key]


def _sized(model: TreeEnsemble, setting: Setting) -> TreeEnsemble:
    """Return a model of the size that it has once its leaves share few values: which ones does not matter."""
    trees, few = model.trees, model.values[:: max(1, -(-len(model.values) // setting["levels"]))]
    value = np.where(trees.is_leaf, np.arange(len(trees.feature)) % len(few), trees.threshold)  # siblings differ
    return replace(model, trees=replace(trees, threshold=value), values=few)


TREE = Forests(
    "tree",
    {"view": ("trees",), "leaves": (2, 4, 8, 16, 32, 64, 128, 256, 512)},
    "decision tree, {leaves} leaves",
)
FOREST = FilledForests(
    "forest",
    {"view": ("many", "trees"), "values": (0, 32), "trees": (5, 15, 45, 135), "leaves": (16, 64, 256)},
    "{trees} trees of {leaves} leaves",
)
BOOSTED = Boosted(
    "boosted",
    ("symmetric", "depth", "learning_rate", "ridge", "threshold_price", "row_share", "feature_share", "leaf_rows"),
)
