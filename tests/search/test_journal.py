"""The journal of a search after a kill or a full disk: no half line, no lock that nobody holds."""

import fcntl
import json
import subprocess
import sys
import time

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from tinybayes.search.budget import Budget
from tinybayes.search.journal import PIECE, Journal, SystemLock, cut_half_line
from tinybayes.search.study import Store

LOGS = [{"op_code": 8, "worker_id": "w", "trial_id": n, "user_attr": {"a": n}} for n in range(3)]
LINES = b"".join(json.dumps(log, separators=(",", ":")).encode() + b"\n" for log in LOGS[:2])


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        (b"", b""),
        (LINES, LINES),
        (LINES + b'{"c":', LINES),
        (b'{"c":', b""),
        (LINES + b"x" * PIECE, LINES),
        (LINES + b"x" * (PIECE - 1), LINES),
        (LINES + b"x" * (3 * PIECE + 5), LINES),
        (b"x" * PIECE, b""),
    ],
)
def test_only_a_half_line_is_cut(tmp_path, content, kept):
    path = tmp_path / "journal"
    path.write_bytes(content)
    cut_half_line(str(path))
    assert path.read_bytes() == kept


def test_a_half_line_does_not_join_the_next_one(tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(LINES + b'{"c":')
    store = Journal(str(path))
    assert list(store.read_logs(0)) == LOGS[:2]
    store.append_logs(LOGS[2:])
    assert list(Journal(str(path)).read_logs(0)) == LOGS
    assert list(store.read_logs(2)) == LOGS[2:]


@pytest.mark.parametrize("more", [{}, {"metric": "auc", "feature costs": {}}])
def test_other_programs_read_the_names_of_the_objectives(tmp_path, more):
    """As optuna-dashboard does."""
    Store(tmp_path, None, {"table": "x", "core": "cortex-m0+", **more}, Budget(), 0)
    Store(tmp_path, None, {"table": "x", "core": "cortex-m0+", **more}, Budget(), 0)  # resumed
    storage = JournalStorage(JournalFileBackend(str(tmp_path / "search.journal")))
    study = optuna.load_study(study_name="tinybayes", storage=storage)
    names = ["validation 1 - AUC" if more else "validation error", "flash in bytes", "instructions"]
    assert study.metric_names == [*names, *["feature cost"] * bool(more)]


def test_the_disk_is_waited_for_when_told_to(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    waited = []
    monkeypatch.setattr("os.fsync", waited.append)
    store = Journal(str(path))
    store.append_logs(LOGS[:1])
    store.append_logs(LOGS[1:2])
    assert path.read_bytes() == LINES
    assert not waited
    store.sync()
    assert len(waited) == 1


def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path):
    path = tmp_path / "journal"
    path.touch()
    script = "import sys; from tinybayes.search.journal import SystemLock\n"
    script += "SystemLock(sys.argv[1]).acquire(); print('held', flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout.readline() == "held\n"
        with open(f"{path}.lock", "rb") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        holder.kill()
    began = time.monotonic()
    lock = SystemLock(str(path))
    assert lock.acquire()
    lock.release()
    assert time.monotonic() - began < 5  # that of Optuna would wait for half a minute
    assert isinstance(lock, JournalFileOpenLock)
