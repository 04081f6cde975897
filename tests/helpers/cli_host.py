"""The command line, run in the process of the tests."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pytest

from tinybayes.cli import main


def run(*arguments, cwd, code=0):
    """Run the command line in this process, as `main` does for a user; give back what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["tinybayes", *map(str, arguments)])
        patch.setenv("COLUMNS", "120")
        patch.setenv("NO_COLOR", "1")
        with pytest.raises(SystemExit) as stop:
            main()
    assert (stop.value.code or 0) == code, err.getvalue()
    return SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue())


def fails(*arguments, cwd, message):
    """The command must end with code 2 and one clear line after its warnings, and leave no file behind."""
    before = sorted(cwd.iterdir())
    done = run(*arguments, cwd=cwd, code=2)
    *warnings, line = done.stderr.strip().split("\n")
    assert all(text.startswith("warning: ") for text in warnings)
    assert line.startswith("error: ")
    assert message in line
    assert sorted(cwd.iterdir()) == before
