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
