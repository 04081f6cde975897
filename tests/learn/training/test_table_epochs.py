"""Epochs of tables as loops of Numba, against XLA's code for the same steps with the same draws."""

import jax
import numpy as np
import pytest
from test_gradient import in_buckets

from cases import exhaustive
from strategies import random_data
from tinybayes._kernels.table_adam import IDLE
from tinybayes.learn import chow_liu, naive_bayes
from tinybayes.learn.training import candidates, engine, input_noise, table_epochs
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration, TableRun, noisy
from tinybayes.model import Dataset, Fixed

LOSS = {"lam": 5.0, "gamma": 2.0, "eta": 4.0, "learning_rate": 0.02}
SPACES = {
    "naive": lambda data: candidates.fixed(naive_bayes(data)),
    "chow-liu": lambda data: candidates.fixed(chow_liu(data)),
    "subset": lambda data: candidates.subset(len(data.variables), 3),
    "order-free": lambda data: candidates.order_free(len(data.variables)),
}
CASES = [
    ("naive", {}),
    ("naive", {"conditional": 2.0}),
    ("naive", {"lam": 0.0}),
    ("chow-liu", {"eta": 20.0}),
    ("chow-liu", {"input_noise": 0.3}),
    ("chow-liu", {"input_noise": 0.3, "noise_reach": 1.0, "noise_end": 0.2}),
    ("chow-liu", {"structure_noise": 0.2}),
    ("chow-liu", {"number_format": Fixed(2, 2)}),
    ("subset", {}),
    ("subset", {"size_penalty": 0.01, "structure_rate": 0.03}),
    ("subset", {"structure_noise": 0.3, "input_noise": 0.1, "conditional": 1.0}),
    ("subset", {"number_format": Fixed(3, 1)}),
    ("order-free", {"structure_rate": 0.03}),
    ("chow-liu", {"sharing": 1.0}),
    ("chow-liu", {"sharing": 0.5, "structure_noise": 0.2, "number_format": Fixed(2, 2)}),
    ("subset", {"sharing": 1.0, "structure_noise": 0.1, "input_noise": 0.1}),
]


def runs_of(data, space, seeds=2, batch=20, **options):
    """Return two equal runs of some configurations."""
    found = SPACES[space](data)
    configurations = [
        noisy(TableConfiguration(candidates=found, seed=seed, **(LOSS | options))) for seed in range(seeds)
    ]
    made = TrainingOptions(epochs=4, batch_size=batch)
    return [TableRun(data, configurations, made, None, None, 0.4, False) for _ in range(2)]


def assert_alike(states, others, tolerance=2e-4):
    for name in ("theta", "prior", "logits", "common"):
        for one, other in zip(getattr(states, name), getattr(others, name), strict=True):
            one, other = np.asarray(one), np.asarray(other)
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(states.step, others.step)


def both(xla, loops, epochs):
    """Run both over the same epochs."""
    xla.states, loops.states = engine.Run.advance(xla, epochs), loops.advance(epochs)
    assert isinstance(loops.states.theta.value, np.ndarray)  # of the loops, which change arrays in place
    return xla.states, loops.states


@pytest.mark.parametrize("seed", [0, *exhaustive(1, 2, 3)])
@pytest.mark.parametrize(("space", "options"), CASES)
def test_the_same_steps_as_those_of_xla(space, options, seed):
    data = random_data(seed, rows=90, features=5, missing=0.1, weighted=True)
    xla, loops = runs_of(data, space, **options)
    # Where entries are rounded, the smallest difference becomes one of a level sooner or later.
    epochs = 1 if "number_format" in options else 2
    before = np.array(loops.states.theta.value)
    assert_alike(*both(xla, loops, (0, epochs, 4)))
    assert np.abs(np.where(before > -1e20, loops.states.theta.value - before, 0)).max() > 0.01
    if epochs == 2:  # the loops go on from where they stopped
        assert_alike(*both(xla, loops, (2, 4, 4)), tolerance=1e-3)


@pytest.mark.parametrize("sharing", [0.0, 1.0])
@pytest.mark.parametrize("classes", [1, 2, 4, 5, 7, 8])
def test_any_number_of_classes(classes, sharing):
    data = random_data(1, rows=80, features=6, classes=classes, missing=0.05)
    assert_alike(*both(*runs_of(data, "subset", sharing=sharing), (0, 2, 4)))


def test_many_classes_and_many_states():
    generator = np.random.default_rng(0)
    data = random_data(0, rows=300, features=3, classes=3)
    variables = [type(v)(v.name, tuple(range(n))) for v, n in zip(data.variables, (40, 3, 21), strict=True)]
    target = type(data.target)("class", tuple(range(29)))
    X = np.stack([generator.integers(0, v.cardinality, 300) for v in variables], axis=1)
    rows = Dataset(tuple(variables), target, X, generator.integers(0, 29, 300))
    for space, sharing in (("naive", 0.0), ("chow-liu", 0.0), ("subset", 0.0), ("subset", 1.0)):
        assert_alike(*both(*runs_of(rows, space, input_noise=0.2, sharing=sharing), (0, 2, 4)))


@pytest.mark.parametrize("space", ["chow-liu", "subset"])
def test_tables_in_buckets(space, monkeypatch):
    in_buckets(monkeypatch)
    data = random_data(3, rows=90, features=5, missing=0.1)
    xla, loops = runs_of(data, space)
    assert len(loops.steps.layout.buckets) > 1
    assert_alike(*both(xla, loops, (0, 2, 4)))


def test_labels_of_a_teacher():
    data = random_data(4, rows=80)
    soft = np.random.default_rng(0).dirichlet(np.ones(3), 80)
    rows = Dataset(data.variables, data.target, data.X, data.y, soft=soft)
    assert_alike(*both(*runs_of(rows, "naive"), (0, 2, 4)))


def test_tables_that_are_rarely_chosen_are_not_moved_and_catch_up():
    """Idle tables are left out for hundreds of mini-batches, then chosen again: moments as if they had never been."""
    data = random_data(2, rows=400, features=4)
    xla, loops = runs_of(data, "subset", batch=2, structure_rate=0.0, structure_noise=0.0)
    rare = np.zeros(xla.fixed.mask.shape)
    rare[:, :, 0] = 6.0  # another candidate than the first is drawn once in 100 to 400 mini-batches
    for run in (xla, loops):
        run.states = run.states._replace(logits=run.states.logits._replace(value=np.array(rare, dtype=np.float32)))
    idle = []
    end = table_epochs.end

    def watch(tables, layout, counts):
        idle.append(int(counts.max()))
        end(tables, layout, counts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_epochs, "end", watch)
        assert_alike(*both(xla, loops, (0, 5, 40)), tolerance=1e-3)
    assert max(idle) > IDLE
    for run in (xla, loops):  # now all are chosen as often
        logits = run.states.logits
        run.states = run.states._replace(logits=logits._replace(value=np.zeros_like(np.asarray(logits.value))))
    assert_alike(*both(xla, loops, (5, 6, 40)), tolerance=2e-3)


def test_what_the_loops_cannot_do_is_left_to_xla(monkeypatch):
    data = random_data(5, rows=60)
    called = []
    monkeypatch.setattr(table_epochs, "run_epochs", lambda *_, **__: called.append(1))
    _, run = runs_of(data, "subset", per_row=True)
    assert isinstance(run.advance((0, 1, 4)).theta.value, jax.Array)
    monkeypatch.setattr(input_noise, "FULL", 0)  # as with very many states
    _, run = runs_of(data, "subset", input_noise=0.1)
    assert isinstance(run.advance((0, 1, 4)).theta.value, jax.Array)
    assert not called
    _, run = runs_of(data, "subset")
    run.advance((0, 1, 4))
    assert called


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    data = random_data(6, rows=90, features=5)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("TINYBAYES_THREADS", threads)
        _, run = runs_of(data, "subset", seeds=5)
        found.append(run.advance((0, 3, 4)))
    for one, other in zip(jax.tree.leaves(found[0].theta), jax.tree.leaves(found[1].theta), strict=True):
        assert one.tobytes() == other.tobytes()


def test_the_kernel_is_compiled_once_for_all_options():
    """Every further type of its arguments would take seconds."""
    kernel = table_epochs.train_epoch
    data = random_data(7, rows=60)
    runs_of(data, "naive")[0].advance((0, 1, 4))
    before = len(kernel.signatures)
    for space, options in CASES:
        runs_of(data, space, **options)[0].advance((0, 1, 4))
    assert len(kernel.signatures) == before
