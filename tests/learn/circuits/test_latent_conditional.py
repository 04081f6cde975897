"""Latent trees trained for the class: gradients against enumeration, and what the training may not change."""

import os
import signal
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tinybayes.infer.circuit import log_joint_with_class
from tinybayes.learn.circuits import latent_classifier
from tinybayes.learn.circuits.latent_circuit import class_mixture, latent_circuit
from tinybayes.learn.circuits.latent_classifier import learn_latent_classifier
from tinybayes.learn.circuits.latent_conditional import ConditionalSteps, train_conditional
from tinybayes.learn.circuits.latent_mixture import join, separate
from tinybayes.learn.circuits.latent_start import Tables, draw_start, pseudocounts
from tinybayes.learn.circuits.latent_structure import Tree, node_order, side_by_side
from tinybayes.learn.circuits.latent_training import on_device
from tinybayes.learn.circuits.latent_tree import learn_tables
from tinybayes.learn.circuits.options import LatentOptions
from tinybayes.learn.training.engine import Rows
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.model import Dataset, Variable

TREES = [(Tree((-1, 0), (0, 1, 1, 0)), [0, 1]), (Tree((-1, 0, 1), (2, 0, 1, 2)), [1, 2, 3])]
CARDS = (2, 3, 2, 2)
FEATURES = tuple(Variable(f"x{i}", tuple(range(card))) for i, card in enumerate(CARDS))
CLASS = Variable("y", ("a", "b"))


def rows_with_gaps(seed, count=40):
    generator = np.random.default_rng(seed)
    X = np.stack([generator.integers(0, card, count) for card in CARDS], axis=1)
    X[generator.random(X.shape) < 0.2] = -1
    y = generator.integers(0, 2, count)
    return Dataset(FEATURES, CLASS, X, y, generator.uniform(0.5, 2.0, count))


def tables_of(tree, variables, seed, states=2):
    data = Dataset(variables, None, np.zeros((1, len(variables)), dtype=int))
    return draw_start(pseudocounts(data, tree, np.full(len(tree.parent), states), 1.0), seed)


def for_engine(data):
    return Rows(jnp.asarray(data.X, jnp.int32), jnp.asarray(data.y, jnp.int32), jnp.asarray(data.weight, jnp.float32))


def conditional(joint, y):
    return joint[np.arange(len(y)), y] - np.logaddexp.reduce(joint, axis=1)


def one_tree():
    tree = Tree((-1, 0, 0), (0, 1, 1, 2, 2))  # the class hangs on the last hidden variable
    tables = tables_of(tree, (*FEATURES, CLASS), 3)
    return tree, tables, (), latent_circuit(FEATURES, CLASS, tree, tables.transition, tables.emission)


def class_trees():
    alone, own = [tree for tree, _ in TREES], [tables_of(tree, FEATURES, seed) for seed, (tree, _) in enumerate(TREES)]
    shares = np.array([0.3, 0.7])
    circuits = [latent_circuit(FEATURES, None, t, p.transition, p.emission) for t, p in zip(alone, own, strict=True)]
    whole, _ = side_by_side(TREES)
    roots = tuple(c for c, _ in node_order(alone)[: whole.roots])
    return whole, join(alone, own, shares), roots, class_mixture(circuits, CLASS, shares)


@pytest.mark.parametrize("model", [one_tree, class_trees])
def test_the_loss_is_the_posterior_of_the_circuit(model):
    tree, tables, roots, circuit = model()
    data = rows_with_gaps(0)
    steps = ConditionalSteps(tree, tables.emission.shape[2], class_of_root=roots)
    losses = steps.losses(on_device(tables), None, for_engine(data))
    np.testing.assert_allclose(
        -losses, conditional(log_joint_with_class(circuit, data.X), data.y), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("model", [one_tree, class_trees])
def test_training_raises_the_posterior_and_keeps_sums_and_zeros(model):
    tree, tables, roots, _ = model()
    tables.transition[1, 0, 1] = 0.0
    tables.transition[1, 0, 0] = 1.0
    data = rows_with_gaps(1)
    steps = ConditionalSteps(tree, tables.emission.shape[2], class_of_root=roots)

    def mean(own):
        rows = for_engine(data)
        return -float(jnp.average(steps.losses(on_device(own), None, rows), weights=rows.weight))

    options = TrainingOptions(epochs=60, batch_size=20)
    trained = train_conditional(data, tree, tables, options, class_of_root=roots)
    assert mean(trained.tables) > mean(tables) + 0.01
    assert (trained.epochs, trained.complete) == (60, True)
    late = replace(options, deadline=0.0)
    assert not train_conditional(data, tree, tables, late, class_of_root=roots).complete
    np.testing.assert_array_equal(trained.tables.transition > 0, tables.transition > 0)
    np.testing.assert_array_equal(trained.tables.emission > 0, tables.emission > 0)
    np.testing.assert_allclose(trained.tables.transition[: tree.roots].sum(), 1.0)
    np.testing.assert_allclose(trained.tables.emission.sum(axis=2), 1.0)


def test_the_gradient_is_that_of_finite_differences():
    tree, tables, roots, _ = class_trees()
    steps, data = ConditionalSteps(tree, 3, class_of_root=roots), rows_with_gaps(2)
    allowed = jax.tree.map(lambda part: part > 0, on_device(tables))
    logs = jax.tree.map(lambda part: jnp.log(jnp.maximum(part, 1e-30)), on_device(tables))

    def loss(values):
        return steps.losses(steps.probabilities(values, allowed), None, for_engine(data)).sum()

    gradient = jax.grad(loss)(logs)
    for part, entry in ((0, (3, 1, 0)), (0, (0, 0, 1)), (1, (5, 1, 1))):
        moved = [logs[part].at[entry].add(step) for step in (0.02, -0.02)]
        high, low = (loss(logs._replace(**{logs._fields[part]: values})) for values in moved)
        assert float(gradient[part][entry]) == pytest.approx(float(high - low) / 0.04, rel=0.02, abs=2e-3)


def test_where_training_does_harm_the_start_is_kept():
    tree, tables, roots, _ = class_trees()
    data = rows_with_gaps(4)
    opposite = Dataset(FEATURES, CLASS, data.X, 1 - data.y, data.weight)
    first = train_conditional(opposite, tree, tables, TrainingOptions(epochs=60, batch_size=20), class_of_root=roots)
    options = TrainingOptions(epochs=5, batch_size=20, keep_best=True)
    again = train_conditional(data, tree, first.tables, options, class_of_root=roots, validation=opposite)
    assert again.epochs == 0
    np.testing.assert_allclose(again.tables.transition, first.tables.transition, rtol=1e-5)


def test_joined_trees_are_separated_again():
    alone, own = [tree for tree, _ in TREES], [tables_of(tree, FEATURES, seed) for seed, (tree, _) in enumerate(TREES)]
    parts, shares = separate(alone, join(alone, own, np.array([0.25, 0.75])))
    np.testing.assert_allclose(shares, [0.25, 0.75])
    for part, known in zip(parts, own, strict=True):
        assert isinstance(part, Tables)
        np.testing.assert_allclose(part.transition, known.transition)
        np.testing.assert_array_equal(part.emission, known.emission)


def test_classifiers_are_never_worse_on_the_rows_that_choose(monkeypatch):
    asked = []
    monkeypatch.setattr(
        latent_classifier, "learn_tables", lambda *given: (asked.append(given[1].seconds), learn_tables(*given))[1]
    )
    generator = np.random.default_rng(0)
    causes = generator.integers(0, 2, (900, 3))
    X = (causes[:, [0, 0, 1, 1, 2, 2]] ^ (generator.random((900, 6)) < 0.2)).astype(np.int8)
    y = causes.sum(axis=1) >= 2  # in one tree, it hangs on a single cause
    data = Dataset(tuple(Variable(f"x{i}", (0, 1)) for i in range(6)), CLASS, X, y.astype(int))
    options = LatentOptions(hidden_states=2, epochs=5, seconds=8000)
    plain, trained = (learn_latent_classifier(data, replace(options, discriminative=on)) for on in (False, True))
    assert plain.epochs == 0 < trained.epochs
    assert asked == [4000, 2000, 2000, 2000, 1000, 1000]  # one tree, and two of classes; half is for the gradient
    for before, after in zip(plain.conditional, trained.conditional, strict=True):
        assert after > before - 1e-6
    assert trained.conditional[0] > plain.conditional[0] + 0.01


def labelled(rows):
    X = np.random.default_rng(0).integers(0, 2, (rows, 3)).astype(np.int8)
    return Dataset(tuple(Variable(f"x{i}", (0, 1)) for i in range(3)), CLASS, X, X[:, 0])


def test_an_interrupt_ends_all_trainings(monkeypatch):
    trained = []
    monkeypatch.setattr(latent_classifier, "learn_tables", lambda *given: (trained.append(1), learn_tables(*given))[1])
    before = signal.getsignal(signal.SIGINT)
    learned = learn_latent_classifier(
        labelled(40), LatentOptions(hidden_states=2, epochs=50), report=lambda _: os.kill(os.getpid(), signal.SIGINT)
    )
    assert len(trained) == 1
    assert (learned.complete, learned.epochs, learned.class_trees) == (False, 0, False)
    assert signal.getsignal(signal.SIGINT) is before


def test_few_rows_are_all_learned_from_at_last():
    """Of one hidden state, the class and each feature have the smoothed shares of all rows, held-out ones as well."""
    generator = np.random.default_rng(5)
    X, y = generator.integers(0, 2, (30, 3)), generator.integers(0, 2, 30)
    data = Dataset(tuple(Variable(f"x{i}", (0, 1)) for i in range(3)), CLASS, X.astype(np.int8), y)
    options = LatentOptions(hidden_states=1, epochs=40, discriminative=False)
    learned = learn_latent_classifier(data, options)
    assert not np.isnan(learned.conditional[0])  # rows were held out
    for v, values in enumerate([*X.T, y]):
        row = np.full((1, 4), -1)
        row[0, v] = 1
        share = (values.sum() + 0.5) / 31  # a pseudocount of one, on top of another one spread like the values
        assert np.exp(learned.circuit.log_likelihood(row))[0] == pytest.approx((values.sum() + share) / 31, abs=1e-3)


def test_trees_of_classes_have_the_smoothed_shares_of_the_classes():
    generator = np.random.default_rng(2)
    y = (generator.random(300) < 0.2).astype(int)
    X = generator.integers(0, 2, (300, 4))
    X[:, 1], X[:, 3] = X[:, 0] ^ y, X[:, 2] ^ y  # only trees of their own tell the classes apart
    data = Dataset(tuple(Variable(f"x{i}", (0, 1)) for i in range(4)), CLASS, X.astype(np.int8), y)
    options = LatentOptions(hidden_states=2, epochs=20, smoothing=5.0, discriminative=False)
    learned = learn_latent_classifier(data, options)
    assert learned.class_trees
    logs = learned.circuit.log_likelihood(np.array([[-1, -1, -1, -1, c] for c in range(2)]))
    np.testing.assert_allclose(np.exp(logs), (np.bincount(y) + 2.5) / 305)


@pytest.mark.filterwarnings("error")
def test_two_rows_are_enough():
    learned = learn_latent_classifier(labelled(2), LatentOptions(hidden_states=2, epochs=2))
    assert learned.circuit.n_edges > 0
