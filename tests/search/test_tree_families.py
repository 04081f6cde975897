"""Trees in a search: budgets are where they stop, and settings of one shape are one run."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from tinybayes.cost import model_cost
from tinybayes.cost.tree_ensemble import find_tests, is_symmetric
from tinybayes.deploy.price import program_cost
from tinybayes.search.budget import Budget
from tinybayes.search.families.family import Effort
from tinybayes.search.families.trees import BOOSTED, FOREST, TREE
from tinybayes.search.prepare import make_views
from tinybayes.search.trials import carry_out


@pytest.fixture(scope="module")
def views():
    return make_views(load_digits(as_frame=True).frame, "target")


def setting(views, **changes):
    first = {"family": "boosted", "seed": 0, **BOOSTED.guesses(views, Budget())[0]}
    return BOOSTED.fitted({**first, **changes}, views, Budget())


@pytest.mark.parametrize("symmetric", [True, False])
def test_boosted_trees_stop_where_the_budget_ends(views, symmetric):
    budget = Budget(flash=2000)
    some = [setting(views, rounds=rounds, symmetric=symmetric) for rounds in (1, 300)]
    one, many = carry_out(views, some, Effort(0, budget=budget))
    assert budget.allows(many.price)
    assert 1500 < many.price.flash <= 2000
    assert one.price.flash < many.price.flash
    assert many.error < one.error
    assert is_symmetric(many.model.trees) == symmetric
    assert len(many.model.values) <= 16
    assert many.price.flash == program_cost(many.model).flash


def test_cuts_of_floats_leave_no_budget_unused():
    """The cuts of floats take more bytes in a program than in the model; rounds are counted by the program."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(900, 6))
    label = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-1.0, 0.0, 1.0])
    frame = pd.DataFrame(X).rename(columns=str).assign(target=label)
    budget = Budget(flash=40_000)
    some = {"rounds": 400, "symmetric": False, "depth": 5, "feature_share": 1.0, "threshold_price": 0.1}
    table = make_views(frame, "target")
    one = carry_out(table, [setting(table, **some)], Effort(0, budget=budget))[0]
    assert 0.93 * 40_000 < one.price.flash <= 40_000
    assert model_cost(one.model).bytes < 0.8 * one.price.flash


def test_a_large_budget_pays_for_more_tests(views):
    some = {"rounds": 60, "symmetric": False, "depth": 5, "learning_rate": 0.1, "threshold_price": 0.1}
    small, large = (
        carry_out(views, [setting(views, **some)], Effort(0, budget=Budget(flash=flash)))[0]
        for flash in (16_000, 64_000)
    )
    assert len(find_tests(small.model.trees).node) <= 256 - 16 < len(find_tests(large.model.trees).node)
    assert small.price.flash <= 16_000 < large.price.flash <= 64_000
    assert large.price.flash == program_cost(large.model).flash


def test_bits_are_a_budget_too(views):
    budget = Budget(bits=8 * 1000)
    many = carry_out(views, [setting(views, rounds=300)], Effort(0, budget=budget))[0]
    assert 800 < model_cost(many.model).bytes <= 1000


def test_settings_of_one_shape_are_rounds_of_one_run(views):
    some = [setting(views, rounds=rounds, levels=levels) for rounds, levels in ((3, 16), (6, 16), (6, 8))]
    assert len({BOOSTED.shape(s) for s in some}) == 1
    together = carry_out(views, some, Effort(0))
    alone = [carry_out(views, [s], Effort(0))[0] for s in some]
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_array_equal(a.model.trees.threshold, b.model.trees.threshold)
        assert a.error == b.error
    assert together[0].model.trees.count <= 30


def test_trees_and_forests_vote(views):
    tree = carry_out(views, TREE.settings()[-2:-1], Effort(0))[0]
    forest, soft = (carry_out(views, [{**FOREST.settings()[-1], "values": values}], Effort(0))[0] for values in (0, 32))
    assert tree.model.votes
    assert forest.model.votes
    assert not soft.model.votes
    assert len(soft.model.values) <= 32
    assert max(soft.error, forest.error) < tree.error < 0.3
    assert TREE.smallest_flash(views, "cortex-m0+") <= carry_out(views, TREE.settings()[:1], Effort(0))[0].price.flash


@pytest.mark.parametrize("trees", [5, 45])
def test_forests_have_as_many_leaves_as_the_budget_allows(views, trees):
    budget = Budget(flash=6000)
    settings = [s for s in FOREST.settings_for(views, budget) if s["trees"] == trees]
    assert {s["view"] for s in settings} == {"many", "trees"}
    assert all("leaves" not in s and s["bytes"] == 6000 for s in settings)
    for outcome in carry_out(views, settings, Effort(0, budget=budget)):
        assert budget.allows(outcome.price)
        assert outcome.price.flash > 0.7 * 6000 or trees == 5  # five trees have no more leaves than rows allow
        assert FOREST.describe(outcome.setting) == f"{trees} trees"
    final = carry_out(views, settings[:1], Effort(0, budget=budget, final=True))[0]  # more rows, the same limit
    assert budget.allows(final.price)
    assert FOREST.settings_for(views) == FOREST.settings()
    tiny = carry_out(views, [{**settings[0], "bytes": 40}], Effort(0, budget=Budget(flash=40)))[0]
    assert tiny.price.flash > 40  # nothing fits: the smallest that was tried, which the search then drops


def test_forests_that_cannot_fit_are_not_tried():
    many, few = (SimpleNamespace(train=np.arange(rows)) for rows in (20_000, 300))
    forest, tree = FOREST, TREE
    large = {"family": "forest", "view": "trees", "trees": 135, "leaves": 1024}
    assert not forest.affordable(large, many, Budget(flash=64_000))
    assert forest.affordable(large, few, Budget(flash=64_000))  # trees of 300 rows have no more than some 30 leaves
    assert forest.affordable(large | {"leaves": 16}, many, Budget(flash=64_000))
    assert not forest.affordable(large | {"leaves": 16}, many, Budget(bits=8 * 4_000))
    assert tree.affordable({"family": "tree", "view": "trees", "leaves": 512}, many, Budget(flash=2_000))
    assert not forest.affordable(large, many, Budget())  # without a budget, too: nobody wants a quarter of a megabyte
