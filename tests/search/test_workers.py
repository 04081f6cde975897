"""Processes that carry out the runs of a search."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

from cases import exhaustive
from tinybayes import TinybayesError
from tinybayes.search import clock, schedule
from tinybayes.search import explore as explore_module
from tinybayes.search.families.family import Effort
from tinybayes.search.prepare import make_views
from tinybayes.search.workers import Processes, Workers, gather

SETTINGS = [{"family": "tree", "leaves": 8}, {"family": "tree", "leaves": 16}]


def carried_out(crew):
    """Give out work until it is done; a killed process may be noticed only when its result is fetched."""
    for _ in range(3):
        done = []
        left = [("batch", crew.submit(SETTINGS, Effort(1, 1.0)))]
        while left:
            left = gather(left, lambda _, work, done=done: done.append(work))
        try:
            return [(outcome.error, outcome.price) for outcome in done[0].result()]
        except RuntimeError:
            continue
    raise AssertionError("the work was never done")


def test_a_killed_process_is_replaced():
    views = make_views(load_iris(as_frame=True).frame, "target")
    expected = carried_out(Workers(views))
    crew = Processes(views, 1)
    try:
        assert carried_out(crew) == expected
        first = set(crew._pool._processes)
        for process in first:
            os.kill(process, signal.SIGKILL)
        time.sleep(0.5)
        assert carried_out(crew) == expected
        assert not first & set(crew._pool._processes)
    finally:
        crew.close()


class Unlucky(Workers):
    """Fails at everything of a family the first few times."""

    def __init__(self, views, family, times, problem):
        super().__init__(views)
        self.family, self.times, self.problem, self.asked = family, times, problem, []

    def submit(self, settings, effort):
        self.asked.append([settings[0]["family"], effort.final])
        if settings[0]["family"] == self.family and self.times > 0:
            self.times -= 1
            future = Future()
            future.set_exception(self.problem)
            return future
        return super().submit(settings, effort)


@pytest.mark.parametrize("problem", [MemoryError(), *exhaustive(TinybayesError("the workers have another opinion"))])
@pytest.mark.parametrize(
    ("family", "times", "found"),
    [("tree", 1, True), ("tree", 99, False), pytest.param("naive", 1, True, marks=pytest.mark.exhaustive)],
)
def test_what_fails_is_told_and_the_rest_goes_on(tmp_path, monkeypatch, problem, family, times, found):
    crews = []

    def crew(views, execution):
        crews.append(Unlucky(views, family, times, problem))
        return crews[0]

    monkeypatch.setattr(explore_module, "_crew", crew)
    for module in (clock, schedule):
        monkeypatch.setattr(module, "COMPILING", 0.0)  # so that a short search tries what must be compiled
    frame = load_iris(as_frame=True).frame
    done = explore_module.explore(frame, "target", output=tmp_path, seconds=6, families=f"closed-form,{family}")
    assert any(model["family"] == family for model in done.models) == found
    assert any(model["family"] in ("naive", "tan") for model in done.models)
    failures = done.document["failures"]
    assert failures
    assert str(problem) in failures[0]
    asked = crews[0].asked
    if times == 99:  # each setting is retried once, then left alone
        assert 2 <= asked.count(["tree", False]) <= 6


KILLED = """
import os, signal, sys, time
from sklearn.datasets import load_iris
from tinybayes.search.families.family import Effort
from tinybayes.search.prepare import make_views
from tinybayes.search.workers import Processes

if __name__ == "__main__":
    crew = Processes(make_views(load_iris(as_frame=True).frame, "target"), 2)
    work = crew.submit([{"family": "tree", "leaves": 8}], Effort(1, 1.0))
    crew.submit([{"family": "tree", "leaves": 4}], Effort(1, 1.0))
    if sys.argv[1] == "working":
        work.result()
    else:
        time.sleep(float(sys.argv[1]))
    print(*crew._pool._processes, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("moment", ["0", *exhaustive("0.1", "0.3", "0.6", "1", "2", "3", "working")])
def test_no_process_outlives_a_search_that_is_killed_at_any_moment(tmp_path, moment):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    ended = subprocess.run([sys.executable, str(script), moment], stdout=subprocess.PIPE, text=True)
    left = [int(number) for number in ended.stdout.split()]
    assert len(left) == 2
    end = time.monotonic() + 60
    while time.monotonic() < end and any(map(is_running, left)):
        time.sleep(0.1)
    assert not any(map(is_running, left))


def is_running(process):
    """Whether a process exists that is no zombie, which nobody may be there to bury."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_process_ends_whose_parent_was_gone_before_it_began():
    script = "import os, queue, time; from tinybayes.search import workers\n"
    script += "workers._begin(queue.Queue(), os.getppid() + 1)"  # waits for a table that nobody hands over
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 1


ROOT = Path(__file__).parent.parent.parent
HEAVY = ("pandas", "pyarrow", "sklearn", "optuna")  # what reads tables, and what draws settings
ASKED = """
from tinybayes.search.workers import Processes

if __name__ == "__main__":
    import sys
    from sklearn.datasets import load_iris
    from benchmarks.search_memory import drawn
    from tinybayes.search.families.family import Effort
    from tinybayes.search.prepare import make_views

    views = make_views(load_iris(as_frame=True).frame, "target")
    crew, asked = Processes(views, 1), "[m for m in HEAVY if m in __import__('sys').modules]"
    said = [crew._pool.submit(eval, asked).result()]
    for name in sys.argv[1].split(","):
        setting = drawn(name, views)
        assert crew.submit([setting], Effort(20, 1.0)).result()
        said.append(crew._pool.submit(eval, asked).result())
    crew.close()
    print(said)
"""
OTHERS = "closed-form,tied,circuit,forest,boosted,naive,tan,dense"


@pytest.mark.parametrize("families", ["tree,closed-form", *exhaustive(OTHERS)])
def test_a_process_loads_nothing_that_reads_tables(tmp_path, families):
    """Each of many processes would hold a hundred megabytes more."""
    (tmp_path / "asked.py").write_text(ASKED.replace("HEAVY", str(HEAVY)))
    command = [sys.executable, str(tmp_path / "asked.py"), families]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    told = os.environ | {"PYTHONPATH": path}
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=told)
    assert said.stdout.strip() == str([[]] * (1 + len(families.split(","))))
