"""The journal of a search after a kill or a full disk: no half line, no lock that nobody holds."""

import fcntl
import subprocess
import sys
import time

import pytest
from optuna.storages.journal import JournalFileOpenLock

from tinybayes.search.study import PIECE, SystemLock, cut_half_line, journal

LINES = b'{"a":1}\n{"b":2}\n'


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
    store = journal(str(path))
    assert list(store.read_logs(0)) == [{"a": 1}, {"b": 2}]
    store.append_logs([{"d": 4}])
    assert list(journal(str(path)).read_logs(0)) == [{"a": 1}, {"b": 2}, {"d": 4}]
    assert list(store.read_logs(2)) == [{"d": 4}]


def test_the_disk_is_waited_for_when_told_to(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    waited = []
    monkeypatch.setattr("os.fsync", waited.append)
    store = journal(str(path))
    store.append_logs([{"a": 1}])
    store.append_logs([{"b": 2}])
    assert path.read_bytes() == LINES
    assert not waited
    store.sync()
    assert len(waited) == 1


def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path):
    path = tmp_path / "journal"
    path.touch()
    script = "import sys; from tinybayes.search.study import SystemLock\n"
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
