"""Which processes exist: this one, one that has ended, and one of another user."""

import errno
import os
import subprocess
import sys

import pytest

from tinybayes.search.processes import is_alive


def test_living_and_ended_processes():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert is_alive(os.getpid())
    for process in (ended.pid, 0, -1, 10**30):
        assert not is_alive(process)


@pytest.mark.parametrize(("number", "alive"), [(errno.EPERM, True), (errno.ESRCH, False), (errno.EINVAL, False)])
def test_only_permission_denied_shows_that_a_process_exists(monkeypatch, number, alive):
    def refuse(process, signal):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "kill", refuse)
    assert is_alive(4321) == alive
