"""The journal of a search: one line of JSON for each operation of Optuna, appended under a lock of the system.

A journal may be damaged: by a disk, an editor, or a file system that fills what was lost with zeros. What Optuna could
not apply is skipped and counted, and everything else is kept. Trials have no number in the line that begins them, they
are counted, so a lost line of this kind is replaced by an empty trial. Finished runs are collected on their own,
whatever became of their trials.
"""

import fcntl
import json
import math
import os
from collections.abc import Generator, Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from optuna.distributions import json_to_distribution
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.study import StudyDirection
from optuna.trial import TrialState

from tinybayes.files import regular

PIECE = 1 << 16  # bytes of a journal that are read at a time
NEW_STUDY, STUDY_ATTRIBUTE, STUDY_NOTE, NEW_TRIAL = 0, 2, 3, 4  # operations of Optuna's journal that searches write
PARAMETER, STATE, ATTRIBUTE, NOTE = 5, 6, 8, 9
Log = dict[str, Any]
NOTHING: Log = {"op_code": ATTRIBUTE, "worker_id": "", "trial_id": -1, "user_attr": {"": None}}  # of no trial
EMPTY_TRIAL: Log = {"op_code": NEW_TRIAL, "worker_id": "", "study_id": 0, "datetime_start": None}


class Journal(JournalFileBackend):
    """A journal that waits for the disk when a run is stored, not after every line, and skips damaged lines.

    Optuna waits after each parameter of each setting that it draws, which takes longer than to learn a tree. What was
    written outlasts a killed process either way; only the loss of power could cost settings that were not tried yet.
    `study` is the name of the study and the number of its objectives, in case that its line is damaged.
    """

    def __init__(self, path: str, study: tuple[str, int] = ("", 1)) -> None:
        self.path, self.lock = path, SystemLock(path)
        os.close(regular(path, os.O_CREAT | os.O_RDWR))
        super().__init__(path, lock_obj=self.lock)
        name, count = study
        self._study = {"op_code": NEW_STUDY, "worker_id": "", "study_name": name, "directions": [1] * count}
        self._objectives = count
        self._line, self._at = 0, 0  # how far it was read: lines and bytes
        self.damaged = 0  # lines that were skipped
        self.runs: list[Any] = []  # all that were stored, also those whose trial was lost

    def read_logs(self, log_number_from: int) -> Generator[Log, None, None]:
        """Return the lines from a number on; each damaged one as an operation without effect."""
        if log_number_from < self._line:  # another reader begins
            self._line, self._at, self.damaged, self.runs = 0, 0, 0, []
        with open(self.path, "rb", opener=regular) as file:
            file.seek(self._at)
            lines = file.read().split(b"\n")
        whole = lines[:-1]  # the last one is not finished yet
        logs = self._repaired(whole)
        first = log_number_from - self._line
        self._line += len(whole)
        self._at += sum(len(line) + 1 for line in whole)
        self.damaged += sum(log is NOTHING or log is EMPTY_TRIAL or log is self._study for log in logs)
        self.runs += [log["user_attr"]["run"] for log in logs if "run" in log.get("user_attr", {})]
        yield from logs[first:]

    def _repaired(self, lines: Sequence[bytes]) -> list[Log]:
        """Parse lines; instead of the damaged ones: the study, empty trials for those that are missing, or nothing."""
        parsed = [sound(line, self._objectives) for line in lines]
        trials = 0 if self._line == 0 else None  # in later pieces, trials of others have been counted elsewhere
        if trials is None:
            return [log or NOTHING for log in parsed]
        if parsed and parsed[0] is None:
            parsed[0] = self._study
        made = set()
        for number, log in enumerate(parsed):
            began = log is None and _began_trial(lines[number], islice(parsed, number + 1, None), trials)
            if began:
                made.add(number)
            trials += began or (log is not None and log["op_code"] == NEW_TRIAL)
        most = max((_trial_of(log) for log in parsed if log), default=-1)
        lost = [number for number, log in enumerate(parsed) if log is None and number not in made]
        made.update(lost[: max(0, most + 1 - trials)])
        return [log or (EMPTY_TRIAL if number in made else NOTHING) for number, log in enumerate(parsed)]

    def append_logs(self, logs: list[Log]) -> None:
        """Append lines, in one piece."""
        text = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
        self.lock.acquire()
        try:
            with open(self.path, "ab", buffering=0, opener=regular) as file:
                file.write(text.encode())
        finally:
            self.lock.release()

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        with open(self.path, "rb", opener=regular) as file:
            os.fsync(file.fileno())


def _began_trial(line: bytes, later: Iterable[Log | None], trials: int) -> bool:
    """Guess whether a damaged line began a trial: by what is left of it, or since the next lines are about it."""
    if b'"op_code":4,' in line or (b'"datetime_start"' in line and b'"trial_id"' not in line):
        return True
    if any(mark in line for mark in (b'"trial_id"', b'"user_attr":', b'"system_attr":', b'"study_name"')):
        return False
    for log in later:
        if log is None or log["op_code"] == NEW_TRIAL:
            return False
        if _trial_of(log) >= trials:
            return True
    return False


def _trial_of(log: Log) -> int:
    """Return the trial that an operation is about; -1 for none."""
    return int(log["trial_id"]) if log["op_code"] in (PARAMETER, STATE, ATTRIBUTE, NOTE) else -1


def sound(line: bytes, objectives: int) -> Log | None:
    """Parse a line; None where it is none that a search writes."""
    try:
        log = json.loads(line.decode())
        correct = isinstance(log, dict) and isinstance(log["worker_id"], str) and _correct(log, objectives)
        return log if correct else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None


def _correct(log: Log, objectives: int) -> bool:
    """Return whether an operation has what it needs; what it lacks may also raise one of the errors of `sound`."""
    operation = log["op_code"]
    if type(operation) is not int:
        return False
    if operation == NEW_STUDY:
        directions = [StudyDirection(one) for one in log["directions"]]
        return isinstance(log["study_name"], str) and len(directions) == objectives
    of_study = operation in (STUDY_ATTRIBUTE, STUDY_NOTE, NEW_TRIAL)
    if not _is_count(log["study_id"] if of_study else log["trial_id"]):
        return False
    if operation in (STUDY_ATTRIBUTE, ATTRIBUTE):
        return len(log["user_attr"]) == 1 and _attributes(log["user_attr"])
    if operation in (STUDY_NOTE, NOTE):
        return len(log["system_attr"]) == 1 and isinstance(log["system_attr"], dict)
    if operation == NEW_TRIAL:
        return _new_trial(log)
    if operation == PARAMETER:
        _value(log["distribution"], log["param_value_internal"])
        return isinstance(log["param_name"], str)
    return operation == STATE and _state(log, objectives)


def _attributes(given: Log) -> bool:
    text = all(isinstance(given.get(name, ""), str) for name in ("owner", "claim"))
    return text and all(isinstance(given.get(name, {}), dict) for name in ("meaning", "run"))


def _new_trial(log: Log) -> bool:
    for name in ("datetime_start", "datetime_complete"):
        if log.get(name) is not None:
            datetime.fromisoformat(log[name])
    log["datetime_start"]  # Optuna needs it
    if log.get("values") is not None or log.get("value") is not None or log.get("intermediate_values"):
        return False  # trials of searches are told later
    for name, value in log.get("params", {}).items():
        _value(log["distributions"][name], value)
    for distribution in log.get("distributions", {}).values():
        json_to_distribution(distribution)
    begun = TrialState(log.get("state", TrialState.RUNNING)) == TrialState.RUNNING
    return begun and _attributes(log.get("user_attrs", {})) and isinstance(log.get("system_attrs", {}), dict)


def _value(distribution: str, value: float) -> None:
    """Raise an error unless a value can be one of a distribution."""
    drawn = json_to_distribution(distribution)
    if not drawn._contains(value):
        raise ValueError(value)
    drawn.to_external_repr(value)


def _state(log: Log, objectives: int) -> bool:
    state, values = TrialState(log["state"]), log["values"]
    if state == TrialState.RUNNING:
        datetime.fromisoformat(log["datetime_start"])
    if state.is_finished():
        datetime.fromisoformat(log["datetime_complete"])
    if values is None:
        return state != TrialState.COMPLETE
    return len(values) == objectives and not any(math.isnan(value) for value in values)


def _is_count(number: object) -> bool:
    return type(number) is int and number >= 0


class SystemLock(JournalFileOpenLock):
    """A lock on a file beside the journal that a killed process can neither hold for ever nor leave with half a line.

    Optuna's own locks are files: one that a killed process left is taken for abandoned after half a minute. A lock of
    the system ends with its process. A line that was cut off, by a kill or a full disk, would join the next one and
    make both of them unreadable; it was never finished, so the next process to take the lock removes it.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._path = path
        self._handle = -1

    def acquire(self) -> bool:
        """Wait for the lock."""
        handle = regular(f"{self._path}.lock", os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            cut_half_line(self._path)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        return True

    def release(self) -> None:
        """Let the lock go."""
        os.close(self._handle)


def cut_half_line(path: str) -> None:
    """Remove an incomplete last line from a file."""
    with open(path, "r+b", opener=regular) as file:
        size = end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - PIECE)
            file.seek(start)
            line = file.read(end - start).rfind(b"\n")
            if line >= 0:
                end = start + line + 1
                break
            end = start
        if end < size:
            file.truncate(end)
