"""Sweeps over networks: their settings, who goes on, what is summed up; and widths from budgets against real prices."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural_nets import neural_net
from tinybayes.cost.neural_net import paper_cost
from tinybayes.learn.training import net_sizes
from tinybayes.search.net_sweep import NetSweep, configuration, finalists, run_net_sweep, summary
from tinybayes.search.store import read_store

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
    found = SMALL.settings()
    assert len(found) == 2 * 2 * 2 * 2
    assert [s["learning_rate"] for s in found[:4]] == [0.03, 0.003] * 2
    assert [s["bits"] for s in found[:4]] == [2, 2, 4, 4]
    assert [s["activation"] for s in found[::4]] == ["relu", "sign"] * 2
    assert [s["budget"] for s in found] == [2] * 8 + [4] * 8
    # Further budgets at the end leave the numbers of the others as they were.
    assert replace(SMALL, budgets=(2, 4, 8)).settings()[:16] == found


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


def test_a_summary_has_both_protocols_and_leaves_out_what_is_not_finished():
    final = {0: (0.2, 0.1), 1: (0.15, 0.19), 4: (0.3, 0.3), 15: (0.4, 0.2)}
    found = summary(SMALL, store(VALIDATION, TEST, final))
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
    assert run_net_sweep(sweep, path, tell=told.append, seconds=-1) is None
    first = run_net_sweep(sweep, path, tell=told.append)
    lines = path.read_text().splitlines()
    assert len(first["rows"]) == 2
    assert len(read_store(path)["small"]) == len(lines)
    path.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:30])
    told.clear()
    again = run_net_sweep(sweep, path, tell=told.append)
    assert len(told) == 1
    assert "stage 2 fold 0: 1 runs" in told[0]
    assert again["rows"] == first["rows"]
    last = json.loads(lines[-1])
    assert last["bits_used"] > 0
    assert last["operations"] > 0


def test_networks_of_a_sweep_are_as_large_as_naive_bayes():
    from tinybayes.data import named

    train, _ = named.load("iris")
    naive = 3 * sum(v.cardinality for v in train.variables) + 3
    sweep = replace(SMALL, budgets=(40,), smoothing=0.25)
    run = configuration(sweep, train, sweep.settings()[0], 7, None)
    width = net_sizes.hidden_units(40 * naive, inputs=4, classes=3, weight_bits=2, layers=2, batch_norm=True)
    assert (run.hidden, run.bits, run.seed, run.smoothing) == ((width,), 2, 7, 0.25)


def nearest(price, budget, widths):
    return min(widths, key=lambda width: (abs(price(width) - budget), width))


sizes = st.fixed_dictionaries({"classes": st.integers(2, 8), "batch_norm": st.booleans()})


@given(sizes, st.integers(1, 8), st.integers(2, 4), st.floats(1, 12))
def test_units_from_bits_and_operations_come_nearest_the_budget(size, bits, layers, about):
    """Real networks are built and priced; `about` so many units are asked for."""

    def price(units, of):
        hidden = (units,) * (layers - 1)
        net = neural_net(hidden, bits=bits, classes=size["classes"])
        return getattr(paper_cost(net, batch_norm=size["batch_norm"]), of)

    common = {"inputs": 7, "layers": layers, **size}
    for of, solve in (
        ("bits", lambda amount: net_sizes.hidden_units(amount, weight_bits=bits, **common)),
        ("operations", lambda amount: net_sizes.units_for_operations(amount, **common)),
    ):
        low, high = price(int(about), of), price(int(about) + 1, of)
        budget = round(low + (high - low) * (about % 1))
        found, best = solve(budget), nearest(lambda units, of=of: price(units, of), budget, range(1, 15))
        # Prices of more layers bend upwards, so that the middle between two widths lies below that of their prices.
        as_near = abs(price(found, of) - budget) == abs(price(best, of) - budget)
        assert as_near or (layers > 2 and found == best + 1)
        assert solve(price(5, of)) == 5


@given(sizes, st.integers(1, 8), st.integers(1, 9))
def test_channels_from_bits_and_operations_meet_exact_budgets(size, bits, channels):
    image = (8, 6)
    for convolutions in (1, 2):
        hidden = (channels, 2 * channels)[:convolutions]
        layers = tuple((c,) for c in hidden)
        price = paper_cost(
            neural_net(layers, bits=bits, classes=size["classes"], image=image), batch_norm=size["batch_norm"]
        )
        common = {"image": image, "convolutions": convolutions, **size}
        assert net_sizes.channels(price.bits, weight_bits=bits, **common) == hidden
        assert net_sizes.channels_for_operations(price.operations, **common) == hidden


def test_budgets_too_small_give_the_smallest_network():
    dense = {"inputs": 50, "classes": 10, "weight_bits": 8, "batch_norm": True}
    assert [net_sizes.hidden_units(10, layers=layers, **dense) for layers in (2, 3, 5)] == [1, 1, 1]
    assert net_sizes.channels(
        10, image=(8, 8), classes=10, weight_bits=8, convolutions=2, batch_norm=False
    ) == (1, 1)  # fmt: skip
    smallest = net_sizes.smallest_bits(inputs=7, classes=3, weight_bits=4)
    assert smallest == paper_cost(neural_net((1,), bits=4, classes=3), batch_norm=False).bits


def test_the_root_is_that_of_the_polynomial_of_the_paper():
    # b (L-2) x^2 + (b (n + C) + (L-1) beta) x + 32 C - T = 0
    budget, b, layers, n, classes = 60_000, 3, 4, 40, 10
    roots = np.roots([b * (layers - 2), b * (n + classes) + (layers - 1) * 64, 32 * classes - budget])
    found = net_sizes.hidden_units(
        budget, inputs=n, classes=classes, weight_bits=b, layers=layers, batch_norm=True
    )  # fmt: skip
    assert found == round(max(roots.real))
