"""Two of the faults, tried a few times each; ``run.py`` tries all of them a hundred times."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cases import WHOLE

RUN = Path(__file__).with_name("run.py")
FEW = ("kill-learn-circuit", "kill-steps-export")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Try the faults in a process of their own: forks need one without threads."""
    output = tmp_path_factory.mktemp("faults") / "results.json"
    command = [sys.executable, str(RUN), "--only", *FEW, "--kills", "2", "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert output.exists(), done.stderr[-2000:]
    return json.loads(output.read_text())


@WHOLE
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FEW)
def test_fault_does_no_harm(told, name):
    fault = told["faults"][name]
    assert fault["problems"] == []
    assert fault["outcome"] == "held"
    assert fault["tried"] >= 2


@WHOLE
@pytest.mark.exhaustive
def test_page_tells_of_every_fault(told):
    from fault_page import page

    text = page(told)
    for name in FEW:
        assert told["faults"][name]["what"] in text
    assert "**held**" in text


def test_harm_is_seen(tmp_path):
    """The checks themselves: half a model, half a page, a doubled and a changed trial are found."""
    from fault_kills import OLD, _models_whole, bytes_whole
    from fault_studies import doubled, unfinished

    (tmp_path / "model.tb").write_bytes(b"half")
    (tmp_path / "page.html").write_bytes(b"<html>")
    (tmp_path / "old.tb").write_bytes(OLD)
    assert sorted(text.split()[0] for text in _models_whole(str(tmp_path))) == ["model.tb", "page.html"]
    expected = {"model.tb": b"whole", "page.html": b"<html>", "old.tb": b"new"}
    assert bytes_whole(tmp_path, expected) == ["model.tb is not whole"]
    trial = {"number": 0, "state": "COMPLETE", "run": {"key": "a"}, "owner": "me:1"}
    assert doubled([trial, trial | {"number": 1}]) == ["run a was stored 2 times"]
    assert unfinished([trial | {"state": "RUNNING"}], []) == ["trial 0 is still running"]
    assert unfinished([trial], [trial, trial]) == ["there are fewer trials than before"]
