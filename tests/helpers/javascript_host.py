"""Runs exported JavaScript with Node.js."""

import json
import math
import shutil
import subprocess

import pytest


def run_javascript(text, rows, call="scores"):
    """Return what a function of an exported model says about each row."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine, which runs JavaScript")
    rows = [row.tolist() if hasattr(row, "tolist") else list(row) for row in rows]
    tail = f"\nconsole.log(JSON.stringify({json.dumps(rows)}.map((row) => model.{call}(row))));\n"
    done = subprocess.run([node, "-"], input=text + tail, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [_numbers(answer) for answer in json.loads(done.stdout)]


def _numbers(answer):
    """Put back the minus infinities of floats, which JSON does not have."""
    return [-math.inf if value is None else value for value in answer] if isinstance(answer, list) else answer
