"""Every file of results says how, from what, when and on what machine it was made."""

import json
import re
from pathlib import Path

import pytest

from experiments.provenance import origins, provenance
from experiments.store import exists, read_text

ROOT = Path(__file__).parents[1]
REPORTS = sorted(
    path.with_name(path.name.removesuffix(".gz"))
    for folder in ("experiments", "benchmarks")
    for path in (ROOT / folder).rglob("*.json*")
    if path.name.endswith((".json", ".json.gz"))
)
COMMIT = re.compile(r"[0-9a-f]{7,40}( with .*)?")  # "with changes in src", or "with src of" another one


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_report_names_command_commit_date_and_machine(path):
    report = json.loads(read_text(path))
    sweeps = path.parent.parent / f"{path.stem}.toml"
    runs = origins(report, f"python -m experiments {sweeps.relative_to(ROOT)}" if sweeps.exists() else None)
    assert runs
    for run in runs:
        assert run["command"], run
        assert COMMIT.fullmatch(run["commit"]), run
        assert re.search(r"\b2\d{3}-[01]\d-[0-3]\d", run["date"]), run  # for some searches only two hours are known
        assert run["machine"], run
        assert not re.search(r"(^|\s)/\w", run["command"])  # paths of a machine say nothing elsewhere


def test_every_store_has_a_report():
    stores = [p for p in (ROOT / "experiments").rglob("*.jsonl*") if not p.name.startswith("learning-quick")]
    assert len(stores) > 10
    for store in stores:
        report = store.name.removesuffix(".gz").removesuffix("l").replace("retrained", "models")
        assert exists(store.with_name(report)), store


def test_runs_take_what_they_lack_from_the_top():
    run = {"date": "2026-01-01", "commit": "abcdef0"}
    whole = {"command": "python x.py", "commit": "abcdef0", "date": "2026-01-01", "machine": "a, 2 cores"}
    assert origins({"command": "python x.py", "provenance": [run | {"cpu": "a", "cores": 2}]}) == [whole]
    assert origins({"about": {"command": "python x.py", "machine": "a, 2 cores"}, "lines": [run]}) == [whole]
    assert origins([run]) == [{**run, "command": None, "machine": None}]
    assert origins({"results": [1]}) == []


def test_new_results_name_everything():
    (made,) = origins({"provenance": provenance(1.0, packages=("numpy",))})
    assert all(made.values())
    assert made["command"].startswith("python ")
