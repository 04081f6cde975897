"""Options of training by gradient, as `learn_classifier` hands them on."""

from contextlib import nullcontext
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_iris

from cases import exhaustive
from strategies import easy
from tinybayes.data.variables import Discretization
from tinybayes.errors import TinybayesError, TinybayesWarning
from tinybayes.estimators import BayesNetClassifier
from tinybayes.infer import evaluate
from tinybayes.learn import HybridOptions, chow_liu, learn_classifier
from tinybayes.learn.hybrid import _unused, chosen, encodings_tried, hold_out
from tinybayes.learn.training import engine
from tinybayes.learn.training import tables as driver
from tinybayes.model import Fixed, Float

SHORT = {"epochs": 12, "batch_size": 50, "learning_rate": 0.1, "input_noise": 0.0, "gamma": 10.0}


@pytest.fixture
def calls(monkeypatch):
    """What `train` was called with, and what it returned."""
    seen = []

    def train(data, configurations, options, **rows):
        found = real(data, configurations, options, **rows)
        seen.append((data, configurations, options, rows, found))
        return found

    real = driver.train_tables
    monkeypatch.setattr(driver, "train_tables", train)
    return seen


def learn(data, structure="chow-liu", seed=0, **options):
    return learn_classifier(
        data, structure=structure, training="hybrid", seed=seed, options=HybridOptions(**(SHORT | options))
    )


def test_early_stopping_returns_the_epoch_with_the_fewest_errors(calls, monkeypatch):
    data = easy(rows=300)
    net = learn(data, early_stopping=True, validation_fraction=0.3)
    rows, (run,), options, others, _ = calls[0]
    kept, held_out = hold_out(data, 0.3, 0)
    assert len(held_out) == 90
    np.testing.assert_array_equal(rows.X, kept.X)
    # The same training, measured after every epoch.
    monkeypatch.setattr(engine, "SECONDS_A_CALL", 0.0)
    (whole,) = driver.train_tables(rows, [run], replace(options, keep_best=False), **others)
    assert [epoch for epoch, _ in whole.history] == list(range(1, 13))
    errors = [error for _, error in whole.history]
    assert min(errors) < errors[-1]
    assert evaluate(net, held_out).error == pytest.approx(min(errors), abs=1e-6)
    assert evaluate(whole.net, held_out).error == pytest.approx(errors[-1], abs=1e-6)


@pytest.mark.parametrize("structure", ["order-free", *exhaustive("subset")])
def test_early_stopping_does_not_depend_on_the_speed_of_the_machine(structure, monkeypatch):
    data = easy(rows=200)
    nets = []
    for seconds in (0.0, 1e9):
        monkeypatch.setattr(engine, "SECONDS_A_CALL", seconds)
        nets.append(learn(data, structure, epochs=450, batch_size=180, early_stopping=True))
    assert nets[0] == nets[1]


def test_many_epochs_are_measured_now_and_then(calls):
    learn(easy(rows=100), epochs=450, batch_size=90, early_stopping=True)
    ((_, _, options, _, (found,)),) = calls
    assert options.every == 3
    assert [epoch for epoch, _ in found.history] == list(range(3, 451, 3))


def test_early_stopping_of_several_settings(calls):
    data = easy(rows=300)
    net = learn(data, n_configs=3, early_stopping=True, validation_fraction=0.3)
    ((_, runs, _, _, found),) = calls
    assert len(runs) == len(found) == 3
    for result in found:
        assert result.validation_error == pytest.approx(min(error for _, error in result.history))
    best = min(result.validation_error for result in found)
    assert net in [result.net for result in found if result.validation_error == best]
    assert evaluate(net, hold_out(data, 0.3, 0)[1]).error == pytest.approx(best, abs=1e-6)


def test_nothing_is_held_out_when_there_is_nothing_to_choose(calls):
    data = easy(rows=100)
    learn(data, epochs=1)
    ((rows, _, options, others, _),) = calls
    assert len(rows) == len(data)
    assert others["validation"] is None
    assert not options.keep_best


@pytest.mark.parametrize("more", [{}, *exhaustive({"n_configs": 2}, {"bits": (3, 1)}, {"bits": 3})])
def test_structure_noise_reaches_every_configuration(calls, more):
    data = easy(rows=100)
    net = learn(data, epochs=2, structure_noise=0.25, **more)
    runs = calls[0][1]
    assert len(runs) == {"n_configs": 2, "bits": 6 if more.get("bits") == 3 else 1}.get(next(iter(more), ""), 1)
    for run in runs:
        assert run.structure_noise == 0.25
        assert isinstance(run.number_format, Fixed) == ("bits" in more)
    assert net.structure == chow_liu(data)


@pytest.mark.exhaustive
def test_structure_noise_of_searches_and_of_naive_bayes(calls):
    data = easy(rows=100)
    for structure, choices in (("naive", 1), ("subset", 4), ("order-free", 4)):
        fixed = pytest.warns(TinybayesWarning, match="n_candidates .of structure subset or order-free")
        with fixed if structure == "naive" else nullcontext():
            learn(data, structure, epochs=2, n_candidates=3, structure_noise=0.25)
        (run,) = calls[-1][1]
        assert (run.structure_noise, run.candidates.parent.shape[1]) == (0.25, choices)
        assert run.structure_rate > 0


def test_structure_noise_changes_the_tables():
    data = easy(rows=100)
    assert learn(data, structure_noise=0.5) != learn(data)
    assert learn(data, structure_noise=0.0) == learn(data)


@pytest.mark.parametrize("noise", [-0.1, 1.0, 2, float("nan")])
@pytest.mark.parametrize("structure", ["naive", "chow-liu", "subset"])
def test_structure_noise_is_a_probability_below_one(structure, noise):
    with pytest.raises(TinybayesError, match="structure_noise: expected at least 0, below 1"):
        learn(easy(rows=50), structure, structure_noise=noise)


def test_the_options_belong_to_training_by_gradient():
    with pytest.raises(TinybayesError, match="got structure_noise, early_stopping; use training 'hybrid'"):
        learn_classifier(easy(rows=50), options=HybridOptions(structure_noise=0.1, early_stopping=True))


def test_settings_are_formats_times_random_draws(calls):
    def of(**options):
        learn(easy(rows=60), "naive", epochs=1, **options)
        runs = calls[0][1]
        calls.clear()
        return runs

    assert [c.number_format for c in of()] == [Float()]
    assert [c.number_format for c in of(bits=(2, 3))] == [Fixed(2, 3)]
    assert [c.number_format for c in of(bits=4)] == [Fixed(whole, 4 - whole) for whole in range(1, 7)]
    free = {"n_configs": 10, "bits": 4, "gamma": None, "learning_rate": 3e-2}
    many = of(**free)
    assert len(many) == 60
    assert len({c.seed for c in many}) == len({c.lam for c in many}) == 10
    assert all(10 <= c.lam <= 1000 and 0.1 <= c.gamma <= 100 and c.learning_rate in (3e-3, 3e-2) for c in many)
    assert [c.lam for c in many] == [c.lam for c in of(**free)]
    given = of(**free | {"lam": 7.0, "gamma": 2.0, "learning_rate": 0.1})
    assert {(c.lam, c.gamma, c.learning_rate) for c in given} == {(7.0, 2.0, 0.1)}  # what was given is not drawn
    assert {c.input_noise for c in many} == {0.0}
    assert {c.input_noise for c in of(n_configs=10, input_noise=None)} <= {0.0, 0.1, 0.2, 0.4}


@pytest.mark.parametrize(
    ("structure", "options", "unused"),
    [
        ("naive", {"structure_noise": 0.1, "ordering": "A"}, ["structure_noise", "ordering"]),
        ("chow-liu", {"n_candidates": 3, "size_penalty": 0.1}, ["n_candidates", "size_penalty"]),
        ("random", {"structure_rate": 0.0, "image_shape": (2, 2)}, ["structure_rate", "image_shape"]),
        ("subset", {"noise_reach": 1.0, "noise_end": 0.0}, ["noise_reach", "noise_end"]),
        ("subset", {"n_candidates": 3, "structure_noise": 0.1, "size_penalty": 0.1, "structure_rate": 0.1}, []),
        ("chow-liu", {"structure_noise": 0.1, "input_noise": 0.1, "noise_reach": 1.0, "noise_end": 0.0}, []),
    ],
)
def test_options_that_do_nothing_are_named(structure, options, unused):
    """Nothing else would tell: the result is the same without them."""
    told = _unused(structure, HybridOptions(**({"input_noise": 0.0} | options)))
    assert [text.split(" (of ")[0] for text in told] == unused
    if unused:
        with pytest.warns(TinybayesWarning, match=unused[0]):
            net = learn(easy(rows=60), structure, epochs=1, **options)
        assert net == learn(easy(rows=60), structure, epochs=1)


def test_candidates_of_order_free_and_the_conditional_loss_reach_the_training(calls):
    X, y = load_iris(return_X_y=True)
    options = {"structure": "order-free", "training": "hybrid", "epochs": 2, "input_noise": 0.0, "gamma": 1.0}
    options |= {"discretizer": "mdlp"}  # one encoding, so that nothing is chosen
    plain = BayesNetClassifier(**options, random_state=0).fit(X, y)
    other = BayesNetClassifier(**options, n_candidates=1, conditional=5.0, random_state=0).fit(X, y)
    (first,), (second,) = (call[1] for call in calls)
    assert (first.candidates.parent.shape[1], second.candidates.parent.shape[1]) == (4, 2)  # one is "no extra parent"
    assert (first.conditional, second.conditional) == (0.0, 5.0)
    assert plain.model_ != other.model_


def test_noise_and_margin_are_chosen_on_held_out_rows_and_the_chosen_setting_learns_from_all(calls):
    data = easy(rows=300)
    net = learn(data, input_noise=None, gamma=None)
    (kept, runs, _, others, found), (rows, final, _, no_rows, (result,)) = calls
    assert {(run.input_noise, run.gamma) for run in runs} == set(product((0.0, 0.1, 0.2, 0.4), (10.0, 1.0)))
    assert (runs[0].input_noise, runs[0].gamma) == (0.2, 10.0)
    assert len(kept) == len(others["validation"]) * 2 == 200
    assert len(rows) == 300
    assert no_rows["validation"] is None
    assert final == [runs[chosen([one.validation_error for one in found], 8, 100)]]
    assert net == result.net


@pytest.mark.parametrize("options", [{"n_configs": 3}, {"bits": 3}])
def test_what_was_chosen_learns_from_all_rows(calls, options):
    data = easy(rows=200)
    net = learn(data, "naive", **options)
    (kept, runs, _, _, found), (rows, final, _, _, (result,)) = calls
    assert len(kept) < len(rows) == len(data)
    best = min(range(len(runs)), key=lambda i: found[i].validation_error)
    assert final == [runs[best]]
    assert net == result.net


def test_without_a_margin_of_a_standard_error_the_usual_setting_stays():
    # The standard error of 0.2 on 100 rows is 0.04.
    assert chosen([0.2, 0.17, 0.19], 3, 100) == 0
    assert chosen([0.2, 0.15, 0.14], 3, 100) == 2
    assert chosen([0.2, 0.17, 0.19], 3, 10_000) == 1
    # Two formats of two settings: the better first setting is the usual one.
    assert chosen([0.3, 0.18, 0.2, 0.2], 2, 100) == 2
    assert chosen([0.3, 0.1, 0.2, 0.2], 2, 100) == 1
    # Settings that were drawn have no usual one.
    assert chosen([0.2, 0.19, 0.195], 1, 100) == 1


def test_held_out_rows_choose_among_encodings_of_the_same_rows(calls):
    data = easy(rows=300)
    useless = replace(data, X=np.zeros_like(data.X))
    for first, other in ((data, useless), (useless, data)):
        net = learn_classifier(
            first,
            structure="naive",
            training="hybrid",
            options=HybridOptions(**SHORT),
            encodings=[other],
        )
        *choosing, (rows, _, _, others, (result,)) = calls
        assert [len(call[0]) for call in choosing] == [270, 270]
        np.testing.assert_array_equal(rows.X, data.X)
        assert others["validation"] is None
        assert net == result.net
        calls.clear()


def test_only_auto_tries_encodings_and_takes_more_bins_of_many_rows():
    asked = Discretization(max_states=50)
    ways = [[(d.discretizer, d.n_bins, d.max_states) for d in encodings_tried(asked, rows)] for rows in (1999, 2000)]
    assert ways == [[("quantile", 8, 50), ("mdlp", 8, 50)], [("quantile", 16, 50), ("mdlp", 8, 50)]]
    for name in ("mdlp", "quantile", None):
        given = Discretization(discretizer=name)
        assert encodings_tried(given, 5000) == [given]
