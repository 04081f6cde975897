"""Ctrl-C while training by gradient: what has been learned is returned, and it is a network."""

import os
import signal

import numpy as np
import pytest
from test_arborescence import acyclic
from test_gradient import CONFIGURATION

from strategies import easy
from tinybayes.learn import hybrid
from tinybayes.learn.interrupts import interruptible
from tinybayes.learn.training import candidates, engine
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration, TableRun, Trained, train_tables


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def single_epochs(monkeypatch):
    """Every compiled call runs one epoch, however fast it is."""
    monkeypatch.setattr(engine, "SECONDS_A_CALL", 0.0)


@pytest.mark.parametrize("when", [3, 4, 5])
def test_an_order_free_search_has_no_cycle_whenever_it_is_interrupted(when, single_epochs):
    data = easy()
    # Features that depend on each other both ways, and a preference for exactly that.
    free = candidates.order_free(6)
    liked = np.array([1, 0, 3, 2, -1, -1])
    preference = np.where(free.parent == liked[:, None], 9.0, 0.0)
    run = TableConfiguration(candidates=free, preference=preference, **CONFIGURATION)
    (found,) = train_tables(
        data, [run], TrainingOptions(epochs=10, batch_size=50), report=lambda p: p.done == when and interrupt()
    )
    assert not found.complete
    assert found.net is not None
    assert acyclic(found.parents)


def test_at_least_one_epoch_is_run(monkeypatch):
    """An interrupt while the arrays are made leaves no network of random numbers."""
    data = easy()
    seen = []
    to_rows = engine.to_rows
    monkeypatch.setattr(engine, "to_rows", lambda rows: (interrupt(), to_rows(rows))[1])
    run = TableConfiguration(candidates=candidates.subset(6, 2), **CONFIGURATION)
    (found,) = train_tables(data, [run], TrainingOptions(epochs=50, batch_size=50), report=seen.append)
    assert [p.done for p in seen] == [1]
    assert not found.complete
    assert found.configuration is run


def test_a_second_interrupt_is_not_held_back():
    data = easy()
    run = TableConfiguration(candidates=candidates.subset(6, 2), **CONFIGURATION)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        train_tables(
            data, [run], TrainingOptions(epochs=50, batch_size=50), report=lambda p: (interrupt(), interrupt())
        )
    assert signal.getsignal(signal.SIGINT) is before


def test_the_error_is_known_when_no_measurement_was_due():
    data = easy()
    run = TableConfiguration(candidates=candidates.subset(6, 2), **CONFIGURATION)
    options = TrainingOptions(epochs=400, batch_size=50, keep_best=True, every=100)
    rows = {"validation": easy(seed=1), "test": easy(seed=1)}
    (found,) = train_tables(data, [run], options, report=lambda p: interrupt(), **rows)
    assert found.history == ((1, pytest.approx(found.validation_error)),)
    assert found.test_error == pytest.approx(found.validation_error)


@pytest.mark.parametrize("complete", [False, True])
def test_settings_that_an_interrupt_left_undone_are_left_out(complete, monkeypatch):
    """Settings with and without noise are trained one after the other; what is known of some of them is returned."""
    asked = []

    def train(data, runs, *_):
        asked.append(runs)
        done = [run for run in runs if run.input_noise == 0]
        errors = np.linspace(0.5, 0.1, len(done)).tolist()
        return [Trained(f"{e:.1f}", (), e, np.nan, (), complete, r) for r, e in zip(done, errors, strict=True)]

    monkeypatch.setattr(hybrid, "_train", train)
    found = hybrid.learn_hybrid([easy(), easy()], "naive-bayes", hybrid.HybridOptions(), None, 0, None)
    assert found == "0.1"  # the best of those that are known
    assert len(asked) == 1  # nothing else is trained after an interrupt
    assert 0 < sum(run.input_noise == 0 for run in asked[0]) < len(asked[0])


@pytest.fixture
def pressed(monkeypatch):
    """Ctrl-C within the only compiled call of the first training; returns the calls."""
    calls = []
    advance = TableRun.advance

    def press(run, epochs):
        calls.append(epochs)
        if len(calls) == 1:
            interrupt()
        return advance(run, epochs)

    monkeypatch.setattr(TableRun, "advance", press)
    return calls


@pytest.mark.parametrize("early_stopping", [False, True])
def test_an_interrupt_in_the_last_call_of_one_training_ends_those_after_it(early_stopping, pressed):
    """The first encoding is trained to its end; neither the second one nor the final training begins."""
    before = signal.getsignal(signal.SIGINT)
    options = hybrid.HybridOptions(epochs=1, input_noise=0.0, gamma=10.0, early_stopping=early_stopping)
    seen = []
    hybrid.learn_hybrid([easy(), easy()], "naive", options, None, 0, seen.append)
    assert len(pressed) == 1
    trainings = 2 if early_stopping else 3
    assert [(p.done, p.total) for p in seen] == [(1, trainings)]
    assert signal.getsignal(signal.SIGINT) is before


def test_progress_is_that_of_all_trainings():
    seen = []
    options = hybrid.HybridOptions(epochs=2, input_noise=0.0, gamma=10.0)
    hybrid.learn_hybrid([easy(), easy()], "naive", options, None, 0, seen.append)
    assert [(p.done, p.total) for p in seen] == [(done, 6) for done in range(1, 7)]
    assert seen[0].seconds_left > 0
    assert seen[-1].seconds_left == 0


def test_work_that_begins_after_the_interrupt_of_the_work_around_it_knows():
    before = signal.getsignal(signal.SIGINT)
    with interruptible() as outer:
        with interruptible() as inner:
            assert not inner.is_set()
        interrupt()
        with interruptible() as inner:
            assert inner.is_set()
        assert outer.is_set()
        with pytest.raises(KeyboardInterrupt):
            interrupt()
    with interruptible() as later:
        assert not later.is_set()
    assert signal.getsignal(signal.SIGINT) is before
