"""Sweeps over networks: their settings, who goes on, what is summed up."""

import json
from dataclasses import replace

import pytest

from experiments.store import read_store
from experiments.sweep import NetSweep, finalists, others, run_sweep
from tinybayes.learn.training.net_sizes import hidden_within

SMALL = NetSweep(
    name="small",
    data="iris",
    budgets=(2, 4),
    weight_bits=(2, 4),
    layers=(2,),
    batch_norm=(True,),
    activations=("relu", "sign"),
    learning_rates=(0.03, 0.003),
    epochs=2,
    batch_size=20,
    short_epochs=1,
    finalists=1,
    seeds=2,
)


def test_settings_come_in_an_order_that_stores_rely_on():
    found = SMALL.settings
    assert len(found) == 2 * 2 * 2 * 2
    assert [s["learning_rate"] for s in found[:4]] == [0.03, 0.003] * 2
    assert [s["bits"] for s in found[:4]] == [2, 2, 4, 4]
    assert [s["activation"] for s in found[::4]] == ["relu", "sign"] * 2
    assert [s["budget"] for s in found] == [2] * 8 + [4] * 8
    # Further budgets at the end leave the numbers of the others as they were.
    assert replace(SMALL, budgets=(2, 4, 8)).settings[:16] == found


def store(validation, test, final):
    """Runs of both stages: errors of settings in stage 1, and those of both seeds in stage 2."""
    done = {}
    for index, pair in enumerate(zip(validation, test, strict=True)):
        done[1, 0, 2 * index] = {"validation_error": pair[0], "test_error": pair[1]}
    for index, errors in final.items():
        for seed, error in enumerate(errors):
            record = {"validation_error": None, "test_error": error, "hidden": [3], "bits_used": 99, "operations": 9}
            done[2, 0, 2 * index + seed] = record
    return done


VALIDATION = [0.5, 0.2, 0.4, 0.4, *[0.3, 0.3, 0.1, 0.3], *[0.2] * 7, 0.1]
TEST = [0.3, 0.4, 0.4, 0.4, *[0.2, 0.3, 0.3, 0.3], *[0.9, 0.1, *[0.9] * 5, 0.1]]


def test_the_best_of_each_budget_and_activation_go_on():
    done = store(VALIDATION, TEST, {})
    # By test error 0, 4, 9 and 15; by validation error 1, 6, 8 (the first of equals) and 15.
    assert finalists(SMALL, done) == [0, 1, 4, 6, 8, 9, 15]
    assert set(finalists(SMALL, done)) < set(finalists(replace(SMALL, finalists=2), done))


def test_the_next_best_make_up_the_wanted_number_of_settings():
    done = store(VALIDATION, TEST, {})
    chosen = set(finalists(SMALL, done))
    assert others(SMALL, done, chosen) == []
    # Of each four, in turn by test and by validation error: 2; 5; 10; 12 and 13.
    assert others(replace(SMALL, at_least=3), done, chosen) == [2, 5, 10, 12, 13]
    assert sorted([*chosen, *others(replace(SMALL, at_least=9), done, chosen)]) == list(range(16))


def test_settings_with_one_seed_count_as_runs_of_that_seed():
    final = {0: (0.2, 0.1), 1: (0.15, 0.19), 2: (0.05,)}
    (row,) = SMALL.summary(store(VALIDATION, TEST, final))["rows"]
    assert row["best_on_test"]["error"] == 0.05
    assert row["best_on_test"]["bits"] == 4
    assert row["chosen_on_validation"]["error"] == pytest.approx(0.17)


def test_a_summary_has_both_protocols_and_leaves_out_what_is_not_finished():
    final = {0: (0.2, 0.1), 1: (0.15, 0.19), 4: (0.3, 0.3), 15: (0.4, 0.2)}
    found = SMALL.summary(store(VALIDATION, TEST, final))
    rows = {(row["budget"], row["activation"]): row for row in found["rows"]}
    assert list(rows) == [(2, "relu"), (2, "sign"), (4, "sign")]
    first = rows[2, "relu"]
    assert first["best_on_test"]["error"] == 0.1
    assert first["best_on_test"]["learning_rate"] == 0.03
    assert first["chosen_on_validation"]["error"] == pytest.approx(0.17)
    assert first["chosen_on_validation"]["validation_error"] == 0.2
    assert first["best_on_test"]["bits_used"] == 99
    assert rows[4, "sign"]["chosen_on_validation"]["error"] == pytest.approx(0.3)
    assert found["runs"] == 16 + 8


def test_a_sweep_is_taken_up_where_it_was_left(tmp_path):
    path, told = tmp_path / "s.jsonl", []
    sweep = replace(SMALL, activations=("relu",), weight_bits=(4,))
    assert run_sweep(sweep, path, tell=told.append, seconds=-1) is None
    first = run_sweep(sweep, path, tell=told.append)
    lines = path.read_text().splitlines()
    assert len(first["rows"]) == 2
    assert len(read_store(path)["small"]) == len(lines)
    path.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:30])
    told.clear()
    again = run_sweep(sweep, path, tell=told.append)
    assert len(told) == 1
    assert "stage 2 fold 0: 1 runs" in told[0]
    assert again["rows"] == first["rows"]
    last = json.loads(lines[-1])
    assert last["bits_used"] > 0
    assert last["operations"] > 0


def test_settings_beyond_the_finalists_run_once(tmp_path):
    sweep = replace(SMALL, activations=("relu",), budgets=(2,), at_least=3)
    run_sweep(sweep, tmp_path / "s.jsonl", tell=lambda line: None)
    runs = [run for stage, _, run in read_store(tmp_path / "s.jsonl")["small"] if stage == 2]
    seeds = [sum(run // 2 == index for run in runs) for index in range(4)]
    assert sorted(seeds, reverse=True)[:3] in ([2, 2, 1], [2, 1, 1])
    assert all(run % 2 == 0 for run in runs if seeds[run // 2] == 1)


def test_networks_of_a_sweep_are_as_large_as_naive_bayes():
    from tinybayes.data import named

    train, _ = named.load("iris")
    naive = 3 * sum(v.cardinality for v in train.variables) + 3
    sweep = replace(SMALL, budgets=(40,), label_smoothing=0.25, seeds=8)
    run = sweep.configuration(train, 7, None)
    size = {"layers": 2, "weight_bits": 2, "inputs": 4, "classes": 3, "image": None, "batch_norm": True}
    assert (run.hidden, run.bits, run.seed, run.label_smoothing) == (
        hidden_within(40 * naive, "bits", **size),
        2,
        7,
        0.25,
    )
