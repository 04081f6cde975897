"""The oldest versions that the tests are run with are those that pyproject.toml allows."""

import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = ("plot", "distributed", "onnx", "serve")
WANTED = [*PROJECT["dependencies"], *(one for name in EXTRAS for one in PROJECT["optional-dependencies"][name])]
BOUNDS = dict(re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", one).groups() for one in WANTED)
PINS = dict(re.findall(r"^([\w-]+)==([\d.]+)$", (ROOT / "tests" / "oldest.txt").read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", BOUNDS)
def test_the_oldest_versions_are_those_of_the_project(name):
    assert (PINS[name] + ".").startswith(BOUNDS[name] + ".")


@pytest.mark.skipif(not sys.prefix.endswith("build/oldest"), reason="not the environment of make test-oldest")
def test_these_versions_are_installed():
    assert {name: version(name) for name in PINS} == PINS
