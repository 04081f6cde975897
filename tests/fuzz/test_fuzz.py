"""The fuzzer at a small size, and that it finds planted faults: fuzz_checks.py, in a process without other threads."""

import subprocess
import sys
from pathlib import Path

import pytest

from cases import WHOLE


@WHOLE
@pytest.mark.exhaustive
def test_readers_hold_and_planted_faults_are_found():
    """The fuzzer forks, and a fork of a process in which JAX has threads may never end."""
    checks = Path(__file__).with_name("fuzz_checks.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", str(checks)]
    done = subprocess.run(command, cwd=checks.parents[2], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout or "100%" in done.stdout
