"""A search of a given number of trials: neither the time nor the workers decide, and files agree in every byte."""

import json
import time
from concurrent.futures import Future

import numpy as np
import pandas as pd
import pytest

from tinybayes.errors import TinybayesError
from tinybayes.report.html import write_report
from tinybayes.search import workers
from tinybayes.search.clock import AHEAD, Count
from tinybayes.search.explore import explore
from tinybayes.search.workers import Workers, gather

FAMILIES = "closed-form,tree,boosted"


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(300, 4)).round(2), columns=list("abcd"))
    frame["kind"] = np.where(frame.a + frame.b * frame.c > 0.2, "yes", "no")
    return frame


class Late:
    """Work that is done long before it says so, or the other way around: after so many looks."""

    def __init__(self, result, looks):
        self._result, self._looks = result, looks

    def done(self):
        self._looks -= 1
        return self._looks < 0

    def result(self):
        return self._result.result()


class Shuffled(Workers):
    """Workers who finish in another order than the one in which they began, and take another time for it."""

    def __init__(self, views, count):
        super().__init__(views, count)
        self._random = np.random.default_rng(count)

    def submit(self, settings, effort):
        time.sleep(float(self._random.uniform(0, 0.01)))
        return Late(super().submit(settings, effort), int(self._random.integers(0, 8)))


def files_of(directory):
    names = ["front.json", "front.csv", "report.html", *(f"models/{p.name}" for p in (directory / "models").iterdir())]
    return {name: (directory / name).read_bytes() for name in sorted(names)}


def test_the_same_trials_give_the_same_files(table, tmp_path, monkeypatch):
    found = []
    for number, count in enumerate((1, 3, 2)):
        directory = tmp_path / str(number) / "search"
        monkeypatch.setattr("tinybayes.search.explore._crew", lambda views, _, count=count: Shuffled(views, count))
        monkeypatch.chdir(tmp_path)
        directory.parent.mkdir()
        monkeypatch.chdir(directory.parent)
        result = explore(table, "kind", output="search", trials=30, families=FAMILIES, budget="4kB", seed=3)
        write_report("search")
        assert 20 <= len(result.models) <= 30  # settings that cannot be carried out count as well
        found.append(files_of(directory))
    assert found[0] == found[1] == found[2]
    document = json.loads(found[0]["front.json"])
    assert document["trials"] == 30
    assert document["created"] is None
    assert document["cut"] == []
    assert {model["family"] for model in document["models"]} > {"boosted"}


@pytest.mark.exhaustive
def test_training_by_gradient_does_not_depend_on_the_speed(table, tmp_path, monkeypatch):
    """Neither models nor learning curves, though calls of the compiled program are longer on a quick machine."""
    found = []
    for seconds in (1e-6, 10.0):
        monkeypatch.setattr("tinybayes.learn.training.engine.SECONDS_A_CALL", seconds)
        (tmp_path / f"{seconds}").mkdir()
        monkeypatch.chdir(tmp_path / f"{seconds}")
        explore(table, "kind", output="search", trials=3, families="naive", seed=1)
        write_report("search")
        found.append(files_of(tmp_path / f"{seconds}" / "search"))
    assert found[0] == found[1]
    assert json.loads(found[0]["front.json"])["models"][0]["history"]


def test_another_seed_finds_something_else(table, tmp_path):
    keys = []
    for seed in (0, 1):
        result = explore(table, "kind", output=tmp_path / str(seed), trials=12, families="boosted", seed=seed)
        keys.append({model["id"] for model in result.models})
        assert len(keys[-1]) <= 12
    assert keys[0] != keys[1]


def test_no_trials_are_refused(table, tmp_path):
    with pytest.raises(TinybayesError, match="trials: expected 1 to 1,000,000,000, got 0"):
        explore(table, "kind", output=tmp_path, trials=0)


def test_work_is_taken_in_the_order_in_which_it_was_given_out():
    done, slow = Future(), Future()
    done.set_result(1)
    taken = []
    running = [("slow", slow), ("done", done)]
    assert gather(running, lambda name, _: taken.append(name), until=time.monotonic() + 0.05, in_order=True) == running
    slow.set_result(2)
    running = gather(running, lambda name, _: taken.append(name), in_order=True)
    running = gather(running, lambda name, _: taken.append(name), in_order=True)
    assert (running, taken) == ([], ["slow", "done"])


def test_a_count_knows_no_time():
    clock = Count(0.001, time.monotonic() - 1e6, trials=10)
    assert clock.elapsed == 0
    assert clock.left(0.1) == float("inf")
    clock.begin(4)
    assert clock.elapsed == pytest.approx(0.4 * clock.ending)
    assert clock.allowed() == 6
    clock.learn("shape", 0, 3.0)
    assert clock.pace == {}
    assert clock.spent(1, True, 99.0, 2) == clock.spent(1, True, 1.0, 2)
    clock.begin(6)
    assert clock.elapsed > clock.ending
    assert clock.in_flight == AHEAD


def test_a_search_by_time_says_what_was_cut(table, tmp_path):
    result = explore(table, "kind", output=tmp_path, seconds=3, families="closed-form")
    assert isinstance(result.document["cut"], list)
    assert "trials" not in result.document


def test_processes_take_one_core(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.delitem(workers.sys.modules, "jax", raising=False)
    workers.take_one_core()
    assert workers.ONE_CORE in workers.os.environ["XLA_FLAGS"]
