"""Explanations of trees: Shapley values by enumeration of all sets of features."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tinybayes import explain, save
from tinybayes.cli import app
from tinybayes.errors import TinybayesError
from tinybayes.infer import class_scores
from tinybayes.infer.explain import BACKGROUND, explained_rows, some_rows
from tinybayes.infer.trees import tree_scores
from tinybayes.model import Dataset
from tree_ensembles import tree_ensemble

KINDS = ("class", "all", "votes")


def shapley(gain, features):
    """The mean of what a feature adds to the value of a set, over all sets, weighted by their orders."""
    values = np.zeros(features)
    for f in range(features):
        others = [g for g in range(features) if g != f]
        for size in range(features):
            share = math.factorial(size) * math.factorial(features - size - 1) / math.factorial(features)
            for chosen in itertools.combinations(others, size):
                values[f] += share * (gain({*chosen, f}) - gain(set(chosen)))
    return values


def mean_odds(model, row, rows, label, other):
    """The game: known features have the values of the row, the others those of the other rows."""

    def gain(known):
        mixed = rows.copy()
        for f in known:
            mixed[:, f] = row[f]
        scores = tree_scores(model, mixed)
        return float((scores[:, label] - scores[:, other]).mean()) * model.scale

    return gain


def check(model, row, rows, told):
    label, other = (model.target.states.index(state) for state in (told.label, told.against))
    gain = mean_odds(model, row, rows, label, other)
    assert label == tree_scores(model, row[None])[0].argmax()
    wanted = shapley(gain, len(row))
    np.testing.assert_allclose([one.log_odds for one in told.contributions], wanted, atol=1e-9)
    assert told.prior == pytest.approx(gain(set()), abs=1e-9)
    scores = class_scores(model, row[None])[0]
    assert told.total == pytest.approx(scores[label] - scores[other], abs=1e-9)


def draw_rows(rng, model, count, gaps=0.2):
    rows = np.stack([rng.integers(0, v.cardinality, count) for v in model.variables], axis=1)
    return np.where(rng.random(rows.shape) < gaps, -1, rows)


@given(st.integers(0, 10_000), st.sampled_from(KINDS), st.integers(2, 4), st.integers(1, 9))
def test_background_rows_by_enumeration(seed, kind, classes, leaves):
    model = tree_ensemble(3, leaves=leaves, kind=kind, classes=classes, states=[3, 2, 4, 5], seed=seed)
    rows = draw_rows(np.random.default_rng(seed), model, 4)
    check(model, rows[0], rows[1:], explain(model, rows[0], background=rows[1:]))
    other = model.target.states[int(tree_scores(model, rows[:1])[0].argmin())]
    if other != explain(model, rows[0]).label:
        check(model, rows[0], rows[1:], explain(model, rows[0], against=other, background=rows[1:]))


@given(st.integers(0, 10_000), st.sampled_from(KINDS), st.integers(1, 9))
def test_equally_likely_states_by_enumeration(seed, kind, leaves):
    model = tree_ensemble(3, leaves=leaves, kind=kind, states=[3, 2, 4], seed=seed)
    every = np.array(list(itertools.product(*(range(v.cardinality) for v in model.variables))))
    row = draw_rows(np.random.default_rng(seed), model, 1)[0]
    check(model, row, every, explain(model, row))


def test_deep_trees_stay_exact():
    model = tree_ensemble(2, leaves=600, states=[40] * 30, seed=4, largest=30_000)
    assert model.trees.depth.max() > 12
    rows = draw_rows(np.random.default_rng(0), model, 50)
    scores = np.sort(class_scores(model, rows), axis=1)
    for row, ranked in zip(rows[:5], scores, strict=False):
        for background in (None, rows):
            told = explain(model, row, background=background)
            parts = told.prior + sum(one.log_odds for one in told.contributions)
            assert parts == pytest.approx(ranked[-1] - ranked[-2], rel=1e-9)


def test_a_feature_without_a_test_contributes_nothing():
    model = tree_ensemble(1, leaves=2, states=[5, 5, 5], seed=1)
    used = int(model.trees.feature[0])
    told = explain(model, np.array([2, 2, 2])).contributions
    assert [one.log_odds != 0 for one in told].count(True) <= 1
    assert all(one.log_odds == 0 for f, one in enumerate(told) if f != used)


def test_wrong_rows_are_refused():
    model = tree_ensemble(states=[3, 3])
    for background in (np.zeros((0, 2), dtype=int), np.array([[0, 3]]), np.array([[0]])):
        with pytest.raises(TinybayesError, match="background"):
            explain(model, np.array([0, 0]), background=background)


def test_rows_of_a_page():
    model = tree_ensemble(states=[4, 4, 4], seed=3)
    rng = np.random.default_rng(0)
    X = draw_rows(rng, model, 1000, 0.0)
    data = Dataset(model.variables, model.target, X, rng.integers(0, 3, 1000))
    told = explained_rows(model, data)
    assert 1 <= len(told) <= 3
    first = explain(model, X[told[0]["row"]], background=some_rows(X))
    assert (told[0]["prior"], told[0]["total"]) == (first.prior, first.total)
    assert len(some_rows(X)) == BACKGROUND
    assert len(some_rows(X[:7])) == 7


def test_the_command_takes_rows_of_the_table_as_background(tmp_path):
    model = tree_ensemble(states=[4, 4], seed=5)
    X = draw_rows(np.random.default_rng(1), model, 9, 0.0)
    names = ",".join(v.name for v in model.variables)
    (tmp_path / "rows.csv").write_text("\n".join([names, *(",".join(map(str, row)) for row in X.tolist())]) + "\n")
    save(model, tmp_path / "trees.tb")
    command = ["explain", str(tmp_path / "trees.tb"), str(tmp_path / "rows.csv"), "--row", "3"]
    result = CliRunner().invoke(app, [*command, "--json"])
    assert result.exit_code == 0, result.output
    wanted = explain(model, X[2], background=X)
    assert json.loads(result.stdout) == json.loads(json.dumps({"row": 3, **wanted.to_dict()}))
    assert CliRunner().invoke(app, command).exit_code == 0
