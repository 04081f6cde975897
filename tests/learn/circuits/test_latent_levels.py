"""EM through the quantiser: levels, likelihoods and counts of parameters that do not sum to one."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinybayes import CircuitDensity
from tinybayes.compress import tie
from tinybayes.errors import TinybayesError
from tinybayes.infer import expected_counts, log_partition
from tinybayes.learn.circuits.latent_circuit import latent_circuit, with_codebook
from tinybayes.learn.circuits.latent_classifier import learn_latent_classifier
from tinybayes.learn.circuits.latent_levels import LevelState, LevelSteps, first_levels, nearest, quantized
from tinybayes.learn.circuits.latent_start import draw_start, pseudocounts
from tinybayes.learn.circuits.latent_steps import Fixed, Parameters
from tinybayes.learn.circuits.latent_structure import Tree
from tinybayes.learn.circuits.latent_training import on_device, rows_of
from tinybayes.learn.circuits.latent_tree import learn_latent_tree, learn_tables
from tinybayes.learn.circuits.options import LatentOptions
from tinybayes.learn.training.engine import Rows
from tinybayes.model import Codebook, Dataset, Variable

TREE = Tree((-1, 0, 0), (0, 1, 2, 1, 0))


def data_of(X):
    return Dataset(tuple(Variable(f"x{i}", (0, 1)) for i in range(X.shape[1])), None, X.astype(np.int8))


def dependent(seed, count, features):
    generator = np.random.default_rng(seed)
    hidden = generator.integers(0, 2, (count, 2))
    return data_of(hidden[:, np.arange(features) % 2] ^ (generator.random((count, features)) < 0.1))


def cost(points, weights, levels):
    """What the levels cost in expected log-likelihood, each point at its best one."""
    each = weights[:, None] * (points[:, None] * np.log(points[:, None] / levels) + levels - points[:, None])
    return each.min(axis=1).sum()


@given(st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_the_nearest_level_costs_least(seed):
    generator = np.random.default_rng(seed)
    levels = np.sort(generator.uniform(1e-4, 1, 7))
    points = generator.uniform(1e-5, 1, 50)
    costs = points[:, None] * np.log(points[:, None] / levels) + levels - points[:, None]
    found = np.asarray(nearest(jnp.asarray(levels, jnp.float32), jnp.asarray(points, jnp.float32)))
    np.testing.assert_allclose(costs[np.arange(50), found], costs.min(axis=1), atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_first_levels_are_nearly_the_best(seed):
    generator = np.random.default_rng(seed)
    points, weights = np.sort(generator.uniform(1e-3, 1, 9)), generator.uniform(0.1, 5, 9)
    best = np.inf
    for cuts in itertools.combinations(range(1, 9), 2):
        runs = np.split(np.arange(9), cuts)
        levels = np.array([(weights[r] * points[r]).sum() / weights[r].sum() for r in runs])
        best = min(best, cost(points, weights, levels))
    plain, found = first_levels(points, weights, 3)
    assert len(plain) == len(found) == 3
    assert cost(points, weights, found) <= cost(points, weights, plain) + 1e-9
    assert best - 1e-9 <= cost(points, weights, found) <= 1.2 * best + 1e-6
    assert [len(one) for one in first_levels(np.array([0.5, 0.5]), np.ones(2), 4)] == [1, 1]


def test_likelihood_and_counts_of_levels_are_those_of_the_circuit():
    """Distributions that do not sum to one, and missing values."""
    generator = np.random.default_rng(0)
    X = generator.integers(0, 2, (40, 5))
    X[generator.random(X.shape) < 0.3] = -1
    data = data_of(X)
    tables = draw_start(pseudocounts(data, TREE, np.array([3, 2, 3]), 1.0), 1)
    levels = jnp.asarray([0.05, 0.2, 0.45, 0.8], jnp.float32)
    coarse = quantized(on_device(tables), levels)
    assert set(np.unique(np.asarray(coarse.emission))) <= {0.0, *np.asarray(levels).tolist()}
    transition, emission = (np.asarray(part, dtype=np.float64) for part in coarse)
    circuit = with_codebook(latent_circuit(data.variables, None, TREE, transition, emission))
    assert isinstance(circuit.format, Codebook)
    assert len(circuit.format.values) <= 4
    assert abs(log_partition(circuit)) > 0.05
    steps, rows = LevelSteps(TREE, 2), rows_of(data)
    losses = np.asarray(steps.losses(coarse, None, rows))
    np.testing.assert_allclose(-losses, circuit.log_likelihood(X), rtol=1e-4, atol=1e-5)
    some = data.X.min(axis=1) >= 0
    part = Rows(rows.X[some], rows.y[some], rows.weight[some])
    counts = steps.expected_counts(coarse, part)
    wanted = expected_counts(circuit, X[some]).sum()  # of every row: three states, five values
    assert sum(float(c.sum()) for c in counts) == pytest.approx(wanted, rel=1e-4)
    assert wanted == pytest.approx(8 * some.sum())


def test_a_step_moves_every_level_to_the_weighted_mean_of_its_parameters():
    """Also where transitions were cut: they belong to no level."""
    generator = np.random.default_rng(3)
    data = data_of(generator.integers(0, 2, (40, 5)))
    prior = pseudocounts(data, TREE, np.array([3, 2, 3]), 1.0)
    prior.transition[2, :, 1] = 0.0
    start = on_device(draw_start(prior, 2))
    levels = jnp.asarray([0.1, 0.3, 0.5, 0.9], jnp.float32)
    state = LevelState(quantized(start, levels), Parameters(*(part / 40 for part in start)), levels)
    steps, rows, rate = LevelSteps(TREE, 2), rows_of(data), 0.4
    after = steps.step(state, Fixed(on_device(prior), jnp.asarray(40.0)), rows, jnp.asarray(rate))
    points, uses = [], []
    seen, pseudo = steps.expected_counts(state.parameters, rows), (prior.transition, prior.emission)
    for old, new, more, moved in zip(state.counts, seen, pseudo, after.counts, strict=True):
        average = (1 - rate) * np.asarray(old) + rate * np.asarray(new) / 40
        np.testing.assert_allclose(moved, average, rtol=1e-5)
        counts = 40 * average + more
        total = np.broadcast_to(counts.sum(axis=2, keepdims=True), counts.shape)[counts > 0]
        points.append(counts[counts > 0] / total)
        uses.append(total)
    points, uses, first = np.concatenate(points), np.concatenate(uses), np.asarray(levels, dtype=np.float64)
    near = (points[:, None] * np.log(points[:, None] / first) + first - points[:, None]).argmin(axis=1)
    assert set(near) == {0, 1, 2, 3}
    wanted = [np.average(points[near == k], weights=uses[near == k]) for k in range(4)]
    np.testing.assert_allclose(after.levels, wanted, rtol=1e-4)
    assert (np.asarray(after.parameters.transition)[prior.transition == 0] == 0).all()


def test_what_was_cut_remains_cut_through_the_quantiser():
    data = dependent(0, 600, 6)
    options = LatentOptions(hidden_states=4, epochs=40, max_edges=150, validation_fraction=0.0)
    rounds, trained = learn_tables(data, options)
    again = rounds.quantized(trained, 2)
    cut = trained.tables.transition == 0
    assert cut[1:].any()
    assert (again.tables.transition[cut] == 0).all()


def test_em_goes_on_through_the_quantiser():
    data, test = dependent(0, 3000, 10), dependent(1, 2000, 10)
    options = {"hidden_states": 4, "epochs": 16}
    whole = learn_latent_tree(data, **options)
    exact = whole.circuit.log_likelihood(test.X).mean()
    for levels in (2, 4, 8):
        learned = learn_latent_tree(data, levels=levels, **options)
        assert isinstance(learned.circuit.format, Codebook)
        assert len(learned.circuit.format.values) <= levels
        own = learned.circuit.log_likelihood(test.X).mean()
        plain = tie(whole.circuit, levels, counts=data).model.log_likelihood(test.X).mean()
        assert own > plain - 0.01
        assert learned.log_likelihood == pytest.approx(learned.circuit.log_likelihood(data.X).mean(), abs=0.05)
        assert learned.validation_log_likelihood == max(value for _, value in learned.history)
    assert own > exact - 0.05


def test_levels_go_with_fewer_edges_and_with_mixtures():
    data = dependent(0, 1000, 8)
    learned = learn_latent_tree(data, hidden_states=4, epochs=4, components=2, max_edges=400, levels=8)
    assert learned.circuit.n_edges <= 400
    assert len(learned.circuit.format.values) <= 8
    assert np.exp(learned.circuit.log_likelihood(np.array(list(itertools.product([0, 1], repeat=8))))).sum() == (
        pytest.approx(1)
    )


def test_scores_of_a_density_with_levels_are_probabilities():
    X = dependent(0, 600, 4).X
    density = CircuitDensity(method="latent", hidden_states=2, epochs=4, levels=4).fit(X)
    every = np.array(list(itertools.product([0, 1], repeat=4)))
    assert np.exp(density.score_samples(every)).sum() == pytest.approx(1)
    with pytest.raises(TinybayesError, match=r"levels: expected None with this method.*tie"):
        CircuitDensity(levels=4).fit(X)
    with pytest.raises(TinybayesError, match="levels: expected 2 to 256"):
        CircuitDensity(method="latent", levels=1).fit(X)
    labelled = Dataset(data_of(X).variables, Variable("class", (0, 1)), X, X[:, 0])
    with pytest.raises(TinybayesError, match="no levels for a classifier"):
        learn_latent_classifier(labelled, LatentOptions(levels=4))


def test_parameters_keep_their_shape():
    parameters = Parameters(jnp.zeros((1, 2, 2)), jnp.full((1, 2, 2), 0.5))
    coarse = quantized(parameters, jnp.asarray([0.1, 0.4]))
    assert float(coarse.transition.max()) == 0.0
    np.testing.assert_allclose(np.asarray(coarse.emission), 0.4, rtol=1e-6)
