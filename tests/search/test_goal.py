"""Goals: class weights, costs of mistakes and row weights, in every family."""

import json

import numpy as np
import pandas as pd
import pytest

from tinybayes import explore
from tinybayes.errors import TinybayesError
from tinybayes.infer import evaluate, predict_codes
from tinybayes.model import Variable
from tinybayes.search.budget import Budget
from tinybayes.search.checks import uncertainty
from tinybayes.search.families import FAMILIES, Sampled
from tinybayes.search.families.family import Effort
from tinybayes.search.goal import Goal, decide, of_mistakes
from tinybayes.search.lessons import make_lesson, teach
from tinybayes.search.prepare import make_views
from tinybayes.search.roles import Roles
from tinybayes.search.study import Run
from tinybayes.search.trials import carry_out

TARGET = Variable("y", ("a", "b", "c"))
COSTS = {"a": {"b": 1, "c": 3}, "b": {"a": 2, "c": 4}, "c": {"a": 10, "b": 0}}


def test_balanced_classes_count_by_hand():
    y = np.array([0] * 6 + [1] * 3 + [2])
    factor = decide(Goal(class_weight="balanced"), TARGET).class_factor(y, None)
    np.testing.assert_allclose(factor, [10 / 18, 10 / 9, 10 / 3])
    weighted = decide(Goal(class_weight="balanced"), TARGET).class_factor(y, np.array([1.0] * 9 + [6]))
    np.testing.assert_allclose(weighted, [15 / 18, 15 / 9, 15 / 18])


def test_costs_and_class_weights_have_a_mean_of_one():
    y = np.array([0] * 6 + [1] * 3 + [2])
    decision = decide(Goal(class_weight={"a": 2, "c": 4}, costs=COSTS), TARGET)
    np.testing.assert_allclose(of_mistakes(decision.measure.costs), [2, 3, 5])
    factor = decision.class_factor(y, None)
    assert factor @ np.bincount(y) == pytest.approx(len(y))
    np.testing.assert_allclose(factor / factor[0], [1, 3 / 4, 20 / 4])
    assert decide(None, TARGET).class_factor(y, None) is None


def test_costs_may_be_given_in_many_ways(tmp_path):
    matrix = [[0, 1, 3], [2, 0, 4], [10, 0, 0]]
    frame = pd.DataFrame(matrix, index=list("abc"), columns=list("abc"))
    (tmp_path / "costs.json").write_text(json.dumps(COSTS))
    frame.loc[list("cab"), list("bca")].to_csv(tmp_path / "costs.csv", index_label="true")
    for given in (COSTS, frame, frame[list("bca")], np.array(matrix), matrix, *tmp_path.iterdir()):
        np.testing.assert_array_equal(decide(Goal(costs=given), TARGET).measure.costs, matrix)
    (tmp_path / "weights.csv").write_text("class,weight\nb,2.5\n")
    for weights in ({"b": 2.5}, pd.Series({"b": 2.5}), tmp_path / "weights.csv", str(tmp_path / "weights.csv")):
        np.testing.assert_array_equal(decide(Goal(class_weight=weights), TARGET).class_weight, [1, 2.5, 1])


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ({"metric": "accuracy"}, "metric: expected one of error, balanced, f1, logloss, auc, cost, got 'accuracy'"),
        ({"metric": "cost"}, "a cost matrix for the metric cost"),
        ({"costs": [[0, 1], [1, 0]]}, r"a row and a column for each of 3 classes, got shape \(2, 2\)"),
        ({"costs": [[0, 1, 1], [1, 0, 1], [1, -1, 0]]}, "costs, row 2, column 1: expected a number, at least 0"),
        ({"costs": [[0, 1, 1], [1, 0, 1], [1, float("nan"), 0]]}, "at least 0, got"),
        ({"costs": np.zeros((3, 3))}, "a mistake that costs more"),
        ({"costs": "text"}, "a JSON or CSV file"),
        ({"costs": {"a": COSTS["a"], "b": COSTS["b"]}}, "a row and a column for each of a, b, c, got none for 'c'"),
        ({"costs": COSTS | {"b": {"a": 1}}}, "costs, b: expected a row and a column .* got none for 'c'"),
        ({"costs": COSTS | {"bb": {}}}, "expected some of a, b, c, got 'bb'; did you mean 'b'"),
        ({"class_weight": {"d": 1}}, "expected some of a, b, c, got 'd'"),
        ({"class_weight": {"a": -1}}, "class weights, a: expected a number, at least 0, got -1"),
        ({"class_weight": {"a": "x"}}, "at least 0, got 'x'"),
        ({"class_weight": dict.fromkeys("abc", 0)}, "a weight above 0, got only zeros"),
        ({"class_weight": {}}, "a number for each name"),
        ({"class_weight": "balance"}, "balanced, or a JSON or CSV file, got 'balance'"),
    ],
)
def test_goals_that_mean_nothing_are_refused(goal, said):
    with pytest.raises(TinybayesError, match=said):
        decide(Goal(**goal), TARGET)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,1\na,2\n", "each name once, got 'a' twice"),
        ("a,1,2\n", "a name and a number, got 3 cells"),
        ("", "a number for each name"),
        ("class,weight\na,\n", "at least 0, got ''"),
    ],
)
def test_files_that_mean_nothing_are_refused(tmp_path, text, said):
    (tmp_path / "w.csv").write_text(text)
    with pytest.raises(TinybayesError, match=said):
        decide(Goal(class_weight=tmp_path / "w.csv"), TARGET)


def noise(rows=400, seed=0):
    """A quarter of the rows are of the class "b", whatever the features are."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=(rows, 9)).round(2), columns=[f"x{i}" for i in range(9)])
    for i in range(6, 9):
        frame[f"x{i}"] = random.integers(0, 3, rows)
    return frame.assign(y=np.where(random.random(rows) < 0.25, "b", "a"), w=1.0)


LEVELS = {"tied": 3, "circuit": 3}  # there are few parameters


def setting_of(family, views):
    if not isinstance(family, Sampled):
        setting = family.settings()[0 if family.name in ("tree", "forest") else -1]
        return setting | ({"levels": LEVELS[family.name]} if family.name in LEVELS else {})
    middle = {name: d.choices[0] if hasattr(d, "choices") else d.low for name, d in family.space(views).items()}
    drawn = {"family": family.name, **middle, "learning_rate": 0.02, "seed": 0} | {"bits": 6, "integer": 3}
    return family.fitted(drawn | ({"lam": 20.0, "gamma": 1.0} if "lam" in middle else {}), views, Budget())


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("by", ["class_weight", "costs", "weight"])
def test_every_family_learns_what_rows_count(family, by):
    """Where nothing can be learned from the features, a class that counts 30 times as much is mostly predicted."""
    frame, roles = noise(), Roles(weight="w")
    goal = {
        "class_weight": Goal(metric="balanced", class_weight={"b": 30}),
        "costs": Goal(costs=[[0, 1], [30, 0]]),
        "weight": None,
    }[by]
    if by == "weight":
        frame["w"] = np.where(frame["y"] == "b", 30, 1)
    views = make_views(frame, "y", goal=goal, roles=roles, image_shape=(3, 3))
    plain = make_views(noise(), "y", roles=roles, image_shape=(3, 3))
    shares = []
    for table in (plain, views):
        outcome = carry_out(table, [setting_of(family, table)], Effort(200, patience=2))[0]
        seen = table.by_name[outcome.setting.get("view", "fine")].seen
        shares.append(float((predict_codes(outcome.model, seen.X) == 1).mean()))
    assert shares[1] > shares[0] + 0.3


def test_figures_are_weighted_by_rows_but_not_by_classes():
    frame = noise()
    frame["w"] = np.arange(len(frame)) % 3 * 0.5
    views = make_views(frame, "y", goal=Goal(metric="error", class_weight="balanced"), roles=Roles(weight="w"))
    valid, train = views.validation("mdlp"), views.rows("mdlp")[0]
    np.testing.assert_allclose(np.unique(valid.weight), [0, 2 / 3, 4 / 3], rtol=0.05)  # a mean of 1 over the others
    np.testing.assert_allclose(np.bincount(train.y, train.weight)[0], np.bincount(train.y, train.weight)[1])
    assert len(np.unique(views.by_name["mdlp"].test.weight)) == 3
    outcome = carry_out(views, [FAMILIES["tree"].settings()[2]], Effort(1, final=True))[0]
    assert outcome.error == pytest.approx(evaluate(outcome.model, views.validation("trees")).error)
    assert outcome.tested.value == pytest.approx(evaluate(outcome.model, views.by_name["trees"].test).error)


def test_the_error_that_training_watches_is_the_metric():
    views = make_views(noise(), "y", goal="balanced", roles=Roles(weight="w"))
    watched = views.rows("mdlp")[1]
    per_class = np.bincount(watched.y, watched.weight)
    assert per_class[0] == pytest.approx(per_class[1])
    costly = make_views(noise(), "y", goal=Goal(costs=[[0, 1], [7, 0]])).rows("mdlp")[1]
    assert np.unique(costly.weight)[1] == pytest.approx(7 * np.unique(costly.weight)[0])
    assert make_views(noise(), "y", goal=Goal(class_weight="balanced")).rows("mdlp")[1].weight is None


def test_lessons_weigh_what_their_rows_weigh(tmp_path):
    frame = noise(120)
    frame["w"] = np.arange(120) % 4 + 1
    views = make_views(frame, "y", goal=Goal(metric="auc"), roles=Roles(weight="w"))
    lesson = make_lesson(views, lambda X: np.log(np.full((len(X), 2), 0.5)), seed=0)
    rows = lesson.rows(views, "mdlp", views.train, 10**6)
    kept = np.isin(lesson.sources[:, 0], views.train)
    np.testing.assert_array_equal(rows.weight, views.by_name["mdlp"].seen.weight[lesson.sources[kept, 0]])
    assert teach(views, tmp_path / "lesson", 0.0, 0).path is None


def test_a_search_decides_by_its_goal_and_says_so(tmp_path):
    frame = noise(300, seed=1)
    frame["x0"] = np.where(frame["y"] == "b", frame["x0"] + 1.5, frame["x0"])
    goal = Goal(costs={"a": {"b": 1}, "b": {"a": 20}})
    told = {"output": tmp_path, "seconds": 4, "families": "tree,closed-form", "weight": "w"}
    found = explore(frame, "y", goal=goal, **told)
    document = json.loads((tmp_path / "front.json").read_text())
    assert document["metric"] == {"name": "cost", "title": "mean cost", "percent": False}
    runs = [m for m in found.models if m["file"]]
    assert found.chosen["validation_value"] == min(
        m["validation_value"] for m in found.models if m["validation_rows"] == found.chosen["validation_rows"]
    )
    for model in runs:
        (right_a, costs_1), (costs_20, right_b) = model["confusion"]
        total = right_a + costs_1 + costs_20 + right_b
        assert model["test_value"] == pytest.approx((costs_1 + 20 * costs_20) / total)
        assert model["test_error"] == pytest.approx((costs_1 + costs_20) / total)
    header = (tmp_path / "front.csv").read_text().splitlines()[0].split(",")
    assert header[3:7] == ["validation_error", "validation_value", "test_error", "test_value"]
    for other, named in (({"goal": "f1"}, "costs, metric"), ({"goal": goal, "weight": None}, "weights")):
        with pytest.raises(TinybayesError, match=f"one with other {named}"):
            explore(frame, "y", **told | other)
    again = explore(frame, "y", goal=goal, **told | {"seconds": 2})
    assert {m["id"] for m in found.models} <= {m["id"] for m in again.models}


def test_a_limit_on_the_metric_chooses_the_smallest_program_that_keeps_it(tmp_path):
    frame = noise(300, seed=1)
    frame["x0"] = np.where(frame["y"] == "b", frame["x0"] + 3, frame["x0"])
    told = {"seconds": 3, "families": "tree,closed-form"}
    found = explore(frame, "y", goal="auc", budget=Budget(error=0.3), output=tmp_path / "auc", **told)
    good = [m for m in found.models if m["validation_value"] <= 0.3]
    assert found.chosen["flash"] == min(m["flash"] for m in good)
    none = explore(frame, "y", goal="auc", budget=Budget(error=0.0), output=tmp_path / "none", **told)
    assert none.chosen is None
    assert "No model with at most 1 - AUC 0 was found; the closest has" in none.shortfall
    with pytest.raises(TinybayesError, match="1 - AUC from 0 to 1"):
        explore(frame, "y", goal="auc", budget=Budget(error=1.5), output=tmp_path / "bad", **told)


def test_uncertainty_shrinks_with_the_rows():
    views = make_views(noise(), "y", goal="logloss")
    outcome = carry_out(views, [FAMILIES["tree"].settings()[2]], Effort(1))[0]
    assert outcome.deviation is not None
    assert 0 < outcome.deviation < outcome.error
    run = Run("k", outcome.setting, 0, outcome.error, outcome.loss, outcome.price, 0.0, [], True, 0.1, 0.02)
    assert uncertainty(run, 100) == 0.02
    assert uncertainty(run, 100, 400) == pytest.approx(0.01)
