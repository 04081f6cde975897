"""Where the tables lie: the same for one configuration and for many, found quickly."""

import time

import numpy as np
import pytest

from strategies import random_data
from tinybayes import TinybayesError, Variable
from tinybayes.learn.training import candidates, table_layout
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.table_layout import Layout
from tinybayes.learn.training.tables import TableConfiguration, train_tables
from tinybayes.model import Dataset

SETTING = {"lam": 5.0, "gamma": 2.0, "eta": 4.0, "learning_rate": 0.01}


def numbers(found, states, classes):
    """Return the numbers in the tables of one configuration, in one block."""
    return Layout.of([found], states, classes, one=True).entries * classes


@pytest.mark.parametrize("limit", [-1, 0, 1, 10_000])
@pytest.mark.parametrize("count", [2, 5, 100])
def test_the_layout_does_not_depend_on_how_many_are_trained_together(limit, count, monkeypatch):
    states, found = np.array([2, 3, 9, 30]), candidates.subset(4, 3)
    monkeypatch.setattr(table_layout, "ALIGNED", 1)
    monkeypatch.setattr(table_layout, "SMALL", numbers(found, states, 3) + limit)
    assert Layout.of([found] * count, states, 3) == Layout.of([found], states, 3)


@pytest.mark.parametrize(("most", "buckets"), [(30, 2), (11, 1)])
def test_there_are_several_buckets_only_where_they_save_much(most, buckets, monkeypatch):
    """Half of the features have 10 states: in one block their tables are three times as large, or a tenth larger."""
    monkeypatch.setattr(table_layout, "SMALL", 0)
    found = candidates.Candidates(np.full((64, 1), -1), np.ones((64, 1), bool))
    assert len(Layout.of([found], np.array([10, most] * 32), 2).buckets) == buckets


def test_a_seed_draws_the_same_tables_alone_and_with_others(monkeypatch):
    data = random_data(3, rows=100)
    states = np.array([variable.cardinality for variable in data.variables])
    found = candidates.subset(len(states), 3)
    monkeypatch.setattr(table_layout, "ALIGNED", 1)
    monkeypatch.setattr(table_layout, "WASTE", 0.0)
    monkeypatch.setattr(table_layout, "SMALL", 2 * numbers(found, states, data.target.cardinality))
    runs = [TableConfiguration(candidates=found, seed=seed, **SETTING) for seed in range(3)]
    quick = TrainingOptions(epochs=2, batch_size=50)
    together = train_tables(data, runs, quick)[1]
    (alone,) = train_tables(data, runs[1:2], quick)
    assert alone.parents == together.parents
    for a, b in zip(alone.net.cpds, together.net.cpds, strict=True):
        np.testing.assert_allclose(a.log_parameters, b.log_parameters, atol=1e-4)


def test_many_numbers_of_states_are_laid_out_quickly():
    states = np.arange(2, 1002).repeat(2)
    began = time.process_time()
    layout = Layout.of([candidates.subset(len(states), 0)] * 100, states, 1000)
    assert time.process_time() - began < 3  # with all costs counted again for each merge: more than 15
    assert 1 < len(layout.buckets) <= table_layout.MOST


def test_a_table_without_features_is_refused():
    data = Dataset((), Variable("y", (0, 1)), np.zeros((6, 0), dtype=int), np.arange(6) % 2)
    run = TableConfiguration(candidates=candidates.among([]), **SETTING)
    with pytest.raises(TinybayesError, match=r"^data: expected at least one feature, got none"):
        train_tables(data, [run])


@pytest.mark.parametrize("sharing", [0.0, 0.5])
def test_one_class_and_features_of_one_state_are_trained(sharing, monkeypatch):
    monkeypatch.setattr(table_layout, "SMALL", 0)
    data = random_data(0, rows=20)
    variables = (Variable("constant", (0,)), *data.variables)
    X = np.hstack([np.zeros((20, 1), dtype=data.X.dtype), data.X])
    data = Dataset(variables, Variable("y", ("only",)), X, np.zeros(20, dtype=int))
    run = TableConfiguration(candidates=candidates.subset(len(variables), 2), sharing=sharing, **SETTING)
    (trained,) = train_tables(data, [run], TrainingOptions(epochs=1, batch_size=10), test=data)
    assert trained.net.is_normalized(1e-5)
    assert trained.test_error == 0
