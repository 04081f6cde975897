"""Several searches on one store: a setting is taken by one of them, and what nobody holds any more is free again."""

import errno
import os
from datetime import datetime, timedelta

import optuna
import pytest
from optuna.trial import TrialState, create_trial
from sklearn.datasets import load_iris

from tinybayes.search.budget import Budget
from tinybayes.search.families import FAMILIES
from tinybayes.search.families.family import Effort
from tinybayes.search.prepare import make_views
from tinybayes.search.study import Store, key_of
from tinybayes.search.trials import carry_out

TREES = [{"family": "tree", "leaves": leaves} for leaves in (4, 8, 16)]


@pytest.fixture(params=["journal", "sqlite"])
def opened(tmp_path, request):
    url = f"sqlite:///{tmp_path}/x.db" if request.param == "sqlite" else None
    return lambda: Store(tmp_path, url, {"table": "t"}, Budget(), 0)


@pytest.fixture(scope="module")
def views():
    return make_views(load_iris(as_frame=True).frame, "target")


def as_another(monkeypatch):
    """Be another process of this machine that lives."""
    monkeypatch.setattr("tinybayes.search.study._owner", lambda: f"{os.uname().nodename}:{os.getppid()}")


def test_a_setting_is_taken_once(opened, views, monkeypatch):
    one, two = opened(), opened()
    first = one.claim(TREES[:2], 0, {})
    assert None not in first
    as_another(monkeypatch)
    second = two.claim(TREES, 0, {})
    assert second[:2] == [None, None]
    assert second[2] is not None
    assert None not in two.claim(TREES[:1], 1, {})  # trained longer it is another run
    for outcome, number in zip(carry_out(views, TREES[:2], Effort(1)), first, strict=True):
        one.tell(number, outcome, 0)
    assert two.claim(TREES[:1], 0, {}) == [None]  # stored by the other one meanwhile
    assert set(two.read()) == {key_of(setting, 0) for setting in TREES[:2]}


def test_what_was_given_up_can_be_taken_again(opened, monkeypatch):
    one = opened()
    (number,) = one.claim(TREES[:1], 0, {})
    one.drop(number)
    (again,) = one.claim(TREES[:1], 0, {})
    assert again is not None
    assert again != number


def test_claimed_runs_teach_the_sampler(opened, views):
    store = opened()
    space = FAMILIES["naive"].space(views)
    _, setting = store.ask("naive", space, {})
    (number,) = store.claim([{**setting, "seed": 1}], 1, space)
    trial = store.study.get_trials()[number]
    assert trial.params == {f"naive.{name}": setting[name] for name in space}


def test_trials_of_ended_processes_fail_and_others_stay(opened, monkeypatch):
    study = opened().study
    for owner, minutes in (("elsewhere:1", 9), (f"{os.uname().nodename}:{os.getppid()}", 9), (None, 0)):
        trial = create_trial(state=TrialState.RUNNING, user_attrs={"owner": owner} if owner else {})
        trial.datetime_start = datetime.now() - timedelta(minutes=minutes)
        study.add_trial(trial)
    for owner in (f"{os.uname().nodename}:999999999", None):
        trial = create_trial(state=TrialState.RUNNING, user_attrs={"owner": owner} if owner else {})
        trial.datetime_start = datetime.now() - timedelta(minutes=9)
        study.add_trial(trial)
    states = [trial.state for trial in opened().study.get_trials()]
    assert states == [TrialState.RUNNING] * 3 + [TrialState.FAIL] * 2
    assert optuna.trial.TrialState.COMPLETE not in states


def test_trials_of_other_users_stay(opened, monkeypatch):
    def refuse(process, signal):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    trial = create_trial(state=TrialState.RUNNING, user_attrs={"owner": f"{os.uname().nodename}:4321"})
    opened().study.add_trial(trial)
    monkeypatch.setattr(os, "kill", refuse)
    assert [trial.state for trial in opened().study.get_trials()] == [TrialState.RUNNING]
