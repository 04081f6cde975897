"""The directory of a search, read as untrusted input and only where it has changed."""

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from tinybayes.deploy import read_classifier
from tinybayes.errors import FileError, TinybayesError, error
from tinybayes.files import exists, is_directory, read_regular, regular
from tinybayes.infer import compile_circuit
from tinybayes.model import Circuit, Classifier, NeuralNet, TreeEnsemble
from tinybayes.report.cards import model_card
from tinybayes.report.finite import finite
from tinybayes.report.front import FRONT, checked_front, model_path, read_front
from tinybayes.search import LIVE, PROGRESS, STOP
from tinybayes.search.processes import is_alive
from tinybayes.search.titles import TITLES

SHARE = 2_000_000  # bytes of a card
LARGEST = 2**28  # bytes of a model that is opened
KEPT = 16  # models in memory
MAX_EDGES = 3_000_000  # of a network that is compiled for exact queries
STALE = 3600.0  # seconds without a sign of life after which a search has ended
_T = TypeVar("_T")


class UnknownModelError(TinybayesError):
    """An id that no model of the directory has, or whose file was not kept."""

    status = 404  # of HTTP


class Source:
    """The directory where a search runs, ran, or will run; it may not exist yet."""

    def __init__(self, directory: Path) -> None:
        if exists(directory) and not is_directory(directory):
            remedy = "name the directory of tinybayes explore"
            raise error("a directory", "a file", where=str(directory), remedy=remedy, kind=FileError)
        self.name, self.directory = str(directory), Path(os.path.realpath(directory))
        self._kept: dict[tuple[Any, ...], Any] = {}
        self._lock = threading.Lock()
        self._front: tuple[str, dict[str, Any]] | None = None

    def progress(self) -> dict[str, Any] | None:
        """Return the last progress of the search, its ``age`` in seconds, and whether it runs; None without one."""
        try:
            state = finite(json.loads(read_regular(self.directory / PROGRESS, 100_000).decode()))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(state, dict):
            return None
        updated = _updated(state)
        age = 0.0 if updated is None else max(0.0, time.time() - updated)
        return {**state, "running": is_running(state), "stopping": exists(self.directory / STOP), "age": age}

    def stop(self) -> None:
        """Request the end of the search: the only file that the app writes."""
        try:
            os.close(regular(str(self.directory / STOP), os.O_WRONLY | os.O_CREAT))
        except OSError as problem:
            reason = problem.strerror or problem
            raise error("a directory that can be written to", reason, where=str(self.directory)) from problem

    def front(self) -> tuple[str, dict[str, Any]]:
        """Return the front and its version: the current one while a search runs, otherwise the final one."""
        said = self.progress()
        for name in (LIVE, FRONT) if said is not None and said["running"] else (FRONT, LIVE):
            mark = _mark(self.directory / name)
            if mark is None:
                continue
            version = f"{name}-{mark[0]}-{mark[1]}"
            with self._lock:
                if self._front is None or self._front[0] != version:
                    self._front = version, read_front(self.directory, name)
                return self._front
        return ("none", _nothing()) if is_directory(self.directory) else ("no directory", _nothing(self.name))

    def model(self, key: str) -> Classifier:
        """Return a model by its id; only files that the front names are opened."""
        return self._keep("model", key, read_classifier)

    def card(self, key: str) -> dict[str, Any]:
        """Return the content of the page about a model."""
        model = self.model(key)
        return self._keep("card", key, lambda _: model_card(model, share=SHARE))

    def circuit(self, key: str) -> Circuit | None:
        """Return the model as a circuit for exact queries; None where there is none, or it is too large."""
        model = self.model(key)

        def compiled(_: Path) -> Circuit | None:
            with suppress(TinybayesError):
                if not isinstance(model, NeuralNet | TreeEnsemble):
                    return compile_circuit(model, max_edges=MAX_EDGES)
            return None

        return self._keep("circuit", key, compiled)

    def _keep(self, kind: str, key: str, make: Callable[[Path], _T]) -> _T:
        """Compute something from a model's file, with a least-recently-used cache."""
        file = next((m["file"] for m in self.front()[1]["models"] if m["id"] == key), None)
        if file is None:
            raise error("the id of a model that was kept", repr(key[:40]), where="id", kind=UnknownModelError)
        path = model_path(self.directory, file)
        if (mark := _mark(path)) is not None and mark[1] > LARGEST:
            raise error(f"a model of at most {LARGEST:,} bytes", f"{mark[1]:,}", where=file, kind=FileError)
        entry = (kind, path, _mark(path))
        with self._lock:
            if entry in self._kept:
                self._kept[entry] = self._kept.pop(entry)
                value: _T = self._kept[entry]
                return value
        made = make(path)
        with self._lock:
            self._kept[entry] = made
            while len(self._kept) > 3 * KEPT:
                self._kept.pop(next(iter(self._kept)))
        return made


def is_running(said: dict[str, Any]) -> bool:
    """Return whether the search that wrote its progress still runs."""
    updated, process = _updated(said), said.get("pid")
    if said.get("phase") in ("done", "failed") or updated is None or time.time() - updated > STALE:
        return False
    if said.get("host") != os.uname().nodename or not isinstance(process, int) or process <= 0:
        return time.time() - updated < 60  # on another machine: it reports every few seconds
    return is_alive(process)


def _updated(said: dict[str, Any]) -> float | None:
    """Return the time of the last report in seconds; None when it is invalid."""
    time_of_update = said.get("updated")
    return float(time_of_update) if isinstance(time_of_update, int | float) and 0 <= time_of_update < 1e12 else None


def _nothing(awaited: str | None = None) -> dict[str, Any]:
    """Return the front of a search that has found nothing yet, or that has not begun in the awaited directory."""
    single = checked_front({"title": "A search", "models": [{"id": "none"}]})
    title = "A search that has found nothing yet" if awaited is None else f"Waiting for a search in {awaited}"
    return {**single, "title": title, "models": []}


def _mark(path: Path) -> tuple[int, int] | None:
    """Return a mark that changes with the file, or with a link, which is not followed; None when it does not exist."""
    try:
        stat = path.lstat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def page_front(front: dict[str, Any]) -> dict[str, Any]:
    """Return the front for the page, without cards, which are loaded one by one."""
    return {**front, "families": TITLES, "variables": [], "cards": {}}
