"""Experiments keep no result of a training that an interrupt cut short."""

import os
import signal

import pytest

from experiments.resource_efficient import integer_bn
from experiments.training import train_nets, train_tables
from strategies import easy
from tinybayes.learn.closed_form.structures import naive_bayes
from tinybayes.learn.training import candidates, engine
from tinybayes.learn.training.nets import NetConfiguration
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration
from tinybayes.model import Fixed

SETTING = {"lam": 5.0, "gamma": 2.0, "eta": 4.0, "learning_rate": 0.01}


def configurations(kind, data):
    if kind == "nets":
        return [NetConfiguration(hidden=(4,), seed=seed) for seed in range(2)]
    naive = candidates.fixed(naive_bayes(data))
    return [TableConfiguration(candidates=naive, input_noise=noise, **SETTING) for noise in (0.0, 0.1)]


@pytest.mark.parametrize(("kind", "train"), [("tables", train_tables), ("nets", train_nets)])
def test_a_training_that_is_cut_short_ends_with_the_interrupt(kind, train):
    data = easy()
    runs, quick = configurations(kind, data), TrainingOptions(epochs=4)
    assert [result.complete for result in train(data, runs, quick)] == [True, True]
    with pytest.raises(KeyboardInterrupt):
        train(data, runs, quick, report=lambda progress: os.kill(os.getpid(), signal.SIGINT))


def test_networks_beside_the_baseline_are_trained_in_full(monkeypatch):
    """Otherwise their errors would be stored as those of 500 epochs."""
    run = engine.Run.run

    def stopped(self, done, end, tell, interrupted):
        interrupted.set()
        return run(self, done, end, tell, interrupted)

    monkeypatch.setattr(engine.Run, "run", stopped)
    with pytest.raises(KeyboardInterrupt):
        integer_bn.ours(easy(), easy(seed=1), Fixed(3, 1), SETTING, 100)
