"""Epochs of tables as loops of Numba, against XLA's code for the same steps with the same draws."""

from itertools import pairwise

import jax
import numpy as np
import pytest
from test_gradient import in_buckets

from cases import exhaustive
from strategies import easy, random_data
from tinybayes._kernels.table_adam import IDLE
from tinybayes.errors import TinybayesError
from tinybayes.infer import evaluate
from tinybayes.learn import chow_liu, naive_bayes
from tinybayes.learn.training import candidates, engine, input_noise, table_epochs
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration, TableRun, noisy, train_tables
from tinybayes.model import Dataset, Fixed

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
    # A feature of one state has tables of zeros: the gradient of its choice is rounding, which Adam makes larger.
    ("order-free", {"structure_rate": 0.003}),
    ("chow-liu", {"sharing": 1.0}),
    ("chow-liu", {"sharing": 0.5, "structure_noise": 0.2, "number_format": Fixed(2, 2)}),
    ("subset", {"sharing": 1.0, "structure_noise": 0.1, "input_noise": 0.1}),
]


def runs_of(data, space, seeds=2, batch=20, **options):
    """Return two equal runs of some configurations, which differ in more than the seed."""
    found = SPACES[space](data)
    drawn = [{"lam": 5.0 + s, "gamma": 2.0 - 0.3 * s, "learning_rate": 0.02 / (1 + s)} for s in range(seeds)]
    own = [{"eta": 4.0, "seed": s, **drawn[s], **options} for s in range(seeds)]
    configurations = [noisy(TableConfiguration(candidates=found, **one)) for one in own]
    made = TrainingOptions(epochs=4, batch_size=batch)
    return [TableRun(data, configurations, made, None, None, 0.4, False) for _ in range(2)]


def assert_alike(states, others, tolerance=2e-4, learned=True):
    for name in ("theta", "prior", "logits", "common"):
        # Where the structure is fixed, the loops leave out the moments of its logits.
        moments = slice(1 if name == "logits" and not learned else 3)
        for one, other in zip(getattr(states, name)[moments], getattr(others, name)[moments], strict=True):
            one, other = np.asarray(one), np.asarray(other)
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(states.step, others.step)


def both(xla, loops, epochs):
    """Run both over the same epochs."""
    xla.states, loops.states = engine.Run.advance(xla, epochs), loops.advance(epochs)
    assert isinstance(loops.states.theta.value, np.ndarray)  # of the loops
    return xla.states, loops.states


@pytest.mark.parametrize("seed", [0, *exhaustive(1, 2, 3)])
@pytest.mark.parametrize(("space", "options"), CASES)
def test_the_same_steps_as_those_of_xla(space, options, seed):
    data = random_data(seed, rows=90, features=5, missing=0.1, weighted=True)
    xla, loops = runs_of(data, space, **options)
    # Where entries are rounded, the smallest difference becomes one of a level sooner or later.
    epochs = 1 if "number_format" in options else 2
    before = np.array(loops.states.theta.value)
    learned = loops.configurations[0].structure_rate > 0
    assert_alike(*both(xla, loops, (0, epochs, 4)), learned=learned)
    assert np.abs(np.where(before > -1e20, loops.states.theta.value - before, 0)).max() > 0.01
    if epochs == 2:  # the loops go on from where they stopped
        assert_alike(*both(xla, loops, (2, 4, 4)), tolerance=1e-3, learned=learned)


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
    assert_alike(*both(xla, loops, (0, 5, 40)), tolerance=1e-3, learned=False)
    assert max(run.idle.max() for run in loops.loops.runs) > IDLE
    for run in (xla, loops):  # now all are chosen as often
        logits = run.states.logits
        run.states = run.states._replace(logits=logits._replace(value=np.zeros_like(np.asarray(logits.value))))
    assert_alike(*both(xla, loops, (5, 6, 40)), tolerance=2e-3, learned=False)


def test_what_the_loops_cannot_do_is_left_to_xla(monkeypatch):
    data = random_data(5, rows=60)
    _, run = runs_of(data, "subset", per_row=True)
    assert isinstance(run.advance((0, 1, 4)).theta.value, jax.Array)
    monkeypatch.setattr(input_noise, "FULL", 0)  # as with very many states
    _, run = runs_of(data, "subset", input_noise=0.1)
    assert isinstance(run.advance((0, 1, 4)).theta.value, jax.Array)


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
    kernels = table_epochs.train_batches, table_epochs.find_idle, table_epochs.fade, table_epochs.see
    data = random_data(7, rows=60)
    runs_of(data, "naive", number_format=Fixed(2, 2))[0].advance((0, 1, 4))
    before = [len(kernel.signatures) for kernel in kernels]
    for space, options in CASES:
        runs_of(data, space, **options)[0].advance((0, 1, 4))
    assert [len(kernel.signatures) for kernel in kernels] == before


@pytest.mark.parametrize("space", ["chow-liu", "subset"])
def test_where_a_call_ends_changes_no_bit(space):
    """The engine cuts epochs into calls by the clock; tables that are idle at a cut stay as they were."""
    data = random_data(8, rows=300, features=5)
    found = []
    for cuts in ((0, 12), (0, 1, 2, 7, 12), (0, 5, 6, 7, 8, 12)):
        _, run = runs_of(data, space, batch=3, input_noise=0.1, structure_rate=0.05)
        for first, last in pairwise(cuts):
            run.states = run.advance((first, last, 12))
        found.append([leaf.tobytes() for leaf in jax.tree.leaves((run.states.theta, run.states.prior))])
    assert found[0] == found[1] == found[2]
    if space == "subset":
        assert max(one.idle.max() for one in run.loops.runs) > IDLE


def test_draws_in_small_parts_are_the_same(monkeypatch):
    """A part of an epoch, parts across epochs, and many epochs at once."""
    data = random_data(9, rows=70)
    found = []
    for numbers in (1, 1600, 2**22):
        monkeypatch.setattr(table_epochs, "NUMBERS", numbers)
        _, run = runs_of(data, "subset", input_noise=0.2)
        found.append(run.advance((0, 4, 4)))
        assert run.loops.draws.size == {1: 1, 1600: 7, 2**22: 192}[numbers]
    for state in found[1:]:
        assert state.theta.value.tobytes() == found[0].theta.value.tobytes()
        assert (jax.random.key_data(state.key) == jax.random.key_data(found[0].key)).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_margin_that_is_exactly_reached(seed):
    """With few bits scores and gamma lie on one grid; the gradient of a maximum at a tie is that of JAX, a half."""
    data = random_data(seed, rows=60, classes=2)
    options = {"number_format": Fixed(2, 1), "gamma": 1.0, "learning_rate": 0.1}
    assert_alike(*both(*runs_of(data, "naive", **options), (0, 1, 4)))


def test_the_best_parameters_are_kept_while_training_goes_on():
    """What is measured and kept are copies: the loops change their arrays in place."""
    data, rows = easy(), easy(seed=1)
    space = candidates.subset(len(data.variables), 3)
    run = TableConfiguration(candidates=space, learning_rate=2.0)  # so large that errors rise and fall
    options = TrainingOptions(epochs=30, batch_size=50, keep_best=True)
    (kept,) = train_tables(data, [run], options, validation=rows, test=rows)
    errors = [error for _, error in kept.history]
    assert kept.test_error == kept.validation_error == min(errors) < errors[-1]
    assert evaluate(kept.net, rows).error == pytest.approx(kept.test_error, abs=0.01)


def test_a_configuration_that_diverges_leaves_the_others_alone():
    data = random_data(3, rows=90, features=5)
    found = SPACES["subset"](data)
    calm = TableConfiguration(candidates=found, learning_rate=0.02)
    wild = TableConfiguration(candidates=found, learning_rate=1e30, seed=1)
    states = []
    for others in ([], [wild]):
        run = TableRun(data, [calm, *others], TrainingOptions(epochs=4, batch_size=20), None, None, 0.4, False)
        states.append(run.advance((0, 4, 4)))
    for one, other in zip(jax.tree.leaves(states[0].theta), jax.tree.leaves(states[1].theta), strict=True):
        assert one[0].tobytes() == other[0].tobytes()


def test_structure_noise_needs_tables_without_a_parent():
    data = random_data(3, rows=90)
    found = SPACES["subset"](data)
    found.allowed[2, 0] = False
    with pytest.raises(TinybayesError, match='"no extra parent" as first choice'):
        train_tables(data, [TableConfiguration(candidates=found, structure_noise=0.1)], TrainingOptions(epochs=1))
