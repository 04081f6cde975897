"""A search that can be watched and stopped from outside: a few small files in its directory.

``progress.json`` tells how far it has come, ``live.json`` is ``front.json`` before any test row was looked at, and
whoever makes a file ``stop`` ends the search, as Ctrl-C does. Nobody needs these files to go on with a search. So the
app needs no connection to the search, can be started and stopped at any time, and can do nothing but create that
file.
"""

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tinybayes.errors import FileError
from tinybayes.files import atomic_path
from tinybayes.search import LIVE, PROGRESS, STOP
from tinybayes.search.budget import Budget
from tinybayes.search.conclude import described, prices_of
from tinybayes.search.families import describe
from tinybayes.search.front import choose, on_front
from tinybayes.search.measure import ERROR, Measure
from tinybayes.search.runs import Run

EVERY = 1.0  # seconds between two writes of progress.json, at least
FRONT_EVERY = 2.0  # and of live.json
SHARE = 50  # times as long as the last write of live.json took must pass before the next


@dataclass(frozen=True)
class State:
    """The progress of a search: runs, seconds gone and left, the best run within the budget."""

    runs: int
    seconds: float
    seconds_left: float
    best: Run | None
    phase: str


class Live:
    """The files by which a search is watched; ``live.json`` holds `heading` and the models."""

    def __init__(self, directory: Path, heading: dict[str, Any], budget: Budget, measure: Measure = ERROR) -> None:
        self._directory, self._heading, self._budget, self._measure = directory, heading, budget, measure
        self._next, self._next_front, self._written = 0.0, 0.0, -1
        self._last = State(0, 0.0, 0.0, None, "starting")
        self._remove(STOP, LIVE)
        self._progress(self._last)

    def stopped(self) -> bool:
        """Return whether someone asked the search to end."""
        return (self._directory / STOP).exists()

    def due(self) -> bool:
        """Return whether enough time has passed to write again."""
        return time.monotonic() >= self._next

    def tell(self, state: State, runs: Sequence[Run]) -> None:
        """Write how far the search has come, and now and then its front."""
        self._last = state
        if not self.due():
            return
        self._next = time.monotonic() + EVERY
        self._progress(state)
        began = time.monotonic()
        if runs and len(runs) != self._written and began >= self._next_front:
            self._write(LIVE, self._front(runs))
            self._written = len(runs)
            self._next_front = began + max(FRONT_EVERY, SHARE * (time.monotonic() - began))

    def end(self, phase: str) -> None:
        """Say how the search ended; once ``front.json`` is there, ``live.json`` goes."""
        self._progress(replace(self._last, seconds_left=0.0, phase=phase))
        self._remove(STOP, *([LIVE] if phase == "done" else []))

    def _progress(self, state: State) -> None:
        best, shown = state.best, None
        if best is not None:
            shown = {"id": best.key, "label": describe(best.setting), "error": best.share_wrong}
            shown["said"] = self._measure.say(best.error)
            shown |= prices_of(best.price, self._budget)
        document = {
            "runs": state.runs,
            "seconds": round(state.seconds, 1),
            "seconds_left": round(state.seconds_left, 1),
            "best": shown,
            "phase": state.phase,
            "pid": os.getpid(),
            "host": os.uname().nodename,
            "updated": time.time(),
        }
        self._write(PROGRESS, document)

    def _front(self, runs: Sequence[Run]) -> dict[str, Any]:
        chosen = choose(runs, self._budget)
        models = []
        for run, front in zip(runs, on_front(runs), strict=True):
            entry = described(run, run.price, bool(front), self._budget, self._measure)
            if run.saved:
                entry["file"] = f"trials/{run.key}.tb"
            models.append(entry if front else entry | {"history": None})
        return {**self._heading, "chosen": None if chosen is None else chosen.key, "models": models}

    def _write(self, name: str, document: dict[str, Any]) -> None:
        with suppress(FileError), atomic_path(self._directory / name) as temporary:  # a search goes on unwatched
            temporary.write_text(json.dumps(document))

    def _remove(self, *names: str) -> None:
        for name in names:
            with suppress(OSError):
                (self._directory / name).unlink(missing_ok=True)
