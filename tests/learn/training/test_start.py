"""Training that starts from a network, and training in a fixed order."""

import jax
import numpy as np
import pytest

from tinybayes.compress import quantize
from tinybayes.errors import TinybayesError
from tinybayes.learn import chow_liu, maximum_likelihood, naive_bayes
from tinybayes.learn.training import candidates
from tinybayes.learn.training.compiling import FIXED_ORDER, compiled
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration, train_tables
from tinybayes.model import Dataset, Fixed, Variable


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(3)
    y = generator.integers(0, 3, 300)
    X = np.stack([(y + generator.integers(0, 2, 300)) % 3, generator.integers(0, 4, 300), y // 2], axis=1)
    X[:, 1] = np.where(generator.random(300) < 0.5, X[:, 0], X[:, 1])
    variables = tuple(Variable(f"x{i}", tuple(range(k))) for i, k in enumerate((3, 4, 2)))
    return Dataset(variables, Variable("y", (0, 1, 2)), X, y)


@pytest.mark.parametrize("structure", [naive_bayes, chow_liu])
def test_a_training_that_hardly_moves_returns_the_network_it_starts_from(data, structure):
    tree = structure(data)
    net = maximum_likelihood(data, tree, smoothing=1.0)
    space = candidates.fixed(tree)
    runs = [TableConfiguration(candidates=space, start=net, learning_rate=1e-9), TableConfiguration(candidates=space)]
    started, drawn = train_tables(data, runs, TrainingOptions(epochs=1, batch_size=50))
    assert started.net.structure.parents == net.structure.parents
    for own, old, other in zip(started.net.cpds, net.cpds, drawn.net.cpds, strict=True):
        np.testing.assert_allclose(own.log_parameters, old.log_parameters, atol=1e-5)
        assert np.abs(other.log_parameters - old.log_parameters).max() > 0.01


def test_a_start_is_rounded_in_training_through_fixed_point(data):
    net = maximum_likelihood(data, naive_bayes(data), smoothing=1.0)
    run = TableConfiguration(
        candidates=candidates.fixed(naive_bayes(data)), number_format=Fixed(3, 1), start=net, learning_rate=1e-9
    )
    (result,) = train_tables(data, [run], TrainingOptions(epochs=1, batch_size=50))
    for own, old in zip(result.net.cpds, net.cpds, strict=True):
        np.testing.assert_array_equal(own.log_parameters, Fixed(3, 1).decode(Fixed(3, 1).encode(old.log_parameters)))


def test_a_start_of_another_structure_is_refused(data):
    net = maximum_likelihood(data, naive_bayes(data), smoothing=1.0)
    for space in (candidates.fixed(chow_liu(data)), candidates.subset(3, 2)):
        with pytest.raises(TinybayesError, match="configuration 0, start: expected a network of the fixed structure"):
            train_tables(data, [TableConfiguration(candidates=space, start=net)])


def test_a_start_that_is_not_normalised_is_refused(data):
    net = quantize(maximum_likelihood(data, naive_bayes(data), smoothing=1.0), Fixed(2, 0))
    with pytest.raises(TinybayesError, match="expected normalised tables"):
        train_tables(data, [TableConfiguration(candidates=candidates.fixed(naive_bayes(data)), start=net)])


def test_a_start_with_zeros_or_with_other_states_is_refused(data):
    space = candidates.fixed(naive_bayes(data))
    zeros = maximum_likelihood(data, naive_bayes(data), smoothing=0.0)
    fewer = tuple(Variable(v.name, (0, 1)) for v in data.variables)
    other = Dataset(fewer, data.target, np.minimum(data.X, 1), data.y)
    others = maximum_likelihood(other, naive_bayes(other), smoothing=1.0)
    for net, message in (
        (zeros, "probabilities above zero, got zeros"),
        (others, "the variables of the training rows"),
    ):
        with pytest.raises(TinybayesError, match=f"configuration 0, start: expected {message}"):
            train_tables(data, [TableConfiguration(candidates=space, start=net)])


def test_the_options_of_a_fixed_order_are_known_to_the_compiler_and_change_nothing_on_a_cpu(data):
    double = jax.jit(lambda x: 2 * x, compiler_options=FIXED_ORDER)
    assert double(jax.numpy.ones(2)).tolist() == [2, 2]
    assert compiled()(lambda x: 2 * x)(1.5, deterministic=True) == 3
    space = candidates.fixed(naive_bayes(data))
    nets = []
    for same in (False, True):
        options = TrainingOptions(epochs=2, batch_size=50, deterministic=same)
        nets.append(train_tables(data, [TableConfiguration(candidates=space)], options, test=data)[0])
    assert nets[0].test_error == nets[1].test_error
    for one, other in zip(nets[0].net.cpds, nets[1].net.cpds, strict=True):
        np.testing.assert_array_equal(one.table, other.table)
