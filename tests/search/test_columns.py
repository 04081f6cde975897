"""Prices of features: which columns are taken, what models read, and what that costs."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from tinybayes import Budget, evaluate, explore, load, predict_codes, read_dataset
from tinybayes.errors import LimitError, TinybayesError
from tinybayes.learn.trees.forest import learn_forest
from tinybayes.learn.trees.options import ForestOptions
from tinybayes.model import Dataset, Variable
from tinybayes.search.columns import _information, feature_cost, first_columns, like, priced, pruned, rank, selected
from tinybayes.search.families import FAMILIES, Sampled, describe
from tinybayes.search.families.family import Effort
from tinybayes.search.front import on_front
from tinybayes.search.lessons import make_lesson
from tinybayes.search.prepare import make_views
from tinybayes.search.study import Run, key_of
from tinybayes.search.trials import carry_out


def table(rows=500, seed=0):
    """`good` tells most of the class, `copy` the same again, `weak` something else, the others nothing."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, rows)
    good = y + 0.6 * random.normal(size=rows)
    frame = pd.DataFrame({"noise": random.normal(size=rows).round(2), "good": good.round(2), "copy": good.round(2)})
    frame["weak"] = (y + random.normal(size=rows)).round(2)
    frame["text"] = random.choice(["u", "v"], rows)
    return frame.assign(y=np.where(y == 1, "yes", "no"))


COSTS = {"good": 4, "copy": 5, "weak": 1, "*": 2}


@pytest.fixture(scope="module")
def views():
    return priced(make_views(table(), "y"), COSTS, None)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 4))
def test_information_is_that_of_scikit_learn(seed, states, groups):
    random = np.random.default_rng(seed)
    x, z, y = random.integers(0, states, 60), random.integers(0, groups, 60), random.integers(0, 3, 60)
    weight = random.integers(1, 4, 60)
    again = np.repeat(np.arange(60), weight)
    parts = [(z[again] == g, (z[again] == g).mean()) for g in np.unique(z)]
    expected = sum(share * mutual_info_score(x[again][part], y[again][part]) for part, share in parts)
    assert _information(x, z, y, weight.astype(float)) == pytest.approx(expected, abs=1e-9)


def test_columns_are_ranked_by_what_they_add_for_their_price(views):
    names = [v.name for v in views.by_name["mdlp"].seen.variables]
    ranked = [names[i] for i in views.prices.ranking]
    assert set(ranked[:2]) == {"good", "weak"}  # the copy adds nothing
    cheap = priced(make_views(table(), "y"), {"good": 100, "copy": 1, "weak": 3}, None)
    assert names[cheap.prices.ranking[0]] == "copy"
    np.testing.assert_array_equal(cheap.prices.costs, [0, 100, 1, 3, 0])


def test_a_limit_skips_what_it_has_no_room_for():
    views = priced(make_views(table(), "y"), COSTS, 3.5)
    names = [v.name for v in views.by_name["mdlp"].seen.variables]
    first = [names[i] for i in views.prices.ranking[: views.prices.affordable]]
    assert "weak" in first
    assert not {"good", "copy"} & set(first)
    assert sum(COSTS.get(name, 2) for name in first) <= 3.5
    with pytest.raises(LimitError, match="a limit of at least 1, the cheapest feature, got"):
        priced(make_views(table(), "y"), COSTS, 0.5)


def test_ranking_copes_with_gaps_weights_and_many_columns():
    random = np.random.default_rng(0)
    X = random.integers(-1, 3, (500, 150))
    y = np.maximum(X[:, 77], 0)
    variables = tuple(Variable(f"x{i}", (0, 1, 2)) for i in range(150))
    order = rank(Dataset(variables, Variable("y", (0, 1, 2)), X, y, random.random(500)), np.ones(150))
    assert order[0] == 77
    np.testing.assert_array_equal(np.sort(order), np.arange(150))


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ({"god": 1}, "expected some of noise, good, copy, weak, text, got 'god'; did you mean 'good'"),
        ({"y": 1}, "expected some of"),
        ({"good": -1}, "feature costs, good: expected a number, at least 0, got -1"),
        ({"good": float("nan")}, "at least 0, got nan"),
        ({"good": 0}, "a feature that costs something"),
        ({}, "a number for each name"),
    ],
)
def test_costs_that_mean_nothing_are_refused(costs, said):
    with pytest.raises(TinybayesError, match=said):
        priced(make_views(table(), "y"), costs, None)


def test_a_limit_needs_costs(tmp_path):
    with pytest.raises(TinybayesError, match="costs of features for their limit"):
        explore(table(), "y", output=tmp_path, budget=Budget(features=3), seconds=1)
    with pytest.raises(TinybayesError, match="a cost of at least 0"):
        Budget(features=-1)


@pytest.mark.parametrize("family", [f for f in FAMILIES.values() if f.name != "conv"], ids=lambda f: f.name)
def test_every_family_reads_few_columns(views, family):
    if isinstance(family, Sampled):
        opening = family.opening(views, Budget())
        assert {guess["columns"] for guess in opening} <= set(views.prices.choices())
        space = family.whole_space(views)
        middle = {name: d.choices[0] if hasattr(d, "choices") else d.low for name, d in space.items()}
        drawn = {"family": family.name, **middle, "learning_rate": 0.02, "seed": 0, "columns": 2} | {"bits": 4}
        drawn |= {"rounds": 60} if "rounds" in drawn else {}
        settings = [family.fitted(drawn, first_columns(views, 2), Budget())]
    else:
        every = family.settings_for(views)
        assert len({key_of(setting, 0) for setting in every}) == len(every)
        settings = [every[0] | {"columns": 2}]
        settings[0] |= {"levels": 4} if "levels" in settings[0] else {}
    assert describe(settings[0]).endswith(", 2 columns")
    outcome = carry_out(views, settings, Effort(600, patience=2, final=True))[0]
    names = {v.name for v in outcome.model.variables}
    assert names <= {"good", "weak"}
    assert outcome.price.features == feature_cost(views, outcome.model) == sum(COSTS[name] for name in names)
    assert outcome.error < 0.4
    raw = read_dataset(table(seed=3), like=outcome.model)  # by name, whatever else a table has
    assert evaluate(outcome.model, raw).error < 0.4


def test_trees_have_only_the_columns_that_they_test(views):
    rows = views.rows("trees")[0]
    model = learn_forest(rows, ForestOptions(leaves=3))
    small = pruned(model)
    assert len(small.variables) <= 2
    np.testing.assert_array_equal(predict_codes(small, like(rows, small).X), predict_codes(model, rows.X))
    assert pruned(small) is small
    assert like(rows, model) is rows


def test_trees_avoid_expensive_features(views):
    rows = views.rows("trees")[0]
    options = ForestOptions(leaves=2, feature_price=5.0)
    names = [v.name for v in rows.variables]
    prices = np.where(np.array(names) == "good", 1000.0, 0.1)
    tested = {v.name for v in pruned(learn_forest(rows, options, feature_prices=prices)).variables}
    assert tested == {"copy"}
    prices = np.where(np.array(names) == "copy", 1000.0, 0.1)
    assert {v.name for v in pruned(learn_forest(rows, options, feature_prices=prices)).variables} == {"good"}


def test_lessons_have_the_columns_of_the_setting(views):
    lesson = make_lesson(views, lambda X: np.log(np.full((len(X), 2), 0.5)), seed=0)
    small = first_columns(views, 2)
    assert small is first_columns(views, 2)
    for name in ("fine", "mdlp"):
        whole, few = (lesson.rows(v, name, views.train, 10**6) for v in (views, small))
        np.testing.assert_array_equal(few.X, selected(whole, small.columns).X)
        assert few.variables == small.by_name[name].seen.variables


def test_a_search_keeps_the_limit_and_its_front_has_the_cost(tmp_path):
    told = {"seconds": 6, "families": "tree,closed-form", "output": tmp_path, "feature_costs": COSTS}
    found = explore(table(), "y", budget=Budget(features=5.5, flash=4000), **told)
    assert found.chosen["feature_cost"] <= 5.5
    document = json.loads((tmp_path / "front.json").read_text())
    assert document["budget"]["features"] == 5.5
    for model in found.front:
        read = load(tmp_path / model["file"]).variables
        assert model["feature_cost"] == sum(COSTS.get(v.name, 2) for v in read)
    assert "feature_cost" in (tmp_path / "front.csv").read_text().splitlines()[0]
    for other in ({"feature_costs": COSTS | {"weak": 2}}, {"feature_costs": None, "budget": None}, {"budget": "4kB"}):
        with pytest.raises(TinybayesError, match="one with other feature costs"):
            explore(table(), "y", **{"budget": Budget(features=5.5, flash=4000), **told, **other})


def test_a_model_that_reads_less_is_on_the_front(views):
    outcome = carry_out(views, [FAMILIES["tree"].settings_for(views)[0]], Effort(1))[0]
    runs = [
        Run(str(i), outcome.setting, 0, error, 0.1, replace(outcome.price, features=cost), 0.0, [], True)
        for i, (error, cost) in enumerate([(0.1, 5.0), (0.2, 1.0), (0.3, 2.0)])
    ]
    assert on_front(runs).tolist() == [True, True, False]
    assert runs[1].objectives[-1] == 1.0
    assert not Budget(features=4).allows(runs[0].price)
    assert Budget(features=0).excess(runs[1].price) > 1
    assert Budget(features=5).allows(runs[0].price)


def test_without_costs_nothing_changes():
    plain = make_views(table(), "y")
    for family in FAMILIES.values():
        if not isinstance(family, Sampled):
            assert family.settings_for(plain) == family.settings()
        elif family.possible(plain):
            assert family.whole_space(plain) == family.space(plain)
            assert "columns" not in family.space(plain)
            assert "feature_price" not in family.space(plain)
            assert family.opening(plain, Budget()) == family.guesses(plain, Budget())


def test_a_tiny_limit_says_what_came_closest(tmp_path):
    budget = Budget(features=1, error=0.0)
    found = explore(
        table(), "y", output=tmp_path, budget=budget, seconds=3, families="tree", feature_costs=COSTS, goal="balanced"
    )
    assert found.chosen is None
    assert found.closest["feature_cost"] <= 1
