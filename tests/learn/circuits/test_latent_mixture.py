"""Mixtures of latent trees: against the enumeration of all trees and hidden states."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tinybayes.infer import is_decomposable, is_smooth, log_partition
from tinybayes.learn.circuits.latent_circuit import latent_circuit
from tinybayes.learn.circuits.latent_mixture import Structure, average_of, clusters, find_structure
from tinybayes.learn.circuits.latent_pruning import count_edges, cut, strongest
from tinybayes.learn.circuits.latent_start import draw_start, pseudocounts
from tinybayes.learn.circuits.latent_steps import Fixed, LatentSteps, Parameters, State
from tinybayes.learn.circuits.latent_structure import Tree, rooted_at_centre, side_by_side
from tinybayes.learn.circuits.latent_training import counts_and_log_likelihood, rows_of
from tinybayes.learn.circuits.latent_tree import learn_latent_tree
from tinybayes.model import Dataset, Variable

CARDS = (2, 3, 2, 2)
TREES = [(Tree((-1, 0), (0, 1, 1, 0)), [0, 1]), (Tree((-1, 0, 1), (2, 0, 1, 2)), [1, 2, 3])]
BOTH, VARIABLES = side_by_side(TREES)


def data_of(X, weight=None):
    cards = [int(c) for c in np.maximum(X.max(axis=0) + 1, 2)]
    return Dataset(tuple(Variable(f"x{i}", tuple(range(c))) for i, c in enumerate(cards)), None, X, weight=weight)


def model(seed, states=(2, 3, 2, 2, 3)):
    """Random rows with gaps, pseudocounts and random tables of both trees."""
    generator = np.random.default_rng(seed)
    X = np.stack([generator.integers(0, card, 60) for card in CARDS], axis=1)
    X[generator.random(X.shape) < 0.2] = -1
    data = data_of(X, generator.uniform(0.5, 2.0, 60))
    prior = pseudocounts(data, BOTH, np.array(states), 1.0)
    return data, prior, draw_start(prior, seed, BOTH.roots)


def enumerated(tables, states, row):
    """Return the probability of a row, and the expected counts of the transitions, tree by tree."""
    total, counts, first = 0.0, np.zeros_like(tables.transition), 0
    for t in range(2):
        nodes = [node for node in range(len(BOTH.parent)) if BOTH.tree_of[node] == t]
        for z in itertools.product(*(range(states[node]) for node in nodes)):
            at = dict(zip(nodes, z, strict=True))
            used = [(node, at.get(BOTH.parent[node], 0), at[node]) for node in nodes]
            p = math.prod(tables.transition[e] for e in used)
            for v, x in enumerate(row):
                if x >= 0:
                    p *= tables.emission[first + v, at[BOTH.home[first + v]], x]
            total += p
            for e in used:
                counts[e] += p
        first += len(CARDS)
    return total, counts / total


def on_device(tables):
    return Parameters(jnp.asarray(tables.transition, jnp.float32), jnp.asarray(tables.emission, jnp.float32))


@pytest.mark.parametrize("count", [2, 3])
def test_clusters_are_a_fixed_point_of_em(count):
    """Rows of a few kinds, with gaps and weights: another step, variable by variable, changes no cluster."""
    generator = np.random.default_rng(count)
    kinds = generator.integers(0, 3, (count, 8))
    X = np.where(generator.random((300, 8)) < 0.1, generator.integers(0, 3, (300, 8)), kinds[np.arange(300) % count])
    X[generator.random(X.shape) < 0.1] = -1
    weight = generator.uniform(0.5, 2.0, 300)
    data = Dataset(tuple(Variable(f"x{v}", (0, 1, 2)) for v in range(8)), None, X, weight=weight)
    shares = clusters(data, count, 0)
    joint = np.zeros((300, count))
    for c in range(count):
        used = weight * shares[:, c]
        joint[:, c] += np.log((used.sum() + 1) / (weight.sum() + count))
        for v in range(8):
            known = X[:, v] >= 0
            usual = np.bincount(X[known, v], weight[known], 3) + 2 / 3
            table = np.bincount(X[known, v], used[known], 3) + 2 * usual / usual.sum()
            joint[known, c] += np.log(table / table.sum())[X[known, v]]
    again = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
    np.testing.assert_allclose(again, shares, atol=0.01)
    assert shares.max(axis=1).mean() > 0.9


def test_trees_stand_side_by_side():
    assert BOTH.roots == 2
    assert BOTH.tree_of.tolist() == [0, 1, 0, 1, 1]
    assert BOTH.levels == [(0, 2), (2, 4), (4, 5)]
    assert BOTH.parent == (-1, -1, 0, 1, 3)
    assert BOTH.home == (0, 2, 2, 0, 4, 1, 3, 4)
    assert VARIABLES == [0, 1, 1, 2, 3]
    alone = rooted_at_centre([-1, 0, 1, 2])
    assert side_by_side([alone]) == alone


@pytest.mark.parametrize("seed", range(3))
def test_likelihood_and_counts_are_those_of_enumeration(seed):
    states = (2, 3, 2, 2, 3)
    data, _, tables = model(seed, states)
    assert tables.transition[:2, 0].sum() == pytest.approx(1)
    circuit = latent_circuit(data.variables, None, BOTH, tables.transition, tables.emission)
    known = [enumerated(tables, states, row) for row in data.X.tolist()]
    logs = np.log([p for p, _ in known])
    np.testing.assert_allclose(circuit.log_likelihood(data.X), logs, rtol=1e-9)
    np.testing.assert_allclose(
        LatentSteps(BOTH, 3).log_likelihood(on_device(tables), jnp.asarray(data.X, jnp.int32)), logs, rtol=2e-5
    )
    counts, mean = counts_and_log_likelihood(data, BOTH, tables)
    wanted = sum(w * part for w, (_, part) in zip(data.weight, known, strict=True))
    np.testing.assert_allclose(counts.transition, wanted, rtol=1e-3, atol=1e-3)
    assert mean == pytest.approx(np.average(logs, weights=data.weight), rel=1e-5)
    assert is_smooth(circuit)
    assert is_decomposable(circuit)
    assert log_partition(circuit) == pytest.approx(0, abs=1e-9)
    assert count_edges(BOTH, tables.transition > 0, CARDS * 2) == circuit.n_edges


def test_em_never_decreases_the_posterior():
    data, prior, tables = model(4)
    steps, rows = LatentSteps(BOTH, 3), rows_of(data)
    parameters = on_device(tables)
    fixed = Fixed(on_device(prior), jnp.asarray(data.weight.sum(), jnp.float32))
    state, values = State(parameters, parameters), []
    for _ in range(12):
        logs = data.weight @ np.asarray(steps.log_likelihood(state.parameters, rows.X), dtype=np.float64)
        smoothed = zip(jax.tree.leaves(on_device(prior)), state.parameters, strict=True)
        values.append(logs + sum(float((a * jnp.log(jnp.maximum(p, 1e-30))).sum()) for a, p in smoothed))
        state = steps.step(state, fixed, rows, jnp.asarray(1.0))
        assert float(state.parameters.transition[:2, 0].sum()) == pytest.approx(1, abs=1e-5)
    assert np.diff(values).min() > -2e-3
    assert values[-1] > values[0] + 0.1


def test_cutting_keeps_every_tree():
    data, _, tables = model(5)
    flow = counts_and_log_likelihood(data, BOTH, tables)[0].transition
    for limit in (110, 130, 160):
        allowed = strongest(BOTH, flow, CARDS * 2, limit)
        kept = cut(tables, allowed, BOTH.roots)
        circuit = latent_circuit(data.variables, None, BOTH, kept.transition, kept.emission)
        assert circuit.n_edges == count_edges(BOTH, allowed, CARDS * 2) <= limit
        assert log_partition(circuit) == pytest.approx(0, abs=1e-9)


def two_kinds(seed, rows):
    """Two kinds of rows: in each, other features are equal, and a few tell the kind."""
    generator = np.random.default_rng(seed)
    kind = generator.integers(0, 2, rows)
    X = generator.integers(0, 2, (rows, 12))
    flips = generator.random((rows, 12)) < 0.05
    for v in range(6):
        X[:, v] = kind
    a, b = X[:, 6:9].copy(), X[:, 6:9].copy()
    X[:, 9:12] = np.where(kind[:, None] == 0, a, np.roll(b, 1, axis=1))
    return X ^ flips


def test_clusters_are_found_and_their_trees_differ():
    X = two_kinds(0, 1500)
    X[::9, 3] = -1
    data = data_of(X)
    shares = clusters(data, 2, seed=1)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert max((shares.argmax(axis=1) == X[:, 0]).mean(), (shares.argmax(axis=1) != X[:, 0]).mean()) > 0.9
    structure = find_structure(data, 2, seed=1)
    assert structure.tree.roots == 2
    assert structure.near.shape == (24, 2)
    assert find_structure(data, 1, seed=1).near is None


def test_a_mixture_beats_a_tree_of_as_many_states_where_kinds_of_rows_differ():
    train, test = data_of(two_kinds(0, 3000)), two_kinds(1, 2000)
    options = {"hidden_states": 3, "epochs": 20, "seed": 1}
    one, two = (learn_latent_tree(train, components=c, **options) for c in (1, 2))
    assert two.circuit.log_likelihood(test).mean() > one.circuit.log_likelihood(test).mean() + 0.1
    assert two.parents.count(-1) == 2
    assert len(two.homes) == 24
    half = learn_latent_tree(train, components=2, max_edges=two.circuit.n_edges // 2, **options)
    assert half.circuit.n_edges <= two.circuit.n_edges // 2
    assert log_partition(half.circuit) == pytest.approx(0, abs=1e-9)


def test_the_average_of_trees_is_the_mean_of_their_probabilities():
    data, prior, _ = model(2)
    tables = [draw_start(prior, seed, BOTH.roots) for seed in range(3)]
    structure, joined = average_of(Structure(BOTH, VARIABLES, None), tables)
    assert structure.tree.roots == 3 * BOTH.roots
    circuits = [
        latent_circuit(data.variables, None, tree, own.transition, own.emission)
        for tree, own in [(structure.tree, joined), *((BOTH, one) for one in tables)]
    ]
    whole, *parts = (circuit.log_likelihood(data.X) for circuit in circuits)
    np.testing.assert_allclose(whole, np.logaddexp.reduce(parts, axis=0) - np.log(3), rtol=1e-10)


def test_restarts_are_averaged_under_a_price_too():
    generator = np.random.default_rng(1)
    cause = generator.integers(0, 3, (700, 1))
    X = ((cause == generator.integers(0, 3, 8)) ^ (generator.random((700, 8)) < 0.1)).astype(np.int8)
    rows = {"data": data_of(X[:500]), "validation": data_of(X[500:])}
    options = {"hidden_states": 3, "epochs": 6, "restarts": 3}
    best, average = (learn_latent_tree(**rows, **options, average=average) for average in (False, True))
    assert average.circuit.log_likelihood(X[500:]).mean() == pytest.approx(average.validation_log_likelihood, rel=1e-5)
    assert len(average.homes) == 3 * len(best.homes)
    small = learn_latent_tree(**rows, **options, average=True, max_edges=best.circuit.n_edges)
    assert small.circuit.n_edges <= best.circuit.n_edges
    with pytest.raises(ValueError, match="several restarts"):
        learn_latent_tree(**rows, average=True)
