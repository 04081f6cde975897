"""The fuzzer itself: some hundred inputs of every reader, and faults that were planted to be found."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import fuzz_harness
import pytest
from fuzz_harness import counts_by_kind, fuzz, make_input
from fuzz_readers import READERS, Reader

from tinybayes.errors import error

HERE = Path(__file__).parent
COUNTS = {"checkpoint": 60, "names": 150, "csv": 150}


@pytest.mark.parametrize("name", READERS)
def test_only_our_errors_escape(name):
    count = COUNTS.get(name, 300)
    tally = fuzz(name, count=count, seed=20)
    if tally.skipped:
        pytest.skip(tally.skipped)
    assert counts_by_kind(tally) == {}
    assert tally.inputs == tally.accepted + tally.refused == count
    assert tally.accepted > 0
    assert tally.refused > 0 or name in ("progress", "store")  # what these cannot read they leave out


def planted(fault):
    """A reader that accepts, refuses, and does something else at the inputs that begin with 7."""

    def run(data, directory):
        if data[0] == 7:
            fault()
        if data[0] % 2:
            raise error("an even number", data[0])

    reader = Reader("planted", "")
    reader._built = (lambda rng: bytes([rng.randrange(16)]), run)
    return reader


def look_up():
    return {}["nothing"]


def spin():
    while True:
        pass


def wait():
    time.sleep(60)


def eat():
    return b"1" * (200 << 20)


def claim():
    return bytearray(1 << 45)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (look_up, "KeyError"),
        (spin, "hang"),
        (wait, "hang, waiting"),
        (eat, "memory"),
        (claim, "MemoryError"),
        (die, "crash, exit code -9"),
    ],
)
def test_planted_faults_are_found_and_the_run_goes_on(fault, kind, monkeypatch):
    monkeypatch.setitem(READERS, "planted", planted(fault))
    monkeypatch.setattr(fuzz_harness, "SECONDS", 0.3)
    monkeypatch.setattr(fuzz_harness, "PATIENCE", 2)
    monkeypatch.setattr(fuzz_harness, "SILENCE", 1.5 if fault is wait else 60.0)
    monkeypatch.setattr(fuzz_harness, "GROWTH", 100 << 20)
    tally = fuzz("planted", count=16, seed=2, processes=2)
    sevens = [i for i in range(16) if make_input(READERS["planted"], 2, i)[0] == 7]
    found = counts_by_kind(tally)
    assert sevens == [7, 12]  # one for each process
    assert [text.startswith(kind) for text in found] == [True]
    assert sorted(one.index for one in tally.findings) == sevens
    assert all(one.data == b"\x07" for one in tally.findings)
    assert tally.inputs == 16
    assert tally.accepted + tally.refused == 14


def test_an_input_is_made_again_by_its_number():
    reader = READERS["bif"]
    assert [make_input(reader, 5, i) for i in range(9)] == [make_input(reader, 5, i) for i in range(9)]
    assert len({make_input(reader, 5, i) for i in range(50)}) > 40
    assert reader.mutant(Random(1)) != reader.mutant(Random(2))


def test_results_are_written_and_findings_kept(tmp_path, monkeypatch):
    command = [
        sys.executable,
        str(HERE / "run.py"),
        "--reader",
        "query",
        "--count",
        "50",
        "-o",
        str(tmp_path / "r.json"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "50 inputs" in done.stdout
    found = json.loads((tmp_path / "r.json").read_text())["readers"]["query"]
    assert (found["inputs"], found["findings"], found["seed"]) == (50, {}, 0)
    about = importlib.util.spec_from_file_location("fuzz_run", HERE / "run.py")
    run = importlib.util.module_from_spec(about)
    about.loader.exec_module(run)
    monkeypatch.setitem(READERS, "planted", planted(look_up))
    run.keep(fuzz("planted", count=16, seed=2), "planted", tmp_path / "found")
    texts = [file.read_text() for file in (tmp_path / "found").glob("*.txt")]
    assert texts
    assert all("KeyError: 'nothing'" in text for text in texts)


def test_random_models_say_in_c_what_they_say_in_python(tmp_path):
    command = [sys.executable, str(HERE / "models.py"), "--count", "20", "--seed", "1", "-o", str(tmp_path / "r.json")]
    done = subprocess.run(command, capture_output=True, text=True)
    if "No such file or directory: 'gcc'" in done.stderr:
        pytest.skip("no gcc on this machine")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "r.json").read_text())["c_models"]
    assert (found["models"], found["mismatches"]) == (20, 0)
