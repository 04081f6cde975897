"""A search as others see it: its progress and its front while it runs, and the file that ends it."""

import json
import os
import threading
import time

import numpy as np
import pytest
from sklearn.datasets import load_wine

from prices import made_up_price
from tinybayes.search import live as module
from tinybayes.search.budget import Budget
from tinybayes.search.explore import explore
from tinybayes.search.front import pareto
from tinybayes.search.live import Live, State
from tinybayes.search.study import Run


def run_of(number, error, bits):
    price = made_up_price(bits=bits, operations=10, flash=bits, tables=bits)
    setting = {"family": "naive", "bits": 4, "seed": number}
    return Run(f"key{number}", setting, 0, error, 1.0, price, 1.0, [[1, error]], True)


@pytest.fixture
def clock(monkeypatch):
    """Time that passes when a test says so."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_files_are_written_now_and_then(tmp_path, clock):
    (tmp_path / "stop").touch()
    live = Live(tmp_path, {"title": "t", "data": {}}, Budget(bits=100))
    assert not live.stopped()  # what an earlier visitor wished is not meant for this search
    assert json.loads((tmp_path / "progress.json").read_text())["phase"] == "starting"
    runs = [run_of(0, 0.2, 80), run_of(1, 0.1, 160), run_of(2, 0.3, 160)]
    live.tell(State(3, 1.0, 9.0, runs[0], "searching"), runs)
    said = json.loads((tmp_path / "progress.json").read_text())
    assert (said["runs"], said["seconds_left"], said["phase"], said["pid"]) == (3, 9.0, "searching", os.getpid())
    best = {"id": "key0", "label": "naive, 4 bits", "error": 0.2, "bits": 80, "operations": 10, "flash": 80}
    assert said["best"].items() >= best.items()
    front = json.loads((tmp_path / "live.json").read_text())
    assert [m["id"] for m in front["models"]] == ["key0", "key1", "key2"]
    points = np.array([r.objectives for r in runs])
    assert [m["on_front"] for m in front["models"]] == pareto(points).tolist() == [True, True, False]
    assert [m["file"] for m in front["models"]] == [f"trials/key{k}.tb" for k in range(3)]
    assert all(m["test_error"] is None for m in front["models"])
    assert front["chosen"] == "key0"
    assert front["title"] == "t"

    clock[0] += 0.9  # too soon
    live.tell(State(4, 1.9, 8.1, None, "searching"), [*runs, run_of(3, 0.05, 8)])
    assert not live.due()
    assert json.loads((tmp_path / "progress.json").read_text()) == said
    clock[0] += 0.2  # soon enough for progress, not for the front
    live.tell(State(4, 2.1, 7.9, None, "searching"), [*runs, run_of(3, 0.05, 8)])
    assert json.loads((tmp_path / "progress.json").read_text())["runs"] == 4
    assert json.loads((tmp_path / "live.json").read_text()) == front
    clock[0] += 1.0
    live.tell(State(4, 3.1, 6.9, None, "searching"), [*runs, run_of(3, 0.05, 8)])
    assert len(json.loads((tmp_path / "live.json").read_text())["models"]) == 4

    (tmp_path / "stop").touch()
    assert live.stopped()
    live.end("done")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["progress.json"]
    ended = json.loads((tmp_path / "progress.json").read_text())
    assert (ended["phase"], ended["runs"], ended["seconds_left"]) == ("done", 4, 0.0)


def test_a_directory_that_refuses_does_not_end_a_search(tmp_path, clock):
    live = Live(tmp_path / "gone", {}, Budget())
    live.tell(State(1, 1.0, 9.0, None, "searching"), [run_of(0, 0.2, 80)])
    live.end("failed")
    assert list(tmp_path.iterdir()) == []


def test_a_running_search_is_watched_and_stopped(tmp_path):
    frame = load_wine(as_frame=True).frame
    found, began = [], time.monotonic()

    def search():
        found.append(explore(frame, "target", output=tmp_path, seconds=300, families="closed-form,naive"))

    thread = threading.Thread(target=search)
    thread.start()
    seen = None
    while thread.is_alive() and seen is None:
        time.sleep(0.05)
        if (tmp_path / "live.json").exists():
            seen = json.loads((tmp_path / "live.json").read_text())
            (tmp_path / "stop").touch()
    thread.join(100)
    assert not thread.is_alive()
    assert time.monotonic() - began < 150
    assert seen["models"]
    assert {m["id"] for m in seen["models"]} <= {m["id"] for m in found[0].models}
    front = json.loads((tmp_path / "front.json").read_text())
    assert set(front) == set(seen)
    assert not (tmp_path / "live.json").exists()
    assert not (tmp_path / "stop").exists()
    assert json.loads((tmp_path / "progress.json").read_text())["phase"] == "done"
