"""The tables of packages and modules in the docs are those of the source."""

import ast
import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent.parent / "docs" / "make_modules.py"


def load_script():
    spec = importlib.util.spec_from_file_location("make_modules", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["architecture.md", "modules.md"])
def test_the_tables_are_up_to_date(name):
    page = SCRIPT.parent / name
    assert load_script().pages()[page] == page.read_text(encoding="utf-8"), "run python docs/make_modules.py"


def test_every_package_is_listed():
    script = load_script()
    packages = {p.name for p in script.SOURCE.iterdir() if (p / "__init__.py").exists()}
    packages |= {p.stem for p in script.SOURCE.glob("*.py")} - {"__init__", "__main__"}
    assert packages == set(script.PACKAGES)


def test_the_order_is_that_of_the_architecture_test():
    code = ast.parse((SCRIPT.parent.parent / "tests" / "test_architecture.py").read_text(encoding="utf-8"))
    rooms = next(n.value for n in code.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "ROOMS")
    assert tuple(ast.literal_eval(rooms)) == load_script().PACKAGES
