"""The oldest versions that the tests are run with are those that pyproject.toml allows."""

import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = ("sklearn", "arrow", "train", "search", "plot", "distributed", "onnx", "serve")
WANTED = [*PROJECT["dependencies"], *(one for name in EXTRAS for one in PROJECT["optional-dependencies"][name])]
BOUNDS = dict(
    re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", one).groups() for one in WANTED if not one.startswith("tinybayes[")
)
PINS = dict(re.findall(r"^([\w-]+)==([\d.]+)$", (ROOT / "tests" / "oldest.txt").read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", BOUNDS)
def test_the_oldest_versions_are_those_of_the_project(name):
    assert (PINS[name] + ".").startswith(BOUNDS[name] + ".")


@pytest.mark.skipif(not sys.prefix.endswith("build/oldest"), reason="not the environment of make test-oldest")
def test_these_versions_are_installed():
    assert {name: version(name) for name in PINS} == PINS


def test_all_is_all_but_what_needs_a_gpu_and_the_tools():
    extras = PROJECT["optional-dependencies"]
    everything, search = (
        {*re.fullmatch(r"tinybayes\[(.*)\]", extras[name][0])[1].split(",")} for name in ("all", "search")
    )
    assert everything | search == set(extras) - {"all", "cuda", "dev", "bench"}
    assert "tinybayes[all]" in extras["dev"]
