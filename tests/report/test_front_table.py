"""The front in the terminal: 80 columns, marks, and which figures are means over several splits."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from tinybayes.cli.explore import tell
from tinybayes.report.front_table import ROWS, front_table, shown_models
from tinybayes.search.conclude import Exploration


def exploration(count=4, chosen="m1", metric="error"):
    models = []
    for i in range(count):
        wrong = 0.3 - 0.25 * i / count
        model = {"id": f"m{i}", "label": f"tree-augmented in closed form with many words {i}, 4 bits, 1.2 kB"}
        model |= {"validation_error": wrong, "test_error": wrong + 0.01, "flash": 100 * (i + 1), "instructions": 1234.0}
        model |= {"on_front": True, "tables_only": False, "within": i < 3 * count // 4, "checked": False}
        model |= {"standard_error": 0.0161}
        if metric != "error":
            model |= {"validation_value": wrong / 2, "test_value": wrong / 3}
        models.append(model)
    models[1]["checked"] = True
    models[-1]["on_front"] = count < 3
    picked = next((model for model in models if model["id"] == chosen), None)
    document = {"budget": {"core": "cortex-m0+"}, "metric": {"name": metric}}
    return Exploration(Path("search"), models, picked, document)


def printed(result, width=80, **options):
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(front_table(result, **options))
    return console.file.getvalue()


def test_names_are_not_wrapped_and_rows_are_marked():
    text = printed(exploration())
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line for line in lines if "tree-augmented" in line]
    assert len(rows) == 3
    assert [line[:2].strip() for line in rows] == ["", "*", ""]
    assert all("…" in row for row in rows)
    assert "23.75 ± 1.6 %" in rows[1]
    assert "±" not in rows[0]
    assert "* chosen" in text
    assert "others are of one split" in text


def test_what_exceeds_the_budget_is_marked():
    result = exploration(8, chosen="m1")
    text = printed(result)
    rows = [line for line in text.splitlines() if "tree-augmented" in line]
    assert [line[:2].strip() for line in rows] == ["", "*", "", "", "", "", "!"]
    assert "! over the budget" in text


def test_twenty_rows_unless_all_are_asked_for():
    result = exploration(50, chosen="m1")
    few = shown_models(result)
    assert len(few) == ROWS
    assert "m1" in [model["id"] for model in few]
    assert [m["flash"] for m in few] == sorted(m["flash"] for m in few)
    assert all(model["within"] for model in few)
    assert "29 more with --all" in printed(result)
    assert len(shown_models(result, whole=True)) == 49
    assert "more with" not in printed(result, whole=True)


@pytest.mark.parametrize("width", [80, 120])
def test_another_metric_and_no_choice(width):
    text = printed(exploration(chosen=None, metric="auc"), width)
    assert max(map(len, text.splitlines())) <= width
    assert " ± 0.016" in text
    assert "* chosen" not in text


def test_what_was_cut_short_is_said(capsys):
    result = exploration(chosen=None)
    result.document.update(failures=[], cut=["8 settings were stopped early", "it was ended early"])
    tell(result)
    said = " ".join(capsys.readouterr().out.split())
    assert "Cut short: 8 settings were stopped early; it was ended early." in said
    result.document["cut"] = []
    tell(result)
    assert "Cut short" not in capsys.readouterr().out
