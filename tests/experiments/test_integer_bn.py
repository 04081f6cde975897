"""The baseline by branch and bound against all tables of integers, one by one."""

import itertools
import json

import numpy as np
import pytest

from experiments.records import Experiment
from experiments.resource_efficient import integer_bn as bn
from experiments.resource_efficient.bayes_claims import Results, beats_integer
from experiments.resource_efficient.integer_bn_page import integer_networks
from made_up import MADE
from tinybayes.compress import quantize
from tinybayes.infer import evaluate
from tinybayes.learn import maximum_likelihood, naive_bayes
from tinybayes.model import Dataset, Fixed, Variable


def toy(seed, rows=14, sizes=(2, 2), classes=2):
    generator = np.random.default_rng(seed)
    y = generator.integers(classes, size=rows)
    X = np.column_stack([(generator.random(rows) < 0.2 + 0.5 * (y > 0)) * (size - 1) for size in sizes])
    X[0], X[1] = 0, np.array(sizes) - 1  # every value occurs
    variables = [Variable(f"x{i}", tuple(range(size))) for i, size in enumerate(sizes)]
    return Dataset(tuple(variables), Variable("class", tuple(range(classes))), X, y)


def by_enumeration(data, form, gamma):
    """Return the least mean loss of all naive Bayes tables within the limits, from the definitions."""
    step, top = 2.0**-form.fraction, 2**form.bits - 1
    limit = np.exp(step / 2) + np.exp(-top * step)  # of two values
    pairs = [p for p in itertools.product(range(top + 1), repeat=2) if np.exp(-step * np.array(p)).sum() <= limit]
    assert len(pairs) > 1
    # A table is a pair for the prior and, for either feature, a pair for each class.
    tables = np.array(list(itertools.product(range(len(pairs)), repeat=5)))
    logs = -step * np.array(pairs)[tables]  # (tables, which distribution, value)
    loss = np.zeros(len(tables))
    for x, y in zip(data.X, data.y, strict=True):
        score = [logs[:, 0, c] + logs[:, 1 + c, x[0]] + logs[:, 3 + c, x[1]] for c in (0, 1)]
        loss += np.maximum(0, gamma - (score[y] - score[1 - y]))
    return loss.min() / len(data)


@pytest.mark.parametrize(
    ("form", "gamma", "seed"),
    [
        (Fixed(1, 0), 1.5, 0),
        (Fixed(2, -1), 5.0, 1),
        (Fixed(3, -2), 9.0, 4),
        (Fixed(1, 1), 2.0, 2),
        (Fixed(2, 0), 3.3, 3),
    ],
    ids=str,
)
def test_the_program_finds_the_least_loss_of_all_tables(form, gamma, seed):
    data = toy(seed)
    problem = bn.Problem(data, form, gamma)
    least = by_enumeration(data, form, gamma)
    state = bn.relax(problem, 30)
    k, bound = bn.full(problem, state, 30)
    assert least > 0.1
    assert bn.loss(problem, k) == pytest.approx(least, abs=1e-6)
    assert bound == pytest.approx(least, rel=1e-3)
    assert state.bound <= least + 1e-6
    beside, _ = bn.near(problem, state, 30)
    rounded = bn.rounded(problem, state.k)
    for tables in (k, rounded, beside):
        assert tables is not None
        assert (tables == np.round(tables)).all()
        assert (bn.sums(problem, tables) <= problem.limit + 1e-6).all()
        assert bn.loss(problem, tables) >= least - 1e-6


def test_tables_that_rounding_gives_are_within_the_limits():
    generator = np.random.default_rng(0)
    data = toy(5, sizes=(3, 9), classes=3)
    for form in (Fixed(1, 0), Fixed(3, -2), Fixed(2, 1), Fixed(4, 4)):
        problem = bn.Problem(data, form, 1.0)
        for _ in range(50):
            free = np.exp(generator.normal(scale=3.0, size=problem.parameters))
            shares = free / np.bincount(problem.group, free)[problem.group]
            k = form.encode(np.log(shares)).astype(float)
            assert (np.bincount(problem.group, np.exp(-k * problem.step)) <= problem.limit + 1e-9).all()
            assert np.allclose(bn.sums(problem, k), np.bincount(problem.group, np.exp(-k * problem.step)))
        assert (bn.sums(problem, np.zeros(problem.parameters)) > problem.limit).any()


def test_parameters_and_errors_are_those_of_the_network():
    data, new = toy(6, 60, (3, 5), 3), toy(7, 60, (3, 5), 3)
    form = Fixed(3, 1)
    problem = bn.Problem(data, form, 1.0)
    net = quantize(maximum_likelihood(data, naive_bayes(data), smoothing=1.0), form)
    k = bn.closed_form(problem)
    assert len(k) == sum(cpd.table.size for cpd in net.cpds)
    assert sorted(k) == sorted(np.concatenate([cpd.table.reshape(-1) for cpd in net.cpds]))
    assert bn.error(k, new) == pytest.approx(evaluate(net, new).error)


def test_a_run_says_what_each_step_came_to():
    problem = bn.Problem(toy(8, 40, (3, 4), 3), Fixed(3, 0), 6.0)
    found = bn.solve(problem, problem.data, {"relaxed": 20, "near": 20, "full": 20})
    assert found["bound"] <= found["loss"] == min(found[s]["loss"] for s in ("rounded", "near", "full"))
    assert found["gap"] == pytest.approx((found["loss"] - found["bound"]) / found["loss"], abs=1e-4)
    assert found["gap"] < 1e-3
    assert found["relaxed"]["loss"] <= found["loss"] + 1e-6


def test_the_plan_names_runs_once():
    plan = bn.tomllib.loads((bn.HERE / "integer_bn.toml").read_text())
    keys = [tuple(key.items()) for key, _, _ in bn.runs(plan)]
    assert len(set(keys)) == len(keys) > 0


def test_the_section_shows_the_best_setting_of_each_width(tmp_path):
    step, ours = {"loss": 1.0, "error": 0.3, "seconds": 1.0}, {"error": 0.2, "seconds": 1.0}
    run = {"data": "usps", "rows": 9, "used": 9, "bits": 1, "integer": 3, "gamma": 20, "limits": {"relaxed": 5}}
    run |= {"relaxed": step, "rounded": step, "gap": 0.25, "seconds": 4.0, "ours, same rows": ours}
    results = [{**run, "error": 0.5}, {**run, "integer": 4, "error": 0.4}, {**run, "bits": 2, "error": None}]
    (tmp_path / "results").mkdir()
    for name, text in (("figure6.toml", "sweep = []"), ("results/figure6.jsonl", "")):
        (tmp_path / name).write_text(text)
    (tmp_path / "results" / "integer_bn.json").write_text(
        json.dumps({"provenance": [{**MADE, "note": "busy"}], "results": results})
    )
    text = integer_networks(Experiment(tmp_path / "figure6.toml"), [])
    row = "| usps | 9 | 1 | 2 | 4 | 20 | 30.00 | 30.00 | 40.00 | 25.0 % | 5 | 4 | 20.00 (1 s) |  |  |"
    assert [line for line in text.splitlines() if line.startswith("| usps")] == [row]
    ours = [{"data": "usps", "used": 9, "bits": 1, "settings": 16, "error": 0.15, "by training": 0.25}]
    made = {"provenance": [MADE], "results": ours}
    (tmp_path / "results" / "integer_ours.json").write_text(json.dumps(made))
    trained = {"data": "usps", "structure": "naive", "parameters": 8650, "trained": [{"bits": 1, "error": 0.125}]}
    text = integer_networks(Experiment(tmp_path / "figure6.toml"), [trained])
    assert "| 20.00 (1 s) | 15.00 (25.00) | 12.50 |" in text
    found = Results([], {}, {}, {}, {}, {}, results, ours)
    (pair,) = found.same_rows()
    assert (pair[0]["error"], pair[1]["error"]) == (0.4, 0.15)
    assert list(beats_integer(found)) == [(True, "usps, 9 rows, 1 bit: 15.00 against 40.00")]
    assert f"{MADE['date'][:10]}: busy." in text
    assert "none of the 2 runs" in " ".join(text.split())
    assert "all 2 runs took 8 s" in " ".join(text.split())
    assert "Not even relaxed within the limit: usps with 2 bits" in text
