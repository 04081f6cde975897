import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from cases import whole
from experiments.reproduce import reproduce
from experiments.store import read_store, read_text
from experiments.sweep import TableSweep, means, read_sweeps, run_sweep
from tinybayes.errors import FileError, TinybayesError
from tinybayes.learn.closed_form.structures import random_ordering
from tinybayes.model import Dataset, Variable

SMALL = TableSweep(
    name="small", data="iris", structure="naive", settings=4, epochs=4, short_epochs=2, finalists=1, batch_size=20
)


def test_settings_depend_on_the_seed_and_the_index_alone():
    wide = replace(SMALL, settings=200, bits=((2, 1), (3, 0)), size_penalties=(0.0, 1e-3))
    drawn = [wide.setting(i) for i in range(200)]
    assert drawn[7] == replace(wide, settings=8).setting(7)
    assert drawn[7] != replace(wide, seed=1).setting(7)
    assert {s["learning_rate"] for s in drawn} == {3e-3, 3e-2}
    assert {(s["ordering"], s["subset"]) for s in drawn} == {(o, p) for o in range(5) for p in range(5)}
    assert {s["bits"] for s in drawn} == {(2, 1), (3, 0)}
    assert all(10 <= s["lam"] <= 1000 and 0.1 <= s["gamma"] <= 100 and s["eta"] == 10 for s in drawn)


def test_pairs_of_ordering_and_subset_are_taken_in_turn():
    few = replace(SMALL, pairs=((3, 1), (0, 4)), learning_rates=(3e-3, 3e-2))
    pairs = [(s["ordering"], s["subset"]) for s in map(few.setting, range(6))]
    assert pairs == [(3, 1), (3, 1), (0, 4), (0, 4), (3, 1), (3, 1)]  # each with both rates
    for name in ("lam", "gamma"):
        assert few.setting(5)[name] == SMALL.setting(5)[name]


def test_random_trees_share_the_orderings_of_tan_subset():
    """differentiable_tan, 4.2: ten trees for each of the five orderings that TAN Subset and TAN All have."""
    columns = tuple(Variable(f"x{i}", (0, 1)) for i in range(16))
    rows = np.random.default_rng(0).integers(0, 2, (50, 17))
    data = Dataset(columns, Variable("class", (0, 1)), rows[:, :16], rows[:, 16])
    sweep = replace(SMALL, structure="random", shared_orderings=True)
    positions = {o: np.argsort(random_ordering(16, o)) for o in range(5)}
    trees = {}
    for ordering, subset in product(range(5), range(10)):
        parent = sweep._candidates(data, ordering, subset).parent[:, 0]
        child = np.flatnonzero(parent >= 0)
        assert len(child) == 15
        assert (positions[ordering][parent[child]] < positions[ordering][child]).all()
        trees[ordering, subset] = tuple(parent)
        if not subset:
            all_of = replace(sweep, structure="all")._candidates(data, ordering, 0)
            offered = [set(row[ok]) for row, ok in zip(all_of.parent, all_of.allowed, strict=True)]
            assert [len(offered[v]) for v in np.argsort(positions[ordering])] == list(range(1, 17))
    assert len(set(trees.values())) == 50
    own = replace(sweep, shared_orderings=False)
    free = [own._candidates(data, 0, subset).parent[:, 0] for subset in range(10)]
    late = [positions[0][p[c]] > positions[0][c] for p in free for c in np.flatnonzero(p >= 0)]
    assert any(late)  # without it, every tree has an ordering of its own


def test_a_sweep_is_taken_up_where_it_was_left(tmp_path):
    store, told = tmp_path / "s.jsonl", []
    assert run_sweep(SMALL, store, tell=told.append, seconds=-1) is None
    first = run_sweep(SMALL, store, tell=told.append)
    lines = store.read_text().splitlines()
    assert len(lines) == 4 + len(first["finalists"])
    # Half of the file is lost and its last line cut short: only the rest is run again.
    store.write_text("\n".join(lines[:2]) + "\n" + lines[2][:20] + "\n")
    told.clear()
    again = run_sweep(SMALL, store, tell=told.append)
    assert told[0].startswith("small stage 1 fold 0: 2 runs")
    assert again["best_on_test"]["setting"] == first["best_on_test"]["setting"]
    np.testing.assert_allclose(again["finalists"], first["finalists"], atol=0.05)
    told.clear()
    run_sweep(SMALL, store, tell=told.append)
    assert not told
    # The number chosen on validation rows belongs to the best of stage 1 by validation error.
    whole = [json.loads(line) for line in store.read_text().splitlines() if line.endswith("}")]
    stage1 = [record for record in whole if record["stage"] == 1]
    best = min(stage1, key=lambda r: r["validation_error"])["setting"]
    assert again["chosen_on_validation"]["setting"] == SMALL.setting(best)


def test_runs_are_trained_and_stored_in_parts(tmp_path):
    told = []
    summary = run_sweep(replace(SMALL, short_epochs=0), tmp_path / "s.jsonl", tell=told.append, together=3)
    assert [line.split(",")[0] for line in told] == [f"small stage 2 fold 0: {runs} runs" for runs in (3, 1)]
    assert len(summary["finalists"]) == 4


def test_stores_are_read_by_sweep_and_averaged_over_folds(tmp_path):
    store = tmp_path / "s.jsonl"
    assert read_store(store) == {}
    runs = [("a", 1, 0, 0, 0.3), ("a", 2, 0, 0, 0.1), ("a", 2, 1, 0, 0.3), ("a", 2, 0, 5, 0.7), ("b", 2, 0, 0, 0.9)]
    names = ("sweep", "stage", "fold", "setting", "test_error")
    records = [dict(zip(names, run, strict=True)) for run in runs]
    lines = [json.dumps(record) for record in records]
    store.write_text("\n".join([lines[0], "{", "3", "{}", *lines[1:]]) + "\n" + lines[0][:-9])
    found = read_store(store)
    assert found == {
        "a": {(r[1], r[2], r[3]): s for r, s in zip(runs[:4], records[:4], strict=True)},
        "b": {(2, 0, 0): records[4]},
    }
    assert means(found["a"], 2, "test_error") == pytest.approx({0: 0.2, 5: 0.7})
    assert means(found["a"], 1, "test_error") == {0: 0.3}


@pytest.mark.parametrize("structure", ["chow-liu", *whole("random", "subset", "all", "order-free", "pseudo")])
def test_every_structure_can_be_swept(structure, tmp_path):
    sweep = replace(SMALL, structure=structure, k=2, settings=2)
    assert 0 <= run_sweep(sweep, tmp_path / "s.jsonl", tell=lambda line: None)["best_on_test"]["error"] <= 1


def test_files_of_sweeps(tmp_path):
    path = tmp_path / "f.toml"
    path.write_text('[[sweep]]\nname = "a"\ndata = "iris"\nstructure = "naive"\nbits = [[2, 1]]\nlam = [0.0, 1.0]\n')
    assert read_sweeps(path) == [TableSweep(name="a", data="iris", structure="naive", bits=((2, 1),), lam=(0.0, 1.0))]
    report = reproduce(path, tmp_path / "out", quick=True)
    assert json.loads((tmp_path / "out" / "f-quick.json").read_text()) == json.loads(json.dumps(report))
    assert report["provenance"][-1]["device"].startswith("cpu")
    stored = read_text(tmp_path / "out" / "f-quick.jsonl")
    path.write_text('[[sweep]]\nname = "b"\ndata = "iris"\nstructure = "naive"\n' + path.read_text())
    again = reproduce(path, tmp_path / "out", quick=True, only=["a"])
    assert (again, read_text(tmp_path / "out" / "f-quick.jsonl")) == (report, stored)
    both = reproduce(path, tmp_path / "out", quick=True, only=["b"])
    assert [one["sweep"] for one in both["results"]] == ["b", "a"]  # in the order of the file
    assert both["results"][1] == json.loads(json.dumps(report))["results"][0]
    with pytest.raises(TinybayesError, match="one of the sweeps b, a"):
        reproduce(path, tmp_path, only=["zzz"])
    for text in ("", "nonsense", "[[sweep]]\nname = 1\ncolour = 3\n"):
        path.write_text(text)
        with pytest.raises(FileError, match="a file of sweeps"):
            read_sweeps(path)
    with pytest.raises(FileError, match="a file of sweeps"):
        read_sweeps(tmp_path / "nowhere.toml")
    with pytest.raises(TinybayesError, match="a structure that can be swept"):
        run_sweep(replace(SMALL, structure="ladder"), tmp_path / "x.jsonl", tell=lambda line: None)
