"""How many settings a batch may have so that a search keeps its time, and which families have their turn."""

import json
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from prices import made_up_price
from tinybayes.cli._console import process_age
from tinybayes.search import driver
from tinybayes.search.budget import Budget
from tinybayes.search.clock import BATCH, CHECKED, COMPILING, ENDING, LATE, LONGEST, STEPS, Clock
from tinybayes.search.driver import SURE, Search
from tinybayes.search.families import FAMILIES
from tinybayes.search.schedule import QUICK, SLICE, Batch, Schedule
from tinybayes.search.study import Run, key_of

SHAPE, OTHER = json.dumps(["dense", 1]), json.dumps(["naive", "mdlp"])


def schedule(pace, seconds=100.0, gone=0.0):
    """A schedule of which nothing but its clock and the pace of shapes is known; batches begin for 78 % of the time."""
    one = object.__new__(Schedule)
    one.clock = Clock(seconds, time.monotonic() - gone, pace, ending=0.78)
    one.store, one.under_way = SimpleNamespace(runs={"a run": None}), set()
    one.kinds, one.budget = {}, Budget()
    return one


@pytest.mark.parametrize(("each", "room"), [(0.1, 8), (1.4, 8), (2.0, 4), (4.0, 2), (7.0, 1), (70.0, 1), (80.0, 0)])
def test_slow_settings_come_in_small_batches(each, room):
    # A batch takes at most 12 s of 100, unless it has one setting.
    assert SLICE == 0.12
    assert schedule({SHAPE: each / STEPS[1]})._room(SHAPE, 1) == room


def test_little_time_allows_few_settings():
    pace = {SHAPE: 1.0 / STEPS[1]}
    assert [schedule(pace, gone=gone)._room(SHAPE, 1) for gone in (0, 72, 75, 77.5)] == [8, 4, 2, 0]


def test_a_new_shape_of_a_family_counts_as_its_slowest():
    paces = {SHAPE: 1.0 / STEPS[0], json.dumps(["dense", 2]): 5.0 / STEPS[0], OTHER: 0.01 / STEPS[0]}
    assert schedule(paces)._room(None, 0, "dense") == 2
    assert schedule(paces)._room(None, 0, "naive") == BATCH
    # Nothing is known of this family: it is taken for a quick one, which is compiled first.
    assert schedule(paces)._room(None, 0, "tan") == BATCH
    assert schedule(paces, gone=78 - COMPILING)._room(None, 0, "tan") == 0


def with_families(errors, spent, gone=0.0):
    """A schedule in which families have their least errors, None for none, and had so many seconds of a worker."""
    one = schedule({}, gone=gone)
    one.kinds = {name: FAMILIES[name] for name in errors}
    one.sampled, one.spent, one.running = list(one.kinds.values()), dict(spent), []
    one.turn = dict.fromkeys(errors, 4)
    one._least = lambda name: float("inf") if errors[name] is None else errors[name]
    return one


def test_families_that_are_not_trained_begin_as_long_as_a_batch_fits():
    spent = {"boosted": 8.0, "dense": 0.0}
    left = {gone: with_families({"boosted": 0.1, "dense": 0.2}, spent, gone) for gone in (0, 75.8, 77)}
    # A batch took two seconds so far. No other family would begin: it is compiled for longer than that.
    assert [one._room(None, 0, "boosted") for one in left.values()] == [BATCH, BATCH, 0]
    assert [one._room(None, 0, "dense") for one in left.values()] == [BATCH, 0, 0]


@pytest.mark.parametrize(
    ("boosted", "dense", "spent", "owed"),
    [
        (0.1, 0.2, QUICK * 10 - 0.1, True),
        (0.1, 0.2, QUICK * 10, False),
        (0.2, 0.1, 0.0, False),  # it is not ahead
        (0.1, None, 9.9, True),  # the other one has no result yet
        (0.1, None, 10.0, False),
    ],
)
def test_quick_families_that_are_ahead_have_a_share_of_the_time(boosted, dense, spent, owed):
    one = with_families({"boosted": boosted, "dense": dense}, {"boosted": spent, "dense": 10.0})
    assert one._quick_is_owed() is owed


def test_running_batches_count_as_time():
    one = with_families({"boosted": 0.1, "dense": None}, {"boosted": 3.0, "dense": 0.0})
    assert not one._quick_is_owed()
    one.running = [Batch([{"family": "dense"}], 0, began=time.monotonic() - 5.0)]
    assert one._quick_is_owed()
    assert [family.name for family in one._families_by_turn()] == ["boosted", "dense"]


def test_there_is_nothing_to_share_among_families_of_one_kind():
    assert not with_families({"boosted": 0.1}, {"boosted": 0.0})._quick_is_owed()
    assert not with_families({"dense": 0.1}, {"dense": 0.0})._quick_is_owed()


def test_something_is_begun_however_late_it_is():
    late = schedule({SHAPE: 1.0}, gone=90.0)
    assert late._room(SHAPE, 0) == 0
    late.store.runs.clear()
    assert late._room(SHAPE, 0) == 1
    late.under_way.add("a run")
    assert late._room(SHAPE, 0) == 0


def test_the_age_of_a_command_includes_its_start():
    code = "import time; time.sleep(0.5); from tinybayes.cli._console import process_age; print(process_age())"
    began = time.monotonic()
    age = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    if age:  # 0 where the system does not say
        assert 0.5 <= age <= time.monotonic() - began + 0.05
    assert 0 <= process_age() < 60


def finished(family, flash, rung=0, error=0.1):
    setting = {"family": family, "view": "mdlp", "flash": flash}
    return Run(key_of(setting, rung), setting, rung, error, 1.0, made_up_price(flash=flash), 1.0, [], True)


def test_what_exceeds_the_budget_is_not_trained_for_longer():
    """A search that is resumed with a smaller budget has large runs, which would exceed it on all rungs."""
    one = schedule({})
    runs = [finished("tan", 900), finished("tan", 5000, error=0.01), finished("tree", 100), finished("naive", 800, 1)]
    one.store = SimpleNamespace(runs={run.key: run for run in runs})
    for budget, within in ((Budget(flash=1000), runs[:1]), (Budget(), runs[:2])):
        one.budget = budget
        assert one._trained(0) == within
    one.budget = Budget(flash=1000)
    assert one._trained(1) == runs[3:]


def test_guesses_that_a_search_began_with_are_not_repeated():
    """A search that is resumed with another budget begins with what suits it, whatever else it knows."""
    one = schedule({})
    run = finished("tan", 400)
    one.store = SimpleNamespace(runs={run.key: run})
    same, other = {"view": "mdlp", "flash": 400}, {"view": "mdlp", "flash": 900}
    assert one._unknown([same, other], "tan") == [other]
    assert one._unknown([same, other], "naive") == [same, other]


def test_slow_settings_of_lists_wait_for_the_first_turn_of_all_others_and_for_each_other():
    """A new installation compiles the learner of circuits for long: both workers of a short search had one."""
    one = with_families({"boosted": 0.1, "dense": 0.2}, {"boosted": 0.0, "dense": 0.0}, gone=30.0)
    circuits = [{"family": "circuit", "price": price} for price in (0.1, 1.0)]
    one.listed = list(circuits)
    one.turn["dense"] = 0
    assert one._from_list() is None
    one.turn["dense"] = 1
    batch = one._from_list()
    assert batch.settings == circuits[:1]
    one.running = [batch]
    assert one._from_list() is None
    assert one._from_list(at_last=True).settings == circuits[1:]
    assert one._from_list(at_last=True) is None


def search(rows=2000, gone=0.0, workers=1, runs=(), budget=None):
    """A search of 100 seconds with so many validation rows and finished runs."""
    one = object.__new__(Search)
    one.seconds, one.clock, one.budget = 100.0, Clock(100.0, time.monotonic() - gone), budget or Budget()
    one.views = SimpleNamespace(valid=range(rows), splits=[range(rows)] * 5)
    one.store = SimpleNamespace(runs={run.key: run for run in runs})
    one.crew, one.running = SimpleNamespace(count=workers), []
    return one


@pytest.mark.parametrize(("rows", "least"), [(999, ENDING), (1000, ENDING + CHECKED - LATE)])
def test_no_batch_begins_when_the_check_and_retraining_need_the_time(rows, least):
    slow = [finished("tan", 400)]
    one = search(rows, gone=60.0, runs=slow)
    one.clock.pace = {FAMILIES["tan"].shape(slow[0].setting): 20.0 / STEPS[0]}
    assert one._ending() == pytest.approx(least)
    assert search(rows, gone=60.0)._ending() == pytest.approx(least)  # nothing is found yet


@pytest.mark.parametrize(("rows", "times"), [(999, 5), (1000, 1)])
def test_batches_begin_for_longer_when_the_rest_is_short(rows, times):
    """One run of 0.2 s and its compilation: once, and on the four other splits where it is checked."""
    quick = [finished("tan", 400)]
    one = search(rows, gone=75.0, runs=quick)
    one.clock.pace = {FAMILIES["tan"].shape(quick[0].setting): 0.2 / STEPS[0]}
    needed = 0.2 * times + COMPILING * (2 if times > 1 else 1)
    assert one._ending() == pytest.approx(LONGEST - (LATE - ENDING) - SURE * needed / 100)


def test_workers_share_what_is_left_to_do():
    assert search(workers=1)._together([1.0, 2.0, 3.0]) == pytest.approx(6.0)
    assert search(workers=2)._together([1.0, 2.0, 3.0]) == pytest.approx(4.5)  # 3 at best, and never more than this
    assert search(workers=2)._together([3.0]) == pytest.approx(3.0)
    assert search(workers=2)._together([]) == 0


def test_the_first_results_of_training_are_waited_for():
    training, listing = Batch([{"family": "tan", "view": "mdlp"}], 0), Batch([{"family": "tree", "view": "mdlp"}], 0)
    one = search(999, gone=70.0, runs=[finished("tree", 100)])
    assert one._late() == pytest.approx(LATE)  # nothing runs
    assert one._late(training) == CHECKED
    assert one._late(listing) == pytest.approx(LATE)
    one.running = [(listing, None), (training, None)]
    assert one._late() == CHECKED
    known = finished("tan", 2000)
    one.store.runs[known.key] = known
    assert one._late() == pytest.approx(LATE)
    one.budget = Budget(flash=1000)  # what exceeds the budget is no result
    assert one._late() == CHECKED
    one.clock.ending = 0.9
    assert one._late() == pytest.approx(0.95)


@pytest.mark.parametrize(("rows", "taught"), [(999, False), (1000, True)])
def test_there_is_no_teacher_where_models_are_checked_on_rows_that_it_has_seen(tmp_path, monkeypatch, rows, taught):
    monkeypatch.setattr(driver, "check_lesson", lambda path, views: None)
    one = search(rows)
    one.families, one.directory, one.seed = [FAMILIES["dense"]], tmp_path, 0
    one.teacher, one.schedule = None, SimpleNamespace(lesson=None)
    one.crew = SimpleNamespace(teach=lambda path, seconds, seed: "begun")
    one._begin_teaching()
    assert (one.teacher == "begun") is taught
    (tmp_path / "lesson.safetensors").touch()  # of an earlier search
    one._begin_teaching()
    assert (one.schedule.lesson is not None) is taught
