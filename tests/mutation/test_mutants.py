"""The mutants themselves: what is changed and what is left alone, and a run that finds planted faults."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mutants import mutants, sample

SOURCE = '''"""Text."""
LIMIT = 3


def f(x: int = 1, *, flag: bool = True) -> int:
    """Count 10."""
    if not x < 2 and flag:
        raise ValueError("at most 1")
    total = min(x, 5)
    total += x[1:] if isinstance(x, list) else 0
    return f"{total + 1} of 7"


class A:
    @property
    def size(self):
        def inner(k):
            return k * 2

        return inner(4)
'''


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    return path


def test_every_operator_and_nothing_else(module):
    found = {(m.function, m.operator, m.before, m.after) for m in mutants(module, "m")}
    changes = {
        ("and/or", "not x < 2 and flag", "not x < 2 or flag"),
        ("unary", "not x < 2 in not x < 2 and flag", "x < 2"),
        ("comparison", "x < 2", "x <= 2"),
        ("comparison", "x < 2", "x >= 2"),
        ("constant", "2 in x < 2", "3 in x < 2"),
        ("constant", "2 in x < 2", "1 in x < 2"),
        ("removed", "raise ValueError('at most 1')", "pass"),
        ("function", "min in min(x, 5)", "max in min(x, 5)"),
        ("constant", "5 in min(x, 5)", "6 in min(x, 5)"),
        ("constant", "5 in min(x, 5)", "4 in min(x, 5)"),
        ("arithmetic", "total += x[1:] if isinstance(x, list) else 0", "total -= x[1:] if isinstance(x, list) else 0"),
        ("removed", "total += x[1:] if isinstance(x, list) else 0", "pass"),
        ("slice", "1: in x[1:]", ": in x[1:]"),
        ("constant", "1 in 1:", "2 in 1:"),
        ("constant", "1 in 1:", "0 in 1:"),
        ("constant", "0 in x[1:] if isinstance(x, list) else 0", "1 in x[1:] if isinstance(x, list) else 0"),
        ("constant", "0 in x[1:] if isinstance(x, list) else 0", "-1 in x[1:] if isinstance(x, list) else 0"),
        ("condition", "isinstance(x, list)", "not isinstance(x, list) in x[1:] if isinstance(x, list) else 0"),
        ("return None", "return f'{total + 1} of 7'", "return None"),
        ("arithmetic", "total + 1", "total - 1"),
        ("constant", "1 in total + 1", "2 in total + 1"),
        ("constant", "1 in total + 1", "0 in total + 1"),
    }
    assert {tuple(rest) for name, *rest in found if name == "f"} == changes
    inner = {before for name, _, before, _ in found if name == "A.size"}
    assert inner == {"return k * 2", "k * 2", "2 in k * 2", "return inner(4)", "4 in inner(4)"}
    assert len({m.key for m in mutants(module, "m")}) == len(list(mutants(module, "m")))


def test_a_mutant_is_compiled_into_its_function(module):
    wanted = next(m.key for m in mutants(module, "m") if (m.before, m.after) == ("k * 2", "k // 2"))
    compiled = {m.key: m for m in mutants(module, "m", {wanted}) if m.code is not None}
    assert list(compiled) == [wanted]
    space = {}
    exec(compile(SOURCE, str(module), "exec"), space)
    assert space["A"]().size == 8
    space["A"].size.fget.__code__ = compiled[wanted].code
    assert space["A"]().size == 2


def test_a_sample_stays_when_something_else_changes(module):
    first = {m.key for m in sample(list(mutants(module, "m")), 8, 0)}
    module.write_text("import os\n\n\ndef more(x):\n    return x + 1\n\n\n" + SOURCE)
    found = list(mutants(module, "m"))
    assert {m.key for m in sample([m for m in found if m.function != "more"], 8, 0)} == first
    assert {m.key for m in sample(found, 8, 1)} != {m.key for m in sample(found, 8, 0)}


@pytest.mark.exhaustive
def test_a_run_kills_mutants_of_the_price_of_circuits(tmp_path):
    root, output = Path(__file__).parents[2], tmp_path / "results.json"
    command = [sys.executable, "tests/mutation/run.py", "--parts", "cost", "--share", "0.2", "--processes", "1"]
    command += ["--tests", "tests/cost/test_circuit_cost.py", "-o", str(output)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    result = json.loads(output.read_text())
    assert result["tests"]["cost"] > 0
    assert result["files"]["cost/model.py"]["killed"] > 0
    assert any(name.endswith("(uncovered)") for name in result["survivors"])  # those of other prices
    assert result["all"]["drawn"] == len(result["outcomes"])
