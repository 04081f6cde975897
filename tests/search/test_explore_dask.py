"""The search on a real Dask cluster of separate processes; one is killed on the way."""

import os
import signal
import threading
import time

import pytest
from sklearn.datasets import load_iris

from cases import WHOLE
from tinybayes import TinybayesError, explore, load
from tinybayes.search.explore import Execution

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
    ) as made:
        yield made


@WHOLE
@pytest.mark.exhaustive
def test_search_goes_on_when_a_worker_dies(cluster, tmp_path):
    with distributed.Client(cluster, set_as_default=False) as client:
        victims = list(client.run(os.getpid).values())
        seen = []

        def kill():
            until = time.monotonic() + 30
            while time.monotonic() < until and not any(state.runs >= 8 for state in seen):
                time.sleep(0.02)
            os.kill(victims[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        table, options = load_iris(as_frame=True).frame, {"output": tmp_path}
        options["execution"] = Execution(dask=cluster.scheduler_address)
        options |= {"families": "closed-form,tied,forest,tree,dense", "report": seen.append}
        found = explore(table, "target", seconds=15, **options)
        killer.join()
        with pytest.raises(ProcessLookupError):
            os.kill(victims[0], 0)
        assert found.chosen is not None
        for _ in range(4):  # a busy machine gets no further in the first seconds, but never begins again
            families = {model["settings"]["family"] for model in found.models}
            if {"closed-form", "forest", "tree"} <= families:
                break
            found = explore(table, "target", seconds=15, **options)
    assert {"closed-form", "forest", "tree"} <= families
    assert load(tmp_path / found.chosen["file"])
    listed = [m for m in found.models if m["settings"]["family"] == "closed-form"]
    assert len(listed) == 20  # each setting once, whoever carried it out
    assert len({m["id"] for m in found.models}) == len(found.models)


@pytest.mark.exhaustive
def test_workers_without_the_package_are_named(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("tinybayes.search.workers.__version__", "999")
    execution = Execution(dask=cluster.scheduler_address)
    with pytest.raises(TinybayesError, match="install the same version of tinybayes where the worker runs"):
        explore(load_iris(as_frame=True).frame, "target", output=tmp_path, seconds=5, execution=execution)
