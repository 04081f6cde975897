"""Commands that nobody listens to: closed streams, and an output that takes nothing."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from cases import exhaustive


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    pd.DataFrame({"x": [0, 1] * 20, "y": ["a", "b"] * 20}).to_csv(path, index=False)
    return path


def fit(table, redirection):
    words = [sys.executable, "-m", "tinybayes", "fit", str(table), "--target", "y", "-o", str(table.with_suffix(".tb"))]
    return subprocess.run(["sh", "-c", f'"$@" {redirection}', "sh", *words], capture_output=True, text=True)


@pytest.mark.parametrize("redirection", [">&- 2>&-", *exhaustive("2>&-")])
def test_closed_streams_keep_nothing_from_being_written(table, redirection):
    assert fit(table, redirection).returncode == 0
    assert table.with_suffix(".tb").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here that is always full")
def test_an_output_that_takes_nothing_is_one_line(table):
    done = fit(table, ">/dev/full")
    assert done.returncode == 2
    assert done.stderr == "error: expected an output that can be written to, got No space left on device\n"
    assert table.with_suffix(".tb").exists()
