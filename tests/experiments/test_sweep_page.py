"""The HTML page of a file of sweeps, and the command that runs it."""

import json

import numpy as np
import pytest

from experiments.__main__ import main
from experiments.sweep import NetSweep, TableSweep, read_sweeps
from experiments.sweep_page import write_sweeps_page

FILE = """
[[sweep]]
name = "naive <b>"
data = "satimage"
structure = "naive"
settings = 4
folds = 2
bits = [[2, 1], [3, 2]]
learning_rates = [0.01]

[[sweep]]
name = "subset"
data = "satimage"
structure = "subset"
settings = 2
folds = 2

[[nets]]
name = "conv"
data = "usps"
kind = "conv"
budgets = [1]
layers = [2]
seeds = 2
"""


def line(sweep, stage, fold, place, **more):
    return {"sweep": sweep, "stage": stage, "fold": fold, "setting": place, "validation_error": None} | more


def runs():
    """Two settings of each sweep; the second of the first sweep lacks a fold, and one is not of this file."""
    found = [line("naive <b>", 1, f, i, validation_error=0.1 + 0.1 * f, test_error=0.9) for f in (0, 1) for i in (0, 1)]
    found += [line("naive <b>", 2, f, 0, test_error=0.2 + 0.2 * f, parameters=100, operations=30) for f in (0, 1)]
    found += [line("naive <b>", 2, 0, 1, test_error=0.01, parameters=100, operations=30)]
    found += [line("subset", 1, 0, 1, validation_error=0.05, test_error=0.9)]
    found += [line("subset", 2, f, 1, test_error=0.1, parameters=200 + 100 * f) for f in (0, 1)]
    found += [line("subset", 2, f, 7, test_error=0.0, parameters=1) for f in (0, 1)]
    found += [line("conv", 1, 0, 6, validation_error=0.3, test_error=0.9, hidden=[3])]
    net = {"hidden": [3], "bits_used": 1001, "operations": 500}
    found += [line("conv", 2, 0, 6 + seed, test_error=0.1 + 0.1 * seed, **net) for seed in (0, 1)]
    return [*found, line("another", 2, 0, 0, test_error=0.1)]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "table.toml"
    path.write_text(FILE)
    return path


def store(file, records):
    (file.parent / "table.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def held(path):
    return json.loads(path.read_text().split('id="data">')[1].split("</script>")[0])


def test_a_page_of_stored_runs(file):
    store(file, runs())
    (file.parent / "table.json").write_text(json.dumps({"provenance": [{"date": "then", "device": "cpu"}]}))
    path = write_sweeps_page(file, file.parent)
    assert path == file.parent / "table.html"
    found = held(path)
    naive, subset, conv = found["models"]
    first, second, third = read_sweeps(file)
    assert isinstance(first, TableSweep)
    assert isinstance(third, NetSweep)
    assert [m["family"] for m in found["models"]] == ["naive", "subset", "conv"]
    assert [m["group"] for m in found["models"]] == ["satimage", "satimage", "usps"]
    assert [m["test_error"] for m in found["models"]] == pytest.approx([0.3, 0.1, 0.15])
    assert [m["validation_error"] for m in found["models"]] == pytest.approx([0.15, 0.05, 0.3])
    assert (naive["bits"], naive["operations"], naive["parameters"]) == (300, 30, 100)
    assert (subset["bits"], subset["operations"], subset["parameters"]) == (250 * 32, None, 250)
    assert (conv["bits"], conv["bytes"], conv["operations"], conv["parameters"]) == (1001, 126, 500, None)
    assert naive["settings"]["lam"] == first.setting(0)["lam"]
    assert subset["settings"]["lam"] == second.setting(1)["lam"]
    assert conv["settings"]["bits"] == third.setting(3)["bits"]
    assert all(m["on_front"] for m in found["models"])  # usps is not compared with satimage
    assert found["chosen"] == subset["id"]
    assert found["created"] == "then"
    assert "short runs" in found["title"]
    assert "<b>" not in path.read_text().split('id="data">')[1].split("</script>")[0]


def test_without_first_stages_test_errors_are_compared_and_the_title_says_so(file):
    store(file, [record for record in runs() if (record["sweep"], record["stage"]) != ("subset", 1)])
    found = held(write_sweeps_page(file, file.parent))
    assert "test errors" in found["title"]
    assert [m["validation_error"] for m in found["models"]] == [None] * 3


@pytest.mark.parametrize("kept", [[], [0, 1, 2, 3], [6], [-1], [4]])
def test_stores_without_a_finished_setting_give_no_page(file, kept):
    if kept:
        store(file, [runs()[i] for i in kept])
    assert write_sweeps_page(file, file.parent) is None
    assert not (file.parent / "table.html").exists()


def test_the_command_runs_sweeps_and_writes_the_page(tmp_path, capsys):
    path = tmp_path / "f.toml"
    path.write_text('[[sweep]]\nname = "a"\ndata = "iris"\nstructure = "naive"\n')
    main([str(path), "--quick", "-o", str(tmp_path / "out")])
    assert "f-quick.html" in capsys.readouterr().out
    page = held(tmp_path / "out" / "f-quick.html")
    records = [json.loads(text) for text in (tmp_path / "out" / "f-quick.jsonl").read_text().splitlines()]
    finals = [record for record in records if record["stage"] == 2]
    assert [m["test_error"] for m in page["models"]] == pytest.approx([r["test_error"] for r in finals], abs=1e-9)
    assert {m["operations"] for m in page["models"]} == {4 * 3}
    assert np.all([m["bits"] == 32 * r["parameters"] for m, r in zip(page["models"], finals, strict=True)])
    main([str(path), "--quick", "-o", str(tmp_path / "out"), "--json"])
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "out" / "f-quick.json").read_text())
    with pytest.raises(SystemExit, match="2"):
        main([str(path), "--only", "zzz"])
    assert "error:" in (message := capsys.readouterr().err)
    assert "one of the sweeps a" in message
