"""Every script of the experiments can be loaded: results are made again long after the code beside them changed."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [path for path in (ROOT / "experiments").rglob("*.py") if path.stem not in ("__init__", "__main__")]


@pytest.mark.parametrize("name", sorted(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in FILES))
def test_a_script_is_loaded(name):
    importlib.import_module(name)
