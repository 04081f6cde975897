import os
import signal
import subprocess
import sys

import pytest

from tinybayes.errors import FileError
from tinybayes.files import atomic_path


def interrupted(path):
    with atomic_path(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("before")
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_what_the_system_refuses_is_an_error_of_ours(tmp_path):
    taken = tmp_path / "taken.csv"
    taken.mkdir()
    with pytest.raises(FileError, match=r"taken\.csv: expected a file that can be written"), atomic_path(taken):
        pass
    with pytest.raises(FileError, match="No space left"), atomic_path(tmp_path / "out.csv"):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == [taken]


def test_what_a_killed_process_left_is_removed_by_the_next_writer(tmp_path):
    script = "import os, sys; from tinybayes.files import atomic_path\n"
    script += "with atomic_path(sys.argv[1]) as t: t.write_text('half'); os.kill(os.getpid(), 9)"
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path / "out.csv")])
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.read_text() == "half"
    with atomic_path(tmp_path / "other.csv") as temporary:
        temporary.write_text("whole")
        with atomic_path(tmp_path / "more.csv") as second:  # one at work is not abandoned
            second.write_text("too")
            assert sorted(tmp_path.iterdir()) == sorted([temporary, second])
    assert sorted(os.listdir(tmp_path)) == ["more.csv", "other.csv"]


def test_hidden_files_of_others_stay(tmp_path):
    others = [".tinybayes", ".tinybayes-tmp-mine.tb", ".tinybayes-settings.toml", ".abcdefgh.tb"]
    for name in others:
        (tmp_path / name).write_text("mine")
    with atomic_path(tmp_path / "out.csv") as temporary:
        temporary.write_text("whole")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "out.csv"])
