"""Links, pipes and devices in the directory of a search, and directories that are gone: one line, and no waiting."""

import json
import os
import stat
from pathlib import Path

import pytest

from tinybayes.deploy import load, save
from tinybayes.deploy.files.uai import read_evidence
from tinybayes.errors import FileError, TinybayesError, visible
from tinybayes.files import PREFIX, atomic_path, made_directory, read_regular, remove_abandoned
from tinybayes.learn.circuits.checkpoint import read_checkpoint
from tinybayes.report.front import read_front
from tinybayes.search.budget import Budget
from tinybayes.search.named_numbers import numbers_of
from tinybayes.search.study import Store
from tinybayes.serve.source import Source
from zoo import sprinkler

FRONT = json.dumps({"models": [{"id": "a"}]})


@pytest.fixture(params=["link", "pipe", "device", "directory"])
def planted(request, tmp_path):
    """Put something other than a file where a file is expected."""
    secret = tmp_path / "secret.json"
    secret.write_text(FRONT.replace('"a"', '"secret"'))

    def plant(path):
        if request.param == "pipe":
            os.mkfifo(path)
        elif request.param == "directory":
            path.mkdir()
        else:
            path.symlink_to(secret if request.param == "link" else Path("/dev/zero"))

    return plant


def test_the_app_opens_regular_files_only(tmp_path, planted):
    search = tmp_path / "search"
    search.mkdir()
    planted(search / "progress.json")
    assert Source(search).progress() is None
    planted(search / "front.json")
    with pytest.raises(FileError) as told:
        Source(search).front()
    assert "secret" not in str(told.value)
    with pytest.raises(FileError):
        read_front(search)
    planted(search / "stop")
    with pytest.raises(ValueError, match="can be written to"):
        Source(search).stop()


def test_links_in_a_circle_and_names_that_no_file_has(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "round.tb").symlink_to("round.tb")
    for file in ("models/round.tb", "models/a\0b.tb", ".", "../x.tb", "x" * 300):
        (tmp_path / "front.json").write_text(json.dumps({"models": [{"id": "a", "file": file}]}))
        with pytest.raises(FileError):
            Source(tmp_path).model("a")
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(FileError, match="looked up"):
        Source(tmp_path / "round")


def test_files_are_read_up_to_a_limit(tmp_path):
    (tmp_path / "front.json").write_text(FRONT)
    assert read_front(tmp_path)["models"][0]["id"] == "a"
    assert read_regular(tmp_path / "front.json", 1000).decode() == FRONT
    with pytest.raises(OSError, match="more than 10 bytes"):
        read_regular(tmp_path / "front.json", 10)
    (tmp_path / "progress.json").write_text(" " * 200_000 + "{}")
    assert Source(tmp_path).progress() is None


@pytest.mark.parametrize("name", ["search.journal", "search.journal.lock"])
def test_the_store_of_a_search_is_a_regular_file(tmp_path, planted, name):
    search = tmp_path / "search"
    search.mkdir()
    planted(search / name)
    with pytest.raises(FileError, match="a storage that can be reached"):
        Store(search, None, {"table": "t"}, Budget(), 0)


def test_what_has_the_name_of_a_temporary_does_not_hold_up_writers(tmp_path, planted):
    planted(tmp_path / f"{PREFIX}abcdefgh.json")
    remove_abandoned(tmp_path)
    with atomic_path(tmp_path / "x.json") as temporary:
        temporary.write_text("1")
    assert (tmp_path / "x.json").read_text() == "1"
    assert (tmp_path / f"{PREFIX}abcdefgh.json").is_symlink() or (tmp_path / f"{PREFIX}abcdefgh.json").exists()


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "models").write_text("a file")
    with pytest.raises(FileError, match="models: expected a directory that can be made"):
        made_directory(tmp_path / "models")
    with pytest.raises(FileError, match="was it removed"):
        made_directory(tmp_path / "gone" / "trials")


def test_control_characters_are_shown():
    assert visible("a\x1b]0;x\x07\x9b\u202e\ud800\tb\nc") == "a\\x1b]0;x\\x07\\x9b\\u202e\\ud800\tb\nc"
    assert visible("Größe 数") == "Größe 数"


@pytest.mark.parametrize("name", ["a.bif", "a.bif.gz", "a.xmlbif", "a.uai", "a.ac", "a.tb", "a.txt", "a.json"])
@pytest.mark.parametrize("kind", ["pipe", "device", "directory"])
def test_models_that_the_user_names_are_files(tmp_path, kind, name):
    """Reading a pipe waited for ever."""
    path = tmp_path / name
    _make(path, kind)
    with pytest.raises(FileError, match=r"a pipe or a device|a directory"):
        load(path)


@pytest.mark.parametrize("kind", ["pipe", "device", "directory"])
def test_evidence_costs_and_checkpoints_are_files(tmp_path, kind):
    """A device without an end was read until the memory was full."""
    for name in ("a.evid", "costs.json", "costs.csv", "a.ckpt"):
        _make(tmp_path / name, kind)
    told = r"got (a pipe or a device|a directory)$"
    with pytest.raises(FileError, match=told):
        read_evidence(tmp_path / "a.evid")
    for name in ("costs.json", "costs.csv"):
        with pytest.raises(TinybayesError, match=told):
            numbers_of(tmp_path / name, "costs")
    with pytest.raises(FileError, match=r"a pipe or a device|a directory"):
        read_checkpoint(tmp_path / "a.ckpt", {"data": ""})


def test_links_to_files_that_the_user_names_are_followed(tmp_path):
    save(sprinkler(), tmp_path / "a.bif")
    (tmp_path / "b.bif").symlink_to("a.bif")
    assert load(tmp_path / "b.bif") == load(tmp_path / "a.bif")


def test_devices_and_pipes_are_never_replaced(tmp_path):
    """A file is renamed to the name of the output: as root, that would leave the machine without /dev/null."""
    os.mkfifo(tmp_path / "pipe.tb")
    places = [tmp_path / "pipe.tb"]
    if os.getuid() == 0:  # a device of the test's own, for the day that this fails
        places.append(tmp_path / "null.tb")
        os.mknod(places[1], 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    for place in places:
        with pytest.raises(FileError, match="a device or a pipe"), atomic_path(place) as temporary:
            temporary.write_text("x")
        assert not place.is_file()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")  # a link itself is replaced, as ever
    with atomic_path(tmp_path / "link") as temporary:
        temporary.write_text("x")
    assert not (tmp_path / "elsewhere").exists()


def _make(path, kind):
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
