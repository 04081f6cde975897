"""Processes that carry out the runs of a search."""

import os
import signal
import time

from sklearn.datasets import load_iris

from tinybayes.search.views import make_views
from tinybayes.search.workers import Processes, Workers, gather

SETTINGS = [{"family": "tree", "leaves": 8}, {"family": "tree", "leaves": 16}]


def carried_out(crew):
    """Give out work until it is done; a killed process may be noticed only when its work is asked for."""
    for _ in range(3):
        done = []
        left = [("batch", crew.submit(SETTINGS, 1, 1.0, False))]
        while left:
            left = gather(left, lambda _, work, done=done: done.append(work))
        try:
            return [(outcome.error, outcome.cost) for outcome in done[0].result()]
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
