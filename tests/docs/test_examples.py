"""Every script under examples/ runs, from another directory and without data to download."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PRINTED = {  # a line that only a run to the end prints
    "ask_a_network": "P(rain | wet) = 0.3539",
    "fit_and_export": "8 bits: 5.01 % error, 6,090 B",
    "learn_a_density": "three samples:",
    "search_under_a_budget": "chosen:",
    "tie_and_relearn": "relearned",
}


SCRIPTS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.exhaustive] if path.stem == "search_under_a_budget" else [])
    for path in sorted(EXAMPLES.glob("*.py"))
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_example_runs(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TINYBAYES_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    assert PRINTED[script.stem] in capsys.readouterr().out
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 45


def test_the_index_lists_every_example():
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"[{script.name}]({script.name})" in index for script in EXAMPLES.glob("*.py"))
